"""Arithmetic for many runs at once, on single numbers and rows of memory; used by :mod:`jaxbandit._engine.unrolled.evaluator`."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit._engine.unrolled.vectors import Array, Number, Rows, Unsupported, array_of, map_numbers


class Arithmetic:
    """Operations on numbers, each of which stands for a vector of ``runs`` runs, and on rows of memory.

    Numbers that depend only on the game are computed once: see :meth:`once`.
    """

    def __init__(self, runs: int):
        self.runs = runs
        self.inside_loop = 0
        # Fixed numbers in the order of the program, which is always the same.
        self.fixed: list[jax.Array] = []
        self.packed: dict[Any, jax.Array] = {}
        self.next_fixed = 0

    def apply(self, function: Callable, *numbers: Number) -> Number:
        """``function`` of numbers, element by element: on scalars while all are, otherwise on vectors."""
        values = [number.value for number in numbers]
        if all(isinstance(value, np.generic) for value in values):
            with jax.ensure_compile_time_eval():
                return Number(np.asarray(function(*values))[()])
        if not any(number.is_vector for number in numbers):
            if not self.inside_loop and all(number.is_fixed or isinstance(number.value, np.generic) for number in numbers):
                return self.once(lambda: function(*values))
            return Number(function(*values))
        result = function(*map(self.vector, numbers))
        if all(number.is_shared for number in numbers):
            return Number(result, functools.cache(lambda: function(*(jnp.asarray(number.one()) for number in numbers))))
        return Number(result)

    def once(self, make: Callable[[], Any]) -> Number:
        """A fixed number: ``make()`` in the first run of a program, and its stored value in every other."""
        place, self.next_fixed = self.next_fixed, self.next_fixed + 1
        if not self.packed:
            self.fixed.append(jnp.asarray(make()))
            return Number(self.fixed[place], is_fixed=True)
        dtype = self.fixed[place].dtype
        return Number(self.packed[dtype][sum(one.dtype == dtype for one in self.fixed[:place])], is_fixed=True)

    def pack(self) -> None:
        """Pack the fixed numbers into one array of each type, after the first run.

        A kernel takes a limited number of arrays, and would be split if every fixed number were a separate array.
        """
        dtypes = {one.dtype for one in self.fixed}
        self.packed = {dtype: jnp.stack([one for one in self.fixed if one.dtype == dtype]) for dtype in dtypes}

    def vector(self, number: Number) -> jax.Array:
        return number.value if number.is_vector else jnp.broadcast_to(number.value, (self.runs,))

    def where(self, test: Number, yes: Number, no: Number) -> Number:
        return yes if yes is no else self.apply(lax.select_n, test, no, yes)

    def stacked(self, value: Any) -> jax.Array:
        """``[..., runs]``."""
        if isinstance(value, Rows):
            array = self.settled(value)
            return array if value.per_run else jnp.broadcast_to(array[..., None], (*array.shape, self.runs))
        numbers = list(value.flat)
        if numbers and all(number is numbers[0] for number in numbers):
            return jnp.broadcast_to(self.vector(numbers[0]), (*value.shape, self.runs))
        return jnp.stack([self.vector(number) for number in numbers]).reshape(*value.shape, self.runs)

    def split(self, array: jax.Array) -> Array:
        """``[..., runs]`` as numbers."""
        flat = array.reshape(-1, self.runs)
        return array_of([Number(flat[index]) for index in range(flat.shape[0])], array.shape[:-1])

    # Rows of memory.

    def inside(self, row: Number, count: int) -> Number:
        """The index of a row, clamped to the first or last row as in ``lax.dynamic_slice``."""
        return self.apply(lambda row: jnp.clip(row.astype(jnp.int32), 0, count - 1), row)

    def read(self, rows: Rows, row: Number) -> Array:
        """One row, ``[...]``, including the writes of this round."""
        row = self.inside(row, rows.shape[0])
        out = array_of([self._read(rows, row, place) for place in rows.places()], rows.shape[1:])
        for written, values in rows.writes:
            same = self.apply(lax.eq, row, written)
            out = map_numbers(functools.partial(self.where, same), values, out)
        return out

    def _read(self, rows: Rows, row: Number, place: tuple[int, ...]) -> Number:
        if row.is_shared:
            end = (0,) if rows.per_run else ()
            sizes = (*[1] * len(rows.shape), self.runs) if rows.per_run else (1,) * len(rows.shape)
            start = tuple(jnp.asarray(index, jnp.int32) for index in (row.one(), *place, *end))
            return Number(lax.dynamic_slice(rows.array, start, sizes).reshape(sizes[len(rows.shape) :]))
        run = (lax.iota(jnp.int32, self.runs),) if rows.per_run else ()
        return Number(rows.array.at[(row.value, *place, *run)].get(mode="promise_in_bounds"))

    def write(self, rows: Rows, row: Number, values: Array) -> Rows:
        """The rows after one of them was set."""
        row = self.inside(row, rows.shape[0])
        return dataclasses.replace(rows, writes=(*rows.writes, (row, values)))

    def settled(self, rows: Rows) -> jax.Array:
        """The memory after all writes."""
        array, dtype, writes = rows.array, rows.array.dtype, list(rows.writes)
        # A row that is written twice gets the last values at once. The first write then depends on the later values, hence on all
        # earlier reads. Without this dependence XLA copies the memory.
        for place in reversed(range(len(writes) - 1)):
            (row, values), (later, new) = writes[place : place + 2]
            same = self.apply(lax.eq, row, later)
            writes[place] = row, map_numbers(functools.partial(self.where, same), new, values)
        for row, values in writes:
            if not rows.per_run:
                new = jnp.stack([jnp.asarray(number.one()) for number in values.flat]).reshape(1, *rows.shape[1:])
            else:
                new = self.stacked(values)[None]
            if row.is_shared:
                start = (row.one(), *[0] * (array.ndim - 1))
                array = lax.dynamic_update_slice(array, new.astype(dtype), tuple(jnp.asarray(i, jnp.int32) for i in start))
            elif rows.per_run:
                run = lax.iota(jnp.int32, self.runs)
                for place in rows.places():
                    index = (row.value, *place, run)
                    value = self.vector(values[place]).astype(dtype)
                    array = array.at[index].set(value, mode="promise_in_bounds", unique_indices=True)
            else:
                raise Unsupported("each run writes to a row of its own in memory that all share")
        return array
