"""``jaxbandit advise``: recommend a learner for a log."""

import re
import sys
from pathlib import Path
from typing import Literal

from jaxbandit.advice import Advice
from jaxbandit.advice import advise as advise_on
from jaxbandit.advice.report import TITLE
from jaxbandit.cli.errors import CommandError
from jaxbandit.cli.options import Flag, Whole, output_files
from jaxbandit.logs import load_log


def advise(
    log: Path,
    /,
    *,
    arm: str,
    action: str = "action_time",
    feedback: str = "feedback_time",
    window: str | None = None,
    loss: str | None = None,
    reward: str | None = None,
    unit: str | None = None,
    time_format: str | None = None,
    timezone: str | None = None,
    propensity: str | None = None,
    duplicates: Literal["keep", "drop"] = "keep",
    scale: float = 1.0,
    rounds: Whole | None = None,
    runs: Whole = 512,
    seed: Whole = 0,
    seconds: float | None = None,
    title: str = TITLE,
    out: Path = Path("advice"),
    force: Flag = False,
) -> None:
    """Recommend an algorithm and its constants for a log of actions and feedback; print a table and write a report.

    Example: jaxbandit advise log.csv --arm ad --action shown --feedback clicked --window 7d

    Parameters
    ----------
    log
        CSV (also .gz) or Parquet file; every row is an action.
    arm
        Column with the chosen arm.
    action
        Column with the times of the actions.
    feedback
        Column with the times of the feedback; empty where feedback is missing.
    window
        Attribution window, such as 7d, 36h or 90m; an action without feedback within it counts as no conversion.
    loss
        Column with losses between 0 and 1, for the rows with feedback.
    reward
        Column with rewards between 0 and 1, in place of losses.
    unit
        Unit of times that are numbers: s, ms, us or ns.
    time_format
        Format of dates that are not ISO 8601, such as '%d.%m.%Y %H:%M'.
    timezone
        Time zone of dates without one, such as UTC or Europe/Berlin.
    propensity
        Column with the probability with which the arm of each row was chosen; rates are weighted by its inverse.
    duplicates
        Treatment of rows that repeat an earlier row in every column: keep them, or drop them.
    scale
        Divisor of rewards such as revenue; rewards above it count as 1.
    rounds
        Number of decisions to simulate (default: as many as the log has, at most 20000).
    runs
        Number of runs of the best algorithms.
    seed
        Random seed.
    seconds
        Start no further simulation after this many seconds.
    title
        Heading of the report.
    out
        Name of the report without its suffix; OUT.html is written, with preliminary advice first. Finished simulations are kept in OUT.part.npz until the end: the same command resumes after an interruption.
    force
        Replace files that are already there.
    """
    begun = Path(f"{out.parent / out.name.removesuffix('.html')}.part.npz").is_file()  # a page beside it is preliminary
    file, kept = output_files(out, ".html", ".part.npz", force=force or begun)
    if not (title.strip() and title.isprintable()):
        raise CommandError(f"--title {title!r}: give one line of printable text")
    try:
        read = load_log(
            log,
            arm=arm,
            action=action,
            feedback=feedback,
            loss=loss,
            reward=reward,
            window=window,
            unit=unit,
            time_format=time_format,
            timezone=timezone,
            propensity=propensity,
            duplicates=duplicates,
            scale=scale,
        )
        advice = advise_on(
            read,
            rounds=rounds,
            runs=runs,
            seed=seed,
            seconds=seconds,
            resume=kept,
            on_answer=lambda preliminary: _write_preliminary(preliminary, file, title),
            progress=True,
        )
    except (ValueError, TypeError, OSError, ImportError) as error:
        raise CommandError(_in_options(log, error)) from error
    advice.write(file, title)
    if seconds is None:  # else the same command without --seconds continues
        kept.unlink(missing_ok=True)
    print(advice)
    print(f"written: {file}")


def _write_preliminary(advice: Advice, file: Path, title: str) -> None:
    advice.write(file, title)
    print(f"preliminary, in {file}: {advice.summary()[0]}", file=sys.stderr)


def _in_options(log: Path, error: Exception) -> str:
    """An error message with the names of options in place of arguments: ``--window`` for ``window=``."""
    text = re.sub(r"^load_log\(.*?\): ", "", str(error))
    option = r"\b(arm|action|feedback|loss|reward|window|unit|time_format|timezone|propensity|duplicates|scale|rounds|runs|seed|seconds)="
    text = re.sub(option + r"(?=[^\s,;.)])", lambda found: f"--{found[1].replace('_', '-')} ", text)  # with a value
    text = re.sub(option, lambda found: f"--{found[1].replace('_', '-')}", text)  # the name alone
    return text if text.startswith("--") or str(log) in text else f"{log}: {text}"
