"""Lower bounds on the regret."""

import dataclasses

import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.fields import is_numeric, show
from jaxbandit.theory.bounds.base import Bound, inverse_gaps, make_bound
from jaxbandit.theory.optimal_skipping import check_arms, check_sequence


def lai_robbins(means: ArrayLike, rounds: ArrayLike) -> Bound:
    """The smallest slope in log T of a consistent learner under Bernoulli losses (Lai & Robbins 1985).

    .. math:: \\sum_i \\frac{\\Delta_i}{\\mathrm{kl}(m_i, m^*)} \\log T

    Asymptotic: a slope, not a bound at finite T.

    >>> from jaxbandit import theory
    >>> theory.bounds.lai_robbins([0.25, 0.75], np.e).total.round(4)
    np.float64(0.9102)
    """
    means = np.asarray(means, float)
    best = means.min()
    worse = means[means > best]
    if not (means.ndim == 1 and np.all((means > 0) & (means < 1)) and worse.size):
        raise ValueError(f"means={show(means)}: mean losses are numbers between 0 and 1, not all the same")
    divergence = worse * np.log(worse / best) + (1 - worse) * np.log((1 - worse) / (1 - best))
    return make_bound("order", "Lai & Robbins 1985, slope in log T", log=np.sum((worse - best) / divergence) * np.log(rounds))


def bandit_lower(num_arms: int, rounds: ArrayLike) -> Bound:
    """No bandit learner does better against all adversaries than :math:`\\min\\{\\sqrt{KT}, T\\}/20` (Auer et al. 2002; no delays needed).

    >>> from jaxbandit import theory
    >>> theory.bounds.bandit_lower(num_arms=4, rounds=10_000).total
    np.float64(10.0)
    """
    check_arms(num_arms)
    rounds = np.asarray(rounds, float)
    return make_bound(
        "proved", "Auer et al. 2002, Theorem 5.1, recalled", bandit=np.minimum(np.sqrt(num_arms * rounds), rounds) / 20
    )


def stochastic_lower(gaps: ArrayLike, rounds: ArrayLike, delay: float) -> Bound:
    """Fixed delay, stochastic losses.

    .. math:: \\frac{d}{K} \\sum_i \\Delta_i + \\sum_i \\frac{\\log T}{\\Delta_i}

    In the first d rounds nothing is observed, and an algorithm that treats the arms alike pays the mean gap in each. The paper (L205) has d in
    place of the first term, which is more than can be forced: with two arms, gap 0.05 and d = 1000 it gives 1000 where the first d
    rounds cost 25.

    >>> from jaxbandit import theory
    >>> theory.bounds.stochastic_lower([0, 0.5], rounds=1000, delay=10).total.round(2)
    np.float64(16.32)
    """
    inverse, num_arms = inverse_gaps(gaps)
    return make_bound("order", "MZS22 L205, corrected", delay=delay * np.sum(gaps) / num_arms, log=inverse * np.log(rounds))


def full_information_lower(ranges: ArrayLike, num_arms: int) -> Bound:
    """Theorem 9: no full-information learner does better when the losses of round t lie in :math:`[0, L_t]`.

    .. math:: \\max\\Big\\{\\tfrac12 \\sum_{n \\le N} L_{(n)},\\; \\tfrac1{32} \\sqrt{\\sum_{n > N} L_{(n)}^2 \\log K}\\Big\\}

    with :math:`L_{(1)} \\ge L_{(2)} \\ge \\dots` and :math:`N = \\lfloor \\log_2 K \\rfloor` (L357 has the order the wrong way round, and its second
    sum should start one later). The two terms are alternatives: ``total`` is the larger.

    >>> from jaxbandit import theory
    >>> theory.bounds.full_information_lower(np.ones(1000), 4).total.round(3)
    np.float64(1.162)
    """
    check_arms(num_arms)
    array = np.asarray(ranges, float) if is_numeric(ranges) else np.empty(0)
    if array.ndim != 1 or array.size == 0 or np.any(~np.isfinite(array)) or np.any(array < 0):
        raise ValueError(f"ranges={show(ranges)}: loss ranges are a sequence of numbers, 0 or more, one for each round")
    largest_first, top = np.sort(array)[::-1], int(np.log2(num_arms))
    halving = largest_first[:top].sum() / 2
    spread = np.sqrt((largest_first[top:] ** 2).sum() * np.log(num_arms)) / 32
    return _Larger({"halving": np.asarray(halving), "spread": np.asarray(spread)}, "proved", "MZS22 Theorem 9")


class _Larger(Bound):
    @property
    def total(self) -> np.ndarray:
        return np.max(list(self.terms.values()), 0)


def buckets(delays: ArrayLike) -> np.ndarray:
    """First rounds :math:`b_1 = 1, b_2, \\dots` of the buckets of Corollary 10: all actions of a bucket precede all its feedback.

    .. math:: b_{m+1} = 1 + \\min_{t \\in B_m}(t + d_t)

    A round joins the bucket unless some feedback of the bucket has arrived before it. (With L373 as printed, buckets of rounds
    without delay would be empty.)

    >>> from jaxbandit import theory
    >>> theory.bounds.buckets([2, 2, 2, 1, 0, 0])
    array([1, 4, 6])
    """
    delays = check_sequence(delays)
    starts, first_due = [], 0  # the end of this round brings the bucket's first feedback
    for t, delay in enumerate(delays, start=1):
        if t > first_due:
            starts.append(t)
            first_due = t + delay
        first_due = min(first_due, t + delay)
    return np.array(starts)


def delayed_lower(delays: ArrayLike, num_arms: int) -> Bound:
    """Corollary 10: with all losses of a bucket equal, the game is the one of Theorem 9 with ranges :math:`|B_m|`.

    Proved for any delays; that it is of the order :math:`\\min_S(|S| + \\sqrt{D_{\\bar S} \\log K})` needs them to be non-increasing.

    >>> from jaxbandit import theory
    >>> theory.bounds.delayed_lower(np.full(1000, 9), num_arms=4).total.round(2)
    np.float64(10.0)
    """
    delays = check_sequence(delays)
    sizes = np.diff(np.append(buckets(delays), len(delays) + 1))
    return dataclasses.replace(full_information_lower(sizes, num_arms), source="MZS22 Corollary 10")
