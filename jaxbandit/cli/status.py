"""``jaxbandit status``: the progress of a sweep."""

from pathlib import Path

from jaxbandit.sweeps.status import status_lines
from jaxbandit.sweeps.store import Store


def status(folder: Path, /) -> None:
    """Show which units of a sweep are finished and which are missing.

    Example: jaxbandit status results

    Parameters
    ----------
    folder
        Folder of the sweep.
    """
    print(*status_lines(Store.open(folder)), sep="\n")
