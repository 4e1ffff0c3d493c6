"""A digest of the user's own code in a learner, a loss model, a delay model or a measurement.

Results, agents and sweeps record it, so that an edited class is not taken for the one that the numbers were computed with.

The digest covers the code that would run: every method (inherited ones too), the functions and classes that methods use,
decorators, closures, ``functools.partial``, and constants that cannot change in place (numbers, texts, tuples, frozen
dataclasses) or are arrays. Objects that a program may change while it runs (lists, dictionaries, sets, names declared ``global``)
count by the statements of the module that define them, never by their content: a cache that fills up is not an edit. Comments,
docstrings, names of modules, and code of Python, installed packages and jaxbandit do not count. In a notebook, which has no
module file, the content of a list or dictionary does not count at all.
"""

import ast
import dataclasses
import dis
import enum
import functools
import hashlib
import sys
import sysconfig
import types
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

SCHEME = f"{sys.version_info.major}.{sys.version_info.minor}/2"  # bytecode differs between versions of Python
LIBRARY = "library"  # in place of a digest where all code is the package's own

_INSTALLED = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")]
_MUTABLE = (list, dict, set, bytearray, deque)
_CODE = (types.FunctionType, types.MethodType, functools.partial, type)
# Functions that `dataclasses` generates, from fields that are compared elsewhere.
_GENERATED = {f"__{name}__" for name in ["init", "repr", "eq", "hash", "lt", "le", "gt", "ge", "setattr", "delattr"]}

Named = Iterator[tuple[str, Any]]


def code_digest(thing: Any) -> str | None:
    """``SCHEME:DIGEST`` of the user's own code in an object and in the objects it is made of; None without such code."""
    walk = _Walk()
    roots = list(_roots(thing))
    for root in roots:
        walk.visit(root.__qualname__ if isinstance(root, type) else "function", root)
    classes = [owner for root in roots if isinstance(root, type) for owner in root.__mro__]
    # A class without a line of code has a digest too: something may be added to it.
    if not walk.lines and not any(_is_own(owner.__module__) for owner in classes):
        return None
    return f"{SCHEME}:{hashlib.sha256(chr(10).join(sorted(walk.lines)).encode()).hexdigest()[:32]}"


def _roots(thing: Any) -> Iterator[Any]:
    """The class of an object, and the classes and functions of all that its fields hold."""
    if isinstance(thing, _CODE) or "__wrapped__" in _fields(thing):
        yield thing
        return
    yield type(thing)
    for value in thing if isinstance(thing, tuple | list) else _fields(thing).values():
        if not isinstance(value, str | int | float | np.ndarray | jax.Array):
            yield from _roots(value)


def _fields(thing: Any) -> dict[str, Any]:
    try:
        return vars(thing)
    except TypeError:  # it has none
        return {}


@functools.cache
def _is_own(module: str | None) -> bool:
    """Whether a module is the user's: neither of Python, nor installed, nor of this package."""
    root = (module or "").partition(".")[0]
    if root in ("__main__", "__mp_main__"):  # a script or notebook; the same script in a spawned process
        return True
    if root in ("", "jaxbandit") or root in sys.stdlib_module_names:
        return False
    file = _fields(sys.modules.get(module or "")).get("__file__")
    return not file or not any(Path(file).resolve().is_relative_to(folder) for folder in _INSTALLED)


