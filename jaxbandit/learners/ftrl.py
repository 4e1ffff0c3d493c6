"""What all learners that follow the regularised leader share: estimates, the warm solver, the rates."""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from jaxbandit._core.arms import constant_min
from jaxbandit._core.fields import PyTree, float_dtype, pytree_dataclass
from jaxbandit._core.projection import Warm, hybrid_argmin_warm, implicit_tangent, warm_steps
from jaxbandit.learners.base import ImportanceWeighted, Observation, Round, State

CLOSE = {jnp.dtype(jnp.float32): 1e-3, jnp.dtype(jnp.float64): 1e-12}  # Σ(δy/y)² from which the solver, quadratic, has arrived
MOST_TURNS = 8


@pytree_dataclass
class FTRLState:
    """Cumulative observed losses, and where the solver goes on from."""

    loss_estimates: jax.Array  # [K, ...], the smallest near 0: only differences matter, and float32 has few digits
    warm: Warm
    probabilities: jax.Array | None = None  # [K, ...] x_t of the newest round, for delay-adapted estimates

    @classmethod
    def start(cls, num_arms: int, runs_shape: tuple[int, ...], delay_adapted: bool = False) -> "FTRLState":
        zeros = jnp.zeros((num_arms, *runs_shape), float_dtype())
        return cls(zeros, Warm.start(num_arms, runs_shape, zeros.dtype), zeros if delay_adapted else None)

    def add(self, estimate: jax.Array) -> "FTRLState":
        """The state after adding a loss estimate ``[K, ...]``."""
        return FTRLState(self.loss_estimates + estimate, self.warm, self.probabilities)

    def add_weighted(self, observation: Observation) -> "FTRLState":
        """The state after adding the importance-weighted loss of the played arm, or its delay-adapted estimate."""
        return self.add(observation.loss_estimate(self.loss_estimates.shape[0], floor=self.probabilities))


class FTRL(ImportanceWeighted[State]):
    """Followers of the leader regularised by the Tsallis and the negative entropy, whose rates theory and gradients read."""

    estimator: str = "iw"  # "delay-adapted": losses are divided by max{x at the action, x at the arrival}

    @property
    def importance_weighted(self) -> bool:
        """Not with the delay-adapted estimator, whose divisor depends on the losses that arrived in between."""
        return self.estimator != "delay-adapted"

    def inverse_rates(self, state: State, round: Round, num_arms: int) -> tuple[jax.Array, jax.Array]:
        """:math:`\\eta_t^{-1}` ``[...]`` and :math:`\\gamma_t^{-1}` (``[...]``, or ``[K, ...]`` for a rate of each arm), of the Tsallis and the negative entropy.

        ``state`` is the one that ``act`` returned in this round.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method inverse_rates(state, round, num_arms)")

    def burn_in(self, num_arms: int, gap: float) -> ArrayLike | None:
        """Approximate length of the burn-in if the best arm is better by ``gap``; None: not known."""
        return None

    def stiffness(self, state: State, round: Round, probabilities: jax.Array) -> jax.Array | None:
        return hybrid_stiffness(probabilities, *self.inverse_rates(state, round, probabilities.shape[0]))


def follow_leader(
    state: FTRLState, tsallis: ArrayLike, entropy: ArrayLike, solver: Callable = hybrid_argmin_warm
) -> tuple[jax.Array, FTRLState]:
    """The regularised leader's probabilities ``[K, ...]`` at inverse rates a = ``tsallis`` and b = ``entropy``."""
    adapted = state.probabilities is not None
    if state.loss_estimates.shape[0] == 1:
        ones = jnp.ones_like(state.loss_estimates)
        return ones, dataclasses.replace(state, probabilities=ones) if adapted else state
    shift = constant_min(state.loss_estimates)
    losses = state.loss_estimates - shift
    probabilities, warm = solver(losses, jnp.asarray(tsallis), jnp.asarray(entropy), state.warm.shifted(shift))
    return probabilities, FTRLState(losses, warm, probabilities if adapted else None)


