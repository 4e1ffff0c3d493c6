"""A mark of the code of classes that are not the package's own, so that a sweep notices when they are edited.

The mark is taken from the functions that would run, not from their files, which may have been edited since they were
imported. It covers every method, and the functions, classes, constants and modules that methods use, as long as these are
the user's own too: not of Python, of an installed package or of jaxbandit. Comments and docstrings do not count.
Instructions differ between versions of Python, so the mark begins with the version it was taken with.
"""

import functools
import hashlib
import inspect
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

_INSTALLED = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")]


def code_mark(thing: Any) -> str | None:
    """``PYTHON:DIGEST`` of the user's own code in a learner or law, and in those it is made of; None if no class is theirs."""
    parts: dict[str, str] = {}
    classes = list(dict.fromkeys(_classes(thing)))
    for cls in classes:
        _visit(cls.__qualname__, cls, parts, {})
    # A class of theirs without a line of code has a mark too: something may be added to it.
    if not parts and not any(_is_own(owner.__module__) for cls in classes for owner in cls.__mro__):
        return None
    text = "\n".join(f"{name}: {part}" for name, part in sorted(parts.items()))
    return f"{sys.version_info.major}.{sys.version_info.minor}:{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _classes(thing: Any) -> Iterator[type]:
    yield type(thing)
    inside = thing if isinstance(thing, tuple | list) else _fields(thing).values()
    for value in inside:
        if not isinstance(value, str | int | float | np.ndarray | jax.Array | type):
            yield from _classes(value)


def _fields(thing: Any) -> dict[str, Any]:
    try:
        return vars(thing)
    except TypeError:  # it has none
        return {}


@functools.cache
def _is_own(module: str | None) -> bool:
    """Whether a module is the user's: neither of Python, nor installed, nor of this package."""
    root = (module or "").partition(".")[0]
    if root in ("", "jaxbandit") or root in sys.stdlib_module_names:
        return False
    file = _fields(sys.modules.get(module or "")).get("__file__")
    return not file or not any(Path(file).resolve().is_relative_to(folder) for folder in _INSTALLED)


def _visit(name: str, value: Any, parts: dict[str, str], seen: dict[int, Any]) -> None:
    """Add ``name -> content`` to ``parts`` for all that is the user's own in a value and in what it uses."""
    text = _constant(value)
    if text is not None:
        parts[name] = text
    if text is not None or id(value) in seen:
        return
    seen[id(value)] = value  # keeps it alive, so that its id stays its own
    for inner_name, inner in _used(name, value, parts):
        _visit(inner_name, inner, parts, seen)


def _used(name: str, value: Any, parts: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """What a value consists of and refers to; the content of a function or module goes to ``parts``."""
    if isinstance(value, type):
        for owner in value.__mro__:
            if _is_own(owner.__module__):
                for attribute, member in vars(owner).items():
                    if (
                        callable(member)
                        or isinstance(member, property | classmethod | staticmethod)
                        or not attribute.startswith("__")
                    ):
                        yield f"{owner.__module__}.{owner.__qualname__}.{attribute}", member
    elif isinstance(value, types.ModuleType):
        file = _fields(value).get("__file__")
        if file and _is_own(value.__name__):
            parts[name] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    elif isinstance(value, types.FunctionType):
        code, wrapped = value.__code__, inspect.unwrap(value)
        if wrapped is not value:
            yield name, wrapped
        if _is_own(value.__module__) and code.co_filename != "<string>":  # which dataclasses write
            parts[name] = _instructions(code, value.__doc__)
            yield f"{name} defaults", (value.__defaults__, value.__kwdefaults__)
            for free, cell in zip(code.co_freevars, value.__closure__ or (), strict=True):
                yield f"{name} {free}", cell.cell_contents
            for used in sorted(_names(code) & value.__globals__.keys()):
                yield f"{value.__module__}.{used}", value.__globals__[used]
    elif isinstance(value, property):
        yield from ((name, function) for function in (value.fget, value.fset) if function)
    elif isinstance(value, classmethod | staticmethod):
        yield name, value.__func__
    elif isinstance(value, functools.partial | functools.partialmethod | functools.cached_property):
        yield name, value.func
        if not isinstance(value, functools.cached_property):
            yield f"{name} arguments", (value.args, value.keywords)
    elif isinstance(value, tuple | list):
        yield from ((f"{name}[{index}]", inner) for index, inner in enumerate(value))
    elif isinstance(value, dict):
        yield from ((f"{name}[{key!r}]", inner) for key, inner in value.items())
    elif "__wrapped__" in _fields(value):  # what functools.wraps leaves: staticmethod, jax.jit and so on
        yield name, inspect.unwrap(value)
    elif _is_own(type(value).__module__) or type(value).__module__.startswith("jaxbandit."):
        yield f"{name} class", type(value)
        yield from ((f"{name}.{field}", inner) for field, inner in _fields(value).items())


def _constant(value: Any) -> str | None:
    """A constant as text that is the same in every process; None for anything else."""
    if value is None or value is ... or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        array = np.asarray(value)
        return f"{array.dtype}{array.shape}{hashlib.sha256(array.tobytes()).hexdigest()}"
    if isinstance(value, set | frozenset):
        return repr(sorted(map(repr, value)))
    return None


def _names(code: types.CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(inner) for inner in code.co_consts if isinstance(inner, types.CodeType)))


def _instructions(code: types.CodeType, doc: str | None = None) -> str:
    constants = [
        _instructions(const) if isinstance(const, types.CodeType) else _constant(const) or repr(const)
        for const in code.co_consts
        if const is None or const != doc
    ]
    return repr((code.co_code.hex(), constants, code.co_names, code.co_varnames))
