"""Delays as they were recorded, drawn again; and delays that depend on the loss."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.fields import Numbers, is_concrete, is_numeric, named, number, pytree_dataclass, static, whole_number
from jaxbandit._core.ring import read_row
from jaxbandit.delays.base import NEVER, Composed, Delays, check_bound, check_recorded, resolve_bound


@pytree_dataclass
class Empirical(Delays):
    """Delays resampled uniformly from recorded ones.

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
        return jnp.where(jnp.asarray(self.delays) == NEVER, jnp.inf, jnp.asarray(self.delays)).max(0)

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        delays, noise = jnp.asarray(self.delays, jnp.int32), jnp.asarray(noise)
        count = delays.shape[0]
        return delays[jnp.minimum(jnp.floor(noise * count).astype(jnp.int32), count - 1)]


@pytree_dataclass
class EmpiricalByArm(Empirical):
    """Recorded delays by arm: arm i has delays resampled uniformly from ``delays[i]``.

    :class:`ArmDependent` with an :class:`Empirical` for each arm, in one table.

    >>> import jaxbandit as jb
    >>> int(jb.delays.EmpiricalByArm([[0, 3], [5, 9]]).draw(t=1, arm=1, loss=0.0, noise=0.6))
    9
    """

    delays: Numbers = whole_number(high=int(NEVER), axes="KN")
    oblivious: ClassVar[bool] = False

    @property
    def num_arms(self) -> int | None:
        return np.shape(self.delays)[0]

    def check(self, num_arms: int) -> None:
        if np.shape(self.delays)[0] != num_arms:
            raise ValueError(
                f"delays.{named(self, 'delays')}: {np.shape(self.delays)[0]} rows for {num_arms} arms; give one row for each arm"
            )
        if self.shared:
            raise ValueError(
                "delays.EmpiricalByArm(shared=True): these delays depend on the arm, and runs choose different arms; leave shared out"
            )
        super().check(num_arms)

    def longest(self) -> ArrayLike:
        return jnp.asarray(super().longest()).max(0)

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        delays, noise = jnp.asarray(self.delays, jnp.int32), jnp.asarray(noise)
        num_arms, count = delays.shape[:2]
        place = arm * count + jnp.minimum(jnp.floor(noise * count).astype(jnp.int32), count - 1)
        if delays.ndim == 2:
            return delays.reshape(-1)[place]
        return read_row(delays.reshape(num_arms * count, -1), place)  # each run has a table of its own


@pytree_dataclass
class LossDependent(Composed):
    """Reward-dependent delays: a conversion is observed when it happens, its absence when the window closes.

    An action with a loss of at least ``threshold`` is delayed as ``no_conversion`` specifies, any other as ``conversion`` does.
    Either may be a LossDependent with another threshold, an :class:`ArmDependent` or an :class:`EmpiricalByArm`.

    Args:
      no_conversion: the delay model of actions with loss 1.
      conversion: the delay model of actions with loss 0.
      threshold: the smallest loss that counts as no conversion, between 0 and 1.

    >>> import jaxbandit as jb
    >>> law = jb.delays.LossDependent(no_conversion=jb.delays.Fixed(100), conversion=jb.delays.Fixed(3))
    >>> law.bound, int(law.draw(t=1, arm=0, loss=1.0, noise=0.5)), int(law.draw(t=1, arm=0, loss=0.0, noise=0.5))
    (128, 100, 3)
    """

    no_conversion: Delays
    conversion: Delays
    threshold: ArrayLike = number(default=0.5, high=1.0)

    def parts(self) -> dict[str, Any]:
        return {"no_conversion": self.no_conversion, "conversion": self.conversion}

    def prepare(self) -> "LossDependent":
        return LossDependent(self.no_conversion.prepare(), self.conversion.prepare(), self.threshold)

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        without, with_one = (law.draw(t, arm, loss, noise) for law in (self.no_conversion, self.conversion))
        return jnp.where(jnp.asarray(loss) >= self.threshold, without, with_one)


@pytree_dataclass
class DelayAsPayoff(Delays):
    """Delay as payoff: the delay is proportional to the loss.

    An action with loss :math:`\\ell` has delay round(:math:`D\\ell`).

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
