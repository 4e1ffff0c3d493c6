"""Changing a number never compiles again: one program for each shape."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._engine import blocks
from jaxbandit._engine.player import Player

KEY = jax.random.key(0)
VALUES = np.linspace(0.1, 0.9, 20)


@pytest.fixture
def traces(monkeypatch):
    """How often the block was traced since the test began."""
    counter = []
    original = Player.advance

    def counted(self, *args):
        counter.append(1)
        return original(self, *args)

    monkeypatch.setattr(Player, "advance", counted)
    blocks.advance.clear_cache()
    return counter


def play(learner=None, losses=None, delays=None, rounds=30, seed=0):
    learner = jb.BestOfBothWorlds(4) if learner is None else learner
    losses = jb.losses.Bernoulli([0.2, 0.8]) if losses is None else losses
    delays = jb.delays.Fixed(4) if delays is None else delays
    return jb.simulate(learner, losses, delays, rounds=rounds, runs=3, key=jax.random.key(seed), record=5)


def test_hyperparameters(traces):
    for field in ("max_delay", "linear", "factor", "tsallis_scale", "entropy_scale"):
        for value in VALUES:
            play(jb.BestOfBothWorlds(**{"max_delay": 4, field: value}))
    for value in range(20):  # a Python int is the same program as a float
        play(jb.BestOfBothWorlds(max_delay=value))
    play(jb.BestOfBothWorlds(max_delay=np.float64(3), factor=np.int32(2)))
    assert len(traces) == 1


def test_means_seeds_and_rounds(traces):
    for value in VALUES:
        play(losses=jb.losses.Bernoulli([value, 0.5]))
    play(losses=jb.losses.Bernoulli((0, 1)))
    play(losses=jb.losses.Bernoulli(np.array([0.1, 0.2])))
    for rounds in range(1, 60, 3):
        play(rounds=rounds)
    for seed in range(20):
        play(seed=seed)
    assert len(traces) == 1


@pytest.mark.parametrize(
    "law",
    [
        lambda i: jb.delays.Fixed(i, bound=32),
        *(
            pytest.param(law, marks=pytest.mark.thorough)
            for law in (
                lambda i: jb.delays.Geometric(i / 3, bound=32),
                lambda i: jb.delays.UniformRandom(i // 2, i, bound=32),
                lambda i: jb.delays.Poisson(i / 3, bound=32),
                lambda i: jb.delays.Pareto(0.5 + i, bound=32),
                lambda i: jb.delays.PacketLoss(i / 20, bound=32),
                lambda i: jb.delays.Bursts(1 + i, bound=32),
                lambda i: jb.delays.Outlier(first=50 + i, delay=i, bound=32),
                lambda i: jb.delays.Trace(np.arange(100) % (i + 1), bound=32, long_waits=0),
            )
        ),
    ],
)
def test_delay_parameters_under_one_bound(traces, law):
    for i in range(20):
        play(delays=law(i))
    assert len(traces) <= 2  # as one function and, where XLA cannot compile that, once more


def test_neighbouring_delays_share_their_default_bound(traces):
    for delay in range(33):
        play(delays=jb.delays.Fixed(delay))
    assert len(traces) == 1


@pytest.mark.thorough
def test_a_new_shape_is_a_new_program(traces):
    play()
    play(losses=jb.losses.Bernoulli([0.2, 0.5, 0.8]))
    play(jb.TsallisINF())
    play(delays=jb.delays.Fixed(100))
    assert len(traces) == 4
