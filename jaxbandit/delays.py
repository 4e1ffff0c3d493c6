"""When feedback comes: laws of the delay of each play, in whole rounds.

Feedback of round t arrives at the **end** of round t + d. A law has a static ``bound`` (the longest wait in the ring of
pending plays; the next power of two by default, so that few shapes are compiled) and
``draw(t, arm, loss, noise) -> int32``, where ``noise`` is one uniform number in (0, 1) for each play. :data:`NEVER` is a
delay: the feedback is lost, and the play stays outstanding for ever.

With ``shared=True`` all runs meet one sequence, an oblivious adversary's choice; otherwise each run draws its own. A class
that says ``loses`` may return NEVER; one that says ``oblivious`` promises that ``draw`` looks at neither arm nor loss, so that any delay can be drawn again.
"""

from typing import ClassVar, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit.arms import pick
from jaxbandit.losses import _arrays
from jaxbandit.pytrees import Numbers, as_float, is_concrete, is_numeric, named, pytree_dataclass, show, static, whole

NEVER = np.int32(2**31 - 1)


@runtime_checkable
class Delays(Protocol):
    """What the simulator asks of a delay law."""

    bound: int

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array: ...


def power_of_two(longest: int) -> int:
    """The default bound: the next power of two, 0 for no delay at all."""
    return 0 if longest == 0 else 1 << (int(longest) - 1).bit_length()


def _resolve(owner, longest) -> None:
    """Fill in ``bound`` from a concrete longest delay; what is not a number is left for ``check`` to report."""
    if owner.bound is None and is_concrete(longest) and is_numeric(longest) and np.size(longest):
        number = float(np.max(longest))
        if 0 <= number < 2**30:
            object.__setattr__(owner, "bound", power_of_two(int(np.ceil(number))))


def _check_bound(owner, longest, field: str) -> None:
    name = f"delays.{type(owner).__name__}"
    if owner.bound is None:
        raise ValueError(
            f"{name}(bound=None): {field} is not a concrete number here, so give bound=, the longest delay that can come"
        )
    if not isinstance(owner.bound, int | np.integer) or isinstance(owner.bound, bool) or not 0 <= owner.bound < 2**30:
        raise ValueError(f"{name}(bound={show(owner.bound)}): the bound is a whole number of rounds, 0 or more")
    if longest is not None and np.max(longest) > owner.bound:
        raise ValueError(
            f"delays.{named(owner, field)}: the delay {show(np.max(longest))} is above bound={owner.bound}; raise the bound"
        )


def _check_whole(owner, field: str, least: int = 0, what: str = "a delay") -> None:
    value = getattr(owner, field)
    if not is_concrete(value):
        return
    good = is_numeric(value) and np.size(value) == 1 and not isinstance(value, bool)
    if not (good and value >= least and value == np.floor(value) and value < 2**30):
        raise ValueError(f"delays.{named(owner, field)}: {what} is a whole number of rounds, {least} or more")


def _check_number(owner, field: str, low: float, high: float, what: str, open_low: bool = False) -> None:
    value = getattr(owner, field)
    if not is_concrete(value):
        return
    good = is_numeric(value) and np.size(value) == 1
    if not (good and (value > low if open_low else value >= low) and value <= high and np.isfinite(value)):
        raise ValueError(f"delays.{named(owner, field)}: {what}")


def _concrete(value):
    return np.asarray(value) if is_concrete(value) else None


def _within(delay: jax.Array, bound: int) -> jax.Array:
    """A draw of an unbounded law: above the bound it is lost (compared as floats, before the cast can overflow)."""
    return jnp.where(delay <= bound, jnp.minimum(delay, bound).astype(jnp.int32), NEVER)


