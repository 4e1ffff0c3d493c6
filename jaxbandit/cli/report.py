"""``jaxbandit report``: a sweep as one HTML file."""

from pathlib import Path

from jaxbandit.cli.options import Flag, check_folder
from jaxbandit.sweeps.report import write_report


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
