"""Elimination when the delay may depend on the loss: outstanding losses may be 0 or 1."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbandit._core.arms import constant_min, one_hot
from jaxbandit._core.fields import given, pytree_dataclass
from jaxbandit.learners.base import Learner, Observation, Round
from jaxbandit.learners.elimination import next_arm, surely
from jaxbandit.learners.ucb import Observed


@pytree_dataclass
class OPSEState:
    observed: Observed
    plays: jax.Array  # [K, ...] int32, also those that are missing
    active: jax.Array  # [K, ...] bool
    last: jax.Array  # [...] int32, the arm played last, -1 before the first round


@pytree_dataclass
class OptimisticPessimisticElimination(Learner):
    """OPSE: successive elimination for reward-dependent delays, with optimistic and pessimistic values for outstanding observations.

    .. math::
       \\frac{1}{n_i}\\Big(\\sum \\ell\\Big) - r_i \\;\\le\\; \\mu_i \\;\\le\\;
       \\frac{1}{n_i}\\Big(\\sum \\ell + m_i\\Big) + r_i, \\quad r_i = \\sqrt{2 \\log T / n_i}

    with sums over the observed losses of the :math:`n_i` rounds of arm i; the :math:`m_i` missing ones lost nothing in the lower bound
    and 1 in the upper. The active arms are played in turn; before each sweep the arms whose lower bound is above the smallest
    upper one are dropped.

    Args:
      horizon: T, the number of rounds.

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.OptimisticPessimisticElimination(horizon=100), jb.losses.Bernoulli([0.3, 0.5]),
    ...             jb.delays.DelayAsPayoff(10), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Lancewicki, Segal, Koren & Mansour, *Stochastic Multi-Armed Bandits with Unrestricted Delay Distributions*,
    ICML 2021 (recalled, not checked against the paper).
    """

    horizon: ArrayLike = given("horizon", low=1)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> OPSEState:
        observed, active = Observed.start(num_arms, runs_shape), jnp.ones((num_arms, *runs_shape), bool)
        return OPSEState(observed, observed.counts, active, jnp.full(runs_shape, -1, jnp.int32))

    def act(self, state: OPSEState, round: Round) -> tuple[jax.Array, Any, OPSEState]:
        new_sweep = next_arm(state.active, state.last) <= state.last
        active = jnp.where(new_sweep, self._surviving(state), state.active)
        arm = next_arm(active, state.last)
        plays = state.plays + one_hot(arm, active.shape[0]).astype(jnp.int32)
        return surely(arm, state.observed), (), OPSEState(state.observed, plays, active, arm)

    def _surviving(self, state: OPSEState) -> jax.Array:
        observed, dtype = state.observed, state.observed.losses.dtype
        plays = jnp.maximum(state.plays, 1).astype(dtype)
        seen, radius = state.active & (state.plays > 0), jnp.sqrt(2 * jnp.log(self.horizon) / plays)
        losses = observed.losses + observed.error
        missing = (state.plays - observed.counts).astype(dtype)
        best = constant_min(jnp.where(seen, (losses + missing) / plays + radius, jnp.inf))
        return state.active & ~(seen & (losses / plays - radius > best))

    def observe(self, state: OPSEState, observation: Observation) -> OPSEState:
        return dataclasses.replace(state, observed=state.observed.add(observation))
