"""Losses that are known beforehand."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._core.arms import pick
from jaxbandit._core.fields import Numbers, number, pytree_dataclass
from jaxbandit.losses.base import DifferentiableLosses


@pytree_dataclass
class Table(DifferentiableLosses):
    """Deterministic losses, chosen beforehand: an oblivious adversary.

    Args:
      losses: ``[T, K]`` in [0, 1]; round t uses row t - 1.

    >>> import jaxbandit as jb
    >>> jb.losses.Table([[0.0, 1.0], [1.0, 0.0]]).expected(t=2)
    Array([1., 0.], dtype=float32)
    """

    losses: Numbers = number(high=1.0, axes="TK")
    value_fields: ClassVar[tuple[str, ...]] = ("losses",)

    @property
    def num_arms(self) -> int:
        return np.shape(self.losses)[1]

    @property
    def length(self) -> int:
        return np.shape(self.losses)[0]

    def expected(self, t: jax.Array) -> jax.Array:
        return jnp.asarray(self.losses)[t - 1]

    def second_moment(self, t: jax.Array) -> jax.Array:
        return self.expected(t) ** 2

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return pick(self.expected(t), jnp.asarray(arm))
