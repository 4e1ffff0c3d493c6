"""Writing a sweep's folder: one writer at a time, every file whole or not there, nothing but its own files touched."""

import contextlib
import errno
import hashlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import jax

from jaxbandit._io.files import sync_folder, write_whole
from jaxbandit._provenance.environment import environment
from jaxbandit.results.result import Result
from jaxbandit.sweeps.layout import (
    MANIFESTS,
    RECORDS,
    STATE,
    MismatchError,
    StoreError,
    Unit,
    check_entries,
    check_new_folder,
    in_plain_words,
    is_lock,
    remove_drafts,
)
from jaxbandit.sweeps.manifest import CellEntry, Manifest, encode, grown_manifest, new_manifest
from jaxbandit.sweeps.parts import SweepPart, check_environments, marks, remove_parts
from jaxbandit.sweeps.plan import Plan
from jaxbandit.sweeps.store import Store


class StoreWriter(Store):
    """A store that is held by this process until the ``with`` block of :meth:`begin` ends."""

    started_anew: list[CellEntry] = []  # cells that start over, because the horizon was raised just now
    part: SweepPart | None = None  # the share of the sweep that this process computes; None: all of it

    def __init__(self, path: str | os.PathLike, manifest: Manifest):
        super().__init__(path, manifest)
        self._lock_held = _file_id(self.path / "lock")

    @classmethod
    @contextlib.contextmanager
    def begin(cls, path: str | os.PathLike, plan: Plan, *, mix_environments: bool = False) -> Iterator["StoreWriter"]:
        """Create or resume the store, with an exclusive lock: a second sweep into the same folder raises an error."""
        path = Path(path)
        with contextlib.ExitStack() as stack:
            with in_plain_words(path):
                store = cls._begin(path, plan, mix_environments, stack)
            yield store

    @classmethod
    def _begin(cls, path: Path, plan: Plan, mix_environments: bool, stack: contextlib.ExitStack) -> "StoreWriter":
        if path.is_dir():
            check_entries(path)
            if not has_manifest(path):
                check_new_folder(path)
        path.mkdir(parents=True, exist_ok=True)
        stack.enter_context(lock(path))
        incoming = path / "incoming"
        incoming.mkdir(exist_ok=True)
        remove_drafts(incoming)
        here = environment()
        if not has_manifest(path):
            store = cls(path, new_manifest(plan, here))
            store.write_manifest()
            return store
        old, begun = Store.open(path), marks(path)
        check_environments(path, begun, mix_environments)
        store = cls(path, grown_manifest(path, old.manifest, plan, here, mix_environments=mix_environments))
        store.started_anew = [cell for name, cell in store.cells.items() if name not in old.cells]
        if store.rounds > old.rounds:
            store.check_states(old.rounds)
        if store.manifest != old.manifest or old.damaged_manifests() or begun:
            store.write_manifest()
        remove_parts(path)
        return store

    def check_place(self) -> None:
        """Refuse to write into a folder that is not the one that was locked; restore manifests that were deleted."""
        if _file_id(self.path / "lock") != self._lock_held:
            if not self.path.is_dir():
                raise StoreError(
                    f"{self.path}: this folder was moved or deleted while the sweep was writing into it; move it back and run the same "
                    "command, which resumes"
                )
            raise StoreError(
                f"{self.path}: the file lock was deleted or replaced while the sweep was writing, so another sweep may write here; "
                "wait for it to end and run the same command, which resumes"
            )
        if jax.process_index() == 0 and not all((self.path / name).exists() for name in MANIFESTS):
            self.write_manifest()

    def check_states(self, rounds: int) -> None:
        """Raise if units to be extended beyond ``rounds`` have no state."""
        files, states = self.files(), self.states()
        ends = [unit for unit in self.units() if unit.stop == rounds and unit in files]
        without = sum(unit not in states and not self.holds_state(files[unit]) for unit in ends)
        if without:
            raise MismatchError(
                f"{self.path}: {without} of {len(ends)} units kept no state at round {rounds} (states=False, or a spec that could not be "
                f"played longer), so rounds cannot be raised to {self.rounds}; compute them from round 1 in another folder (out=, --out)"
            )

    def write_manifest(self) -> None:
        content = encode(self.manifest)
        for name in MANIFESTS:
            self._write_text(name, content)

    def add_runs(self, runs: dict[str, int]) -> None:
        """Raise the numbers of runs of some cells of a sweep with ``until``."""
        assert "until" in self.manifest
        with in_plain_words(self.path):
            self.check_place()
            self.manifest["until"]["runs"] |= runs
            self.write_manifest()

    def _write_text(self, name: str, content: str) -> None:
        write_whole(self.path / name, content, drafts=self.path / "incoming")

    def write(self, unit: Unit, result: Result, keep_state: bool) -> tuple[Path, Path | None]:
        """Add a unit, and first the state at its end if that is to be kept: a unit that is there has its state."""
        state = self._write_result(unit, result.at_end(), STATE) if keep_state else None
        return self._write_result(unit, result.without_state(), RECORDS), state

    def remove(self, file: Path) -> None:
        """Remove a file of a unit or a state that is not needed any more."""
        with in_plain_words(self.path):
            file.unlink(missing_ok=True)

    def _write_result(self, unit: Unit, result: Result, suffix: str) -> Path:
        """Written and synced under a temporary name, then renamed."""
        with in_plain_words(self.path):
            self.check_place()
            try:
                return self._put(unit, result, suffix)
            except FileNotFoundError:
                self.check_place()  # raises with the reason if the folder or the lock is gone
                raise

    def _put(self, unit: Unit, result: Result, suffix: str) -> Path:
        folder = self.path / "units" / unit.cell
        if not folder.is_dir():
            folder.parent.mkdir(exist_ok=True)
            folder.mkdir(exist_ok=True)
            sync_folder(folder.parent)
            sync_folder(self.path)
        draft = self._draft(unit)
        if not draft.parent.is_dir():  # Result.save would make it
            raise FileNotFoundError(errno.ENOENT, "this folder is gone", str(draft.parent))
        result.save(draft)
        final = folder / unit.file_name(hashlib.sha256(draft.read_bytes()).hexdigest(), suffix)
        os.replace(draft, final)
        sync_folder(folder)
        return final

    def _draft(self, unit: Unit) -> Path:
        return self.path / "incoming" / unit.draft_name()

    def remove_damaged(self) -> int:
        """Remove the unit files that are damaged, so that they are computed again; returns how many there were."""
        damaged = self.damaged()
        with in_plain_words(self.path):
            for path in damaged:
                if path.suffix == STATE:  # it is recomputed with its unit
                    for unit in path.parent.glob(f"{path.name.rpartition('_')[0]}_*{RECORDS}"):
                        if unit not in damaged:
                            unit.unlink()
                if path.is_dir():
                    try:
                        path.rmdir()
                    except OSError:
                        raise StoreError(f"{path}: this is a folder in the place of a unit's file; move it away") from None
                else:
                    path.unlink()
        return len(damaged)

    def write_failures(self, failures: dict[str, str]) -> None:
        with in_plain_words(self.path):
            if failures or (self.path / "failures.json").exists():
                self._write_text("failures.json", json.dumps(failures, indent=1))


def _file_id(path: Path) -> tuple[int, int] | None:
    """The identity of a file, which renaming does not change; None if it does not exist."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def has_manifest(path: Path) -> bool:
    """Whether a sweep was begun in the folder, as a whole or in parts."""
    return any((path / name).exists() for name in MANIFESTS) or bool(marks(path))


@contextlib.contextmanager
def lock(path: Path, *, if_possible: bool = False) -> Iterator[None]:
    """Lock the folder exclusively; ``if_possible``: continue without a lock where the file system has none."""
    import fcntl

    name = path / "lock"
    with os.fdopen(os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = file.read(1000).strip() or "unknown"
            raise StoreError(
                f"{path}: another sweep is writing here ({owner}); wait for it, or choose another folder (out=, --out)"
            ) from None
        except OSError as error:
            if not if_possible:
                raise StoreError(
                    f"{path}: this file system has no locks ({error.strerror}), which a sweep as a whole needs; compute it as one part, "
                    "part=(1, 1) (--part 1/1), which needs none, or choose another folder (out=, --out)"
                ) from error
        if not is_lock(name):
            raise MismatchError(f"{name}: this file is not a sweep's lock; move it away, or choose another folder (out=, --out)")
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        yield
