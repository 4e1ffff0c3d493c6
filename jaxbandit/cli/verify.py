"""``jaxbandit verify``: check that the files of a sweep are complete and undamaged."""

from pathlib import Path

from jaxbandit.cli.errors import FAILED
from jaxbandit.sweeps.status import verify_lines
from jaxbandit.sweeps.store import Store


def verify(folder: Path, /) -> int:
    """Check that every file of a sweep is there and undamaged; exit status 1 otherwise.

    Example: jaxbandit verify results

    Parameters
    ----------
    folder
        Folder of the sweep.
    """
    complete, lines = verify_lines(Store.open(folder))
    print(*lines, sep="\n")
    return 0 if complete else FAILED
