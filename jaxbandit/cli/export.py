"""``jaxbandit export``: a sweep as one netCDF or zarr file."""

from pathlib import Path

from jaxbandit.cli.errors import CommandError
from jaxbandit.cli.options import check_folder
from jaxbandit.sweeps.open import export as write


def export(folder: Path, target: Path, /, *, force: bool = False) -> None:
    """Write a sweep as one labelled file with checksums.

    Parameters
    ----------
    folder
        The sweep.
    target
        NAME.nc (netCDF4) or NAME.zarr.
    force
        Replace an export that is already there.
    """
    if target.suffix not in (".nc", ".zarr"):
        raise CommandError(f"{target}: the name of an export ends in .nc or .zarr")
    check_folder(target.absolute().parent, "TARGET")
    print(f"written: {write(folder, target, force=force)}")
