"""Zimmert & Seldin (AISTATS 2020): the bound for any rates of FTRL, and their own rates with and without skipping."""

from typing import NamedTuple

import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.fields import show
from jaxbandit.theory.bounds.base import Bound, make_bound
from jaxbandit.theory.optimal_skipping import check_arms, outstanding, skipping_optimum, truncated


class Rates(NamedTuple):
    """Inverse learning rates, ``[T]`` each."""

    tsallis: np.ndarray  # 1/η_t
    entropy: np.ndarray  # 1/γ_t, 0 where there was no delay yet


def zs20_rates(delays: ArrayLike, num_arms: int) -> Rates:
    """ZS20 without skipping.

    .. math:: \\eta_t^{-1} = \\sqrt t, \\qquad \\gamma_t^{-1} = \\sqrt{\\frac{2 \\sum_{s \\le t} \\sigma_s}{\\log K}}

    >>> from jaxbandit import theory
    >>> theory.bounds.zs20_rates([1, 1, 1, 1], num_arms=4).entropy.round(2)
    array([0.  , 1.2 , 1.7 , 2.08])
    """
    check_arms(num_arms)
    waited = np.cumsum(outstanding(delays))
    return Rates(np.sqrt(np.arange(1, len(waited) + 1)), np.sqrt(2 * waited / np.log(num_arms)))


def adversarial(rates: Rates, delays: ArrayLike, num_arms: int) -> Bound:
    """The bound for **any** non-increasing rates, at every horizon: terms are arrays ``[T]`` (L334-338; proved in ZS20).

    .. math:: \\mathrm{Reg}_T \\le \\sum_t \\eta_t \\sqrt K + \\sum_t \\gamma_t \\sigma_t + \\frac{2\\sqrt K}{\\eta_T} + \\frac{\\log K}{\\gamma_T}

    The curve to draw in the adversarial regime.

    >>> from jaxbandit import theory
    >>> delays = np.full(1000, 10)
    >>> bound = theory.bounds.adversarial(theory.bounds.mzs22_rates(delays, 4), delays, 4)
    >>> sorted(bound.terms), bound.total.shape
    (['entropy_penalty', 'entropy_stability', 'tsallis_penalty', 'tsallis_stability'], (1000,))
    """
    check_arms(num_arms)
    sigma = outstanding(delays)
    for name, inverse in zip(rates._fields, rates, strict=True):
        if np.shape(inverse) != sigma.shape or np.any(np.diff(inverse) < 0):
            raise ValueError(f"rates.{name}={show(inverse)}: inverse rates are one number for each round and never fall")
    waiting = sigma > 0
    gamma_sigma = np.where(waiting, sigma / np.where(waiting, rates.entropy, 1), 0)
    return make_bound(
        "proved",
        "MZS22 L334-338, from ZS20; any non-increasing rates",
        tsallis_stability=np.cumsum(1 / rates.tsallis) * np.sqrt(num_arms),
        entropy_stability=np.cumsum(gamma_sigma),
        tsallis_penalty=2 * rates.tsallis * np.sqrt(num_arms),
        entropy_penalty=rates.entropy * np.log(num_arms),
    )


def zs20_simple(delays: ArrayLike, num_arms: int) -> Bound:
    """ZS20 without skipping: :math:`4\\sqrt{KT} + \\sqrt{8 D \\log K}`.

    >>> from jaxbandit import theory
    >>> theory.bounds.zs20_simple(np.zeros(100, int), num_arms=4).total
    np.float64(80.0)
    """
    check_arms(num_arms)
    delays = truncated(delays)
    return make_bound(
        "proved", "ZS20", bandit=4 * np.sqrt(num_arms * len(delays)), delay=np.sqrt(8 * delays.sum() * np.log(num_arms))
    )


def zs20_skipping(delays: ArrayLike, num_arms: int) -> Bound:
    """ZS20 with skipping.

    .. math:: 4\\sqrt{KT} + 10 \\max\\Big\\{\\min_S\\Big(|S| + \\sqrt{D_{\\bar S} \\log K}\\Big),\\; 2 \\log K\\Big\\}

    >>> from jaxbandit import theory
    >>> lost = [0] * 99 + [10**6] + [0] * 900  # one delay that outlasts the game
    >>> bool(theory.bounds.zs20_skipping(lost, num_arms=4).total < theory.bounds.zs20_simple(lost, num_arms=4).total)
    True
    """
    delays = truncated(delays)
    least = skipping_optimum(delays, num_arms).value
    return make_bound(
        "proved", "ZS20", bandit=4 * np.sqrt(num_arms * len(delays)), skipping=10 * max(least, 2 * np.log(num_arms))
    )
