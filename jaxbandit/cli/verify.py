"""``jaxbandit verify``: whether the files of a sweep are whole and complete."""

from pathlib import Path

from jaxbandit.cli.errors import FAILED
from jaxbandit.sweeps.status import verify_lines
from jaxbandit.sweeps.store import Store


def verify(folder: Path, /) -> int:
    """Check every file of a sweep: its checksum, and that it holds what its name says.

    Exit status 1 if a file is damaged or missing.
    """
    complete, lines = verify_lines(Store.open(folder))
    print(*lines, sep="\n")
    return 0 if complete else FAILED
