"""What a sweep computes: a TOML file or the same thing as Python dataclasses, checked whole before anything is compiled.

A spec has ``rounds``, ``runs``, ``seed`` and three lists: learners, losses, delays. The sweep is their product. Every
public field of every learner, loss and delay law is written under its own name; ``grid`` expands to the product over its
keys; the word ``"oracle"`` stands for the true value of a cell (see :mod:`jaxbandit.sweep.plan`).
"""

import dataclasses
import difflib
import importlib
import inspect
import itertools
import re
import tomllib
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jaxbandit import delays as delay_laws
from jaxbandit import losses as loss_laws
from jaxbandit.learners import REGISTRY
from jaxbandit.pytrees import is_numeric, show

ORACLE = "oracle"
MOST_SETTINGS = 10_000
AXES = ("learners", "losses", "delays")
Axis = Literal["learners", "losses", "delays"]


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def _laws(module) -> dict[str, type]:
    public = [cls for cls in vars(module).values() if inspect.isclass(cls) and dataclasses.is_dataclass(cls)]
    return {_kebab(cls.__name__): cls for cls in public if cls.__module__ == module.__name__ and cls.__name__[0] != "_"}


CATALOGUE: dict[str, dict[str, type]] = {"learners": REGISTRY, "losses": _laws(loss_laws), "delays": _laws(delay_laws)}


class SpecError(ValueError):
    """Everything that is wrong with a spec, each problem with its path in it."""

    def __init__(self, source: str, problems: Sequence[str]):
        self.problems = tuple(dict.fromkeys(problems))
        head = f"{source}: {len(self.problems)} problem{'s' if len(self.problems) > 1 else ''}"
        super().__init__("\n  ".join([head, *self.problems]))


@dataclasses.dataclass(frozen=True)
class Entry:
    """One ``[[learners]]``, ``[[losses]]`` or ``[[delays]]`` table.

    >>> from jaxbandit.sweep import Entry
    >>> Entry("bobw", {"max_delay": "oracle"}, grid={"factor": [24.0, 1.0]}).name
    'bobw'
    """

    name: str
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    label: str | None = None


@dataclasses.dataclass(frozen=True)
class Spec:
    """A sweep. Learners, losses and delays are :class:`Entry` tables or the objects themselves, also of your own classes.

    Args:
      rounds: the horizon of every cell.
      runs: how many runs of every cell; learners share losses and delays run by run.
      learners, losses, delays: the three axes. A field of an object may be ``"oracle"`` too.
      seed: of the key, ``jax.random.key(seed)``.
      record: how many log-spaced rounds are recorded, or the rounds themselves.
      control_variates: also record :class:`jaxbandit.ControlVariates`, which narrows the intervals.

    >>> import jaxbandit as jb
    >>> spec = jb.Spec(rounds=1000, runs=256, learners=[jb.BestOfBothWorlds("oracle"), jb.TsallisINF()],
    ...                losses=[jb.losses.Bernoulli([0.3, 0.5])], delays=[jb.delays.Fixed(10)])
    >>> spec.seed
    0
    """

    rounds: int
    runs: int
    learners: Sequence[Any]
    losses: Sequence[Any]
    delays: Sequence[Any]
    seed: int = 0
    record: int | Sequence[int] = 50
    control_variates: bool = False


@dataclasses.dataclass(frozen=True)
class Setting:
    """One point of an axis: an object whose fields may still say ``"oracle"``."""

    label: str
    path: str  # where it stands in the spec
    object: Any
    about: dict[str, Any]  # its name and fields, as JSON can hold them
    swept: tuple[str, ...]  # the fields that a grid varies


def suggest(word: str, known: typing.Iterable[str]) -> str:
    """``; did you mean 'factor'?``, or the list of what there is."""
    known = sorted(known)
    near = difflib.get_close_matches(word.lower(), known, 1, 0.6)
    return f"did you mean {near[0]!r}?" if near else f"there {'is' if len(known) == 1 else 'are'} {', '.join(known)}"


