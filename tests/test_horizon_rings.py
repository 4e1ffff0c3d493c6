"""Queues that end at the horizon: less memory, the same games, and runs that are resumed past it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._core.fields import number, pytree_dataclass, static
from jaxbandit._engine import blocks, choose
from jaxbandit._engine.game import Game
from tests.event_queue import Log, Probe, Staircase, check_log, plays

KEY = jax.random.key(3)
LOSSES = jb.losses.Bernoulli([0.3, 0.5, 0.5])
BOUND = 4095  # of 4096 rows, which are more than a queue has that is never cut


@pytree_dataclass
class Slow(jb.delays.Delays):
    """A user's own: losses of arm 0 come late, some of arm 1 never."""

    bound: int = static(default=BOUND)

    def draw(self, t, arm, loss, noise):
        late = jnp.where(arm == 0, 60 + t % 7, 2 * t)
        return jnp.where((arm == 1) & (noise < 0.1), jb.delays.NEVER, late).astype(jnp.int32)


GAMES = {
    "aged": (jb.BestOfBothWorlds(5), jb.delays.Fixed(75, bound=BOUND)),
    "aged, lost": (jb.TsallisINF(), jb.delays.PacketLoss(0.7, 75, bound=BOUND)),
    "slots": (jb.BestOfBothWorlds(15, factor=0.5), jb.delays.Geometric(60.0, bound=BOUND)),
    "slots, heavy tail": (jb.DelayedExp3(), jb.delays.Pareto(0.5, bound=BOUND)),
    "listed": (jb.TsallisINF("rv"), jb.delays.Geometric(60.0, bound=BOUND)),
    "shared": (jb.BestOfBothWorlds(16), jb.delays.UniformRandom(0, 150, bound=BOUND, shared=True)),
    "own": (jb.DelayedUCB1(), Slow()),
}
IN_SHORT = ("aged", "slots")


def simulate(name, rounds, **options):
    learner, delays = GAMES[name]
    return jb.simulate(learner, LOSSES, delays, rounds=rounds, runs=20, key=KEY, record=[rounds], **options)


@pytest.fixture(params=[pytest.param(name, marks=() if name in IN_SHORT else pytest.mark.thorough) for name in GAMES])
def name(request):
    return request.param


