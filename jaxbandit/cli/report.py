"""``jaxbandit report``: a sweep as one HTML file."""

from pathlib import Path

from jaxbandit.cli.options import check_folder
from jaxbandit.sweeps.report import write_report


def report(
    folder: Path, /, *, out: Path | None = None, title: str | None = None, text: str | None = None, force: bool = False
) -> None:
    """Curves, tables and tests of a sweep as one HTML file that needs no network, with PNGs beside it.

    Parameters
    ----------
    folder
        The sweep.
    out
        Folder for report.html and the PNGs; by default FOLDER/report.
    title
        Of the page, in place of the spec's.
    text
        What you want to say about the sweep, in place of the spec's; blank lines part paragraphs.
    force
        Replace files that are already there; those of an earlier report in FOLDER/report always are.
    """
    if out is not None:
        check_folder(out)
    print(f"written: {write_report(folder, out, title=title, text=text, force=force)}")
