"""Optimism: play the arm whose mean might be the best, judged by the plays that have been observed."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbandit.arms import least, sums
from jaxbandit.learners.base import Observation
from jaxbandit.pytrees import float_dtype, pytree_dataclass


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
        term = observation.at_arm(observation.loss, num_arms) + self.error
        losses = self.losses + term
        seen = observation.at_arm(jnp.ones_like(observation.arm), num_arms)
        return Observed(self.counts + seen, losses, term - (losses - self.losses))

    def number(self) -> jax.Array:
        """The counts as floats, 1 where there are none, to divide by; ``[K, ...]``."""
        return jnp.maximum(self.counts, 1).astype(self.losses.dtype)

    def mean(self) -> jax.Array:
        """Mean observed loss, 0 where there is none; ``[K, ...]``."""
        return (self.losses + self.error) / self.number()


def uniform_over_smallest(values: jax.Array) -> jax.Array:
    """Equal probabilities on the arms with the smallest value, so that ties break at random; ``[K, ...]``."""
    smallest = (values == least(values)).astype(values.dtype)
    return smallest / sums(smallest)[0]


@pytree_dataclass
class DelayedUCB1:
    """UCB1 on the feedback that has arrived.

    .. math:: I_t \\in \\arg\\max_i \\; 1 - \\bar\\ell_i + \\sqrt{\\alpha \\log t / S_i}

    with :math:`S_i` the observed plays of arm i and :math:`\\bar\\ell_i` their mean loss. Unobserved arms come first, and
    ties break at random: otherwise the first arm would be played until its first feedback arrives.

    Args:
      alpha: the width of the bonus, 2 in the paper.

    >>> import jax, jaxbandit as jb
    >>> from jaxbandit.learners.ucb import DelayedUCB1
    >>> jb.simulate(DelayedUCB1(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8,
    ...             key=jax.random.key(0)).regret[-1].shape
    (8,)

    Reference: Joulani, György & Szepesvári, *Online Learning under Delayed Feedback*, ICML 2013.
    """

    alpha: ArrayLike = 2.0

    def init(self, num_arms, runs_shape):
        return Observed.start(num_arms, runs_shape)

    def act(self, state, round):
        bonus = jnp.sqrt(self.alpha * jnp.log(round.time) / state.number())
        lower = jnp.where(state.counts > 0, state.mean() - bonus, -jnp.inf)
        return uniform_over_smallest(lower), (), state

    def observe(self, state, observation):
        return state.add(observation)


@pytree_dataclass
class KLUCB:
    """KL-UCB for losses in [0, 1], on the feedback that has arrived.

    .. math:: I_t \\in \\arg\\max_i \\; \\max\\{q : S_i\\, \\mathrm{kl}(1 - \\bar\\ell_i, q) \\le \\alpha \\log t\\}

    with kl the divergence of two coins, :math:`S_i` the observed plays of arm i and :math:`\\bar\\ell_i` their mean loss.
    Unobserved arms come first; ties break at random.

    Args:
      alpha: multiplies log t; 1 in theory and practice.

    >>> import jax, jaxbandit as jb
    >>> from jaxbandit.learners.ucb import KLUCB
    >>> jb.simulate(KLUCB(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8,
    ...             key=jax.random.key(0)).regret[-1].shape
    (8,)

    Reference: Garivier & Cappé, *The KL-UCB Algorithm for Bounded Stochastic Bandits and Beyond*, COLT 2011 (recalled, not
    checked against the paper).
    """

    alpha: ArrayLike = 1.0

    def init(self, num_arms, runs_shape):
        return Observed.start(num_arms, runs_shape)

    def act(self, state, round):
        reward = jnp.clip(1 - state.mean(), 0, 1)
        index = reward + divergence_radius(reward, self.alpha * jnp.log(round.time) / state.number())
        return uniform_over_smallest(jnp.where(state.counts > 0, -index, -jnp.inf)), (), state

    def observe(self, state, observation):
        return state.add(observation)


NEWTON_STEPS = 5  # to the last digits of float64; float32 has them after 4


def divergence_radius(mean: jax.Array, level: jax.Array) -> jax.Array:
    """The largest r with kl(mean, mean + r) <= level, for ``mean`` in [0, 1] and ``level`` >= 0.

    The divergence is convex in r, so Newton's method from the right of the root never crosses it. It starts at the least of
    three upper bounds: kl >= r²/2v with v the largest variance between mean and 1 (Pinsker's inequality up to mean 1/2),
    kl >= r²/2(mean + r), and what the term of 1 - mean alone allows.
    """
    tiny, eps = jnp.finfo(mean.dtype).tiny, jnp.finfo(mean.dtype).eps
    rest = jnp.maximum(1 - mean, eps)
    hit = jnp.maximum(mean, tiny)  # mean·log(1 + r/mean) is 0 in the limit of mean 0
    room = (level - mean * jnp.log(hit)) / rest
    variance = jnp.maximum(mean, 0.5) * jnp.minimum(rest, 0.5)
    radius = jnp.minimum(jnp.sqrt(2 * variance * level), level + jnp.sqrt(level * (level + 2 * mean)))
    radius = jnp.minimum(radius, -rest * jnp.expm1(-room))
    for _ in range(NEWTON_STEPS):
        # Through log1p the terms of first order cancel well for small r; r stays short of 1 - mean, where kl is infinite.
        radius = jnp.clip(radius, tiny, rest * (1 - eps))
        excess = -mean * jnp.log1p(radius / hit) - rest * jnp.log1p(-radius / rest) - level
        radius = radius - excess * ((mean + radius) * (rest - radius) / radius)
    return jnp.where(mean < 1, jnp.clip(radius, 0, rest), 0)
