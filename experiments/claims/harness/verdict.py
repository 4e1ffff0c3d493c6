"""Verdicts: a measured statement holds (with slack), is not shown, fails, or, for an open question, is rejected as a hypothesis.

A check compares a measured number and its 95 % interval with a bound. The whole interval on the right side: it holds. The whole
interval on the wrong side: it fails. Else it is not shown. The intervals of one statement hold together (Bonferroni).
"""

import dataclasses
import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

Outcome = Literal["holds", "not shown", "fails"]
Kind = Literal["proved", "recomputed", "shape", "open"]
CONSTANTS = ("proved", "recomputed")  # kinds with explicit constants: they can be refuted
LEVEL = 0.05
SLACK = 1.05  # a smaller ratio is not reported


@dataclasses.dataclass(frozen=True)
class Measured:
    """A number with its standard error; error 0: exact, or the worst of all paths, where nothing was averaged."""

    value: float
    error: float = 0.0

    def __add__(self, other: "Measured") -> "Measured":
        return Measured(self.value + other.value, math.hypot(self.error, other.error))

    def __truediv__(self, number: float) -> "Measured":
        return Measured(self.value / number, self.error / abs(number))

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        return self.value - z * self.error, self.value + z * self.error


@dataclasses.dataclass(frozen=True)
class Check:
    """One comparison of a statement."""

    label: str
    measured: Measured
    relation: Literal["at most", "at least", "equals"]
    bound: float
    resolution: float = 0.0  # of "equals": how near is the same
    kind: Kind = "proved"
    # proved: by the paper, with these constants, so it can be refuted. recomputed: so can it be, but the constants are this
    # project's own calculation from the paper's lemmas. shape: an exponent or an order at finite T; the wrong side is "not
    # shown", because an O-form says nothing about any one T. open: a question; both answers are answers.

    def outcome(self, z: float) -> Outcome:
        right, wrong = self._sides(z)
        return "holds" if right else "fails" if wrong and (self.kind != "shape" or not self._finite(z)) else "not shown"

    def rejects(self, z: float) -> bool:
        """Whether the whole interval lies on the wrong side, whatever the kind."""
        return self._sides(z)[1]

    def _finite(self, z: float) -> bool:
        return all(math.isfinite(end) for end in self.measured.interval(z))

    def _sides(self, z: float) -> tuple[bool, bool]:
        """Whether the whole interval lies on the right side, and whether on the wrong one; what is no number is wrong."""
        low, high = self.measured.interval(z)
        if not self._finite(z):
            return False, True
        return {
            "at most": (high <= self.bound, low > self.bound),
            "at least": (low >= self.bound, high < self.bound),
            "equals": (
                self.bound - self.resolution <= low and high <= self.bound + self.resolution,
                high < self.bound - self.resolution or low > self.bound + self.resolution,
            ),
        }[self.relation]

    def slack(self, z: float) -> float | None:
        """How many times further the bound is than the near end of the interval; None where that means nothing."""
        low, high = self.measured.interval(z)
        if self.kind not in CONSTANTS or self.relation == "equals" or min(self.bound, low, high) <= 0:
            return None
        return self.bound / high if self.relation == "at most" else low / self.bound


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A wrong learner or a wrong bound, put to one of the statement's checks: a check with power rejects it."""

    wrong: str
    check: Check  # the statement's own, with the number or the bound of the wrong one


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The worst outcome of a statement's checks, and the smallest slack."""

    outcome: Outcome
    slack: float | None
    refuted: bool  # a check with explicit constants fails
    rejected: bool = False  # a check of an open question fails, and no other

    def __str__(self) -> str:
        if self.outcome == "holds" and self.slack is not None and self.slack >= SLACK:
            return f"holds, slack {self.slack:.3g}×"
        return "hypothesis rejected" if self.rejected else self.outcome


def width(checks: Sequence[Check]) -> float:
    """How many standard errors an interval reaches, so that all of a statement's hold together."""
    averaged = sum(check.measured.error > 0 for check in checks)
    return NormalDist().inv_cdf(1 - LEVEL / 2 / max(averaged, 1))


def judge(checks: Sequence[Check], mutants: Sequence[Mutant] = ()) -> Verdict:
    """The verdict on a statement. What a wrong program passes as well is "not shown".

    >>> from experiments.claims.harness.verdict import Check, Measured, judge
    >>> print(judge([Check("regret", Measured(10.0, 0.1), "at most", 30.0)]))
    holds, slack 2.94×
    >>> print(judge([Check("regret", Measured(31.0, 0.1), "at most", 30.0)]))
    fails
    """
    if not checks:
        raise ValueError("checks=[]: a statement needs at least one check, else nothing was shown")
    z = width(checks)
    outcomes = [check.outcome(z) for check in checks]
    worst: Outcome = "fails" if "fails" in outcomes else "not shown" if "not shown" in outcomes else "holds"
    if worst == "holds" and not all(mutant.check.rejects(z) for mutant in mutants):
        worst = "not shown"
    slacks = [slack for check in checks if (slack := check.slack(z)) is not None]
    failing = {check.kind for outcome, check in zip(outcomes, checks, strict=True) if outcome == "fails"}
    return Verdict(worst, min(slacks, default=None), bool(failing & {*CONSTANTS}), failing == {"open"})


def mean_of(result: Any, values: np.ndarray) -> Measured:
    """The mean over runs of ``values [runs]``, narrowed by the control variates of ``result`` where it has them."""
    estimate = dataclasses.replace(result, regret=np.broadcast_to(values, result.regret.shape)).estimate()
    return Measured(float(estimate.mean[-1]), float(estimate.error[-1]))


