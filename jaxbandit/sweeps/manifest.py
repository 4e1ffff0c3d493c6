"""The manifest of a sweep: its settings as plain JSON, and how they may grow when the sweep is resumed."""

import hashlib
import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

import numpy as np

from jaxbandit._provenance.environment import COMPARED, differences
from jaxbandit._provenance.user_code import code_digest
from jaxbandit.sweeps.layout import CELL_NAME, MismatchError, StoreError
from jaxbandit.sweeps.plan import Cell, Plan
from jaxbandit.sweeps.spec import AXES

FORMAT = 2
FORMAT_UNTIL = 3  # of a sweep with until, which earlier versions would take for one with a fixed number of runs
READABLE = (1, FORMAT, FORMAT_UNTIL)  # format 1 has "stages" for the horizons

Environment = dict[str, Any]


class AxisEntry(TypedDict):
    """One learner, loss model or delay model."""

    label: str
    about: dict[str, Any]  # its name and fields
    swept: list[str]  # the fields that a grid varies
    code: NotRequired[str]  # a mark of the user's own code in it, see jaxbandit._provenance.user_code


class Horizon(TypedDict):
    """A number of rounds that the sweep was given, with the rounds to record since the one before it."""

    rounds: int
    record: list[int]


class CellEntry(TypedDict):
    at: list[int]  # its place on the three axes
    id: str
    block: int  # how many runs make a block
    since: int  # the first horizon it was simulated to; more than 0 if it had to start over
    # Where cells are packed: those of one shape share a launch, of at most so many runs.
    shape: NotRequired[str]
    launch: NotRequired[int]


class UntilEntry(TypedDict):
    """A sweep that adds runs only where they are needed."""

    asked: str  # such as "2%" or "decided"
    limits: list[list[float]]  # the least and the largest regret of a run, for each of the losses
    runs: dict[str, int]  # cell -> how many runs it has, or gets next


class Manifest(TypedDict):
    format: int
    runs: int  # of each cell; with until the largest number
    until: NotRequired[UntilEntry]
    seed: int
    record: int | list[int]  # as in the spec
    spacing: NotRequired[str]  # "log" where it is missing
    control_variates: bool
    axes: dict[str, list[AxisEntry]]
    horizons: list[Horizon]
    cells: list[CellEntry]
    environments: list[Environment]  # more than one if the user allowed it
    title: NotRequired[str]  # of the report
    text: NotRequired[str]


def new_manifest(plan: Plan, here: Environment) -> Manifest:
    made: Manifest = {
        "format": FORMAT,
        "runs": plan.runs,
        "seed": plan.spec.seed,
        "record": _wanted_record(plan),
        "control_variates": plan.spec.control_variates,
        "axes": _axes(plan),
        "horizons": [{"rounds": plan.rounds, "record": plan.record()}],
        "cells": [_cell_entry(cell, 0) for cell in plan.cells],
        "environments": [here],
    }
    if plan.spec.spacing != "log":
        made["spacing"] = plan.spec.spacing
    return made | _words(plan) | _until(plan, {})


def _until(plan: Plan, before: dict[str, int]) -> Any:
    """The format, and until where the plan has it: cells start with one block, or with the runs that they had ``before``."""
    if plan.until is None:
        return {"format": FORMAT}
    runs = {cell.id: max(before.get(cell.id, 0), min(cell.block, plan.runs)) for cell in plan.cells}
    entry: UntilEntry = {"asked": str(plan.until), "limits": [list(pair) for pair in plan.limits()], "runs": runs}
    return {"format": FORMAT_UNTIL, "until": entry}


def cell_runs(manifest: Manifest, cell: str) -> int:
    """How many runs a cell has when the sweep is finished, as far as that is known."""
    return manifest["until"]["runs"][cell] if "until" in manifest else manifest["runs"]


def _words(plan: Plan) -> Any:
    """Title and text of the report, where the spec has them."""
    return {name: value for name, value in (("title", plan.spec.title), ("text", plan.spec.text)) if value}


def _axes(plan: Plan) -> dict[str, list[AxisEntry]]:
    axes: dict[str, list[AxisEntry]] = {}
    for axis, points in plan.axes.items():
        axes[axis] = [{"label": point.label, "about": point.about, "swept": list(point.swept)} for point in points]
        for entry, point in zip(axes[axis], points, strict=True):
            mark = code_digest(point.object)
            if mark is not None:
                entry["code"] = mark
    return axes


