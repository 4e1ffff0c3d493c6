"""Upper bounds of the other learners."""

import math
from typing import Literal

import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.fields import show
from jaxbandit.theory.bounds.base import Bound, inverse_gaps, make_bound
from jaxbandit.theory.optimal_skipping import check_arms, check_sequence, truncated


def tsallis_inf_adversarial(num_arms: int, rounds: ArrayLike, estimator: Literal["iw", "rv"] = "iw") -> Bound:
    """No delays: "iw" :math:`4\\sqrt{KT} + 1`, "rv" :math:`2\\sqrt{KT} + 10 K \\log T + 16` (Zimmert & Seldin, JMLR 2021).

    >>> from jaxbandit import theory
    >>> theory.bounds.tsallis_inf_adversarial(num_arms=4, rounds=100).total
    np.float64(81.0)
    """
    check_arms(num_arms)
    bandit = np.sqrt(num_arms * np.asarray(rounds))
    rest = {"iw": 1.0, "rv": 10 * num_arms * np.log(rounds) + 16}
    if estimator not in rest:
        raise ValueError(f"estimator={show(estimator)}: the estimator is 'iw' or 'rv'")
    return make_bound(
        "proved", "Zimmert & Seldin, JMLR 2021", bandit=(4 if estimator == "iw" else 2) * bandit, rest=rest[estimator]
    )


def tsallis_inf_stochastic(gaps: ArrayLike, rounds: ArrayLike) -> Bound:
    """No delays, "iw": :math:`\\sum_i (4 \\log T + 20)/\\Delta_i + 4\\sqrt K` (recalled, not checked against the paper).

    >>> from jaxbandit import theory
    >>> theory.bounds.tsallis_inf_stochastic([0, 0.5], rounds=1000)["log"].round(2)
    np.float64(95.26)
    """
    inverse, num_arms = inverse_gaps(gaps)
    return make_bound(
        "proved", "Zimmert & Seldin, JMLR 2021, recalled", log=inverse * (4 * np.log(rounds) + 20), rest=4 * np.sqrt(num_arms)
    )


def dew(delays: ArrayLike, num_arms: int) -> Bound:
    """DEW at its rate, capped at :math:`1/(4e\\, d_{max})` (Thune et al. 2019; recalled).

    .. math:: \\eta \\Big(\\frac{KTe}{2} + D\\Big) + \\frac{\\log K}{\\eta}, \\qquad \\eta = \\sqrt{\\frac{\\log K}{KTe/2 + D}}

    >>> from jaxbandit import theory
    >>> theory.bounds.dew(np.zeros(1000, int), num_arms=4).total.round(1)
    np.float64(173.6)
    """
    check_arms(num_arms)
    delays = truncated(delays)
    load = num_arms * len(delays) * np.e / 2 + delays.sum()
    rate = np.sqrt(np.log(num_arms) / load)
    rate = min(rate, 1 / (4 * np.e * delays.max())) if delays.max() else rate
    return make_bound("proved", "Thune et al. 2019, recalled", stability=rate * load, penalty=np.log(num_arms) / rate)


def delayed_exp3(delays: ArrayLike, num_arms: int) -> Bound:
    """Delay-adaptive Exp3: :math:`3\\sqrt{\\log K\\,(KT/2 + D)}`, after György & Joulani (2021).

    >>> from jaxbandit import theory
    >>> theory.bounds.delayed_exp3(np.zeros(1000, int), num_arms=4).total.round(1)
    np.float64(158.0)
    """
    check_arms(num_arms)
    delays = truncated(delays)
    total = 3 * np.sqrt(np.log(num_arms) * (num_arms * len(delays) / 2 + delays.sum()))
    return make_bound("proved", "after György & Joulani 2021; this form derived", total=total)


def delayed_hedge(delays: ArrayLike, num_arms: int) -> Bound:
    r"""Hedge with full information and delays, :class:`jaxbandit.DelayedHedge`: :math:`\sqrt{(T + 2D) \log K}`; derived in ``docs/theory.md``.

    >>> from jaxbandit import theory
    >>> theory.bounds.delayed_hedge(np.zeros(1000, int), num_arms=4).total.round(1)
    np.float64(37.2)
    """
    check_arms(num_arms)
    delays = truncated(delays)
    total = np.sqrt((len(delays) + 2 * delays.sum()) * np.log(num_arms))
    return make_bound("proved", "derived", total=total)


def doubling_skipper(delays: ArrayLike, num_arms: int) -> Bound:
    r"""Skipper with the doubling scheme, :class:`jaxbandit.DoublingSkipper`: :math:`3\sqrt{2^m}` for each epoch :math:`m`.

    Which epochs there are follows from the delays. In each epoch the skipped rounds, the penalty and the stability of DEW are at most
    :math:`\sqrt{2^m}` each (Thune et al. 2019; recalled).

    >>> from jaxbandit import theory
    >>> theory.bounds.doubling_skipper(np.zeros(1000, int), num_arms=4).total.round(1)
    np.float64(626.6)
    """
    check_arms(num_arms)
    delays, log_k = check_sequence(delays), np.log(num_arms)
    epochs = [math.ceil(math.log2(np.e * num_arms * log_k))]
    length, skipped, total = 0, 0, 0.0

    def counted(delay: int) -> tuple[int, int, float]:
        skips = delay >= np.sqrt(2.0 ** epochs[-1]) / (4 * np.e * log_k)
        return length + 1, skipped + skips, total + (0 if skips else delay)

    for delay in delays.tolist():
        after = counted(delay)
        if max(after[1] ** 2, (np.e * num_arms * after[0] / 2 + after[2]) * log_k) > 2.0 ** epochs[-1]:
            epochs.append(epochs[-1] + 1)
            length, skipped, total = 0, 0, 0.0
            after = counted(delay)
        length, skipped, total = after
    return make_bound("proved", "Thune et al. 2019, recalled", epochs=3 * np.sqrt(2.0 ** np.array(epochs)).sum())


def delayed_ucb1(gaps: ArrayLike, rounds: ArrayLike, outstanding_max: float) -> Bound:
    """Delayed UCB1 (Joulani et al. 2013; recalled).

    .. math:: \\sum_i \\Big(\\frac{8 \\log T}{\\Delta_i} + 3.5 \\Delta_i\\Big) + \\sigma_{max} \\sum_i \\Delta_i

    >>> from jaxbandit import theory
    >>> theory.bounds.delayed_ucb1([0, 0.5], rounds=1000, outstanding_max=10)["outstanding"]
    array(5.)
    """
    inverse, _ = inverse_gaps(gaps)
    total = float(np.sum(gaps))
    return make_bound(
        "proved",
        "Joulani et al. 2013, recalled",
        log=8 * inverse * np.log(rounds),
        rest=3.5 * total,
        outstanding=outstanding_max * total,
    )
