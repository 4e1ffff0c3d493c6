"""A sweep's folder in words: how far it is, and whether its files are whole."""

from collections.abc import Iterator

from jaxbandit.sweeps.spec import AXES
from jaxbandit.sweeps.store import Store


def status_lines(store: Store) -> Iterator[str]:
    """What the sweep is, how much of it is computed, and what is still to do."""
    files = store.files()
    total, done = store.unit_counts(), store.done(files)
    there, units = sum(done.values()), sum(total.values())
    records, states = (sum(file.stat().st_size for file in found.values()) / 1e6 for found in (files, store.states()))
    counts = " x ".join(_count(count, axis) for count, axis in zip(store.shape, AXES, strict=True))
    # Rounded down, so that 100 % is all.
    yield f"{store.path}: {100 * there // units} % computed ({there:,} of {_count(units, 'units')}, {records:.1f} MB, states {states:.1f} MB)"
    yield f"  {counts}, {_count(store.runs, 'runs')} of {_count(store.rounds, 'rounds')} each"
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
    for name, reason in store.failures().items():
        yield f"  failed the last time: {name}: {reason}"


def verify_lines(store: Store) -> tuple[bool, list[str]]:
    """Whether every file of the finished sweep is there and holds what its name says; and what to tell the user."""
    bad = {**dict.fromkeys(store.damaged_manifests(), "this file is damaged; the other copy is whole"), **store.damaged()}
    files = store.files()
    missing = sum(store.unit_counts().values()) - sum(store.done(files).values())
    lines = [f"damaged: {file}: {fault}" for file, fault in bad.items()]
    lines.append(f"{_count(len(files), 'unit files')} checked, {len(bad)} damaged")
    if missing:
        lines.append(f"{_count(missing, 'units')} missing: deleted, or not computed yet")
    if bad or missing:
        lines.append("the next `jaxbandit sweep` computes what is damaged or missing")
    return not (bad or missing), lines


def _count(number: int, things: str) -> str:
    """``1 unit``, ``1,200 units``; losses and delays have no singular here, they name axes."""
    return f"{number:,} {things if number != 1 or things in ('losses', 'delays') else things.removesuffix('es' if things == 'launches' else 's')}"
