"""Numbers of one run's program as vectors of runs, and reshaping of arrays of them.

Used by :mod:`jaxbandit._engine.unrolled.evaluator`.
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
from jax.extend.core import Jaxpr, Literal

# fmt: off
ELEMENTWISE = {
    "abs", "acos", "acosh", "add", "add_any", "and", "asin", "asinh", "atan", "atan2", "atanh", "bitcast_convert_type", "cbrt", "ceil",
    "clamp", "clz", "convert_element_type", "cos", "cosh", "digamma", "div", "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1",
    "floor", "ge", "gt", "integer_pow", "is_finite", "le", "le_to", "lgamma", "log", "log1p", "log2", "logistic", "lt", "lt_to", "max",
    "min", "mul", "ne", "neg", "nextafter", "not", "or", "pow", "population_count", "reduce_precision", "rem", "round", "rsqrt",
    "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh", "sqrt", "square", "sub", "tan",
    "tanh", "xor",
}
SAME = {"copy", "copy_p", "optimization_barrier", "stop_gradient"}
CALLS = {
    "jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "remat", "checkpoint",
}
# Steps on whole arrays, done on ``[..., runs]`` by JAX's own rule for a batch.
BATCHED = {
    "call_hi_primitive", "dot_general", "gather", "polynomial", "random_bits", "random_fold_in", "random_gamma", "random_split",
    "random_unwrap", "random_wrap", "sort", "unstack",
}
# fmt: on
FOLDS: dict[str, Callable] = {
    "reduce_and": lax.bitwise_and,
    "reduce_max": lax.max,
    "reduce_min": lax.min,
    "reduce_or": lax.bitwise_or,
    "reduce_prod": lax.mul,
    "reduce_sum": lax.add,
}
CUMULATIVE: dict[str, Callable] = {"cummax": lax.max, "cummin": lax.min, "cumprod": lax.mul, "cumsum": lax.add}
UNROLLED = 64  # numbers; a longer array of the game stays in memory

Array = Any  # a NumPy array of Number, shaped like the array of one run


class Unsupported(NotImplementedError):
    """The program has a primitive that the evaluator does not support."""


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Number:
    """One number of one run's program.

    ``value`` is a NumPy number where it is known beforehand, an array ``[]`` where all runs share it, else a vector ``[runs]``.
    Numbers that all runs share may be vectors too, because a scalar that is computed in every round is a separate kernel.
    ``scalar()`` is then the shared number, for use as the index of a row of memory.
    """

    value: Any
    scalar: Callable[[], Any] | None = None
    is_fixed: bool = False  # a scalar that is the same in every round, computed once before the first

    @property
    def is_vector(self) -> bool:
        return np.ndim(self.value) > 0

    @property
    def is_shared(self) -> bool:
        return self.scalar is not None or not self.is_vector

    def one(self) -> Any:
        """The value that all runs share."""
        if not self.is_vector:
            return self.value
        if self.scalar is None:
            raise Unsupported("a number that differs between runs is needed as one for all")
        return self.scalar()


def shared_vector(value: jax.Array) -> Number:
    """A vector whose entries are all the same."""
    return Number(value, functools.cache(lambda: value[0]))


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """An array that stays in memory: ``[W, ..., runs]``, or ``[W, ...]`` if all runs share it.

    Writes are deferred until the end of the round, and reads include them. Memory is then read before it is written, and
    need not be copied.
    """

    array: jax.Array
    per_run: bool
    writes: tuple[tuple[Number, Array], ...] = ()  # row, and its numbers

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape[:-1] if self.per_run else self.array.shape

    def places(self) -> list[tuple[int, ...]]:
        """The indices within a row."""
        return list(np.ndindex(*self.shape[1:]))


def constant(value: Any) -> Any:
    """An array that is the same in all runs: numbers, or rows of memory if there are many."""
    value = np.asarray(value)
    if value.size > UNROLLED:
        return Rows(jnp.asarray(value), False)
    return array_of([Number(one) for one in value.reshape(-1)], value.shape)


def array_of(values: Sequence[Number], shape: tuple[int, ...]) -> Array:
    """An array of numbers."""
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape)


def single(number: Number) -> Array:
    return array_of([number], ())


def map_numbers(function: Callable[..., Number], *arrays: Array) -> Array:
    """``function`` of every number of arrays of one shape (or of a single number)."""
    arrays = tuple(np.broadcast_arrays(*arrays))
    return array_of([function(*numbers) for numbers in zip(*(array.flat for array in arrays), strict=True)], arrays[0].shape)


def rows_along(array: Array, *axes: int) -> list[Array]:
    """The arrays that ``array`` is made of along ``axes``."""
    array = np.moveaxis(array, axes, range(len(axes)))
    shape = array.shape[len(axes) :]
    return [row.reshape(shape) for row in array.reshape(-1, int(np.prod(shape)))]


def moving_axis(shape: Sequence[int], sizes: Sequence[int]) -> int:
    """The one axis along which a slice of length 1 is cut out."""
    moving = [axis for axis, (length, size) in enumerate(zip(shape, sizes, strict=True)) if length != size]
    if len(moving) > 1 or any(sizes[axis] != 1 for axis in moving) or not (moving or (shape and shape[0] == 1)):
        raise Unsupported("a slice other than one row")
    return moving[0] if moving else 0


def needed_steps(jaxpr: Jaxpr) -> list[Any]:
    """The steps that the outputs depend on."""
    wanted = {atom for atom in jaxpr.outvars if not isinstance(atom, Literal)}
    steps = []
    for step in reversed(jaxpr.eqns):
        if wanted.intersection(step.outvars):
            steps.append(step)
            wanted.update(atom for atom in step.invars if not isinstance(atom, Literal))
    return steps[::-1]


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
    numbers = np.broadcast_to(np.arange(shape[dimension], dtype=dtype).reshape(along), shape)
    return array_of([Number(one) for one in numbers.reshape(-1)], shape)


# Changes of shape, which cost nothing: the numbers are only reordered.
STRUCTURAL: dict[str, Callable[..., Array]] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda step, *arrays, dimension: np.concatenate(arrays, dimension),
    "expand_dims": lambda step, array, *, dimensions: np.expand_dims(array, dimensions),
    "iota": _iota,
    "pad": _pad,
    "reshape": lambda step, array, **_: array.reshape(step.outvars[0].aval.shape),
    "rev": lambda step, array, *, dimensions: np.flip(array, dimensions),
    "slice": _slice,
    "squeeze": lambda step, array, **_: array.reshape(step.outvars[0].aval.shape),
    "stack": lambda step, *arrays, axis: np.stack(arrays, axis),
    "transpose": lambda step, array, *, permutation: array.transpose(permutation),
}
