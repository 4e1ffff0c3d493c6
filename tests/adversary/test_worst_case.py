"""Searched worst cases: against brute force and closed forms, with learners of one's own, bit by bit."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._io.progress import Progress
from jaxbandit.adversary import family, moves
from jaxbandit.adversary.arena import MEASURING, Arena
from jaxbandit.adversary.tables import Tables
from jaxbandit.extend import ImportanceWeighted, Learner, float_dtype, number, pytree_dataclass

DELAYS = jb.delays.Fixed(2)


@pytree_dataclass
class LoseShift(Learner):
    """A deterministic learner for two arms: a large observed loss of the arm that it plays makes it change."""

    threshold: object = number(default=0.5)

    def init(self, num_arms, runs_shape):
        return jnp.zeros(runs_shape, jnp.int32)

    def act(self, state, round):
        return jnp.stack([state == 0, state == 1]).astype(float_dtype()), (), state

    def observe(self, state, observation):
        change = observation.arrived & (observation.arm == state) & (observation.loss > self.threshold)
        return jnp.where(change, 1 - state, state)


ROUNDS, SHORT = 5, jb.delays.Fixed(1)
JUST_ABOVE = np.nextafter(np.float32(0.5), np.float32(1))


@pytest.fixture(scope="module")
def optimum():
    """The largest regret of LoseShift under a delay of one round, and its table, by enumeration.

    Given which losses are above 1/2, the regret is convex in the losses, so that each is at an end of its range: 0 or 1/2, or just above
    1/2 or 1. Losses 0 and 1 alone are not enough.
    """
    codes = np.array(list(itertools.product(range(4), repeat=2 * ROUNDS)), np.int8).reshape(-1, ROUNDS, 2)
    losses = np.array([0, 0.5, JUST_ABOVE, 1], np.float32)[codes]
    every = np.arange(len(losses))
    arm, suffered, before = np.zeros(len(losses), int), np.zeros(len(losses)), None
    for t in range(ROUNDS):
        now = (arm, losses[every, t, arm])
        suffered += now[1]
        if before is not None:  # the loss of the round before arrives
            arm = np.where((before[0] == arm) & (before[1] > 0.5), 1 - arm, arm)
        before = now
    regrets = suffered - losses.sum(1, dtype=float).min(1)
    return float(regrets.max()), losses[regrets.argmax()]


@pytest.mark.thorough
def test_finds_the_optimum_of_brute_force(optimum):
    """For a deterministic learner of one's own, whose regret jumps with the losses. Local optima have 3.0 of 3.5."""
    found = jb.worst_case(LoseShift(), SHORT, 2, ROUNDS, budget=2, runs=8)
    assert found.error == 0
    assert 0.8 * optimum[0] <= found.regret <= optimum[0] + 1e-5
    assert optimum[0] > 1.3 * ROUNDS / 2  # more than half of the rounds, as uniform play: there is something to find


@pytest.mark.thorough
def test_a_start_is_never_lost(optimum):
    found = jb.worst_case(LoseShift(), SHORT, 2, ROUNDS, budget=1, runs=8, starts=[optimum[1]])
    assert found.regret == pytest.approx(optimum[0])
    assert found.history[0].stage == "starts"


@pytest.mark.thorough
@pytest.mark.parametrize("arms", [2, 5])
def test_uniform_play(arms):
    """W = T(1 - 1/K): one arm without losses, all others with losses 1 in every round, the last one too."""
    found = jb.worst_case(jb.Uniform(), DELAYS, arms, 51, budget=2, runs=8)
    best = 51 * (1 - 1 / arms)
    assert 0.95 * best <= found.regret <= best + 1e-4


def test_result():
    found = jb.worst_case(jb.Uniform(), DELAYS, 2, 30, budget=2, runs=16, seed=3)
    regrets = [step.regret for step in found.history]
    assert regrets == sorted(regrets)
    assert [step.runs for step in found.history] == sorted(step.runs for step in found.history)
    assert found.epochs == 2
    assert found.gain == found.by_epoch[1] - found.by_epoch[0] >= 0
    assert repr(found).startswith("WorstCase(regret ")
    assert "2 epochs" in repr(found)
    assert "second half added" in found._repr_html_()
    assert np.shape(found.table.losses) == (30, 2)
    # The measurement can be repeated: its key is of no other use.
    key = jax.random.fold_in(jax.random.key(3), MEASURING)
    again = jb.simulate(jb.Uniform(), found.table, DELAYS, rounds=30, runs=16, key=key, record=1)
    assert float(again.regret[-1].astype(np.float64).mean()) == found.regret
    assert math.isnan(jb.worst_case(jb.Uniform(), DELAYS, 2, 5, budget=1, runs=2).gain)


