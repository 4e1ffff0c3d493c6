"""Merging the parts of a sweep into the folder that one process would have written."""

import contextlib
import dataclasses
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from jaxbandit._io.files import checked_path, read_arrays, sync_folder, write_whole
from jaxbandit._provenance.environment import differences
from jaxbandit.sweeps.layout import (
    PARTS,
    MismatchError,
    StoreError,
    Unit,
    check_entries,
    check_new_folder,
    in_plain_words,
    remove_drafts,
    unit_files,
)
from jaxbandit.sweeps.manifest import with_environment
from jaxbandit.sweeps.parts import (
    Mark,
    SweepPart,
    check_environments,
    content_file,
    dealt,
    environments_of,
    marks,
    named,
    read_content,
    remove_parts,
    same_settings,
    settings_of,
    told_difference,
)
from jaxbandit.sweeps.store import Store
from jaxbandit.sweeps.writer import StoreWriter, has_manifest, lock

MOST_NAMED = 20  # parts that a message names


@dataclasses.dataclass(frozen=True)
class Merged:
    """A sweep that was put together from its parts."""

    out: Path
    units: int
    parts: int  # that were merged; 0 if there was nothing to do
    copied: int  # unit files copied from other folders


def merge(
    folders: str | os.PathLike | Sequence[str | os.PathLike],
    out: str | os.PathLike | None = None,
    *,
    mix_environments: bool = False,
) -> Merged:
    """Put the parts of a sweep together, as one process would have written it.

    Every unit must be present and undamaged. All parts must agree on the spec, on the code of user-defined learners and models,
    and on the environment. Otherwise an error is raised and nothing is changed. Nothing is computed, so any host can merge.
    After an interruption, call it again.

    Args:
      folders: the folder that the parts were computed in, or several folders with parts or whole sweeps, which are read and stay as they are.
      out: the folder of the merged sweep: a new one, or one of ``folders``. May be left out for a single folder.
      mix_environments: merge although parts were computed in different environments, and record all of them.

    >>> import tempfile, jaxbandit as jb
    >>> spec = jb.Spec(rounds=50, runs=8, learners=[jb.Uniform()], losses=[jb.losses.Bernoulli([0.25, 0.75])],
    ...                delays=[jb.delays.Fixed(2), jb.delays.Fixed(3)])
    >>> out = tempfile.mkdtemp()
    >>> for number in (2, 1):
    ...     summary = jb.sweep(spec, out, part=(number, 2))
    >>> jb.sweeps.merge(out).units
    2
    """
    given = [folders] if isinstance(folders, str | os.PathLike) else list(folders)
    sources = [checked_path("merge(folders=…)", folder) for folder in given]
    if not sources or (out is None and len(sources) > 1):
        raise ValueError(f"merge({len(sources)} folders, out={out}): give the folder for the merged sweep (out=, --out)")
    target = sources[0] if out is None else checked_path("merge(out=…)", out)
    others = [source for source in dict.fromkeys(sources) if not _same(source, target)]
    copied = _gather(others, target, mix_environments) if others else 0
    with in_plain_words(target), contextlib.ExitStack() as stack:
        store = Store.open(target)
        stack.enter_context(_held(target))
        parts = marks(target)
        _finish(store, mix_environments)
    return Merged(target, sum(store.unit_counts().values()), len({mark.part for mark in parts}), copied)


def _same(one: Path, two: Path) -> bool:
    return one.exists() and two.exists() and os.path.samefile(one, two)