def regret_of(result: Any) -> Measured:
    """The mean regret at the last recorded round."""
    return mean_of(result, result.regret[-1])


def exponent(x: Sequence[float], y: Sequence[Measured]) -> Measured:
    """p of the least-squares line log y = p·log x + c, with the error that the errors of y leave in it.

    >>> from experiments.claims.harness.verdict import Measured, exponent
    >>> round(exponent([1, 2, 4], [Measured(3.0), Measured(12.0), Measured(48.0)]).value, 6)
    2.0
    """
    if any(one.value <= 0 for one in y):
        return Measured(math.nan, math.nan)
    at = np.log(np.asarray(x, float))
    weights = (at - at.mean()) / np.sum((at - at.mean()) ** 2)
    values, errors = np.array([one.value for one in y]), np.array([one.error for one in y])
    return Measured(float(weights @ np.log(values)), float(np.sqrt(np.sum((weights * errors / values) ** 2))))


def local_exponents(x: Sequence[float], y: Sequence[Measured]) -> list[Measured]:
    """The exponents between neighbouring points. A single fit over all points hides a change of the exponent.

    >>> from experiments.claims.harness.verdict import Measured, local_exponents
    >>> [round(one.value, 6) for one in local_exponents([1, 2, 4], [Measured(1.0), Measured(2.0), Measured(8.0)])]
    [1.0, 2.0]
    """
    return [exponent(x[at : at + 2], y[at : at + 2]) for at in range(len(x) - 1)]


def last_decade(late: Any, prompt: Any) -> float:
    """The share of the cost of delay that falls into the last decade of rounds: small where the delay has been paid for."""
    early = int(np.searchsorted(late.rounds, late.rounds[-1] / 10))
    cost = (late.regret - prompt.regret).mean(-1)
    return float(1 - cost[early] / cost[-1])


def power_over_offset(x: Sequence[float], y: Sequence[Measured]) -> Measured:
    """p of the weighted least-squares fit y = offset + slope·x^p, with the error that the errors of y leave in it.

    An exponent fitted without the offset describes the offset: 241 + 57.5·x looks like x^0.72. Needs four points or more; where
    the fit is worse than the errors of y allow, the error of p is widened as much.

    >>> from experiments.claims.harness.verdict import Measured, exponent, power_over_offset
    >>> x = [4, 8, 16, 32]
    >>> y = [Measured(241 + 57.5 * one, 1.0) for one in x]
    >>> round(exponent(x, y).value, 2), round(power_over_offset(x, y).value, 2)
    (0.72, 1.0)
    """
    if len(x) < 4:
        raise ValueError(f"power_over_offset: {len(x)} points for an offset, a slope and a power; give four or more")
    at, values = np.asarray(x, float) / max(x), np.array([one.value for one in y])
    errors = np.array([max(one.error, 1e-9 * abs(one.value)) for one in y])

    def fit(power: float) -> tuple[float, np.ndarray]:
        columns = np.stack([np.ones(len(at)), at**power], 1) / errors[:, None]
        weights, *_ = np.linalg.lstsq(columns, values / errors, rcond=None)
        return float(np.sum((columns @ weights - values / errors) ** 2)), weights

    powers = np.linspace(0.05, 5, 991)
    power = float(powers[np.argmin([fit(one)[0] for one in powers])])
    for step in (1e-3, 1e-4, 1e-5):
        near = power + step * np.arange(-10, 11)
        power = float(near[np.argmin([fit(one)[0] for one in near])])
    missed, (_, slope) = fit(power)
    jacobian = np.stack([np.ones(len(at)), at**power, slope * at**power * np.log(at)], 1) / errors[:, None]
    error = np.sqrt(np.linalg.pinv(jacobian.T @ jacobian)[2, 2] * max(1.0, missed / (len(at) - 3)))
    return Measured(power, float(error))


def increments(result: Any, factor: float = 10.0) -> Measured:
    """How many times more regret the last ``factor`` of rounds brings than the one before: 1 for log t, √factor for √t."""
    ends = [int(np.searchsorted(result.rounds, result.rounds[-1] / factor**power)) for power in (2, 1)]
    first, last = (result.regret[late] - result.regret[early] for early, late in zip(ends, [ends[1], -1], strict=True))
    before, after = first.mean(), last.mean()
    share = mean_of(result, (last - after) / after - (first - before) / before)
    return Measured(float(after / before * (1 + share.value)), float(abs(after / before) * share.error))


def growth(result: Any, factor: float = 10.0) -> Measured:
    """The exponent of the regret in t over the last ``factor`` of rounds: log(R_T/R_{T/factor})/log(factor)."""
    early = int(np.searchsorted(result.rounds, result.rounds[-1] / factor))
    span = np.log(result.rounds[-1] / result.rounds[early])
    first, last = result.regret[early].mean(), result.regret[-1].mean()
    # Linear in the runs, so that the control variates apply: d log R = dR/R.
    share = mean_of(result, (result.regret[-1] - last) / last - (result.regret[early] - first) / first)
    return Measured(float((np.log(last / first) + share.value) / span), share.error / span)


def slope(result: Any, factor: float = 10.0) -> Measured:
    """Regret per unit of log t over the last ``factor`` of rounds."""
    early = int(np.searchsorted(result.rounds, result.rounds[-1] / factor))
    return mean_of(result, result.regret[-1] - result.regret[early]) / np.log(result.rounds[-1] / result.rounds[early])
