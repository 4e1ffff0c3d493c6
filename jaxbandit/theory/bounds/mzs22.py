"""Masoudian, Zimmert & Seldin (2022), "L…" a line of its source: Theorem 1, its Corollary, and the sums of its analysis."""

import dataclasses
from typing import NamedTuple

import numpy as np
from jax.typing import ArrayLike

from jaxbandit.theory.bounds.base import Bound, inverse_gaps, make_bound
from jaxbandit.theory.bounds.zs20 import Rates
from jaxbandit.theory.optimal_skipping import check_arms, check_sequence, outstanding, truncated


class Constants(NamedTuple):
    """:math:`\\eta_0` and :math:`\\gamma_0` of MZS22, Algorithm 1."""

    tsallis: float
    entropy: float


def mzs22_constants(max_delay: float, num_arms: int, linear: float = 10.0, factor: float = 24.0) -> Constants:
    """The constants of Algorithm 1 (L143; K, not K - 1).

    .. math::
        \\eta_0 = 10\\, d_{max} + \\frac{d_{max}^2}{(K^{1/3} \\log K)^2}, \\qquad \\gamma_0 = 24^2\\, d_{max}^2 K^{2/3} \\log K

    >>> from jaxbandit import theory
    >>> round(float(theory.bounds.mzs22_constants(max_delay=1, num_arms=8).entropy / np.log(8)))
    2304
    """
    check_arms(num_arms)
    log_k = np.log(num_arms)
    tsallis = linear * max_delay + (max_delay / (num_arms ** (1 / 3) * log_k)) ** 2
    return Constants(tsallis, (factor * max_delay) ** 2 * num_arms ** (2 / 3) * log_k)


def mzs22_rates(
    delays: ArrayLike, num_arms: int, max_delay: float | None = None, linear: float = 10.0, factor: float = 24.0
) -> Rates:
    """The inverse rates of MZS22 for a sequence of delays ``[T]``.

    .. math::
        \\eta_t^{-1} = \\sqrt{t + \\eta_0}, \\qquad
        \\gamma_t^{-1} = \\sqrt{\\frac{\\sum_{s \\le t} \\sigma_s + \\gamma_0}{\\log K}}

    ``max_delay`` is the input of the learner; by default the longest delay of the sequence.

    >>> from jaxbandit import theory
    >>> theory.bounds.mzs22_rates([0, 0, 0, 0], num_arms=4, max_delay=1).entropy.round(2)
    array([38.1, 38.1, 38.1, 38.1])
    """
    delays = check_sequence(delays)
    start = mzs22_constants(delays.max() if max_delay is None else max_delay, num_arms, linear, factor)
    waited = np.cumsum(outstanding(delays))
    rounds = np.arange(1, len(delays) + 1)
    return Rates(np.sqrt(rounds + start.tsallis), np.sqrt((waited + start.entropy) / np.log(num_arms)))


def mzs22_adversarial(delays: ArrayLike, num_arms: int) -> Bound:
    """Theorem 1, adversarial, D cut off at the horizon.

    .. math:: \\sqrt{KT} + \\sqrt{D \\log K} + d_{max} K^{1/3} \\log K

    >>> from jaxbandit import theory
    >>> theory.bounds.mzs22_adversarial(np.full(100, 3), num_arms=4)["bandit"]
    array(20.)
    """
    check_arms(num_arms)
    delays = truncated(delays)
    return make_bound(
        "order",
        "MZS22 Theorem 1",
        bandit=np.sqrt(num_arms * len(delays)),
        delay=np.sqrt(delays.sum() * np.log(num_arms)),
        longest=delays.max() * num_arms ** (1 / 3) * np.log(num_arms),
    )


def mzs22_stochastic(gaps: ArrayLike, rounds: ArrayLike, outstanding_max: float, max_delay: float) -> Bound:
    """Theorem 1, stochastic, over the gaps above 0.

    .. math:: \\sum_i \\Big(\\frac{\\log T}{\\Delta_i} + \\frac{\\sigma_{max}}{\\Delta_i \\log K}\\Big) + d_{max} K^{1/3} \\log K

    >>> from jaxbandit import theory
    >>> theory.bounds.mzs22_stochastic([0, 0.5, 0.5], rounds=1000, outstanding_max=0, max_delay=0)["log"].round(2)
    np.float64(27.63)
    """
    inverse, num_arms = inverse_gaps(gaps)
    return make_bound(
        "order",
        "MZS22 Theorem 1",
        log=inverse * np.log(rounds),
        outstanding=inverse * outstanding_max / np.log(num_arms),
        longest=max_delay * num_arms ** (1 / 3) * np.log(num_arms),
    )


class SelfBoundingConstants(NamedTuple):
    """The constants a, b, c of :math:`\\mathrm{Reg} \\le aA + bB + cC + D` (equation (10) of MZS22, there part of A, B, C)."""

    a: float
    b: float
    c: float


PRINTED = SelfBoundingConstants(14.0, 8.0, 2.0)  # L1003


# stability <= 2 Σ z(ℓ̂ - α)² (L280, L566) and z <= 2η x^{3/2}, z <= γx give 4η and 4γ where L284 has 2 and L984 has 1 and 2.
# With the drift of the key lemma: A: 2·(4·(2√2 + 2) + 2), B: 2·(4·2), C: 2·1.
RECOMPUTED = SelfBoundingConstants(16 * np.sqrt(2) + 20, 16.0, 2.0)


