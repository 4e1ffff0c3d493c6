"""Games with per-run values: leaves of learner, losses and delays with the runs as last axis.

Flags mark these leaves, in the order of the game's leaves: see :mod:`jaxbandit._checks.per_run`.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandit._core.fields import field_values
from jaxbandit._engine.game import Game


def for_each_run(function: Callable, game: Game, flags: Sequence[bool], *arguments: Any) -> Any:
    """Map ``function(game, *arguments)`` over the runs, the last axis of the marked leaves and of the arguments."""
    leaves, structure = jax.tree.flatten(game)
    axes = [-1 if own else None for own in _padded(flags, leaves)]
    axes[next(place for place, leaf in enumerate(leaves) if leaf is game.runs)] = 0

    def one(leaves, *arguments):
        return function(jax.tree.unflatten(structure, leaves), *arguments)

    return jax.vmap(one, (axes, *[-1] * len(arguments)), -1)(leaves, *arguments)


def with_runs(game: Game, flags: Sequence[bool], count: int) -> Game:
    """Shapes of the game with ``count`` runs, for tracing programs."""
    return _changed(game, flags, lambda leaf: _shaped((*leaf.shape[:-1], count), leaf), _shaped((count,), game.runs))


def single_run(game: Game, flags: Sequence[bool]) -> Game:
    """Shapes of the game for one run."""
    one = _changed(game, flags, lambda leaf: _shaped(leaf.shape[:-1], leaf), _shaped((), game.runs))
    return jax.tree.map(lambda leaf: _shaped(np.shape(leaf), leaf), one)


def of_block(game: Game, flags: Sequence[bool], ids: np.ndarray, first: int) -> Game:
    """The game with the ids of a block of runs, and with the values of these runs; the last run's values pad the last block."""
    columns = np.minimum(np.arange(first, first + len(ids)), game.runs.size - 1)
    return _changed(game, flags, lambda leaf: np.asarray(leaf)[..., columns], ids)


def of_delays(game: Game, flags: Sequence[bool]) -> bool:
    """Whether a leaf of the delay model has a value for each run."""
    before = len(jax.tree.leaves((game.learner, game.losses)))
    return any(flags[before:])


def of_losses(game: Game, flags: Sequence[bool]) -> bool:
    """Whether a leaf of the loss model has a value for each run."""
    first = len(jax.tree.leaves(game.learner))
    return any(flags[first : first + len(jax.tree.leaves(game.losses))])


def of_library(tree: Any) -> bool:
    """Whether every class in a tree of dataclasses is the library's: only these are known to broadcast over runs."""
    if dataclasses.is_dataclass(tree):
        mine = type(tree).__module__.partition(".")[0] == __name__.partition(".")[0]
        return mine and all(of_library(value) for value in field_values(tree).values())
    if isinstance(tree, tuple | list):
        return all(map(of_library, tree))
    return isinstance(tree, np.ndarray | jax.Array | jax.ShapeDtypeStruct | np.generic | str | int | float | None)


def _changed(game: Game, flags: Sequence[bool], change: Callable, runs: Any) -> Game:
    leaves, structure = jax.tree.flatten(game)
    leaves = [change(leaf) if own else leaf for leaf, own in zip(leaves, _padded(flags, leaves), strict=True)]
    return dataclasses.replace(jax.tree.unflatten(structure, leaves), runs=runs)


def _padded(flags: Sequence[bool], leaves: Sequence[Any]) -> list[bool]:
    return [*flags, *[False] * (len(leaves) - len(flags))]


def _shaped(shape: tuple[int, ...], leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, leaf.dtype)