@pytree_dataclass
class Fixed:
    """Every play waits ``delay`` rounds. A law with ``age`` delivers at most one play a round, which needs no lists.

    >>> import jaxbandit as jb
    >>> jb.delays.Fixed(10).bound
    16
    """

    delay: ArrayLike = whole()
    bound: int = static(default=None)
    shared: ClassVar[bool] = True
    oblivious: ClassVar[bool] = True

    def __post_init__(self):
        _resolve(self, self.delay)

    @property
    def age(self):
        return self.delay

    def check(self) -> None:
        _check_whole(self, "delay")
        _check_bound(self, _concrete(self.delay), "delay")

    def longest(self):
        return self.delay

    def draw(self, t, arm, loss, noise):
        return jnp.asarray(self.delay, jnp.int32)


@pytree_dataclass
class UniformRandom:
    """Uniform on the whole numbers ``low … high``, both included.

    >>> import jaxbandit as jb
    >>> jb.delays.UniformRandom(0, 20).draw(t=1, arm=0, loss=0.0, noise=0.99)
    Array(20, dtype=int32)
    """

    low: ArrayLike = whole()
    high: ArrayLike = whole()
    bound: int = static(default=None)
    shared: bool = static(default=False)
    oblivious: ClassVar[bool] = True

    def __post_init__(self):
        _resolve(self, self.high)

    def check(self) -> None:
        _check_whole(self, "low")
        _check_whole(self, "high")
        if is_concrete((self.low, self.high)) and np.any(np.asarray(self.low) > np.asarray(self.high)):
            raise ValueError(f"delays.UniformRandom(low={show(self.low)}, high={show(self.high)}): low must not be above high")
        _check_bound(self, _concrete(self.high), "high")

    def longest(self):
        return self.high

    def draw(self, t, arm, loss, noise):
        low, high = jnp.asarray(self.low, jnp.int32), jnp.asarray(self.high, jnp.int32)
        noise = jnp.asarray(noise)
        return jnp.minimum(low + jnp.floor(noise * (high - low + 1).astype(noise.dtype)).astype(jnp.int32), high)


@pytree_dataclass
class Geometric:
    """Geometric on 0, 1, 2, …: :math:`P(d \\ge n) = (m/(1+m))^n` with mean m. Draws above ``bound`` never arrive.

    >>> import jaxbandit as jb
    >>> jb.delays.Geometric(mean=10.0, bound=127).draw(t=1, arm=0, loss=0.0, noise=0.5)
    Array(7, dtype=int32)
    """

    mean: ArrayLike
    bound: int = static()
    shared: bool = static(default=False)
    loses: ClassVar[bool] = True  # draws above the bound
    oblivious: ClassVar[bool] = True

    def check(self) -> None:
        _check_number(self, "mean", 0, np.inf, "the mean delay is a number of rounds, 0 or more")
        _check_bound(self, None, "mean")

    def longest(self):
        return self.bound

    def draw(self, t, arm, loss, noise):
        noise = jnp.asarray(noise)
        mean = jnp.asarray(self.mean, noise.dtype)
        rate = jnp.log1p(1 / jnp.maximum(mean, jnp.finfo(noise.dtype).tiny))
        return _within(jnp.where(mean > 0, jnp.floor(-jnp.log1p(-noise) / rate), 0), self.bound)


@pytree_dataclass
class Poisson:
    """Poisson with the given mean. Draws above ``bound`` never arrive.

    >>> import jaxbandit as jb
    >>> jb.delays.Poisson(mean=3.0, bound=31).draw(t=1, arm=0, loss=0.0, noise=0.5)
    Array(3, dtype=int32)
    """

    mean: ArrayLike
    bound: int = static()
    shared: bool = static(default=False)
    loses: ClassVar[bool] = True  # draws above the bound
    oblivious: ClassVar[bool] = True

    def check(self) -> None:
        _check_number(self, "mean", 0, np.inf, "the mean delay is a number of rounds, 0 or more")
        _check_bound(self, None, "mean")

    def longest(self):
        return self.bound

    def prepare(self) -> "_Tabulated":
        """The distribution function, computed once before the rounds."""
        counts = jnp.arange(self.bound + 1)
        mean = as_float(self.mean)
        # P(d <= n) is the regularised upper incomplete gamma function Q(n + 1, mean).
        return _Tabulated(jax.scipy.special.gammaincc((counts + 1).astype(mean.dtype), mean), self.bound, self.shared)

    def draw(self, t, arm, loss, noise):
        return self.prepare().draw(t, arm, loss, noise)