def self_bounding_limits(
    gaps: ArrayLike,
    rounds: ArrayLike,
    outstanding_max: float,
    arrivals_max: float,
    max_delay: float,
    constants: SelfBoundingConstants = RECOMPUTED,
) -> Bound:
    """Upper bounds of 4aA - Reg, 4bB - Reg and 4cC - Reg on every path, and 4D: their sum bounds the regret.

    .. math::
        \\sum_i \\frac{4a^2}{\\Delta_i} \\log\\Big(\\frac{T}{\\eta_0} + 1\\Big), \\qquad 64 b^2 a_{max} \\log K, \\qquad
        \\sum_i \\frac{128 c^2 \\sigma_{max}}{\\Delta_i \\log K}

    L312 has :math:`16a^2` in the first, which also holds. The second is the result of the proof of L319; its printed :math:`32b^2` holds as
    well, by keeping the -Reg that the proof drops. Without delay the logarithm is :math:`1 + \\log T`. Rests on the key lemma, whose printed proof has a gap at L820.

    >>> from jaxbandit import theory
    >>> limits = theory.bounds.self_bounding_limits([0, 0.5], 1000, outstanding_max=5, arrivals_max=1, max_delay=5)
    >>> sorted(limits.terms), limits.status
    (['A', 'B', 'C', 'D'], 'recomputed')
    """
    inverse, num_arms = inverse_gaps(gaps)
    start, log_k = mzs22_constants(max_delay, num_arms), np.log(num_arms)
    log_t = np.log(np.asarray(rounds) / start.tsallis + 1) if start.tsallis else 1 + np.log(rounds)
    return make_bound(
        "recomputed",
        "MZS22 Lemmas for A, B, C with the constants recomputed",
        A=4 * constants.a**2 * inverse * log_t,
        B=64 * constants.b**2 * arrivals_max * log_k,
        C=128 * constants.c**2 * outstanding_max * inverse / log_k,
        D=4 * self_bounding_remainder(num_arms, max_delay),
    )


def self_bounding_remainder(num_arms: int, max_delay: float) -> float:
    """D of equation (10), from L977 before it is rounded up.

    .. math:: 4\\sqrt{1 + \\eta_0}\\,(\\sqrt K - 1) + 2\\sqrt{\\gamma_0 \\log K} + d_{max}

    >>> from jaxbandit import theory
    >>> round(float(theory.bounds.self_bounding_remainder(num_arms=4, max_delay=0)), 6)
    4.0
    """
    start = mzs22_constants(max_delay, num_arms)
    return 4 * np.sqrt(1 + start.tsallis) * (np.sqrt(num_arms) - 1) + 2 * np.sqrt(start.entropy * np.log(num_arms)) + max_delay


def mzs22_printed(gaps: ArrayLike, rounds: ArrayLike, outstanding_max: float, arrivals_max: float, max_delay: float) -> Bound:
    """The final bound at L1020, letter by letter. It loses factors of 2 on the way (256 should be 512): not a certificate.

    .. math::
        \\sum_i \\frac{56^2}{\\Delta_i} \\log\\Big(\\frac{T}{\\eta_0} + 1\\Big) + 2048\\, a_{max} \\log K
        + \\sum_i \\frac{256\\, \\sigma_{max}}{\\Delta_i \\log K} + 16\\sqrt{\\eta_0(K - 1)} + 8\\sqrt{\\gamma_0 \\log K} + 4 d_{max}


    >>> from jaxbandit import theory
    >>> theory.bounds.mzs22_printed([0, 0.5], 1000, outstanding_max=5, arrivals_max=1, max_delay=5)["arriving"].round(1)
    np.float64(1419.6)
    """
    inverse, num_arms = inverse_gaps(gaps)
    start, log_k = mzs22_constants(max_delay, num_arms), np.log(num_arms)
    return make_bound(
        "as printed",
        "MZS22 L1020",
        log=56**2 * inverse * (np.log(np.asarray(rounds) / start.tsallis + 1) if start.tsallis else 1 + np.log(rounds)),
        arriving=2048 * arrivals_max * log_k,
        outstanding=256 * outstanding_max * inverse / log_k,
        start=16 * np.sqrt(start.tsallis * (num_arms - 1)) + 8 * np.sqrt(start.entropy * log_k) + 4 * max_delay,
    )


def fixed_delay_adversarial(delay: float, num_arms: int, rounds: ArrayLike) -> Bound:
    """Corollary, adversarial: :math:`\\sqrt{KT} + \\sqrt{dT \\log K}` for :math:`T \\ge d K^{2/3} \\log K` (L196 has :math:`K^{1/3}`, a misprint).

    >>> from jaxbandit import theory
    >>> theory.bounds.fixed_delay_adversarial(delay=10, num_arms=4, rounds=[100, 10_000])["bandit"]
    array([ 20., 200.])
    """
    check_arms(num_arms)
    rounds = np.asarray(rounds)
    return make_bound(
        "order",
        "MZS22 Corollary, first part",
        bandit=np.sqrt(num_arms * rounds),
        delay=np.sqrt(delay * rounds * np.log(num_arms)),
    )


def fixed_delay_stochastic(gaps: ArrayLike, rounds: ArrayLike, delay: float) -> Bound:
    """Corollary, stochastic: Theorem 1 with :math:`\\sigma_{max} = d_{max} = d`.

    >>> from jaxbandit import theory
    >>> theory.bounds.fixed_delay_stochastic([0, 0.5], rounds=1000, delay=10)["log"].round(2)
    np.float64(13.82)
    """
    return dataclasses.replace(mzs22_stochastic(gaps, rounds, delay, delay), source="MZS22 Corollary, second part")
