"""Recorded delays: from a log with the times of actions and of their feedback to delays in rounds."""

import os
import warnings

import numpy as np

from jaxbandit._io.files import checked_path
from jaxbandit.delays import NEVER, Trace
from jaxbandit.logs.columns import read_columns
from jaxbandit.logs.times import NO_TIME, TimeFormat, read_times


def load_trace(path: str | os.PathLike, *, action: str = "action_time", feedback: str = "feedback_time") -> Trace:
    """Read a CSV log of actions and their feedback as a :class:`jaxbandit.delays.Trace`.

    Every row is an action, and every action a round, in order of time (rows of the same time keep their order in the file). With
    actions at times :math:`a_1 \\le a_2 \\le \\dots` and feedback of the t-th at time :math:`f_t`,

    .. math:: d_t = \\#\\{r > t : a_r \\le f_t\\},

    the later actions before it arrived. An empty feedback time means that it is missing
    (:data:`jaxbandit.delays.NEVER`); feedback after the last action arrives at the end of the last round.

    Args:
      path: the file, CSV (``.gz`` too) or Parquet, as for :func:`load_log`; its first line names the columns.
      action: the column with the times of the actions.
      feedback: the column with the times of the feedback. Times are numbers or ISO 8601 (``2026-03-01T09:30:00``), with a time
        zone in all rows or in none.

    >>> import pathlib, tempfile, jaxbandit as jb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "log.csv").write_text("shown,bought\\n09.0,09.5\\n10.0,12.5\\n11.0,\\n12.0,12.0\\n")
    ...     jb.load_trace(f"{folder}/log.csv", action="shown", feedback="bought").delays.tolist()
    [0, 2, 2147483647, 0]
    """
    path = checked_path("load_trace(path=…)", path)
    name = f"load_trace({str(path)!r})"
    columns, _ = read_columns(name, path, {"action": action, "feedback": feedback})
    times = read_times(name, (action, columns["action"]), (feedback, columns["feedback"]), TimeFormat())
    order = np.argsort(times.acted, kind="stable")
    acted, came = times.acted[order], times.came[order]
    known_after = np.searchsorted(acted, came, side="right")  # how many actions were taken up to then
    missing = came == NO_TIME
    if 2 * missing.sum() > len(came):
        warnings.warn(
            f"{name}: {missing.sum()} of {len(came)} rows never get feedback; if an empty {feedback} means 'no conversion', read the "
            "log with jb.load_log(…, window='7d'), which knows that when the window closes",
            stacklevel=2,
        )
    return Trace(np.where(missing, int(NEVER), known_after - np.arange(1, len(acted) + 1)).astype(np.int32))
