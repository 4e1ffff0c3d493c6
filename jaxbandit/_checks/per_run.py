"""Per-run values: leaves of learner, losses and delays with the runs as last axis.

A leaf with one axis more than its field declares has a value for each run: ``factor`` of shape ``[runs]``, ``means`` of shape
``[K, runs]``. Fields declare their axes by :func:`jaxbandit._core.fields.number` and its like. Undeclared fields never have
values for each run, because their arrays may have any shape.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._core.fields import canonical, is_concrete, is_numeric, limits, show
from jaxbandit.delays import Delays
from jaxbandit.losses import Losses

RUNS_AT_ONCE = 64  # of a check that evaluates a learner or model for each run: its memory grows with them


def declared_axes(tree: Any) -> list[tuple[str, int | None]]:
    """Name and declared number of axes of every leaf, in the order of ``jax.tree.leaves``; None where nothing is declared."""
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        found = []
        for field in dataclasses.fields(tree):
            if field.metadata.get("static"):
                continue
            value = vars(tree)[field.name]
            inside = declared_axes(value)
            if len(inside) == 1 and inside[0] == ("", None) and not dataclasses.is_dataclass(value):
                declared = limits(field).axes
                # A table with a row for each round is not one for each run.
                axes = None if declared is None or "T" in declared else len(declared)
                inside = [(f"{type(tree).__name__}.{field.name}", axes)]
            found += inside
        return found
    children = jax.tree.leaves(tree, is_leaf=lambda node: node is not tree)
    if len(children) == 1 and children[0] is tree:
        return [("", None)]
    return [one for child in children for one in declared_axes(child)]


def own_leaves(part: Any) -> list[bool]:
    """Which leaves of a learner or model have one axis more than declared: a value for each run."""
    return [
        axes is not None and isinstance(leaf, np.ndarray | jax.Array) and leaf.ndim == axes + 1 and is_concrete(leaf)
        for (_, axes), leaf in zip(declared_axes(part), jax.tree.leaves(part), strict=True)
    ]


def run_of(part: Any, run: int) -> Any:
    """``part`` with the values that one run has."""
    leaves, structure = jax.tree.flatten(part)
    values = [np.asarray(leaf)[..., run] if own else leaf for leaf, own in zip(leaves, own_leaves(part), strict=True)]
    return jax.tree.unflatten(structure, values)


def distinct_runs(part: Any) -> Iterator[Any]:
    """:func:`run_of` for the runs that have different values; ``part`` itself if no value is for each run."""
    mine = [np.asarray(leaf, np.float64) for leaf, own in zip(jax.tree.leaves(part), own_leaves(part), strict=True) if own]
    if not mine:
        yield part
        return
    columns = np.concatenate([leaf.reshape(-1, leaf.shape[-1]) for leaf in mine])
    for run in np.unique(columns, axis=1, return_index=True)[1].tolist():
        yield run_of(part, run)


def over_runs(function: Callable, part: Any, *arguments: Any) -> jax.Array:
    """``function(part, *arguments)`` for each run, runs last; some leaves of ``part`` have a value for each run.

    ``function`` is a function of a module: its programs are found by reference.
    """
    leaves, structure = jax.tree.flatten(canonical(part))
    flags = tuple(own_leaves(part))
    mine = [jnp.moveaxis(leaf, -1, 0) for leaf, own in zip(leaves, flags, strict=True) if own]
    others = [leaf for leaf, own in zip(leaves, flags, strict=True) if not own]
    return jnp.moveaxis(_over_runs(function, structure, flags, mine, others, *arguments), 0, -1)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _over_runs(
    function: Callable, structure: Any, flags: tuple[bool, ...], mine: list[Any], others: list[Any], *arguments: Any
) -> jax.Array:
    def of_run(mine):
        values, shared = iter(mine), iter(others)
        return function(jax.tree.unflatten(structure, [next(values if own else shared) for own in flags]), *arguments)

    return jax.lax.map(of_run, mine, batch_size=RUNS_AT_ONCE)


def check_values(part: Any, flags: list[bool], runs: int) -> None:
    """Raise if the number of values differs from the number of runs, or if a value is not finite."""
    for (name, _), leaf, own in zip(declared_axes(part), jax.tree.leaves(part), flags, strict=True):
        if own and leaf.shape[-1] != runs:
            raise ValueError(f"{name} of shape {leaf.shape}: the last axis is for the runs, and there are {runs} of them")
        if own and not np.all(np.isfinite(leaf)):
            raise ValueError(f"{name}={show(leaf)}: a value for each run must be a finite number")


def values_for_each_run(learner: Any, losses: Any, delays: Any, runs: int) -> list[list[bool]]:
    """Which leaves of learner, losses and delays have a value for each run; empty if the three are not what they should be."""
    parts = (learner, losses, delays)
    if not isinstance(losses, Losses) or not all(map(is_numeric, jax.tree.leaves(parts))):
        return []  # other checks report this
    flags = [own_leaves(part) for part in parts]
    # A single arm is always chosen: runs cannot differ, and an array of shape [1, runs] is more likely a mistake.
    if not any(map(any, flags)) or losses.num_arms < 2:
        return []
    for part, own in zip(parts, flags, strict=True):
        check_values(part, own, int(runs))
    return flags


def prepared(delays: Delays, own: list[bool]) -> Delays:
    """The prepared delay model of each run; every leaf then has the runs as last axis."""
    if not any(own):
        return delays
    leaves, structure = jax.tree.flatten(canonical(delays))
    axes, runs = [-1 if one else None for one in own], leaves[own.index(True)].shape[-1]
    return jax.vmap(lambda leaves: jax.tree.unflatten(structure, leaves).prepare(), (axes,), -1, axis_size=runs)(leaves)
