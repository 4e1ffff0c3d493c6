"""Aggregated anonymous feedback: only the sum of the rewards that arrive in a round is observed."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbandit._core.arms import constant_min, one_hot
from jaxbandit._core.fields import float_dtype, given, pytree_dataclass
from jaxbandit._core.sums import compensated_add
from jaxbandit.learners.base import Learner, Observation, Round

MOST_PLAYS = 2.0**30  # a phase is never longer


@pytree_dataclass
class ODAAFState:
    active: jax.Array  # [K, ...] bool
    done: jax.Array  # [K, ...] int32, plays of each arm that counted, in all phases
    rewards: jax.Array  # [K, ...] the sum that arrived in these rounds
    error: jax.Array  # [K, ...] what rounding took from it
    phase: jax.Array  # [...] int32, m
    length: jax.Array  # [...] int32, n_m
    before: jax.Array  # [...] int32, n_{m-1}
    bridge: jax.Array  # [...] int32, rounds between two phases that are left
    counted: jax.Array  # [...] int32, the arm that arrivals of this round are attributed to, -1: none


@pytree_dataclass
class ODAAF(Learner):
    """ODAAF: elimination for aggregated anonymous feedback, where only the sum of the rewards that arrive in a round is observed.

    Phase m = 1, 2, … chooses each active arm in one stretch until it has :math:`n_m` rounds in total, and counts all arrivals in
    these rounds as its own: with :math:`\\tilde\\Delta = 2^{-m}`, :math:`L = \\log(T \\tilde\\Delta^2)` and mean delay E[τ],

    .. math::
       n_m = \\Big\\lceil \\tilde\\Delta^{-2} \\Big(\\sqrt{2L} + \\sqrt{2L + \\tfrac83 \\tilde\\Delta L
       + 6 \\tilde\\Delta (m + 1) E[\\tau]}\\Big)^2 \\Big\\rceil

    the stretches are so long that what is counted wrongly at their ends does not matter. Then the arms whose mean reward is more than
    :math:`\\tilde\\Delta` below the best are dropped, and the best of those left is played :math:`n_m - n_{m-1}` rounds of which nothing is
    used (the paper: any of them; the best one reproduces its figure). ``observe`` uses rewards only, not the arm or round of an observation.

    The paper's formula has m where its figure has m + 1, as here. L is at least 0, and :math:`n_m > n_{m-1}`.

    Args:
      horizon: T, the number of rounds.
      mean_delay: E[τ].

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.ODAAF(horizon=1000, mean_delay=5), jb.losses.Bernoulli(rewards=[0.3, 0.5]),
    ...             jb.delays.UniformRandom(0, 10), rounds=1000, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Pike-Burke, Agrawal, Szepesvári & Grünewälder, *Bandits with Delayed, Aggregated Anonymous Feedback*, ICML 2018.
    """

    horizon: ArrayLike = given("horizon", low=1)
    mean_delay: ArrayLike = given("mean_delay")

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> ODAAFState:
        zeros, zero = jnp.zeros((num_arms, *runs_shape), float_dtype()), jnp.zeros(runs_shape, jnp.int32)
        first = self._length(zero + 1, zero)
        return ODAAFState(zeros == 0, zeros.astype(jnp.int32), zeros, zeros, zero + 1, first, zero, zero, zero - 1)

    def _length(self, phase: jax.Array, before: jax.Array) -> jax.Array:
        """n of a phase, above the one before; int32 ``[...]``."""
        gap = jnp.ldexp(jnp.ones(phase.shape, float_dtype()), -phase)
        log = jnp.maximum(jnp.log(self.horizon * gap**2), 0)
        missing = 6 * gap * (phase + 1).astype(gap.dtype) * self.mean_delay
        root = jnp.sqrt(2 * log) + jnp.sqrt(2 * log + 8 * gap * log / 3 + missing)
        needed = jnp.minimum(jnp.ceil((root / gap) ** 2), MOST_PLAYS).astype(jnp.int32)
        return jnp.maximum(needed, jnp.minimum(before, 2**30) + 1)

    def act(self, state: ODAAFState, round: Round) -> tuple[jax.Array, Any, ODAAFState]:
        num_arms = state.active.shape[0]
        numbers = jnp.arange(num_arms, dtype=jnp.float32).reshape(num_arms, *[1] * state.phase.ndim)

        def first(eligible):
            """The first eligible arm, ``num_arms`` if there is none; int32 ``[...]``."""
            return constant_min(jnp.where(eligible, numbers, num_arms)).astype(jnp.int32)

        ended = (state.bridge == 0) & (first(state.active & (state.done < state.length)) == num_arms)
        active = jnp.where(ended, self._surviving(state), state.active)
        phase = state.phase + ended.astype(jnp.int32)
        length = jnp.where(ended, self._length(phase, state.length), state.length)
        bridge = jnp.where(ended, state.length - state.before, state.bridge)
        before = jnp.where(ended, state.length, state.before)
        crossing = bridge > 0
        means = self._means(state)
        best = first(active & (means == -constant_min(jnp.where(active, -means, jnp.inf))))
        arm = jnp.where(crossing, best, first(active & (state.done < length)))
        counted = jnp.where(crossing, -1, arm)
        done = state.done + one_hot(counted, num_arms).astype(jnp.int32)
        bridge = bridge - crossing.astype(jnp.int32)
        new = ODAAFState(active, done, state.rewards, state.error, phase, length, before, bridge, counted)
        return one_hot(arm, num_arms).astype(state.rewards.dtype), (), new

    def _means(self, state: ODAAFState) -> jax.Array:
        return (state.rewards + state.error) / jnp.maximum(state.done, 1).astype(state.rewards.dtype)

    def _surviving(self, state: ODAAFState) -> jax.Array:
        means = self._means(state)
        gap = jnp.ldexp(jnp.ones(state.phase.shape, means.dtype), -state.phase)
        best = -constant_min(jnp.where(state.active, -means, jnp.inf))
        return state.active & ~(means + gap / 2 < best - gap / 2)

    def observe(self, state: ODAAFState, observation: Observation) -> ODAAFState:
        reward = jnp.where(observation.arrived, 1 - observation.loss, 0)
        came = jnp.where(one_hot(state.counted, state.active.shape[0]), reward, 0)
        rewards, error = compensated_add(state.rewards, state.error, came)
        # With nothing to add, rounding errors shall not move either.
        rewards, error = (
            jnp.where(observation.arrived, new, old) for new, old in ((rewards, state.rewards), (error, state.error))
        )
        return ODAAFState(
            *(state.active, state.done, rewards, error, state.phase, state.length, state.before, state.bridge, state.counted)
        )
