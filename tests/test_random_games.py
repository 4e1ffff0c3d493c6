"""Random games against an independent event queue in NumPy: equal probabilities in every round, regret and delays.

``make test`` plays the few games that cover every loss and delay model, ``make test-slow`` more than 1,000.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.extend import pytree_dataclass
from tests.reference import learners as reference
from tests.reference import random_games, streams
from tests.reference.random_environments import DELAYS, LOSSES
from tests.reference.random_games import Difference, Game, check, play_run, random_game, simulate, structures
from tests.reference.random_learners import LEARNERS

D, L = jb.delays, jb.losses
GAMES = 10  # of each structure

# Learner, losses, delays and the seed of the structure, which decides on the parts of nested models.
FEW = [
    ("delayed-exp3", "bernoulli", "arm-dependent, nested", 39),
    ("delayed-exp3", "corrupted", "geometric", 1),  # of Beta losses, one sequence of delays for all runs
    ("colo", "table", "pieces", 14),
    ("bobw", "stochastically-constrained", "fixed", 4),
    ("ucb1", "switching", "trace", 5),
    ("tsallis-inf", "delay-matched-switching", "fixed", 6),
    ("tsallis-inf", "zero-inflated", "empirical-by-arm", 7),
    ("estimated-state-exp3", "intermediate-states", "outlier", 9),  # of normal losses, clipped
]


def models(model: Any) -> set[type]:
    """The classes of a model and of all its parts."""
    parts = [part for field in vars(model).values() for part in (field if isinstance(field, tuple) else [field])]
    return {type(model)}.union(*(models(part) for part in parts if isinstance(part, D.Delays | L.Losses)))


@pytest.mark.filterwarnings("ignore:.*guarantee")
@pytest.mark.parametrize(
    "structure",
    [*FEW[:3], *(pytest.param(one, marks=pytest.mark.thorough) for one in FEW[3:])],
    ids=[", ".join(one[:3]) for one in FEW],
)
def test_few_games(structure):
    for number in range(3):
        check(random_game(*structure, number))


def test_few_games_have_every_model():
    games = [sound_game()] + [random_game(*structure, 0) for structure in FEW]
    met = set().union(*(models(model) for game in games for model in (game.losses, game.delays)))
    # These have references of their own, such as in tests/learners/test_known_delays.py.
    assert {*D.REGISTRY.values(), *L.REGISTRY.values()} - {D.KnownAtAction, L.RepeatedGame, L.Funnel} <= met


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*guarantee")
@pytest.mark.parametrize("structure", structures(105), ids=lambda structure: f"{structure[3]}: " + ", ".join(structure[:3]))
def test_many_games(structure):
    for number in range(GAMES):
        check(random_game(*structure, number))


def test_many_games_have_everything():
    """More than 1,000 games: every learner of the registry in three structures, every model in five."""
    # Learners that learn a delay curve, read delays or outcomes before the loss, or observe all arms have references of their own.
    own = {"censored-thompson", "censored-kl-ucb", "doubling-skipper", "delayed-hedge", "full-information"}
    own |= {"progressive-thompson"}
    assert {*LEARNERS} == {*jb.REGISTRY} - own
    chosen = structures(105)
    assert GAMES * len(chosen) >= 1000
    for place, names, least in ((0, LEARNERS, 3), (1, LOSSES, 5)):
        assert all(sum(structure[place] == name for structure in chosen) >= least for name in names)
    games = [random_game(*structure, 0) for structure in chosen]
    met = [models(game.delays) for game in games]
    for name, model in D.REGISTRY.items() - {("known-at-action", D.KnownAtAction)}:  # tests/learners/test_known_delays.py
        assert sum(model in one for one in met) >= (3 if name == "composite-feedback" else 5), name
    assert {structure[2] for structure in chosen} == {*DELAYS}


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["bobw", "zimmert-seldin", "delayed-exp3", "ucb1", "discounted-thompson", "bold"])
def test_numbers_of_each_run(learner):
    """One simulation in which each run has its own numbers is as many games."""
    games = [random_game(learner, "bernoulli", "geometric", 7, number) for number in range(random_games.RUNS)]
    games = [game._replace(seed=games[0].seed, first_run=games[0].first_run) for game in games]
    together = jax.tree.map(lambda *leaves: np.stack(leaves, -1), *(game[:3] for game in games))
    result = simulate(games[0]._replace(learner=together[0], losses=together[1], delays=together[2]))
    for column, game in enumerate(games):
        expected = play_run(game, game.first_run + column)
        np.testing.assert_allclose(result.probabilities[..., column], expected["probabilities"], rtol=1e-8, atol=1e-8)
        assert result.lost[column] == expected["lost"]


def test_random_numbers_are_those_of_jax():
    """Threefry in NumPy against ``jax.random.fold_in``, for seeds of up to 32 bits."""
    for seed, purpose, t, run in ((0, 0, 1, 0), (7, 3, 60, 1000), (2**32 - 1, 2, 2**20, 2**31)):
        key = jax.random.key(np.uint32(seed))
        expected = functools.reduce(jax.random.fold_in, (np.uint32(number) for number in (purpose, t, run)), key)
        got = streams.numbers(streams.key(seed), purpose, t, run)
        np.testing.assert_array_equal(got, jax.random.key_data(expected))


# --------------------------------------------------------------------------------------------------------- negative controls


@pytree_dataclass
class OneRoundLate(D.Delays):
    """Feedback that arrives one round late."""

    law: D.Delays

    @property
    def bound(self) -> int:
        return self.law.bound + 1

    def draw(self, t, arm, loss, noise):
        delay = self.law.draw(t, arm, loss, noise)
        return jnp.where(delay == D.NEVER, delay, delay + 1)


@pytree_dataclass
class NothingIsLost(OneRoundLate):
    """Missing feedback that arrives at once."""

    def draw(self, t, arm, loss, noise):
        delay = self.law.draw(t, arm, loss, noise)
        return jnp.where(delay == D.NEVER, 0, delay)


@pytree_dataclass
class OfTheNextArm(OneRoundLate):
    """The delay of another arm than the one that was played."""

    def draw(self, t, arm, loss, noise):
        return self.law.draw(t, (arm + 1) % 3, loss, noise)


@pytree_dataclass
class LossOfTheNextArm(L.Losses):
    """The loss of another arm than the one that was played."""

    law: L.Losses
    num_arms = 3

    def expected(self, t):
        return self.law.expected(t)

    def sample(self, t, arm, noise):
        return self.law.sample(t, (arm + 1) % 3, noise)


@pytree_dataclass
class WrongRound(jb.learners.Learner):
    """A learner whose :math:`\\sigma_t` counts the action of round t itself."""

    base: jb.learners.Learner

    def init(self, num_arms, runs_shape):
        return self.base.init(num_arms, runs_shape)

    def act(self, state, round):
        return self.base.act(state, self.changed(round))

    def changed(self, round):
        return round._replace(outstanding=round.outstanding + 1, total_outstanding=round.total_outstanding + round.time)

    def observe(self, state, observation):
        return self.base.observe(state, observation)


@pytree_dataclass
class ConstantProbability(WrongRound):
    """Loss estimates that divide by 1/K in place of the probability of the action."""

    def changed(self, round):
        return round

    def observe(self, state, observation):
        return self.base.observe(state, observation._replace(probability=jnp.full_like(observation.probability, 1 / 3)))


FAULTS: dict[str, dict[str, type]] = {
    "feedback one round late": {"delays": OneRoundLate},
    "missing feedback delivered": {"delays": NothingIsLost},
    "delay of another arm": {"delays": OfTheNextArm},
    "loss of another arm": {"losses": LossOfTheNextArm},
    "outstanding observations count the current action": {"learner": WrongRound},
    "another probability in the loss estimates": {"learner": ConstantProbability},
}


@functools.cache
def sound_game() -> Game:
    """Three arms with delays of their own, some of them infinite."""
    delays = D.ArmDependent([D.PacketLoss(0.6, 2), D.UniformRandom(0, 8), D.Geometric(3.0, bound=16)])
    return Game(
        jb.DelayedExp3(),
        L.Drifting([0.2, 0.5, 0.8], [0.6, 0.3, 0.9], 100.0),
        delays,
        lambda draws: reference.DelayedExp3(3),
        1,
        0,
    )


THOROUGH = {"loss of another arm", "another probability in the loss estimates"}


@pytest.mark.parametrize("fault", [pytest.param(name, marks=[pytest.mark.thorough] * (name in THOROUGH)) for name in FAULTS])
def test_wrong_programs_are_rejected(fault):
    game = sound_game()
    wrong = game._replace(**{name: wrap(getattr(game, name)) for name, wrap in FAULTS[fault].items()})
    with pytest.raises(Difference):
        check(game, simulate(wrong))


def test_the_sound_program_is_accepted():
    check(sound_game())