def _cell_entry(cell: Cell, since: int) -> CellEntry:
    entry: CellEntry = {"at": list(cell.at), "id": cell.id, "block": cell.block, "since": since}
    if cell.execution is not None:
        entry["shape"], entry["launch"] = cell.shape, cell.execution.block
    return entry


def _wanted_record(plan: Plan) -> int | list[int]:
    return plan.spec.record if isinstance(plan.spec.record, int) else [int(t) for t in plan.spec.record]


# Resuming.


def grown_manifest(folder: Path, old: Manifest, plan: Plan, here: Environment, *, mix_environments: bool) -> Manifest:
    """The manifest of the sweep in ``folder`` for a plan with the same settings and the same or more rounds and runs.

    Raises MismatchError for any other plan. Cells that require the horizon get a new name and start over.
    """
    rounds, before = old["horizons"][-1]["rounds"], {cell["id"]: cell_runs(old, cell["id"]) for cell in old["cells"]}
    for name, asked, has in (("rounds", plan.rounds, rounds), ("runs", plan.runs, max(before.values()))):
        if asked < has:
            raise MismatchError(f"{name}={asked}: the sweep in {folder} has {has} {name}, which can only be raised")
    _check_precision(folder, old, here)
    _check_settings(folder, old, plan if plan.rounds == rounds else plan.at_horizon(rounds), _wanted_record(plan))
    environments = _grown_environments(folder, old, here, mix_environments)
    axes = _axes(plan)
    _check_code(folder, old, axes, mix_environments)
    new: Manifest = {**old, "axes": axes, "runs": plan.runs, "record": _wanted_record(plan), "environments": environments}
    new.pop("until", None)
    new |= _words(plan) | _until(plan, before)
    if plan.rounds > rounds:
        since = {cell["id"]: cell["since"] for cell in old["cells"]}
        new["horizons"] = [*old["horizons"], {"rounds": plan.rounds, "record": plan.record(rounds)}]
        new["cells"] = [_cell_entry(cell, since.get(cell.id, len(old["horizons"]))) for cell in plan.cells]
    if {cell["id"]: cell["block"] for cell in new["cells"]} != {cell.id: cell.block for cell in plan.cells}:
        raise MismatchError(
            f"{folder}: the sweep was begun with blocks of another number of runs; choose another folder (out=, --out)"
        )
    here_launched = {cell.id: cell.execution and cell.execution.block for cell in plan.cells}
    if {cell["id"]: cell.get("launch") for cell in new["cells"]} != here_launched:
        raise MismatchError(
            f"{folder}: the sweep was begun with other launches, of which numbers may depend on a GPU or TPU (with another memory, or "
            "on another platform); go on where it was begun, or choose another folder (out=, --out)"
        )
    return new


def _check_precision(folder: Path, old: Manifest, here: Environment) -> None:
    """Raise if the precision differs: learners and models would have different numbers."""
    then, now = old["environments"][-1].get("x64"), here["x64"]
    if then is not None and then != now:
        raise MismatchError(
            f"{folder}: the sweep was begun in {'float64' if then else 'float32'} and this process computes in "
            f"{'float64' if now else 'float32'}; set jax_enable_x64 (JAX_ENABLE_X64) as it was then, or choose another folder (out=, --out)"
        )


def _check_settings(folder: Path, old: Manifest, plan: Plan, wanted: int | list[int]) -> None:
    """Check that a plan with the store's number of rounds equals the plan of the store."""
    new = new_manifest(plan, {})
    new["record"] = old["record"] if _recorded_alike(old, new["record"]) else wanted
    same_rounds = new["record"] == old["record"] and new.get("spacing") == old.get("spacing")
    if [cell["id"] for cell in new["cells"]] != [cell["id"] for cell in old["cells"]] or not same_rounds:
        raise MismatchError(
            f"{folder}: the spec is not the one this sweep was begun with ({difference(old, new)}); "
            "only rounds and runs may be raised, so choose another folder (out=, --out) or undo the edit"
        )


def _recorded_alike(old: Manifest, wanted: int | list[int]) -> bool:
    """Whether these rounds to record are those of the store, as far as it goes; horizons are always recorded."""
    before = old["record"]
    if isinstance(before, int) or isinstance(wanted, int):
        return wanted == before
    horizons = {horizon["rounds"] for horizon in old["horizons"]}
    return set(wanted) - horizons == set(recorded(old)) - horizons


