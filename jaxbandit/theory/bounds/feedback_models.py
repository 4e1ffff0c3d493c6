"""Upper bounds for other feedback models."""

import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.fields import is_numeric, show
from jaxbandit.theory.bounds.base import Bound, make_bound
from jaxbandit.theory.optimal_skipping import check_arms


def state_exp3(num_arms: int, num_signals: int, rounds: ArrayLike, delay: float) -> Bound:
    """Intermediate observations of S states, fixed delay d: the bound of ``BOLD(StateExp3(P, T/(d + 1), 0), d + 1)``.

    .. math:: \\sqrt{2(d + 1)\\,S\\,T \\log K}

    It has d + 1 copies, each with :math:`\\log K/\\eta + \\eta S T/(2(d + 1))` at its rate :math:`\\eta` (Baghi 2026, in whose program it stands; the
    steps are checked here).

    >>> from jaxbandit import theory
    >>> theory.bounds.state_exp3(num_arms=8, num_signals=4, rounds=10_000, delay=50).total.round(1)
    np.float64(2912.8)
    """
    check_arms(num_arms)
    _check(num_signals=num_signals, rounds=rounds, delay=delay)
    copies = delay + 1
    rate = np.sqrt(2 * np.log(num_arms) * copies / (num_signals * np.asarray(rounds)))
    penalty, stability = copies * np.log(num_arms) / rate, rate * num_signals * np.asarray(rounds) / 2
    return make_bound("proved", "Baghi 2026", penalty=penalty, stability=stability)


def state_exp3_single(num_arms: int, num_signals: float, rounds: ArrayLike, delay: float, rate: ArrayLike | None = None) -> Bound:
    """Intermediate observations of S states, fixed delay d: the bound of ``StateExp3`` itself, without copies.

    .. math:: \\frac{\\log K}{\\eta} + \\frac{\\eta}{2}\\big(3.3\\,(S - 1)\\,T + 2dT\\big) + d \\quad\\text{for } \\eta \\le \\frac{1}{e(d + 1)}

    Under this condition no probability grows by more than the factor e while a loss is outstanding. In place of S any bound on the
    effective dimension :math:`v_t` may be given. The theorem has the minimum over the rate;
    its proof has this line.

    Args:
      num_arms: K.
      num_signals: S, or a bound on the effective dimension.
      rounds: T.
      delay: d, fixed and at least 1.
      rate: :math:`\\eta`; by default that of :class:`jaxbandit.StateExp3`. A larger one than allowed raises an error.

    >>> from jaxbandit import theory
    >>> theory.bounds.state_exp3_single(num_arms=8, num_signals=4, rounds=10_000, delay=50).total.round(1)
    np.float64(2324.3)

    Reference: Baghi, *Pooling and Drift in Delayed Bandits*, 2026, Theorem 1 and its proof (edition with an appendix on it).
    """
    check_arms(num_arms)
    _check(num_signals=num_signals, rounds=rounds, delay=delay, **({} if rate is None else {"rate": rate}))
    if delay < 1:
        raise ValueError(f"delay={delay}: the bound is for fixed delays of 1 or more; use state_exp3 without delay")
    total = np.asarray(rounds)
    own = np.sqrt(2 * np.log(num_arms) / ((num_signals + delay) * total)) if rate is None else np.asarray(rate)
    if np.any(own > largest_state_rate(delay)):
        raise ValueError(
            f"rate={np.max(own):.4g}: the bound holds for rates up to 1/(e(d + 1)) = {largest_state_rate(delay):.4g}; give a smaller one, or more "
            "rounds"
        )
    stability = own / 2 * (3.3 * (num_signals - 1) + 2 * delay) * total
    return make_bound("proved", "Baghi 2026", penalty=np.log(num_arms) / own, stability=stability, outstanding=np.asarray(delay))


def largest_state_rate(delay: float) -> float:
    """1/(e(d + 1)), up to which rates of StateExp3 without copies are analysed."""
    return float(1 / (np.e * (delay + 1)))


def composite(num_arms: int, rounds: ArrayLike, delay: float) -> Bound:
    """Composite anonymous feedback over d + 1 rounds, CoLo over Tsallis-INF: order :math:`\\sqrt{(d + 1)KT}` (Cesa-Bianchi et al. 2022).

    >>> from jaxbandit import theory
    >>> theory.bounds.composite(num_arms=2, rounds=5000, delay=3).total
    np.float64(200.0)
    """
    check_arms(num_arms)
    _check(rounds=rounds, delay=delay)
    return make_bound(
        "order", "Cesa-Bianchi et al., JMLR 2022, abstract", total=np.sqrt((delay + 1) * num_arms * np.asarray(rounds))
    )


def limited_tracking(num_arms: int, rounds: ArrayLike, total_delay: ArrayLike, capacity: float) -> Bound:
    """At most C outstanding observations, total delay D, C at least of order log T.

    .. math:: \\sqrt{KT} + \\sqrt{DK/C} + \\sqrt{D \\log K}

    Ryabchenko, Attias & Roy (COLT 2025), where delays are known at action time; for their schedulers, not for
    :class:`jaxbandit.LimitedTracking`.

    >>> from jaxbandit import theory
    >>> theory.bounds.limited_tracking(num_arms=4, rounds=10_000, total_delay=1e5, capacity=10)["tracking"]
    array(200.)
    """
    check_arms(num_arms)
    _check(rounds=rounds, total_delay=total_delay, capacity=capacity)
    total = np.asarray(total_delay, float)
    return make_bound(
        "order",
        "Ryabchenko, Attias & Roy, COLT 2025, abstract",
        bandit=np.sqrt(num_arms * np.asarray(rounds)),
        tracking=np.sqrt(total * num_arms / capacity),
        delay=np.sqrt(total * np.log(num_arms)),
    )


LEAST = {"delay": 0, "total_delay": 0, "rate": 0}  # of other numbers: 1


def _check(**given: ArrayLike) -> None:
    for name, value in given.items():
        least = LEAST.get(name, 1)
        array = np.asarray(value, float) if is_numeric(value) and np.asarray(value).dtype != bool else np.array(np.nan)
        if not np.all(np.isfinite(array)) or np.any(array < least) or (name == "rate" and np.any(array == 0)):
            words = "above 0" if name == "rate" else f"{least} or more"
            raise ValueError(f"{name}={show(value)}: {name} is a number, {words}")
