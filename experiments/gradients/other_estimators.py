"""Three estimators of the literature without a bias, for the table of unbiased.py: ``gradient(..., estimator)``.

Each adds two parts. The part of the path is the derivative of a run with its arms held, the weight 1/x of an estimate included.
The part of the drawn arm, Σ_i dx_i E[regret | arm i is played in this round], summed over the rounds, comes from branches: the
same run with the same words, in which the play of one round is that of another arm. The three differ in the branches they draw.

- ``"measure-valued"`` (Pflug 1989, Heidergott & Vázquez-Abad 2008): dx = c(ν⁺ - ν⁻) with two laws ν± of the arm. In rounds
  drawn at random: c/chance times the regret with an arm of ν⁺ less that with an arm of ν⁻.
- ``"smoothed"``, smoothed perturbation analysis (Gong & Ho 1987, Fu & Hu 1997): an arm is a cell of the cumulative sum of x, in
  which the random number of the round falls. Where an end of its cell moves towards it, the play changes to the arm beyond, at
  the rate |move|/x. In rounds drawn at random: rate/chance times the regret after the change less that of the run.
- ``"stochastic AD"`` (Arya, Schauer, Schäfer & Rackauckas 2022): the same changes at the same rates in all rounds, of which a
  run keeps one, with probability in proportion to its rate, and gives it the sum of all rates as weight.

For learners that do nothing with feedback but add ℓ/x (no floor, no baseline, nothing in ``played``), losses ``Bernoulli`` and
delays that depend neither on arms nor on losses. The first pass keeps two or K numbers of every round, and branches are drawn
from them afterwards: simple, and enough for 500 rounds.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit._checks.inputs import given_key
from jaxbandit._checks.records import log_spaced
from jaxbandit._core import randomness
from jaxbandit._core.arms import one_hot, pick, sums
from jaxbandit._core.fields import canonical, float_dtype, pytree_dataclass, static
from jaxbandit._core.ring import write_row
from jaxbandit._engine.blocks import Block, execution_for, join, play_blocks
from jaxbandit._engine.player import Hook, Player
from jaxbandit._engine.programs import Program
from jaxbandit._engine.set_up import checked_game
from jaxbandit._io.progress import Progress
from jaxbandit.gradients.branches import exact_chance
from jaxbandit.gradients.programs import PerRun, Work, directional, regrets
from jaxbandit.measure import ControlVariates
from jaxbandit.results.statistics import increments, intercepts

BRANCHES = 8  # rounds of a run that are drawn, on average, by the first two
RECORDED = 24  # log-spaced rounds at which the control variates are read, as in jb.regret_gradient


@pytree_dataclass
class Moves:
    """A measurement, read from its last state: how the law of the arm moves in every round, as derivatives of terms that are 0.

    ``by_arm``: dx ``[K]``. Else ``[2]``: the rates, where positive, of a change to the next arm and to the one before.
    """

    rounds: int = static()
    by_arm: bool = static()

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> dict[str, jax.Array]:
        numbers = num_arms if self.by_arm else 2
        return {
            "arms": jnp.zeros((self.rounds, *runs_shape), jnp.int32),
            "moves": jnp.zeros((self.rounds, numbers, *runs_shape), float_dtype()),
        }

    def update(self, state: dict[str, jax.Array], info: Any) -> dict[str, jax.Array]:
        x, arm = info.probabilities, info.arm
        moves, arms = x - lax.stop_gradient(x), jnp.arange(x.shape[0]).reshape(-1, *[1] * arm.ndim)
        if not self.by_arm:
            start, played = sums(jnp.where(arms < arm, moves, 0), jnp.where(arms == arm, moves, 0))
            end = jnp.where(arm == x.shape[0] - 1, 0, start + played)  # the last cell ends at 1
            moves = jnp.stack([-end, start]) / lax.stop_gradient(pick(x, arm))
        row = info.t - 1
        return {"arms": write_row(state["arms"], arm, row), "moves": write_row(state["moves"], moves, row)}

    def read(self, state: dict[str, jax.Array]) -> dict[str, jax.Array]:
        return {}


@pytree_dataclass
class Replaced(Hook):
    """Feedback of a branch: in one round of each run the play is that of another arm, with another loss."""

    round: jax.Array  # [...] of that play
    arm: jax.Array  # [...]
    loss: jax.Array  # [...]

    def of_play(self, game, state, round, probabilities, memo, arm, loss) -> "Estimate":
        here = round.t == self.round
        arm, loss = jnp.where(here, self.arm, arm), jnp.where(here, self.loss, loss)
        return Estimate(arm, loss / pick(probabilities, arm), probabilities.shape[0])


@pytree_dataclass
class Estimate:
    """What waits with a play of a branch: what it will add to the estimates."""

    arm: jax.Array  # [...]
    value: jax.Array  # [...] ℓ/x
    num_arms: int = static()

    def estimate(self, observation, weighted, floor, baseline) -> jax.Array:
        assert floor is None
        return jnp.where(observation.arrived & one_hot(self.arm, self.num_arms), self.value, 0)


@pytree_dataclass
class FirstPass:
    """What the first pass brings back of each run, on the last axis."""

    regret: Any  # [runs]
    slope: Any  # [runs] its derivative with the arms held
    features: Any  # [C, K, runs] control variates
    moves: Any  # [T, K or 2, runs]
    arms: Any  # [T, runs]
    noise: Any  # [T, runs] the numbers that losses are drawn with


@Program
def first_pass(player: Any, game: Any, record: jax.Array, *, place: int, rounds: int) -> FirstPass:
    """Path derivatives in one number; ``game.measure`` is control variates and ``Moves``."""

    def played(game):
        state, records = player.advance(game, player.start(game), jnp.int32(0), record)
        regret, kept = game.regret(state), state.measured[-1]
        return (regret, kept["moves"]), (regret, records.measured["control_variates"], kept["arms"])

    def noise(t):
        return randomness.uniform(game.words(randomness.PLAY, t).second, game.grain)

    (slope, moves), (regret, features, arms) = directional(played, game, (place,))
    return FirstPass(regret, slope[0], features, moves[0], arms, lax.map(noise, jnp.arange(1, rounds + 1)))


class Pairs(NamedTuple):
    """Regrets to compare, each ``[pairs]``: ``weight`` times that with arm ``plus`` in one round less that with ``minus``."""

    run: np.ndarray
    row: np.ndarray  # the round less one
    plus: np.ndarray
    minus: np.ndarray
    weight: np.ndarray

    def where(self, mask: np.ndarray | slice) -> "Pairs":
        return Pairs(*(column[mask] for column in self))


def measure_valued(found: FirstPass, random: np.random.Generator) -> Pairs:
    row, run, chance = drawn(found.arms.shape, random)
    moves = found.moves[row, :, run].T  # [K, pairs]
    up, down = np.maximum(moves, 0), np.maximum(-moves, 0)
    return Pairs(run, row, in_proportion(up, random), in_proportion(down, random), up.sum(0) / chance)


def smoothed(found: FirstPass, random: np.random.Generator) -> Pairs:
    row, run, chance = drawn(found.arms.shape, random)
    rates = np.maximum(found.moves[row, :, run], 0).T  # [2, pairs]
    arm, change = found.arms[row, run], np.array([[1], [-1]])
    # Both ends of a cell may move towards the number of the round: two pairs for each place.
    run, row, minus = (np.tile(column, 2) for column in (run, row, arm))
    return Pairs(run, row, (arm + change).reshape(-1), minus, rates.reshape(-1) / chance)


def stochastic_ad(found: FirstPass, random: np.random.Generator) -> Pairs:
    uniform = random.random(found.arms.shape, np.float32)
    row, change, total = (np.asarray(column) for column in pruned(found.moves, uniform))
    run = np.arange(row.size)
    arm = found.arms[row, run]
    return Pairs(run, row, arm + change, arm, total.astype(np.float64))


@jax.jit
def pruned(moves: jax.Array, uniform: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The change that each run keeps, its row and direction, and the sum of all rates; each ``[runs]``.

    A round takes the place of the one kept so far with probability rate/(all rates up to it), which leaves each with
    probability rate/(all rates).
    """

    def one_round(carry, given):
        kept, change, total = carry
        row, moves, uniform = given
        forward, back = jnp.maximum(moves, 0)
        total = total + forward + back
        point = uniform * total
        kept = jnp.where(point < forward + back, row, kept)
        change = jnp.where(point < forward, 1, jnp.where(point < forward + back, -1, change))
        return (kept, change, total), None

    nothing = jnp.zeros(uniform.shape[1], jnp.int32)
    rows = jnp.arange(len(uniform), dtype=jnp.int32)
    return lax.scan(one_round, (nothing, nothing, jnp.zeros(uniform.shape[1], moves.dtype)), (rows, moves, uniform))[0]


