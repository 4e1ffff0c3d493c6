"""Confidence sequences for means of bounded values: intervals and tests that hold at all numbers of runs at once.

The values of runs are independent, identically distributed and lie between two known limits, as the regret of a run does. Scaled to
[0, 1], each hypothesis "the mean is m" is tested by betting against it. A share f of the largest possible bet is staked on every value,
and the capital is divided among several f with weights w:

.. math:: K^+_n(m) = \\sum_f w_f \\prod_{i \\le n} \\Big(1 + f\\,\\frac{X_i - m}{m}\\Big), \\quad
   K^-_n(m) = \\sum_f w_f \\prod_{i \\le n} \\Big(1 - f\\,\\frac{X_i - m}{1 - m}\\Big).

Both are non-negative martingales under the hypothesis, with mean 1. By Ville's inequality the probability that one of them ever reaches
:math:`2/\\alpha` is at most :math:`\\alpha`. The confidence sequence contains the m for which neither has. It holds at every n at once,
for any shape of the distribution, so that runs may be added until an interval is short or excludes 0.

The best share is unknown and constant, so that a mixture is behind it by the logarithm of a weight only. Bets that shrink with n lose
more: with :math:`\\lambda_i = \\sqrt{2\\log(2/\\alpha)/(\\hat\\sigma^2_{i-1}\\, i \\log(1+i))}`, 1.7 times as many comparisons with rare failures
stay undecided (docs/comparing.md).

Reference: Waudby-Smith & Ramdas, *Estimating means of bounded random variables by betting*, JRSS B 86 (2024): capitals, hedging of both
sides, and mixtures over a grid of bets. The grid and its weights are chosen here.
"""

from collections.abc import Iterator

import numpy as np

# Shares of the largest bet. Regrets have a wide range beside their spread, for which the best shares are large.
SHARES = np.append(15 / 16, 0.5 ** np.arange(1, 12))
WEIGHTS = np.append([1.0, 1.0, 1.0], [1 / ((k - 1) * k) for k in range(3, len(SHARES))])
WEIGHTS = WEIGHTS / WEIGHTS.sum()
STEPS = 24  # halvings of an interval: to 1e-7 of the range
CHUNK = 1 << 14  # values at once
ROUNDING = 1e-4  # of the range: values may be outside it by the rounding of float32


def log_capital(values: np.ndarray, mean: float, enough: float = np.inf) -> float:
    """The largest value over n of log K⁺_n at ``mean``, or one that is ``enough``; at 1 - mean of 1 - values it is that of log K⁻_n."""
    if mean <= 0:
        return np.inf if np.any(values > 0) else 0.0
    before, most = np.log(WEIGHTS), 0.0
    for first in range(0, len(values), CHUNK):
        gains = values[first : first + CHUNK] / mean - 1
        logs = before[:, None] + np.cumsum(np.log1p(SHARES[:, None] * gains), 1)  # [shares, values]
        top = logs.max(0)
        most, before = max(most, float(np.max(top + np.log(np.exp(logs - top).sum(0))))), logs[:, -1]
        if most >= enough:
            break
    return most


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
    (0.249, 0.254)
    """
    low, high = limits
    if high <= low:
        return low, low  # the regret of a game with equal arms
    x = _scaled(values, limits)
    wall = np.log(2 / level)

    def lowest(x: np.ndarray) -> float:
        """The largest m that is known to be rejected as too low: the capital falls with m."""
        rejected, kept = 0.0, 1.0
        for _ in range(STEPS):
            middle = (rejected + kept) / 2
            rejected, kept = (middle, kept) if log_capital(x, middle, wall) >= wall else (rejected, middle)
        return rejected

    return low + (high - low) * lowest(x), high - (high - low) * lowest(1 - x)


def p_value(values: np.ndarray, limits: tuple[float, float], mean: float = 0.0) -> float:
    """Two-sided p-value of "the mean is ``mean``" that holds at any n, also one chosen after a look at the values.

    >>> p_value(np.full(100, 0.2), (-1.0, 1.0)) < 0.001
    True
    """
    low, high = limits
    if high <= low:
        return 1.0
    x, at = _scaled(values, limits), (mean - low) / (high - low)
    return float(min(1.0, 2 * np.exp(-max(log_capital(x, at), log_capital(1 - x, 1 - at)))))


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