@pytree_dataclass
class _Tabulated:
    """Any law on 0 … bound by its distribution function; what is left above it never arrives."""

    cumulative: jax.Array  # [bound + 1] P(d <= n)
    bound: int = static()
    shared: bool = static(default=False)
    loses: ClassVar[bool] = True  # draws above the bound
    oblivious: ClassVar[bool] = True

    def draw(self, t, arm, loss, noise):
        index = jnp.searchsorted(self.cumulative, jnp.asarray(noise, self.cumulative.dtype), side="right").astype(jnp.int32)
        return jnp.where(index <= self.bound, index, NEVER)


@pytree_dataclass
class Pareto:
    """Heavy tails: Pareto-I, :math:`P(d > n) = n^{-\\alpha}` for n = 1, 2, … Draws above ``bound`` never arrive.

    >>> import jaxbandit as jb
    >>> jb.delays.Pareto(alpha=1.0, bound=1023).draw(t=1, arm=0, loss=0.0, noise=0.75)
    Array(4, dtype=int32)
    """

    alpha: ArrayLike
    bound: int = static()
    shared: bool = static(default=False)
    loses: ClassVar[bool] = True  # draws above the bound
    oblivious: ClassVar[bool] = True

    def check(self) -> None:
        _check_number(self, "alpha", 0, np.inf, "the tail index alpha is a number above 0", open_low=True)
        _check_bound(self, None, "alpha")

    def longest(self):
        return self.bound

    def draw(self, t, arm, loss, noise):
        noise = jnp.asarray(noise)
        size = jnp.exp(-jnp.log1p(-noise) / jnp.asarray(self.alpha, noise.dtype))
        return _within(jnp.maximum(jnp.ceil(size), 1), self.bound)


@pytree_dataclass
class PacketLoss:
    """Feedback arrives after ``delay`` rounds with the given probability, else never.

    >>> import jaxbandit as jb
    >>> jb.delays.PacketLoss(0.7).draw(t=1, arm=0, loss=0.0, noise=0.9) == jb.delays.NEVER
    Array(True, dtype=bool)
    """

    probability: ArrayLike
    delay: ArrayLike = whole(default=0)
    bound: int = static(default=None)
    shared: bool = static(default=False)
    oblivious: ClassVar[bool] = True

    def __post_init__(self):
        _resolve(self, self.delay)

    loses: ClassVar[bool] = True

    @property
    def age(self):
        return self.delay

    def check(self) -> None:
        _check_number(self, "probability", 0, 1, "the probability of arriving lies between 0 and 1")
        _check_whole(self, "delay")
        _check_bound(self, _concrete(self.delay), "delay")

    def longest(self):
        return jnp.where(jnp.asarray(self.probability) < 1, jnp.inf, jnp.asarray(self.delay))

    def draw(self, t, arm, loss, noise):
        return jnp.where(jnp.asarray(noise) < self.probability, jnp.asarray(self.delay, jnp.int32), NEVER)


