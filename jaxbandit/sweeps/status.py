"""Text reports on a sweep's folder: its progress, and whether its files are undamaged."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from jaxbandit.sweeps.layout import Unit
from jaxbandit.sweeps.parts import begun_by, dealt, marks
from jaxbandit.sweeps.spec import AXES
from jaxbandit.sweeps.store import Store

MOST_LISTED_PARTS = 20


def status_lines(store: Store) -> Iterator[str]:
    """The settings of the sweep, its finished units, and its remaining units."""
    files = store.files()
    total, done = store.unit_counts(), store.done(files)
    there, units = sum(done.values()), sum(total.values())
    records, states = (sum(file.stat().st_size for file in found.values()) / 1e6 for found in (files, store.states()))
    counts = " x ".join(_count(count, axis) for count, axis in zip(store.shape, AXES, strict=True))
    # Rounded down, so that 100 % is all.
    yield f"{store.path}: {100 * there // units} % computed ({there:,} of {_count(units, 'units')}, {records:.1f} MB, states {states:.1f} MB)"
    least = min(map(store.runs_of, store.cells.values()))
    runs = _count(store.runs, "runs") if least == store.runs else f"{least:,} to {_count(store.runs, 'runs')}"
    asked = f", until={store.manifest['until']['asked']}" if "until" in store.manifest else ""
    yield f"  {counts}, {runs} of {_count(store.rounds, 'rounds')} each{asked}"
    launches = store.launches()
    if launches is not None:
        runs = max(cell.get("launch", 0) for cell in store.cells.values())
        yield f"  {_count(launches, 'launches')} in all, of up to {runs:,} runs: settings of one shape are played together"
    for known in store.manifest["environments"]:
        precision = "64" if known["x64"] else "32"
        yield f"  computed with jaxbandit {known['jaxbandit']}, jax {known['jax']} on {known['platform']}, {precision} bits"
    if there < units:
        yield f"  {_count(units - there, 'units')} still to compute; the same `jaxbandit sweep` command goes on:"
    for name, cell in store.cells.items():
        if done[name] < total[name]:
            names = ", ".join(store.labels(axis)[index] for axis, index in zip(AXES, cell["at"], strict=True))
            yield f"    {total[name] - done[name]:,} of {_count(total[name], 'units')} of {names}"
    yield from _part_lines(store, files)
    for name, reason in store.failures().items():
        yield f"  failed the last time: {name}: {reason}"


def _part_lines(store: Store, files: Mapping[Unit, Path]) -> Iterator[str]:
    """How far the parts of a sweep are that array jobs compute."""
    begun = marks(store.path)
    for of in sorted({mark.part.of for mark in begun}):
        known = {mark.part.number: mark for mark in begun if mark.part.of == of}
        units, there = [0] * of, [0] * of
        for unit, number in dealt(store.units(), of):
            units[number] += 1
            there[number] += unit in files
        open_parts = [number for number in range(of) if there[number] < units[number]]
        yield f"  {len(known):,} of {_count(of, 'parts')} begun, {of - len(open_parts):,} complete"
        for number in open_parts[:MOST_LISTED_PARTS]:
            mark = known.get(number + 1)
            by = f"last begun by {begun_by(store.path, mark)}" if mark else "not begun"
            yield f"    part {number + 1}/{of}: {there[number]:,} of {_count(units[number], 'units')}, {by}"
        if len(open_parts) > MOST_LISTED_PARTS:
            yield f"    and {len(open_parts) - MOST_LISTED_PARTS:,} more parts"
    if begun and all(unit in files for unit in store.units()):
        yield f"  all units are there; `jaxbandit merge {store.path}` puts the parts together"


def verify_lines(store: Store) -> tuple[bool, list[str]]:
    """Whether every file of the finished sweep exists and matches its name; and the lines to print."""
    bad = {**dict.fromkeys(store.damaged_manifests(), "this file is damaged; the other copy is whole"), **store.damaged()}
    files = store.files()
    missing = sum(store.unit_counts().values()) - sum(store.done(files).values())
    lines = [f"damaged: {file}: {fault}" for file, fault in bad.items()]
    lines.append(f"{_count(len(files), 'unit files')} checked, {len(bad)} damaged")
    if missing:
        lines.append(f"{_count(missing, 'units')} missing: deleted, or not computed yet")
    if bad or missing:
        lines.append("the next `jaxbandit sweep` computes damaged and missing units")
    return not (bad or missing), lines


def _count(number: int, things: str) -> str:
    """``1 unit``, ``1,200 units``; losses and delays have no singular here, they name axes."""
    return f"{number:,} {things if number != 1 or things in ('losses', 'delays') else things.removesuffix('es' if things == 'launches' else 's')}"
