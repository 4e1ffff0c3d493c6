"""Outstanding observations of a sequence of delays, and the smallest cost that skipping can leave.

All of it is exact, on the host, in O(T log T): sequences of 10⁷ rounds take about a second. ``delays[t - 1]`` is the delay of
round t; :func:`truncated` cuts delays off at the horizon, as the paper does without loss of generality.
"""

import dataclasses

import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.fields import is_numeric, show

__all__ = ["Optimum", "arrivals", "outstanding", "outstanding_optimum", "skipping_optimum", "summary", "truncated"]


@dataclasses.dataclass(frozen=True)
class Optimum:
    """The least value over all sets S of skipped rounds, and the smallest S that reaches it: its longest delays."""

    value: float
    skipped: int  # |S|
    longest_kept: int  # the longest delay that is not skipped, 0 if all are


def truncated(delays: ArrayLike) -> np.ndarray:
    """The delays ``[T]`` with everything revealed at the end of the game: :math:`\\min(d_t, T - t)`.

    >>> from jaxbandit import theory
    >>> theory.optimal_skipping.truncated([5, 0, 5, 5])
    array([3, 0, 1, 0])
    """
    delays = check_sequence(delays)
    return np.minimum(delays, len(delays) - 1 - np.arange(len(delays)))


def outstanding(delays: ArrayLike) -> np.ndarray:
    """``[T]`` :math:`\\sigma_t = \\#\\{s < t : s + d_s \\ge t\\}`, the observations that are outstanding at the start of round t.

    >>> from jaxbandit import theory
    >>> theory.optimal_skipping.outstanding([2, 2, 2, 2, 0])
    array([0, 1, 2, 2, 2])
    """
    delays = check_sequence(delays)
    arrived = np.cumsum(arrivals(delays))
    # Before round t, t - 1 plays were made and those due up to round t - 1 have arrived.
    return np.arange(len(delays)) - np.concatenate([[0], arrived[:-1]])


def arrivals(delays: ArrayLike) -> np.ndarray:
    """``[T]`` :math:`a_t = \\#\\{s \\le t : s + d_s = t\\}`, the observations that arrive at the end of round t.

    >>> from jaxbandit import theory
    >>> theory.optimal_skipping.arrivals([2, 1, 0, 9])
    array([0, 0, 3, 0])
    """
    delays = check_sequence(delays)
    due = np.arange(len(delays)) + delays
    return np.bincount(due[due < len(delays)], minlength=len(delays))


def skipping_optimum(delays: ArrayLike, num_arms: int) -> Optimum:
    """:math:`\\min_S |S| + \\sqrt{D_{\\bar S} \\log K}`, with :math:`D_{\\bar S}` the total delay of the rounds that are not skipped. Exact.

    For a given |S| the longest delays are the ones to skip, so sorting replaces the search over subsets.

    >>> from jaxbandit import theory
    >>> theory.optimal_skipping.skipping_optimum([1000, 0, 0, 0], num_arms=4)
    Optimum(value=1.0, skipped=1, longest_kept=0)
    """
    check_arms(num_arms)
    longest_first = np.sort(check_sequence(delays))[::-1]
    left = longest_first.sum() - np.concatenate([[0], np.cumsum(longest_first)])
    return _least(np.sqrt(left * np.log(num_arms)), longest_first)


def outstanding_optimum(delays: ArrayLike) -> Optimum:
    """:math:`\\min_S |S| + d_{max}(\\bar S)`, which bounds :math:`\\sigma_{max}` (Lemma 3). Exact, by sorting.

    >>> from jaxbandit import theory
    >>> theory.optimal_skipping.outstanding_optimum([1000, 1, 1, 1])
    Optimum(value=2.0, skipped=1, longest_kept=1)
    """
    longest_first = np.sort(check_sequence(delays))[::-1]
    return _least(np.append(longest_first, 0), longest_first)


def summary(delays: ArrayLike) -> dict[str, int]:
    """The quantities of a sequence of delays in the bounds: T, D (cut off at the horizon), :math:`d_{max}`, :math:`\\sigma_{max}`, :math:`a_{max}`.

    >>> from jaxbandit import theory
    >>> theory.optimal_skipping.summary([2, 1, 0, 9])
    {'rounds': 4, 'total': 3, 'longest': 2, 'outstanding_max': 2, 'arrivals_max': 3}
    """
    delays = truncated(delays)
    return {
        "rounds": len(delays),
        "total": int(delays.sum()),
        "longest": int(delays.max()),
        "outstanding_max": int(outstanding(delays).max()),
        "arrivals_max": int(arrivals(delays).max()),
    }


def _least(cost_of_the_rest: np.ndarray, longest_first: np.ndarray) -> Optimum:
    """The least n + cost[n], n = 0 … T."""
    values = np.arange(len(cost_of_the_rest)) + cost_of_the_rest
    skipped = int(np.argmin(values))
    kept = int(longest_first[skipped]) if skipped < len(longest_first) else 0
    return Optimum(float(values[skipped]), skipped, kept)


def check_sequence(delays: ArrayLike) -> np.ndarray:
    """``delays`` as int64, or one sentence about what is wrong with them."""
    array = np.asarray(delays) if is_numeric(delays) else np.empty(0)
    if array.ndim != 1 or array.size == 0 or np.any(array < 0) or np.any(array != np.floor(array)):
        raise ValueError(f"delays={show(delays)}: delays are a sequence of whole numbers, 0 or more, one for each round")
    return array.astype(np.int64)


def check_arms(num_arms: int) -> None:
    """One sentence if the bounds have no meaning for so many arms."""
    if not isinstance(num_arms, int | np.integer) or isinstance(num_arms, bool) or num_arms < 2:
        raise ValueError(f"num_arms={show(num_arms)}: the bounds need a whole number of arms, 2 or more")
