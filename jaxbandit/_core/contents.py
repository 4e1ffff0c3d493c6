"""Learners and models as keys of dictionaries: equal where their classes, numbers and switches are."""

import dataclasses
from typing import Any

import jax
import jax.core
import numpy as np

MOST_BYTES = 1 << 16  # of an array; larger ones are not copied into keys


def contents(*objects: Any) -> tuple[Any, ...] | None:
    """A hashable tuple of everything that some objects of the library consist of.

    None if something else is in them: a class from elsewhere, whose code may change, a function, traced numbers or a large array.
    """
    found: list[Any] = []
    return tuple(found) if all(_add(one, found) for one in objects) else None


def _add(value: Any, found: list[Any]) -> bool:
    kind = type(value)
    found.append(kind)
    if kind is float:
        found.append(value.hex())  # 0.0 and -0.0 are equal, and nan is not equal to itself
        return True
    if value is None or kind in (bool, int, str):
        found.append(value)
        return True
    if kind in (tuple, list):
        found.append(len(value))
        return all([_add(one, found) for one in value])
    if dataclasses.is_dataclass(kind) and kind.__module__.partition(".")[0] == __name__.partition(".")[0]:
        found += vars(value)  # the names of its fields
        return all([_add(one, found) for one in vars(value).values()])
    is_array = kind is np.ndarray or (isinstance(value, np.generic | jax.Array) and not isinstance(value, jax.core.Tracer))
    if not is_array or not isinstance(value.dtype, np.dtype) or value.dtype.kind not in "biuf" or value.nbytes > MOST_BYTES:
        return False
    array = np.asarray(value)
    found += [array.dtype.str, array.shape, array.tobytes()]
    return True