@pytest.mark.thorough
def test_bitwise_reproducible():
    one, two, other = (jb.worst_case(jb.DelayedExp3(), DELAYS, 2, 60, budget=1, seed=seed, runs=64) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.table.losses, two.table.losses)
    assert (one.regret, one.error, one.history) == (two.regret, two.error, two.history)
    assert not np.array_equal(one.table.losses, other.table.losses)


@pytest.mark.thorough
def test_no_search_stays_below_the_lower_bound():
    """Random blocks of d + 1 rounds cost every learner E|walk|/2 = √((d + 1)T/2π); a search must find that much, and climbs must help."""
    delay, rounds = 5, 403
    found = jb.worst_case(jb.DelayedExp3(), jb.delays.Fixed(delay), 2, rounds, budget=1, runs=512)
    assert found.regret > math.sqrt((delay + 1) * rounds / (2 * math.pi))
    assert [step.stage for step in found.history] == ["evolution", "climb", "mutation"]
    bound = 3 * math.sqrt(math.log(2) * (rounds + delay * rounds))
    assert found.regret < bound


@pytest.mark.thorough
def test_evolution_alone_reaches_the_lower_bound():
    """Also against a learner on which few structures are costly: a family that seldom alternates from the first round to the last misses it."""
    delay, rounds = 10, 1000
    ours = arena(jb.TaperedFTRL(rounds, robustness=0.8, power=0.75), rounds, jb.delays.Fixed(delay))
    table = moves.evolved(ours, np.random.default_rng(0), float(delay), 8)
    assert ours.regret(table)[0] > math.sqrt((delay + 1) * rounds / (2 * math.pi))


def arena(learner, rounds, delays=DELAYS, arms=2):
    return Arena(learner, delays, arms, rounds, jax.random.key(0), Progress(False, 1, ""))


@pytest.mark.thorough
def test_a_climb_moves_every_round():
    """Also where T is no square and no multiple of the piece: a climb that stopped at isqrt(T)² would leave the last rounds alone."""
    rounds = 103
    flat = np.full((rounds, 2), 0.5, np.float32)
    after = moves.climbed(arena(jb.DelayedExp3(), rounds), flat, steps=5, piece=10)
    assert np.all(after != 0.5)
    np.testing.assert_array_equal(after[100:], after[[100] * 3])  # the last piece has three rounds
    assert np.ptp(after[90:100], 0).max() == 0


