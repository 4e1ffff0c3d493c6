"""``jaxbandit claims``: the statements of the paper, measured."""

from pathlib import Path

from jaxbandit.blocks import count_cores
from jaxbandit.claims import runner
from jaxbandit.cli.options import check_folder
from jaxbandit.cli.speaking import FAILED, CommandError


def claims(
    *,
    out: Path,
    quick: bool = False,
    only: list[str] | None = None,
    statements: Path | None = None,
    processes: int | None = None,
) -> int:
    """Measure the statements of the paper and write a page for each, with figure, intervals and verdict.

    Exits with 1 if something that the paper proves, constants and all, is measured otherwise.

    Parameters
    ----------
    out
        Folder for the pages; what is done there already is not done again.
    quick
        Small settings: minutes in place of an hour.
    only
        Names of statements, such as key_lemma; all if not given.
    statements
        Folder of the statements, if not the one that comes with the package.
    processes
        How many statements are measured at once; by default one for each core.
    """
    check_folder(out)
    try:
        chosen = runner.choose(only or (), statements)
    except ValueError as error:
        raise CommandError(str(error)) from None
    return FAILED if runner.run(out, chosen, quick, progress=True, processes=processes or count_cores()) else 0
