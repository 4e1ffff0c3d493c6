"""Programs that compute, for each run of a game, its regret and a derivative of it."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit._core.arms import inner, pick
from jaxbandit._core.fields import float_dtype, pytree_dataclass, static
from jaxbandit._engine.blocks import Block, join, play_blocks
from jaxbandit._engine.game import Game, State
from jaxbandit._engine.player import Player
from jaxbandit._engine.programs import Program, not_one_function, settled
from jaxbandit._io.progress import Progress
from jaxbandit.measure import RoundInfo

GROUPS, LARGEST_GROUP = 16, 32  # in reverse mode there is one gradient for each group of runs: how many in a block, runs in one


@pytree_dataclass
class PerRun:
    """The output of an estimator for each run (or group of runs), on the last axis."""

    # Arrays of JAX inside a program, of NumPy once blocks are joined.
    regret: Any  # [runs]
    gradient: list[Any]  # of each leaf [..., runs]
    features: Any  # [C, F, runs] control variates at the recorded rounds, cumulative; or None
    rounds: Any  # [C] those rounds
    own: list[Any] | None = None  # separate control variates for each number of the gradient: [C, F, runs], or None for none
    trail: Any = None  # [C, runs] what Trail reads, if it is measured


@dataclasses.dataclass(frozen=True)
class Work:
    """The simulations of an estimator."""

    game: Game  # with the ids of all runs
    player: Player
    size: int  # runs in a block
    rounds: int
    progress: Progress


def over_blocks(program: Program, work: Work, *arrays: Any, **options: Any) -> PerRun:
    """``program(player, game, *arrays, **options)`` for every block of runs, joined on the last axis; ``arrays`` are the rounds to record."""

    def settle(block: Block) -> Player:
        none = jax.tree.map(np.zeros_like, arrays)  # no round to record, hence none to simulate
        return (
            settled(program, block.player, block.game, *block.put(none), **options) if arrays else not_one_function(block.player)
        )

    def play(block: Block) -> PerRun:
        found = jax.tree.map(np.asarray, program(block.player, block.game, *block.put(arrays), **options))
        block.played(work.rounds)
        return found

    blocks = play_blocks(play, work.player, work.game, settle=settle, size=work.size, progress=work.progress)
    # An estimator may return one column for each group of runs in place of one for each run.
    kept = math.ceil(work.game.runs.size * blocks[0].regret.shape[-1] / work.size)
    joined = join([dataclasses.replace(one, rounds=None) for one in blocks], kept)
    return dataclasses.replace(joined, rounds=blocks[0].rounds)


def _with_leaves(game: Game, which: tuple[int, ...], values: Sequence[jax.Array]) -> Game:
    """The game with some leaves of its learner, losses and delays replaced, counted through all three."""
    leaves, structure = jax.tree.flatten((game.learner, game.losses, game.delays))
    for place, value in zip(which, values, strict=True):
        leaves[place] = value
    learner, losses, delays = jax.tree.unflatten(structure, leaves)
    return dataclasses.replace(game, learner=learner, losses=losses, delays=delays)


def _values(game: Game, which: tuple[int, ...]) -> list[jax.Array]:
    leaves = jax.tree.leaves((game.learner, game.losses, game.delays))
    return [leaves[place] for place in which]


def played(player: Player, game: Game, record: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Final regret ``[...]`` and the measurements, by a loop of constant memory."""
    state, records = player.advance(game, player.start(game), jnp.int32(0), record)
    return game.regret(state), records.measured


@Program
def forward(player: Player, game: Game, record: jax.Array, *, which: tuple[int, ...]) -> PerRun:
    """Forward mode: one derivative for each number, all carried through one loop."""

    def regret(game: Game):
        regret, measured = played(player, game, record)
        score = measured.pop("score", None)
        return regret if score is None else regret + score[-1], (regret, measured.get("control_variates"))

    slopes, (value, features) = directional(regret, game, which)
    return PerRun(value, by_number(slopes, game, which), features, record)


def directional(function: Callable[[Game], tuple[Any, Any]], game: Game, which: tuple[int, ...]) -> tuple[Any, Any]:
    """Derivatives ``[n, ...]`` of the first output of ``function(game)`` in the numbers ``which``, and the second output."""
    values = _values(game, which)
    sizes = [value.size for value in values]

    def of_values(values):
        return function(_with_leaves(game, which, values))

    def along(direction):
        parts = jnp.split(direction, np.cumsum(sizes)[:-1])
        tangent = [part.reshape(value.shape) for part, value in zip(parts, values, strict=True)]
        _, slope, other = jax.jvp(of_values, (values,), (tangent,), has_aux=True)
        return slope, other

    return jax.vmap(along, out_axes=(0, None))(jnp.eye(sum(sizes), dtype=float_dtype()))


