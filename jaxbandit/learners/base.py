"""What a learner is: three pure methods on a pytree of hyperparameters.

Arrays are ``[K, ...]`` per arm and ``[...]`` per run, arms first and runs last, so the same code serves one run and a block
of runs. :class:`Round` is what a learner may know when it acts, :class:`Observation` what reaches it later.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandit.arms import is_arm
from jaxbandit.randomness import Words


class Round(NamedTuple):
    """What a learner may know at the start of round t."""

    t: jax.Array  # [] int32, the round, from 1 ([...] where a wrapper gives each run's copy its own clock)
    outstanding: jax.Array  # [] or [...] int32, σ_t: plays made before t whose feedback has not arrived before t
    total_outstanding: jax.Array  # [] or [...] float, Σ_{s<=t} σ_s
    words: Callable[
        ..., Words
    ]  # two fresh random words for each run; words(n) another pair for each n (uint32, shapes broadcast)
    is_outstanding: Callable[[jax.Array], jax.Array]  # of a round s ([] or [...] int32): s < t and s + d_s >= t

    @property
    def time(self) -> jax.Array:
        """t as a float."""
        return self.t.astype(self.total_outstanding.dtype)

    def keys(self) -> jax.Array:
        """One JAX key for each run."""
        return self.words().key()


class Observation(NamedTuple):
    """One arrived observation for each run; where ``arrived`` is False it must change nothing."""

    arrived: jax.Array  # [] or [...] bool
    origin: jax.Array  # [] or [...] int32, the round s of the play
    arm: jax.Array  # [...] int32, -1 where nothing arrived
    loss: jax.Array  # [...]
    probability: jax.Array  # [...] of the arm at play time
    memo: Any  # what the learner left with the play
    jump: Any = None  # a jaxbandit.jump.Jump where the gradient of the expected regret is asked for

    def loss_estimate(self, num_arms: int, *, floor: jax.Array | None = None, baseline: jax.Array | None = None) -> jax.Array:
        """The importance-weighted estimate ``[K, ...]``, 0 where nothing arrived.

        (ℓ - B)/max(x_s, floor) in the row of the played arm, plus B in every row; x_s is of the time of the play, B the
        ``baseline [K, ...]``. It carries the jump tangent, so a learner whose feedback enters only here is differentiated
        right; see :class:`ImportanceWeighted`.
        """
        # The probability of a play that was never made may be 0: put a safe value in before dividing.
        loss = self.loss if baseline is None else self.loss - baseline
        probability = self.probability if self.jump is None else lax.stop_gradient(self.probability)
        divisor = probability if floor is None else jnp.maximum(probability, floor)
        weighted = jnp.where(self.arrived, loss, 0) / jnp.where(self.arrived, divisor, 1)
        estimate = self.at_arm(weighted, num_arms) if self.jump is None else self.jump.estimate(self, weighted, floor)
        return estimate if baseline is None else jnp.where(self.arrived, baseline, 0) + estimate

    def at_arm(self, value: jax.Array, num_arms: int) -> jax.Array:
        """``value [...]`` in the row of the played arm, 0 elsewhere; ``[K, ...]``."""
        return jnp.where(is_arm(self.arm, num_arms), value, jnp.zeros((), value.dtype))


class ImportanceWeighted:
    """Learners whose feedback enters only through :meth:`Observation.loss_estimate`: the jump tangent applies to them.

    A learner of your own that inherits from this gets fast gradients; the methods sharpen them and may be left as they are.
    """

    importance_weighted: ClassVar[Any] = (
        True  # a property in classes where a switch decides; False where a switch lets feedback in elsewhere too
    )
    has_floor: ClassVar[bool] = False  # whether it gives loss_estimate a floor

    def stiffness(self, state: Any, round: Round, probabilities: jax.Array) -> jax.Array:
        """h_i = 2/|d log x_i/dL_i| ``[K, ...]`` in the round that ``act`` went to ``state`` in; ∞ where unknown."""
        return jnp.full_like(probabilities, jnp.inf)

    def baseline(self, round: Round, probabilities: jax.Array) -> jax.Array:
        """B ``[K, ...]`` of the plays of this round."""
        return jnp.zeros_like(probabilities)


@runtime_checkable
class Learner(Protocol):
    """The protocol: any object with these three methods is a learner (and a pytree, if its numbers shall be traced).

    A class that calls ``round.is_outstanding`` says ``watches_plays = True``. One that must know which arm was drawn before
    its feedback comes has a fourth method, ``played(state, round, arm, probability) -> state``.
    """

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any:
        """The state before round 1: a pytree of ``[K, ...]`` and ``[...]`` arrays."""
        ...

    def act(self, state: Any, round: Round) -> tuple[jax.Array, Any, Any]:
        """``(probabilities [K, ...], memo, state)``; ``memo`` waits with the play and comes back with its feedback."""
        ...

    def observe(self, state: Any, observation: Observation) -> Any:
        """The state after one observation for each run; called in ascending round of origin."""
        ...


def tell_played(learner: Any, state: Any, round: Round, arm: jax.Array, probability: jax.Array) -> Any:
    """The state once the learner knows which arm was drawn, if it wants to know."""
    return learner.played(state, round, arm, probability) if hasattr(learner, "played") else state
