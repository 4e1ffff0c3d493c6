"""Traits that a user's subclass inherits, although they describe a method that it replaces."""

from typing import Any

from jaxbandit._core.fields import speaks_of
from jaxbandit.delays import Delays
from jaxbandit.delays.base import Composed
from jaxbandit.losses import Losses

OF_LOSSES = {"expected": ("stationary", "prepare"), "sample": ("prepare",)}
OF_DELAYS = {"draw": ("oblivious", "noisy", "may_lose", "fixed_age", "prepare", "_shares", "_long_waits", "_roomy")}


def check_inherited(law: Losses | Delays, argument: str) -> None:
    """Raise if a trait of a loss model or delay model was declared for another ``expected``, ``sample`` or ``draw``."""
    cls, base, methods = (type(law), Losses, OF_LOSSES) if isinstance(law, Losses) else (type(law), Delays, OF_DELAYS)
    for method, traits in methods.items():
        stale = [trait for trait in traits if not speaks_of(cls, trait, method) and _differs(law, base, trait)]
        if stale:
            name = cls.__name__
            origin = next(one.__name__ for one in cls.__mro__ if one.__module__.partition(".")[0] == "jaxbandit")
            public = [trait for trait in stale if not trait.startswith("_")] or [stale[0]]
            raise TypeError(
                f"{argument}={name}(…): {name} has a method {method} of its own and inherits {', '.join(public)} from {origin}, written for "
                f"another {method}; declare {'it' if len(public) == 1 else 'them'} in {name}, or inherit from jb.extend.{base.__name__}"
            )


def _differs(law: Any, base: type, trait: str) -> bool:
    """Whether a trait is other than the default of the base class."""
    if callable(vars(base)[trait]):
        return vars(_home(type(law), trait))[trait] is not vars(base)[trait]
    # Models that are composed of others derive their traits from the parts.
    return getattr(law, trait) != vars(base)[trait] and _home(type(law), trait) is not Composed


def _home(cls: type, trait: str) -> type:
    return next(one for one in cls.__mro__ if trait in vars(one))
