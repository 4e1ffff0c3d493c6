"""Means over runs with their errors: regression on control variates, intervals and tests by Student's t."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.special

from jaxbandit._core.display import interval, number, sparkline, table
from jaxbandit._io.optional import need

BINS = 8  # of log-time, for the control variates of one recorded round
ROUNDING = 1e-6  # of the largest spread among control variates: what moves less is the last digit of float32
RUNS_PER_FEATURE = 10
FEW_RUNS = 30  # with fewer, rare bad runs are easily missed altogether, and the skewness of a sample says little
COCHRAN = 25  # runs needed for each unit of squared skewness


@dataclasses.dataclass(frozen=True, eq=False)
class Estimate:
    """A mean over runs with its 95% interval (Student's t), for each recorded round.

    Student's interval is right for normally distributed runs. Skewness makes it too short on the side of the long tail: where a
    few runs fail, most samples contain too few of them. :attr:`reliable` is False for fewer than 30 runs, and for fewer than
    :math:`25 g^2` runs, where g is the sample skewness (Cochran, *Sampling Techniques*, 1977, section 2.15: above that number
    a 95% interval misses the mean at most 6% of the time). :attr:`note` says so. Compare the median then, or add runs.
    """

    rounds: np.ndarray  # [C]
    mean: np.ndarray  # [C]
    error: np.ndarray  # [C] standard error of the mean
    low: np.ndarray  # [C]
    high: np.ndarray  # [C]
    median: np.ndarray  # [C] of the runs
    skewness: np.ndarray  # [C] of the runs, or of the residuals of a fit on control variates
    runs: int

    def __repr__(self) -> str:
        return f"Estimate({self.last()} at {self.rounds[-1]:,}{f'; {self.note}' if self.note else ''})"

    @property
    def reliable(self) -> np.ndarray:
        """``[C]`` whether there are enough runs for the interval to be trusted; True where all runs are alike."""
        return (self.error == 0) | (self.runs >= np.maximum(FEW_RUNS, COCHRAN * self.skewness**2))

    @property
    def note(self) -> str:
        """Why the interval of the last round is unreliable; empty if it is not."""
        return note_on_interval(self.runs, float(self.skewness[-1])) if not self.reliable[-1] else ""

    def last(self) -> str:
        """The mean and its interval at the last recorded round, such as ``689 [683, 695]``."""
        return interval(self.mean[-1], self.low[-1], self.high[-1])

    def sparkline(self) -> str:
        """The curve and its band as a small SVG, for notebooks."""
        return sparkline(self.rounds, self.mean, self.low, self.high)

    def _repr_html_(self) -> str:
        rows = [
            ("mean [95% interval]", self.last()),
            ("median of the runs", number(self.median[-1])),
            ("at round", f"{self.rounds[-1]:,}"),
            *([("note", self.note)] if self.note else []),
        ]
        return table("Estimate", rows, self.sparkline())

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` by ``round``: ``mean``, ``error``, ``low``, ``high``, ``median``, ``skewness``.

        Needs the extra ``jaxbandit[data]``.
        """
        columns = {name: vars(self)[name] for name in ("mean", "error", "low", "high", "median", "skewness")}
        pandas = need("pandas", "data", "to_pandas")
        return pandas.DataFrame(columns, index=pandas.Index(self.rounds, name="round"))


def estimate(values: np.ndarray, rounds: np.ndarray, features: np.ndarray | None) -> Estimate:
    """The means of ``values [C, runs]`` with their intervals, given that ``features [C, K, runs]`` have mean 0."""
    values, rows, skew = values.astype(np.float64), [], []
    for c, row in enumerate(values):
        used = None if features is None else increments(features[: c + 1], rounds[: c + 1])
        rows.append(intercept(row, used))
        skew.append(skewness(row, used))
    mean, error, freedom = (np.array(column) for column in zip(*rows, strict=True))
    half = np.array([student_quantile(int(one)) for one in freedom]) * error
    median = np.median(values, 1)
    return Estimate(rounds, mean, error, mean - half, mean + half, median, np.array(skew), values.shape[1])


def note_on_interval(runs: int, skew: float) -> str:
    """Why ``runs`` of this skewness are too few for Student's interval, in words."""
    needed = COCHRAN * skew**2
    if runs >= needed:
        return f"{runs} runs are too few to judge the interval; use {FEW_RUNS} or more"
    enough = f"{max(needed, FEW_RUNS):,.0f} runs or more" if np.isfinite(needed) else "more runs"
    return f"the runs are skewed ({skew:.2g}), so the interval is unreliable; use {enough}"


def increments(features: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    """``[p, runs]``: how much each of ``features [c, K, runs]`` grew within bins of rounds, evenly spaced in log-time."""
    count, num_arms, runs = features.shape
    bins = min(BINS, count, runs // (RUNS_PER_FEATURE * num_arms))
    if bins == 0:
        return np.empty((0, runs))
    wanted = np.geomspace(rounds[0], rounds[-1], bins + 1)[1:]
    ends = np.unique([*np.searchsorted(rounds, wanted[:-1] * (1 - 1e-9)), count - 1])
    return np.diff(features[ends], axis=0, prepend=np.float64(0)).reshape(-1, runs)


def intercept(values: np.ndarray, features: np.ndarray | None) -> tuple[float, float, int]:
    """The mean of ``values [runs]`` given that ``features [p, runs]`` have mean 0: with its standard error and freedom."""
    used = 0 if features is None else len(features)
    mean, error = intercepts(values[None], features)
    return float(mean[0]), float(error[0]), max(len(values) - 1 - used, 0)


def intercepts(values: np.ndarray, features: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """:func:`intercept` of every row of ``values [n, runs]``: one fit serves them all."""
    runs = values.shape[1]
    mean = values.mean(1)
    deviations = values - mean[:, None]
    left = np.einsum("nr,nr->n", deviations, deviations)
    shift, leverage, used = 0.0, 0.0, 0
    if features is not None and len(features):
        coefficients, along, weights, leverage, _ = _least_squares(deviations, features)
        shift, used = coefficients.T @ weights, len(features)
        left = np.maximum(left - np.einsum("pn,pn->n", coefficients, along), 0)
    freedom = runs - 1 - used
    if freedom < 1:
        return mean, np.full(len(mean), np.nan)
    return mean - shift, np.sqrt(left / freedom * (1 / runs + leverage))


def failed_share(values: np.ndarray) -> float:
    """The share of runs whose regret is above ten times the median regret, and above 10.

    >>> failed_share(np.array([3.0, 4.0, 5.0, 500.0]))
    0.25
    """
    return float(np.mean(values > 10 * max(float(np.median(values)), 1.0)))


def _least_squares(deviations: np.ndarray, features: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, np.ndarray]:
    """Fit ``deviations [n, runs]`` on standardised ``features [p, runs]``.

    Returns the coefficients ``[p, n]``, the products of features and deviations ``[p, n]``, the means of the features ``[p]``, the
    leverage of these means and the scales ``[p]`` that the features were divided by.
    """
    # Normal equations of standardised features: they are nearly independent, so squaring their condition costs nothing.
    centre = features.mean(1)
    gram = features @ features.T - features.shape[1] * np.outer(centre, centre)
    scale = np.sqrt(np.maximum(np.diag(gram), 0))
    # A feature that moves by no more than rounding takes no part: its mean may be many of its own standard errors from 0.
    scale = np.where(scale > ROUNDING * scale.max(), scale, np.inf)
    gram, weights = gram / np.outer(scale, scale) + 1e-12 * np.eye(len(gram)), centre / scale
    along = (features @ deviations.T) / scale[:, None]  # [p, n]
    solved = np.linalg.solve(gram, np.column_stack([along, weights]))
    return solved[:, :-1], along, weights, float(weights @ solved[:, -1]), scale


def skewness(values: np.ndarray, features: np.ndarray | None = None) -> float:
    """Sample skewness of ``values [runs]``, or of their residuals after a fit on ``features [p, runs]``; 0 if all are alike.

    >>> skewness(np.array([1.0, 2.0, 3.0])), round(skewness(np.array([0.0, 0.0, 0.0, 1.0])), 3)
    (0.0, 1.155)
    """
    left = values - values.mean()
    if features is not None and len(features):
        coefficients, *_, scale = _least_squares(left[None], features)
        left = left - coefficients[:, 0] / scale @ (features - features.mean(1, keepdims=True))
    spread = float(np.mean(left**2))
    # The rounding of equal values is no spread.
    return float(np.mean(left**3)) / spread**1.5 if spread > (1e-12 * float(np.abs(values).max())) ** 2 else 0.0


def student_quantile(freedom: int) -> float:
    """The 97.5% quantile of Student's t; NaN without a degree of freedom.

    >>> round(student_quantile(3), 6)
    3.182446
    """
    return float(scipy.special.stdtrit(freedom, 0.975)) if freedom >= 1 else float("nan")


def paired_test(differences: np.ndarray) -> tuple[float, float, float]:
    """Mean of ``differences [runs]``, half of its 95 % interval, and the two-sided p-value of "the mean is 0" (Student)."""
    runs, mean = len(differences), float(differences.mean())
    if runs < 2:
        return mean, float("nan"), 1.0
    error = float(differences.std(ddof=1)) / np.sqrt(runs)
    if error <= 1e-12 * max(1.0, abs(mean)):  # both played without chance
        return mean, 0.0, float(abs(mean) <= 1e-6)
    return mean, student_quantile(runs - 1) * error, student_p(mean / error, runs - 1)


def student_p(t: float, freedom: int) -> float:
    """Two-sided p-value of Student's t.

    >>> round(student_p(2.228, 10), 4)
    0.05
    """
    return 2 * float(scipy.special.stdtr(freedom, -abs(t)))


def holm(values: Sequence[float]) -> np.ndarray:
    """Holm's step-down adjustment: the chance of one or more false claims among all stays below the level.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(values, float)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p)))) if len(p) else p
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1)
    return adjusted
