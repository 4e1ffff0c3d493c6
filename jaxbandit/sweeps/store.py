"""Reading a sweep's folder. Every file that is read is checked: its checksum, and that its content matches its name."""

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from jaxbandit._io.files import checked_path, member_names
from jaxbandit.results.result import Result
from jaxbandit.sweeps.layout import MANIFESTS, STATE, StoreError, Unit, UnitFile, check_entries, in_plain_words, unit_files
from jaxbandit.sweeps.manifest import CellEntry, Manifest, cell_runs, read_manifest, recorded
from jaxbandit.sweeps.parts import failure_files, joined_manifest, marks
from jaxbandit.sweeps.plan import cell_id
from jaxbandit.sweeps.spec import AXES


class Segment(NamedTuple):
    """Rounds ``start + 1 … stop`` and which of them are recorded."""

    start: int
    stop: int
    record: list[int]


class Store:
    """A sweep on disk. Reading needs no lock and builds no learner; writing is done by :class:`StoreWriter`."""

    ignored: Collection[Path] = ()  # unit files that count as missing

    def __init__(self, path: str | os.PathLike, manifest: Manifest):
        self.path, self.manifest = Path(path), manifest
        self.cells: dict[str, CellEntry] = {cell["id"]: cell for cell in manifest["cells"]}  # equal cells share their units

    @classmethod
    def open(cls, path: str | os.PathLike) -> Self:
        path = checked_path("the folder of a sweep", path)
        if not path.is_dir():
            raise StoreError(f"{path}: there is no such folder")
        with in_plain_words(path):
            check_entries(path)
        joined = joined_manifest(path)
        if joined is not None:
            return cls(path, joined)
        if not any((path / name).is_file() for name in MANIFESTS):
            raise StoreError(f"{path}: this is not a sweep (it has no manifest.json)")
        for name in MANIFESTS:
            manifest = read_manifest(path / name)
            if manifest is not None:
                return cls(path, manifest)
        raise StoreError(
            f"{path}: manifest.json and its copy are damaged; with its spec, `sweep` makes a new one beside it in another folder"
        )

    @property
    def rounds(self) -> int:
        return self.manifest["horizons"][-1]["rounds"]

    @property
    def runs(self) -> int:
        """The runs of the cell that has most."""
        return max(self.manifest["until"]["runs"].values()) if "until" in self.manifest else self.manifest["runs"]

    def runs_of(self, cell: CellEntry) -> int:
        """How many runs a cell has; with ``until`` so far."""
        return cell_runs(self.manifest, cell["id"])

    @property
    def recorded(self) -> list[int]:
        return recorded(self.manifest)

    def labels(self, axis: str) -> list[str]:
        return [point["label"] for point in self.manifest["axes"][axis]]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many learners, losses and delays there are."""
        return tuple(len(self.manifest["axes"][axis]) for axis in AXES)

    def cell_at(self, at: Sequence[int]) -> CellEntry:
        return self.manifest["cells"][int(np.ravel_multi_index(tuple(at), self.shape))]

    def blocks(self, cell: CellEntry) -> int:
        """How many blocks the runs of a cell make."""
        return -(-self.runs_of(cell) // cell["block"])

    def segments(self, cell: CellEntry) -> list[Segment]:
        """The segments of rounds of a cell: one for each time the horizon was raised since it exists."""
        horizons, since = self.manifest["horizons"], cell["since"]
        first = [t for horizon in horizons[: since + 1] for t in horizon["record"]]
        parts = [Segment(0, horizons[since]["rounds"], first)]
        for before, horizon in zip(horizons[since:], horizons[since + 1 :], strict=False):
            parts.append(Segment(before["rounds"], horizon["rounds"], horizon["record"]))
        return parts

    def units(self) -> Iterator[Unit]:
        """Every unit of the finished sweep, in the order of simulation."""
        for name, cell in self.cells.items():
            for segment in self.segments(cell):
                for block in range(self.blocks(cell)):
                    yield Unit(name, block, segment.start, segment.stop)

    def launches(self) -> int | None:
        """How many launches the whole sweep takes: those of cells that are packed, and one for each other unit; None if none is."""
        if not any("launch" in cell for cell in self.cells.values()):
            return None
        alone, together = 0, {}
        for cell in self.cells.values():
            for start, stop, _ in self.segments(cell):
                if "launch" in cell and "shape" in cell:
                    group = cell["shape"], start, stop, cell["launch"] // cell["block"]
                    together[group] = together.get(group, 0) + self.blocks(cell)
                else:
                    alone += self.blocks(cell)
        return alone + sum(-(-units // group[-1]) for group, units in together.items())

    def unit_counts(self) -> dict[str, int]:
        """Cell -> how many units it has when the sweep is finished."""
        return {name: self.blocks(cell) * len(self.segments(cell)) for name, cell in self.cells.items()}

    def files(self) -> dict[Unit, Path]:
        """The unit files that are there, also those that the sweep no longer needs."""
        return self._listed(states=False)

    def to_read(self) -> dict[Unit, Path]:
        """The unit files, and what has the name of one and is none (a folder, a pipe): :meth:`read` reports it."""
        with in_plain_words(self.path):
            others = {file.unit: file.path for file in unit_files(self.path) if not file.is_file and not file.is_state}
        return others | self.files()

    def states(self) -> dict[Unit, Path]:
        """The files with states: each of the runs of its unit at the unit's last round."""
        return self._listed(states=True)

    def holds_state(self, file: Path) -> bool:
        """Whether a unit file has the state in it, as those of version 0.1 do."""
        return "state_0" in member_names(file)

    def _listed(self, states: bool) -> dict[Unit, Path]:
        with in_plain_words(self.path):
            found: dict[Unit, Path] = {}
            for file in unit_files(self.path):
                if file.is_file and file.is_state == states and file.path not in self.ignored:
                    found.setdefault(file.unit, file.path)
            return found

    def done(self, files: Mapping[Unit, Path]) -> dict[str, int]:
        """Cell -> how many of its units are among these files."""
        counts = dict.fromkeys(self.cells, 0)
        wanted = {
            (name, part.start, part.stop): self.blocks(cell) for name, cell in self.cells.items() for part in self.segments(cell)
        }
        for unit in files:
            counts[unit.cell] = counts.get(unit.cell, 0) + (unit.block < wanted.get((unit.cell, unit.start, unit.stop), 0))
        return {name: counts[name] for name in self.cells}

    def read(self, unit: Unit, file: Path) -> Result:
        """A unit, or its state, from its file; raises StoreError with the reason if it is damaged."""
        with in_plain_words(self.path):
            result, fault = self._examine(unit, file.stem[-64:], file, file.suffix == STATE)
        if result is None:
            raise StoreError(f"{file}: {fault}; run the sweep again (jb.sweep, `jaxbandit sweep`) to have it recomputed")
        return result

    def _examine(self, unit: Unit, digest: str, file: Path, is_state: bool) -> tuple[Result | None, str]:
        """The result in a unit file or a state file if all is well with it, or what is not."""
        if not file.exists():
            return None, "this file was deleted"
        if not file.is_file():
            return None, f"this is a {'folder' if file.is_dir() else 'pipe or device'} in the place of a unit's file"
        if hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            return None, "this file is damaged"
        try:
            result = Result.load(file)
        except ValueError:
            return None, "this file was not written by a sweep"
        cell = self.cells.get(unit.cell)
        runs = result.regret.shape[1]
        if cell_id(result.identity) != unit.cell:
            return None, "this file belongs to another cell"
        if result.first_run != unit.block * runs or (cell and runs != cell["block"]):
            last = result.first_run + runs - 1
            return None, f"this file has the runs {result.first_run} to {last}, which are not those of its name"
        segment = next((part for part in self.segments(cell) if part[:2] == unit[2:]), None) if cell else None
        if is_state and not result.state:
            return None, "this file has no state"
        wanted = [unit.stop] if is_state else segment.record if segment else None
        if result.rounds[-1] != unit.stop or (wanted and result.rounds.tolist() != wanted):
            return None, "this file has other rounds than its name says"
        return result, ""

    def result(self, at: Sequence[int], files: dict[Unit, Path] | None = None) -> Result | None:
        """The computed runs of a cell as one Result: the runs up to the first block that is missing; None for no run."""
        files = self.to_read() if files is None else files
        cell = self.cell_at(at)
        blocks = []
        for block in range(self.blocks(cell)):
            wanted = [Unit(cell["id"], block, part.start, part.stop) for part in self.segments(cell)]
            if not all(unit in files for unit in wanted):
                break
            blocks.append(Result.concat_rounds([self.read(unit, files[unit]) for unit in wanted]))
        if not blocks:
            return None
        result = Result.concat_runs(blocks)
        return result.take_runs(0, min(self.runs_of(cell), result.runs))

    def damaged(self, among: Collection[tuple[str, int]] | None = None) -> dict[Path, str]:
        """Unit file -> what is wrong with it: each file is read in full, or those of some blocks of some cells."""
        bad: dict[Path, str] = {}
        seen: set[tuple[Unit, bool]] = set()
        with in_plain_words(self.path):
            for file in unit_files(self.path):
                fault = self._fault(file, seen) if among is None or file.unit[:2] in among else ""
                if fault:
                    bad[file.path] = fault
        return bad

    def _fault(self, file: UnitFile, seen: set[tuple[Unit, bool]]) -> str:
        if (file.unit, file.is_state) in seen:
            return "this is a second file of the same unit"
        fault = self._examine(file.unit, file.digest, file.path, file.is_state)[1]
        if not fault:
            seen.add((file.unit, file.is_state))
        return fault

    def damaged_manifests(self) -> list[Path]:
        """The manifests that are not whole; before array jobs are merged there need be none."""
        if marks(self.path) and not any((self.path / name).exists() for name in MANIFESTS):
            return []
        return [self.path / name for name in MANIFESTS if read_manifest(self.path / name) is None]

    def failures(self) -> dict[str, str]:
        """Unit -> reason, of the last sweep or of the parts that compute it now."""
        failed: dict[str, str] = {}
        for file in (self.path / "failures.json", *failure_files(self.path)):
            try:
                content = json.loads(file.read_text())
            except (OSError, ValueError, RecursionError):
                continue
            if isinstance(content, dict):
                failed |= {str(name): str(reason) for name, reason in content.items()}
        return failed
