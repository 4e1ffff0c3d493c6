"""Which rounds are recorded: how many and how they are spaced, or the rounds themselves."""

from typing import Any

import numpy as np

from jaxbandit._core.fields import is_numeric, show

MOST_RECORDS = 10**6  # each is a number for each run


def check_record(record: Any, after: int, rounds: int) -> np.ndarray:
    """The rounds to record, as an array; they ascend from ``after + 1`` and end at ``rounds``."""
    if not is_numeric(record) or np.ndim(record) != 1 or np.size(record) == 0 or np.asarray(record).dtype.kind == "b":
        raise ValueError(f"record={show(record)}: give how many rounds to record, or a list of them")
    array = np.asarray(record)
    numbers = array.astype(np.float64)  # differences of unsigned numbers would wrap; floats hold every round exactly
    if np.any(numbers != np.floor(numbers)) or np.any(np.diff(numbers) <= 0) or numbers[0] <= after or numbers[-1] > rounds:
        raise ValueError(
            f"record={show(record)}: recorded rounds are whole numbers, ascending, between {after + 1} and rounds={rounds}"
        )
    array = array.astype(np.int64)
    return array if array[-1] == rounds else np.append(array, rounds)


def log_spaced(rounds: int, count: int, after: int = 0) -> np.ndarray:
    """At most ``count`` rounds from ``after + 1`` to ``rounds``, evenly spaced on a log scale; the last is ``rounds``."""
    grid = np.round(np.geomspace(after + 1, rounds, count)).astype(np.int64)
    return np.unique(np.append(grid, rounds))[-count:] if count > 1 else np.array([rounds])


def linearly_spaced(rounds: int, count: int, after: int = 0) -> np.ndarray:
    """``count`` rounds from ``after + 1`` to ``rounds``, evenly spaced; the last is ``rounds``."""
    return after + np.arange(1, count + 1) * (rounds - after) // count


SPACINGS = {"log": log_spaced, "linear": linearly_spaced}


def spaced(rounds: int, count: int, after: int = 0, spacing: str = "log") -> np.ndarray:
    """``count`` rounds from ``after + 1`` to ``rounds``: every one where there are no more of them.

    >>> spaced(100, 5).tolist(), spaced(100, 5, spacing="linear").tolist(), spaced(3, 5).tolist()
    ([1, 3, 10, 32, 100], [20, 40, 60, 80, 100], [1, 2, 3])
    """
    return np.arange(after + 1, rounds + 1) if count >= rounds - after else SPACINGS[spacing](rounds, count, after)


def rounds_to_record(record: Any, rounds: int, after: int = 0, spacing: Any = "log") -> np.ndarray:
    """``record``, a number of rounds or the rounds themselves, as ascending rounds from ``after + 1`` to ``rounds``, the last."""
    if not isinstance(spacing, str) or spacing not in SPACINGS:
        raise ValueError(f"spacing={show(spacing)}: the recorded rounds are spaced 'log' or 'linear'")
    if not isinstance(record, int | np.integer) or isinstance(record, bool):
        return check_record(record, after, rounds)
    if not 1 <= record <= MOST_RECORDS:
        raise ValueError(f"record={show(record)}: record 1 to {MOST_RECORDS:,} rounds, or give a list of rounds")
    return spaced(rounds, int(record), after, spacing)
