"""Elimination: play the arms that may still be the best in turn, and drop those that surely are not."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbandit._core.arms import constant_min, one_hot
from jaxbandit._core.fields import given, number, pytree_dataclass
from jaxbandit.learners.base import Learner, Observation, Round
from jaxbandit.learners.ucb import Observed


def surviving(active: jax.Array, observed: Observed, horizon: ArrayLike) -> jax.Array:
    """The active arms whose lower confidence bound is not above another's upper one; ``[K, ...]`` bool."""
    mean, radius = observed.mean(), jnp.sqrt(2 * jnp.log(horizon) / observed.number())
    seen = active & (observed.counts > 0)
    best = constant_min(jnp.where(seen, mean + radius, jnp.inf))
    return active & ~(seen & (mean - radius > best))


def next_arm(eligible: jax.Array, last: jax.Array) -> jax.Array:
    """The first eligible arm after ``last`` in cyclic order, int32 ``[...]``."""
    num_arms = eligible.shape[0]
    order = jnp.arange(num_arms).reshape(num_arms, *[1] * last.ndim)
    turn = jnp.where(order > last, order, order + num_arms).astype(jnp.float32)
    return constant_min(jnp.where(eligible, turn, 2 * num_arms)).astype(jnp.int32) % num_arms


def surely(arm: jax.Array, observed: Observed) -> jax.Array:
    """The probabilities ``[K, ...]`` of playing ``arm [...]`` for sure."""
    return one_hot(arm, observed.losses.shape[0]).astype(observed.losses.dtype)


@pytree_dataclass
class EliminationState:
    observed: Observed
    active: jax.Array  # [K, ...] bool
    last: jax.Array  # [...] int32, the arm played last, -1 before the first round
    phase: jax.Array | None  # [...] int32; None without phases


@pytree_dataclass
class SuccessiveElimination(Learner):
    """Successive elimination: sweeps over the active arms; before each sweep, significantly worse arms are dropped.

    Arm i goes when its lower bound on the mean loss is above the smallest upper bound of an active arm, with radius
    :math:`\\sqrt{2\\log T / n_i}` after :math:`n_i` observations.

    Args:
      horizon: T, the number of rounds.

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.SuccessiveElimination(horizon=100), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100,
    ...             runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Lancewicki, Segal, Koren & Mansour, *Stochastic Multi-Armed Bandits with Unrestricted Delay Distributions*,
    ICML 2021 (recalled, not checked against the paper).
    """

    horizon: ArrayLike = given("horizon", low=1)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> EliminationState:
        observed, active = Observed.start(num_arms, runs_shape), jnp.ones((num_arms, *runs_shape), bool)
        return EliminationState(observed, active, jnp.full(runs_shape, -1, jnp.int32), None)

    def act(self, state: EliminationState, round: Round) -> tuple[jax.Array, Any, EliminationState]:
        # A sweep is over when the next arm is not further up than the last.
        new_sweep = next_arm(state.active, state.last) <= state.last
        active = jnp.where(new_sweep, surviving(state.active, state.observed, self.horizon), state.active)
        arm = next_arm(active, state.last)
        return surely(arm, state.observed), (), EliminationState(state.observed, active, arm, None)

    def observe(self, state: EliminationState, observation: Observation) -> EliminationState:
        return dataclasses.replace(state, observed=state.observed.add(observation))


@pytree_dataclass
class PhasedElimination(SuccessiveElimination):
    """Phased elimination.

    Phase :math:`\\ell = 1, 2, \\dots` lasts until each active arm has :math:`16 \\log T \\cdot 4^\\ell` observations.

    Only active arms that still lack observations are played, in turn; at the end of a phase the arms that are surely worse are
    dropped, with the bounds of :class:`SuccessiveElimination`.

    Args:
      horizon: T, the number of rounds.
      factor: the 16.

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.PhasedElimination(horizon=100), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8,
    ...             seed=0).regret[-1].shape
    (8,)

    Reference: Lancewicki, Segal, Koren & Mansour, *Stochastic Multi-Armed Bandits with Unrestricted Delay Distributions*,
    ICML 2021 (recalled, not checked against the paper).
    """

    factor: ArrayLike = number(default=16.0)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> EliminationState:
        return dataclasses.replace(super().init(num_arms, runs_shape), phase=jnp.ones(runs_shape, jnp.int32))

    def act(self, state: EliminationState, round: Round) -> tuple[jax.Array, Any, EliminationState]:
        assert state.phase is not None
        observed = state.observed
        counts = observed.counts.astype(observed.losses.dtype)
        unit = jnp.maximum(self.factor * jnp.log(self.horizon), 1e-9)  # a horizon of 1 has log T = 0

        def fewest(active):
            return constant_min(jnp.where(active, counts, jnp.inf))

        ended = fewest(state.active) >= jnp.ldexp(unit, 2 * state.phase)
        active = jnp.where(ended, surviving(state.active, observed, self.horizon), state.active)
        # Delayed feedback may have completed further phases; eliminating again on the same data drops no arm.
        completed = jnp.floor(jnp.log2(jnp.maximum(fewest(active) / unit, 1)) / 2).astype(jnp.int32)
        phase = jnp.where(ended, jnp.maximum(state.phase, completed) + 1, state.phase)
        lacking = active & (counts < jnp.ldexp(unit, 2 * phase))
        arm = next_arm(lacking, state.last)
        return surely(arm, observed), (), EliminationState(observed, active, arm, phase)
