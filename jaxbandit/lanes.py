"""One run's program played by many runs at once, in nothing but whole vectors: what a kernel language can be asked to compile.

The rounds are traced for a single run, whose arrays are ``[]``, ``[K]`` or ``[W]``. :class:`Lanes` then evaluates that
program with a vector of runs in the place of every number. Arrays are unrolled, so all that is left are scalars, vectors of
one shape, element by element operations on them, loops, and rows of memory: no reduction over arms, no gather, no shape that
is not a power of two, which is what the compilers behind Pallas turn down.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

# What is worked out number by number. A scalar unit may lack the first ones: there they are done on vectors.
_HARD = "cbrt cos div erf erf_inv exp exp2 expm1 log log1p logistic pow round rsqrt sin sqrt tan tanh"
_EASY = """abs add add_any and atan2 bitcast_convert_type ceil clamp convert_element_type digamma eq floor ge gt integer_pow
is_finite le le_to lgamma lt lt_to max min mul ne neg nextafter not or population_count reduce_precision rem select_n shift_left
shift_right_arithmetic shift_right_logical sign square sub xor"""
_SAME = "copy copy_p stop_gradient"
_CALLS = "jit pjit closed_call core_call custom_jvp_call custom_vjp_call custom_vjp_call_jaxpr remat checkpoint"
HARD, EASY, SAME, CALLS = (frozenset(names.split()) for names in (_HARD, _EASY, _SAME, _CALLS))

Array = Any  # a NumPy array of Number, shaped like the array of one run


class Unsupported(NotImplementedError):
    """The program has a step for which there is no rule here."""


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Number:
    """One number of one run's program: a scalar or a vector of lanes."""

    value: Any
    shared: bool  # the same in every lane (it may be a vector nevertheless)

    @property
    def dtype(self) -> np.dtype:
        return self.value.dtype

    @property
    def is_vector(self) -> bool:
        return np.ndim(self.value) > 0


class Ring:
    """An array too long to unroll, left in memory: rows are read and written in place.

    A write makes the next version, and an older one can no longer be read: what is in memory is not it.
    """

    def __init__(self, memory: "Memory", version: int = 0):
        self.memory, self.version = memory, version


class Memory:
    """Rows in memory that a reference of Pallas points to: ``[W, ..., *lanes]``, or ``[1, W·...]`` if shared by all runs."""

    def __init__(self, ref: Any, shape: tuple[int, ...], dtype: Any, shared: bool):
        self.ref, self.shape, self.dtype, self.shared, self.version = ref, shape, np.dtype(dtype), shared, 0

    def places(self) -> list[tuple[int, ...]]:
        """The places within one row."""
        return list(itertools.product(*map(range, self.shape[1:])))

    def at(self, row, place: tuple[int, ...]) -> tuple:
        """The index of one number of a row."""
        if not self.shared:
            return (row, *place)
        within = int(np.prod(self.shape[1:]))
        return (0, row * np.int32(within) + np.int32(np.ravel_multi_index(place, self.shape[1:]) if place else 0))


class _Promote(Exception):
    """A number that was a scalar before a loop is a vector after its first pass."""

    def __init__(self, vectors: list[bool]):
        self.vectors = vectors


