"""Delayed conversions with censored failures: missing outcomes are weighted by the probability of a later conversion."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.arms import one_hot, sums
from jaxbandit._core.fields import Numbers, float_dtype, given, is_concrete, named, number, pytree_dataclass
from jaxbandit._core.ring import write_own_row
from jaxbandit._core.sums import compensated_add
from jaxbandit.learners.base import Learner, Observation, Round
from jaxbandit.learners.ucb import uniform_over_smallest

NEWTON_STEPS = 6  # float64 has its last digits after 5


@pytree_dataclass
class ConversionState:
    """All plays of each arm, the arms of the rounds whose conversions may still arrive, and the observed conversions."""

    plays: jax.Array  # [K, ...] int32
    recent: jax.Array  # [m, ...] int32, row s % m: the arm of play s, -1 for none
    rewards: jax.Array  # [K, ...] the sum of 1 - loss over what arrived
    error: jax.Array  # [K, ...] what rounding took from it


class Conversions(Learner):
    """What both share: the plays of each arm, and how many of them count by now."""

    curve: Numbers
    epsilon: ArrayLike

    def check(self) -> None:
        if is_concrete(self.curve) and np.any(np.diff(np.asarray(self.curve), axis=0) < 0):
            raise ValueError(f"{named(self, 'curve')}: the probabilities to have come within 0, 1, 2, … rounds never fall")

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> ConversionState:
        zeros = jnp.zeros((num_arms, *runs_shape), float_dtype())
        window = max(np.shape(self.curve)[0] - 1, 1)
        return ConversionState(zeros.astype(jnp.int32), jnp.full((window, *runs_shape), -1, jnp.int32), zeros, zeros)

    def act(self, state: ConversionState, round: Round) -> tuple[jax.Array, Any, ConversionState]:
        plays, expected = state.plays.astype(state.rewards.dtype), self._expected(state, round)
        known = expected > 0
        divisor = jnp.where(known, expected, 1)
        mean = (state.rewards + state.error) / divisor
        index = self.index(mean, plays, divisor, (1 + self.epsilon) * jnp.log(round.time))
        return uniform_over_smallest(round.restrict(jnp.where(known, -index, -jnp.inf))), (), state

    def _expected(self, state: ConversionState, round: Round) -> jax.Array:
        """Ñ ``[K, ...]``: the plays of each arm, each with the probability that its conversion would have arrived by now."""
        window, num_arms = state.recent.shape[0], state.plays.shape[0]
        curve = jnp.asarray(self.curve, state.rewards.dtype)
        missing = curve[-1] - curve[:window]  # of ages 0 … m - 1; older rounds have no outstanding conversion
        rows = jnp.arange(window, dtype=jnp.int32).reshape(window, *[1] * (state.recent.ndim - 1))
        # Row s % m holds play s < t, whose conversion could arrive with delays 0 … t - 1 - s.
        missing = missing[(round.t - 1 - rows) % window]
        late = jnp.where(one_hot(state.recent, num_arms), missing, 0)  # [K, m, ...]
        return curve[-1] * state.plays.astype(curve.dtype) - sums(jnp.swapaxes(late, 0, 1))[0]

    def index(self, mean: jax.Array, plays: jax.Array, expected: jax.Array, budget: ArrayLike) -> jax.Array:
        """What conversion rate an arm might have, ``[K, ...]``."""
        raise NotImplementedError

    def played(self, state: ConversionState, round: Round, arm: jax.Array, probability: jax.Array) -> ConversionState:
        window, num_arms = state.recent.shape[0], state.plays.shape[0]
        plays = state.plays + one_hot(arm, num_arms).astype(jnp.int32)
        return ConversionState(plays, write_own_row(state.recent, arm, round.t % window), state.rewards, state.error)

    def observe(self, state: ConversionState, observation: Observation) -> ConversionState:
        gain = jnp.where(observation.arrived, 1 - observation.loss, 0)
        rewards, error = compensated_add(state.rewards, state.error, observation.at_arm(gain, state.plays.shape[0]))
        return ConversionState(state.plays, state.recent, rewards, error)


@pytree_dataclass
class DelayedUCB(Conversions):
    """UCB for delayed conversions: a success (loss 0) is observed after a delay, a failure (loss 1) never.

    .. math::
       I_t \\in \\arg\\max_k \\; \\frac{S_k}{\\tilde N_k}
       + \\sqrt{\\frac{N_k}{\\tilde N_k}} \\sqrt{\\frac{(1+\\epsilon)\\log t}{2 \\tilde N_k}}, \\quad
       \\tilde N_k = \\sum_{s < t,\\, I_s = k} \\tau_{\\min(t - 1 - s,\\, m)}

    with :math:`S_k` the conversions observed among the :math:`N_k` actions on arm k, and :math:`\\tau_a` the probability that a
    conversion, if there is one, has arrived within a rounds. :math:`S_k/\\tilde N_k` is unbiased although failures are not observed.
    An arm with :math:`\\tilde N_k = 0` is chosen first; ties break at random. Each round costs as many steps as the curve is long.

    Args:
      curve: :math:`\\tau_0, \\dots, \\tau_m`; no conversion arrives after m rounds.
      epsilon: ε.

    >>> import jaxbandit as jb
    >>> shape = jb.delays.LossDependent(no_conversion=jb.delays.PacketLoss(0.0), conversion=jb.delays.UniformRandom(0, 3))
    >>> jb.simulate(jb.DelayedUCB(curve=[0.25, 0.5, 0.75, 1.0]), jb.losses.Bernoulli(rewards=[0.3, 0.5]), shape, rounds=100,
    ...             runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Vernade, Cappé & Perchet, *Stochastic Bandit Models for Delayed Conversions*, UAI 2017.
    """

    curve: Numbers = given("conversion_curve", high=1.0, axes="M")
    epsilon: ArrayLike = number(default=0.0)

    def index(self, mean: jax.Array, plays: jax.Array, expected: jax.Array, budget: ArrayLike) -> jax.Array:
        return mean + jnp.sqrt(plays * budget / (2 * expected)) / jnp.sqrt(expected)


@pytree_dataclass
class DelayedKLUCB(Conversions):
    """KL-UCB for delayed conversions, with tighter bounds than :class:`DelayedUCB` where they are rare.

    .. math::
       I_t \\in \\arg\\max_k \\; \\max\\{q \\in [\\hat\\theta_k, 1] : \\tilde N_k\\, d(\\hat\\theta_k, q) \\le (1+\\epsilon)\\log t\\},
       \\quad d(p, q) = p \\log(p/q) + q - p

    with :math:`\\hat\\theta_k = S_k/\\tilde N_k` as in :class:`DelayedUCB`, and d the divergence of Poisson variables. Where
    :math:`\\hat\\theta_k > 1` it is the index itself.

    Args:
      curve: :math:`\\tau_0, \\dots, \\tau_m`; no conversion arrives after m rounds.
      epsilon: ε.

    >>> import jaxbandit as jb
    >>> shape = jb.delays.LossDependent(no_conversion=jb.delays.PacketLoss(0.0), conversion=jb.delays.UniformRandom(0, 3))
    >>> jb.simulate(jb.DelayedKLUCB(curve=[0.25, 0.5, 0.75, 1.0]), jb.losses.Bernoulli(rewards=[0.03, 0.05]), shape, rounds=100,
    ...             runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Vernade, Cappé & Perchet, *Stochastic Bandit Models for Delayed Conversions*, UAI 2017.
    """

    curve: Numbers = given("conversion_curve", high=1.0, axes="M")
    epsilon: ArrayLike = number(default=0.0)

    def index(self, mean: jax.Array, plays: jax.Array, expected: jax.Array, budget: ArrayLike) -> jax.Array:
        return jnp.maximum(mean, jnp.minimum(mean + poisson_excess(mean, budget / expected), 1))


def poisson_excess(mean: jax.Array, level: ArrayLike) -> jax.Array:
    """The g >= 0 with g - mean·log(1 + g/mean) = level, for mean, level >= 0: the largest q = mean + g within the divergence.

    Newton from the root of g²/(2(mean + g)) = level, which lies above it: the left side is convex, so the steps fall to the root.
    """
    limits = jnp.finfo(mean.dtype)
    level = jnp.asarray(level, mean.dtype)
    safe = jnp.where(mean > 0, mean, 1)
    excess = level + jnp.sqrt(level * (level + 2 * mean))
    for _ in range(NEWTON_STEPS):
        excess = jnp.maximum(excess, limits.tiny)
        beyond = excess - mean * jnp.log1p(excess / safe) - level
        excess = excess - beyond * (mean + excess) / excess
    return jnp.where(level > 0, jnp.maximum(excess, 0), 0)
