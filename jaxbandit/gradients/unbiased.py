"""``estimator="unbiased"``: the jump tangent, corrected by branches at random rounds; see ``docs/appendix/gradient_estimators.md``."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._core.fields import float_dtype, pytree_dataclass
from jaxbandit._engine.blocks import Block, join, play_blocks
from jaxbandit._engine.game import Game
from jaxbandit._engine.player import Player
from jaxbandit._engine.programs import Program
from jaxbandit.gradients.branches import Branches, Without, exact_chance
from jaxbandit.gradients.jump import JumpTangent, as_weighted
from jaxbandit.gradients.programs import PerRun, Work, by_number, directional, regrets

BRANCHES = 8  # actions of a run that are drawn, on average
SLOTS = 32  # for the branches of a run; if one has more, the simulation is repeated with more


@pytree_dataclass
class Tangents:
    """The output of the first pass for each run, on the last axis."""

    per_run: PerRun
    count: Any  # [runs] how many branches
    rounds: Any  # [slots, runs] of the actions without feedback
    weights: Any  # [n, slots, runs] d log p(arm, loss)/chance of each, by each number


@Program
def _tangents(player: Player, game: Game, record: jax.Array, *, which: tuple[int, ...]) -> Tangents:
    """The jump tangent minus the contribution of the actions with a branch; ``game.measure`` ends with ``Branches``."""

    def regret(game: Game):
        state, records = player.advance(game, player.start(game), jnp.int32(0), record)
        listed, value = state.measured[-1], game.regret(state)
        branches = listed["count"], listed["rounds"][:-1]
        return (value, listed["weights"][:-1]), (value, records.measured.get("control_variates"), *branches)

    (slopes, weights), (value, features, count, rounds) = directional(regret, game, which)
    return Tangents(PerRun(value, by_number(slopes, game, which), features, record), count, rounds, weights)


def unbiased(work: Work, which: tuple[int, ...], record: np.ndarray, coins: bool) -> PerRun:
    """For each run a derivative whose mean is that of the expected regret, and control variates for it.

    ``coins``: the numbers include the probabilities of losses 0 and 1.
    """
    found = _first_pass(work, which, record, coins)
    per_run = dataclasses.replace(found.per_run, rounds=record)
    slot, run = np.nonzero(np.arange(len(found.rounds))[:, None] < found.count)
    if not run.size:
        return per_run
    branches = _branches(work, run, found.rounds[slot, run], record)
    weights = found.weights[:, slot, run].astype(np.float64)  # [n, branches]

    def summed(values: np.ndarray) -> np.ndarray:
        """Sums over the branches of each run: ``[..., runs]`` of ``[..., branches]``."""
        flat = values.reshape(-1, run.size)
        rows = [np.bincount(run, row, per_run.regret.size) for row in flat]
        return np.stack(rows).reshape(*values.shape[:-1], -1)

    jumps = summed(weights * (per_run.regret[run].astype(np.float64) - branches.regret))  # [n, runs]
    sizes = [leaf.size // per_run.regret.size for leaf in per_run.gradient]
    parts = np.split(jumps, np.cumsum(sizes)[:-1])
    gradient = [leaf + part.reshape(leaf.shape) for leaf, part in zip(per_run.gradient, parts, strict=True)]
    own = None
    if per_run.features is not None:
        # The weight is known in the round of the action, and later increments of the control variates have mean 0.
        apart = per_run.features[..., run].astype(np.float64) - branches.features
        own = [np.concatenate([per_run.features, summed(weight * apart)], 1) for weight in weights]
    return dataclasses.replace(per_run, gradient=gradient, own=own)


def _first_pass(work: Work, which: tuple[int, ...], record: np.ndarray, coins: bool) -> Tangents:
    chance = jnp.asarray(exact_chance(BRANCHES / work.rounds), float_dtype())
    hook, slots = JumpTangent(coins, jnp.asarray(work.rounds, float_dtype()), chance), SLOTS
    player = dataclasses.replace(work.player, hook=hook)
    while True:
        measure = (*work.game.measure, Branches(as_weighted(work.game.learner), chance, slots, coins))

        def play(block: Block) -> Tangents:
            found = jax.tree.map(np.asarray, _tangents(block.player, block.game, block.put(record), which=which))
            block.played(work.rounds)
            return dataclasses.replace(found, per_run=dataclasses.replace(found.per_run, rounds=None))

        game = dataclasses.replace(work.game, measure=measure)
        blocks = play_blocks(play, player, game, size=work.size, progress=work.progress)
        found = join(blocks, work.game.runs.size)
        if found.count.max() <= slots:
            return found
        slots = 2 * int(found.count.max())


def _branches(work: Work, run: np.ndarray, rounds: np.ndarray, record: np.ndarray) -> PerRun:
    """Regrets and control variates of these runs without the feedback of these rounds, on the last axis."""
    game = dataclasses.replace(work.game, runs=np.asarray(work.game.runs)[run])
    filled = np.append(rounds, np.zeros(-run.size % work.size, rounds.dtype))

    def play(block: Block) -> PerRun:
        without = Without(jnp.asarray(filled[block.first : block.first + work.size]))
        player = dataclasses.replace(block.player, hook=block.put(without))
        found = regrets(player, block.game, block.put(record))
        block.played(work.rounds)
        return dataclasses.replace(jax.tree.map(np.asarray, found), rounds=None)

    player = dataclasses.replace(work.player, hook=Without(jnp.zeros(work.size, jnp.int32)))
    return join(play_blocks(play, player, game, size=work.size, progress=work.progress), run.size)
