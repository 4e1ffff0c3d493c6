"""Recorded delays: from a log with the times of actions and of their feedback to delays in rounds."""

import csv
import io
import os
import warnings
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np

from jaxbandit._core.fields import show
from jaxbandit._io.files import checked_path
from jaxbandit.delays.base import NEVER
from jaxbandit.delays.sequences import Trace


def load_trace(path: str | os.PathLike, *, action: str = "action_time", feedback: str = "feedback_time") -> Trace:
    """Read a CSV log of actions and their feedback as a :class:`jaxbandit.delays.Trace`.

    Every row is an action, and every action a round, in order of time (rows of the same time keep their order in the file). With
    actions at times :math:`a_1 \\le a_2 \\le \\dots` and feedback of the t-th at time :math:`f_t`,

    .. math:: d_t = \\#\\{r > t : a_r \\le f_t\\},

    the later actions before it arrived. An empty feedback time means that it is missing
    (:data:`jaxbandit.delays.NEVER`); feedback after the last action arrives at the end of the last round.

    Args:
      path: the file; its first line names the columns.
      action: the column with the times of the actions.
      feedback: the column with the times of the feedback. Times are numbers, in any one unit, or ISO 8601
        (``2026-03-01T09:30:00``), with a time zone in all rows or in none.

    >>> import tempfile, jaxbandit as jb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "log.csv").write_text("shown,bought\\n09.0,09.5\\n10.0,12.5\\n11.0,\\n12.0,12.0\\n")
    ...     jb.load_trace(f"{folder}/log.csv", action="shown", feedback="bought").delays.tolist()
    [0, 2, 2147483647, 0]
    """
    path = checked_path("load_trace(path=…)", path)
    name = f"load_trace({str(path)!r})"
    times = []
    for line, when, then in _rows(name, path, action, feedback):
        if not when:
            raise ValueError(f"{name}: line {line} has no {action}; every row is an action and needs its time")
        acted = _time(name, line, action, when)
        came = _time(name, line, feedback, then) if then else None
        if came is not None and came < acted:
            raise ValueError(f"{name}: in line {line} {feedback} lies before {action}; feedback comes at the action or later")
        times.append((acted, came))
    times.sort(key=lambda row: row[0])
    # Only the order matters: as ranks, times of any number of digits are whole numbers. Floats would make ties of nanoseconds.
    rank = {time: place for place, time in enumerate(sorted({time for row in times for time in row if time is not None}))}
    acted = np.array([rank[when] for when, _ in times])
    came = np.array([len(rank) if then is None else rank[then] for _, then in times])
    known_after = np.searchsorted(acted, came, side="right")  # how many actions were taken up to then
    delays = np.where(came == len(rank), int(NEVER), known_after - np.arange(1, len(acted) + 1))
    never = int((came == len(rank)).sum())
    if 2 * never > len(came):
        warnings.warn(
            f"{name}: {never} of {len(came)} rows never get feedback; if an empty {feedback} means 'no conversion', read the log "
            "with jb.load_log(…, window='7d'), which knows that when the window closes",
            stacklevel=2,
        )
    return Trace(delays.astype(np.int32))


def _rows(name: str, path: Path, action: str, feedback: str) -> list[tuple[int, str, str]]:
    """The number of each line, and its two times as they are written."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise type(error)(f"{name}: this cannot be read ({error.strerror}); give the name of a CSV file") from error
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(f"{name}: the file is UTF-16; save it as UTF-8")
    try:
        reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        columns = list(reader.fieldnames or [])
        for argument, column in (("action", action), ("feedback", feedback)):
            if column not in columns:
                found = ", ".join(map(repr, columns)) or "none"
                raise ValueError(f"{name}: there is no column {column!r}; name yours with {argument}= (the file has {found})")
            if columns.count(column) > 1:
                raise ValueError(f"{name}: there are {columns.count(column)} columns {column!r}; rename all but one")
        rows = [(reader.line_num, (row[action] or "").strip(), (row[feedback] or "").strip()) for row in reader]
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: byte {error.start} is not UTF-8 (is the file Latin-1?); save it as UTF-8") from error
    except csv.Error as error:
        raise ValueError(f"{name}: the file is not CSV ({error})") from error
    if not rows:
        raise ValueError(f"{name}: the file has no rows; a trace needs one action or more")
    if len({_kind(text) for _, *texts in rows for text in texts if text} - {"unreadable"}) > 1:
        raise ValueError(
            f"{name}: the times are written in several ways; use numbers, or ISO 8601 with a time zone in all rows or in none"
        )
    return rows


def _kind(text: str) -> str:
    """How a time is written: as a number, or as a date with or without a time zone."""
    try:
        return "number" if Decimal(text).is_finite() else "unreadable"
    except InvalidOperation:
        pass
    try:
        return "date" if datetime.fromisoformat(text).tzinfo is None else "date with zone"
    except ValueError:
        return "unreadable"


def _time(name: str, line: int, column: str, text: str) -> Decimal:
    """The number itself, or the microseconds since 1970, exactly."""
    kind = _kind(text)
    if kind == "number":
        return Decimal(text)
    if kind == "unreadable":
        raise ValueError(
            f"{name}: {column}={show(text)} in line {line} is no time; use numbers or ISO 8601 (2026-03-01T09:30:00)"
        )
    moment = datetime.fromisoformat(text)
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return Decimal((since.days * 86400 + since.seconds) * 10**6 + since.microseconds)