class _Walk:
    """Collects a line of text for each function and constant that can be reached from a value."""

    def __init__(self) -> None:
        self.lines: set[str] = set()
        self._seen: dict[int, tuple[str, Any]] = {}  # the value is kept alive, so that its id stays its own

    def visit(self, name: str, value: Any) -> None:
        text = _constant(value)
        if text is not None:
            self.lines.add(f"{name}: {text}")
        elif id(value) in self._seen:
            self.lines.add(f"{name}: see {self._seen[id(value)][0]}")
        else:
            self._seen[id(value)] = name, value
            for inner_name, inner in self._inside(name, value):
                self.visit(inner_name, inner)

    def _inside(self, name: str, value: Any) -> Named:
        """The values that a value consists of or refers to, named."""
        if isinstance(value, type):
            yield from self._class(value)
        elif isinstance(value, types.FunctionType):
            yield from self._function(name, value)
        elif isinstance(value, types.MethodType):
            yield from ((name, value.__func__), (f"{name} self", value.__self__))
        elif isinstance(value, property):
            yield from ((f"{name} {part}", function) for part, function in _accessors(value))
        elif isinstance(value, classmethod | staticmethod):
            yield name, value.__func__
        elif isinstance(value, functools.partial | functools.partialmethod):
            yield f"{name} function", value.func
            yield f"{name} arguments", tuple(value.args)
            yield from ((f"{name} {key}=", argument) for key, argument in sorted(value.keywords.items()))
        elif isinstance(value, tuple):
            yield from ((f"{name}[{index}]", inner) for index, inner in enumerate(value))
        elif not isinstance(value, _MUTABLE):
            yield from self._object(name, value)

    def _object(self, name: str, value: Any) -> Named:
        """The class of an object of the user's or the package's; its fields if they are fixed, otherwise the functions among them."""
        cls = type(value)
        if _is_own(cls.__module__) or cls.__module__.startswith("jaxbandit."):
            yield f"{name} class", cls
            if dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
                yield from ((f"{name}.{field}", inner) for field, inner in _fields(value).items())
                return
        # What decorators return (jax.jit, functools.cache, custom_jvp) keeps the decorated function in a field.
        functions = ((field, inner) for field, inner in _fields(value).items() if isinstance(inner, _CODE))
        yield from ((f"{name} {field}", inner) for field, inner in functions)

    def _class(self, cls: type) -> Named:
        for owner in cls.__mro__:
            if not _is_own(owner.__module__):
                continue
            assigned = _assigned_attributes(owner)
            for attribute, member in sorted(vars(owner).items()):
                name = f"{owner.__qualname__}.{attribute}"
                if attribute == "__dataclass_fields__":
                    factories = ((f"{name} {key}", one.default_factory) for key, one in member.items())
                    yield from ((key, factory) for key, factory in factories if isinstance(factory, _CODE))
                elif not _is_member(attribute, member):
                    continue
                elif isinstance(member, _MUTABLE) or attribute in assigned:
                    yield from self._statements(name, _source(owner.__module__).of_class(owner.__qualname__, attribute), {})
                else:
                    yield name, member

    def _function(self, name: str, function: types.FunctionType) -> Named:
        code = function.__code__
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        closure = {free: cell.cell_contents for free, cell in cells if _is_filled(cell)}
        if not _is_own(function.__module__):  # a decorator of a library may hold a function of the user
            inside = {**closure, **_fields(function)}
            yield from ((f"{name} {free}", inner) for free, inner in inside.items() if isinstance(inner, _CODE))
            return
        if code.co_filename == "<string>" and code.co_name in _GENERATED:
            return
        self.lines.add(f"{name}: {_instructions(code, function.__doc__)}")
        yield f"{name} defaults", function.__defaults__ or ()
        yield from ((f"{name} default {key}", default) for key, default in sorted((function.__kwdefaults__ or {}).items()))
        changed = _stored(code, "STORE_DEREF", "STORE_GLOBAL")
        yield from ((f"{name} {free}", inner) for free, inner in closure.items() if free not in changed)
        names = _names(code)
        for used in sorted(names & function.__globals__.keys()):
            yield from self._global(function.__globals__, used, names, changed)

    def _global(self, module: dict[str, Any], used: str, names: set[str], changed: set[str], path: tuple[str, ...] = ()) -> Named:
        """A name of a module; of a module of the user's, the attributes that are among ``names``."""
        value = module[used]
        if isinstance(value, types.ModuleType):
            if _is_own(value.__name__) and value.__name__ not in path:
                for inner in sorted(names & vars(value).keys()):
                    yield from self._global(vars(value), inner, names, set(), (*path, value.__name__))
            return
        source = _source(module.get("__name__", ""))
        if isinstance(value, _MUTABLE) or used in changed | source.rebound:
            yield from self._statements(used, source.of_module(used), module)
        else:
            yield used, value

    def _statements(self, name: str, statements: list[ast.stmt], module: dict[str, Any]) -> Named:
        """The statements that define something that may change, and what they mention that cannot."""
        for statement in statements:
            self.lines.add(f"{name}: {ast.dump(statement)}")
            mentioned = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            for used in sorted((mentioned & module.keys()) - {name} - _source(module.get("__name__", "")).rebound):
                if not isinstance(module[used], (*_MUTABLE, types.ModuleType)):
                    yield used, module[used]