class Lanes:
    """Evaluates programs of one run for a vector of runs of shape ``shape``.

    Args:
      shape: of the vectors.
      scalar_unit: whether scalars are computed by a unit of their own that knows only the simplest operations (TPU).
      pointers: whether memory can be read at a row of each run's own (GPU); otherwise all rows are looked through (TPU).
      fence: called around every write, so that all threads of a program see the same memory.
      spread: makes one number repeated a vector like any other, which is what a loop must begin with (TPU).
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        scalar_unit: bool,
        pointers: bool,
        fence: Callable[[], None],
        spread: Callable[[jax.Array], jax.Array],
    ):
        self.shape, self.scalar_unit, self.pointers, self.fence, self.spread = shape, scalar_unit, pointers, fence, spread
        self.inside_loop = 0

    def apply(self, function: Callable, *numbers: Number, on_vectors: bool = False) -> Number:
        """``function`` of numbers: on scalars while all are, otherwise on vectors."""
        shared = all(number.shared for number in numbers)
        if all(isinstance(number.value, np.generic) for number in numbers):  # known already
            with jax.ensure_compile_time_eval():
                return Number(np.asarray(function(*(number.value for number in numbers)))[()], shared)
        if on_vectors or any(number.is_vector for number in numbers):
            return Number(function(*map(self.vector, numbers)), shared)
        return Number(function(*(number.value for number in numbers)), shared)

    def vector(self, number: Number) -> jax.Array:
        if number.is_vector:
            return number.value
        if number.dtype == np.bool_:  # masks are not made of scalars on every machine
            return jnp.broadcast_to(jnp.asarray(number.value).astype(jnp.int32), self.shape) != 0
        return jnp.broadcast_to(number.value, self.shape)

    def scalar(self, number: Number) -> jax.Array:
        """The value that a number has in all lanes."""
        if not number.is_vector:
            return jnp.asarray(number.value)
        if not number.shared:
            raise Unsupported("a number that differs between runs is needed as one for all")
        return self.first(number)

    def first(self, number: Number) -> jax.Array:
        """The value in the lanes, which is known to be one."""
        if not number.is_vector:
            return jnp.asarray(number.value)
        if number.dtype == np.bool_:
            return self.any(number)
        wide = number.value if jnp.issubdtype(number.dtype, jnp.floating) else number.value.astype(jnp.int32)
        return jnp.max(wide).astype(number.dtype)

    def any(self, number: Number) -> jax.Array:
        """Whether a truth value holds in any lane, as a scalar."""
        if not number.is_vector:
            return number.value
        return jnp.max(jnp.where(number.value, jnp.float32(1), jnp.float32(0))) > 0

    def where(self, test: Number, yes: Number, no: Number) -> Number:
        return self.apply(_select, test, no, yes)

    def run(self, program: ClosedJaxpr, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a program; inputs and outputs are arrays of numbers, or rings."""
        return self._run(program.jaxpr, [constant(value) for value in program.consts], inputs)

    def _run(self, jaxpr: Jaxpr, consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *inputs], strict=True))

        def read(atom: Any):
            return constant(np.asarray(atom.val, atom.aval.dtype)) if hasattr(atom, "val") else known[atom]

        for step in _needed(jaxpr):
            outputs = self._step(step, [read(atom) for atom in step.invars])
            known.update(zip(step.outvars, outputs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _step(self, step: Any, inputs: list[Any]) -> Sequence[Any]:
        name, params = step.primitive.name, step.params
        if name in CALLS:
            inner = params.get("jaxpr", params.get("call_jaxpr", params.get("fun_jaxpr")))
            return self.run(inner if hasattr(inner, "consts") else ClosedJaxpr(inner, ()), inputs)
        rule = getattr(self, f"_{name}", None)
        if rule is not None:
            return rule(step, *inputs, **params)
        inputs = [self.unrolled(value) for value in inputs]
        if name in SAME:
            return inputs
        if name == "round" and params["rounding_method"] != lax.RoundingMethod.TO_NEAREST_EVEN:
            raise Unsupported("rounding away from zero")
        if name in HARD or name in EASY:
            floating = np.issubdtype(step.outvars[0].aval.dtype, np.floating)
            function = REWRITTEN.get(name) or functools.partial(step.primitive.bind, **params)
            aside = self.scalar_unit and name in HARD and floating
            return [_map(functools.partial(self.apply, function, on_vectors=aside), *inputs)]
        if name in FOLDS:
            return [self._fold(inputs[0], params["axes"], FOLDS[name])]
        if name in STRUCTURAL:
            return [STRUCTURAL[name](step, *inputs, **params)]
        raise Unsupported(f"the kernel has no rule for {name!r}")

    def unrolled(self, value: Any) -> Array:
        """An array of numbers, also of a table that was left in memory."""
        if not isinstance(value, Ring):
            return value
        if not value.memory.shared:
            raise Unsupported("pending plays are used otherwise than row by row")
        rows = [self.read(value, Number(np.int32(row), True)) for row in range(value.memory.shape[0])]
        return np.stack(rows)

    def read(self, ring: Ring, row: Number) -> Array:
        """One row, ``[...]``."""
        memory = ring.memory
        if ring.version != memory.version:
            raise Unsupported("pending plays are read after they were overwritten")
        row = self._inside(row, memory.shape[0])
        out = np.empty(memory.shape[1:], object)
        for place in memory.places():
            out[place] = self._read(memory, row, place)
        return out

    def _read(self, memory: Memory, row: Number, place: tuple[int, ...]) -> Number:
        if memory.shared or row.shared:
            return Number(memory.ref[memory.at(self.scalar(row), place)], memory.shared)
        if self.pointers:
            return Number(memory.ref[(row.value, *place, lax.iota(jnp.int32, self.shape[0]))], False)

        def look(index, found):
            return jnp.where(row.value == index, memory.ref[(index, *place)], found)

        return Number(lax.fori_loop(0, memory.shape[0], look, jnp.zeros(self.shape, memory.dtype)), False)

    def write(self, ring: Ring, row: Number, values: Array) -> Ring:
        """The ring after one row, ``[...]``, was set."""
        memory = ring.memory
        if ring.version != memory.version or self.inside_loop:
            raise Unsupported("pending plays are written more than once, or within a loop")
        row = self._inside(row, memory.shape[0])
        self.fence()
        for place in memory.places():
            self._write(memory, row, place, values[place])
        self.fence()
        memory.version += 1
        return Ring(memory, memory.version)

    def _write(self, memory: Memory, row: Number, place: tuple[int, ...], number: Number) -> None:
        if memory.shared:
            memory.ref[memory.at(self.scalar(row), place)] = self.scalar(number)
        elif row.shared:
            memory.ref[memory.at(self.scalar(row), place)] = self.vector(number)
        elif self.pointers:
            memory.ref[(row.value, *place, lax.iota(jnp.int32, self.shape[0]))] = self.vector(number)
        else:

            def look(index, _):
                memory.ref[(index, *place)] = jnp.where(row.value == index, self.vector(number), memory.ref[(index, *place)])
                return _

            lax.fori_loop(0, memory.shape[0], look, jnp.int32(0))

    def _inside(self, row: Number, rows: int) -> Number:
        """The row as ``lax.dynamic_slice`` takes it: brought back to the first or last if it is outside."""
        return self.apply(lambda row: jnp.clip(row.astype(jnp.int32), 0, rows - 1), row)

    def _dynamic_slice(self, step, array, *starts, slice_sizes):
        shape = step.invars[0].aval.shape
        axis = _moving_axis(shape, slice_sizes)
        row = starts[axis][()]
        if isinstance(array, Ring):
            if axis != 0:
                raise Unsupported("pending plays are cut along another axis than that of the rounds")
            return [self.read(array, row)[None]]
        row, rows = self._inside(row, shape[axis]), _rows(array, axis)
        found = rows[0]
        for index in range(1, len(rows)):
            here = self.apply(lambda row, index=index: row == index, row)
            found = _map(functools.partial(self.where, here), rows[index], found)
        return [np.expand_dims(found, axis)]

    def _dynamic_update_slice(self, step, array, update, *starts):
        shape = step.invars[0].aval.shape
        axis = _moving_axis(shape, update.shape)
        row = starts[axis][()]
        if isinstance(array, Ring):
            if axis != 0:
                raise Unsupported("pending plays are set along another axis than that of the rounds")
            return [self.write(array, row, *_rows(update, 0))]
        row, (new,) = self._inside(row, shape[axis]), _rows(update, axis)
        rows = []
        for index, old in enumerate(_rows(array, axis)):
            here = self.apply(lambda row, index=index: row == index, row)
            rows.append(_map(functools.partial(self.where, here), new, old))
        return [np.stack(rows, axis)]

    def _reduce(self, step, *inputs, jaxpr, dimensions, **_):
        half = len(inputs) // 2
        body = jaxpr if hasattr(jaxpr, "consts") else ClosedJaxpr(jaxpr, ())
        arrays = [_rows(self.unrolled(array), *dimensions) for array in inputs[:half]]
        out: list[Array] = [
            np.broadcast_to(start, rows[0].shape).copy() for start, rows in zip(inputs[half:], arrays, strict=True)
        ]
        for rows in zip(*arrays, strict=True):
            for place in np.ndindex(out[0].shape):
                both = [_one(total[place]) for total in out], [_one(row[place]) for row in rows]
                for total, new in zip(out, self.run(body, [*both[0], *both[1]]), strict=True):
                    total[place] = new[()]
        return out

    def _fold(self, array: Array, axes: Sequence[int], function: Callable) -> Array:
        rows = _rows(array, *axes)
        if not rows:
            raise Unsupported("a reduction of nothing")
        return functools.reduce(functools.partial(_map, functools.partial(self.apply, function)), rows)

    def _cumsum(self, step, array, *, axis, reverse):
        rows = _rows(self.unrolled(array), axis)
        add = functools.partial(_map, functools.partial(self.apply, lax.add))
        sums = list(itertools.accumulate(reversed(rows) if reverse else rows, add))
        return [np.stack(sums[::-1] if reverse else sums, axis)]

    def _argmin(self, step, array, *, axes, index_dtype):
        return self._arg(array, axes, index_dtype, lax.lt)

    def _argmax(self, step, array, *, axes, index_dtype):
        return self._arg(array, axes, index_dtype, lax.gt)

    def _arg(self, array, axes, dtype, better):
        rows = _rows(self.unrolled(array), *axes)
        best, place = rows[0], _map(lambda _: Number(np.dtype(dtype).type(0), True), rows[0])
        for index in range(1, len(rows)):
            wins = _map(functools.partial(self.apply, better), rows[index], best)
            here = _map(lambda _, index=index: Number(np.dtype(dtype).type(index), True), place)
            best, place = _map(self.where, wins, rows[index], best), _map(self.where, wins, here, place)
        return [place]

    def _cond(self, step, which, *inputs, branches, **_):
        if len(branches) != 2:
            raise Unsupported("a choice among more than two branches")
        no, yes = (self.run(branch, inputs) for branch in branches)  # both are worked out: runs differ in which they need
        test = self.apply(lambda which: which != 0, which[()])
        return [_map(functools.partial(self.where, test), one, other) for one, other in zip(yes, no, strict=True)]

    def _scan(self, step, *inputs, jaxpr, length, num_consts, num_carry, **_):
        if len(inputs) > num_consts + num_carry or len(step.outvars) > num_carry:
            raise Unsupported("a scan over arrays")
        consts, carry = inputs[:num_consts], list(inputs[num_consts:])
        return self.loop(0, length, lambda _, carry: self.run(jaxpr, [*consts, *carry]), carry)

    def _while(self, step, *inputs, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
        tested, used = inputs[:cond_nconsts], inputs[cond_nconsts : cond_nconsts + body_nconsts]

        def test(carry):
            return self.run(cond_jaxpr, [*tested, *carry])[0][()]

        def make(pack, unpack, vectors, start):
            def body(packed):
                old = unpack(packed)
                new, proceed = self.run(body_jaxpr, [*used, *old]), test(old)
                if not proceed.shared:  # a run that is done waits for the others
                    if not all(vectors):
                        raise _Promote([True] * len(vectors))
                    new = [_map(functools.partial(self.where, proceed), one, other) for one, other in zip(new, old, strict=True)]
                return pack(new)

            return lax.while_loop(lambda packed: self.any(test(unpack(packed))), body, start)

        return self._carried(make, list(inputs[cond_nconsts + body_nconsts :]))

    def loop(self, first, end, body: Callable, carry: list[Any], top: bool = False) -> list[Any]:
        """``carry = body(index, carry)`` for every index; ``top`` for the loop of which the program is one pass."""

        def make(pack, unpack, vectors, start):
            del vectors
            return lax.fori_loop(first, end, lambda index, packed: pack(body(_one(Number(index, True)), unpack(packed))), start)

        return self._carried(make, carry, top)

    def _carried(self, make: Callable, carry: list[Any], top: bool = False) -> list[Any]:
        """What a loop made by ``make(pack, unpack, vectors, start)`` leaves of ``carry``.

        Each number is carried as a scalar or as a vector, as ``vectors`` says. Which it must be is known after a pass: where
        a scalar has become a vector, the loop is made anew.
        """
        rings = {place: value for place, value in enumerate(carry) if isinstance(value, Ring)}
        arrays = [value for value in carry if not isinstance(value, Ring)]
        shapes, numbers = [array.shape for array in arrays], [number for array in arrays for number in array.flat]
        dtypes = [number.dtype for number in numbers]

        def flat(carry):
            for place, ring in rings.items():
                if carry[place].memory is not ring.memory:
                    raise Unsupported("pending plays that trade places")
            return [number for value in carry if not isinstance(value, Ring) for number in value.flat]

        def pack(carry, vectors):
            new = flat(carry)
            grown = [is_vector or not self._stays_scalar(number) for number, is_vector in zip(new, vectors, strict=True)]
            if grown != vectors:
                raise _Promote(grown)
            return tuple(self._packed(number, is_vector) for number, is_vector in zip(new, vectors, strict=True))

        def unpack(packed, vectors):
            found = iter([self._unpacked(*one) for one in zip(packed, vectors, dtypes, strict=True)])
            arrays = iter([_array([next(found) for _ in range(int(np.prod(shape)))], shape) for shape in shapes])
            # At the top, a pass begins with the memory as the last one left it.
            return [Ring(rings[i].memory, rings[i].memory.version) if i in rings else next(arrays) for i in range(len(carry))]

        vectors = [not self._stays_scalar(number) for number in numbers]
        self.inside_loop += not top
        try:
            while True:
                before = functools.partial(pack, vectors=vectors), functools.partial(unpack, vectors=vectors)
                try:
                    start = tuple(
                        self._packed(number, vector, self.spread) for number, vector in zip(numbers, vectors, strict=True)
                    )
                    return before[1](make(*before, vectors, start))
                except _Promote as grown:
                    vectors = grown.vectors
        finally:
            self.inside_loop -= not top

    def _stays_scalar(self, number: Number) -> bool:
        """Whether a loop carries the number as a scalar: fractions that were worked out on vectors stay there."""
        return number.shared and not (number.is_vector and np.issubdtype(number.dtype, np.floating))

    def _packed(self, number: Number, is_vector: bool, spread: Callable = lambda vector: vector) -> jax.Array:
        value = self.vector(number) if is_vector else self.scalar(number)
        # Masks are no good as what a loop carries; and no weak types, which would change within it.
        value = lax.convert_element_type(value, jnp.int32 if number.dtype == np.bool_ else number.dtype)
        return spread(value) if is_vector and number.shared else value

    def _unpacked(self, value: jax.Array, is_vector: bool, dtype: Any) -> Number:
        return Number(value != 0 if dtype == np.bool_ else value, not is_vector)


def constant(value: Any) -> Array:
    """An array of numbers that are the same in all runs."""
    value = np.asarray(value)
    return _array([Number(one, True) for one in value.reshape(-1)], value.shape)


def _array(numbers: Sequence[Number], shape: tuple[int, ...]) -> Array:
    out = np.empty(len(numbers), object)
    out[:] = numbers
    return out.reshape(shape)


def _one(number: Number) -> Array:
    return _array([number], ())


def _map(function: Callable[..., Number], *arrays: Array) -> Array:
    """``function`` of every number of arrays of one shape (or of a single number)."""
    arrays = tuple(np.broadcast_arrays(*arrays))
    return _array([function(*numbers) for numbers in zip(*(array.flat for array in arrays), strict=True)], arrays[0].shape)


def _rows(array: Array, *axes: int) -> list[Array]:
    """The arrays that ``array`` is made of along ``axes``."""
    array = np.moveaxis(array, axes, range(len(axes)))
    shape = array.shape[len(axes) :]
    return [row.reshape(shape) for row in array.reshape(-1, int(np.prod(shape)))]


def _moving_axis(shape: Sequence[int], sizes: Sequence[int]) -> int:
    """The one axis along which a slice of length 1 is cut out."""
    moving = [axis for axis, (length, size) in enumerate(zip(shape, sizes, strict=True)) if length != size]
    if len(moving) > 1 or any(sizes[axis] != 1 for axis in moving):
        raise Unsupported("a slice other than one row")
    if moving:
        return moving[0]
    if shape and shape[0] == 1:
        return 0
    raise Unsupported("a slice other than one row")


def _needed(jaxpr: Jaxpr) -> list[Any]:
    """The steps that the outputs depend on."""
    wanted = {atom for atom in jaxpr.outvars if not isinstance(atom, Literal)}
    steps = []
    for step in reversed(jaxpr.eqns):
        if wanted.intersection(step.outvars):
            steps.append(step)
            wanted.update(atom for atom in step.invars if not isinstance(atom, Literal))
    return steps[::-1]


def _round_to_even(x: jax.Array) -> jax.Array:
    below = lax.floor(x)
    rest, half = x - below, below * 0.5
    return jnp.where((rest > 0.5) | ((rest == 0.5) & (lax.floor(half) != half)), below + 1, below)


def _expm1(x: jax.Array) -> jax.Array:
    """Kahan's: what rounding does to exp x is undone by the logarithm of the very same number."""
    power = lax.exp(x)
    inside = (power != 1) & (power > 0.5) & (power < 2)
    safe = jnp.where(inside, power, jnp.asarray(1.5, x.dtype))
    return jnp.where(power == 1, x, jnp.where(inside, (safe - 1) * x / lax.log(safe), power - 1))


def _select(which: jax.Array, *cases: jax.Array) -> jax.Array:
    if which.dtype != np.bool_ or cases[0].dtype != np.bool_:
        return lax.select_n(which, *cases)
    no, yes = cases
    return (which & yes) | (~which & no)


FOLDS: dict[str, Callable] = {
    "reduce_and": lax.bitwise_and,
    "reduce_max": lax.max,
    "reduce_min": lax.min,
    "reduce_or": lax.bitwise_or,
    "reduce_sum": lax.add,
}

# Steps that some compiler lacks, in terms of others.
REWRITTEN: dict[str, Callable] = {
    "expm1": _expm1,
    "le_to": lax.le,
    "lt_to": lax.lt,
    "round": _round_to_even,
    "select_n": _select,
}


def _broadcast(step, array, *_, shape, broadcast_dimensions, **__):
    between = [1] * len(shape)
    for axis, length in zip(broadcast_dimensions, array.shape, strict=True):
        between[axis] = length
    return np.broadcast_to(array.reshape(between), shape)


def _pad(step, array, value, *, padding_config):
    if any(low < 0 or high < 0 or inside for low, high, inside in padding_config):
        raise Unsupported("padding that cuts off")
    out = np.broadcast_to(value, step.outvars[0].aval.shape).copy()
    out[tuple(slice(low, low + length) for (low, _, _), length in zip(padding_config, array.shape, strict=True))] = array
    return out


def _slice(step, array, *, start_indices, limit_indices, strides):
    steps = strides or [None] * array.ndim
    return array[tuple(itertools.starmap(slice, zip(start_indices, limit_indices, steps, strict=True)))]


def _iota(step, *, dtype, shape, dimension, **_):
    along = [1] * len(shape)
    along[dimension] = shape[dimension]
    return constant(np.broadcast_to(np.arange(shape[dimension], dtype=dtype).reshape(along), shape))


# How the shape of an array is changed, which costs nothing: its numbers are only put in another order.
STRUCTURAL: dict[str, Callable[..., Array]] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda step, *arrays, dimension: np.concatenate(arrays, dimension),
    "expand_dims": lambda step, array, *, dimensions: np.expand_dims(array, dimensions),
    "iota": _iota,
    "pad": _pad,
    "reshape": lambda step, array, **_: array.reshape(step.outvars[0].aval.shape),
    "rev": lambda step, array, *, dimensions: np.flip(array, dimensions),
    "slice": _slice,
    "stack": lambda step, *arrays, axis: np.stack(arrays, axis),
    "squeeze": lambda step, array, **_: array.reshape(step.outvars[0].aval.shape),
    "transpose": lambda step, array, *, permutation: array.transpose(permutation),
}
