"""Means over runs with their errors: regression on control variates, intervals and tests by Student's t."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbandit.display import interval, sparkline, table
from jaxbandit.extras import need

BINS = 8  # of log-time, for the control variates of one recorded round
RUNS_PER_FEATURE = 10


@dataclasses.dataclass(frozen=True, eq=False)
class Estimate:
    """A mean over runs with its 95 % interval, for each recorded round."""

    rounds: np.ndarray  # [C]
    mean: np.ndarray  # [C]
    error: np.ndarray  # [C] standard error of the mean
    low: np.ndarray  # [C]
    high: np.ndarray  # [C]

    def __repr__(self) -> str:
        return f"Estimate({self.last()} at {self.rounds[-1]:,})"

    def last(self) -> str:
        """The mean and its interval at the last recorded round, such as ``689 [683, 695]``."""
        return interval(self.mean[-1], self.low[-1], self.high[-1])

    def sparkline(self) -> str:
        """The curve and its band as a small SVG, for notebooks."""
        return sparkline(self.rounds, self.mean, self.low, self.high)

    def _repr_html_(self) -> str:
        return table("Estimate", [("mean [95 % interval]", self.last()), ("at round", f"{self.rounds[-1]:,}")], self.sparkline())

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``: ``mean``, ``error``, ``low`` and ``high`` by ``round``. Needs the extra ``jaxbandit[data]``."""
        columns = {name: vars(self)[name] for name in ("mean", "error", "low", "high")}
        pandas = need("pandas", "data", "to_pandas")
        return pandas.DataFrame(columns, index=pandas.Index(self.rounds, name="round"))


def estimate(values: np.ndarray, rounds: np.ndarray, features: np.ndarray | None) -> Estimate:
    """The means of ``values [C, runs]`` with their intervals, given that ``features [C, K, runs]`` have mean 0."""
    rows = [
        intercept(row, None if features is None else increments(features[: c + 1], rounds[: c + 1]))
        for c, row in enumerate(values.astype(np.float64))
    ]
    mean, error, freedom = (np.array(column) for column in zip(*rows, strict=True))
    half = np.array([student_quantile(int(one)) for one in freedom]) * error
    return Estimate(rounds, mean, error, mean - half, mean + half)


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
        # Normal equations of standardised features: they are nearly independent, so squaring their condition costs nothing.
        centre = features.mean(1)
        gram = features @ features.T - runs * np.outer(centre, centre)
        scale = np.sqrt(np.maximum(np.diag(gram), 0))
        scale = np.where(scale > 0, scale, np.inf)  # a feature that never moves takes no part
        gram, weights = gram / np.outer(scale, scale) + 1e-12 * np.eye(len(gram)), centre / scale
        along = (features @ deviations.T) / scale[:, None]  # [p, n]
        solved = np.linalg.solve(gram, np.column_stack([along, weights]))
        coefficients, leverage = solved[:, :-1], float(weights @ solved[:, -1])
        shift, used = coefficients.T @ weights, len(features)
        left = np.maximum(left - np.einsum("pn,pn->n", coefficients, along), 0)
    freedom = runs - 1 - used
    if freedom < 1:
        return mean, np.full(len(mean), np.nan)
    return mean - shift, np.sqrt(left / freedom * (1 / runs + leverage))


def student_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t (Hill's expansion of it around the normal's; 1e-3 from 3 degrees on)."""
    if freedom < 1:
        return float("nan")
    if freedom == 1:
        return 12.706
    if freedom == 2:
        return 4.303
    z = 1.959963984540054
    terms = (z, (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return sum(term / freedom**power for power, term in enumerate(terms))


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
    """Two-sided p-value of Student's t by its finite series (Abramowitz & Stegun 26.7.3-4); about 1e-13 at the least.

    >>> round(student_p(2.228, 10), 4)
    0.05
    """
    angle = np.arctan(abs(t) / np.sqrt(freedom))
    square, odd = np.cos(angle) ** 2, freedom % 2
    k = np.arange(1, max(freedom // 2, 1))
    ratios = np.cumprod(np.concatenate([[1.0], square * (2 * k - 1 + odd) / (2 * k + odd)]))
    inside = np.sin(angle) * ratios.sum()
    if odd:
        inside = 2 / np.pi * (angle + (inside * np.cos(angle) if freedom > 1 else 0))
    return float(np.clip(1 - inside, 1e-13, 1))


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
