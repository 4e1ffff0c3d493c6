"""Where a sweep is kept: one folder of immutable files, each whole or not there, each with its own checksum.

::

    OUT/manifest.json            the spec, the cells, the stages of the horizon, the environment; a copy beside it
    OUT/units/CELL/BLOCK_FROM-TO_SHA256.npz   one block of runs of a cell from round FROM to TO, as Result.save writes it
    OUT/failures.json            units that failed twice, with the reason
    OUT/lock                     held by the running sweep; the system releases it when its owner dies
    OUT/incoming/                files being written; emptied by the next sweep

The checksum is in the name: a file and its checksum appear in one rename. Nothing here is code: no pickle, no eval, and
names that could lead out of the folder are refused.
"""

import contextlib
import dataclasses
import errno
import hashlib
import io
import json
import os
import platform
import re
import socket
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandit.result import Result
from jaxbandit.sweep.plan import Cell, Plan, join_rounds, join_runs
from jaxbandit.sweep.spec import AXES

FORMAT = 1
_UNIT_NAME = re.compile(r"(\d{7,10})_(\d{1,10})-(\d{1,10})_([0-9a-f]{64})\.npz")
_CELL_NAME = re.compile(r"[0-9a-f]{16}")
_FULL = (errno.ENOSPC, errno.EDQUOT)


class StoreError(RuntimeError):
    """A store that cannot be used as asked; what is in it stays as it is."""


class Unit(NamedTuple):
    """One block of runs of one cell over one stretch of rounds."""

    cell: str
    block: int
    start: int
    stop: int


class Stretch(NamedTuple):
    """Rounds ``start + 1 … stop`` and which of them are recorded."""

    start: int
    stop: int
    record: list[int]