def _held(path: Path) -> contextlib.AbstractContextManager[None]:
    """A lock keeps a sweep as a whole away; two processes that merge do the same, so that it is not needed."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        return contextlib.nullcontext()
    return lock(path, if_possible=True)


# In one folder.


def _finish(store: Store, mix: bool) -> None:
    """Check everything, then write the manifest, then remove what only parts need. After a kill at any moment it is repeated."""
    begun = marks(store.path)
    check_environments(store.path, begun, mix)
    damaged = store.damaged()
    store.ignored = damaged
    files = store.files()
    used = _used_states(store)
    stateless = {file.unit for file in unit_files(store.path) if file.is_state and file.path in damaged} - set(store.states())
    missing = [unit for unit in store.units() if unit not in files or (unit in stateless and unit.stop not in used[unit.cell])]
    if missing:
        raise StoreError(_told_missing(store, missing, begun, damaged))
    _check_second_files(store, damaged, files)
    if not begun and not store.damaged_manifests():
        remove_parts(store.path)  # what an interrupted merge left
        return
    writer = StoreWriter(store.path, store.manifest)
    (store.path / "incoming").mkdir(exist_ok=True)
    remove_drafts(store.path / "incoming")  # of a sweep that was begun as a whole, and killed
    writer.write_manifest()
    for unit, path in store.states().items():
        if unit.stop in used.get(unit.cell, ()):
            writer.remove(path)
    for path in damaged:
        path.unlink(missing_ok=True)
    writer.write_failures({})
    remove_parts(store.path)
    sync_folder(store.path)


def _told_missing(store: Store, missing: list[Unit], begun: list[Mark], damaged: dict[Path, str]) -> str:
    text = f"{store.path}: {len(missing)} of {sum(store.unit_counts().values())} units are missing"
    text += f" or damaged ({next(iter(damaged))}: {next(iter(damaged.values()))})" if damaged else ""
    of = max((mark.part.of for mark in begun), default=0)
    if not of:
        return f"{text}; run the sweep (jb.sweep, `jaxbandit sweep`) to compute them"
    lost = set(missing)
    numbers = sorted({number + 1 for unit, number in dealt(store.units(), of) if unit in lost})
    parts = ", ".join(f"{number}/{of}" for number in numbers[:MOST_NAMED]) + (" …" if len(numbers) > MOST_NAMED else "")
    failed = next(iter(store.failures().items()), None)
    text += f"; run {'part' if len(numbers) == 1 else 'parts'} {parts} again, or the same sweep without part= (--part)"
    return text + (f" (failed: {failed[0]}: {failed[1]})" if failed else "")


def _check_second_files(store: Store, damaged: dict[Path, str], files: dict[Unit, Path]) -> None:
    """Refuse two whole files of one unit with different numbers: it is unknown which one is correct."""
    kept = {False: files, True: store.states()}
    for file in unit_files(store.path):
        first = kept[file.is_state].get(file.unit)
        if file.path in damaged and "second file" in damaged[file.path] and first is not None and not _equal(first, file.path):
            raise StoreError(
                f"{file.path} and {first.name}: two files of one unit with different numbers, which were computed in different environments; "
                "remove one of them"
            )


def _equal(one: Path, two: Path) -> bool:
    """Whether two unit files hold the same numbers; the versions that wrote them may differ."""
    found = [
        {name: (array.dtype, array.shape, array.tobytes()) for name, array in read_arrays(path).items()} for path in (one, two)
    ]
    return all(arrays.pop("about", None) is not None for arrays in found) and found[0] == found[1]


def _used_states(store: Store) -> dict[str, set[int]]:
    """Cell -> the rounds from whose states a later unit resumed: a sweep removes these after it has written that unit."""
    return {name: {segment.start for segment in store.segments(cell)} for name, cell in store.cells.items()}


# From several folders.


def _gather(sources: list[Path], target: Path, mix: bool) -> int:
    """Copy the parts of other folders to ``target``, as if they had been computed there; returns the number of unit files."""
    stores = [Store.open(source) for source in sources]
    with in_plain_words(target):
        if target.is_dir():
            check_entries(target)
            if has_manifest(target):
                stores.insert(0, Store.open(target))
            else:
                check_new_folder(target)
        _check_fit(stores, mix)
        (target / PARTS / "incoming").mkdir(parents=True, exist_ok=True)
        for store in stores:
            if not _same(store.path, target):
                _copy_marks(store, target)
        return sum(_copy_units(source, target) for source in sources)


def _check_fit(stores: list[Store], mix: bool) -> None:
    """Refuse folders that do not make up one sweep, before anything is copied."""
    first = stores[0]
    environments = first.manifest["environments"]
    for store in stores:
        check_environments(store.path, marks(store.path), mix)
        if not same_settings(store.manifest, first.manifest):
            raise MismatchError(
                f"{store.path}: this is not a part of the sweep in {first.path} ({told_difference(first.manifest, store.manifest)})"
            )
        for environment in store.manifest["environments"]:
            if len(with_environment(environments, environment)) > len(environments) and not mix:
                unlike = "; ".join(differences(environments[-1], environment))
                raise MismatchError(
                    f"{store.path}: this was computed in another environment than {first.path} ({unlike}), where numbers may come out "
                    "differently; accept both in one store with mix_environments=True (--mix-environments)"
                )
            environments = with_environment(environments, environment)
    there = {unit for store in stores for unit in store.files()}
    missing = [unit for unit in first.units() if unit not in there]
    if missing:
        begun = [mark for store in stores for mark in marks(store.path)]
        raise StoreError(_told_missing(first, missing, begun, {}))


def _copy_marks(store: Store, target: Path) -> None:
    """Copy the marks of the parts of a folder; a whole sweep becomes part 1 of 1."""
    begun = marks(store.path)
    found = environments_of(store.path, begun) or {
        named("environment", known)[0]: known for known in store.manifest["environments"]
    }
    settings, _ = named("settings", settings_of(store.manifest))
    begun = begun or [Mark(SweepPart(1, 1), settings, digest) for digest in found]
    contents = [("settings", settings_of(store.manifest)), *(("environment", known) for known in found.values())]
    for kind, content in contents:
        digest, text = named(kind, content)
        if read_content(target, kind, digest) is None:
            write_whole(content_file(target, kind, digest), text, drafts=target / PARTS / "incoming")
    for mark in begun:
        write_whole(target / PARTS / mark.file_name, f"copied from {store.path}\n", drafts=target / PARTS / "incoming")


def _copy_units(source: Path, target: Path) -> int:
    """Copy the unit files and states that are whole; what is there already is not copied again."""
    copied = 0
    for file in unit_files(source):
        final = target / "units" / file.unit.cell / file.path.name
        if not file.is_file or final.exists():
            continue
        content = file.path.read_bytes()
        if hashlib.sha256(content).hexdigest() == file.digest:
            final.parent.mkdir(parents=True, exist_ok=True)
            write_whole(final, content, drafts=target / PARTS / "incoming")
            copied += 1
    return copied