PAIRS = {"measure-valued": measure_valued, "smoothed": smoothed, "stochastic AD": stochastic_ad}


def drawn(shape: tuple[int, int], random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Places in an array ``[T, runs]``, each with the same chance, and that chance."""
    chance = exact_chance(BRANCHES / shape[0])
    row, run = np.nonzero(random.random(shape, np.float32) < chance)
    return row, run, chance


def in_proportion(weights: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A row of ``weights [n, m]`` for each column, drawn in proportion to them; any where all are 0."""
    below = np.cumsum(weights, 0, dtype=np.float64)
    return np.minimum((below <= random.random(below.shape[1]) * below[-1]).sum(0), len(below) - 1)


def gradient(
    learner: Any, losses: Any, delays: Any, *, rounds: int, runs: int, seed: int, number: str, estimator: str
) -> tuple[float, float]:
    """The derivative of the expected regret in a ``number`` of the learner, and its standard error; with control variates."""
    measure = (ControlVariates(),)
    key = given_key(None, seed)
    game, _ = checked_game(learner, losses, delays, rounds=rounds, key=key, runs=runs, first_run=0, measure=measure)
    execution = execution_for(game, differentiable=True)  # rounds on arrays, as the other estimators play them
    work = Work(game, Player(execution=execution), execution.block, rounds, Progress(False, 0, ""))
    record = log_spaced(rounds, RECORDED).astype(np.int32)
    place = [path[-1].name for path, _ in jax.tree_util.tree_flatten_with_path(canonical(learner))[0]].index(number)

    def play(block: Block) -> FirstPass:
        return jax.tree.map(
            np.asarray, first_pass(block.put(work.player), block.game, block.put(record), place=place, rounds=rounds)
        )

    measured = dataclasses.replace(game, measure=(*measure, Moves(rounds, estimator == "measure-valued")))
    found = join(play_blocks(play, work.player, measured, size=work.size), runs)
    pairs = PAIRS[estimator](found, np.random.default_rng(seed))
    slope, features = differences(work, found, pairs, record)
    # Each pair parts after a weight that is known, and later terms of the control variates of both sides have mean 0.
    own = increments(np.concatenate([found.features, features], 1), record)
    mean, error = intercepts((found.slope.astype(np.float64) + slope)[None], own)
    return float(mean[0]), float(error[0])


def differences(work: Work, found: FirstPass, pairs: Pairs, record: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted differences of regret ``[runs]`` and of control variates ``[C, K, runs]``, summed over the pairs of each run."""
    means = np.asarray(work.game.losses.expected(jnp.int32(1)))  # the same in all rounds

    def brings(pairs: Pairs, arm: np.ndarray) -> np.ndarray:
        """The arm whose estimate a play of ``arm`` raises; -1 where the loss is 0, which raises none."""
        return np.where(found.noise[pairs.row, pairs.run] < means[arm], arm, -1)

    pairs = pairs.where(pairs.weight != 0)
    pairs = pairs.where(brings(pairs, pairs.plus) != brings(pairs, pairs.minus))  # others need no branches, they differ by 0
    played = brings(pairs, found.arms[pairs.row, pairs.run])
    sides = []
    for arm in (pairs.plus, pairs.minus):
        raised = brings(pairs, arm)
        regret, features = found.regret[pairs.run].astype(np.float64), found.features[..., pairs.run].astype(np.float64)
        other = raised != played  # else this side is the run itself
        if other.any():
            branches = replay(work, pairs.run[other], pairs.row[other] + 1, arm[other], raised[other] >= 0, record)
            regret[other], features[..., other] = branches.regret, branches.features
        sides.append((regret, features))
    (regret, features), (less, features_less) = sides

    def summed(values: np.ndarray) -> np.ndarray:
        """Sums over the pairs of each run: ``[..., runs]`` of ``[..., pairs]``."""
        total = np.empty((*values.shape[:-1], found.regret.size))
        for place in np.ndindex(values.shape[:-1]):
            total[place] = np.bincount(pairs.run, pairs.weight * values[place], found.regret.size)
        return total

    return summed(regret - less), summed(features - features_less)


def replay(work: Work, run: np.ndarray, rounds: np.ndarray, arm: np.ndarray, loss: np.ndarray, record: np.ndarray) -> PerRun:
    """Regrets and control variates of the runs in these places, with another arm and loss in these rounds; on the last axis."""
    game = dataclasses.replace(work.game, runs=np.asarray(work.game.runs)[run])
    columns = [np.append(column, np.zeros(-run.size % work.size, column.dtype)) for column in (rounds, arm, loss)]

    def play(block: Block) -> PerRun:
        round, arm, loss = (column[block.first : block.first + work.size] for column in columns)
        feedback = Replaced(jnp.asarray(round, jnp.int32), jnp.asarray(arm, jnp.int32), jnp.asarray(loss, float_dtype()))
        player = dataclasses.replace(work.player, hook=feedback)
        found = regrets(block.put(player), block.game, block.put(record))
        return dataclasses.replace(jax.tree.map(np.asarray, found), rounds=None)

    return join(play_blocks(play, work.player, game, size=work.size), run.size)
