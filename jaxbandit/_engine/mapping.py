"""Rollouts under ``jax.vmap`` and differentiation: every mapped axis becomes the axis of runs.

A plain ``vmap`` of a rollout puts runs first and arms last, and reads whole queues where one run needs one row. Here a
``custom_vmap`` rule turns the mapped axis into the runs of a simulation: the last axis, with per-run values in the mapped leaves.
The rule is recursive, so that nested maps share one axis. A ``custom_jvp`` around it differentiates the plain rounds.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import SymbolicZero

from jaxbandit._core.fields import is_concrete, pytree_dataclass
from jaxbandit._core.sums import Count
from jaxbandit._engine.blocks import leaves_with_runs
from jaxbandit._engine.choose import SLOT_ARMS, block_size, choose_execution, fitted
from jaxbandit._engine.devices import platform
from jaxbandit._engine.execution import Execution
from jaxbandit._engine.game import Game, Records, State
from jaxbandit._engine.per_run import with_runs
from jaxbandit._engine.player import Player
from jaxbandit._engine.programs import Program, settled
from jaxbandit._engine.queues.listed import ring_size

MANY_BLOCKS = 8


class How(NamedTuple):
    """The static arguments of a rollout."""

    rounds: int | None  # the horizon; None: traced
    record: tuple[int, ...]  # the rounds to record, where the horizon is static
    probabilities: bool


@pytree_dataclass
class Outcome:
    """The fields of :class:`jaxbandit.Rollout` that depend on the runs, which are the last axis of each."""

    regret: jax.Array
    probabilities: jax.Array | None
    measured: dict[str, jax.Array]
    learner_state: Any
    outstanding: jax.Array
    outstanding_max: jax.Array
    total_delay: Count
    lost: jax.Array

    @classmethod
    def of(cls, game: Game, state: State, records: Records) -> "Outcome":
        pending: Any = state.pending

        def for_runs(count: jax.Array) -> jax.Array:
            return jnp.broadcast_to(count, game.runs.shape)

        return cls(
            records.regret,
            records.probabilities,
            records.measured,
            state.learner_state,
            for_runs(pending.outstanding),
            for_runs(pending.outstanding_max),
            jax.tree.map(for_runs, pending.total_outstanding),
            for_runs(pending.lost),
        )


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def play(how: How, game: Game, record: jax.Array) -> Outcome:
    """The outcome of a game; its derivatives are those of the plain rounds."""
    return _mapped(how, None)(game, record)


@functools.partial(play.defjvp, symbolic_zeros=True)
def _(how: How, primals: Any, tangents: Any) -> tuple[Outcome, Outcome]:
    leaves, structure = jax.tree.flatten(primals)
    slopes = jax.tree.leaves(tangents, is_leaf=lambda leaf: isinstance(leaf, SymbolicZero))
    moving = [place for place, slope in enumerate(slopes) if not isinstance(slope, SymbolicZero)]

    def plain(values: list[jax.Array]) -> Outcome:
        given = list(leaves)
        for place, value in zip(moving, values, strict=True):
            given[place] = value
        return _plain(how, *jax.tree.unflatten(structure, given))

    return jax.jvp(plain, ([leaves[place] for place in moving],), ([slopes[place] for place in moving],))


def _plain(how: How, game: Game, record: jax.Array) -> Outcome:
    """Differentiable rounds; reverse mode requires a static horizon."""
    player = _up_to_horizon(how, game)
    if how.rounds is None:
        return Outcome.of(game, *player.advance(game, player.start(game), jnp.int32(0), record, how.probabilities))
    return Outcome.of(game, *player.scan(game, how.rounds, np.asarray(how.record), how.probabilities))


def _up_to_horizon(how: How, game: Game) -> Player:
    """The player of the plain rounds, with a queue that ends at a static horizon where the delay model requires a longer one."""
    summed = game.delays._shares() is not None or game.delays._long_waits
    if how.rounds is None or summed or ring_size(how.rounds) >= ring_size(game.delays.bound):
        return Player()
    return Player(execution=Execution(ring=ring_size(how.rounds), later="dropped"))


class Mapped(NamedTuple):
    """Which leaves of a game have been mapped, and the shape of its runs before."""

    flags: tuple[bool, ...]
    runs: tuple[int, ...]


def _mapped(how: How, mapped: Mapped | None) -> Any:
    """A function of the game and the rounds to record, whose batching rule makes the mapped axis one of runs."""

    @custom_vmap
    def program(game: Game, record: jax.Array) -> Outcome:
        return _traced_once(how, game, record, mapped.flags if mapped else ())

    @program.def_vmap
    def _(size: int, batched: Any, game: Game, record: jax.Array) -> tuple[Outcome, Any]:
        in_game, in_record = batched
        if in_record or game.runs.ndim - in_game.runs > 1:
            axes = jax.tree.map(lambda one: 0 if one else None, batched)
            found = jax.vmap(lambda game, record: _plain(how, game, record), axes, axis_size=size)(game, record)
            return found, jax.tree.map(lambda _: True, found)
        leaves, structure = jax.tree.flatten(game)
        old = mapped.flags if mapped else _flags(game, False)
        new = tuple(jax.tree.leaves(in_game))
        runs = game.runs.shape[int(in_game.runs) :]
        flags = tuple(a or b for a, b in zip(_with_runs(game, old, runs), new, strict=True))
        leaves = [
            _beside(leaf, had, mine, runs, size) if flag or leaf is game.runs else leaf
            for leaf, had, mine, flag in zip(leaves, _with_runs(game, old, runs), new, flags, strict=True)
        ]
        marks = tuple(flag and leaf is not game.runs for flag, leaf in zip(flags, jax.tree.leaves(game), strict=True))
        wide = jax.tree.unflatten(structure, leaves)
        if is_concrete((wide, record)):
            # Outside of any transformation: a separate program can use wide vectors.
            found = _compiled(how, wide, record, marks)
        else:
            found = _mapped(how, Mapped(marks, runs))(wide, record)

        def apart(leaf: jax.Array) -> jax.Array:
            return jnp.moveaxis(leaf.reshape(*leaf.shape[:-1], *runs, size), -1, 0)

        return jax.tree.map(apart, found), jax.tree.map(lambda _: True, found)

    return program


def _flags(game: Game, value: bool) -> tuple[bool, ...]:
    return (value,) * len(jax.tree.leaves(game))


def _with_runs(game: Game, flags: tuple[bool, ...], runs: tuple[int, ...]) -> tuple[bool, ...]:
    """Which leaves have the runs as last axis already: those marked, and the ids of the runs if they are more than one."""
    ids = jax.tree.map(lambda _: False, game)
    ids = jax.tree.leaves(dataclasses.replace(ids, runs=bool(runs)))
    return tuple(a or b for a, b in zip(flags, ids, strict=True))


def _beside(leaf: jax.Array, had: bool, mapped: bool, runs: tuple[int, ...], size: int) -> jax.Array:
    """A leaf with the runs, if it had them, and the mapped axis as one last axis."""
    leaf = jnp.moveaxis(leaf, 0, -1) if mapped else leaf[..., None]
    leaf = leaf if had or not runs else leaf[..., None, :]
    inner = leaf.shape[: leaf.ndim - 1 - len(runs)]
    return jnp.broadcast_to(leaf, (*inner, *runs, size)).reshape(*inner, -1)


def _wide(how: How, game: Game, record: jax.Array, flags: tuple[bool, ...]) -> Outcome:
    """All runs of the game at once."""
    if not game.runs.ndim and how.rounds is not None:
        player = _up_to_horizon(how, game)
        return Outcome.of(game, *player.scan(game, how.rounds, np.asarray(how.record), how.probabilities, loop="while"))
    if not game.runs.ndim:
        return _played(Player(), game, record, probabilities=how.probabilities)
    player, fit = _player(how, game, flags, {})
    if platform() == "cpu":
        block = with_runs(fit, player.execution.per_run, player.execution.block)
        if _block_program.emitted(player, block, record, probabilities=how.probabilities):
            return _played(player, fit, record, probabilities=how.probabilities, play=_block_program.inside)
        # On a CPU, slots are faster only within one function.
        player, fit = _player(how, game, flags, {"queue": "listed", "one_function": False})
    return _played(player, fit, record, probabilities=how.probabilities)


# custom_vmap traces the unmapped program in every call, although only its rule is used: some 40 ms. Inlined, it is the same program.
_traced_once = jax.jit(_wide, static_argnums=(0, 3), inline=True)


def _compiled(how: How, game: Game, record: jax.Array, flags: tuple[bool, ...]) -> Outcome:
    player, game = _player(how, game, flags, {})
    player = settled(_program, player, game, jnp.zeros_like(record), probabilities=how.probabilities)
    return _program(player, game, record, probabilities=how.probabilities)


def _player(how: How, game: Game, flags: tuple[bool, ...], changes: Any) -> tuple[Player, Game]:
    execution = choose_execution(game, platform(), flags=flags, rounds=how.rounds, resumable=False)
    size = execution.block if platform() == "cpu" and _better_in_blocks(game) else game.runs.size
    execution = dataclasses.replace(execution, block=min(size, game.runs.size), **changes)
    player, game = fitted(game, execution)
    return dataclasses.replace(player, mask=None if player.mask is None else jnp.asarray(player.mask)), game


def _better_in_blocks(game: Game) -> bool:
    """Whether a CPU runs block after block: the busiest run sets the number of arrivals per round, and states fill the caches.

    For other games, few runs are simulated together: the padding of the last block would cost more than the caches save.
    """
    many = game.runs.size >= MANY_BLOCKS * block_size(game.losses.num_arms)
    return many or game.delays.fixed_age() is None or game.losses.num_arms > SLOT_ARMS


def _played(player: Player, game: Game, record: jax.Array, *, probabilities: bool, play: Any = None) -> Outcome:
    """All runs of the game, in blocks of the size of the execution; the last one is padded with copies of its last run."""
    size, count = player.execution.block, game.runs.size
    play = play or _one_block
    if not game.runs.ndim or not 0 < size < count:
        return play(player, game, record, probabilities=probabilities)
    leaves, structure = jax.tree.flatten(game)
    flags = [*player.execution.per_run, *[False] * (len(leaves) - len(player.execution.per_run))]
    own = [flag or leaf is game.runs for flag, leaf in zip(flags, leaves, strict=True)]

    def apart(leaf: jax.Array) -> jax.Array:
        leaf = jnp.concatenate([leaf, jnp.repeat(leaf[..., -1:], -count % size, -1)], -1)
        return jnp.moveaxis(leaf.reshape(*leaf.shape[:-1], -1, size), -2, 0)

    def one_block(mine: list[jax.Array]) -> Outcome:
        rest = iter(mine)
        block = jax.tree.unflatten(structure, [next(rest) if has else leaf for has, leaf in zip(own, leaves, strict=True)])
        return play(player, block, record, probabilities=probabilities)

    def beside(leaf: jax.Array) -> jax.Array:
        return jnp.moveaxis(leaf, 0, -2).reshape(*leaf.shape[1:-1], -1)[..., :count]

    return jax.tree.map(beside, lax.map(one_block, [apart(leaf) for has, leaf in zip(own, leaves, strict=True) if has]))


def _one_block(player: Player, game: Game, record: jax.Array, *, probabilities: bool) -> Outcome:
    state, records = player.advance(game, player.start(game), jnp.int32(0), record, probabilities)
    outcome = Outcome.of(game, state, records)
    if not game.runs.ndim:
        return outcome
    has_runs = jax.tree.unflatten(jax.tree.structure(state), leaves_with_runs(player, game)).learner_state

    def for_runs(leaf: jax.Array, has: bool) -> jax.Array:
        return leaf if has else jnp.broadcast_to(leaf[..., None], (*leaf.shape, game.runs.size))

    return dataclasses.replace(outcome, learner_state=jax.tree.map(for_runs, state.learner_state, has_runs))


_program, _block_program = Program(_played), Program(_one_block)
