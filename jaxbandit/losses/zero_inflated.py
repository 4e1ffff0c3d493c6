"""Rewards that are mostly zero."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._core.arms import pick
from jaxbandit._core.fields import MOST_ROUNDS, Numbers, float_dtype, is_concrete, named, number, pytree_dataclass, whole_number
from jaxbandit._core.ring import read_row
from jaxbandit.losses.base import DifferentiableLosses


@pytree_dataclass
class ZeroInflated(DifferentiableLosses):
    """Zero-inflated rewards, such as revenue: a conversion with probability ``rates[phase, arm]``, then one of ``values[arm]``.

    The loss is 1 without a conversion, else 1 minus one of the recorded values of the arm, each with the same probability. The rates
    are piecewise constant in time.

    Args:
      rates: ``[P, K]`` conversion rates of each phase.
      starts: ``[P]`` first round of each phase, ascending from 1.
      values: ``[K, N]`` rewards of conversions in [0, 1].

    >>> import jaxbandit as jb
    >>> jb.losses.ZeroInflated([[0.5, 0.25]], starts=[1], values=[[0.5, 0.5], [0.75, 0.25]]).expected(t=1)
    Array([0.75 , 0.875], dtype=float32)
    """

    rates: Numbers = number(high=1.0, axes="PK")
    starts: Numbers = whole_number(low=1, high=MOST_ROUNDS, axes="P")
    values: Numbers = number(high=1.0, axes="KN")

    @property
    def num_arms(self) -> int:
        return np.shape(self.rates)[1]

    def check(self) -> None:
        if is_concrete(self.starts):
            starts = np.asarray(self.starts, np.float64)
            if starts[0] != 1 or np.any(np.diff(starts, axis=0) <= 0):
                raise ValueError(f"losses.{named(self, 'starts')}: starts must be whole numbers ascending from 1")

    def _rates(self, t: jax.Array) -> jax.Array:
        return jnp.asarray(self.rates, float_dtype())[(jnp.asarray(self.starts) <= t).sum() - 1]

    def expected(self, t: jax.Array) -> jax.Array:
        rates, value = self._rates(t), jnp.asarray(self.values, float_dtype()).mean(1)
        return 1 - rates * value.reshape(*value.shape, *[1] * (rates.ndim - value.ndim))

    def second_moment(self, t: jax.Array) -> jax.Array:
        rates, value = self._rates(t), jnp.asarray(self.values, float_dtype())
        square = ((1 - value) ** 2).mean(1)
        return 1 - rates * (1 - square.reshape(*square.shape, *[1] * (rates.ndim - square.ndim)))

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        noise, values = jnp.asarray(noise), jnp.asarray(self.values, float_dtype())
        rate = pick(self._rates(t), jnp.asarray(arm))
        num_arms, count = values.shape[:2]
        # Below the rate, noise/rate is uniform again and draws the value.
        which = jnp.floor(count * noise / jnp.where(rate > 0, rate, 1)).astype(jnp.int32)
        place = jnp.asarray(arm) * count + jnp.clip(which, 0, count - 1)
        value = values.reshape(-1)[place] if values.ndim == 2 else read_row(values.reshape(num_arms * count, -1), place)
        return jnp.where(noise < rate, 1 - value, 1).astype(values.dtype)
