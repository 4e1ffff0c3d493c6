"""Array jobs: processes that each compute a part of one sweep into one folder, and take no lock.

::

    OUT/parts/3-of-16_SETTINGS_ENVIRONMENT   part 3 of 16 was begun; holds the name of the process
    OUT/parts/settings_ID.json               the manifest without its environments, which all parts share
    OUT/parts/environment_ID.json            an environment that a part was computed in
    OUT/parts/3-of-16.failures.json          units of this part that failed, with the reason
    OUT/parts/incoming/                      files being written, under names that no two processes share

A part adds files and removes none. Every file is renamed into place as a whole, and the name of each that matters is a digest of its
content: two processes that write one file write the same bytes. So neither the order nor the number of processes matters, and a
part that two processes compute by mistake is computed twice, with one result. Only :func:`jaxbandit.sweeps.merge`, or a sweep
without a part, removes this folder.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from jaxbandit._core.fields import show
from jaxbandit._io.files import is_draft
from jaxbandit._provenance.environment import differences
from jaxbandit.sweeps.layout import (
    MANIFESTS,
    PART_FILE,
    PART_MARK,
    PARTS,
    MismatchError,
    StoreError,
    Unit,
    in_plain_words,
    refuse_link,
)
from jaxbandit.sweeps.manifest import (
    Environment,
    Manifest,
    checked_manifest,
    difference,
    is_complete_environment,
    read_manifest,
    with_environment,
)

MOST_PARTS = 1_000_000


class SweepPart(NamedTuple):
    """One of the equal shares of a sweep: ``SweepPart(3, 16)`` is the third of sixteen."""

    number: int  # from 1
    of: int

    @classmethod
    def checked(cls, given: Any) -> Self:
        """Check ``part=(3, 16)``."""
        pair: tuple[Any, ...] = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else ()
        whole = len(pair) == 2 and all(isinstance(value, int) and not isinstance(value, bool) for value in pair)
        if not whole or not 1 <= pair[0] <= pair[1] <= MOST_PARTS:
            raise ValueError(
                f"part={show(given)}: a part is two whole numbers, such as part=(3, 16) for the third of sixteen; parts count from 1 "
                f"to at most {MOST_PARTS}"
            )
        return cls(*pair)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def file_name(self) -> str:
        return f"{self.number}-of-{self.of}"

    def share(self, units: Iterable[Unit]) -> set[tuple[str, int]]:
        """The cells and blocks of this part."""
        return {unit[:2] for unit, number in dealt(units, self.of) if number == self.number - 1}


def dealt(units: Iterable[Unit], parts: int) -> Iterator[tuple[Unit, int]]:
    """Each unit with its part, from 0: blocks of runs are dealt out in turn, so that every part has some of every costly cell."""
    places: dict[tuple[str, int], int] = {}
    for unit in units:
        yield unit, places.setdefault(unit[:2], len(places)) % parts


class Mark(NamedTuple):
    """The record that a part was started, with its settings and environment."""

    part: SweepPart
    settings: str
    environment: str

    @property
    def file_name(self) -> str:
        return f"{self.part.file_name}_{self.settings}_{self.environment}"


def marks(folder: Path) -> list[Mark]:
    """The parts that were begun in the folder of a sweep, in the order of their numbers."""
    found = []
    with in_plain_words(folder):
        for entry in os.scandir(folder / PARTS) if (folder / PARTS).is_dir() else ():
            if PART_FILE.fullmatch(entry.name):
                refuse_link(entry)
            match = PART_MARK.fullmatch(entry.name)
            if match and 1 <= int(match[1]) <= int(match[2]) <= MOST_PARTS:
                found.append(Mark(SweepPart(int(match[1]), int(match[2])), match[3], match[4]))
    return sorted(found, key=lambda mark: (mark.part.of, mark))


def begun_by(folder: Path, mark: Mark) -> str:
    """The process that a mark names."""
    try:
        with (folder / PARTS / mark.file_name).open() as file:
            return file.readline(200).strip() or "an unknown process"
    except (OSError, ValueError):
        return "an unknown process"


def failure_files(folder: Path) -> list[Path]:
    """The files in which parts report failed units."""
    return sorted(path for path in (folder / PARTS).glob("*.failures.json") if PART_FILE.fullmatch(path.name))


def settings_of(manifest: Manifest) -> dict[str, Any]:
    """The settings that all parts of one sweep share."""
    return {name: value for name, value in manifest.items() if name != "environments"}


def named(kind: str, content: Any) -> tuple[str, str]:
    """The digest of a ``settings`` or ``environment`` file, and its text."""
    text = json.dumps(content, indent=1, sort_keys=True)
    return hashlib.sha256(f"{kind} {text}".encode()).hexdigest()[:16], text


def same_settings(one: Manifest, two: Manifest) -> bool:
    """Whether two manifests are those of one sweep; as text, because NaN is not equal to itself."""
    return named("settings", settings_of(one)) == named("settings", settings_of(two))


def content_file(folder: Path, kind: str, digest: str) -> Path:
    return folder / PARTS / f"{kind}_{digest}.json"


def read_content(folder: Path, kind: str, digest: str) -> Any:
    """The content of a ``settings`` or ``environment`` file, None if it is damaged."""
    try:
        content = json.loads(content_file(folder, kind, digest).read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return content if named(kind, content)[0] == digest else None


def environments_of(folder: Path, begun: Iterable[Mark]) -> dict[str, Environment]:
    """The environments of these parts by their digests, in the order of the parts."""
    found: dict[str, Environment] = {}
    for mark in begun:
        if mark.environment not in found:
            content = read_content(folder, "environment", mark.environment)
            if not is_complete_environment(content):
                raise _damaged(folder, "environment", mark.environment, mark)
            found[mark.environment] = content
    return found


def check_environments(folder: Path, begun: list[Mark], mix: bool) -> None:
    """Raise if parts were computed in environments that may give different numbers, unless that is allowed."""
    found = environments_of(folder, begun)
    first, *others = [(mark.part, found[mark.environment]) for mark in begun] or [(None, {})]
    for part, environment in others:
        unlike = differences(first[1], environment)
        if unlike and (not mix or first[1]["x64"] != environment["x64"]):
            told = "; ".join(
                text.replace(" then,", f" in part {first[0]},").replace(" now", f" in part {part}") for text in unlike
            )
            raise MismatchError(
                f"{folder}: parts were computed in different environments ({told}), where numbers may come out differently; compute "
                "them on hosts of one kind, or accept both in one store with mix_environments=True (--mix-environments), but never two precisions"
            )


def joined_manifest(folder: Path) -> Manifest | None:
    """The manifest of the sweep that the parts in a folder compute; None without parts."""
    begun = marks(folder)
    if not begun:
        return None
    manifests = {}
    for mark in begun:
        if mark.settings not in manifests:
            manifests[mark.settings] = mark, _manifest(folder, mark, begun)
    (first, manifest), *others = manifests.values()
    for mark, other in others:
        raise MismatchError(
            f"{folder}: parts {first.part} and {mark.part} compute different sweeps ({told_difference(manifest, other)}); "
            f"compute one of them in another folder, and remove its files {PARTS}/*_{first.settings}_* or {PARTS}/*_{mark.settings}_*"
        )
    return manifest


def _manifest(folder: Path, mark: Mark, begun: list[Mark]) -> Manifest:
    settings = read_content(folder, "settings", mark.settings)
    before = next((found for found in (read_manifest(folder / name) for name in MANIFESTS) if found is not None), None)
    environments = list(before["environments"]) if before else []
    for environment in environments_of(folder, begun).values():
        environments = with_environment(environments, environment)
    whole = {**settings, "environments": environments} if isinstance(settings, dict) else None
    manifest = checked_manifest(content_file(folder, "settings", mark.settings), whole)
    if manifest is None:
        raise _damaged(folder, "settings", mark.settings, mark)
    return manifest


def _damaged(folder: Path, kind: str, digest: str, mark: Mark) -> StoreError:
    return StoreError(
        f"{content_file(folder, kind, digest)}: this file is damaged or missing; start part {mark.part} again as it was begun, which restores it"
    )


def told_difference(one: Manifest, two: Manifest) -> str:
    """Where the settings of two manifests differ, in words."""
    for name, values in {
        "rounds": [made["horizons"][-1]["rounds"] for made in (one, two)],
        "runs": [one["runs"], two["runs"]],
    }.items():
        if values[0] != values[1]:
            return f"{name} {values[0]} and {values[1]}"
    if one.get("until") != two.get("until"):
        return "until, or the runs that it added"
    codes = [[entry.get("code") for axis in made["axes"].values() for entry in axis] for made in (one, two)]
    if codes[0] != codes[1] and [cell["id"] for cell in one["cells"]] == [cell["id"] for cell in two["cells"]]:
        return "the code of a learner or law was edited"
    if {**one, "title": "", "text": ""} | {"environments": []} == {**two, "title": "", "text": ""} | {"environments": []}:
        return "title or text"
    return difference(one, two)


def remove_parts(folder: Path) -> None:
    """Remove what parts left beside the units, those files first that say that there are parts; files of others stay."""
    parts = folder / PARTS
    if not parts.is_dir():
        return
    names = sorted(os.listdir(parts), key=lambda name: PART_MARK.fullmatch(name) is None)
    for name in names:
        if PART_FILE.fullmatch(name) and name != "incoming" and not (parts / name).is_dir():
            (parts / name).unlink(missing_ok=True)
    if (parts / "incoming").is_dir():
        for entry in os.scandir(parts / "incoming"):
            if is_draft(entry.name) and entry.is_file(follow_symlinks=False):
                Path(entry.path).unlink(missing_ok=True)
    for place in (parts / "incoming", parts):
        with contextlib.suppress(OSError):  # something else is in it
            place.rmdir()