@contextlib.contextmanager
def _in_plain_words(path: Path) -> Iterator[None]:
    """Trouble with the disk as one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StoreError(
                f"{path}: the disk is full; what is computed is safe, so make room and run the same command"
            ) from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise StoreError(f"{path}: this folder cannot be written to ({error.strerror}); choose another --out") from error
        if isinstance(error, FileExistsError | NotADirectoryError):
            raise StoreError(f"{path}: this is not a folder; choose another --out") from error
        raise


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def environment() -> dict[str, Any]:
    """All that the bits of a run may depend on, beside the spec."""
    from importlib.metadata import version

    from jaxbandit import __version__

    return {
        "jaxbandit": __version__,
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": jax.default_backend(),
        "machine": platform.machine(),
        "system": sys.platform,
        "x64": bool(jax.config.jax_enable_x64),  # type: ignore[attr-defined]
        "key": "threefry2x32",
    }


_SAME_BITS = ("jaxbandit", "jax", "jaxlib", "platform", "machine", "x64", "key")


class Store:
    """A store on disk. Reading needs no lock and builds no learner; writing goes through :meth:`begin`."""

    def __init__(self, path: str | os.PathLike, manifest: dict[str, Any]):
        self.path, self.manifest = Path(path), manifest
        self.anew: list[dict[str, Any]] = []  # cells that start over, because the horizon was raised just now

    # Reading.

    @classmethod
    def open(cls, path: str | os.PathLike) -> "Store":
        path = Path(path)
        if not path.is_dir():
            raise StoreError(f"{path}: there is no such folder")
        names = ("manifest.json", "manifest.copy.json")
        if not any((path / name).is_file() for name in names):
            raise StoreError(f"{path}: this is not a sweep (it has no manifest.json)")
        for name in names:
            manifest = _read_manifest(path / name)
            if manifest is not None:
                return cls(path, manifest)
        raise StoreError(
            f"{path}: manifest.json and its copy are damaged; with its spec, `sweep` makes a new one beside it in another folder"
        )

    @property
    def rounds(self) -> int:
        return self.manifest["stages"][-1]["rounds"]

    @property
    def runs(self) -> int:
        return self.manifest["runs"]

    def blocks(self, cell: dict[str, Any]) -> int:
        """How many blocks the runs of a cell make."""
        return -(-self.runs // cell["block"])

    @property
    def recorded(self) -> list[int]:
        return [t for stage in self.manifest["stages"] for t in stage["record"]]

    def labels(self, axis: str) -> list[str]:
        return [setting["label"] for setting in self.manifest["axes"][axis]]

    def cell_at(self, at: Sequence[int]) -> dict[str, Any]:
        shape = [len(self.manifest["axes"][axis]) for axis in AXES]
        return self.manifest["cells"][int(np.ravel_multi_index(tuple(at), shape))]

    def stretches(self, cell: dict[str, Any]) -> list[Stretch]:
        """The stretches of rounds a cell is played in: one for each time the horizon was raised since it exists."""
        stages, since = self.manifest["stages"], cell["since"]
        first = [t for stage in stages[: since + 1] for t in stage["record"]]
        parts = [Stretch(0, stages[since]["rounds"], first)]
        for before, stage in zip(stages[since:], stages[since + 1 :], strict=False):
            parts.append(Stretch(before["rounds"], stage["rounds"], stage["record"]))
        return parts

    def units(self) -> list[Unit]:
        """Every unit of the finished sweep, in the order it is played; equal cells share theirs."""
        cells = {cell["id"]: cell for cell in self.manifest["cells"]}
        return [
            Unit(name, block, part.start, part.stop)
            for name, cell in cells.items()
            for part in self.stretches(cell)
            for block in range(self.blocks(cell))
        ]

    def files(self) -> dict[Unit, Path]:
        """The unit files that are there."""
        found = {}
        folder = self.path / "units"
        for cell in sorted(folder.iterdir()) if folder.is_dir() else ():
            if _CELL_NAME.fullmatch(cell.name) and cell.is_dir() and not cell.is_symlink():
                for file in sorted(cell.iterdir()):
                    match = _UNIT_NAME.fullmatch(file.name)
                    if match and not file.is_symlink():
                        found.setdefault(Unit(cell.name, *(int(match[i]) for i in (1, 2, 3))), file)
        return found

    def read(self, file: Path) -> Result:
        """A unit file, checked against the checksum in its name."""
        content = file.read_bytes()
        if hashlib.sha256(content).hexdigest() != file.name[-68:-4]:
            raise StoreError(f"{file}: this file is damaged; run `jaxbandit sweep` again to have it recomputed")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:  # from a stranger it could be made to fill the memory
            if sum(member.file_size for member in archive.infolist()) > len(content):
                raise StoreError(f"{file}: this file says it is larger inside than outside; it was not written by a sweep")
        return Result.load(file)

    def result(self, at: Sequence[int], files: dict[Unit, Path] | None = None) -> Result | None:
        """What there is of a cell, as one Result: the runs up to the first block that is missing; None for no run."""
        files = self.files() if files is None else files
        cell = self.cell_at(at)
        parts = self.stretches(cell)
        blocks = []
        for block in range(self.blocks(cell)):
            wanted = [Unit(cell["id"], block, part.start, part.stop) for part in parts]
            if not all(unit in files for unit in wanted):
                break
            blocks.append(join_rounds([self.read(files[unit]) for unit in wanted]))
        return _first_runs(join_runs(blocks), self.runs) if blocks else None

    def damaged(self, tick=lambda: None) -> list[Path]:
        """The unit files whose content does not fit the checksum in their name."""
        bad = []
        for file in self.files().values():
            if hashlib.sha256(file.read_bytes()).hexdigest() != file.name[-68:-4]:
                bad.append(file)
            tick()
        return bad

    def damaged_manifests(self) -> list[Path]:
        paths = [self.path / name for name in ("manifest.json", "manifest.copy.json")]
        return [path for path in paths if _read_manifest(path) is None]

    def failures(self) -> dict[str, str]:
        """Unit -> reason, of the last sweep."""
        try:
            content = json.loads((self.path / "failures.json").read_text())
        except (OSError, ValueError):
            return {}
        return {str(name): str(reason) for name, reason in content.items()} if isinstance(content, dict) else {}

    # Writing.

    @classmethod
    @contextlib.contextmanager
    def begin(cls, path: str | os.PathLike, plan: Plan, *, mix_environments: bool = False) -> Iterator["Store"]:
        """Create the store or go on with it, alone: a second sweep into the same folder is refused."""
        path = Path(path)
        with contextlib.ExitStack() as stack:
            store = cls._begin(path, plan, mix_environments, stack)
            yield store

    @classmethod
    def _begin(cls, path: Path, plan: Plan, mix_environments: bool, stack: contextlib.ExitStack) -> "Store":
        with _in_plain_words(path):
            if path.is_dir() and not any((path / name).exists() for name in ("manifest.json", "manifest.copy.json")):
                foreign = {entry.name for entry in path.iterdir()} - {"lock", "incoming"}
                if foreign:
                    raise StoreError(f"{path}: this folder has other things in it ({min(foreign)}); choose an empty or a new one")
            path.mkdir(parents=True, exist_ok=True)
            stack.enter_context(_lock(path))
            incoming = path / "incoming"
            incoming.mkdir(exist_ok=True)
            for leftover in incoming.iterdir():
                leftover.unlink()
            if any((path / name).exists() for name in ("manifest.json", "manifest.copy.json")):
                store = cls.open(path)
                store._go_on(plan, mix_environments)
            else:
                store = cls(path, _new_manifest(plan))
                store._write_manifest()
            if store.damaged_manifests():
                store._write_manifest()
            return store

    def _go_on(self, plan: Plan, mix_environments: bool) -> None:
        """Fit the manifest to a plan with the same settings, the same or more rounds, the same or more runs."""
        old = self.manifest
        before = plan if plan.rounds == self.rounds else plan.at_horizon(self.rounds) if plan.rounds > self.rounds else None
        if before is None:
            raise StoreError(f"rounds={plan.rounds}: the sweep in {self.path} has {self.rounds} rounds, which can only be raised")
        if plan.runs < self.runs:
            raise StoreError(f"runs={plan.runs}: the sweep in {self.path} has {self.runs} runs, which can only be raised")
        new = _new_manifest(before)
        new["record"] = old["record"] if self._recorded_alike(new["record"]) else _wanted_record(plan)
        if [cell["id"] for cell in new["cells"]] != [cell["id"] for cell in old["cells"]] or new["record"] != old["record"]:
            raise StoreError(
                f"{self.path}: the spec is not the one this sweep was begun with ({_difference(old, new)}); "
                "only rounds and runs may be raised, so choose another --out or undo the edit"
            )
        changed = dict(old, axes=_axes(plan), runs=plan.runs, record=_wanted_record(plan))
        if plan.rounds > self.rounds:
            ids = {cell["id"]: cell["since"] for cell in old["cells"]}
            stage = {"rounds": plan.rounds, "record": plan.record(self.rounds)}
            changed["stages"] = [*old["stages"], stage]
            latest = len(old["stages"])
            changed["cells"] = [_about(cell, ids.get(cell.id, latest)) for cell in plan.cells]
            self.anew = [cell for cell in changed["cells"] if cell["since"] == latest]
        here = environment()
        if all(any(known[name] != here[name] for name in _SAME_BITS) for known in old["environments"]):
            if not mix_environments:
                last = old["environments"][-1]
                told = ", ".join(f"{name} {last[name]} then, {here[name]} now" for name in _SAME_BITS if last[name] != here[name])
                raise StoreError(
                    f"{self.path}: the sweep was begun in another environment ({told}), where numbers may round differently; "
                    "go back to it, or accept both in one store with --mix-environments"
                )
            changed["environments"] = [*old["environments"], here]
        if changed != old:
            self.manifest = changed
            self._write_manifest()

    def _recorded_alike(self, wanted: int | list[int]) -> bool:
        """Whether these rounds to record are those of the store, as far as it goes; horizons are always recorded."""
        before = self.manifest["record"]
        if isinstance(before, int) or isinstance(wanted, int):
            return wanted == before
        horizons = {stage["rounds"] for stage in self.manifest["stages"]}
        return set(wanted) - horizons == set(self.recorded) - horizons

    def _write_manifest(self) -> None:
        body = json.dumps(self.manifest, indent=1, sort_keys=True)
        content = json.dumps(
            {"sha256": hashlib.sha256(body.encode()).hexdigest(), "manifest": self.manifest}, indent=1, sort_keys=True
        )
        for name in ("manifest.json", "manifest.copy.json"):
            self._write_text(name, content)

    def _write_text(self, name: str, content: str) -> None:
        with tempfile.NamedTemporaryFile("w", dir=self.path / "incoming", delete=False) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, self.path / name)
        _sync_folder(self.path)

    def write(self, unit: Unit, result: Result) -> Path:
        """Add a unit: written and synced under a temporary name, then renamed."""
        with _in_plain_words(self.path):
            folder = self.path / "units" / unit.cell
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                _sync_folder(folder.parent)
                _sync_folder(self.path)
            draft = self.path / "incoming" / f"{unit.cell}_{unit.block}_{unit.start}-{unit.stop}"
            result.save(draft)
            digest = hashlib.sha256(draft.read_bytes()).hexdigest()
            final = folder / f"{unit.block:07d}_{unit.start}-{unit.stop}_{digest}.npz"
            os.replace(draft, final)
            _sync_folder(folder)
            return final

    def write_failures(self, failures: dict[str, str]) -> None:
        with _in_plain_words(self.path):
            if failures or (self.path / "failures.json").exists():
                self._write_text("failures.json", json.dumps(failures, indent=1))


def _first_runs(result: Result, runs: int) -> Result:
    return dataclasses.replace(
        result,
        **{name: getattr(result, name)[..., :runs] for name in ("regret", "outstanding_max", "total_delay", "lost")},
        state=[leaf[..., :runs] if has else leaf for leaf, has in zip(result.state, result.per_run, strict=True)],
        measured={name: array[..., :runs] for name, array in result.measured.items()},
    )


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    import fcntl

    with open(path / "lock", "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read().strip() or "unknown"
            raise StoreError(f"{path}: another sweep is writing here ({owner}); wait for it, or choose another --out") from None
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        yield


def _about(cell: Cell, since: int) -> dict[str, Any]:
    return {"at": list(cell.at), "id": cell.id, "block": cell.block, "since": since}


def _new_manifest(plan: Plan) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "runs": plan.runs,
        "seed": plan.spec.seed,
        "record": _wanted_record(plan),
        "control_variates": plan.spec.control_variates,
        "axes": _axes(plan),
        "stages": [{"rounds": plan.rounds, "record": plan.record()}],
        "cells": [_about(cell, 0) for cell in plan.cells],
        "environments": [environment()],
    }


def _axes(plan: Plan) -> dict[str, Any]:
    return {
        axis: [{"label": s.label, "about": s.about, "swept": list(s.swept)} for s in settings]
        for axis, settings in plan.axes.items()
    }


def _wanted_record(plan: Plan) -> int | list[int]:
    return plan.spec.record if isinstance(plan.spec.record, int) else [int(t) for t in plan.spec.record]


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Where two manifests first differ, as a user would say it."""
    for name in ("seed", "record", "control_variates"):
        if old[name] != new[name]:
            return f"{name} was {old[name]}, is {new[name]}"
    for axis in AXES:
        before, now = old["axes"][axis], new["axes"][axis]
        for index, (one, two) in enumerate(zip(before, now, strict=False)):
            for field in {**one["about"], **two["about"]}:
                was, is_now = one["about"].get(field), two["about"].get(field)
                if was != is_now:
                    return f"{axis}[{index}].{field} was {was}, is {is_now}"
        if len(before) != len(now):
            return f"there were {len(before)} {axis}, there are {len(now)}"
    return "a learner's code or a data file changed"


