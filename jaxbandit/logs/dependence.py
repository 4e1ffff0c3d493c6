"""Delays of conversions by arm: a test of whether they differ, and partial pooling where an arm has few of them."""

import dataclasses

import numpy as np
import scipy.special

ENOUGH = 20  # conversions of each arm, below which a negative test is inconclusive
LEVEL = 0.05
BINS = 10
STRENGTHS = np.geomspace(1, 1000, 31)  # conversions that the pooled delays may be worth


@dataclasses.dataclass(frozen=True, eq=False)
class Dependence:
    """Whether the delays of conversions differ between arms.

    ``p_value`` is of the Kruskal–Wallis test, NaN where fewer than two arms have conversions.
    """

    arms: list[str]
    conversions: np.ndarray  # [K]
    medians: np.ndarray  # [K] nanoseconds, NaN without a conversion
    late: np.ndarray  # [K] nanoseconds, the 90th percentile
    p_value: float

    @property
    def differs(self) -> bool | None:
        """True: the delays differ by arm; False: no difference was found; None: the log has too few conversions."""
        if self.p_value < LEVEL:
            return True
        return None if self.conversions.min() < ENOUGH else False

    def sentence(self) -> str:
        """The result of the test, and its use in a simulation."""
        if len(self.arms) == 1:
            return "The log has one arm, so delays cannot differ by arm."
        test = "" if np.isnan(self.p_value) else f" (Kruskal–Wallis test, p = {self.p_value:.2g})"
        if self.differs is None:
            rare = int(self.conversions.argmin())
            return (
                f"The log cannot tell whether delays differ by arm: {self.arms[rare]!r} has {self.conversions[rare]} conversions"
                f"{test}. Arms with few conversions borrow the delays of all arms."
            )
        if not self.differs:
            return f"No difference between the delays of the arms was found{test}."
        slow, fast = int(np.nanargmax(self.medians)), int(np.nanargmin(self.medians))
        return (
            f"Delays differ by arm{test}: half of the conversions of {self.arms[slow]!r} take longer than "
            f"{duration(self.medians[slow])}, of {self.arms[fast]!r} {duration(self.medians[fast])}."
        )


def dependence(arms: list[str], which: np.ndarray, delays: np.ndarray) -> Dependence:
    """The test for conversions with ``delays [n]`` in nanoseconds of the arms number ``which [n]``."""
    groups = [delays[which == arm] for arm in range(len(arms))]
    medians, late = (np.array([np.quantile(group, level) if len(group) else np.nan for group in groups]) for level in (0.5, 0.9))
    return Dependence(arms, np.array([len(group) for group in groups]), medians, late, _kruskal_wallis(which, delays, len(arms)))


def _kruskal_wallis(which: np.ndarray, values: np.ndarray, num_arms: int) -> float:
    """The p-value of the test with the correction for ties, by its χ² limit; NaN where there is nothing to compare."""
    counts, total = np.bincount(which, minlength=num_arms), len(which)
    _, place, ties = np.unique(values, return_inverse=True, return_counts=True)
    if (counts > 0).sum() < 2 or len(ties) < 2:
        return float("nan")
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[place]
    sums = np.bincount(which, ranks, num_arms)[counts > 0]
    statistic = 12 / (total * (total + 1)) * (sums**2 / counts[counts > 0]).sum() - 3 * (total + 1)
    corrected = statistic / (1 - (ties**3.0 - ties).sum() / (total**3.0 - total))
    return float(scipy.special.chdtrc((counts > 0).sum() - 1, max(corrected, 0.0)))


def pooling(which: np.ndarray, delays: np.ndarray, num_arms: int) -> np.ndarray:
    """Posterior probabilities of ``STRENGTHS``: the number m of conversions that the pooled delays count for in each arm.

    The delays of an arm are a draw from a Dirichlet process around the pooled ones with concentration m. The posterior of m is
    computed on ``BINS`` quantile bins, from a prior that is uniform in log m.
    """
    if not len(delays):
        return np.full(len(STRENGTHS), 1 / len(STRENGTHS))
    edges = np.unique(np.quantile(delays, np.arange(1, BINS) / BINS, method="inverted_cdf"))
    bins = np.searchsorted(edges, delays, side="left")
    table = np.zeros((num_arms, len(edges) + 1))
    np.add.at(table, (which, bins), 1)
    base = table.sum(0)[table.sum(0) > 0] / table.sum()
    table = table[:, table.sum(0) > 0]
    strength = STRENGTHS[:, None, None]
    log_gamma = scipy.special.gammaln
    by_bin = (log_gamma(strength * base + table) - log_gamma(strength * base)).sum((1, 2))
    by_arm = (log_gamma(STRENGTHS[:, None]) - log_gamma(STRENGTHS[:, None] + table.sum(1))).sum(1)
    weights = np.exp(by_bin + by_arm - (by_bin + by_arm).max())
    return weights / weights.sum()


def quantiles(values: np.ndarray, weights: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Quantiles of ``values [n]`` with ``weights [n]``, each one of the values."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    return values[order][np.minimum(np.searchsorted(below, levels * below[-1]), len(values) - 1)]


def by_arm(which: np.ndarray, waits: np.ndarray, strength: np.ndarray, num_arms: int, points: int) -> np.ndarray:
    """``points`` quantiles ``[K, points]`` of the waits of each arm, pooled with those of all arms; ``strength`` from :func:`pooling`."""
    levels = (np.arange(points) + 0.5) / points
    found = np.empty((num_arms, points), waits.dtype)
    for arm in range(num_arms):
        own = which == arm
        share = float((strength * own.sum() / (own.sum() + STRENGTHS)).sum())  # of the arm's own conversions in its delay model
        weights = np.full(len(waits), (1 - share) / len(waits))
        weights[own] += share / max(own.sum(), 1)
        found[arm] = quantiles(waits, weights, levels)
    return found


def duration(nanoseconds: float) -> str:
    """A length of time with its unit, to two digits or in whole units.

    >>> duration(4 * 86400e9), duration(5400e9), duration(2e9), duration(400 * 86400e9), duration(float("nan"))
    ('4 days', '1.5 hours', '2 seconds', '400 days', '–')
    """
    if not np.isfinite(nanoseconds):
        return "–"
    units = (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))
    name, seconds = next((one for one in units if nanoseconds >= one[1] * 1e9), units[-1])
    value = nanoseconds / seconds / 1e9
    return f"{value:.0f} {name}" if value >= 10 else f"{value:.2g} {name}"
