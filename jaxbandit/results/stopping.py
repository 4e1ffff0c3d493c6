"""When to stop adding runs, and what is known then."""

import dataclasses
import math
from typing import Any, Literal

import numpy as np

from jaxbandit._core.display import interval
from jaxbandit._core.fields import show
from jaxbandit.results.sequential import confidence_interval

LEVEL = 0.05


@dataclasses.dataclass(frozen=True)
class Until:
    """The criterion given by ``until=``."""

    kind: Literal["absolute", "relative", "decided"]
    width: float = math.nan  # half of an interval, or its ratio to the mean

    @classmethod
    def read(cls, until: Any, *, decided: bool) -> "Until":
        """``until`` as a user gives it; ``decided``: whether there is anything to decide."""
        if isinstance(until, int | float | np.integer | np.floating) and not isinstance(until, bool):
            if 0 < until < math.inf:
                return cls("absolute", float(until))
        elif isinstance(until, str) and until == "decided" and decided:
            return cls("decided")
        elif isinstance(until, str) and until.strip().endswith("%"):
            try:
                share = float(until.strip()[:-1]) / 100
            except ValueError:
                share = math.nan
            if 0 < share < math.inf:
                return cls("relative", share)
        also = ", or 'decided'" if decided else ""
        raise ValueError(
            f"until={show(until)}: give half the width of an interval, such as 0.5 (of regret) or '2%' (of its mean){also}"
        )

    def met(self, mean: float, low: float, high: float) -> bool:
        """Whether the interval ``low … high`` is short enough; ``mean`` is what a relative width refers to."""
        return (high - low) / 2 <= (self.width if self.kind == "absolute" else self.width * abs(mean))

    def __str__(self) -> str:
        return "decided" if self.kind == "decided" else f"{self.width:g}" if self.kind == "absolute" else f"{100 * self.width:g}%"


@dataclasses.dataclass(frozen=True)
class Stopping:
    """The interval of the mean regret at the horizon with which a simulation with ``until=`` stopped.

    It is that of a confidence sequence (:mod:`jaxbandit.results.sequential`), which holds although the number of runs was chosen by
    looking at them. Student's interval, :meth:`jaxbandit.Result.estimate`, is shorter and does not.
    """

    until: str  # as given
    reached: bool  # whether the interval is short enough; if not, there were too few runs
    mean: float
    low: float  # of the 95% interval
    high: float
    least: float  # the regret of a run lies between these two, by the means of the losses
    most: float

    def __repr__(self) -> str:
        words = "reached" if self.reached else "not reached"
        return f"Stopping({self.until} {words}: mean regret {interval(self.mean, self.low, self.high)})"


def stopping(until: Until, values: np.ndarray, limits: tuple[float, float]) -> Stopping:
    """What is known of the mean of ``values [runs]``."""
    mean = float(np.mean(values, dtype=np.float64))
    low, high = confidence_interval(values, limits, LEVEL)
    return Stopping(str(until), until.met(mean, low, high), mean, low, high, *limits)