def _read_manifest(path: Path) -> dict[str, Any] | None:
    """The manifest if it is whole and has the form this version writes, else None."""
    try:
        content = json.loads(path.read_text())
        manifest = content["manifest"]
        body = json.dumps(manifest, indent=1, sort_keys=True)
        if content["sha256"] != hashlib.sha256(body.encode()).hexdigest():
            return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if manifest.get("format") != FORMAT:
        raise StoreError(f"{path}: format {manifest.get('format')} is not known here; this version reads format {FORMAT}")
    return manifest if _well_formed(manifest) else None


def _well_formed(manifest: dict[str, Any]) -> bool:
    try:
        axes = [manifest["axes"][axis] for axis in AXES]
        stages, cells = manifest["stages"], manifest["cells"]
        return (
            all(isinstance(s["label"], str) and isinstance(s["about"], dict) and s["swept"] is not None for a in axes for s in a)
            and len(stages) > 0
            and all(isinstance(stage["rounds"], int) and all(isinstance(t, int) for t in stage["record"]) for stage in stages)
            and len(cells) == int(np.prod([len(axis) for axis in axes]))
            and all(_CELL_NAME.fullmatch(cell["id"]) and 0 <= cell["since"] < len(stages) and cell["block"] > 0 for cell in cells)
            and isinstance(manifest["runs"], int)
            and 0 < manifest["runs"] <= 2**32
            and all(name in known for known in manifest["environments"] for name in _SAME_BITS)
            and {"seed", "record", "control_variates"} <= set(manifest)
        )
    except (KeyError, TypeError, AttributeError):
        return False
