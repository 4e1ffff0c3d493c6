"""Recorded delays: from a log of when actions were taken and when their feedback came, to delays in rounds."""

import csv
import math
import os
import warnings
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from jaxbandit.delays.base import NEVER
from jaxbandit.delays.sequences import Trace


def load_trace(path: str | os.PathLike, *, action: str = "action_time", feedback: str = "feedback_time") -> Trace:
    """Read a CSV log of actions and their feedback as a :class:`jaxbandit.delays.Trace`.

    Every row is an action, and every action a round, in order of time (rows of the same time keep their order in the file). With
    actions at times :math:`a_1 \\le a_2 \\le \\dots` and feedback of the t-th at time :math:`f_t`,

    .. math:: d_t = \\#\\{r > t : a_r \\le f_t\\},

    the later actions that could not know it. An empty feedback time means that it never came
    (:data:`jaxbandit.delays.NEVER`); feedback after the last action comes at the end of the last round.

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
    name = f"load_trace({str(path)!r})"
    times = []
    for line, when, then in _rows(name, Path(path), action, feedback):
        if not when:
            raise ValueError(f"{name}: line {line} has no {action}; every row is an action and needs its time")
        acted = _time(name, line, action, when)
        came = _time(name, line, feedback, then) if then else math.inf
        if came < acted:
            raise ValueError(f"{name}: in line {line} {feedback} lies before {action}; feedback comes at the action or later")
        times.append((acted, came))
    acted, came = np.array(sorted(times, key=lambda row: row[0])).T
    known_after = np.searchsorted(acted, came, side="right")  # how many actions were taken up to then
    delays = np.where(np.isinf(came), int(NEVER), known_after - np.arange(1, len(acted) + 1))
    never = int(np.isinf(came).sum())
    if 2 * never > len(came):
        warnings.warn(
            f"{name}: {never} of {len(came)} rows never get feedback; if an empty {feedback} means 'no conversion', read the log "
            "with jb.load_log(…, window='7d'), which knows that when the window closes",
            stacklevel=2,
        )
    return Trace(delays.astype(np.int32))


def _rows(name: str, path: Path, action: str, feedback: str) -> list[tuple[int, str, str]]:
    """The number of each line, and its two times as they are written."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        columns = reader.fieldnames or []
        for argument, column in (("action", action), ("feedback", feedback)):
            if column not in columns:
                found = ", ".join(map(repr, columns)) or "none"
                raise ValueError(f"{name}: there is no column {column!r}; name yours with {argument}= (the file has {found})")
        rows = [(reader.line_num, (row[action] or "").strip(), (row[feedback] or "").strip()) for row in reader]
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
        return "number" if math.isfinite(float(text)) else "unreadable"
    except ValueError:
        pass
    try:
        return "date" if datetime.fromisoformat(text).tzinfo is None else "date with zone"
    except ValueError:
        return "unreadable"


def _time(name: str, line: int, column: str, text: str) -> float:
    """The number itself, or the seconds since 1970."""
    kind = _kind(text)
    if kind == "number":
        return float(text)
    if kind == "unreadable":
        raise ValueError(f"{name}: {column}={text!r} in line {line} is no time; use numbers or ISO 8601 (2026-03-01T09:30:00)")
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
