"""Calls of measurements, with errors that name the measurement and what is wrong with it."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandit._core.fields import explain_tracing
from jaxbandit.measure import RESERVED, Measurement, RoundInfo


def updated(measurement: Measurement, state: Any, info: RoundInfo) -> Any:
    """``measurement.update(state, info)``, which must keep the structure, shapes and types of the state."""
    call = f"measure=[{type(measurement).__name__}(…)]: update(state, info)"
    with explain_tracing(call):
        new = measurement.update(state, info)
    old_leaves, old_structure = jax.tree.flatten(state)
    new_leaves, new_structure = jax.tree.flatten(new)
    if old_structure != new_structure:
        raise TypeError(f"{call} gives a state of another structure than init: {new_structure} in place of {old_structure}")
    for was, now in zip(map(jnp.asarray, old_leaves), map(jnp.asarray, new_leaves), strict=True):
        if (was.shape, was.dtype) != (now.shape, now.dtype):
            raise TypeError(
                f"{call} gives {now.dtype}{list(now.shape)} where init gave {was.dtype}{list(was.shape)}; "
                "a state keeps shapes and types"
            )
    return new


def readings(measure: Sequence[Measurement], states: Sequence[Any]) -> dict[str, jax.Array]:
    """The values of all measurements by name."""
    found: dict[str, jax.Array] = {}
    for measurement, state in zip(measure, states, strict=True):
        name = f"measure=[{type(measurement).__name__}(…)]"
        with explain_tracing(f"{name}: read(state)"):
            read = measurement.read(state)
        if not isinstance(read, dict) or not all(isinstance(key, str) for key in read):
            raise TypeError(f"{name}: read(state) gives {type(read).__name__}; it must give a dict of arrays by name")
        for key in read:
            if key in found or key in RESERVED:
                why = "another measurement has it" if key in found else "a Result has a column of this name"
                raise ValueError(f"{name}: it reads {key!r}, and {why}; give each reading a name of its own")
        found |= read
    return found
