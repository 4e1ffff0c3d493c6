"""Delays that are known when an action is chosen."""

from typing import ClassVar

import jax
from jax.typing import ArrayLike

from jaxbandit._core.fields import pytree_dataclass, show
from jaxbandit.delays.base import Delays, ShowsDelays


@pytree_dataclass
class KnownAtAction(ShowsDelays):
    """Delays that are known at action time: a learner that reads delays is given :math:`d_t` before it chooses the arm of round t.

    The delays are those of ``base``. Learners that do not read delays behave as under ``base``, bit by bit.

    Args:
      base: an oblivious delay model, whose delays depend neither on the arm nor on the loss.

    >>> import jaxbandit as jb
    >>> law = jb.delays.KnownAtAction(jb.delays.Fixed(10))
    >>> jb.simulate(jb.DoublingSkipper(), jb.losses.Bernoulli([0.3, 0.5]), law, rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: the setting of Thune, Cesa-Bianchi & Seldin, *Nonstochastic Multiarmed Bandits with Unrestricted Delays*, NeurIPS 2019.
    """

    base: Delays
    oblivious: ClassVar[bool] = True

    @property
    def bound(self) -> int:
        return self.base.bound if isinstance(self.base, Delays) else 0  # a wrong one is for `check` to report

    @property
    def shared(self) -> bool:
        return self.base.shared

    @property
    def noisy(self) -> bool:
        return self.base.noisy

    @property
    def may_lose(self) -> bool:
        return self.base.may_lose

    @property
    def _long_waits(self) -> int:
        return self.base._long_waits

    @property
    def num_arms(self) -> int | None:
        return self.base.num_arms

    @property
    def length(self) -> int | None:
        return self.base.length

    def check(self, num_arms: int) -> None:
        name = "delays.KnownAtAction"
        if not isinstance(self.base, Delays):
            raise ValueError(f"{name}(base={show(self.base)}): the base must be a delay model such as jb.delays.Fixed(10)")
        if not self.base.oblivious:
            raise ValueError(
                f"{name}(base={type(self.base).__name__}(…)): its delays may depend on the arm or the loss, which are not known before "
                "the action; give an oblivious delay model, such as jb.delays.Geometric(10.0)"
            )
        if self.base._shares() is not None:
            raise ValueError(f"{name}(base={type(self.base).__name__}(…)): losses that arrive in shares have no single delay")

    def longest(self) -> ArrayLike:
        return self.base.longest()

    def prepare(self) -> "KnownAtAction":
        return KnownAtAction(self.base.prepare())

    def fixed_age(self) -> jax.Array | None:
        return self.base.fixed_age()

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        return self.base.draw(t, arm, loss, noise)
