"""A log of a live system as losses and delays: who was shown what, when, and when the conversion came, if it came.

Times are whole nanoseconds, so that no tie is lost or made by rounding.
"""

import csv
import dataclasses
import gzip
import io
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandit.delays import Delays, Empirical, Fixed, LossDependent, Trace
from jaxbandit.display import number
from jaxbandit.losses import Bernoulli
from jaxbandit.pytrees import show

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
WINDOW_UNITS = {**UNITS, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9, "w": 7 * 86400 * 10**9}
MISSING = {"", "null", "none", "nan", "nat", "na", "<na>"}
NO_TIME = np.iinfo(np.int64).max  # later than any time
_FRACTION = re.compile(r"^(.*\d\d:\d\d:\d\d)[.,](\d{1,9})\d*(.*)$")


@dataclasses.dataclass(frozen=True, eq=False)
class Log:
    """What a log says, read by :func:`load_log`: every row is a round, in order of time."""

    arms: list[str]
    counts: np.ndarray  # [K] rows of each arm whose outcome is known: their window closed within the log
    means: np.ndarray  # [K] mean loss of those rows, (1 + Σ loss)/(2 + n): the mean of the Beta posterior from a uniform prior
    errors: np.ndarray  # [K] standard deviation of that posterior: what the log leaves open about the mean
    delays: Delays  # the delay of a play by its loss, drawn from what was recorded; for any number of rounds
    trace: Trace  # the delays as they were, row by row; no conversion: until the window closed
    converted: int  # rows with feedback in time
    late: int  # rows with feedback after the window: they count as no conversion
    unknown: int  # rows without feedback whose window was open when the log ended: they count nowhere but in the trace
    window_rounds: float  # how many later actions fall into a window, in the median

    @property
    def losses(self) -> Bernoulli:
        """Losses of 0 and 1 with the mean losses of the log: a plug-in, see ``errors`` for how much is known."""
        return Bernoulli(self.means)

    @property
    def rounds(self) -> int:
        return int(np.shape(self.trace.delays)[0])

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
    columns = _columns(name, source, {argument: column for argument, column in wanted.items() if column is not None})
    acted, came = _times(name, (action, columns["action"]), (feedback, columns["feedback"]), unit)
    rewards = np.ones(len(acted)) if value is None else _values(name, value, columns["loss" if loss else "reward"], came)
    losses = rewards if loss else 1 - rewards
    names = ["all"] * len(acted) if arm is None else _names(name, arm, columns["arm"])
    length = _window(name, window, unit, columns["action"])
    if length is None and (came == NO_TIME).any():
        raise ValueError(
            f"{name}: {(came == NO_TIME).sum()} of {len(came)} rows have no {feedback}; give window=, as '7d', after which "
            "that means 'no conversion'"
        )
    order = np.argsort(acted, kind="stable")
    return _log(acted[order], came[order], losses[order], np.asarray(names)[order], length)


def _log(acted: np.ndarray, came: np.ndarray, losses: np.ndarray, names: np.ndarray, window: int | None) -> Log:
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
    laws = [Empirical(np.sort(waits[use & part])) if (use & part).any() else Fixed(int(waits.max())) for part in (high, ~high)]
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
    )


def _columns(name: str, source: Any, wanted: dict[str, str]) -> dict[str, list]:
    """The wanted columns by argument, as lists of texts, numbers or dates."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.is_dir():
            raise IsADirectoryError(f"{name}: this is a folder; give the name of a file")
        header, rows = _frame(name, _parquet(name, path)) if ".parquet" in path.suffixes else _csv(name, path)
    else:
        header, rows = _frame(name, source)
    for argument, column in wanted.items():
        if column not in header:
            found = ", ".join(map(repr, header)) or "none"
            raise ValueError(f"{name}: there is no column {column!r}; name yours with {argument}= (the log has {found})")
        if header.count(column) > 1:
            raise ValueError(f"{name}: there are {header.count(column)} columns {column!r}; rename all but one")
    picked = {argument: rows(header.index(column)) for argument, column in wanted.items()}
    if not picked["action"]:
        raise ValueError(f"{name}: the log has no rows; it needs one action or more")
    return picked


def _csv(name: str, path: Path) -> tuple[list[str], Any]:
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise ValueError(f"{name}: the file is not whole, its gzip data ends early or is damaged") from error
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(f"{name}: the file is UTF-16; save it as UTF-8")
    if content[:4] == b"PAR1":
        raise ValueError(f"{name}: this is a Parquet file; give it a name that ends in .parquet")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: byte {error.start} is not UTF-8 (is the file Latin-1?); save it as UTF-8") from error
    try:
        header, *lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    except (csv.Error, ValueError) as error:
        what = "the file is empty; its first line names the columns" if not text.strip() else f"the file is not CSV ({error})"
        raise ValueError(f"{name}: {what}") from error
    if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
        raise ValueError(f"{name}: the columns are not separated by commas ({show(header[0])}); save the file with commas")
    for index, line in enumerate(lines):
        if line and len(line) != len(header):
            raise ValueError(f"{name}: row {index + 1} has {len(line)} fields, but there are {len(header)} columns")
    lines = [line for line in lines if line]
    return [column.strip() for column in header], lambda index: [line[index].strip() for line in lines]


def _parquet(name: str, path: Path) -> Any:
    if not path.exists():
        raise FileNotFoundError(f"{name}: there is no such file")
    try:
        import pandas

        return pandas.read_parquet(path)
    except ImportError as error:
        raise ImportError(f"{name}: Parquet needs pandas and pyarrow: pip install pandas pyarrow") from error
    except (OSError, ValueError) as error:
        raise ValueError(f"{name}: this is not a Parquet file") from error


def _frame(name: str, frame: Any) -> tuple[list[str], Any]:
    """Of a pandas or polars frame, which agree in this much."""
    try:
        header = [str(column) for column in frame.columns]
        frame[frame.columns[0]].to_numpy()
    except (AttributeError, TypeError, IndexError, KeyError) as error:
        raise TypeError(f"{name}: give the name of a CSV or Parquet file, or a pandas or polars frame with columns") from error

    def column(index):
        values = frame[frame.columns[index]].to_numpy()
        if values.dtype.kind == "M":  # dates without a zone; NaT is the smallest of all
            return [None if np.isnat(one) else str(one) for one in values.astype("datetime64[ns]")]
        return [one.isoformat() if isinstance(one, datetime) else one for one in values.tolist()]

    return header, column


def _is_missing(value: Any) -> bool:
    return value is None or value != value or (isinstance(value, str) and value.strip().lower() in MISSING)


def _times(name: str, actions: tuple[str, list], feedbacks: tuple[str, list], unit: str | None) -> tuple[np.ndarray, np.ndarray]:
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


def _window(name: str, window: Any, unit: str | None, actions: list) -> int | None:
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


def _values(name: str, column: str, values: list, came: np.ndarray) -> np.ndarray:
    found = np.ones(len(values))
    for index in np.flatnonzero(came != NO_TIME).tolist():
        try:
            found[index] = float(values[index])
        except (TypeError, ValueError):
            found[index] = np.nan
        if not 0 <= found[index] <= 1:
            raise ValueError(f"{name}: {column}={show(values[index])} in row {index + 1} is not a number between 0 and 1")
    return found


def _names(name: str, column: str, values: list) -> list[str]:
    for index, value in enumerate(values):
        if _is_missing(value):
            raise ValueError(f"{name}: row {index + 1} has no {column}; every row is an action and needs its arm")
    return [str(value) for value in values]