def by_number(slopes: jax.Array, game: Game, which: tuple[int, ...]) -> list[jax.Array]:
    """Derivatives ``[n, runs]`` as a list with one array ``[..., runs]`` for each leaf."""
    values = _values(game, which)
    parts = jnp.split(slopes, np.cumsum([value.size for value in values])[:-1])
    return [part.reshape(*leaf.shape, -1) for part, leaf in zip(parts, values, strict=True)]


@pytree_dataclass
class Score:
    """A measurement that is always 0 and whose derivative is Σ_t (r_t - b_t)·d log p(arms before t), r_t = <x_t, m_t - min m_t>.

    Added to the regret it changes no value and makes its derivative that of the score function, with rewards averaged over
    the arm of the round. The baseline b_t is the mean of r_t over the other runs of the block. ``chances``: p is the
    probability of the arms and of their losses, 0 or 1.
    """

    chances: bool = static(default=False)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
        return jnp.zeros(runs_shape, float_dtype()), jnp.zeros(runs_shape, float_dtype())

    def update(self, state: tuple[jax.Array, jax.Array], info: RoundInfo) -> tuple[jax.Array, jax.Array]:
        score, chance = state  # chance: 0, with the derivative of log p(arms so far)
        above = info.means - info.means.min()
        regret = lax.stop_gradient(inner(info.probabilities, above))
        baseline = (regret.sum() - regret) / max(regret.size - 1, 1)
        seen = jnp.log(pick(info.probabilities, info.arm))
        if self.chances:
            mean = pick(info.means, info.arm)
            seen = seen + jnp.log(jnp.where(info.loss > 0, mean, 1 - mean))
        return score + (regret - baseline) * chance, chance + (seen - lax.stop_gradient(seen))

    def read(self, state: tuple[jax.Array, jax.Array]) -> dict[str, jax.Array]:
        return {"score": state[0]}


@pytree_dataclass
class Trail:
    """A measurement: a number that is equal in two runs as long as their arms and losses are equal."""

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> jax.Array:
        return jnp.zeros(runs_shape, jnp.uint32)

    def update(self, state: jax.Array, info: RoundInfo) -> jax.Array:
        loss = lax.bitcast_convert_type(info.loss.astype(jnp.float32), jnp.uint32)
        # An odd factor: different numbers remain different.
        return (state + info.arm.astype(jnp.uint32)) * jnp.uint32(0x9E3779B1) + loss

    def read(self, state: jax.Array) -> dict[str, jax.Array]:
        return {"trail": state}


@Program
def regrets(player: Player, game: Game, record: jax.Array) -> PerRun:
    """Regrets and control variates, without a gradient."""
    regret, measured = played(player, game, record)
    return PerRun(regret, [], measured.get("control_variates"), record, trail=measured.get("trail"))


@Program
def backward(player: Player, game: Game, *, rounds: int, which: tuple[int, ...]) -> PerRun:
    """Reverse mode: one gradient for each group of runs.

    Rounds are cut into √rounds segments; only the states between them are kept, and a segment is simulated again in the backward
    pass.
    """
    values = _values(game, which)
    segment = math.isqrt(rounds)
    count = game.runs.shape[0]
    groups = game.runs.reshape(min(max(GROUPS, count // LARGEST_GROUP), count), -1)

    def mean_regret(values, ids):
        mine = dataclasses.replace(_with_leaves(game, which, values), runs=ids)

        def one_round(state: State, t):
            return player.step(mine, state, t, loop="cond")[0], None

        @jax.checkpoint
        def one_segment(state: State, first):
            state, _ = lax.scan(one_round, state, first + jnp.arange(segment, dtype=jnp.int32))
            return state, mine.readings(state)

        in_segments = rounds // segment * segment  # the rounds of all segments but a shorter last one
        state, read = lax.scan(one_segment, player.start(mine), jnp.arange(1, in_segments + 1, segment, dtype=jnp.int32))
        if in_segments < rounds:
            state, _ = jax.checkpoint(lambda state: lax.scan(one_round, state, jnp.arange(in_segments + 1, rounds + 1)))(state)
            read = jax.tree.map(lambda all, last: jnp.append(all, last[None], 0), read, mine.readings(state))
        features = read.get("control_variates")
        regret = mine.regret(state).mean()
        return regret, (regret, None if features is None else features.mean(-1))

    per_group = jax.vmap(jax.grad(mean_regret, has_aux=True), (None, 0), out_axes=-1)
    gradient, (regret, features) = per_group(values, groups)
    ends = jnp.minimum(jnp.arange(1, -(-rounds // segment) + 1) * segment, rounds)
    return PerRun(regret, gradient, features, ends)
