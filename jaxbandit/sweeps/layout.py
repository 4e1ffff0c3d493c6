"""The folder of a sweep: immutable files, each whole or not there, each with its own checksum.

::

    OUT/manifest.json            the settings, the cells, the horizons, the environments; manifest.copy.json is the same
    OUT/units/CELL/BLOCK_FROM-TO_SHA256.npz   one unit: a block of runs of a cell from round FROM to TO, as Result.save writes it
    OUT/units/CELL/BLOCK_FROM-TO_SHA256.state   the state of that block at round TO, while a later unit may resume from it
    OUT/failures.json            units that failed twice, with the reason
    OUT/lock                     held by the running sweep; the system releases it when its owner dies
    OUT/incoming/                files being written; the next sweep removes those that are its own
    OUT/report/                  what ``jaxbandit report`` writes
    OUT/parts/                   while array jobs compute the sweep, see :mod:`jaxbandit.sweeps.parts`

The checksum is in the name: a file and its checksum appear in one rename. Nothing here is code: no pickle, no eval. Symbolic
links are refused, because writing through one would change files elsewhere.
"""

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from jaxbandit._io.files import is_draft

MANIFESTS = ("manifest.json", "manifest.copy.json")
FILES = (*MANIFESTS, "failures.json", "lock")
FOLDERS = ("units", "incoming", "report", "parts")
PARTS = "parts"

FULL = (errno.ENOSPC, errno.EDQUOT)  # error numbers of a full disk

CELL_NAME = re.compile(r"[0-9a-f]{16}")
RECORDS, STATE = ".npz", ".state"  # the ends of the names of a unit's two files
_UNIT_NAME = re.compile(r"(\d{7,10})_(\d{1,10})-(\d{1,10})_([0-9a-f]{64})(\.npz|\.state)")
_UNIT_DRAFT = re.compile(r"[0-9a-f]{16}_\d{1,10}_\d{1,10}-\d{1,10}(\w{8}\.part)?")  # with .part: of versions before 0.2
PART_MARK = re.compile(r"(\d{1,7})-of-(\d{1,7})_([0-9a-f]{16})_([0-9a-f]{16})")
PART_FILE = re.compile(
    rf"{PART_MARK.pattern}|\d{{1,7}}-of-\d{{1,7}}\.failures\.json|(settings|environment)_[0-9a-f]{{16}}\.json|incoming"
)
_LOCK_TEXT = re.compile(r"(process \d+ on \S*)?\s*")


class StoreError(RuntimeError):
    """A store that cannot be used as requested. Its contents are not changed."""


class MismatchError(StoreError):
    """The call does not fit the folder: another spec, another environment, a folder of other things. Nothing was changed."""


class Unit(NamedTuple):
    """One block of runs of one cell over one segment of rounds."""

    cell: str
    block: int
    start: int  # rounds simulated before
    stop: int

    def file_name(self, digest: str, suffix: str) -> str:
        return f"{self.block:07d}_{self.start}-{self.stop}_{digest}{suffix}"

    def draft_name(self) -> str:
        return f"{self.cell}_{self.block}_{self.start}-{self.stop}"


class UnitFile(NamedTuple):
    """A file name in ``units/CELL/`` of a unit or a state; the contents are not checked."""

    unit: Unit
    digest: str  # the checksum in the name
    path: Path
    is_file: bool
    is_state: bool  # of the unit's runs at its last round, not their records


@contextlib.contextmanager
def in_plain_words(path: Path) -> Iterator[None]:
    """Convert disk errors to a StoreError with an explanation."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise StoreError(
                f"{path}: the disk is full; computed units are safe; free disk space and run the same command"
            ) from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise StoreError(
                f"{path}: this folder cannot be written to ({error.strerror}); choose another folder (out=, --out)"
            ) from error
        if isinstance(error, FileExistsError | NotADirectoryError):
            raise MismatchError(f"{path}: this is not a folder; choose another folder (out=, --out)") from error
        raise StoreError(f"{error.filename or path}: {error.strerror or error}") from error


def check_entries(path: Path) -> None:
    """Refuse a folder where a name of the store is a link, or something else than it should be."""
    for entry in os.scandir(path):
        if entry.name in (*FILES, *FOLDERS):
            refuse_link(entry)
            if not (entry.is_file() if entry.name in FILES else entry.is_dir()):
                kind = "file" if entry.name in FILES else "folder"
                raise StoreError(f"{entry.path}: a sweep has a {kind} of this name; move the existing one away")


def refuse_link(entry: os.DirEntry) -> None:
    if entry.is_symlink():
        raise StoreError(
            f"{entry.path}: this is a symbolic link, and a sweep's folder must hold none (writing would change what it leads to); "
            "put the files themselves here, or remove the link"
        )


def check_new_folder(path: Path) -> None:
    """Refuse a folder without a manifest in which there is anything but what a sweep killed at its first moment leaves."""
    for entry in os.scandir(path):
        if entry.name == "lock":
            foreign = None if is_lock(Path(entry.path)) else entry.name
        elif entry.name == "incoming":
            foreign = next((f"incoming/{name}" for name in os.listdir(entry.path) if not _is_own_draft(name)), None)
        elif entry.name == PARTS:
            foreign = next((f"{PARTS}/{name}" for name in os.listdir(entry.path) if not PART_FILE.fullmatch(name)), None)
        else:
            foreign = entry.name
        if foreign:
            raise MismatchError(f"{path}: this folder has other things in it ({foreign}); choose an empty or a new one")


def is_lock(path: Path) -> bool:
    """Whether a file is a sweep's lock, not another file of the same name."""
    try:
        return path.stat().st_size <= 1000 and _LOCK_TEXT.fullmatch(path.read_text()) is not None
    except UnicodeDecodeError:
        return False


def _is_own_draft(name: str) -> bool:
    return is_draft(name) or _UNIT_DRAFT.fullmatch(name) is not None


def remove_drafts(incoming: Path) -> None:
    """Remove the drafts of a killed sweep; other files in the folder are not touched."""
    for entry in os.scandir(incoming):
        if _is_own_draft(entry.name) and entry.is_file(follow_symlinks=False):
            os.unlink(entry.path)


def unit_files(path: Path) -> Iterator[UnitFile]:
    """All entries under ``units/`` with the name of a unit; other files are ignored."""
    folder = path / "units"
    for cell in sorted(os.scandir(folder), key=lambda entry: entry.name) if folder.is_dir() else ():
        if CELL_NAME.fullmatch(cell.name) is None:
            continue
        refuse_link(cell)
        if not cell.is_dir():
            raise StoreError(f"{cell.path}: a sweep has a folder of this name; move the existing one away")
        for entry in sorted(os.scandir(cell.path), key=lambda entry: entry.name):
            match = _UNIT_NAME.fullmatch(entry.name)
            if match:
                refuse_link(entry)
                unit = Unit(cell.name, int(match[1]), int(match[2]), int(match[3]))
                yield UnitFile(unit, match[4], Path(entry.path), entry.is_file(), match[5] == STATE)
