"""Many loss tables in one simulation."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.arms import pick
from jaxbandit._core.fields import Numbers, number, pytree_dataclass, whole_number
from jaxbandit.losses import Losses


@pytree_dataclass
class Tables(Losses):
    """Deterministic losses with one of N tables for each run.

    Args:
      losses: ``[T, N, K]`` in [0, 1]; round t of table n is ``losses[t - 1, n]``.
      which: ``[runs]``, the table of each run.
    """

    losses: Numbers = number(high=1.0, axes="TNK")
    which: ArrayLike = whole_number()

    @property
    def num_arms(self) -> int:
        return np.shape(self.losses)[2]

    @property
    def length(self) -> int:
        return np.shape(self.losses)[0]

    def expected(self, t: jax.Array) -> jax.Array:
        return jnp.moveaxis(jnp.asarray(self.losses)[t - 1][self.which], -1, 0)

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return pick(self.expected(t), jnp.asarray(arm))
