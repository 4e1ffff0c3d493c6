"""What simulate and rollout do with arguments at the edge: recorded rounds, run ids, transformations, interruption, progress."""

import os
import signal
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._checks import warn
from jaxbandit._engine import devices, simulation
from jaxbandit._io.progress import Progress
from jaxbandit.gradients import estimators

KEY = jax.random.key(0)
GAME = (jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(2))
TABLE = (jb.TsallisINF(), jb.losses.Table(np.tile([[0.2, 0.6]], (10, 1))), jb.delays.Fixed(2))


def simulate(**options):
    return jb.simulate(*GAME, **{"rounds": 100, "runs": 3, "key": KEY, **options})


def rollout(game=GAME, **options):
    return jb.rollout(*game, **{"rounds": 100, "key": KEY, **options})


@pytest.mark.parametrize("play", [simulate, pytest.param(rollout, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (np.array([50, 60], np.uint32), [50, 60, 100]),
        (np.array([7], np.uint8), [7, 100]),
        ([3.0, 50.0], [3, 50, 100]),
        (np.int64(1), [100]),
        (1, [100]),
    ],
)
def test_recorded_rounds(play, record, expected):
    assert np.asarray(play(record=record).rounds).tolist() == expected


@pytest.mark.parametrize("play", [simulate, rollout])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"record": np.array([60, 50], np.uint32)}, r"record=\[60, 50\].*ascending"),
        ({"record": np.array([2**63, 5], np.uint64)}, "ascending"),
        ({"record": [0, 5]}, "between 1 and rounds=100"),
        ({"record": [-3, 5]}, "between 1 and rounds=100"),
        ({"record": [5, 1000]}, "between 1 and rounds=100"),
        ({"record": [5, float("nan")]}, "whole numbers"),
        ({"record": [True]}, r"record=\[True\]: give how many"),
        ({"record": True}, "record=True: give how many"),
        ({"record": 0}, "record=0: record 1 to 1,000,000 rounds"),
        ({"record": np.int64(-5)}, "record=-5: record 1 to 1,000,000 rounds"),
        ({"record": 2.5}, "record=2.5: give how many"),
        ({"rounds": 100.0}, "rounds=100.0: the number of rounds is a whole number"),
        ({"rounds": jnp.float32(100)}, "rounds=100.0: the number of rounds is a whole number"),
        ({"rounds": jnp.array([5, 6])}, r"rounds=\[5, 6\]"),
        ({"rounds": 0}, "rounds=0"),
        ({"first_run": 2**32 - 1, "runs": 2}, r"run ids must stay below 2\*\*32"),
    ],
)
def test_wrong_arguments(play, options, message):
    with pytest.raises(ValueError, match=message):
        play(**options)


def test_traced_rounds_never_play_past_the_end():
    """Known rounds and records are compared; where one of them is traced, nothing is played past the rounds."""
    with pytest.raises(ValueError, match="between 1 and rounds=10"):
        rollout(TABLE, rounds=jnp.int32(10), record=[1000])
    expected = rollout(TABLE, rounds=10, record=[4, 10])
    for record in ([4, 1000], jnp.array([4, 1000])):
        found = jax.jit(lambda rounds, record=record: rollout(TABLE, rounds=rounds, record=record))(10)
        assert found.rounds.tolist() == [4, 10]
        np.testing.assert_allclose(found.regret, expected.regret, rtol=1e-5)
    for record, message in [([5, 4], "ascending"), ([-1, 4], "ascending"), (5, r"record=5: where rounds is traced")]:
        with pytest.raises(ValueError, match=message):
            jax.jit(lambda rounds, record=record: rollout(TABLE, rounds=rounds, record=record))(10)


@pytest.mark.parametrize("first_run", [2**31, 2**32 - 2])
def test_run_ids_up_to_the_last(first_run):
    result = simulate(first_run=first_run, runs=2)
    one = rollout(first_run=first_run + 1, record=result.rounds)
    np.testing.assert_allclose(one.regret, result.regret[:, 1], rtol=1e-5)
    assert result.run_ids.tolist() == [first_run, first_run + 1]