def recorded(manifest: Manifest) -> list[int]:
    """The rounds that are recorded."""
    return [t for horizon in manifest["horizons"] for t in horizon["record"]]


def difference(old: Manifest, new: Manifest) -> str:
    """The first difference of two manifests, in the terms of the spec."""
    for name in ("seed", "record", "control_variates"):
        if old[name] != new[name]:
            return f"{name} was {old[name]}, is {new[name]}"
    spacings = [manifest.get("spacing", "log") for manifest in (old, new)]
    if spacings[0] != spacings[1]:
        return f"spacing was {spacings[0]}, is {spacings[1]}"
    for axis in AXES:
        before, now = old["axes"][axis], new["axes"][axis]
        for index, (one, two) in enumerate(zip(before, now, strict=False)):
            for field in {**one["about"], **two["about"]}:
                was, is_now = one["about"].get(field), two["about"].get(field)
                if was != is_now:
                    return f"{axis}[{index}].{field} was {was}, is {is_now}"
        if len(before) != len(now):
            return f"there were {len(before)} {axis}, there are {len(now)}"
    return "what its learners and laws are made of changed: a data file, or their fields in another version of the code"


def _grown_environments(folder: Path, old: Manifest, here: Environment, mix: bool) -> list[Environment]:
    """The environments with this one, if it is new. Fields that an old sweep did not record are filled in from this one."""
    known = old["environments"]
    environments = with_environment(known, here)
    if len(environments) > len(known) and not mix:
        raise MismatchError(
            f"{folder}: the sweep was begun in another environment ({'; '.join(differences(known[-1], here))}), where numbers "
            "may come out differently; go back to it, or accept both in one store with mix_environments=True (--mix-environments)"
        )
    return environments


def with_environment(known: Sequence[Environment], here: Environment) -> list[Environment]:
    """The environments and this one, which is added unless one of them gives the same numbers."""
    alike = [index for index, then in enumerate(known) if not differences(then, here)]
    if alike:
        return [{**here, **then} if index == alike[0] else then for index, then in enumerate(known)]
    return [*known, here]


def _check_code(folder: Path, old: Manifest, axes: dict[str, list[AxisEntry]], mix: bool) -> None:
    """Check that user-defined classes are unchanged; versions of Python are compared only where they matter."""
    for axis in AXES:
        for before, now in zip(old["axes"][axis], axes[axis], strict=True):
            was, is_now = before.get("code"), now.get("code")
            if was is None or was == is_now:
                continue
            begun, here = was.partition(":")[0], (is_now or "").partition(":")[0]
            if begun == here or is_now is None:
                raise MismatchError(
                    f"{folder}: the code of {now['label']!r} is not the one this sweep was begun with, and results of both would be mixed; "
                    "undo the edit, or choose another folder (out=, --out)"
                )
            if not mix:
                python, here = begun.partition("/")[0], here.partition("/")[0]
                version = f"Python {python}, this is {here}" if python != here else "an earlier version of jaxbandit"
                raise MismatchError(
                    f"{folder}: the sweep was begun with {version}, and whether the code of {now['label']!r} is the same cannot be "
                    "told; go back to it, or vouch for it with mix_environments=True (--mix-environments)"
                )


# On disk.


def encode(manifest: Manifest) -> str:
    """The file: the manifest and a checksum of it."""
    content = {"sha256": _checksum(manifest), "manifest": manifest}
    return json.dumps(content, indent=1, sort_keys=True)


def _checksum(manifest: Any) -> str:
    return hashlib.sha256(json.dumps(manifest, indent=1, sort_keys=True).encode()).hexdigest()


def read_manifest(path: Path) -> Manifest | None:
    """The manifest if it is whole and has the form that this version or an earlier one writes, else None."""
    try:
        content = json.loads(path.read_text())
        manifest: Any = content["manifest"]
        if content["sha256"] != _checksum(manifest):
            return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return checked_manifest(path, manifest)