def same(one, other):
    assert one.program == other.program
    for field in ("regret", "outstanding_max", "total_delay", "lost"):
        np.testing.assert_array_equal(getattr(one, field)[-1:], getattr(other, field)[-1:])
    for mine, theirs in zip(one.state, other.state, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_queue_that_ends_at_the_horizon_plays_the_same_game(name, monkeypatch):
    """Rejects a queue that drops what arrives at the horizon, or calls late observations lost."""
    short = simulate(name, 100)
    assert short.program["ring"] == 256
    assert short.program["later"] == "kept"
    monkeypatch.setattr(choose, "horizon_rows", lambda *_: 0)
    whole = simulate(name, 100)
    assert whole.program["ring"] == 4096
    for field in ("regret", "outstanding_max", "total_delay", "lost"):
        np.testing.assert_array_equal(getattr(short, field), getattr(whole, field))


def test_runs_are_resumed_past_the_horizon_of_their_queue(name, tmp_path):
    """From 64 rows to 256, through a file, and on to all 4096: the bits of one go, state included."""
    first = simulate(name, 50)
    first.save(tmp_path / "first.npz")
    second = simulate(name, 130, resume=jb.Result.load(tmp_path / "first.npz"))
    assert (first.program["ring"], second.program["ring"]) == (64, 256)
    same(second, simulate(name, 130))
    last = simulate(name, 2100, resume=second)
    assert (last.program["ring"], last.program["later"]) == (4096, "")
    same(last, simulate(name, 2100))


@pytest.mark.thorough
def test_results_with_queues_for_every_delay_are_resumed(name, monkeypatch):
    """As earlier versions wrote them."""
    monkeypatch.setattr(choose, "horizon_rows", lambda *_: 0)
    first, whole = simulate(name, 50), simulate(name, 130)
    monkeypatch.undo()
    rest = simulate(name, 130, resume=first)
    np.testing.assert_array_equal(rest.regret[-1], whole.regret[-1])


def test_joined_rounds_are_resumed_with_the_queue_of_the_last():
    first = simulate("slots", 50)
    second = simulate("slots", 130, resume=first)
    joined = jb.Result.concat_rounds([first, second])
    np.testing.assert_array_equal(simulate("slots", 140, resume=joined).regret, simulate("slots", 140, resume=second).regret)


def test_every_play_is_delivered_in_time():
    """Against a plain event queue, with delays far past the horizon."""
    law, key = jb.delays.UniformRandom(0, 3000, bound=BOUND), jax.random.key(1)
    made, rounds = plays(law, key, 5), 60
    part = jb.simulate(Probe(), Staircase(), law, rounds=rounds, runs=5, key=key, record=1)
    assert part.program["later"] == "kept"
    check_log(Log(*part.state[: len(Log._fields)]), made, rounds, False)
    assert (part.lost == 0).all()


@pytest.mark.parametrize("delay", [10**6, 10**9])
def test_a_delay_past_the_horizon_takes_little_memory_and_one_program(delay):
    result = jb.simulate(jb.Uniform(), LOSSES, jb.delays.Fixed(delay), rounds=100, runs=3, key=KEY, record=1)
    assert sum(leaf.nbytes for leaf in result.state) < 100_000
    assert (result.lost == 0).all()
    assert (result.outstanding_max == 99).all()


def test_rollouts_end_their_queues_at_a_static_horizon():
    def regret(runs, rounds=60):
        return jb.rollout(*GAMES["slots"][:1], LOSSES, GAMES["slots"][1], rounds=rounds, key=KEY, runs=runs, record=[60]).regret

    np.testing.assert_allclose(regret(20), simulate("slots", 60).regret, rtol=1e-5)
    run_ids = jnp.arange(20)
    mapped = jax.vmap(
        lambda run: (
            jb.rollout(GAMES["slots"][0], LOSSES, GAMES["slots"][1], rounds=60, key=KEY, first_run=run, record=[60]).regret
        )
    )(run_ids)
    np.testing.assert_array_equal(mapped[:, 0], simulate("slots", 60).regret[0])


@pytest.mark.thorough
def test_values_for_each_run_are_resumed_past_the_horizon():
    """A user's class with one value per run is mapped, run by run."""

    @pytree_dataclass
    class Own(Slow):
        first: jax.Array = number(default=60.0)

        def draw(self, t, arm, loss, noise):
            late = super().draw(t, arm, loss, noise)
            return jnp.where(late == jb.delays.NEVER, late, late + jnp.asarray(self.first, jnp.int32))

    def simulate(rounds, **options):
        law = Own(first=np.arange(4.0))
        return jb.simulate(jb.TsallisINF(), LOSSES, law, rounds=rounds, runs=4, key=KEY, record=[rounds], **options)

    first = simulate(50)
    assert (first.program["evaluation"], first.program["later"]) == ("mapped", "kept")
    same(simulate(130, resume=first), simulate(130))


@pytest.mark.thorough
def test_accelerators_keep_the_same_log():
    """Slots, unrolled: grown from 64 rows, the queue is that of 256 rows from the start."""
    learner, delays = GAMES["slots"]
    game = Game.set_up(learner, LOSSES, delays, KEY, jnp.arange(8, dtype=jnp.uint32))

    def play(rows):
        execution = dataclasses.replace(choose.choose_execution(game, "gpu", rounds=50), ring=rows, block=8)
        assert (execution.evaluation, execution.queue, execution.later) == ("unrolled", "slots", "kept")
        player, fitted = choose.fitted(game, execution)
        record = jnp.array([50], jnp.int32)
        return player, blocks.advance.plain(
            player, game, blocks.start(player, fitted), jnp.int32(0), record, probabilities=False
        )[0]

    _, short = play(64)
    player, long = play(256)
    grown = blocks.grow(player, game, short, jnp.int32(50))
    for mine, theirs in zip(jax.tree.leaves(grown), jax.tree.leaves(long), strict=True):
        np.testing.assert_array_equal(mine, theirs)
