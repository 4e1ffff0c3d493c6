"""Measure the statements of the paper: ``python -m experiments.claims --out DIR``."""

from pathlib import Path

from experiments.claims.harness import runner
from jaxbandit._engine.devices import count_cores
from jaxbandit.cli import main_of
from jaxbandit.cli.app import RESUMABLE
from jaxbandit.cli.errors import FAILED, CommandError
from jaxbandit.cli.options import Flag, check_folder, check_new


def claims(
    *,
    out: Path,
    quick: Flag = False,
    only: list[str] | None = None,
    statements: Path = runner.FOLDER,
    processes: int | None = None,
    force: Flag = False,
) -> int:
    """Measure the statements of the paper and write a page for each, with figure, intervals and verdict.

    Exits with status 1 if a measurement contradicts a statement that the paper proves with its constants.

    Parameters
    ----------
    out
        Folder for the pages. Finished statements in this folder are not measured again.
    quick
        Small settings: minutes in place of an hour. A preview, not a verdict: at short horizons some statements that hold are not shown.
    only
        Names of statements, such as key_lemma (default: all).
    statements
        Folder of the statements (default: experiments/claims).
    processes
        Number of statements that are measured at the same time (default: one per core).
    force
        Replace files of other origin that are already there; pages of an earlier call always are.
    """
    check_folder(out)
    if not (out / "claims.json").exists():  # the summary of an earlier call
        check_new([out / "index.md", out / "index.html"], force)
    try:
        chosen = runner.choose(only or (), statements)
    except ValueError as error:
        raise CommandError(str(error)) from None
    return FAILED if runner.run(out, chosen, quick, progress=True, processes=processes or count_cores()) else 0


if __name__ == "__main__":
    main_of(claims, runner.NAME, RESUMABLE)