def checked_manifest(path: Path, manifest: Any) -> Manifest | None:
    """The manifest that was read from ``path`` if it has the form that this version or an earlier one writes, else None."""
    if type(manifest) is not dict or "format" not in manifest:
        return None
    version = manifest["format"]
    if version not in READABLE:
        raise StoreError(f"{path}: format {version} is not known here; this version reads up to format {FORMAT_UNTIL}")
    if version == 1 and "stages" in manifest:
        renamed = {"horizons" if key == "stages" else key: value for key, value in manifest.items()}
        return checked_manifest(path, renamed | {"format": FORMAT})
    return cast(Manifest, manifest) if _is_well_formed(manifest) else None


def _is_well_formed(manifest: Any) -> bool:
    """Whether every part has its type and range: the file may be untrusted, with a valid checksum."""
    try:
        return (
            _whole(manifest["runs"], 1, 2**32)
            and _whole(manifest["seed"], 0, 2**32 - 1)
            and isinstance(manifest["control_variates"], bool)
            and all(isinstance(manifest.get(name, ""), str) for name in ("title", "text"))
            and manifest.get("spacing", "log") in ("log", "linear")
            and (_whole(manifest["record"], 1, 2**30) or all(_whole(t, 1, 2**30) for t in manifest["record"]))
            and set(manifest["axes"]) == set(AXES)
            and all(_is_axis_entry(entry) for axis in AXES for entry in manifest["axes"][axis])
            and _are_horizons(manifest["horizons"])
            and _are_cells(manifest)
            and ("until" not in manifest or _is_until(manifest["until"], manifest))
            and len(manifest["environments"]) > 0
            and all(_is_environment(known) for known in manifest["environments"])
        )
    except (KeyError, TypeError, AttributeError, IndexError):
        return False


def _whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_axis_entry(entry: Any) -> bool:
    texts = [entry["label"], entry["about"]["name"], entry.get("code", ""), *entry["swept"]]
    return isinstance(entry["about"], dict) and isinstance(entry["swept"], list) and all(isinstance(text, str) for text in texts)


def _are_horizons(horizons: Any) -> bool:
    rounds = [0, *(horizon["rounds"] for horizon in horizons)]
    return len(horizons) > 0 and all(
        _whole(stop, start + 1, 2**30) and _ascend(horizon["record"], start, stop)
        for start, stop, horizon in zip(rounds, rounds[1:], horizons, strict=False)
    )


def _ascend(record: Sequence[Any], start: int, stop: int) -> bool:
    """Whether these are rounds after ``start``, in order, the last one ``stop``."""
    whole = all(_whole(t, start + 1, stop) for t in record)
    return whole and record[-1] == stop and all(one < two for one, two in itertools.pairwise(record))


def _are_cells(manifest: Any) -> bool:
    shape = [len(manifest["axes"][axis]) for axis in AXES]
    cells = manifest["cells"]
    return len(cells) == np.prod(shape, dtype=object) > 0 and all(
        cell["at"] == list(at)
        and CELL_NAME.fullmatch(cell["id"])
        and _whole(cell["since"], 0, len(manifest["horizons"]) - 1)
        and _whole(cell["block"], 1, 2**24)
        and ("launch" in cell) == ("shape" in cell)
        and CELL_NAME.fullmatch(cell.get("shape", cell["id"]))
        and _whole(cell.get("launch", cell["block"]), cell["block"], 2**24)
        for cell, at in zip(cells, np.ndindex(*shape), strict=True)
    )


def _is_until(until: Any, manifest: Any) -> bool:
    ends = [end for pair in until["limits"] for end in pair]
    return (
        isinstance(until["asked"], str)
        and [len(pair) for pair in until["limits"]] == [2] * len(manifest["axes"]["losses"])
        and all(isinstance(end, int | float) and math.isfinite(end) for end in ends)
        and set(until["runs"]) == {cell["id"] for cell in manifest["cells"]}
        and all(_whole(runs, 1, manifest["runs"]) for runs in until["runs"].values())
    )


def is_complete_environment(known: Any) -> bool:
    """Whether this has the form of an environment that this version records."""
    try:
        return isinstance(known, dict) and set(COMPARED) <= set(known) and _is_environment(known)
    except (KeyError, TypeError):
        return False


def _is_environment(known: Any) -> bool:
    texts = [known[name] for name in ("jaxbandit", "jax", "jaxlib", "platform", "machine", "key")]
    return isinstance(known["x64"], bool) and all(isinstance(text, str) for text in texts)
