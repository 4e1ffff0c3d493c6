"""``jaxbandit merge``: the parts of a sweep as one sweep."""

from pathlib import Path

from jaxbandit import sweeps
from jaxbandit.cli.errors import CommandError
from jaxbandit.cli.options import Flag, check_folder


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
