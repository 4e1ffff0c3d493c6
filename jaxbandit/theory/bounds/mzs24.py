"""Masoudian, Zimmert & Seldin (NeurIPS 2024)."""

import numpy as np
from jax.typing import ArrayLike

from jaxbandit.theory.bounds.base import Bound, inverse_gaps, make_bound
from jaxbandit.theory.optimal_skipping import check_arms, outstanding, skipping_optimum, truncated


def mzs24_adversarial(delays: ArrayLike, num_arms: int) -> Bound:
    """MZS24, adversarial (recalled, not checked against the paper).

    .. math::
        \\sqrt{KT} + \\min_S\\Big(|S| + \\sqrt{D_{\\bar S} \\log K}\\Big) + S^* + K \\sigma_{max}, \\qquad
        S^* = \\min\\Big\\{d_{max} K^{2/3} \\log K,\\; \\min_S\\Big(|S| + \\sqrt{D_{\\bar S} K^{2/3} \\log K}\\Big)\\Big\\}

    :math:`S^*` bounds the number of skipped rounds.

    >>> from jaxbandit import theory
    >>> theory.bounds.mzs24_adversarial(np.full(100, 2), num_arms=4)["outstanding"]
    array(8.)
    """
    delays = truncated(delays)
    return make_bound(
        "order",
        "MZS24, recalled",
        bandit=np.sqrt(num_arms * len(delays)),
        skipping=skipping_optimum(delays, num_arms).value,
        skipped=mzs24_skipped(delays, num_arms),
        outstanding=num_arms * outstanding(delays).max(),
    )


def mzs24_stochastic(gaps: ArrayLike, delays: ArrayLike) -> Bound:
    """MZS24, stochastic (recalled, not checked against the paper).

    .. math:: \\sum_i \\Big(\\frac{\\log T}{\\Delta_i} + \\frac{\\sigma_{max}}{\\Delta_i \\log K}\\Big) + S^* + K \\sigma_{max}

    >>> from jaxbandit import theory
    >>> theory.bounds.mzs24_stochastic([0, 0.5], np.zeros(1000, int)).total.round(2)
    np.float64(13.82)
    """
    inverse, num_arms = inverse_gaps(gaps)
    delays = truncated(delays)
    sigma = outstanding(delays).max()
    return make_bound(
        "order",
        "MZS24, recalled",
        log=inverse * np.log(len(delays)),
        outstanding=inverse * sigma / np.log(num_arms) + num_arms * sigma,
        skipped=mzs24_skipped(delays, num_arms),
    )


def mzs24_skipped(delays: ArrayLike, num_arms: int) -> float:
    """S* of MZS24, see :func:`mzs24_adversarial`.

    >>> from jaxbandit import theory
    >>> theory.bounds.mzs24_skipped([0] * 50 + [40] + [0] * 49, num_arms=4)
    1.0
    """
    check_arms(num_arms)
    delays, scale = truncated(delays), num_arms ** (2 / 3)
    longest_first = np.sort(delays)[::-1]
    left = longest_first.sum() - np.concatenate([[0], np.cumsum(longest_first)])
    least = np.min(np.arange(len(left)) + np.sqrt(left * scale * np.log(num_arms)))
    return float(min(delays.max() * scale * np.log(num_arms), least))
