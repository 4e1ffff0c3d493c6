"""i.i.d. per-round delays."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax.typing import ArrayLike

from jaxbandit._core.fields import (
    MOST_ROUNDS,
    as_float,
    is_concrete,
    is_numeric,
    named,
    number,
    pytree_dataclass,
    show,
    static,
    whole_number,
)
from jaxbandit.delays.base import CUT_OFF, NEVER, Delays, check_bound, resolve_bound, within


@pytree_dataclass
class UniformRandom(Delays):
    """Uniform on the whole numbers ``low … high``, both included.

    >>> import jaxbandit as jb
    >>> jb.delays.UniformRandom(0, 20).draw(t=1, arm=0, loss=0.0, noise=0.99)
    Array(20, dtype=int32)
    """

    low: ArrayLike = whole_number()
    high: ArrayLike = whole_number()
    bound: int = static(default=None)
    shared: bool = static(default=False)
    oblivious: ClassVar[bool] = True
    may_lose: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        resolve_bound(self, self.high)

    def check(self, num_arms: int) -> None:
        if is_concrete((self.low, self.high)):
            low, high = np.broadcast_arrays(self.low, self.high)
            runs = np.flatnonzero(low > high)
            if runs.size:
                whose = f"; run {runs[0]} has {low[runs[0]]} and {high[runs[0]]}" if low.ndim else ""
                name = f"delays.UniformRandom(low={show(self.low)}, high={show(self.high)})"
                raise ValueError(f"{name}: low must not be above high{whose}")
        check_bound(self, self.high, "high")

    def longest(self) -> ArrayLike:
        return self.high

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        low, high = jnp.asarray(self.low, jnp.int32), jnp.asarray(self.high, jnp.int32)
        noise = jnp.asarray(noise)
        return jnp.minimum(low + jnp.floor(noise * (high - low + 1).astype(noise.dtype)).astype(jnp.int32), high)


def _known(number) -> np.ndarray | None:
    """A parameter as float64, if it can be looked at and is a sensible number; else ``check`` will say what is wrong."""
    if not is_concrete(number) or not is_numeric(number) or np.size(number) == 0:
        return None
    array = np.asarray(number, np.float64)
    return array if np.all(np.isfinite(array)) and np.all(array >= 0) else None


def _geometric_longest(mean) -> float | None:
    """The smallest n with P(d > n) = (m/(1+m))^(n+1) <= CUT_OFF."""
    known = _known(mean)
    if known is None or np.max(known) == 0:
        return None if known is None else 0.0
    return max(np.ceil(np.log(CUT_OFF) / -np.log1p(1 / np.max(known))) - 1, 0.0)


def _poisson_longest(mean) -> float | None:
    """The smallest n with P(d > n) <= CUT_OFF."""
    known = _known(mean)
    return None if known is None else float(scipy.special.pdtrik(1 - CUT_OFF, np.max(known))) if np.max(known) > 0 else 0.0


def _pareto_longest(alpha) -> float | None:
    """The smallest n with P(d > n) = n^-α <= CUT_OFF, where that is at most 10⁴."""
    known = _known(alpha)
    return float(np.ceil(CUT_OFF ** (-1 / np.min(known)))) if known is not None and np.min(known) >= 1.5 else None


class Unbounded(Delays):
    """Base of the delay models without a longest delay: feedback with a delay above ``bound`` is missing."""

    oblivious: bool = True
    parameter: ClassVar[str] = "mean"  # the field that the default bound follows from

    def check(self, num_arms: int) -> None:
        check_bound(self, field=self.parameter)

    def lost(self) -> ArrayLike:
        """The probability of a delay above ``bound``."""
        raise NotImplementedError(f"{type(self).__name__} has no method lost()")

    def longest(self) -> ArrayLike:
        """The bound, where at most a share of :data:`CUT_OFF` of the feedback is lost; ∞ otherwise, as in every model with missing feedback."""
        return jnp.where(jnp.asarray(self.lost()) <= 1.01 * CUT_OFF, self.bound, jnp.inf)  # 1.01: rounding in float32


@pytree_dataclass
class Geometric(Unbounded):
    """Geometric delays on 0, 1, 2, …

    :math:`P(d \\ge n) = (m/(1+m))^n` with mean m. Draws above ``bound`` are missing feedback.

    Without a ``bound`` it is the next power of two beyond which at most one in a million draws lies; ``Result.lost`` counts
    missing observations.

    >>> import jaxbandit as jb
    >>> jb.delays.Geometric(mean=10.0, bound=127).draw(t=1, arm=0, loss=0.0, noise=0.5)
    Array(7, dtype=int32)
    """

    mean: ArrayLike = number(high=MOST_ROUNDS)
    bound: int = static(default=None)
    shared: bool = static(default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        resolve_bound(self, _geometric_longest(self.mean))

    def lost(self) -> ArrayLike:
        mean = as_float(self.mean)
        positive = jnp.where(mean > 0, mean, 1)
        return jnp.where(mean > 0, jnp.exp(-jnp.log1p(1 / positive) * (self.bound + 1)), 0)

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        noise = jnp.asarray(noise)
        mean = jnp.asarray(self.mean, noise.dtype)
        rate = jnp.log1p(1 / jnp.maximum(mean, jnp.finfo(noise.dtype).tiny))
        return within(jnp.where(mean > 0, jnp.floor(-jnp.log1p(-noise) / rate), 0), self.bound)


@pytree_dataclass
class Poisson(Unbounded):
    """Poisson with the given mean. Draws above ``bound`` are missing feedback; without one it is as in :class:`Geometric`.

    >>> import jaxbandit as jb
    >>> jb.delays.Poisson(mean=3.0, bound=31).draw(t=1, arm=0, loss=0.0, noise=0.5)
    Array(3, dtype=int32)
    """

    mean: ArrayLike = number(high=MOST_ROUNDS)
    bound: int = static(default=None)
    shared: bool = static(default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        resolve_bound(self, _poisson_longest(self.mean))

    def prepare(self) -> "Tabulated":
        """The distribution function, computed once before the rounds.

        P(d <= n) is the regularised upper incomplete gamma function Q(n + 1, mean). JAX's own in float32 is off by 2 % at means
        of some ten thousand, so that of SciPy (which JAX requires) is used wherever the mean is a known number.
        """
        mean = as_float(self.mean)
        if is_concrete(mean):
            cumulative = jnp.asarray(_poisson_table(float(mean), self.bound, mean.dtype))
        else:
            cumulative = jax.scipy.special.gammaincc(jnp.arange(1, self.bound + 2).astype(mean.dtype), mean)
        return Tabulated(cumulative, self.bound, self.shared)

    def lost(self) -> ArrayLike:
        if is_concrete(self.mean):
            return scipy.special.pdtrc(self.bound, np.asarray(self.mean, np.float64))
        mean = as_float(self.mean)
        return jax.scipy.special.gammainc(jnp.asarray(self.bound + 1, mean.dtype), mean)

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        return self.prepare().draw(t, arm, loss, noise)


def _poisson_table(mean: float, bound: int, dtype: np.dtype) -> np.ndarray:
    """P(d <= n) for n = 0 … bound; more than 40 standard deviations from the mean it is 0 or 1 in any precision."""
    width = int(40 * np.sqrt(mean)) + 100
    first, last = max(int(mean) - width, 0), min(int(mean) + width, bound + 1)
    table = np.zeros(bound + 1, dtype)
    table[last:] = 1
    table[first:last] = scipy.special.gammaincc(np.arange(first, last) + 1.0, mean)
    return table


@pytree_dataclass
class Tabulated(Delays):
    """Any distribution on 0 … bound by its distribution function; the rest of the mass is missing feedback."""

    cumulative: jax.Array  # [bound + 1] P(d <= n)
    bound: int = static()
    shared: bool = static(default=False)
    oblivious: ClassVar[bool] = True

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        index = jnp.searchsorted(self.cumulative, jnp.asarray(noise, self.cumulative.dtype), side="right").astype(jnp.int32)
        return jnp.where(index <= self.bound, index, NEVER)


@pytree_dataclass
class Pareto(Unbounded):
    """Pareto delays, with heavy tails.

    :math:`P(d > n) = n^{-\\alpha}` for n = 1, 2, … Draws above ``bound`` are missing feedback.

    Without a ``bound`` it is as in :class:`Geometric`, for α of 1.5 and more; heavier tails need one.

    >>> import jaxbandit as jb
    >>> jb.delays.Pareto(alpha=1.0, bound=1023).draw(t=1, arm=0, loss=0.0, noise=0.75)
    Array(4, dtype=int32)
    """

    alpha: ArrayLike = number(open_low=True)
    bound: int = static(default=None)
    shared: bool = static(default=False)
    parameter: ClassVar[str] = "alpha"

    def __post_init__(self) -> None:
        super().__post_init__()
        resolve_bound(self, _pareto_longest(self.alpha))

    def check(self, num_arms: int) -> None:
        if self.bound is None and is_concrete(self.alpha):
            raise ValueError(
                f"delays.{named(self, 'alpha')}: this tail is too heavy to truncate automatically; pass bound=, e.g. bound=4096, "
                f"above which {4096.0 ** -float(np.min(np.asarray(self.alpha))):.2g} of the feedback is lost"
            )
        super().check(num_arms)

    def lost(self) -> ArrayLike:
        alpha = as_float(self.alpha)
        return jnp.asarray(max(self.bound, 1), alpha.dtype) ** -alpha

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        noise = jnp.asarray(noise)
        size = jnp.exp(-jnp.log1p(-noise) / jnp.asarray(self.alpha, noise.dtype))
        return within(jnp.maximum(jnp.ceil(size), 1), self.bound)
