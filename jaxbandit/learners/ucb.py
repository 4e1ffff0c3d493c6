"""Optimism: play the arm whose mean might be the best, judged by the plays that have been observed."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbandit._core.arms import constant_min, sums
from jaxbandit._core.fast_math import log1p_from_zero, one_minus_exp
from jaxbandit._core.fields import float_dtype, number, pytree_dataclass
from jaxbandit._core.sums import compensated_add
from jaxbandit.learners.base import Learner, Observation, Round


@pytree_dataclass
class Observed:
    """How often each arm was observed, and the sum of the losses seen.

    The sum carries its rounding error along: a float32 sum of zeros and ones stops growing at 2²⁴.
    """

    counts: jax.Array  # [K, ...] int32
    losses: jax.Array  # [K, ...]
    error: jax.Array  # [K, ...] what rounding took from ``losses``

    @classmethod
    def start(cls, num_arms: int, runs_shape: tuple[int, ...]) -> "Observed":
        zeros = jnp.zeros((num_arms, *runs_shape), float_dtype())
        return cls(zeros.astype(jnp.int32), zeros, zeros)

    def add(self, observation: Observation) -> "Observed":
        num_arms = self.counts.shape[0]
        losses, error = compensated_add(self.losses, self.error, observation.at_arm(observation.loss, num_arms))
        seen = observation.at_arm(jnp.ones_like(observation.arm), num_arms)
        return Observed(self.counts + seen, losses, error)

    def number(self) -> jax.Array:
        """The counts as floats, 1 where there are none, to divide by; ``[K, ...]``."""
        return jnp.maximum(self.counts, 1).astype(self.losses.dtype)

    def mean(self) -> jax.Array:
        """Mean observed loss, 0 where there is none; ``[K, ...]``."""
        return (self.losses + self.error) / self.number()

    def mean_reward(self) -> jax.Array:
        """Mean of 1 - loss over the observations, 0 where there is none; ``[K, ...]``.

        Counted from the sums: 1 - mean() has lost its digits where nearly all losses are 1.
        """
        return jnp.maximum(self.counts.astype(self.losses.dtype) - self.losses - self.error, 0) / self.number()


def uniform_over_smallest(values: jax.Array) -> jax.Array:
    """Equal probabilities on the arms with the smallest value, so that ties break at random; ``[K, ...]``."""
    smallest = (values == constant_min(values)).astype(values.dtype)
    return smallest / sums(smallest)[0]


@pytree_dataclass
class DelayedUCB1(Learner):
    """UCB1 on the feedback that has arrived.

    .. math:: I_t \\in \\arg\\max_i \\; 1 - \\bar\\ell_i + \\sqrt{\\alpha \\log t / S_i}

    with :math:`S_i` the number of observations of arm i and :math:`\\bar\\ell_i` their mean loss. Unobserved arms are chosen first, and
    ties break at random: otherwise the first arm would be played until its first feedback arrives.

    Args:
      alpha: the width of the bonus, 2 in the paper.

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.DelayedUCB1(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8,
    ...             seed=0).regret[-1].shape
    (8,)

    Reference: Joulani, György & Szepesvári, *Online Learning under Delayed Feedback*, ICML 2013.
    """

    alpha: ArrayLike = number(default=2.0)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Observed:
        return Observed.start(num_arms, runs_shape)

    def act(self, state: Observed, round: Round) -> tuple[jax.Array, Any, Observed]:
        bonus = jnp.sqrt(self.alpha * jnp.log(round.time) / state.number())
        lower = jnp.where(state.counts > 0, state.mean() - bonus, -jnp.inf)
        return uniform_over_smallest(round.restrict(lower)), (), state

    def observe(self, state: Observed, observation: Observation) -> Observed:
        return state.add(observation)


@pytree_dataclass
class KLUCB(Learner):
    """KL-UCB for losses in [0, 1], on the feedback that has arrived.

    .. math:: I_t \\in \\arg\\max_i \\; \\max\\{q : S_i\\, \\mathrm{kl}(1 - \\bar\\ell_i, q) \\le \\alpha \\log t\\}

    with kl the divergence of two Bernoulli distributions, :math:`S_i` the number of observations of arm i and :math:`\\bar\\ell_i` their mean loss.
    Unobserved arms are chosen first; ties break at random.

    Args:
      alpha: multiplies log t; 1 in theory and practice.

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.KLUCB(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Garivier & Cappé, *The KL-UCB Algorithm for Bounded Stochastic Bandits and Beyond*, COLT 2011 (recalled, not
    checked against the paper).
    """

    alpha: ArrayLike = number(default=1.0)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Observed:
        return Observed.start(num_arms, runs_shape)

    def act(self, state: Observed, round: Round) -> tuple[jax.Array, Any, Observed]:
        level = self.alpha * jnp.log(round.time) / state.number()
        lowest = lowest_mean_logit(state.mean(), state.mean_reward(), level)
        return uniform_over_smallest(round.restrict(jnp.where(state.counts > 0, lowest, -jnp.inf))), (), state

    def observe(self, state: Observed, observation: Observation) -> Observed:
        return state.add(observation)


STEPS = {jnp.dtype(jnp.float32): 3, jnp.dtype(jnp.float64): 4}  # of Halley's method: all digits of either


def lowest_mean_logit(mean: jax.Array, rest: jax.Array, level: ArrayLike) -> jax.Array:
    """log(q/(1 - q)) of the smallest q with kl(mean, q) <= level, for ``mean`` in [0, 1], ``rest`` = 1 - mean, ``level`` >= 0.

    The logit keeps the digits of q next to 0 and next to 1, where float32 cannot distinguish two values of q. With
    u = log(mean/q) the condition is mean·u - rest·log(1 + mean(1 - e^{-u})/rest) = level. The left side is convex in u, its
    slope is gone/(rest + gone) with gone = mean - q, and it is solved by Halley's method from the right of the root. It starts at
    the smaller of two upper bounds: one from kl >= (mean - q)²/2v with v the largest variance between q and mean, where q is at
    least mean - √(level/2) (Pinsker's inequality), one from 1 - q <= 1. The lowest number stands for q = 0, the solution at mean 0.
    """
    limits = jnp.finfo(mean.dtype)
    safe_mean, safe_rest = jnp.maximum(mean, limits.tiny), jnp.maximum(rest, limits.tiny)
    reach = jnp.sqrt(0.5 * level)
    above_half = jnp.where(mean - reach > 0.5, (mean - reach) * (rest + reach), 0.25)
    variance = jnp.where(mean < 0.5, mean * rest, above_half)
    relative = jnp.sqrt(2 * variance * level) / safe_mean  # at most this part of the mean can be gone
    near = -jnp.log1p(-jnp.minimum(relative, 1 - limits.eps))
    far = (level - rest * jnp.log(safe_rest)) / safe_mean
    log_ratio = jnp.where(relative < 1, jnp.minimum(near, far), far)
    for _ in range(STEPS[mean.dtype]):
        log_ratio = jnp.maximum(log_ratio, limits.tiny)
        gone = mean * one_minus_exp(log_ratio)
        excess = mean * log_ratio - rest * log1p_from_zero(gone / safe_rest) - level
        safe_gone = jnp.maximum(gone, limits.tiny)
        newton = excess * (rest + gone) / safe_gone
        # Its product with the second over twice the first derivative; no number only where level is 0 and nothing is left to do.
        bend = 0.5 * (newton / safe_gone) * (rest / jnp.maximum(rest + gone, limits.tiny)) * (mean - gone)
        log_ratio = log_ratio - newton / (1 - jnp.clip(jnp.where(jnp.isnan(bend), 0, bend), -1, 0.5))
    log_ratio = jnp.maximum(log_ratio, 0)
    one_minus_q = jnp.maximum(rest + mean * one_minus_exp(log_ratio), limits.tiny)
    return jnp.where(mean > 0, jnp.log(safe_mean) - log_ratio - jnp.log(one_minus_q), limits.min)
