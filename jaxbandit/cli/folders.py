"""Commands on the folder of a sweep: ``status``, ``verify``, ``merge``, ``report`` and ``export``."""

from pathlib import Path

from jaxbandit import sweeps
from jaxbandit.cli.errors import FAILED, CommandError
from jaxbandit.cli.options import Flag, check_folder
from jaxbandit.sweeps.open import export as write_export
from jaxbandit.sweeps.report import write_report
from jaxbandit.sweeps.status import status_lines, verify_lines
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


def merge(folder: Path, /, *others: Path, out: Path | None = None, mix_environments: Flag = False) -> None:
    """Put the parts of a sweep together, as one process would have written it.

    Example: jaxbandit merge results

    Parameters
    ----------
    folder
        Folder that `jaxbandit sweep --part` wrote into.
    others
        More folders with parts of the same sweep; with --out, which leaves all of them as they are.
    out
        Folder of the merged sweep; not needed for a single folder.
    mix_environments
        Merge although parts were computed with different versions or on different platforms, and record all of them.
    """
    if out is None and others:
        raise CommandError("merge: several folders need --out DIR, the folder of the merged sweep")
    check_folder(out or folder, "--out" if out else "FOLDER")
    merged = sweeps.merge([folder, *others], out, mix_environments=mix_environments)
    if merged.parts:
        print(f"{merged.parts} {'part' if merged.parts == 1 else 'parts'} merged: all {merged.units} units are in {merged.out}")
    else:
        print(f"nothing to merge: all {merged.units} units are in {merged.out}")


def report(
    folder: Path, /, *, out: Path | None = None, title: str | None = None, text: str | None = None, force: Flag = False
) -> None:
    """Write curves, tables and tests of a sweep as one HTML file that needs no network, with PNGs beside it.

    Example: jaxbandit report results --title "Delays of 10 to 100 rounds"

    Parameters
    ----------
    folder
        Folder of the sweep.
    out
        Folder for report.html and the PNGs (default: FOLDER/report).
    title
        Title of the page, in place of that of the spec.
    text
        Introduction of the page, in place of that of the spec; blank lines separate paragraphs.
    force
        Replace files that are already there; those of an earlier report in FOLDER/report always are.
    """
    if out is not None:
        check_folder(out)
    print(f"written: {write_report(folder, out, title=title, text=text, force=force)}")


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
    print(f"written: {write_export(folder, target, force=force)}")
