"""``jaxbandit export``: a sweep as one netCDF or zarr file."""

from pathlib import Path

from jaxbandit.cli.errors import CommandError
from jaxbandit.cli.options import Flag, check_folder
from jaxbandit.sweeps.open import export as write


def export(folder: Path, target: Path, /, *, force: Flag = False) -> None:
    """Write a sweep as one labelled netCDF or zarr file with checksums.

    Example: jaxbandit export results results.nc

    Parameters
    ----------
    folder
        Folder of the sweep.
    target
        File to write: NAME.nc (netCDF4) or NAME.zarr.
    force
        Replace an export that is already there.
    """
    if target.suffix not in (".nc", ".zarr"):
        raise CommandError(f"{target}: the name of an export ends in .nc or .zarr")
    check_folder(target.absolute().parent, "TARGET")
    print(f"written: {write(folder, target, force=force)}")
