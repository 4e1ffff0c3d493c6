"""Confidence sequences for means of bounded values: intervals and tests that hold at all numbers of runs at once.

The values of runs are independent, identically distributed and lie between two known limits, as the regret of a run does. Scaled to
[0, 1], each hypothesis "the mean is m" is tested by betting against it. With bets :math:`\\lambda_i \\ge 0` that depend on earlier
values only, both capitals

.. math:: K^\\pm_n(m) = \\prod_{i \\le n} \\big(1 \\pm \\lambda^\\pm_i(m)(X_i - m)\\big), \\quad
   \\lambda^+_i(m) = \\min(\\lambda_i, c/m), \\quad \\lambda^-_i(m) = \\min(\\lambda_i, c/(1-m)),

are non-negative martingales under the hypothesis. By Ville's inequality the probability that one of them ever reaches
:math:`2/\\alpha` is at most :math:`\\alpha`. The confidence sequence contains the m for which neither has. It holds at every n at once,
for any shape of the distribution, so that runs may be added until an interval is short or excludes 0.

Reference: Waudby-Smith & Ramdas, *Estimating means of bounded random variables by betting*, JRSS B 86 (2024): the hedged capital
process with predictable plug-in bets, :math:`\\lambda_i = \\sqrt{2\\log(2/\\alpha) / (\\hat\\sigma^2_{i-1}\\, i \\log(1 + i))}`.
"""

from collections.abc import Iterator

import numpy as np

TRUNCATION = 0.75  # c: no bet risks more than this share of the capital
STEPS = 40  # halvings of an interval: to 1e-12 of the range
ROUNDING = 1e-4  # of the range: values may be outside it by the rounding of float32


def bets(values: np.ndarray, level: float) -> np.ndarray:
    """λ_1 … λ_n for ``values [n]`` in [0, 1]; each depends on the values before it."""
    n = np.arange(1, len(values) + 1)
    mean = (0.5 + np.cumsum(values)) / (n + 1)
    spread = (0.25 + np.cumsum((values - mean) ** 2)) / (n + 1)
    before = np.append(0.25, spread[:-1])
    return np.sqrt(2 * np.log(2 / level) / (before * n * np.log(1 + n)))


def log_capital(values: np.ndarray, bets: np.ndarray, mean: float) -> float:
    """The largest value over n of log K⁺_n at ``mean``; at 1 - mean of 1 - values it is that of log K⁻_n."""
    limited = np.minimum(bets, TRUNCATION / mean) if mean > 0 else bets
    return float(np.max(np.cumsum(np.log1p(limited * (values - mean))), initial=0.0))


def _scaled(values: np.ndarray, limits: tuple[float, float]) -> np.ndarray:
    low, high = limits
    scaled = (np.asarray(values, np.float64) - low) / (high - low)
    if np.any(scaled < -ROUNDING) or np.any(scaled > 1 + ROUNDING) or not np.all(np.isfinite(scaled)):
        raise ValueError(
            f"regret of a run from {np.min(values):.6g} to {np.max(values):.6g}: it must lie between {low:.6g} and {high:.6g}, as "
            "expected(t) of the losses implies"
        )
    return np.clip(scaled, 0, 1)


def confidence_interval(values: np.ndarray, limits: tuple[float, float], level: float = 0.05) -> tuple[float, float]:
    """The mean of ``values [n]``, which lie within ``limits``: an interval that holds for all n at once with probability 1 - level.

    The intersection of the intervals after 1, …, n values, so that it never grows with n.

    >>> low, high = confidence_interval(np.full(1000, 0.25), (0.0, 1.0))
    >>> round(low, 3), round(high, 3)
    (0.248, 0.254)
    """
    low, high = limits
    if high <= low:
        return low, low  # the regret of a game with equal arms
    x = _scaled(values, limits)
    stakes, wall = bets(x, level), np.log(2 / level)

    def lowest(x: np.ndarray) -> float:
        """The largest m that is known to be rejected as too low: the capital falls with m."""
        rejected, kept = 0.0, 1.0
        for _ in range(STEPS):
            middle = (rejected + kept) / 2
            rejected, kept = (middle, kept) if log_capital(x, stakes, middle) >= wall else (rejected, middle)
        return rejected

    return low + (high - low) * lowest(x), high - (high - low) * lowest(1 - x)


def p_value(values: np.ndarray, limits: tuple[float, float], mean: float = 0.0, level: float = 0.05) -> float:
    """Two-sided p-value of "the mean is ``mean``" that holds at any n, also one chosen after a look at the values.

    ``level`` only tunes the bets.

    >>> p_value(np.full(100, 0.2), (-1.0, 1.0)) < 0.001
    True
    """
    low, high = limits
    if high <= low:
        return 1.0
    x, at = _scaled(values, limits), (mean - low) / (high - low)
    stakes = bets(x, level)
    return float(min(1.0, 2 * np.exp(-max(log_capital(x, stakes, at), log_capital(1 - x, stakes, 1 - at)))))


def looks(most: int, block: int, after: int = 0) -> Iterator[int]:
    """Numbers of runs at which to look: 1, 2, 3, 4, 6, 8, 12, 16, … blocks, above ``after``, and at last ``most``.

    >>> list(looks(3000, 256))
    [256, 512, 768, 1024, 1536, 2048, 3000]
    """
    blocks = 1
    while blocks * block < most:
        if blocks * block > after:
            yield blocks * block
        power = 1 << (blocks.bit_length() - 1)
        blocks += max(power // 2, 1)
    if most > after:
        yield most
