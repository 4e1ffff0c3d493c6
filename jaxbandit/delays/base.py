"""Base classes of delay models, and helpers that delay models share."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int32

from jaxbandit._core.fields import MOST_ROUNDS, float_dtype, is_concrete, is_numeric, lists_to_arrays, named, show

NEVER = np.int32(2**31 - 1)  # the delay of missing feedback


class Delays:
    """Base class of delay models, including user-defined ones: the full interface, with defaults.

    A delay model defines ``bound`` and :meth:`draw`. Each trait may be a class constant, a static field or a property.
    """

    bound: int = -1  # static: the longest delay that the buffer of outstanding observations can hold; required
    shared: bool = False  # one sequence for all runs; requires `oblivious`
    oblivious: bool = False  # `draw` depends on neither arm nor loss, so that any delay can be recomputed from the key
    noisy: bool = True  # `draw` depends on `noise`; False: one known sequence
    may_lose: bool = True  # `draw` may return NEVER, or more than `bound`
    _roomy: bool = False  # `bound` is a field that `draw` does not use: the buffer may be longer
    _long_waits: int = 0  # static: how many delays may exceed `bound`, kept in a side list (shared models only)
    num_arms: int | None = None  # number of arms with delays; None: any number
    length: int | None = None  # number of rounds with delays; None: unlimited

    def __post_init__(self) -> None:
        lists_to_arrays(self)

    def draw(
        self, t: Int32[Array, ""], arm: Int32[Array, "*runs"], loss: Float[Array, "*runs"], noise: Float[Array, "*#runs"]
    ) -> Int32[Array, "*#runs"]:
        """The delay of round t's feedback, int32 of the shape of ``noise`` (or ``[]``); NEVER for missing feedback."""
        raise NotImplementedError(f"{type(self).__name__} has no method draw(t, arm, loss, noise)")

    def fixed_age(self) -> jax.Array | None:
        """The common delay of all feedback that arrives; None if delays may differ. A common delay needs no arrival lists."""
        return None

    def _shares(self) -> jax.Array | None:
        """The shares of a loss that arrive after 0, 1, … rounds (composite anonymous feedback); None: losses arrive whole.

        The learner observes sums of shares. The last share arrives with :meth:`fixed_age`, which must not be None.
        """
        return None

    def longest(self) -> ArrayLike:
        """The longest possible delay, ∞ if feedback can be missing; ``[]``, or ``[runs]`` for per-run values."""
        return jnp.inf if self.may_lose else self.bound

    def prepare(self) -> "Delays":
        """The model used during the rounds, with everything precomputed that :meth:`draw` needs and that does not change."""
        return self

    def check(self, num_arms: int) -> None:
        """Raise ValueError if fields are inconsistent; each field has been checked before."""


class ShowsDelays(Delays):
    """Delays that are known at action time: learners that read delays receive each delay before they choose the action.

    They must be ``oblivious``. :class:`jaxbandit.delays.KnownAtAction` makes any oblivious delay model one.
    """


class Composed(Delays):
    """Base of the delay models that choose among others in each round. Traits are derived from those of the parts."""

    def parts(self) -> dict[str, Any]:
        """The delay models to choose from, each with its place in this one."""
        raise NotImplementedError(f"{type(self).__name__} has no method parts()")

    def _laws(self) -> list[Delays]:
        return [law for law in self.parts().values() if isinstance(law, Delays)]  # `check` reports the others

    @property
    def bound(self) -> int:
        return max((law.bound or 0 for law in self._laws()), default=0)

    @property
    def length(self) -> int | None:
        return min((law.length for law in self._laws() if law.length is not None), default=None)

    @property
    def num_arms(self) -> int | None:
        return next((law.num_arms for law in self._laws() if law.num_arms is not None), None)

    @property
    def may_lose(self) -> bool:
        return any(law.may_lose for law in self._laws())

    def longest(self) -> ArrayLike:
        return functools.reduce(jnp.maximum, [jnp.asarray(law.longest(), float_dtype()) for law in self._laws()])

    def check(self, num_arms: int) -> None:
        name = f"delays.{type(self).__name__}"
        for place, law in self.parts().items():
            if not isinstance(law, Delays):
                raise ValueError(f"{name}({place}={show(law)}): {place} must be a delay model such as jb.delays.Fixed(10)")
            if law._shares() is not None:
                raise ValueError(f"{name}({place}={type(law).__name__}(…)): composite feedback applies to all rounds or none")
            if law._long_waits:
                raise ValueError(
                    f"{name}({place}={type(law).__name__}(…)): outliers apply to all rounds or none; "
                    "give it bound= the longest delay"
                )


def power_of_two(longest: int) -> int:
    """The default bound: the next power of two, 0 for no delay at all."""
    return 0 if longest == 0 else 1 << (int(longest) - 1).bit_length()


def resolve_bound(law: Delays, longest: Any) -> None:
    """Set ``bound`` from a concrete longest delay; ``check`` reports values that are not numbers."""
    if law.bound is None and is_concrete(longest) and is_numeric(longest) and np.size(longest):
        number = float(np.max(longest))
        if 0 <= number < MOST_ROUNDS:
            object.__setattr__(law, "bound", min(power_of_two(int(np.ceil(number))), MOST_ROUNDS - 1))


CUT_OFF = 1e-6  # the default bound of an unbounded model: the next power of two that at most this share of the draws exceeds


def check_bound(law: Delays, longest: Any = None, field: str = "") -> None:
    """Raise if the bound is not a size, or is below a known ``longest`` delay; ``field`` is the source of that delay."""
    name = f"delays.{type(law).__name__}"
    if law.bound is None and field and is_concrete(vars(law)[field]):
        raise ValueError(
            f"delays.{named(law, field)}: no bound below 2**30 rounds follows from {field}; give shorter delays, or bound=, "
            "the longest delay that can come"
        )
    if law.bound is None:
        raise ValueError(
            f"{name}(bound=None): {field or 'the longest delay'} is not a known number here, so give bound=, the longest delay that can come"
        )
    if not isinstance(law.bound, int | np.integer) or isinstance(law.bound, bool) or not 0 <= law.bound < MOST_ROUNDS:
        raise ValueError(f"{name}(bound={show(law.bound)}): the bound is a whole number of rounds, from 0 to 2**30 - 1")
    if longest is not None and is_concrete(longest) and np.max(longest) > law.bound:
        raise ValueError(
            f"delays.{named(law, field)}: the delay {show(np.max(longest))} is above bound={law.bound}; raise the bound"
        )


def check_recorded(law: Delays, delays: Any) -> None:
    """Raise if recorded delays exceed the longest allowed delay and are not NEVER."""
    if is_concrete(delays):
        delays = np.asarray(delays)
        between = delays[(delays >= MOST_ROUNDS) & (delays != NEVER)]
        if between.size:
            name = type(law).__name__
            raise ValueError(f"delays.{name}: {show(between[0])} is not a delay: below 2**30 rounds, or jb.delays.NEVER")


def within(delay: jax.Array, bound: int) -> jax.Array:
    """A draw of an unbounded model: NEVER above the bound (compared as floats, before the cast can overflow)."""
    return jnp.where(delay <= bound, jnp.minimum(delay, bound).astype(jnp.int32), NEVER)
