"""Rows of tables ``[rows, ..., runs]``, such as a ring of outstanding observations: one row for all runs, or each run's own."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def read_row(tables: Any, row: jax.Array) -> Any:
    """Row ``row`` of every table; with a row for each run, ``row [runs]``, each run's own."""

    def one(table):
        if jnp.ndim(row) == 0:
            return lax.dynamic_index_in_dim(table, row, 0, keepdims=False)
        places = _places(table, row)
        return table.reshape(-1).at[places].get(mode="promise_in_bounds")

    return jax.tree.map(one, tables)


def write_row(table: jax.Array, value: jax.Array, row: jax.Array) -> jax.Array:
    """Set one row for all runs."""
    value = jnp.broadcast_to(value, table.shape[1:]).astype(table.dtype)
    return lax.dynamic_update_index_in_dim(table, value, row, 0)


def write_own_row(tables: Any, values: Any, row: jax.Array) -> Any:
    """Set each run's own row of every table; without an axis of runs, the one row."""

    def one(table, value):
        if jnp.ndim(row) == 0:
            return write_row(table, value, row)
        return _set_at_once(table.reshape(-1), value, _places(table, row)).reshape(table.shape)

    return jax.tree.map(one, tables, values)


def write_own_number(table: jax.Array, value: jax.Array, row: jax.Array) -> jax.Array:
    """:func:`write_own_row` for a table of one number in each row and run, ``[rows, runs]``."""
    if jnp.ndim(row) == 0:
        return write_row(table, value, row)
    value = jnp.broadcast_to(value, table.shape[1:]).astype(table.dtype)
    flat, places = table.reshape(-1), _places(table, row)
    return lax.platform_dependent(flat, value, places, cpu=_set_in_turn, default=_set_at_once).reshape(table.shape)


def _set_at_once(flat: jax.Array, value: jax.Array, places: jax.Array) -> jax.Array:
    return flat.at[places].set(value, mode="promise_in_bounds", unique_indices=True)


def _set_in_turn(flat: jax.Array, value: jax.Array, places: jax.Array) -> jax.Array:
    """The same for a CPU, where XLA compiles a scatter to a separate kernel, and not the loop over rounds to one function."""

    def one(index, flat):
        return lax.dynamic_update_index_in_dim(flat, value[index], places[index], 0)

    return lax.fori_loop(0, value.size, one, flat)


def with_rows_of(tables: Any, like: Any) -> Any:
    """Tables of NumPy with as many rows as those of ``like``: the first ones, and zeros after the last."""

    def one(table, other):
        if table.shape == other.shape:
            return table
        rows = min(len(table), other.shape[0])
        out = np.zeros(other.shape, table.dtype)
        out[:rows] = table[:rows]
        return out

    return jax.tree.map(one, tables, like)


def _places(table: jax.Array, row: jax.Array) -> jax.Array:
    """The index of each run's own row in the flattened table: one index takes half the time of two."""
    within = int(np.prod(table.shape[1:]))
    return row.astype(jnp.uint32) * np.uint32(within) + jnp.arange(within, dtype=jnp.uint32).reshape(table.shape[1:])
