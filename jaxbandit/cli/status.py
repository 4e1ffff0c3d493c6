"""``jaxbandit status``: how far a sweep is."""

from pathlib import Path

from jaxbandit.sweeps.status import status_lines
from jaxbandit.sweeps.store import Store


def status(folder: Path, /) -> None:
    """What is in a sweep's folder, and what is missing."""
    print(*status_lines(Store.open(folder)), sep="\n")