@pytree_dataclass
class Bursts:
    """Everything is delivered every ``every`` rounds: at the end of rounds every, 2·every, …

    >>> import jaxbandit as jb
    >>> [int(jb.delays.Bursts(3).draw(t=t, arm=0, loss=0.0, noise=0.0)) for t in range(1, 7)]
    [2, 1, 0, 2, 1, 0]
    """

    every: ArrayLike = whole()
    bound: int = static(default=None)
    shared: ClassVar[bool] = True
    oblivious: ClassVar[bool] = True

    def __post_init__(self):
        _resolve(self, np.asarray(self.every) - 1 if is_concrete(self.every) and is_numeric(self.every) else self.every)

    def check(self) -> None:
        _check_whole(self, "every", 1, "the time between deliveries")
        every = _concrete(self.every)
        _check_bound(self, None if every is None else every - 1, "every")

    def longest(self):
        return jnp.asarray(self.every) - 1

    def draw(self, t, arm, loss, noise):
        return jnp.mod(-jnp.asarray(t, jnp.int32), jnp.asarray(self.every, jnp.int32))


@pytree_dataclass
class Outlier:
    """The first ``count`` plays wait ``first`` rounds, all others ``delay``: few outliers, σ_max small, d_max huge.

    The outliers wait in a side list, so ``first`` may be anything below 2³⁰; only ``delay`` sizes the ring.

    >>> import jaxbandit as jb
    >>> law = jb.delays.Outlier(first=1_000_000)
    >>> int(law.draw(t=1, arm=0, loss=0.0, noise=0.0)), int(law.draw(t=2, arm=0, loss=0.0, noise=0.0))
    (1000000, 0)
    """

    first: ArrayLike = whole()
    delay: ArrayLike = whole(default=0)
    count: ArrayLike = whole(default=1)
    bound: int = static(default=None)
    long_waits: int = static(default=None)  # how many plays can wait longer than the bound: the size of the side list
    shared: ClassVar[bool] = True
    oblivious: ClassVar[bool] = True

    def __post_init__(self):
        _resolve(self, self.delay)
        if self.long_waits is None and is_concrete(self.count) and is_numeric(self.count) and np.all(np.asarray(self.count) >= 0):
            object.__setattr__(self, "long_waits", power_of_two(int(np.max(np.asarray(self.count)))))

    def check(self) -> None:
        _check_whole(self, "count", 0, "the number of outliers")
        if self.long_waits is None or (is_concrete(self.count) and np.any(np.asarray(self.count) > self.long_waits)):
            raise ValueError(
                f"delays.Outlier(count={show(self.count)}, long_waits={self.long_waits}): long_waits is the most outliers there can be"
            )
        _check_whole(self, "first")
        _check_whole(self, "delay")
        _check_bound(self, _concrete(self.delay), "delay")

    def longest(self):
        return jnp.maximum(jnp.where(jnp.asarray(self.count) > 0, jnp.asarray(self.first), 0), jnp.asarray(self.delay))

    def draw(self, t, arm, loss, noise):
        return jnp.where(jnp.asarray(t) <= self.count, jnp.asarray(self.first, jnp.int32), jnp.asarray(self.delay, jnp.int32))


