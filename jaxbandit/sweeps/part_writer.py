"""Writing one part of a sweep into a folder that other parts write into at the same time."""

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from jaxbandit._io.files import draft_of, write_whole
from jaxbandit._provenance.environment import environment
from jaxbandit.results.result import Result
from jaxbandit.sweeps.layout import (
    MANIFESTS,
    PARTS,
    RECORDS,
    STATE,
    MismatchError,
    StoreError,
    Unit,
    check_entries,
    check_new_folder,
    in_plain_words,
)
from jaxbandit.sweeps.manifest import Environment, Manifest, grown_manifest, new_manifest, read_manifest
from jaxbandit.sweeps.parts import (
    Mark,
    SweepPart,
    check_environments,
    content_file,
    joined_manifest,
    marks,
    named,
    read_content,
    same_settings,
    settings_of,
    told_difference,
)
from jaxbandit.sweeps.plan import Plan
from jaxbandit.sweeps.store import Store
from jaxbandit.sweeps.writer import StoreWriter, has_manifest


class PartWriter(StoreWriter):
    """One part of a store; see :mod:`jaxbandit.sweeps.parts`. It removes nothing: files that are damaged are replaced."""

    part: SweepPart  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, path: Path, manifest: Manifest, part: SweepPart):
        Store.__init__(self, path, manifest)
        self.part = part
        self.share = part.share(self.units())
        self._mark: Mark | None = None  # None while there is nothing to add
        self.ignored = self._find_damaged()

    @classmethod
    @contextlib.contextmanager
    def begin_part(cls, path: Path, plan: Plan, part: SweepPart, *, mix_environments: bool) -> Iterator["PartWriter"]:
        """Join the sweep in a folder, or begin it there."""
        with in_plain_words(path):
            store = cls._join(path, plan, part, mix_environments)
        yield store

    @classmethod
    def _join(cls, path: Path, plan: Plan, part: SweepPart, mix: bool) -> "PartWriter":
        old, here = None, environment()
        if path.is_dir():
            check_entries(path)
            if has_manifest(path):
                _restore(path, plan, here)
                old = Store.open(path)
            else:
                check_new_folder(path)
        manifest = _agreed(path, old, plan, here, mix)
        store = cls(path, manifest, part)
        if old is not None:
            store.started_anew = [cell for name, cell in store.cells.items() if name not in old.cells]
            if store.rounds > old.rounds:
                store.check_states(old.rounds)
        if old is None or manifest != old.manifest or marks(path) or store._missing():
            store._publish(here, mix)
        return store

    def _missing(self) -> bool:
        files = self.files()
        return any(unit not in files for unit in self.units() if unit[:2] in self.share)

    def _publish(self, here: Environment, mix: bool) -> None:
        """Leave a mark of this part, then look at those of the others: of two parts that do not fit, the later one sees the earlier."""
        (self.path / PARTS / "incoming").mkdir(parents=True, exist_ok=True)
        digests = []
        for kind, content in (("settings", settings_of(self.manifest)), ("environment", here)):
            digest, text = named(kind, content)
            digests.append(digest)
            if read_content(self.path, kind, digest) is None:
                self._write_part_file(content_file(self.path, kind, digest), text)
        mark = Mark(self.part, *digests)
        is_new = mark not in marks(self.path)
        self._write_part_file(self.path / PARTS / mark.file_name, f"process {os.getpid()} on {socket.gethostname()}\n")
        try:
            joined_manifest(self.path)
            check_environments(self.path, marks(self.path), mix)
        except StoreError:
            if is_new:
                (self.path / PARTS / mark.file_name).unlink(missing_ok=True)
            raise
        self._mark = mark

    def _write_part_file(self, path: Path, text: str) -> None:
        write_whole(path, text, drafts=self.path / PARTS / "incoming")

    def check_place(self) -> None:
        """Refuse to write into a folder that is not the one that this part joined."""
        if self._mark is None or (self.path / PARTS / self._mark.file_name).is_file():
            return
        if not self.path.is_dir():
            raise StoreError(
                f"{self.path}: this folder was moved or deleted while part {self.part} was writing into it; move it back and run the same "
                "command, which resumes"
            )
        raise StoreError(
            f"{self.path}: {PARTS}/{self._mark.file_name} is gone, because the parts were merged or deleted while part {self.part} was "
            "running; run the same command if units of it are missing"
        )

    def _draft(self, unit: Unit) -> Path:
        return draft_of(self.path / unit.draft_name(), self.path / PARTS / "incoming")  # the same part may run twice

    def _find_damaged(self) -> set[Path]:
        damaged = set(self.damaged(self.share))
        for path in list(damaged):
            if path.suffix == STATE:  # it is recomputed with its unit
                damaged |= set(path.parent.glob(f"{path.name.rpartition('_')[0]}_*{RECORDS}"))
        return damaged

    def remove_damaged(self) -> int:
        """How many files of this part are damaged; they count as missing, and are replaced."""
        return len(self.ignored)

    def write(self, unit: Unit, result: Result, keep_state: bool) -> tuple[Path, Path | None]:
        """Add a unit, in the place of a damaged one if there is one."""
        written = super().write(unit, result, keep_state)
        self.ignored = set(self.ignored) - set(written)
        return written

    def remove(self, file: Path) -> None:
        """Keep it: another process may read it. Merging removes it."""

    def write_failures(self, failures: dict[str, str]) -> None:
        with in_plain_words(self.path):
            file = self.path / PARTS / f"{self.part.file_name}.failures.json"
            if failures:
                self._write_part_file(file, json.dumps(failures, indent=1))
            else:
                file.unlink(missing_ok=True)


def _agreed(path: Path, old: Store | None, plan: Plan, here: Environment, mix: bool) -> Manifest:
    """The manifest of the whole sweep, with which all parts agree."""
    if old is None:
        return new_manifest(plan, here)
    new = grown_manifest(path, old.manifest, plan, here, mix_environments=mix)
    begun = marks(path)
    if begun and not same_settings(new, old.manifest):
        raise MismatchError(
            f"{path}: part {begun[0].part} was begun with other settings ({told_difference(old.manifest, new)}); all parts have the same, so "
            "use those, or first merge the parts that are there (jb.sweeps.merge, `jaxbandit merge`)"
        )
    return new


def _restore(path: Path, plan: Plan, here: Environment) -> None:
    """Write the settings and the environment of parts again if these files are damaged and this process has the same."""
    before = next((found for found in (read_manifest(path / name) for name in MANIFESTS) if found is not None), None)
    try:
        made = new_manifest(plan, here) if before is None else grown_manifest(path, before, plan, here, mix_environments=True)
    except MismatchError:
        return
    begun = marks(path)
    for kind, content in (("settings", settings_of(made)), ("environment", here)):
        digest, text = named(kind, content)
        if any(digest in mark for mark in begun) and read_content(path, kind, digest) is None:
            (path / PARTS / "incoming").mkdir(exist_ok=True)
            write_whole(content_file(path, kind, digest), text, drafts=path / PARTS / "incoming")
