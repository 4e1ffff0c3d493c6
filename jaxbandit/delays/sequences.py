"""Delays that are known beforehand, one sequence for all runs."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.fields import (
    Numbers,
    is_concrete,
    is_numeric,
    pytree_dataclass,
    show,
    static,
    whole_number,
)
from jaxbandit.delays.base import NEVER, Delays, check_bound, check_recorded, power_of_two, resolve_bound


class KnownSequence(Delays):
    """Base of the models whose delays follow from the round alone; ``long_waits`` above the bound are kept in a side list."""

    long_waits: int | None = None
    shared: bool = True
    oblivious: bool = True
    noisy: bool = False

    @property
    def _long_waits(self) -> int:
        return self.long_waits or 0


@pytree_dataclass
class Bursts(KnownSequence):
    """Feedback is delivered every ``every`` rounds: at the end of rounds every, 2·every, …

    >>> import jaxbandit as jb
    >>> [int(jb.delays.Bursts(3).draw(t=t, arm=0, loss=0.0, noise=0.0)) for t in range(1, 7)]
    [2, 1, 0, 2, 1, 0]
    """

    every: ArrayLike = whole_number(low=1)
    bound: int = static(default=None)
    may_lose: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        resolve_bound(self, np.asarray(self.every) - 1 if is_concrete(self.every) and is_numeric(self.every) else self.every)

    def check(self, num_arms: int) -> None:
        check_bound(self, self.longest(), "every")

    def longest(self) -> ArrayLike:
        return jnp.asarray(self.every) - 1

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        return jnp.mod(-jnp.asarray(t, jnp.int32), jnp.asarray(self.every, jnp.int32))


@pytree_dataclass
class Outlier(KnownSequence):
    """The first ``count`` rounds have delay ``first``, all others ``delay``.

    They have a small :math:`\\sigma_{max}` and a large :math:`d_{max}`.

    The outliers are kept in a side list, so ``first`` may be anything below 2³⁰; only ``delay`` sizes the ring.

    >>> import jaxbandit as jb
    >>> law = jb.delays.Outlier(first=1_000_000)
    >>> int(law.draw(t=1, arm=0, loss=0.0, noise=0.0)), int(law.draw(t=2, arm=0, loss=0.0, noise=0.0))
    (1000000, 0)
    """

    first: ArrayLike = whole_number()
    delay: ArrayLike = whole_number(default=0)
    count: ArrayLike = whole_number(default=1)
    bound: int = static(default=None)
    long_waits: int = static(default=None)  # the number of delays above the bound: the size of the side list
    may_lose: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        resolve_bound(self, self.delay)
        if self.long_waits is None and is_concrete(self.count) and is_numeric(self.count) and np.all(np.asarray(self.count) >= 0):
            object.__setattr__(self, "long_waits", power_of_two(int(np.max(np.asarray(self.count)))))

    def check(self, num_arms: int) -> None:
        if self.long_waits is None or (is_concrete(self.count) and np.any(np.asarray(self.count) > self.long_waits)):
            raise ValueError(
                f"delays.Outlier(count={show(self.count)}, long_waits={self.long_waits}): long_waits is the most outliers there can be"
            )
        check_bound(self, self.delay, "delay")

    def longest(self) -> ArrayLike:
        return jnp.maximum(jnp.where(jnp.asarray(self.count) > 0, jnp.asarray(self.first), 0), jnp.asarray(self.delay))

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        return jnp.where(jnp.asarray(t) <= self.count, jnp.asarray(self.first, jnp.int32), jnp.asarray(self.delay, jnp.int32))


@pytree_dataclass
class Trace(KnownSequence):
    """A recorded sequence: round t has delay ``delays[t - 1]`` in every run.

    The ring is made for all but the 64 longest delays; those are kept in a side list.

    >>> import jaxbandit as jb
    >>> int(jb.delays.Trace([0, 3, 1]).draw(t=2, arm=0, loss=0.0, noise=0.0))
    3
    """

    delays: Numbers = whole_number(high=int(NEVER), axes="T")
    bound: int = static(default=None)
    long_waits: int = static(default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (
            self.bound is None
            and is_concrete(self.delays)
            and is_numeric(self.delays)
            and np.ndim(self.delays) == 1
            and np.size(self.delays)
        ):
            delays = np.sort(np.where(np.asarray(self.delays) == NEVER, 0, self.delays))
            resolve_bound(self, delays[max(len(delays) - 65, 0)])
        if self.long_waits is None and self.bound is not None and is_concrete(self.delays):
            delays = np.asarray(self.delays)
            object.__setattr__(self, "long_waits", power_of_two(int(((delays > self.bound) & (delays != NEVER)).sum())))

    @property
    def may_lose(self) -> bool:
        return not is_concrete(self.delays) or bool(np.any(np.asarray(self.delays) == NEVER))

    @property
    def length(self) -> int:
        return np.shape(self.delays)[0]

    def check(self, num_arms: int) -> None:
        check_recorded(self, self.delays)
        check_bound(self, field="delays")
        if not is_concrete(self.delays):
            return
        delays = np.asarray(self.delays)
        long = int(((delays > self.bound) & (delays != NEVER)).sum())
        if long > self.long_waits:
            raise ValueError(
                f"delays.Trace(bound={self.bound}, long_waits={self.long_waits}): {long} delays are above the bound; raise one of the two"
            )

    def longest(self) -> ArrayLike:
        return jnp.where(jnp.asarray(self.delays) == NEVER, jnp.inf, jnp.asarray(self.delays)).max(0)

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        return jnp.asarray(self.delays, jnp.int32)[t - 1]
