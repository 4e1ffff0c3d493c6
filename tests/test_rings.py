"""Rings of few sizes: games that differ in a fixed delay share a program, and nothing else changes."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._engine import blocks, choose
from jaxbandit._engine.player import Player

LOSSES = jb.losses.Bernoulli([0.3, 0.5, 0.5])
KEY = jax.random.key(3)


@pytest.fixture
def traces(monkeypatch):
    """The rings of the blocks that were traced since the test began."""
    rings, original = [], Player.advance

    def counted(self, game, *args):
        rings.append(choose.ring_size(game.delays.bound))
        return original(self, game, *args)

    monkeypatch.setattr(Player, "advance", counted)
    blocks.advance.clear_cache()
    return rings


@pytest.mark.thorough
@pytest.mark.parametrize(("delays", "programs"), [(range(1, 51), 2), (np.linspace(1, 1000, 50).astype(int), 3)])
def test_a_sweep_over_fifty_delays_compiles_few_programs(traces, tmp_path, delays, programs):
    laws = [jb.delays.Fixed(int(delay)) for delay in delays]
    spec = jb.Spec(rounds=20, runs=4, record=[20], learners=[jb.Uniform()], losses=[LOSSES], delays=laws)
    assert jb.sweep(spec, tmp_path / "out").failed == {}
    assert len(traces) == len(set(traces)) == programs
    found = jb.open_sweep(tmp_path / "out").total_delay.values[0, 0, :, 0]
    np.testing.assert_array_equal(found, [sum(min(delay, 20 - s) for s in range(1, 21)) for delay in delays])


def run(delays, rounds=90, **options):
    return jb.simulate(jb.BestOfBothWorlds(5), LOSSES, delays, rounds=rounds, runs=300, key=KEY, record=[40, 90], **options)


@pytest.mark.parametrize(
    "delays",
    [
        jb.delays.Fixed(5),
        jb.delays.Fixed(0),
        jb.delays.Fixed(9, bound=70),
        jb.delays.PacketLoss(0.7, 6),
    ],
)
@pytest.mark.thorough
def test_rows_that_are_not_used_change_nothing(monkeypatch, delays, tmp_path):
    """The same bits with a ring of its own size, and the same state: an old Result goes on here, and the other way."""
    padded = run(delays)
    half = jb.simulate(jb.BestOfBothWorlds(5), LOSSES, delays, rounds=40, runs=300, key=KEY, record=1)
    monkeypatch.setattr(choose, "RINGS", ())
    own = run(delays)
    assert padded.program["ring"] > own.program["ring"] == choose.ring_size(delays.bound)
    np.testing.assert_array_equal(padded.regret, own.regret)
    for mine, theirs in zip(padded.state, own.state, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    rest = jb.simulate(jb.BestOfBothWorlds(5), LOSSES, delays, rounds=90, runs=300, key=KEY, record=[90], resume=half)
    np.testing.assert_array_equal(rest.regret[-1], own.regret[-1])
    monkeypatch.setattr(choose, "RINGS", (64, 512))
    rest = jb.simulate(jb.BestOfBothWorlds(5), LOSSES, delays, rounds=90, runs=300, key=KEY, record=[90], resume=half)
    np.testing.assert_array_equal(rest.regret[-1], own.regret[-1])


@pytest.mark.parametrize(
    ("bound", "num_arms", "rows"),
    [
        (0, 2, 64),
        (32, 10, 64),
        (64, 10, 256),
        (2047, 128, 2048),
        (2047, 129, 2048),
        (256, 129, 512),
        (300, 5000, 512),
        (5000, 2, 8192),
    ],
)
def test_large_rings_have_no_row_more_than_they_need(bound, num_arms, rows):
    assert choose.ring_rows(jb.delays.Fixed(0, bound=bound), num_arms) == rows


def test_a_law_that_draws_by_its_bound_keeps_its_ring():
    assert choose.ring_rows(jb.delays.Geometric(1.0, bound=7), 2) == 8
