"""What is written in the columns of a log: times as whole nanoseconds, windows, losses, names of arms."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from jaxbandit.pytrees import show

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
WINDOW_UNITS = {**UNITS, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9, "w": 7 * 86400 * 10**9}
MISSING = {"", "null", "none", "nan", "nat", "na", "<na>"}
NO_TIME = np.iinfo(np.int64).max  # later than any time
_FRACTION = re.compile(r"^(.*\d\d:\d\d:\d\d)[.,](\d{1,9})\d*(.*)$")


def _is_missing(value: Any) -> bool:
    return value is None or value != value or (isinstance(value, str) and value.strip().lower() in MISSING)


def read_times(
    name: str, actions: tuple[str, list], feedbacks: tuple[str, list], unit: str | None
) -> tuple[np.ndarray, np.ndarray]:
    """The times of actions and feedback ``[n]`` in nanoseconds, of two named columns; NO_TIME where there is no feedback."""
    (action, when), (feedback, then) = actions, feedbacks
    present = [value for column in (when, then) for value in column if not _is_missing(value)]
    kinds = {_kind(value) for value in present} - {"unreadable"}
    if len(kinds) > 1:
        raise ValueError(
            f"{name}: the times are written in several ways; use numbers, or ISO 8601 with a time zone in all rows or in none"
        )
    scale = UNITS[unit or _guessed_unit(present)] if kinds == {"number"} else 1
    acted, came = np.empty(len(when), np.int64), np.empty(len(when), np.int64)
    for index, (start, end) in enumerate(zip(when, then, strict=True)):
        if _is_missing(start):
            raise ValueError(f"{name}: row {index + 1} has no {action}; every row is an action and needs its time")
        acted[index] = _nanoseconds(name, index, action, start, scale)
        came[index] = NO_TIME if _is_missing(end) else _nanoseconds(name, index, feedback, end, scale)
        if came[index] < acted[index]:
            raise ValueError(f"{name}: in row {index + 1} {feedback} lies before {action}; feedback comes at the action or later")
    return acted, came


def _kind(value: Any) -> str:
    """How a time is written: as a number, or as a date with or without a time zone."""
    if not isinstance(value, str):
        return "number" if isinstance(value, int | float) and not isinstance(value, bool) else "unreadable"
    try:
        return "number" if Decimal(value).is_finite() else "unreadable"
    except InvalidOperation:
        pass
    try:
        return "date" if _date(value)[0].tzinfo is None else "date with zone"
    except ValueError:
        return "unreadable"


def _date(text: str) -> tuple[datetime, int]:
    """A date, and its nanoseconds after the second."""
    parts = _FRACTION.match(text.strip())
    if parts is None:
        moment = datetime.fromisoformat(text.strip())
        return moment, 0
    return datetime.fromisoformat(parts[1] + parts[3]), int(parts[2].ljust(9, "0"))


def _guessed_unit(values: Sequence[Any]) -> str:
    """From the size of the numbers: since 1970 some 10⁹ seconds have passed."""
    largest = max(abs(Decimal(str(value))) for value in values if _kind(value) == "number")
    return next((unit for unit, least in (("ns", 10**17), ("us", 10**14), ("ms", 10**11)) if largest >= least), "s")


def _nanoseconds(name: str, index: int, column: str, value: Any, scale: int) -> int:
    kind = _kind(value)
    if kind == "unreadable":
        raise ValueError(
            f"{name}: {column}={show(value)} in row {index + 1} is no time; use numbers or ISO 8601 (2026-03-01T09:30:00)"
        )
    if kind == "number":
        found = int(Decimal(str(value)) * scale)
    else:
        moment, fraction = _date(value)
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
        found = (since.days * 86400 + since.seconds) * 10**9 + fraction
    if not -NO_TIME < found < NO_TIME // 2:
        raise ValueError(f"{name}: {column}={show(value)} in row {index + 1} is too far from 1970; give unit= if it is a number")
    return found


def read_window(name: str, window: Any, unit: str | None, actions: list) -> int | None:
    """The window in nanoseconds."""
    if window is None:
        return None
    length = -1
    if isinstance(window, timedelta):
        length = (window.days * 86400 + window.seconds) * 10**9 + window.microseconds * 1000
    elif isinstance(window, str):
        parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", window)
        if parts and parts[2] in WINDOW_UNITS:
            length = int(Decimal(parts[1]) * WINDOW_UNITS[parts[2]])
    elif isinstance(window, int | float) and not isinstance(window, bool) and window == window and abs(window) < 2**62:
        if _kind(actions[0]) != "number":
            raise ValueError(
                f"{name}: window={show(window)}: the times are dates, so say in what the window is, as '7d' or '36h'"
            )
        length = int(Decimal(str(window)) * UNITS[unit or _guessed_unit([one for one in actions if not _is_missing(one)])])
    if not 0 <= length < NO_TIME // 2:
        raise ValueError(f"{name}: window={show(window)} is not a length of time, 0 or more, such as '7d', '36h', '90m' or '30s'")
    return length


def read_values(name: str, column: str, values: list, came: np.ndarray) -> np.ndarray:
    found = np.ones(len(values))
    for index in np.flatnonzero(came != NO_TIME).tolist():
        try:
            found[index] = float(values[index])
        except (TypeError, ValueError):
            found[index] = np.nan
        if not 0 <= found[index] <= 1:
            raise ValueError(f"{name}: {column}={show(values[index])} in row {index + 1} is not a number between 0 and 1")
    return found


def read_names(name: str, column: str, values: list) -> list[str]:
    for index, value in enumerate(values):
        if _is_missing(value):
            raise ValueError(f"{name}: row {index + 1} has no {column}; every row is an action and needs its arm")
    return [str(value) for value in values]
