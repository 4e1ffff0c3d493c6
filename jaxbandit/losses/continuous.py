"""Losses anywhere in [0, 1], with means that stay."""

from dataclasses import InitVar
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm

from jaxbandit._core.arms import pick
from jaxbandit._core.fields import Numbers, number, pytree_dataclass
from jaxbandit.losses.base import WithMeans


@pytree_dataclass
class Beta(WithMeans):
    """Beta distributed losses with mean ``means[arm]``: Beta(c·m, c·(1 - m)); small c is nearly Bernoulli.

    Args:
      means: ``[K]`` mean losses in [0, 1]; at 0 and 1 the loss is constant.
      concentration: c > 0, a number or ``[K]``.
      rewards: mean rewards in place of ``means``.

    >>> import jax, jaxbandit as jb
    >>> law = jb.losses.Beta([0.3, 0.5], concentration=4.0)
    >>> bool(0 < law.sample(t=1, arm=0, noise=jax.random.key(0)) < 1)
    True
    """

    means: Numbers = number(default=None, high=1.0, axes="K", instead="rewards")
    concentration: Numbers = number(default=2.0, low=1e-3, axes="K", or_number=True)
    rewards: InitVar[Numbers | None] = None
    needs_key: ClassVar[bool] = True

    def expected(self, t: jax.Array) -> jax.Array:
        return jnp.asarray(self.means)

    def second_moment(self, t: jax.Array) -> jax.Array:
        means = self.expected(t)
        return means**2 + means * (1 - means) / (1 + jnp.asarray(self.concentration, means.dtype))

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        means = self.expected(t)
        mean = pick(means, jnp.asarray(arm))
        concentration = pick(jnp.broadcast_to(jnp.asarray(self.concentration, means.dtype), means.shape), jnp.asarray(arm))
        inside = jnp.clip(mean, 1e-6, 1 - 1e-6)

        def one(key, a, b):
            return jax.random.beta(key, a, b, dtype=means.dtype)

        for _ in range(jnp.ndim(arm)):
            one = jax.vmap(one)
        loss = one(noise, concentration * inside, concentration * (1 - inside))
        return jnp.where((mean <= 0) | (mean >= 1), mean, jnp.clip(loss, 0, 1))


@pytree_dataclass
class ClippedNormal(WithMeans):
    """Normal losses clipped to [0, 1].

    The clipping moves the mean: ``expected`` is the mean of the clipped distribution,
    :math:`1 - \\Phi(\\beta) + m(\\Phi(\\beta) - \\Phi(\\alpha)) - s(\\phi(\\beta) - \\phi(\\alpha))` with
    :math:`\\alpha = -m/s, \\beta = (1 - m)/s`.

    Args:
      means: ``[K]`` means m before clipping.
      deviation: standard deviation s > 0 before clipping, a number or ``[K]``.
      rewards: means of the rewards before clipping, in place of ``means``.

    >>> import jaxbandit as jb
    >>> jb.losses.ClippedNormal([0.0, 0.5], deviation=0.1).expected(t=1).round(4)
    Array([0.0399, 0.5   ], dtype=float32)
    """

    means: Numbers = number(default=None, high=1.0, axes="K", instead="rewards")
    deviation: Numbers = number(default=0.1, low=1e-6, high=100.0, axes="K", or_number=True)
    rewards: InitVar[Numbers | None] = None
    value_fields: ClassVar[tuple[str, ...]] = ("means", "deviation")

    def expected(self, t: jax.Array) -> jax.Array:
        means, deviation = jnp.asarray(self.means), jnp.asarray(self.deviation)
        low, high = -means / deviation, (1 - means) / deviation
        inside = norm.cdf(high) - norm.cdf(low)
        return norm.sf(high) + means * inside - deviation * (norm.pdf(high) - norm.pdf(low))

    def second_moment(self, t: jax.Array) -> jax.Array:
        means, deviation = jnp.asarray(self.means), jnp.asarray(self.deviation)
        low, high = -means / deviation, (1 - means) / deviation
        inside = (means**2 + deviation**2) * (norm.cdf(high) - norm.cdf(low))
        return norm.sf(high) + inside + deviation * (means * norm.pdf(low) - (1 + means) * norm.pdf(high))

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        means = jnp.asarray(self.means)
        deviation = jnp.broadcast_to(jnp.asarray(self.deviation, means.dtype), means.shape)
        quantile = jax.scipy.special.ndtri(jnp.asarray(noise, means.dtype))
        return jnp.clip(pick(means, jnp.asarray(arm)) + pick(deviation, jnp.asarray(arm)) * quantile, 0, 1)