@pytest.mark.thorough
def test_a_climb_finds_more_regret():
    rounds, ours = 200, arena(jb.TsallisINF(), 200, jb.delays.Fixed(10))
    start = np.repeat((np.arange(rounds) // 11 % 2)[:, None] == [0, 1], 1, 1).astype(np.float32)
    before, after = ours.regret(start), ours.regret(moves.climbed(ours, start, 15, 5))
    assert after[0] > before[0] + 5 * math.hypot(before[1], after[1])


@pytree_dataclass
class Unreadable(ImportanceWeighted):
    """A learner of one's own whose floor is hidden in a compiled function."""

    rate: object = number(default=0.1)

    def init(self, num_arms, runs_shape):
        return jnp.zeros((num_arms, *runs_shape), float_dtype())

    def act(self, state, round):
        return jax.nn.softmax(-self.rate * (state - state.min(0)), 0), (), state

    def observe(self, state, observation):
        return state + jax.jit(lambda seen: seen.loss_estimate(state.shape[0], floor=0.01 + 0 * seen.loss))(observation)


@pytest.mark.thorough
def test_a_learner_without_a_readable_gradient_is_searched_by_edits():
    found = jb.worst_case(Unreadable(), DELAYS, 2, 20, budget=1, runs=64)
    assert found.regret > 0
    stages = [step.stage for step in found.history]
    assert stages in (["evolution", "mutation"], ["evolution", "climb", "mutation"])


@pytest.mark.thorough
def test_missing_feedback_and_delays_by_arm():
    for delays in (
        jb.delays.PacketLoss(0.7, delay=2),
        jb.delays.ArmDependent([jb.delays.Fixed(1), jb.delays.Fixed(6)]),
    ):
        found = jb.worst_case(jb.TsallisINF(), delays, 2, 40, budget=1, runs=64)
        assert found.regret > 1
        assert ("climb" in [step.stage for step in found.history]) == delays.oblivious


def test_tables_play_each_its_own():
    rng = np.random.default_rng(0)
    tables = rng.random((30, 4, 2)).astype(np.float32)
    options = {"rounds": 30, "seed": 5, "record": 1}
    together = jb.simulate(jb.DelayedExp3(), Tables(tables, np.repeat(np.arange(4), 3)), DELAYS, runs=12, **options)
    for place in range(4):
        alone = jb.simulate(jb.DelayedExp3(), jb.losses.Table(tables[:, place]), DELAYS, runs=3, first_run=3 * place, **options)
        np.testing.assert_allclose(together.regret[-1, 3 * place : 3 * place + 3], alone.regret[-1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("arms", [2, 3])
def test_family(arms):
    """Tables are within [0, 1], also after breeding; genes do what their names say."""
    rng = np.random.default_rng(1)
    genomes = family.drawn(rng, 200, 20.0, 100, arms)
    for _ in range(3):
        tables = family.rendered(genomes, 100, arms)
        assert tables.shape == (100, 200, arms)
        assert np.all((tables >= 0) & (tables <= 1))
        genomes = family.bred(rng, genomes, 200, 100, arms)
    plain = dict.fromkeys(family.genes(100, arms), 0.0)
    plain |= {"block": 10, "growth": 1, "amplitude": 1, "duty": 1, "cycle": 2, "onset": 20, "offset": 60}
    plain |= {"level 0": 0.5, "level 1": 0.5, "level 2": 0.5, "gap 4": 0.0, "gap 5": 0.8}

    def table(**changes):
        return family.rendered(np.array([[*(plain | changes).values()]]), 100, arms)[:, 0]

    switching = table()
    np.testing.assert_array_equal(switching[:20], 0.5)
    np.testing.assert_array_equal(switching[20:60, 0], np.arange(40) // 10 % 2)
    np.testing.assert_array_equal(switching[20:60, 1], 1 - np.arange(40) // 10 % 2)
    np.testing.assert_allclose(switching[60:, 0], 0.5 - 0.4 * np.arange(40) / 40, atol=1e-6)  # a ramp
    np.testing.assert_array_equal(table(phase=0.5)[20:60, 0], 1 - switching[20:60, 0])
    assert np.mean(table(duty=0.3)[20:60, 0] == 0.5) == pytest.approx(0.7, abs=0.11)  # bursts
    changes = np.flatnonzero(np.diff(table(growth=2.0, offset=100)[20:, 0])) + 1
    np.testing.assert_array_equal(changes, [10, 30, 70])  # blocks of 10, 20 and 40 rounds
    assert len(np.unique(table(random=1.0, pattern=7.0, offset=100)[20:, 0])) == 2


WRONG = {
    "num_arms=1: ": {"num_arms": 1},
    "num_arms=2.0: ": {"num_arms": 2.0},
    "rounds=0: ": {"rounds": 0},
    "rounds=1000000000: .*at most 33554432 rounds of 2 arms": {"rounds": 10**9},
    "budget=0: ": {"budget": 0},
    "seed=-1: ": {"seed": -1},
    "runs=1: ": {"runs": 1},
    "progress=3: ": {"progress": 3},
    r"starts=None: starts are a list": {"starts": None},
    r"starts\[0\]=RepeatedGame.* depend on the arms": {"starts": [jb.losses.RepeatedGame([[1.0, 0.0], [0.0, 1.0]])]},
    r"starts\[0\]=Bernoulli.* differ between runs": {"starts": [jb.losses.Bernoulli(np.full((2, 3), 0.5))]},
    r"starts\[0\]=.* 2 losses": {"starts": [np.zeros((10, 3))]},
    r"starts\[1\]=.*between 0 and 1": {"starts": [np.zeros((10, 2)), np.full((10, 2), 2.0)]},
    r"starts\[0\]=.*nan.*between 0 and 1": {"starts": [np.full((10, 2), np.nan)]},
    r"starts\[0\]=.*has 3 arms": {"starts": [jb.losses.Bernoulli([0.1, 0.2, 0.3])]},
    r"starts\[0\]=.*has 2 rounds": {"starts": [jb.losses.Table([[0.1, 0.2], [0.3, 0.4]])]},
    "call worst_case once for each value": {"learner": jb.TsallisINF(scale=np.ones(3))},
    "give a learner": {"learner": "mzs22"},
    "reads 3": {"learner": jb.EstimatedStateExp3(3, horizon=10, mean_delay=2)},
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_arguments(message):
    given = {"learner": jb.Uniform(), "delays": DELAYS, "num_arms": 2, "rounds": 10, "budget": 1} | WRONG[message]
    with pytest.raises((ValueError, TypeError), match=message):
        jb.worst_case(**given)