class Reader:
    """Reads a spec and collects every problem on the way; :meth:`finish` reports them all at once."""

    def __init__(self, source: Any, imports: bool = False):
        self.problems: list[str] = []
        self.imports = imports
        is_file = isinstance(source, str | Path)
        self.name = str(source) if is_file else "spec"
        self.folder = Path(source).resolve().parent if is_file else None
        self.spec = source if isinstance(source, Spec) else self._document(self._toml(Path(source)) if is_file else source)

    def problem(self, path: str, text: str) -> None:
        self.problems.append(f"{path}: {text}" if path else text)

    def finish(self) -> None:
        if self.problems:
            raise SpecError(self.name, self.problems)

    def _toml(self, path: Path) -> dict[str, Any]:
        try:
            return tomllib.loads(path.read_bytes().decode())
        except FileNotFoundError:
            raise SpecError(self.name, ["there is no such file"]) from None
        except (OSError, UnicodeDecodeError) as error:
            raise SpecError(self.name, [f"this file cannot be read as text ({error})"]) from None
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise SpecError(self.name, [f"this is not TOML: {error}"]) from None

    def _document(self, document: Any) -> Spec:
        if not isinstance(document, Mapping):
            raise TypeError(f"spec={show(document)}: give the path of a TOML file, a Spec, or a dict of the same form")
        known = {field.name for field in dataclasses.fields(Spec)}
        for key in document:
            if key not in known:
                self.problem(str(key), f"this is not a field of a spec; {suggest(str(key), known)}")
        values: dict[str, Any] = {"rounds": None, "runs": None} | {key: document[key] for key in document if key in known}
        for axis in AXES:
            values[axis] = self._entries(axis, document.get(axis))
        return Spec(**values)

    def _entries(self, axis: str, tables: Any) -> list[Any]:
        if tables is None:
            return []
        if not isinstance(tables, list | tuple) or not all(isinstance(table, Mapping) for table in tables):
            self.problem(axis, f"give one or more [[{axis}]] tables")
            return [None]
        entries = []
        for index, table in enumerate(tables):
            path = f"{axis}[{index}]"
            name, label, grid = table.get("name"), table.get("label"), table.get("grid", {})
            if not isinstance(name, str):
                self.problem(f"{path}.name", f"a name is needed, such as {next(iter(CATALOGUE[axis]))!r}")
            elif label is not None and not isinstance(label, str):
                self.problem(f"{path}.label", f"{show(label)} is not a text")
            elif not isinstance(grid, Mapping):
                self.problem(f"{path}.grid", f"{show(grid)} is not a table; write grid = {{ field = [value, value] }}")
            else:
                fields = {key: value for key, value in table.items() if key not in ("name", "label", "grid")}
                entries.append(Entry(name, fields, grid, label))
                continue
            entries.append(None)
        return entries

    def settings(self, axis: Axis) -> list[Setting]:
        """The points of one axis, grids expanded, labels told apart."""
        given = getattr(self.spec, axis)
        if not isinstance(given, list | tuple):
            self.problem(axis, f"{show(given)} is not a list of {axis}")
            return []
        if not given:
            self.problem(axis, f"a sweep needs at least one of its {axis}; write a [[{axis}]] table")
        points = []
        for index, entry in enumerate(given):
            path = f"{axis}[{index}]"
            if isinstance(entry, Entry):
                points.extend(self._expand(axis, path, entry))
            elif entry is not None:
                about = describe(axis, entry)
                points.append((Setting(about["name"], path, entry, about, ()), about))
        return self._labelled(points)

    def _expand(self, axis: Axis, path: str, entry: Entry) -> Iterator[tuple[Setting, dict[str, Any]]]:
        cls = self._class(axis, path, entry.name)
        if cls is None or not self._check_names(cls, path, entry):
            return
        grid = {key: list(values) for key, values in entry.grid.items()}
        if np.prod([float(len(values)) for values in grid.values()]) > MOST_SETTINGS:
            self.problem(f"{path}.grid", f"this grid has more than {MOST_SETTINGS} points")
            return
        for numbers in itertools.product(*(range(len(values)) for values in grid.values())):
            swept = {key: grid[key][number] for key, number in zip(grid, numbers, strict=True)}
            paths = {key: f"{path}.{key}" for key in entry.fields}
            paths |= {key: f"{path}.grid.{key}[{number}]" for key, number in zip(grid, numbers, strict=True)}
            made = self._make(axis, cls, {**entry.fields, **swept}, paths, path)
            if made is None:
                continue
            about = describe(axis, made) | {"name": entry.name}
            label = " ".join([entry.label or entry.name, *(f"{key}={_short(value)}" for key, value in swept.items())])
            yield Setting(label, path, made, about, tuple(swept)), {**entry.fields, **swept}

    def _class(self, axis: Axis, path: str, name: str) -> type | None:
        if ":" in name:
            return self._imported(path, name)
        cls = CATALOGUE[axis].get(name)
        if cls is None:
            self.problem(f"{path}.name", f"{name!r} is not known; {suggest(name, CATALOGUE[axis])}")
        return cls

    def _imported(self, path: str, name: str) -> type | None:
        if not self.imports:
            self.problem(
                f"{path}.name", f"{name!r} names code to import; if you trust this spec, allow it (--imports, imports=True)"
            )
            return None
        module, _, attribute = name.partition(":")
        try:
            cls = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, ValueError, TypeError) as error:
            self.problem(f"{path}.name", f"{name!r} cannot be imported: {error}")
            return None
        if not dataclasses.is_dataclass(cls) or not isinstance(cls, type):
            self.problem(f"{path}.name", f"{name!r} is not a dataclass")
            return None
        return cls

    def _check_names(self, cls: type, path: str, entry: Entry) -> bool:
        """Whether the fields and the grid name what the class has, and nothing twice or not at all."""
        before = len(self.problems)
        fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
        for where, keys in ((path, entry.fields), (f"{path}.grid", entry.grid)):
            for key in keys:
                if key not in fields:
                    hint = suggest(key, fields) if fields else "it has no fields"
                    self.problem(f"{where}.{key}", f"{entry.name!r} has no such field; {hint}")
        for key, values in entry.grid.items():
            if not isinstance(values, list | tuple) or not values:
                self.problem(f"{path}.grid.{key}", f"{show(values)} is not a list of values to try")
            if key in entry.fields:
                self.problem(f"{path}.grid.{key}", f"{key} is given twice, here and beside the grid; leave one out")
        for name, field in fields.items():
            needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            if needed and name not in entry.fields and name not in entry.grid:
                self.problem(f"{path}.{name}", f"{entry.name!r} needs this field")
        return len(self.problems) == before

    def _make(self, axis: Axis, cls: type, fields: Mapping[str, Any], paths: Mapping[str, str], path: str) -> Any:
        before = len(self.problems)
        hints = typing.get_type_hints(cls)
        metadata = {field.name: field.metadata for field in dataclasses.fields(cls)}
        values = {
            key: self._static(paths[key], hints.get(key), value)
            if metadata[key].get("static")
            else self._leaf(axis, paths[key], value)
            for key, value in fields.items()
        }
        if len(self.problems) > before:
            return None
        try:
            return cls(**values)
        except Exception as error:  # a class of the user's own may raise anything
            self.problem(path, f"{type(error).__name__}: {error}")
            return None

    def _static(self, path: str, hint: Any, value: Any) -> Any:
        """A size or a switch: its type is part of the program."""
        if value == ORACLE:
            return value
        if typing.get_origin(hint) is Literal and value not in typing.get_args(hint):
            choices = [str(choice) for choice in typing.get_args(hint)]
            self.problem(path, f"{show(value)} is not a choice; {suggest(str(value), choices)}")
        elif hint is bool and not isinstance(value, bool):
            self.problem(path, f"{show(value)} is not true or false")
        elif hint is int and (not isinstance(value, int) or isinstance(value, bool)):
            self.problem(path, f"{show(value)} is not a whole number")
        return value

    def _leaf(self, axis: Axis, path: str, value: Any) -> Any:
        """A number, an array of them, an array from a file, or nested entries."""
        if isinstance(value, Mapping) and "file" in value:
            return self._from_file(path, value)
        if isinstance(value, Mapping):
            return self._nested(axis, path, value)
        if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            return tuple(self._leaf(axis, f"{path}[{index}]", item) for index, item in enumerate(value))
        if isinstance(value, str) and value != ORACLE:
            self.problem(path, f"{show(value)} is not a number; a number or {ORACLE!r} can stand here")
        elif isinstance(value, bool):
            self.problem(path, f"{str(value).lower()} is not a number")
        elif isinstance(value, list | tuple):
            if not is_numeric(value) or np.asarray(value).dtype.kind == "b":
                self.problem(path, f"{show(value)} is not an array of numbers (are all rows equally long?)")
                return value
            return np.asarray(value)
        elif value != ORACLE and not is_numeric(value) and not dataclasses.is_dataclass(value):
            self.problem(path, f"{show(value)} is not a number")
        return value

    def _nested(self, axis: Axis, path: str, table: Mapping[str, Any]) -> Any:
        """A law or learner inside another: ``base = { name = "bernoulli", means = [0.3, 0.5] }``."""
        name = table.get("name")
        if not isinstance(name, str):
            self.problem(f"{path}.name", f"a name is needed, such as {next(iter(CATALOGUE[axis]))!r}")
            return None
        entry = Entry(name, {key: value for key, value in table.items() if key != "name"})
        cls = self._class(axis, path, name)
        if cls is None or not self._check_names(cls, path, entry):
            return None
        return self._make(axis, cls, entry.fields, {key: f"{path}.{key}" for key in entry.fields}, path)

    def _from_file(self, path: str, table: Mapping[str, Any]) -> Any:
        """``{ file = "trace.csv" }`` or ``.npy``: numbers from a file that lies in the spec's own folder."""
        name = table["file"]
        if set(table) != {"file"} or not isinstance(name, str) or not name.endswith((".npy", ".csv")):
            self.problem(path, f"{show(dict(table))}: write {{ file = 'NAME.npy' }} or {{ file = 'NAME.csv' }}")
            return None
        if self.folder is None:
            self.problem(path, "a file can only be named in a spec that is a file itself")
            return None
        found = (self.folder / name).resolve()
        if not found.is_relative_to(self.folder):
            self.problem(path, f"{name!r} leads out of the spec's folder; put the file beside the spec")
            return None
        try:
            return np.load(found, allow_pickle=False) if name.endswith(".npy") else np.loadtxt(found, delimiter=",")
        except (OSError, ValueError, EOFError) as error:
            self.problem(path, f"{name!r} cannot be read: {error}")
            return None

    def _labelled(self, points: list[tuple[Setting, dict[str, Any]]]) -> list[Setting]:
        """Settings with labels that differ: where two would be the same, the fields are added."""
        labels = [setting.label for setting, _ in points]
        settings = []
        for setting, fields in points:
            if labels.count(setting.label) > 1:
                told = {key: value for key, value in fields.items() if key not in ("name", *setting.swept)}
                extra = ", ".join(f"{key}={_short(value)}" for key, value in told.items())
                setting = dataclasses.replace(setting, label=f"{setting.label} ({extra})" if extra else setting.label)
            settings.append(setting)
        for index, setting in enumerate(settings):
            for other in settings[:index]:
                if setting.label == other.label:
                    self.problem(setting.path, f"{setting.label!r} is in the spec twice ({other.path}); give one of them a label")
        return settings


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value.get("name", value.get("file", "…")))
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else show(value).strip("'")


def describe(axis: str, thing: Any) -> dict[str, Any]:
    """Name and fields of an object as JSON can hold them; long arrays by shape only."""
    cls = type(thing)
    names = {known: name for name, known in CATALOGUE[axis].items()}
    about: dict[str, Any] = {"name": names.get(cls, f"{cls.__module__}:{cls.__qualname__}")}
    if dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            about[field.name] = _plain(axis, getattr(thing, field.name))
    return about


def _plain(axis: str, value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return describe(axis, value)
    if isinstance(value, tuple | list) and any(dataclasses.is_dataclass(item) for item in value):
        return [_plain(axis, item) for item in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if not is_numeric(value):
        return repr(value)
    array = np.asarray(value)
    return array.tolist() if array.size <= 1000 else {"shape": list(array.shape)}
