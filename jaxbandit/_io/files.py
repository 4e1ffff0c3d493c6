"""Atomic file writes: under a temporary name, synced to the disk, then renamed into place.

A kill or a full disk leaves at most a draft, a file whose name :func:`is_draft` knows, and never an incomplete file under the
requested name. Drafts are removed when writing fails; :func:`remove_drafts` removes those of a killed process, and
nothing else. Permissions are those of any new file: 0666 less the umask.
"""

import contextlib
import io
import math
import os
import re
import secrets
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

_DRAFT = re.compile(r"\.jaxbandit-[0-9a-f]{16}\.draft")


def checked_path(name: str, path: object) -> Path:
    """``path`` as a :class:`Path`, if it can be one; ``name`` is the argument that errors name, such as ``sweep(out=…)``."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name}: {path!r:.60} is not a path; give a text or a pathlib.Path")
    text = os.fsdecode(path)
    if "\0" in text:
        raise ValueError(f"{name}: {text!r:.60} contains a NUL byte, which no path may; remove it")
    return Path(text)


def is_draft(path: str | os.PathLike) -> bool:
    """Whether this is the name of a file that :func:`whole_file` was writing."""
    return _DRAFT.fullmatch(Path(path).name) is not None


def remove_drafts(folder: str | os.PathLike) -> None:
    """Remove what a killed process left half-written in ``folder``; other files stay."""
    for entry in os.scandir(folder):
        if is_draft(entry.name) and entry.is_file(follow_symlinks=False):
            os.unlink(entry.path)


def draft_of(path: Path, folder: str | os.PathLike | None = None) -> Path:
    """A new name for a draft of ``path``, in its folder or another one."""
    return Path(folder or path.parent) / f".jaxbandit-{secrets.token_hex(8)}.draft"


@contextlib.contextmanager
def whole_file(path: str | os.PathLike, *, drafts: str | os.PathLike | None = None) -> Iterator[BinaryIO]:
    """A file to write to; it takes the name ``path`` when the ``with`` block ends, unless by an error.

    ``drafts`` is the folder of the draft, on the same disk; by default that of ``path``, which is made if need be.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path}: this is a folder; give the name of a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(path, drafts)
    # Not tempfile, whose files other users cannot read. The name is new: O_EXCL does not follow links or overwrite files.
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    sync_folder(path.parent)


def write_whole(path: str | os.PathLike, content: str | bytes, *, drafts: str | os.PathLike | None = None) -> None:
    """Write ``content`` (text as UTF-8) to ``path``, whole or not at all."""
    with whole_file(path, drafts=drafts) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def check_writable(folder: Path, given: str, what: str) -> None:
    """Raise ValueError unless files can be written into ``folder``, which need not be there yet.

    ``given`` is the user's value, and ``what`` a correct one, for the message.
    """
    there = next(place for place in (folder, *folder.parents) if place.exists() or place.is_symlink())
    if not there.is_dir():
        raise ValueError(f"{given}: {there} is a file; give {what} that is there or can be made")
    try:
        writable = os.access(there, os.W_OK | os.X_OK)
        with tempfile.TemporaryFile(dir=there):  # some folders are not writable even with all permissions
            pass
    except OSError:
        writable = False
    if not writable:
        raise ValueError(f"{given}: nothing can be written into {there}; give {what} that is yours")


def sync_folder(path: str | os.PathLike) -> None:
    """Make names that were added to a folder survive a loss of power, where the system supports it."""
    if os.name != "posix":  # other systems do not open folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_arrays(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """The arrays of a file that ``numpy.savez`` wrote, by name; ValueError for anything else, whatever its bytes are.

    The file may be untrusted: nothing is unpickled, and no more memory is allocated than the size of the file.
    """
    try:
        with open(path, "rb") as file:
            return _read_members(file, os.fstat(file.fileno()).st_size)
    except (FileNotFoundError, IsADirectoryError, PermissionError, MemoryError):
        raise
    except Exception as error:  # damaged bytes end in almost any error, of zipfile, struct, zlib or numpy
        raise ValueError(f"{path}: not a file of arrays ({error})") from error


def member_names(path: str | os.PathLike) -> list[str]:
    """The names of the arrays in a file that ``numpy.savez`` wrote; none if it is not such a file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except (zipfile.BadZipFile, ValueError, OSError):
        return []


def unpack_arrays(content: bytes) -> dict[str, np.ndarray]:
    """:func:`read_arrays` of a file that is in memory."""
    try:
        return _read_members(io.BytesIO(content), len(content))
    except Exception as error:  # as above: damaged bytes
        raise ValueError(f"not a file of arrays ({error})") from error


def _read_members(file: BinaryIO, size: int) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > size:
            raise ValueError("it says that it is larger inside than outside")
        return {member.filename.removesuffix(".npy"): _read_array(archive.read(member)) for member in members}


def _read_array(content: bytes) -> np.ndarray:
    """One array in NumPy's format; the header's shape and type are compared with the size before they are used."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran_order, dtype = read_header(stream)
    if (
        dtype.kind not in "biufU"
        or math.prod(shape) * dtype.itemsize != len(content) - stream.tell()
        or min(shape, default=0) < 0
    ):
        raise ValueError("an array has another size than its header says")
    flat = np.frombuffer(content, dtype, offset=stream.tell())
    return flat.reshape(shape, order="F" if fortran_order else "C").copy()
