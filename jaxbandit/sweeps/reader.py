"""Reading a spec: a TOML file, a dict of the same form or a :class:`Spec`, checked whole before anything is compiled.

Every problem is collected with its path in the spec, such as ``learners[0].grid.factor[1]``, and all are reported at once.
"""

import dataclasses
import importlib
import inspect
import itertools
import math
import tomllib
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jaxbandit._core.fields import field_values, is_numeric, show, suggest
from jaxbandit._io.files import checked_path
from jaxbandit.sweeps.labels import class_name, distinct_by_fields, distinct_texts, is_number
from jaxbandit.sweeps.recorded import LOG, FromLog, read_numbers
from jaxbandit.sweeps.spec import AXES, CATALOGUE, ORACLE, Axis, AxisPoint, Entry, Spec, SpecError, describe, find

MOST_POINTS = 10_000  # on one axis
MOST_NESTED = 16  # nesting depth of learners or models
_WRONG: Any = object()  # replaces an entry or a value whose problem has been reported


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise SpecError(str(path), ["there is no such file"]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(str(path), [f"this file cannot be read as text ({error})"]) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SpecError(str(path), [f"this is not TOML: {error}"]) from None


class SpecReader:
    """Reads a spec and collects its problems; :meth:`finish` raises them."""

    def __init__(self, source: Any, imports: bool = False, folder: Path | None = None):
        """``folder``: the folder of the files that a spec names if it is not a file itself; None: it may name none."""
        self.problems: list[str] = []
        self.imports = imports
        is_file = isinstance(source, str | Path)
        source = checked_path("spec", source) if is_file else source
        self.name = str(source) if is_file else "spec"
        self.folder = Path(source).resolve().parent if is_file else folder and folder.resolve()
        spec = source if isinstance(source, Spec) else self._document(read_toml(Path(source)) if is_file else source)
        self.spec = dataclasses.replace(spec, **{name: _plain_numbers(vars(spec)[name]) for name in _NUMBERS})

    def problem(self, path: str, text: str) -> None:
        self.problems.append(f"{path}: {text}" if path else text)

    def finish(self) -> None:
        if self.problems:
            raise SpecError(self.name, self.problems)

    def check_seed(self) -> None:
        seed = self.spec.seed
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**32:
            self.problem("seed", f"{show(seed)} is not a seed, a whole number from 0 to 2**32 - 1")

    # From a document to entries.

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
            return [_WRONG]
        entries = []
        for table in tables:
            fields = {key: value for key, value in table.items() if key not in ("name", "label", "grid")}
            entries.append(Entry(table.get("name", _WRONG), fields, table.get("grid", {}), table.get("label")))
        return entries

    # From entries to points.

    def points(self, axis: Axis) -> list[AxisPoint]:
        """The points of one axis, with expanded grids and unique labels."""
        given = vars(self.spec)[axis]
        if not isinstance(given, list | tuple | Mapping):
            self.problem(axis, f"{show(given)} is not a list of {axis}")
            return []
        if not given:
            self.problem(axis, f"a sweep needs at least one of its {axis}; write a [[{axis}]] table")
        points: list[tuple[AxisPoint, Mapping[str, Any]]] = []
        # A dict gives labels: learners={"MZS22": jb.BestOfBothWorlds(10)}.
        labelled = given.items() if isinstance(given, Mapping) else ((None, entry) for entry in given)
        for index, (label, entry) in enumerate(labelled):
            path = f"{axis}[{index}]"
            if isinstance(entry, Entry):
                points.extend(self._expand(axis, path, entry if label is None else dataclasses.replace(entry, label=label)))
            elif entry is not _WRONG and self._check_entry(axis, path, Entry("", label=label)) and self._check_depth(path, entry):
                about = describe(axis, entry)
                points.append((AxisPoint(label or class_name(about["name"]), path, entry, about, ()), about))
            if len(points) > MOST_POINTS:
                self.problem(axis, f"there are more than {MOST_POINTS} of them; leave some out of the grids")
                return []
        return self._labelled(points)

    def _check_depth(self, path: str, thing: Any) -> bool:
        level = [thing]
        for _ in range(MOST_NESTED + 1):
            level = [inner for one in level for inner in _inside(one)]
            if not level:
                return True
        self.problem(path, f"learners or laws are nested more than {MOST_NESTED} deep")
        return False

    def _expand(self, axis: Axis, path: str, entry: Entry) -> Iterator[tuple[AxisPoint, dict[str, Any]]]:
        if not self._check_entry(axis, path, entry):
            return
        cls = self._class(axis, path, entry.name)
        if cls is None or not self._check_names(cls, path, entry):
            return
        if math.prod(len(values) for values in entry.grid.values()) > MOST_POINTS:
            self.problem(f"{path}.grid", f"this grid has more than {MOST_POINTS} points")
            return
        texts = {key: distinct_texts(values) for key, values in entry.grid.items()}
        for numbers in itertools.product(*(range(len(values)) for values in entry.grid.values())):
            places = dict(zip(entry.grid, numbers, strict=True))
            fields = {**entry.fields, **{key: entry.grid[key][number] for key, number in places.items()}}
            paths = {key: f"{path}.{key}" for key in entry.fields}
            paths |= {key: f"{path}.grid.{key}[{number}]" for key, number in places.items()}
            made = self._make(axis, cls, fields, paths, path)
            if made is not _WRONG:
                about = describe(axis, made) | ({} if cls is FromLog else {"name": entry.name})
                label = " ".join(
                    [entry.label or class_name(entry.name), *(f"{key}={texts[key][number]}" for key, number in places.items())]
                )
                yield AxisPoint(label, path, made, about, tuple(places)), fields

    def _check_entry(self, axis: Axis, path: str, entry: Entry) -> bool:
        """Whether name, label and tables have the right types."""
        before = len(self.problems)
        if not isinstance(entry.name, str):
            self.problem(f"{path}.name", f"a name is needed, such as {next(iter(CATALOGUE[axis]))!r}")
        if entry.label is not None and not isinstance(entry.label, str):
            self.problem(f"{path}.label", f"{show(entry.label)} is not a text")
        elif entry.label is not None and not (entry.label.isprintable() and entry.label.strip()):
            self.problem(f"{path}.label", f"{show(entry.label)} is not one line of printable text")
        if not isinstance(entry.fields, Mapping):
            self.problem(f"{path}.fields", f"{show(entry.fields)} is not a dict of fields and their values")
        if not isinstance(entry.grid, Mapping):
            self.problem(f"{path}.grid", f"{show(entry.grid)} is not a table; write grid = {{ field = [value, value] }}")
        return len(self.problems) == before

    def _class(self, axis: Axis, path: str, name: str) -> type | None:
        if ":" in name:
            return self._imported(path, name)
        cls = FromLog if name == LOG and axis != "learners" else find(axis, name)
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
            cls = vars(importlib.import_module(module))[attribute]
        except KeyError:
            self.problem(f"{path}.name", f"{name!r} cannot be imported: {module} has no {attribute!r}")
            return None
        except (Exception, SystemExit) as error:  # the module runs, so it may raise anything
            self.problem(f"{path}.name", f"{name!r} cannot be imported: {type(error).__name__}: {error}")
            return None
        if not dataclasses.is_dataclass(cls) or not isinstance(cls, type):
            self.problem(f"{path}.name", f"{name!r} is not a dataclass")
            return None
        return cls

    def _check_names(self, cls: type, path: str, entry: Entry) -> bool:
        """Whether the fields and the grid name what the class has, and nothing twice or not at all."""
        before = len(self.problems)
        fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
        others = {name for name in inspect.signature(cls).parameters if name not in fields}  # such as rewards= for means=
        for where, keys in ((path, entry.fields), (f"{path}.grid", entry.grid)):
            for key in keys:
                if key not in fields and key not in others:
                    hint = suggest(str(key), [*fields, *others]) if fields else "it has no fields"
                    self.problem(f"{where}.{key}", f"{entry.name!r} has no such field; {hint}")
        for key, values in entry.grid.items():
            self._check_grid_values(f"{path}.grid.{key}", values)
            if key in entry.fields:
                self.problem(f"{path}.grid.{key}", f"{key} is given twice, here and beside the grid; leave one out")
        for name, field in fields.items():
            needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            other = field.metadata.get("or")  # an argument that can be given in its place
            needed |= other is not None and other not in entry.fields and other not in entry.grid
            if needed and name not in entry.fields and name not in entry.grid:
                self.problem(f"{path}.{name}", f"{entry.name!r} needs this field")
        return len(self.problems) == before

    def _check_grid_values(self, path: str, values: Any) -> None:
        if not isinstance(values, list | tuple) or not values:
            self.problem(path, f"{show(values)} is not a list of values to try")
            return
        seen: dict[str, int] = {}
        for index, value in enumerate(values):
            text = repr(float(value)) if is_number(value) else repr(value)
            if text in seen:
                self.problem(f"{path}[{index}]", f"{show(value)} is in this list twice, also at [{seen[text]}]; leave one out")
            seen.setdefault(text, index)

    # From fields to objects.

    def _make(self, axis: Axis, cls: type, fields: Mapping[str, Any], paths: Mapping[str, str], path: str) -> Any:
        before = len(self.problems)
        try:
            hints = typing.get_type_hints(cls)
            metadata = {field.name: field.metadata for field in dataclasses.fields(cls)}
            values = {
                key: self._static(paths[key], hints.get(key), value)
                if metadata.get(key, {}).get("static")
                else self._leaf(axis, paths[key], value)
                for key, value in fields.items()
            }
            made = cls(**values) if len(self.problems) == before else _WRONG
            return (
                self._from_file(path, made.file, lambda file: made.law(axis, file))
                if cls is FromLog and made is not _WRONG
                else made
            )
        except Exception as error:  # a class of the user's own may raise anything
            self.problem(path, f"{type(error).__name__}: {error}")
            return _WRONG

    def _static(self, path: str, hint: Any, value: Any) -> Any:
        """A size or a switch: its type is part of the program."""
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, str) and value == ORACLE:
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
        """A number, an array of them, an array from a file, or a nested learner or model."""
        if isinstance(value, Mapping) and "file" in value:
            return self._numbers(path, value)
        if isinstance(value, Mapping):
            return self._nested(axis, path, value)
        if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            return tuple(self._leaf(axis, f"{path}[{index}]", item) for index, item in enumerate(value))
        if isinstance(value, str):
            if value != ORACLE:
                self.problem(path, f"{show(value)} is not a number; a number or {ORACLE!r} can stand here")
        elif isinstance(value, bool):
            self.problem(path, f"{str(value).lower()} is not a number")
        elif isinstance(value, list | tuple):
            if any(dataclasses.is_dataclass(item) for item in value):
                return tuple(value)
            if not is_numeric(value) or np.asarray(value).dtype.kind == "b":
                self.problem(path, f"{show(value)} is not an array of numbers (are all rows equally long?)")
                return _WRONG
            return np.asarray(value)
        elif not is_numeric(value) and not dataclasses.is_dataclass(value):
            self.problem(path, f"{show(value)} is not a number")
        return value

    def _nested(self, axis: Axis, path: str, table: Mapping[str, Any]) -> Any:
        """A nested learner or model: ``base = { name = "bernoulli", means = [0.3, 0.5] }``."""
        if path.count(".") > MOST_NESTED:
            self.problem(path, f"learners or laws are nested more than {MOST_NESTED} deep")
            return _WRONG
        entry = Entry(table.get("name", _WRONG), {key: value for key, value in table.items() if key != "name"})
        cls = self._class(axis, path, entry.name) if self._check_entry(axis, path, entry) else None
        if cls is None or not self._check_names(cls, path, entry):
            return _WRONG
        return self._make(axis, cls, entry.fields, {key: f"{path}.{key}" for key in entry.fields}, path)

    def _numbers(self, path: str, table: Mapping[str, Any]) -> Any:
        """``{ file = "trace.csv" }`` or ``.npy``: numbers from a file."""
        name = table["file"]
        if set(table) != {"file"} or not isinstance(name, str) or not name.endswith((".npy", ".csv")):
            self.problem(path, f"{show(dict(table))}: write {{ file = 'NAME.npy' }} or {{ file = 'NAME.csv' }}")
            return _WRONG
        return self._from_file(path, name, read_numbers)

    def _from_file(self, path: str, name: Any, read: Callable[[Path], Any]) -> Any:
        """Apply ``read`` to a file in the folder of the spec."""
        if not isinstance(name, str):
            self.problem(f"{path}.file", f"{show(name)} is not the name of a file")
        elif self.folder is None:
            self.problem(path, "a file can only be named in a spec that is a file itself")
        else:
            try:
                found = (self.folder / name).resolve()
                if found.is_relative_to(self.folder):
                    return read(found)
                self.problem(path, f"{name!r} leads out of the spec's folder; put the file beside the spec")
            # A RuntimeError is of links that lead in a circle.
            except (OSError, ValueError, EOFError, ImportError, RuntimeError) as error:
                self.problem(path, f"{name!r} cannot be read: {error}")
        return _WRONG

    def _labelled(self, points: Sequence[tuple[AxisPoint, Mapping[str, Any]]]) -> list[AxisPoint]:
        """Points with labels that differ: where some would be equal, the fields that differ are added."""
        alike: dict[str, list[int]] = {}
        for number, (point, _) in enumerate(points):
            alike.setdefault(point.label, []).append(number)
        labels = [point.label for point, _ in points]
        for numbers in alike.values():
            described = [{**points[number][0].about, **points[number][1]} for number in numbers] if len(numbers) > 1 else []
            for number, words in zip(numbers, distinct_by_fields(described), strict=False):
                labels[number] += words
        labelled: dict[str, AxisPoint] = {}
        for label, (point, _) in zip(labels, points, strict=True):
            if label in labelled:
                self.problem(point.path, f"{label!r} is in the spec twice ({labelled[label].path}); give one of them a label")
            labelled[label] = dataclasses.replace(point, label=label)
        return list(labelled.values())


_NUMBERS = ("rounds", "runs", "seed", "record", "control_variates", "states")


def _plain_numbers(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's, which the manifest can hold."""
    if isinstance(value, list | tuple):
        return [_plain_numbers(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _inside(thing: Any) -> list[Any]:
    """The learners or models that are fields of another, or in a list in a field."""
    flat = [inner for value in field_values(thing).values() for inner in (value if isinstance(value, tuple | list) else [value])]
    return [inner for inner in flat if dataclasses.is_dataclass(inner) and not isinstance(inner, type)]
