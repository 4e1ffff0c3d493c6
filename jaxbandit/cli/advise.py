"""``jaxbandit advise``: which learner for a log."""

import re
from pathlib import Path

from jaxbandit.advice import advise as advise_on
from jaxbandit.advice.report import TITLE
from jaxbandit.cli.options import Whole, output_files
from jaxbandit.cli.speaking import CommandError
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
    rounds: Whole | None = None,
    runs: Whole = 512,
    seed: Whole = 0,
    title: str = TITLE,
    out: Path = Path("advice"),
) -> None:
    """Which learner, with which constants, for this log: prints a table and writes a report.

    Parameters
    ----------
    log
        A CSV (also .gz) or Parquet file; every row is an action.
    arm
        The column with what was chosen.
    action
        The column with the times of the actions.
    feedback
        The column with the times of the feedback, empty where none came.
    window
        How long a conversion is waited for, such as 7d, 36h or 90m; no feedback until then is no conversion.
    loss
        A column with losses between 0 and 1, for the rows with feedback.
    reward
        A column with rewards between 0 and 1 in its place.
    unit
        Of times that are numbers: s, ms, us or ns.
    rounds
        How many decisions are simulated; by default as many as the log has, at most 20000.
    runs
        How many runs of each learner.
    seed
        Of rates and randomness.
    title
        The heading of the report.
    out
        OUT.html is written.
    """
    (file,) = output_files(out, ".html")
    if not (title.strip() and title.isprintable()):
        raise CommandError(f"--title {title!r}: give one line of printable text")
    columns = {"arm": arm, "action": action, "feedback": feedback, "loss": loss, "reward": reward}
    try:
        advice = advise_on(load_log(log, **columns, window=window, unit=unit), rounds=rounds, runs=runs, seed=seed, progress=True)
    except (ValueError, TypeError, OSError, ImportError) as error:
        raise CommandError(_in_options(log, error)) from error
    advice.write(file, title)
    print(advice)
    print(f"written: {file}")


def _in_options(log: Path, error: Exception) -> str:
    """The sentence of an error of Python's names, in those of the command line: ``--window`` for ``window=``."""
    text = re.sub(r"^load_log\(.*?\): ", "", str(error))
    option = r"\b(arm|action|feedback|loss|reward|window|unit|rounds|runs|seed)="
    text = re.sub(option + r"(?=[^\s,;.)])", r"--\1 ", text)  # with a value
    text = re.sub(option, r"--\1", text)  # the name alone
    return text if text.startswith("--") or str(log) in text else f"{log}: {text}"
