"""Rounds in the forms of accelerators, played on the CPU, against the form on arrays: the same runs up to rounding."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._core.fields import canonical, pytree_dataclass
from jaxbandit._engine import blocks, choose
from jaxbandit._engine.choose import choose_execution, fitted
from jaxbandit._engine.execution import Execution
from jaxbandit._engine.game import Game
from jaxbandit._engine.player import Player
from jaxbandit._engine.unrolled import rounds as unrolled
from jaxbandit.learners.base import Learner

D, L = jb.delays, jb.losses
MEANS = [0.3, 0.5, 0.5, 0.6]
RUNS, ROUNDS = 64, 150
GEOMETRIC = D.Geometric(6.0, bound=31)
CHANCES = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
STATES = L.IntermediateStates(CHANCES, L.Bernoulli([0.2, 0.5, 0.9]))
GAMES = {
    "bobw": (jb.BestOfBothWorlds(10), L.Bernoulli(MEANS), D.Fixed(10)),
    "no delay": (jb.BestOfBothWorlds(0), L.Bernoulli(MEANS), D.Fixed(0)),
    "reduced variance": (jb.TsallisINF("rv"), L.Bernoulli(MEANS), GEOMETRIC),
    "robust": (jb.RobustBestOfBothWorlds(), L.Bernoulli(MEANS), GEOMETRIC),
    "exponential weights": (jb.DelayedExp3(), L.Switching([MEANS, MEANS[::-1]], [1, 60]), D.Poisson(3.0, bound=15)),
    "ucb": (jb.DelayedUCB1(), L.ClippedNormal(MEANS), D.Bursts(4)),
    "thompson": (jb.DelayedThompson(), L.Beta(MEANS), GEOMETRIC),
    "table": (jb.BestOfBothWorlds(7), L.Table(np.tile(MEANS, (ROUNDS, 1))), D.Trace(np.arange(ROUNDS) % 7, bound=7)),
    "lost": (jb.TsallisINF(), L.Bernoulli(MEANS), D.PacketLoss(0.6, 3)),
    "states": (jb.StateExp3(CHANCES, 150, 6), STATES, GEOMETRIC),
    "three stages": (
        jb.ProgressiveThompson.for_stages(3),
        L.Funnel([MEANS, MEANS[::-1], MEANS], delays=[D.Fixed(1), D.Geometric(2.0)]),
        GEOMETRIC,
    ),
    "pieces": (jb.CoLo(jb.TsallisINF(), 3), L.Drifting(MEANS, MEANS[::-1], ROUNDS), D.CompositeFeedback([0.1, 0.2, 0.3, 0.4])),
    "room for few": (jb.LimitedTracking(jb.EstimatedStateExp3(3, 150, 6), 4, 3), STATES, D.Fixed(6)),
    "window": (jb.SlidingWindowUCB(window=unrolled.TABLE + 2), L.Bernoulli(MEANS), D.Fixed(10)),  # more rounds than it remembers
    "window, a delay for each play": (jb.SlidingWindowUCB(window=unrolled.TABLE + 2), L.Bernoulli(MEANS), GEOMETRIC),
    "full information": (jb.DelayedHedge(), L.Bernoulli(MEANS), GEOMETRIC),
    "known delays": (jb.DoublingSkipper(), L.Bernoulli(MEANS), D.KnownAtAction(GEOMETRIC)),
    "adaptive losses": (
        jb.DelayedExp3(),
        L.RepeatedGame(np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1], [0.6, 0.4]]), 0.3),
        D.Fixed(4),
    ),
    "delay-adapted": (jb.TsallisINF("delay-adapted"), L.Bernoulli(MEANS), GEOMETRIC),
    "one arm": (jb.BestOfBothWorlds(2), L.Bernoulli([0.4]), D.Fixed(2)),
}


def made(learner, losses, delays, runs=RUNS, measure=()):
    parts = map(canonical, (learner, losses, delays))
    return Game.set_up(*parts, jax.random.key(1), jnp.arange(runs, dtype=jnp.uint32), measure)


def played(game, evaluation="arrays", chunk=0, queue="listed", player=None):
    record = jnp.array([1, 40, ROUNDS], jnp.int32)
    player = player or Player(execution=Execution(evaluation=evaluation, chunk=chunk, queue=queue))

    def play(player, game):
        return player.advance(game, player.start(game), jnp.int32(0), record, True)

    return jax.jit(play)(player, game)


def assert_same_runs(one, other, share=0.95):
    """Where rounding decides which arm is drawn, a run goes another way: nearly all runs agree."""
    a, b = np.asarray(one[1].regret), np.asarray(other[1].regret)
    assert np.mean(np.abs(a - b) < 1e-3 * (1 + np.abs(a))) >= share
    np.testing.assert_allclose(one[1].probabilities[0], other[1].probabilities[0], atol=1e-5)
    for name in ("outstanding", "outstanding_max", "lost"):
        np.testing.assert_array_equal(vars(one[0].pending)[name], vars(other[0].pending)[name])
    np.testing.assert_array_equal(one[0].pending.total_outstanding.low, other[0].pending.total_outstanding.low)


FIRST = next(iter(GAMES))  # the others: `make test-all`


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == FIRST else pytest.mark.thorough) for name in GAMES])
def test_flat_rounds_are_the_rounds(name):
    game = made(*GAMES[name], measure=(jb.ControlVariates(),))
    arrays, vectors = played(game), played(game, "unrolled", 64)
    assert_same_runs(arrays, vectors)
    shapes = [[(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(state)] for state in (arrays[0], vectors[0])]
    assert shapes[0] == shapes[1]
    variates = [one[1].measured["control_variates"][0] for one in (arrays, vectors)]
    np.testing.assert_allclose(*variates, rtol=1e-4, atol=1e-4)


@pytest.mark.thorough
def test_trajectories_are_the_same():
    game = made(jb.DelayedUCB1(), L.Bernoulli(MEANS), GEOMETRIC, measure=(jb.measure.Trajectory(),))
    arrays, vectors = (one[1].measured for one in (played(game), played(game, "unrolled", 64)))
    assert len(arrays) == 5
    for name, array in arrays.items():
        assert array.shape == vectors[name].shape
        assert np.mean(np.asarray(array) == np.asarray(vectors[name])) > 0.95, name


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["slots", "dense"])
@pytest.mark.parametrize("evaluation", ["arrays", "unrolled"])
@pytest.mark.parametrize("learner", [jb.BestOfBothWorlds(31), jb.TsallisINF("rv")], ids=["one arm's row", "every row"])
def test_slots_deliver_what_lists_do(learner, evaluation, kind):
    game = made(learner, L.Bernoulli(MEANS), GEOMETRIC)
    listed = played(game)
    assert int(listed[0].pending.lost.sum()) > 0  # the law loses some plays, and they must be lost here too
    summed = played(game, evaluation, 64, kind)
    assert_same_runs(listed, summed)


@pytest.mark.thorough
def test_slots_written_in_turn():
    """The form for CPUs; chosen where it pays, by arms and rows alone."""
    game = made(jb.BestOfBothWorlds(31), L.Bernoulli(MEANS), GEOMETRIC)
    execution = choose_execution(game, "cpu")
    assert execution.queue == "slots in turn"
    listed = played(game)
    assert int(listed[0].pending.lost.sum()) > 0
    player, game = fitted(game, execution)
    assert_same_runs(listed, played(game, player=player))


@pytest.mark.parametrize(
    ("learner", "arms", "delays", "waiting"),
    [
        (jb.BestOfBothWorlds(127), 20, D.Geometric(9.0, bound=127), "slots in turn"),
        (jb.BestOfBothWorlds(127), 21, D.Geometric(9.0, bound=127), "listed"),  # too many arms
        (jb.BestOfBothWorlds(4095), 10, D.Geometric(9.0, bound=4095), "listed"),  # too many rows
        (jb.BestOfBothWorlds(4095), 4, D.Geometric(9.0, bound=4095), "slots in turn"),  # however many rows
        (jb.BestOfBothWorlds(127), 10, D.Geometric(9.0, bound=127, shared=True), "listed"),  # one list for all runs is cheaper
        (jb.TsallisINF("rv"), 10, D.Geometric(9.0, bound=127), "listed"),  # a play brings something to every arm
        (jb.DelayedUCB1(), 10, D.Geometric(9.0, bound=127), "listed"),  # does more than add
        (jb.BestOfBothWorlds(9), 10, D.Fixed(9), "listed"),
    ],
)
def test_where_a_cpu_uses_slots(learner, arms, delays, waiting):
    assert choose_execution(made(learner, L.Bernoulli(np.full(arms, 0.5)), delays), "cpu").queue == waiting


def test_an_accelerator_evaluates_slots_flat():
    """Rejects a rule for CPUs within the round, which the evaluator does not know: it would fall back to arrays."""
    game = made(jb.BestOfBothWorlds(31), L.Bernoulli(MEANS), GEOMETRIC)
    chosen = [choose_execution(game, platform) for platform in ("gpu", "tpu")]
    assert [(one.evaluation, one.queue, one.note) for one in chosen] == [("unrolled", "slots", ""), ("unrolled", "dense", "")]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["slots", "dense"])
def test_slots_with_signals(kind):
    game = made(*GAMES["states"])
    assert_same_runs(played(game), played(game, "arrays", 64, kind))


@pytest.mark.thorough
def test_slots_with_shared_delays():
    game = made(jb.BestOfBothWorlds(31), L.Bernoulli(MEANS), D.Geometric(6.0, bound=31, shared=True))
    assert_same_runs(played(game), played(game, "unrolled", 64, "slots"))


@pytest.mark.thorough
def test_chunks_change_no_bit():
    game = made(*GAMES["bobw"])
    whole, chunks = played(game), played(game, chunk=64)
    np.testing.assert_array_equal(whole[1].regret, chunks[1].regret)


@pytree_dataclass
class Sorts(Learner):
    """A learner with a step that the flat evaluator does not know."""

    def init(self, num_arms, runs_shape):
        return jnp.zeros((num_arms, *runs_shape))

    def act(self, state, round):
        weights = jnp.exp(-jax.lax.top_k(jnp.moveaxis(state, 0, -1), 1)[0][..., 0]) + jnp.ones_like(state)
        return weights / weights.sum(0), (), state

    def observe(self, state, observation):
        return state + observation.loss_estimate(state.shape[0])


def test_what_is_not_known_is_played_on_arrays_with_a_note(monkeypatch):
    monkeypatch.setattr(blocks, "platform", lambda: "gpu")
    monkeypatch.setattr(choose, "ACCELERATOR_BLOCKS", ((32, 8),))
    result = jb.simulate(Sorts(), L.Bernoulli([0.3, 0.5]), D.Fixed(2), rounds=5, runs=3, key=jax.random.key(0))
    assert result.program["evaluation"] == "arrays"
    assert "top_k" in result.program["note"]
    assert result.regret.shape[1] == 3


@pytest.mark.parametrize("delays", [D.Fixed(10), GEOMETRIC], ids=["fixed", "for each play"])
def test_a_window_stays_in_memory(delays):
    """A vector of runs for every play of a window of 1,000 would be a program of thousands of vectors, compiled for many minutes."""
    game = made(jb.SlidingWindowUCB(window=1000), L.Bernoulli(MEANS), delays)
    execution = choose_execution(game, "gpu")
    assert (execution.evaluation, execution.note) == ("unrolled", "")
    player = Player()
    rounds = unrolled.UnrolledRounds(player, game, (), player.start(game), False)
    carried = jax.eval_shape(rounds.enter, player.start(game), jnp.int32(0))
    assert len(jax.tree.leaves(carried)) < 60


@pytest.mark.thorough
def test_simulate_in_the_form_of_a_gpu(monkeypatch, tmp_path):
    arguments = dict(rounds=130, runs=40, key=jax.random.key(3), record=[10, 130], probabilities=True)
    here = jb.simulate(*GAMES["reduced variance"], **arguments)
    assert here.program["platform"] == "cpu"
    assert here.program["block"] == 256
    monkeypatch.setattr(blocks, "platform", lambda: "gpu")
    monkeypatch.setattr(choose, "ACCELERATOR_BLOCKS", ((32, 64),))
    there = jb.simulate(*GAMES["reduced variance"], **arguments)
    assert (there.program["evaluation"], there.program["queue"], there.program["block"]) == ("unrolled", "slots", 64)
    assert np.mean(np.abs(here.regret - there.regret) < 1e-3 * (1 + here.regret)) > 0.95
    np.testing.assert_array_equal(here.total_delay, there.total_delay)
    there.save(tmp_path / "there.npz")
    assert jb.Result.load(tmp_path / "there.npz").program == there.program
    further = jb.simulate(*GAMES["reduced variance"], **(arguments | {"rounds": 140, "record": [140]}), resume=there)
    whole = jb.simulate(*GAMES["reduced variance"], **(arguments | {"rounds": 140, "record": [10, 130, 140]}))
    np.testing.assert_array_equal(further.regret[-1], whole.regret[-1])
    monkeypatch.undo()
    with pytest.raises(ValueError, match="resume: this Result was made on gpu"):
        jb.simulate(*GAMES["reduced variance"], **(arguments | {"rounds": 140, "record": [140]}), resume=there)


def test_blocks_do_not_depend_on_the_number_of_runs_unless_memory_is_short():
    """Rejects a block as large as the runs allow: the bits of a run would change with their number."""
    game = made(jb.BestOfBothWorlds(1023), L.Bernoulli(MEANS), D.Geometric(9.0, bound=1023))
    few, many = (dataclasses.replace(game, runs=np.arange(runs, dtype=np.uint32)) for runs in (3, 10**6))
    assert [choose_execution(one, "gpu", 80 << 30).block for one in (few, many)] == [16384, 16384]
    assert [choose_execution(game, "gpu", memory).block for memory in (1 << 29, 1 << 28, 1)] == [8192, 1024, 1024]
    assert [choose_execution(game, "gpu", 80 << 30, block=block).block for block in (65536, 8192, 8)] == [65536, 8192, 8]
    assert [choose.block_size(arms, "gpu") for arms in (1, 2, 3, 10, 11, 32, 33, 100_000)] == [32768] * 2 + [16384] * 2 + [
        65536
    ] * 2 + [16384] * 2
    assert choose_execution(game, "cpu").block == 256
    assert choose_execution(game, "tpu").queue == "dense"
    many = made(jb.BestOfBothWorlds(1), L.Bernoulli(np.full(40, 0.5)), D.Fixed(1))
    assert choose_execution(many, "gpu").evaluation == "arrays"


def test_up_to_32_arms_are_unrolled_if_a_round_is_short(monkeypatch):
    """By shape alone, because the bits of a run depend on it. Rejects programs that take minutes to compile."""
    game = made(jb.DelayedExp3(), L.Bernoulli(np.full(17, 0.5)), D.Fixed(3))
    short = choose_execution(game, "gpu")
    assert (short.evaluation, short.note) == ("unrolled", "")
    monkeypatch.setattr(unrolled, "MOST_NUMBERS", 1000)
    long = choose_execution(game, "gpu")
    assert long.evaluation == "arrays"
    assert long.note.endswith("numbers in a round: rounds are evaluated on arrays above 1,000")
    program = jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, 5, lambda _, y: y * 2, x.sum() + x))(jnp.ones(7))
    assert 1 + 7 + 7 < unrolled.count_numbers(program) < 40  # the sum, the addition, a turn, and the counter of the loop
