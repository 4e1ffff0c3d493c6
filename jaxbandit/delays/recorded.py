"""Delays as they were recorded, drawn again; and delays that depend on the loss."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit.delays.base import NEVER, Composed, Delays, check_bound, check_recorded, resolve_bound
from jaxbandit.pytrees import Numbers, is_concrete, is_numeric, number, pytree_dataclass, static, whole_number


@pytree_dataclass
class Empirical(Delays):
    """Each play waits as long as one of the recorded plays, any of them with the same probability.

    >>> import jaxbandit as jb
    >>> int(jb.delays.Empirical([0, 3, 3, 7]).draw(t=1, arm=0, loss=0.0, noise=0.6))
    3
    """

    delays: Numbers = whole_number(high=int(NEVER), axes="N")
    bound: int = static(default=None)
    shared: bool = static(default=False)
    oblivious: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if is_concrete(self.delays) and is_numeric(self.delays) and np.size(self.delays):
            resolve_bound(self, np.where(np.asarray(self.delays) == NEVER, 0, self.delays))

    @property
    def may_lose(self) -> bool:
        return not is_concrete(self.delays) or bool(np.any(np.asarray(self.delays) == NEVER))

    def check(self, num_arms: int) -> None:
        check_recorded(self, self.delays)
        if is_concrete(self.delays):
            check_bound(self, np.where(np.asarray(self.delays) == NEVER, 0, self.delays), "delays")

    def longest(self) -> ArrayLike:
        return jnp.where(jnp.asarray(self.delays) == NEVER, jnp.inf, jnp.asarray(self.delays)).max()

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        delays, noise = jnp.asarray(self.delays, jnp.int32), jnp.asarray(noise)
        count = delays.shape[0]
        return delays[jnp.minimum(jnp.floor(noise * count).astype(jnp.int32), count - 1)]


@pytree_dataclass
class LossDependent(Composed):
    """The delay depends on the loss: a purchase is reported when it happens, that there was none when the window closes.

    A play with a loss of at least ``threshold`` waits as ``law_if_one`` says, any other as ``law_if_zero``. Either may be a
    LossDependent again, with another threshold, or an :class:`ArmDependent`.

    Args:
      law_if_one: the law of plays with loss 1 (no purchase).
      law_if_zero: the law of plays with loss 0 (a purchase).
      threshold: from which loss on ``law_if_one`` holds, between 0 and 1.

    >>> import jaxbandit as jb
    >>> law = jb.delays.LossDependent(law_if_one=jb.delays.Fixed(100), law_if_zero=jb.delays.Fixed(3))
    >>> law.bound, int(law.draw(t=1, arm=0, loss=1.0, noise=0.5)), int(law.draw(t=1, arm=0, loss=0.0, noise=0.5))
    (128, 100, 3)
    """

    law_if_one: Delays
    law_if_zero: Delays
    threshold: ArrayLike = number(default=0.5, high=1.0)

    def parts(self) -> dict[str, Any]:
        return {"law_if_one": self.law_if_one, "law_if_zero": self.law_if_zero}

    def prepare(self) -> "LossDependent":
        return LossDependent(self.law_if_one.prepare(), self.law_if_zero.prepare(), self.threshold)

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        if_one, if_zero = (law.draw(t, arm, loss, noise) for law in (self.law_if_one, self.law_if_zero))
        return jnp.where(jnp.asarray(loss) >= self.threshold, if_one, if_zero)


@pytree_dataclass
class DelayAsPayoff(Delays):
    """The loss is the time itself: a play with loss ℓ waits round(D·ℓ) rounds, as a job that takes longer costs more.

    Args:
      scale: D, the delay of a loss of 1.

    >>> import jaxbandit as jb
    >>> law = jb.delays.DelayAsPayoff(100)
    >>> law.bound, int(law.draw(t=1, arm=0, loss=0.25, noise=0.5))
    (128, 25)
    """

    scale: ArrayLike = whole_number()
    bound: int = static(default=None)
    noisy: ClassVar[bool] = False
    may_lose: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        resolve_bound(self, self.scale)

    def check(self, num_arms: int) -> None:
        check_bound(self, self.scale, "scale")

    def longest(self) -> ArrayLike:
        return self.scale

    def draw(self, t: ArrayLike, arm: ArrayLike, loss: ArrayLike, noise: ArrayLike) -> jax.Array:
        loss = jnp.asarray(loss)
        return jnp.round(jnp.asarray(self.scale).astype(loss.dtype) * loss).astype(jnp.int32)
