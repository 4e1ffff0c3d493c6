"""A repeated matrix game: losses of an adaptive opponent."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.arms import constant_min, draw, pick, sums
from jaxbandit._core.fields import Numbers, float_dtype, number, pytree_dataclass
from jaxbandit.losses.base import AdaptiveLosses


@pytree_dataclass
class RepeatedGame(AdaptiveLosses):
    r"""A repeated zero-sum game against Hedge: an adaptive adversary that learns from the arms of the run.

    The learner chooses a row, the opponent a column, and the loss is the entry of the matrix. The opponent draws its column from

    .. math:: y_t \propto \exp\Big(\eta \sum_{s<t} M_{a_s, \cdot}\Big)

    so that the mean losses are :math:`m_t = M y_t`. Regret is against the best fixed row on the realised :math:`y_1, \dots, y_T`: the opponent
    would have learnt from another row differently, which this regret does not count.

    Args:
      matrix: ``[K, J]`` losses in [0, 1].
      rate: :math:`\eta` of the opponent; 0 for uniform columns.

    >>> import jaxbandit as jb
    >>> matching_pennies = jb.losses.RepeatedGame([[1.0, 0.0], [0.0, 1.0]], rate=0.1)
    >>> jb.simulate(jb.TsallisINF(), matching_pennies, jb.delays.Fixed(0), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)
    """

    matrix: Numbers = number(high=1.0, axes="KJ")
    rate: ArrayLike = number(default=0.1)

    @property
    def num_arms(self) -> int:
        return np.shape(self.matrix)[0]

    def init(self, runs_shape: tuple[int, ...]) -> jax.Array:
        """What the opponent would have gained with each column, ``[J, ...]``."""
        return jnp.zeros((np.shape(self.matrix)[1], *runs_shape), float_dtype())

    def update(self, state: jax.Array, t: jax.Array, arm: jax.Array) -> jax.Array:
        gained = state + self._row(arm)
        return gained + constant_min(-gained)  # only differences matter, and float32 has few digits

    def columns(self, state: jax.Array) -> jax.Array:
        """The opponent's probabilities ``[J, ...]``."""
        weights = jnp.exp(self.rate * (state + constant_min(-state)))
        return weights / sums(weights)[0]

    def expected_after(self, state: jax.Array, t: jax.Array) -> jax.Array:
        matrix = jnp.asarray(self.matrix)
        products = matrix.T.reshape(*matrix.T.shape, *[1] * (state.ndim - 1)) * self.columns(state)[:, None]  # [J, K, ...]
        return sums(products)[0]

    def sample_after(self, state: jax.Array, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return pick(self._row(arm), draw(self.columns(state), noise))

    def _row(self, arm: jax.Array) -> jax.Array:
        """The losses of a row, ``[J, ...]``."""
        return jax.vmap(pick, (1, None))(jnp.asarray(self.matrix), jnp.asarray(arm))
