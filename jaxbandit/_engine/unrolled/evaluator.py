"""One round for a block of runs, with a vector of runs in place of every number, for few arms on a GPU or TPU.

On arrays ``[K, runs]`` the GPU compiler generates some 27 kernels per round, because every sum over the arms splits a kernel.
Here the round is traced for a single run, and its program is then evaluated with a vector ``[runs]`` in the place of every
number. Arms are unrolled, so that only elementwise operations, which become one kernel, and rows of memory remain.

The program is a jaxpr, and the primitives of jaxprs change between versions of JAX. Unsupported primitives and parameters raise
:class:`Unsupported`; the caller then falls back to evaluation on arrays.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from jaxbandit._engine.unrolled.arithmetic import Arithmetic
from jaxbandit._engine.unrolled.vectors import (
    BATCHED,
    CALLS,
    CUMULATIVE,
    ELEMENTWISE,
    FOLDS,
    SAME,
    STRUCTURAL,
    UNROLLED,
    Array,
    Number,
    Rows,
    Unsupported,
    array_of,
    constant,
    map_numbers,
    moving_axis,
    needed_steps,
    rows_along,
    single,
)


class Evaluator(Arithmetic):
    """Evaluates programs of one run for a vector of ``runs`` runs.

    One evaluator is for one program, run for every round (``next_fixed`` is set to 0 before each): numbers that depend on the game
    alone are computed in the first run, which must not be inside the loop over rounds.
    """

    def __init__(self, runs: int):
        super().__init__(runs)
        self.rules: dict[str, Callable] = {
            "argmax": functools.partial(self._arg, better=lax.gt),
            "argmin": functools.partial(self._arg, better=lax.lt),
            "cond": self._cond,
            "dynamic_slice": self._dynamic_slice,
            "dynamic_update_slice": self._dynamic_update_slice,
            "reduce": self._reduce,
            "scan": self._scan,
            "scatter-add": self._scatter_add,
            "while": self._while,
        }

    def run(self, program: ClosedJaxpr | Jaxpr, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a program; inputs and outputs are arrays of numbers, or rows of memory."""
        closed = isinstance(program, ClosedJaxpr)
        jaxpr, consts = (program.jaxpr, program.consts) if closed else (program, ())
        known = dict(zip(jaxpr.constvars, map(constant, consts), strict=True))
        known.update(zip(jaxpr.invars, inputs, strict=True))

        def read(atom: Any) -> Any:
            if not isinstance(atom, Literal):
                return known[atom]
            kind: Any = atom.aval
            return constant(np.asarray(atom.val, kind.dtype))

        for step in needed_steps(jaxpr):
            outputs = self._step(step, [read(atom) for atom in step.invars])
            known.update(zip(step.outvars, outputs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _step(self, step: Any, inputs: list[Any]) -> Sequence[Any]:
        name, params = step.primitive.name, step.params
        if name in SAME:
            return inputs
        if name in CALLS:
            (inner,) = (value for value in params.values() if isinstance(value, ClosedJaxpr | Jaxpr))
            return self.run(inner, inputs)
        if name in self.rules:
            return self.rules[name](step, *inputs, **params)
        if name in BATCHED or any(isinstance(value, Rows) for value in inputs):
            return self._batched(step, inputs)
        if name in ELEMENTWISE:
            return [map_numbers(functools.partial(self.apply, functools.partial(step.primitive.bind, **params)), *inputs)]
        if name in FOLDS:
            return [self._fold(rows_along(inputs[0], *params["axes"]), FOLDS[name])]
        if name in CUMULATIVE:
            return [self._cumulate(inputs[0], CUMULATIVE[name], params["axis"], params["reverse"])]
        if name in STRUCTURAL:
            return [STRUCTURAL[name](step, *inputs, **params)]
        raise Unsupported(f"no rule for the step {name!r}")

    def _batched(self, step, inputs: Sequence[Any]) -> list[Any]:
        """A step on arrays ``[..., runs]``, the runs being JAX's batch; rows of memory stay rows."""
        if step.primitive.name not in BATCHED | ELEMENTWISE | FOLDS.keys() | STRUCTURAL.keys():
            raise Unsupported(f"no rule for {step.primitive.name!r} on rows of memory")
        bind = functools.partial(step.primitive.bind, **step.params)
        outputs = jax.vmap(bind, -1, -1)(*map(self.stacked, inputs))
        in_memory = any(isinstance(value, Rows) for value in inputs)
        many = step.primitive.multiple_results
        return [Rows(one, True) if in_memory and one.ndim > 1 else self.split(one) for one in (outputs if many else [outputs])]

    # Rows of memory.

    def _dynamic_slice(self, step, array, *starts, slice_sizes):
        shape = step.invars[0].aval.shape
        axis = moving_axis(shape, slice_sizes)
        row = starts[axis][()]
        if isinstance(array, Rows):
            if axis != 0:
                raise Unsupported("memory is cut along another axis than that of its rows")
            return [self.read(array, row)[None]]
        found, *others = rows_along(array, axis)
        row = self.inside(row, shape[axis])
        for index, other in enumerate(others, 1):
            here = self.apply(lambda row, index=index: row == index, row)
            found = map_numbers(functools.partial(self.where, here), other, found)
        return [np.expand_dims(found, axis)]

    def _dynamic_update_slice(self, step, array, update, *starts):
        shape = step.invars[0].aval.shape
        axis = moving_axis(shape, step.invars[1].aval.shape)
        row = starts[axis][()]
        if isinstance(array, Rows):
            if axis != 0 or isinstance(update, Rows):
                raise Unsupported("memory is set otherwise than row by row")
            return [self.write(array, row, update[0, ...])]
        row, (new,) = self.inside(row, shape[axis]), rows_along(update, axis)
        rows = []
        for index, old in enumerate(rows_along(array, axis)):
            here = self.apply(lambda row, index=index: row == index, row)
            rows.append(map_numbers(functools.partial(self.where, here), new, old))
        return [np.stack(rows, axis)]

    def _scatter_add(self, step, rows, indices, updates, *, dimension_numbers, unique_indices, **_):
        """``rows.at[i, j, …].add(updates)``, an index for every axis of memory and every entry of ``updates``."""
        axes, numbers = tuple(range(indices.shape[-1])), dimension_numbers
        one_by_one = numbers.update_window_dims == () and numbers.inserted_window_dims == axes
        if not (isinstance(rows, Rows) and rows.per_run and one_by_one and numbers.scatter_dims_to_operand_dims == axes):
            raise Unsupported("numbers are added to an array in another way than one by one to rows of memory")
        places = [self.stacked(indices[..., axis]) for axis in axes]
        run = jnp.broadcast_to(lax.iota(jnp.int32, self.runs), places[0].shape)
        added = (
            self.settled(rows)
            .at[(*places, run)]
            .add(self.stacked(updates), mode="promise_in_bounds", unique_indices=unique_indices)
        )
        return [Rows(added, True)]

    # Reductions.

    def _fold(self, rows: list[Array], function: Callable) -> Array:
        if not rows:
            raise Unsupported("a reduction of nothing")
        return functools.reduce(functools.partial(map_numbers, functools.partial(self.apply, function)), rows)

    def _cumulate(self, array: Array, function: Callable, axis: int, reverse: bool) -> Array:
        rows = rows_along(array, axis)
        results = list(itertools.accumulate(rows[::-1] if reverse else rows, lambda x, y: self._fold([x, y], function)))
        return np.stack(results[::-1] if reverse else results, axis)

    def _reduce(self, step, *inputs, jaxpr, dimensions, **_):
        half = len(inputs) // 2
        arrays = [rows_along(array, *dimensions) for array in inputs[:half]]
        totals: list[Any] = [np.broadcast_to(start, rows[0].shape) for start, rows in zip(inputs[half:], arrays, strict=True)]
        for row in zip(*arrays, strict=True):
            each = [self.run(jaxpr, [single(array[place]) for array in (*totals, *row)]) for place in np.ndindex(totals[0].shape)]
            totals = [array_of([one[which][()] for one in each], total.shape) for which, total in enumerate(totals)]
        return totals

    def _arg(self, step, array, *, axes, index_dtype, better):
        best, *others = rows_along(array, *axes)
        place = map_numbers(lambda _: Number(np.dtype(index_dtype).type(0)), best)
        for index, other in enumerate(others, 1):
            wins = map_numbers(functools.partial(self.apply, better), other, best)
            here = map_numbers(lambda _, index=index: Number(np.dtype(index_dtype).type(index)), place)
            best, place = map_numbers(self.where, wins, other, best), map_numbers(self.where, wins, here, place)
        return [place]

    # Choices and loops.

    def _cond(self, step, which, *inputs, branches, **_):
        first, *others = (self.run(branch, inputs) for branch in branches)  # all branches: runs may take different ones
        for index, other in enumerate(others, 1):
            test = self.apply(lambda which, index=index: which == index if which.dtype != np.bool_ else which, which[()])
            first = [map_numbers(functools.partial(self.where, test), new, old) for new, old in zip(other, first, strict=True)]
        return first

    def _scan(self, step, *inputs, jaxpr, length, reverse, **_):
        inner = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
        # Recognised by their shapes, in every version of JAX: scanned inputs have one axis less inside.
        scanned = sum(outer.aval.shape != one.aval.shape for outer, one in zip(step.invars, inner.invars, strict=True))
        carried = sum(outer.aval.shape == one.aval.shape for outer, one in zip(step.outvars, inner.outvars, strict=True))
        first = len(inputs) - scanned
        consts, carry, over = inputs[: first - carried], list(inputs[first - carried : first]), inputs[first:]
        if not scanned and carried == len(inner.outvars):

            def make(pack, unpack, start):
                return lax.fori_loop(0, length, lambda _, packed: pack(self.run(jaxpr, [*consts, *unpack(packed)])), start)

            return self._carried(make, carry)
        if length > UNROLLED or any(isinstance(array, Rows) for array in over):
            raise Unsupported(f"a scan over {length} rows")
        results = []
        for index in reversed(range(length)) if reverse else range(length):
            new = self.run(jaxpr, [*consts, *carry, *(array[index, ...] for array in over)])
            carry, results = new[:carried], [*results, new[carried:]]
        kept = [np.stack(rows[::-1] if reverse else rows) for rows in zip(*results, strict=True)]
        return [*carry, *kept]

    def _while(self, step, *inputs, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
        tested, used = inputs[:cond_nconsts], inputs[cond_nconsts : cond_nconsts + body_nconsts]

        def proceed(carry) -> Number:
            return self.run(cond_jaxpr, [*tested, *carry])[0][()]

        def make(pack, unpack, start):
            def test(packed):
                number = proceed(unpack(packed))
                return number.one() if number.is_shared else number.value.any()

            def body(packed):
                old = unpack(packed)
                new, on = self.run(body_jaxpr, [*used, *old]), proceed(old)
                if not on.is_shared:  # a finished run keeps its values
                    new = [self._kept_unless(on, one, other) for one, other in zip(new, old, strict=True)]
                return pack(new)

            return lax.while_loop(test, body, start)

        return self._carried(make, list(inputs[cond_nconsts + body_nconsts :]))

    def _kept_unless(self, on: Number, new: Any, old: Any) -> Any:
        """``new`` for the runs that are ``on``, ``old`` for the others."""
        if not isinstance(old, Rows):
            return map_numbers(functools.partial(self.where, on), new, old)
        if not isinstance(new, Rows) or new.array is not old.array:
            raise Unsupported("memory is written otherwise than row by row within a loop")
        kept = old
        for row, values in new.writes[len(old.writes) :]:
            kept = self.write(kept, row, map_numbers(functools.partial(self.where, on), values, self.read(kept, row)))
        return kept

    def _carried(self, make: Callable, carry: list[Any]) -> list[Any]:
        """The final ``carry`` of a loop built by ``make(pack, unpack, start)``.

        Whole numbers that all runs share are carried as scalars, so that counted loops have a known number of turns. Where such a
        number differs between runs after a turn, the loop is rebuilt with a vector for it. Rows of memory are carried as they are.
        """
        memory = [isinstance(value, Rows) for value in carry]
        if any(rows and not value.per_run for rows, value in zip(memory, carry, strict=True)):
            raise Unsupported("memory that all runs share is written within a loop")
        numbers = [number for array, rows in zip(carry, memory, strict=True) if not rows for number in array.flat]
        dtypes = [jnp.asarray(number.value).dtype for number in numbers]
        scalar = [
            number.is_shared and not jnp.issubdtype(dtype, jnp.floating) for number, dtype in zip(numbers, dtypes, strict=True)
        ]

        def pack(carry):
            new = [number for array, rows in zip(carry, memory, strict=True) if not rows for number in array.flat]
            grown = [index for index, number in enumerate(new) if scalar[index] and not number.is_shared]
            if grown:
                raise _Grown(grown)
            values = [number.one() if one else self.vector(number) for number, one in zip(new, scalar, strict=True)]
            # No weak types, which would change within the loop.
            values = [lax.convert_element_type(value, dtype) for value, dtype in zip(values, dtypes, strict=True)]
            return values, [self.settled(array) for array, rows in zip(carry, memory, strict=True) if rows]

        def unpack(packed):
            found, kept = map(iter, packed)
            return [
                Rows(next(kept), True)
                if rows
                else array_of([Number(next(found)) for _ in range(int(np.prod(array.shape)))], array.shape)
                for array, rows in zip(carry, memory, strict=True)
            ]

        self.inside_loop += 1
        try:
            while True:
                try:
                    return unpack(make(pack, unpack, pack(carry)))
                except _Grown as grown:
                    for index in grown.numbers:
                        scalar[index] = False
        finally:
            self.inside_loop -= 1


class _Grown(Exception):
    """Numbers that were scalars before a loop differ between runs after a turn."""

    def __init__(self, numbers: list[int]):
        self.numbers = numbers
