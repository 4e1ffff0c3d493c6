"""Parsing of the columns of a log: times as whole nanoseconds, windows, losses, propensities, names of arms."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from jaxbandit._core.fields import show

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
WINDOW_UNITS = {**UNITS, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9, "w": 7 * 86400 * 10**9}
MISSING = {"", "null", "none", "nan", "nat", "na", "<na>"}
NO_TIME = np.iinfo(np.int64).max  # later than any time
CLOCKS = {"Europe": "Europe/Berlin", "North America": "America/New_York", "Australia": "Australia/Sydney"}
_FRACTION = re.compile(r"^(.*\d\d:\d\d:\d\d)[.,](\d{1,9})\d*(.*)$")


def is_missing(value: object) -> bool:
    return value is None or value != value or (isinstance(value, str) and value.strip().lower() in MISSING)


class TimeFormat(NamedTuple):
    """How the times of a log are written, as far as the user has specified it."""

    unit: str | None = None  # of numbers
    pattern: str | None = None  # of texts, for `strptime`; None: ISO 8601
    zone: tzinfo | None = None  # of dates that have none


class Times(NamedTuple):
    """The times of a log in nanoseconds since 1970."""

    acted: np.ndarray  # [n] int64
    came: np.ndarray  # [n] int64, NO_TIME: no feedback
    scale: int | None  # nanoseconds of one unit of the numbers in the log; None: times are dates
    local: bool  # dates without a time zone


def read_zone(name: str, timezone: str | None) -> tzinfo | None:
    """The time zone of a name such as ``Europe/Berlin``."""
    if timezone is None:
        return None
    try:
        return UTC if timezone == "UTC" else ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
        raise ValueError(
            f"{name}: timezone={show(timezone)} is not a known time zone; give 'UTC' or a name such as 'Europe/Berlin'"
        ) from error


def read_times(name: str, actions: tuple[str, list], feedbacks: tuple[str, list], form: TimeFormat) -> Times:
    """The times of actions and feedback of two named columns.

    The unit of numbers is decided once, from both columns together.
    """
    (action, when), (feedback, then) = actions, feedbacks
    present = [value for column in (when, then) for value in column if not is_missing(value)]
    kinds = {_kind(value, form) for value in present} - {"unreadable"}
    if len(kinds) > 1:
        raise ValueError(
            f"{name}: the times are written in several ways; use numbers, or ISO 8601 with a time zone in all rows or in none"
        )
    if form.zone is not None and kinds - {"date"}:
        given = "numbers" if "number" in kinds else "dates with a zone"
        raise ValueError(f"{name}: timezone={str(form.zone)!r}: the times are {given}; timezone= is for dates without a zone")
    scale = UNITS[form.unit or _guessed_unit(present)] if kinds == {"number"} else None
    acted, came = np.empty(len(when), np.int64), np.empty(len(when), np.int64)
    for index, (start, end) in enumerate(zip(when, then, strict=True)):
        if is_missing(start):
            raise ValueError(f"{name}: row {index + 1} has no {action}; every row is an action and needs its time")
        acted[index] = _nanoseconds(f"{name}: {action}={show(start)} in row {index + 1}", start, scale, form)
        came[index] = NO_TIME
        if not is_missing(end):
            place = f"{name}: {feedback}={show(end)} in row {index + 1}"
            came[index] = _nanoseconds(place, end, scale, form)
            if came[index] < acted[index]:  # in the hour that occurs twice when clocks are set back?
                came[index] = _nanoseconds(place, end, scale, form, fold=1)
        if came[index] < acted[index]:
            hint = (
                " (are these local times, and were clocks set back? give timezone=)"
                if kinds == {"date"} and form.zone is None
                else ""
            )
            raise ValueError(
                f"{name}: in row {index + 1} {feedback} lies before {action}; feedback comes at the action or later{hint}"
            )
    return Times(acted, came, scale, kinds == {"date"} and form.zone is None)


def clock_change(times: Times) -> str | None:
    """A date and a region in which clocks change between the first and the last time of a log, None if there is none."""
    latest = max(times.acted.max(), times.came[times.came != NO_TIME].max(initial=0))
    first, last = (datetime.fromtimestamp(int(one) // 10**9, UTC).replace(tzinfo=None) for one in (times.acted.min(), latest))
    days = [first + timedelta(days=day) for day in range(min((last - first).days, 400) + 1)] + [last]
    for region, zone in CLOCKS.items():
        try:
            offsets = [ZoneInfo(zone).utcoffset(day) for day in days]
        except (ZoneInfoNotFoundError, OSError):  # no time zones are installed
            return None
        for before, after, day in zip(offsets, offsets[1:], days[1:], strict=False):
            if before != after:
                return f"{day.date().isoformat()} (within a day), when clocks change in {region}"
    return None


def _kind(value: Any, form: TimeFormat) -> str:
    """How a time is written: as a number, or as a date with or without a time zone."""
    if form.pattern is not None:
        try:
            return "date" if datetime.strptime(str(value).strip(), form.pattern).tzinfo is None else "date with zone"
        except ValueError:
            return "unreadable"
    if not isinstance(value, str):
        return "number" if isinstance(value, int | float) and not isinstance(value, bool) else "unreadable"
    try:
        return "number" if Decimal(value).is_finite() else "unreadable"
    except InvalidOperation:
        pass
    try:
        return "date" if _date(value, form)[0].tzinfo is None else "date with zone"
    except ValueError:
        return "unreadable"


def _date(text: str, form: TimeFormat) -> tuple[datetime, int]:
    """A date, and its nanoseconds after the second."""
    if form.pattern is not None:
        moment = datetime.strptime(str(text).strip(), form.pattern)
        return moment.replace(microsecond=0), moment.microsecond * 1000
    parts = _FRACTION.match(text.strip())
    if parts is None:
        moment = datetime.fromisoformat(text.strip())
        return moment, 0
    return datetime.fromisoformat(parts[1] + parts[3]), int(parts[2].ljust(9, "0"))


def _guessed_unit(values: Sequence[Any]) -> str:
    """From the size of the numbers: since 1970 some 10⁹ seconds have passed."""
    largest = max(abs(Decimal(str(value))) for value in values if _kind(value, TimeFormat()) == "number")
    return next((unit for unit, least in (("ns", 10**17), ("us", 10**14), ("ms", 10**11)) if largest >= least), "s")


def _nanoseconds(place: str, value: Any, scale: int | None, form: TimeFormat, fold: int = 0) -> int:
    """One time; ``fold=1`` takes the second of two equal local times when clocks are set back."""
    kind = _kind(value, form)
    if kind == "unreadable":
        right = (
            f"times as in {form.pattern!r}"
            if form.pattern
            else "numbers, ISO 8601 (2026-03-01T09:30:00), or load_log with time_format="
        )
        raise ValueError(f"{place} is not a timestamp; use {right}")
    if kind == "number":
        found = int(Decimal(str(value)) * (scale or 1))
    else:
        moment, fraction = _date(value, form)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=form.zone or UTC, fold=fold)
        since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        if form.zone is not None and moment.astimezone(UTC).astimezone(form.zone) != moment:  # wall times, as the zones are one
            raise ValueError(f"{place} does not exist in {form.zone}, where clocks were set forward; is timezone= right?")
        found = (since.days * 86400 + since.seconds) * 10**9 + fraction
    if not -NO_TIME < found < NO_TIME // 2:
        raise ValueError(f"{place} is too far from 1970; give unit= if it is a number")
    return found


def read_window(name: str, window: Any, scale: int | None) -> int | None:
    """The window in nanoseconds; a number is in the unit of the log, of ``scale`` nanoseconds."""
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
        if scale is None:
            raise ValueError(f"{name}: window={show(window)}: the times are dates, so give the window a unit, as '7d' or '36h'")
        length = int(Decimal(str(window)) * scale)
    if not 0 <= length < NO_TIME // 2:
        raise ValueError(f"{name}: window={show(window)} is not a length of time, 0 or more, such as '7d', '36h', '90m' or '30s'")
    return length


def read_propensities(name: str, column: str, values: list) -> np.ndarray:
    """Probabilities with which the logged arms were drawn, ``[n]`` in (0, 1]."""
    found = np.empty(len(values))
    for index, value in enumerate(values):
        try:
            found[index] = float(value)
        except (TypeError, ValueError):
            found[index] = np.nan
        if not 0 < found[index] <= 1:
            raise ValueError(
                f"{name}: {column}={show(value)} in row {index + 1} is not a probability above 0 and at most 1; every row needs "
                "the probability with which its arm was drawn"
            )
    return found


def read_values(name: str, column: str, values: list, came: np.ndarray, scale: float) -> np.ndarray:
    """The losses or rewards of the rows with feedback, divided by the scale; 1 elsewhere."""
    found = np.ones(len(values))
    for index in np.flatnonzero(came != NO_TIME).tolist():
        try:
            found[index] = float(values[index]) / scale
        except (TypeError, ValueError):
            found[index] = np.nan
        if not 0 <= found[index] < np.inf or (scale == 1 and found[index] > 1):
            right = "between 0 and 1" if scale == 1 else "of 0 or more"
            raise ValueError(
                f"{name}: {column}={show(values[index])} in row {index + 1} is not a number {right}{_scaling(values, came)}"
            )
    return found


def _scaling(values: list, came: np.ndarray) -> str:
    """How to bring rewards into [0, 1], if they are numbers of 0 or more."""
    try:
        given = np.array([float(values[index]) for index in np.flatnonzero(came != NO_TIME)])
    except (TypeError, ValueError):
        return ""
    if not (np.isfinite(given).all() and (given >= 0).all()):
        return ""
    return f"; rewards are divided by scale=, here for example {np.quantile(given, 0.99):.3g} (99% are below; the largest is {given.max():.3g})"


def read_names(name: str, column: str, values: list) -> list[str]:
    for index, value in enumerate(values):
        if is_missing(value):
            raise ValueError(f"{name}: row {index + 1} has no {column}; every row is an action and needs its arm")
    return [str(value) for value in values]
