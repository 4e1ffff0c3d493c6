"""Sums over the arms' axis, axis 0 of ``[K, ...]``, written so that XLA fuses and vectorises them.

XLA's CPU backend turns a reduction over a short leading axis into straight vector code over the runs, but falls back to
one scalar loop per run when the reduction is longer than it will unroll (measured: 2.1 against 0.26 ns per element at K =
100). Reducing in groups of GROUP keeps every reduction short. Several sums in one reduction share their inputs, and count as
one long reduction: in groups of 16, four sums took eight times as long as three (measured: a third of a round at K = 100).

XLA replaces recognised sums and minima of 4096 numbers and more by library calls. It then no longer compiles the loop over rounds
into one function (measured: 6.5 against 11.4 million rounds/s at K = 16). Written as x - (-y) and -max(-x, -y) they are not
recognised, and the results are bitwise identical to x + y and min(x, y). (As a selection, y < x ? y : x, a minimum makes XLA's
compiler of jaxlib 0.10.2 abort on some programs.)
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

AT_ONCE, GROUP = 12, 8  # rows: up to AT_ONCE in one reduction, more in groups
FEW = 16  # arms up to which a sum over all of them is faster than an index


@jax.custom_jvp
def sums(*arrays: jax.Array) -> tuple[jax.Array, ...]:
    """``sum(a, axis=0)`` of each array ``[K, ...]``, in one pass; each is ``[...]``."""
    return _reduce(arrays, lambda x, y: x - (-y), 0)


@sums.defjvp
def _sums_jvp(primals, tangents):
    return sums(*primals), tuple(jnp.sum(t, 0) for t in tangents)  # a plain sum has a transpose, for reverse mode


def inner(probabilities: jax.Array, values: jax.Array) -> jax.Array:
    """<x, v> ``[...]`` for probabilities ``[K, ...]`` and ``values [K]``, the same in all runs, or ``[K, ...]``."""
    return sums(probabilities * values.reshape(*values.shape, *[1] * (probabilities.ndim - values.ndim)))[0]


def constant_min(array: jax.Array) -> jax.Array:
    """``min(array, axis=0)``; its derivative is taken to be 0, which is right where only differences to it matter."""
    return _reduce((lax.stop_gradient(array),), lambda x, y: -jnp.maximum(-x, -y), np.inf)[0]


def _reduce(arrays, operation, start) -> tuple[jax.Array, ...]:
    def combine(xs, ys):
        return tuple(operation(x, y) for x, y in zip(xs, ys, strict=True))

    def reduce(parts, axis):
        return tuple(lax.reduce(tuple(parts), tuple(np.asarray(start, p.dtype) for p in parts), combine, (axis,)))

    count = arrays[0].shape[0]
    if count <= AT_ONCE:
        return reduce(arrays, 0)
    whole = count // GROUP * GROUP
    total = reduce([a[:whole].reshape(whole // GROUP, GROUP, *a.shape[1:]) for a in arrays], 1)
    total = _reduce(total, operation, start)
    return total if whole == count else combine(total, reduce([a[whole:] for a in arrays], 0))


def one_hot(index: jax.Array, count: int) -> jax.Array:
    """True in row ``index [...]`` of ``count`` rows, a mask ``[count, ...]``; an index outside 0 … count - 1 gives no hit.

    >>> from jaxbandit.extend import one_hot
    >>> one_hot(jnp.array([2, 0]), 3).astype(int)
    Array([[0, 1],
           [0, 0],
           [1, 0]], dtype=int32)
    """
    return jnp.arange(count, dtype=jnp.int32).reshape(count, *[1] * jnp.ndim(index)) == index


def pick(values: jax.Array, arm: jax.Array) -> jax.Array:
    """``values[arm, ...]`` for ``values [K, ...]`` and ``arm [...]`` (``values [K]`` is shared by all runs).

    >>> from jaxbandit.extend import pick
    >>> pick(jnp.array([10, 20, 30]), jnp.array([2, 0]))
    Array([30, 10], dtype=int32)
    """
    num_arms = values.shape[0]
    values = values.reshape(num_arms, *[1] * (jnp.ndim(arm) + 1 - values.ndim), *values.shape[1:])
    if num_arms <= FEW:  # a short sum of masked rows beats a gather, and differentiates cheaply
        return sums(jnp.where(one_hot(arm, num_arms), values, jnp.zeros((), values.dtype)))[0]
    values = jnp.broadcast_to(values, (num_arms, *jnp.shape(arm)))
    return jnp.take_along_axis(values, arm[None], 0, mode="promise_in_bounds")[0]


def draw(probabilities: jax.Array, uniform: jax.Array) -> jax.Array:
    """The arm whose cell of the cumulative sum holds ``uniform``: int32 ``[...]``, always an arm of positive weight.

    The uniform number is stretched to the sum as it was rounded, so that the last arm is not drawn in its place when
    the probabilities add up to a little less than one.
    """
    num_arms = probabilities.shape[0]
    if num_arms <= FEW:
        below = jnp.cumsum(probabilities, 0)
        return (below <= uniform * below[-1]).sum(0, dtype=jnp.int32)
    # Two levels, √K groups: the group first, then the arm in it, O(K) work instead of the O(K²) of XLA's cumulative sum.
    size = int(np.ceil(np.sqrt(num_arms)))
    groups = -(-num_arms // size)
    padding = [(0, groups * size - num_arms)] + [(0, 0)] * (probabilities.ndim - 1)
    grouped = jnp.pad(probabilities, padding).reshape(groups, size, *probabilities.shape[1:])
    weights = sums(jnp.swapaxes(grouped, 0, 1))[0]
    below = jnp.cumsum(weights, 0)
    target = uniform * below[-1]
    group = _first_above(below, weights, target)
    start = pick(below, group) - pick(weights, group)
    inside = sums(jnp.where(one_hot(group, groups)[:, None], grouped, 0))[0]
    return group * size + _first_above(jnp.cumsum(inside, 0), inside, target - start)


def _first_above(below: jax.Array, weights: jax.Array, target: jax.Array) -> jax.Array:
    """The first row of positive weight whose cumulative sum is above ``target``, else the last of positive weight."""
    count = weights.shape[0]
    if count <= FEW:
        # So few rows are added up in order: a row of weight 0 leaves the sum as it was. Rounding may put the target a hair
        # outside, from where it is brought back.
        inside = jnp.clip(target, 0, below[-1] * (1 - jnp.finfo(below.dtype).eps))
        return (below <= inside).sum(0, dtype=jnp.int32)
    # Longer sums are cut in pieces, each rounded in its own way: one may rise across a row of weight 0.
    rows = jnp.arange(count, dtype=jnp.int32).reshape(count, *[1] * (weights.ndim - 1))
    above = jnp.where((weights > 0) & (below > target), rows, count).min(0)
    return jnp.minimum(above, jnp.where(weights > 0, rows, 0).max(0))
