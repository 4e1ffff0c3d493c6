"""One delay for all observations that arrive."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbandit._core.fields import (
    number,
    pytree_dataclass,
    static,
    whole_number,
)
from jaxbandit.delays.base import NEVER, Delays, check_bound, resolve_bound


class OneDelay(Delays):
    """Base of the delay models with a field ``delay``: the delay of every observation that arrives."""

    delay: Any
    oblivious: bool = True
    _roomy: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        resolve_bound(self, self.delay)

    def fixed_age(self) -> jax.Array:
        return jnp.asarray(self.delay, jnp.int32)

    def check(self, num_arms: int) -> None:
        check_bound(self, self.delay, "delay")


@pytree_dataclass
class Fixed(OneDelay):
    """The same delay in every round. At most one observation arrives per round.

    >>> import jaxbandit as jb
    >>> jb.delays.Fixed(10).bound
    16
    """

    delay: ArrayLike = whole_number()
    bound: int = static(default=None)
    shared: ClassVar[bool] = True
    noisy: ClassVar[bool] = False
    may_lose: ClassVar[bool] = False

    def longest(self) -> ArrayLike:
        return self.delay

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        return jnp.asarray(self.delay, jnp.int32)


@pytree_dataclass
class PacketLoss(OneDelay):
    """Feedback arrives after ``delay`` rounds with the given probability, else never.

    >>> import jaxbandit as jb
    >>> jb.delays.PacketLoss(0.7).draw(t=1, arm=0, loss=0.0, noise=0.9) == jb.delays.NEVER
    Array(True, dtype=bool)
    """

    probability: ArrayLike = number(high=1.0)
    delay: ArrayLike = whole_number(default=0)
    bound: int = static(default=None)
    shared: bool = static(default=False)

    def longest(self) -> ArrayLike:
        return jnp.where(jnp.asarray(self.probability) < 1, jnp.inf, jnp.asarray(self.delay))

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        return jnp.where(jnp.asarray(noise) < self.probability, jnp.asarray(self.delay, jnp.int32), NEVER)