def test_inside_a_transformation():
    def regret(scale):
        return jb.simulate(jb.TsallisINF(scale=scale), *GAME[1:], rounds=10, runs=2, key=KEY).regret[-1].mean()

    def with_key(key):
        return simulate(key=key).regret

    for wrong in (
        lambda: jax.jit(regret)(1.0),
        lambda: jax.grad(regret)(1.0),
        lambda: jax.vmap(regret)(jnp.ones(2)),
        lambda: jax.vmap(with_key)(jax.random.split(KEY, 2)),
        lambda: jax.jit(lambda: simulate().regret)(),
    ):
        with pytest.raises(TypeError, match=r"simulate cannot be called inside jit, vmap or grad.*use jb.rollout"):
            wrong()
    with pytest.raises(TypeError, match=r"regret_gradient cannot be called inside"):
        jax.jit(lambda scale: jb.regret_gradient(jb.TsallisINF(scale=scale), *GAME[1:], rounds=5, runs=2, key=KEY).value)(1.0)


def test_numbers_of_jax_and_numpy_are_numbers():
    expected = simulate(rounds=20)
    same = jb.simulate(*GAME, rounds=jnp.int32(20), runs=np.int64(3), first_run=np.uint8(0), key=KEY)
    np.testing.assert_array_equal(same.regret, expected.regret)


@pytest.mark.thorough
def test_the_bar_moves_often_and_ends_where_it_should(monkeypatch):
    """Twice a second would be enough; here by segments of 20 rounds."""
    monkeypatch.setattr(simulation, "SEGMENT", 20 * 512 * 2)
    monkeypatch.setattr(simulation, "TICK", 0)
    bar = Progress(False, 0, "")
    moves = []
    monkeypatch.setattr(bar, "update", moves.append)
    simulate(runs=600, progress=bar)
    assert sum(moves) == 600 * 100
    assert len(moves) == 2 * 5
    assert {*moves} == {20 * 512, 20 * 88}
    moves.clear()
    jb.regret_gradient(*GAME, rounds=10, runs=600, key=KEY, progress=bar)
    assert moves == [512 * 10, 88 * 10] or moves == [88 * 10, 512 * 10]


def test_the_bar_shows_rounds_a_second_and_the_time_left(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Progress(True, 1000, "5 runs x 200 rounds") as bar:
        time.sleep(0.2)
        bar.update(500, "half")
    shown = capsys.readouterr().err
    assert "5 runs x 200 rounds" in shown
    assert " 50%" in shown
    assert "rounds/s" in shown
    assert "half" in shown


def test_an_interrupt_ends_soon(monkeypatch):
    """Ctrl-C while many blocks wait: those that have not begun never do, those that have end at their next segment."""
    monkeypatch.setattr(simulation, "SEGMENT", 512 * 2 * 50)
    monkeypatch.setattr(simulation, "TICK", 0)
    begun = []

    class Slow(Progress):
        def update(self, rounds, text=None):
            begun.append(threading.get_ident())
            if len(begun) == 3:
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)

    with pytest.raises(KeyboardInterrupt):
        simulate(rounds=5000, runs=512 * 20, progress=Slow(False, 0, ""))
    for thread in [one for one in threading.enumerate() if one.name.startswith("jaxbandit-block")]:
        thread.join(60)  # they end within a tenth of a second; a busy machine needs longer
        assert not thread.is_alive()
    assert len(begun) < 20  # of 100 segments for each of 20 blocks
    assert not any(devices._in_use.values())
    simulate(rounds=20)  # and all is as before


def test_warnings_name_the_line_that_called():
    warn._warned.clear()
    estimators._say_once.cache_clear()
    told = (jb.BestOfBothWorlds(1), *GAME[1:])
    with pytest.warns(UserWarning, match="its guarantee does not hold here") as caught:
        jb.simulate(*told, rounds=10_000, runs=1, key=KEY)
    warn._warned.clear()
    with pytest.warns(UserWarning, match="its guarantee does not hold here") as again:
        jb.rollout(*told, rounds=jnp.int32(10_000), key=KEY, record=[10_000])
    with pytest.warns(UserWarning, match="'paired' is used") as gradient:
        jb.regret_gradient(jb.DelayedUCB1(), *GAME[1:], rounds=5, runs=2, key=KEY)
    assert {warning.filename for warning in (*caught, *again, *gradient)} == {__file__}