@pytree_dataclass
class Trace:
    """A recorded sequence: play t waits ``delays[t - 1]`` rounds in every run.

    The ring is made for all but the 64 longest delays; those wait in a side list.

    >>> import jaxbandit as jb
    >>> int(jb.delays.Trace([0, 3, 1]).draw(t=2, arm=0, loss=0.0, noise=0.0))
    3
    """

    delays: Numbers = whole()  # [T]
    bound: int = static(default=None)
    long_waits: int = static(default=None)
    shared: ClassVar[bool] = True
    oblivious: ClassVar[bool] = True

    def __post_init__(self):
        _arrays(self, "delays")
        if (
            self.bound is None
            and is_concrete(self.delays)
            and is_numeric(self.delays)
            and np.ndim(self.delays) == 1
            and np.size(self.delays)
        ):
            delays = np.sort(np.where(np.asarray(self.delays) == NEVER, 0, self.delays))
            _resolve(self, delays[max(len(delays) - 65, 0)])
        if self.long_waits is None and self.bound is not None and is_concrete(self.delays):
            delays = np.asarray(self.delays)
            object.__setattr__(self, "long_waits", power_of_two(int(((delays > self.bound) & (delays != NEVER)).sum())))

    @property
    def length(self) -> int:
        return np.shape(self.delays)[0]

    def check(self) -> None:
        if not is_concrete(self.delays):
            return
        if not is_numeric(self.delays) or np.ndim(self.delays) != 1 or np.size(self.delays) == 0:
            raise ValueError(f"delays.{named(self, 'delays')}: a trace is a list of delays, one for each round")
        delays = np.asarray(self.delays)
        bad = delays[~((delays >= 0) & (delays == np.floor(delays)) & ((delays < 2**30) | (delays == NEVER)))]
        if bad.size:
            raise ValueError(
                f"delays.Trace: {show(bad[0])} is not a delay: whole numbers of rounds, 0 or more, or jb.delays.NEVER"
            )
        _check_bound(self, None, "delays")
        long = int(((delays > self.bound) & (delays != NEVER)).sum())
        if long > self.long_waits:
            raise ValueError(
                f"delays.Trace(bound={self.bound}, long_waits={self.long_waits}): {long} delays are above the bound; raise one of the two"
            )

    def longest(self):
        return jnp.where(jnp.asarray(self.delays) == NEVER, jnp.inf, jnp.asarray(self.delays)).max()

    def draw(self, t, arm, loss, noise):
        return jnp.asarray(self.delays, jnp.int32)[t - 1]


@pytree_dataclass
class ArmDependent:
    """Each arm has a delay law of its own: a play of arm i waits as ``laws[i]`` says.

    >>> import jaxbandit as jb
    >>> law = jb.delays.ArmDependent([jb.delays.Fixed(0), jb.delays.Fixed(8)])
    >>> law.bound, int(law.draw(t=1, arm=1, loss=0.0, noise=0.0))
    (8, 8)
    """

    laws: tuple[Delays, ...]
    shared: bool = static(default=False)

    def __post_init__(self):
        if isinstance(self.laws, list):
            object.__setattr__(self, "laws", tuple(self.laws))

    @property
    def bound(self) -> int:
        return max(getattr(law, "bound", None) or 0 for law in self.laws)  # a wrong law is for `check` to report

    @property
    def length(self) -> int | None:
        return min((law.length for law in self.laws if hasattr(law, "length")), default=None)  # type: ignore[attr-defined]

    @property
    def loses(self) -> bool:
        return any(getattr(law, "loses", False) for law in self.laws)

    def check(self, num_arms: int | None = None) -> None:
        if not isinstance(self.laws, tuple) or not self.laws or not all(isinstance(law, Delays) for law in self.laws):
            raise ValueError(f"delays.{named(self, 'laws')}: laws must be a list of delay laws, one for each arm")
        if self.shared:
            raise ValueError(
                "delays.ArmDependent(shared=True): these delays depend on the arm, and runs play different arms; leave shared out"
            )
        for law in self.laws:
            law.check()  # type: ignore[attr-defined]
            if getattr(law, "long_waits", 0):
                raise ValueError(
                    f"delays.ArmDependent(laws=[…, {type(law).__name__}(…)]): a law with outliers cannot belong to one arm"
                )
        if num_arms is not None and len(self.laws) != num_arms:
            raise ValueError(f"delays.ArmDependent: {len(self.laws)} laws for {num_arms} arms; give one law for each arm")

    def longest(self):
        return jnp.stack([jnp.asarray(law.longest(), float) for law in self.laws]).max()  # type: ignore[attr-defined]

    def prepare(self) -> "ArmDependent":
        return ArmDependent(tuple(law.prepare() if hasattr(law, "prepare") else law for law in self.laws))  # type: ignore[attr-defined]

    def draw(self, t, arm, loss, noise):
        shape = jnp.shape(arm)
        each = [jnp.broadcast_to(law.draw(t, arm, loss, noise), shape) for law in self.laws]
        return pick(jnp.stack(each), jnp.asarray(arm))
