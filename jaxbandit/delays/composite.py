"""Composite anonymous feedback: losses spread over several rounds."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._core.fields import Numbers, is_concrete, number, pytree_dataclass, show
from jaxbandit.delays.base import Delays

WITHIN = 1e-4  # how far the sum of the shares may be from 1


@pytree_dataclass
class CompositeFeedback(Delays):
    """Composite anonymous feedback: the share ``shares[j]`` of a loss arrives j rounds after the action; only sums per round are observed.

    The observation of round t is :math:`\\sum_j \\text{share}_j\\, \\ell_{t-j}`, not attributed to rounds: composite anonymous feedback. Only
    learners that inherit from ``TakesSums`` support it, such as :class:`jaxbandit.CoLo`. An observation is outstanding until its
    last piece has arrived.

    Args:
      shares: of a loss that arrive after 0, 1, … rounds; they sum to 1.

    >>> import jaxbandit as jb
    >>> jb.delays.CompositeFeedback([0.5, 0.25, 0.25]).longest()
    2
    """

    shares: Numbers = number(high=1.0, axes="M")
    shared: ClassVar[bool] = True
    oblivious: ClassVar[bool] = True
    noisy: ClassVar[bool] = False
    may_lose: ClassVar[bool] = False

    @property
    def bound(self) -> int:
        return max(np.shape(self.shares)[0] - 1, 0) if np.ndim(self.shares) else 0

    def check(self, num_arms: int) -> None:
        if not is_concrete(self.shares):
            return
        totals = np.atleast_1d(np.asarray(self.shares, np.float64).sum(0))  # one, or one for each run
        wrong = totals[np.abs(totals - 1) > WITHIN]
        if wrong.size:
            raise ValueError(
                f"delays.CompositeFeedback(shares={show(self.shares)}): the shares of a loss sum to 1, and these to {show(float(wrong[0]))}"
            )

    def fixed_age(self) -> jax.Array:
        return jnp.asarray(self.bound, jnp.int32)

    def _shares(self) -> jax.Array:
        return jnp.asarray(self.shares)

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        return jnp.asarray(self.bound, jnp.int32)
