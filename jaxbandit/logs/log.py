"""A log of a live system as losses and delays: who was shown what, when, and when the conversion came, if it came.

Times are whole nanoseconds, so that no tie is lost or made by rounding.
"""

import dataclasses
import os
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.special

from jaxbandit.delays import Empirical, LossDependent, Trace
from jaxbandit.display import number
from jaxbandit.logs.columns import read_columns
from jaxbandit.logs.times import NO_TIME, UNITS, read_names, read_times, read_values, read_window
from jaxbandit.losses import Bernoulli
from jaxbandit.pytrees import show


class Rows(NamedTuple):
    """The rows of a log, in order of time."""

    acted: np.ndarray  # [n] int64, nanoseconds since 1970
    came: np.ndarray  # [n] int64, NO_TIME: no feedback
    losses: np.ndarray  # [n] in [0, 1], of the rows with feedback
    arms: np.ndarray  # [n] names


@dataclasses.dataclass(frozen=True, eq=False)
class Log:
    """What a log says, read by :func:`load_log`: every row is a round, in order of time."""

    arms: list[str]
    counts: np.ndarray  # [K] rows of each arm whose outcome is known: their window closed within the log
    means: np.ndarray  # [K] mean loss of those rows, (1 + Σ loss)/(2 + n): the mean of the Beta posterior from a uniform prior
    errors: np.ndarray  # [K] standard deviation of that posterior: what the log leaves open about the mean
    delays: LossDependent  # the delay of a play by its loss, drawn from what was recorded; for any number of rounds
    trace: Trace  # the delays as they were, row by row; no conversion: until the window closed
    converted: int  # rows with feedback in time
    late: int  # rows with feedback after the window: they count as no conversion
    unknown: int  # rows without feedback whose window was open when the log ended: they count nowhere but in the trace
    window_rounds: float  # how many later actions fall into a window, in the median
    window: int | None  # nanoseconds; None: all rows have feedback
    closed: int  # rows whose window closed within the log; 0: none did, and all rows count as if it had
    rows: Rows = dataclasses.field(repr=False)

    @property
    def losses(self) -> Bernoulli:
        """Losses of 0 and 1 with the mean losses of the log: a plug-in, see ``errors`` for how much is known."""
        return Bernoulli(self.means)

    @property
    def rounds(self) -> int:
        return int(np.shape(self.trace.delays)[0])

    def with_window(self, window: int) -> "Log":
        """The same log with another window, in nanoseconds: conversions that come later than that count as none."""
        return _log(self.rows, window)

    def means_at(self, levels: np.ndarray) -> np.ndarray:
        """Mean losses ``[K, ...]`` that the log leaves open: the quantiles ``levels [K, ...]`` of each arm's Beta posterior.

        With levels drawn uniformly from (0, 1) these are draws from the posterior.
        """
        weight = (self.counts + 2.0).reshape(-1, *[1] * (np.ndim(levels) - 1))
        means = self.means.reshape(weight.shape)
        return scipy.special.betaincinv(means * weight, (1 - means) * weight, levels)

    def summary(self) -> str:
        """The log in some lines of text."""
        waits = np.asarray(self.trace.delays)
        quarters = ", ".join(f"{share} % by {number(np.percentile(waits, share))}" for share in (25, 50, 75, 95))
        lines = [
            f"{self.rounds} rounds, {len(self.arms)} arm{'s' * (len(self.arms) > 1)}; {self.converted} with feedback in time, "
            f"{self.late} too late, {self.unknown} still open at the end",
            f"delays in rounds: {quarters}, at most {waits.max()}; a window is {number(self.window_rounds)} rounds in the median",
        ]
        width = max(len(name) for name in [*self.arms, "arm"])
        lines.append(f"{'arm':<{width}}  {'rows':>9}  {'mean loss':>9}  {'±':>7}")
        for name, count, mean, error in zip(self.arms, self.counts, self.means, self.errors, strict=True):
            lines.append(f"{name:<{width}}  {count:>9}  {mean:>9.4f}  {1.96 * error:>7.4f}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"Log({self.rounds} rounds, {len(self.arms)} arms, {self.converted} converted)"


def load_log(
    source: Any,
    *,
    arm: str | None = None,
    action: str = "action_time",
    feedback: str = "feedback_time",
    loss: str | None = None,
    reward: str | None = None,
    window: str | float | timedelta | None = None,
    unit: str | None = None,
) -> Log:
    """Read a log of actions and their conversions, right: no conversion is a loss, known when its window closes.

    An empty feedback time does not mean that feedback was lost. It means "no conversion", which a live system knows ``window``
    after the action, and not before. Feedback later than that counts as no conversion.

    Args:
      source: a CSV file (``.gz`` too), a Parquet file, or a pandas or polars frame.
      arm: the column with what was chosen; None: there is one arm only.
      action: the column with the times of the actions; every row is an action.
      feedback: the column with the times of the feedback, empty where none came.
      loss, reward: a column with numbers in [0, 1] for the rows with feedback; without one, feedback is a reward of 1.
      window: how long a conversion is waited for: ``"7d"``, ``"36h"``, ``"90m"``, a ``timedelta``, or a number in the log's unit.
        Needed if any feedback time is empty.
      unit: of times that are numbers: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``; None: guessed from their size as times since
        1970, and seconds if they are small. Other times are ISO 8601, with a zone in all rows or in none.

    >>> import tempfile, jaxbandit as jb
    >>> rows = ["shown,ad,bought", "0,red,30", "60,blue,", "120,red,", "180,blue,200", "240,red,", "900,red,"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "log.csv").write_text("\\n".join(rows))
    ...     log = jb.load_log(f"{folder}/log.csv", arm="ad", action="shown", feedback="bought", window="5m")
    >>> log.arms, log.counts.tolist(), np.asarray(log.trace.delays).tolist()
    (['blue', 'red'], [2, 3], [0, 3, 2, 0, 0, 0])
    """
    name = f"load_log({show(str(source)) if isinstance(source, str | os.PathLike) else type(source).__name__})"
    if loss is not None and reward is not None:
        raise ValueError(f"{name}: loss={loss!r} and reward={reward!r} are given; give one of the two")
    if unit is not None and unit not in UNITS:
        raise ValueError(f"{name}: unit={unit!r} is not known; use 's', 'ms', 'us' or 'ns'")
    value = loss or reward
    wanted = {"action": action, "feedback": feedback, "arm": arm, "loss" if loss else "reward": value}
    columns = read_columns(name, source, {argument: column for argument, column in wanted.items() if column is not None})
    acted, came = read_times(name, (action, columns["action"]), (feedback, columns["feedback"]), unit)
    rewards = np.ones(len(acted)) if value is None else read_values(name, value, columns["loss" if loss else "reward"], came)
    losses = rewards if loss else 1 - rewards
    names = ["all"] * len(acted) if arm is None else read_names(name, arm, columns["arm"])
    length = read_window(name, window, unit, columns["action"])
    if length is None and (came == NO_TIME).any():
        raise ValueError(
            f"{name}: {(came == NO_TIME).sum()} of {len(came)} rows have no {feedback}; give window=, as '7d', after which "
            "that means 'no conversion'"
        )
    order = np.argsort(acted, kind="stable")
    return _log(Rows(acted[order], came[order], losses[order], np.asarray(names)[order]), length)


def example() -> Path:
    """A log that comes with the package: 8,000 clicks on four campaigns in three weeks, and which of them converted when.

    Its columns are ``campaign``, ``clicked_at`` and ``converted_at``. It is made up (``experiments/delay_trace/make_clicks.py``);
    no person's data is in it.

    >>> import jaxbandit as jb
    >>> log = jb.load_log(jb.logs.example(), arm="campaign", action="clicked_at", feedback="converted_at", window="7d")
    >>> log
    Log(8000 rounds, 4 arms, 397 converted)
    """
    return Path(__file__).with_name("clicks.csv")


def _log(rows: Rows, window: int | None) -> Log:
    acted, came, losses, names = rows
    closes = np.where(came == NO_TIME, acted, came) if window is None else acted + window
    in_time = came <= closes
    known = np.where(in_time, came, closes)
    losses = np.where(in_time, losses, 1.0)
    numbers = np.arange(1, len(acted) + 1)
    waits = (np.searchsorted(acted, known, side="right") - numbers).astype(np.int32)
    closed = closes <= acted[-1]  # else a late conversion would still be missing, and only early ones would be seen
    use = closed if closed.any() else np.ones(len(acted), bool)
    arms, which = np.unique(names, return_inverse=True)
    counts = np.bincount(which[use], minlength=len(arms))
    good = np.bincount(which[use], 1 - losses[use], len(arms)) + 1
    bad = np.bincount(which[use], losses[use], len(arms)) + 1
    means = bad / (good + bad)
    errors = np.sqrt(means * (1 - means) / (good + bad + 1))
    high = losses >= 0.5
    laws = [Empirical(np.sort(waits[use & part]) if (use & part).any() else waits.max(keepdims=True)) for part in (high, ~high)]
    windows = np.searchsorted(acted, closes, side="right") - numbers
    return Log(
        arms=[str(one) for one in arms],
        counts=counts,
        means=means,
        errors=errors,
        delays=LossDependent(law_if_one=laws[0], law_if_zero=laws[1]),
        trace=Trace(waits),
        converted=int(in_time.sum()),
        late=int((~in_time & (came != NO_TIME)).sum()),
        unknown=int((~in_time & ~closed).sum()),
        window_rounds=float(np.median(windows[use])),
        window=window,
        closed=int(closed.sum()),
        rows=rows,
    )