def _is_member(attribute: str, member: Any) -> bool:
    """Whether an attribute of a class is a part of its code: a method, or a constant that the user named."""
    is_method = callable(member) or isinstance(member, property | classmethod | staticmethod)
    return is_method or not (attribute.startswith("__") or attribute.startswith("_abc_"))


def _accessors(value: property) -> list[tuple[str, Any]]:
    return [(part, one) for part, one in (("get", value.fget), ("set", value.fset), ("delete", value.fdel)) if one]


def _is_filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _constant(value: Any) -> str | None:
    """A constant as text that is the same in every process; None for anything else."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if value is None or value is ... or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        array = np.asarray(value)
        content = hashlib.sha256(array.tobytes()).hexdigest() if array.dtype != object else ""
        return f"{array.dtype}{array.shape}{content}"
    if isinstance(value, frozenset):
        return repr(sorted(map(repr, value)))
    return None


# Reading instructions.


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _nested(const)


def _names(code: types.CodeType) -> set[str]:
    return {name for one in _nested(code) for name in one.co_names}


def _stored(code: types.CodeType, *operations: str) -> set[str]:
    """The names that a function assigns to by these instructions."""
    found = (step for one in _nested(code) for step in dis.get_instructions(one) if step.opname in operations)
    return {str(step.argval) for step in found}


def _instructions(code: types.CodeType, doc: str | None = None) -> str:
    constants = [
        _instructions(const) if isinstance(const, types.CodeType) else _constant(const) or repr(const)
        for const in code.co_consts
        if const is None or const != doc
    ]
    return repr((code.co_code.hex(), constants, code.co_names, code.co_varnames, code.co_freevars))


def _assigned_attributes(cls: type) -> set[str]:
    """The attributes that methods of a class assign to, on whatever object: such a constant may be a counter."""
    functions = [member for member in vars(cls).values() if isinstance(member, types.FunctionType)]
    return {name for function in functions if _is_own(function.__module__) for name in _stored(function.__code__, "STORE_ATTR")}


# Reading the source, for what may change while the program runs.


@dataclasses.dataclass(frozen=True)
class _Source:
    statements: list[ast.stmt]  # of the module
    rebound: frozenset[str] = frozenset()  # names that some function declares global

    def of_module(self, name: str) -> list[ast.stmt]:
        """The statements at the top of the module that mention a name."""
        skipped = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
        return [one for one in self.statements if not isinstance(one, skipped) and not _is_main(one) and _mentions(one, name)]

    def of_class(self, qualname: str, attribute: str) -> list[ast.stmt]:
        """The statements in the body of a class that assign to an attribute."""
        body = self.statements
        for part in qualname.split("."):
            body = next((one.body for one in body if isinstance(one, ast.ClassDef) and one.name == part), [])
        return [one for one in body if isinstance(one, ast.Assign | ast.AnnAssign) and _mentions(one, attribute)]


def _mentions(statement: ast.stmt, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement))


def _is_main(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and _mentions(ast.Expr(statement.test), "__name__")


_sources: dict[str, tuple[Any, _Source]] = {}


def _source(module: str) -> _Source:
    """The source of a module, read once after each import: later edits do not affect the running code."""
    it = _fields(sys.modules.get(module))
    spec = it.get("__spec__")
    if module not in _sources or _sources[module][0] is not spec:
        _sources[module] = spec, _read_source(it.get("__file__"))
    return _sources[module][1]


def _read_source(file: str | None) -> _Source:
    try:
        tree = ast.parse(Path(file or "").read_bytes())
    except (OSError, ValueError, SyntaxError):  # a notebook, or a compiled module
        return _Source([])
    rebound = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    return _Source(tree.body, frozenset(rebound))