class FollowsLeader(FTRL[FTRLState]):
    """FTRL whose state is the loss estimates alone: a learner adds its rates."""

    solver: Callable = staticmethod(hybrid_argmin_warm)

    @property
    def adds_only(self) -> bool:
        return self.estimator != "delay-adapted"  # it divides by probabilities of the state

    @property
    def _adds_at_arm(self) -> bool:
        return self.estimator == "iw"

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> FTRLState:
        return FTRLState.start(num_arms, runs_shape, self.estimator == "delay-adapted")

    def act(self, state: FTRLState, round: Round) -> tuple[jax.Array, PyTree, FTRLState]:
        rates = self.inverse_rates(state, round, state.loss_estimates.shape[0])
        probabilities, state = follow_leader(state, *rates, self.solver)
        return probabilities, (), state

    def observe(self, state: FTRLState, observation: Observation) -> FTRLState:
        return state.add_weighted(observation)


@jax.custom_jvp
def patient_argmin_warm(losses: jax.Array, tsallis: jax.Array, entropy: jax.Array, warm: Warm) -> tuple[jax.Array, Warm]:
    """:func:`hybrid_argmin_warm`, its steps repeated in the runs where they have not converged.

    A ``while_loop`` rather than a ``cond``: in most rounds every run has converged and the loop ends before its first turn, whereas
    ``vmap`` would compute both branches of a ``cond`` in every round. Runs that have converged keep their solution, so that no
    run depends on the runs beside it.
    """

    def go_on(carry):
        turns, (_, _, last) = carry
        return (last > CLOSE[losses.dtype]).any() & (turns < MOST_TURNS)

    def again(carry):
        turns, found = carry
        _, start, last = found
        better = warm_steps(losses, tsallis, entropy, dataclasses.replace(start, residual=warm.residual))
        return turns + 1, jax.tree.map(lambda new, old: jnp.where(last > CLOSE[losses.dtype], new, old), better, found)

    _, (x, solved, _) = lax.while_loop(go_on, again, (jnp.int32(0), warm_steps(losses, tsallis, entropy, warm)))
    return x, solved


@patient_argmin_warm.defjvp
def _patient_argmin_warm_jvp(primals, tangents):
    x, warm = patient_argmin_warm(*primals)
    return (x, warm), (implicit_tangent(x, primals[:3], tangents[:3]), jax.tree.map(jnp.zeros_like, warm))


def hybrid_stiffness(probabilities: jax.Array, tsallis: ArrayLike, entropy: ArrayLike) -> jax.Array:
    """h = a·x^{-1/2} + 2b ``[K, ...]``, as :meth:`ImportanceWeighted.stiffness` asks for it."""
    return jnp.asarray(tsallis) / jnp.sqrt(jnp.maximum(probabilities, jnp.finfo(probabilities.dtype).tiny)) + 2 * jnp.asarray(
        entropy
    )


def log_arms(num_arms: int) -> float:
    """log K, or 1 for a single arm, where no rate matters."""
    return float(np.log(num_arms)) if num_arms > 1 else 1.0


@jax.custom_jvp
def safe_sqrt(value: jax.Array) -> jax.Array:
    """√value with derivative 0 at 0: an inverse rate that is 0 because there was no delay yet stays differentiable."""
    return jnp.sqrt(value)


@safe_sqrt.defjvp
def _safe_sqrt_jvp(primals, tangents):
    result = safe_sqrt(*primals)
    return result, jnp.where(result > 0, tangents[0] / (2 * jnp.where(result > 0, result, 1)), 0)


@functools.partial(jax.custom_jvp, nondiff_argnums=(3,))
def scaled_sqrt(value: jax.Array, scale: ArrayLike, times: ArrayLike, log_k: float) -> jax.Array:
    """scale·√(times·value/log K), with the derivative in the scale also where it is 0; in all else 0 where the root is 0.

    The scale is inside the root: the result is then stored once, not worked out again in every pass over the arms.
    """
    return jnp.sqrt(value * (times * scale**2 / log_k))


@scaled_sqrt.defjvp
def _scaled_sqrt_jvp(log_k, primals, tangents):
    (value, scale, times), (value_change, scale_change, times_change) = primals, tangents
    root = jnp.sqrt(value * (times / log_k))
    inside = (value_change * times + value * times_change) / log_k
    change = scale_change * root + scale * jnp.where(root > 0, inside / (2 * jnp.where(root > 0, root, 1)), 0)
    return scaled_sqrt(value, scale, times, log_k), change
