"""The scripts of the pages beyond the paper, where they compute something of their own."""

import importlib.util

import jax
import numpy as np
import pytest

import jaxbandit as jb
from experiments.claims.harness.runner import choose
from jaxbandit import theory


def script(name):
    (statement,) = choose([name])
    spec = importlib.util.spec_from_file_location(f"claim_{name}", statement.folder / "claim.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def mixed_bits(one, two, three):
    """The hash of the searched adversary, in Python's whole numbers."""
    bits = (one * 0x9E3779B1 + two * 0x85EBCA77 + three * 0xC2B2AE3D) % 2**32
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        bits = (bits ^ (bits >> shift)) * factor % 2**32
    return bits ^ (bits >> 16)


def test_buckets_of_all_rounds_are_the_papers():
    rising = script("rising_delays")
    rng = np.random.default_rng(0)
    for _ in range(50):
        delays = theory.optimal_skipping.truncated(rng.integers(0, rng.integers(1, 9), 40))
        sizes = rising.bucket_sizes(delays, np.ones(40, bool))
        assert np.array_equal(np.cumsum(sizes)[:-1] + 1, theory.bounds.buckets(delays)[1:])
        assert rising.repaired(delays, 4) >= theory.bounds.delayed_lower(delays, 4).total - 1e-12


def test_buckets_of_long_delays_end_with_the_first_feedback_of_one():
    """Delays 0 and 4 in turn: rounds 2 and 4 and 6 (their feedback after 6, 8, 10), then 8, 10, 12, …"""
    assert script("rising_delays").bucket_sizes(np.array([0, 4] * 6), np.array([False, True] * 6)).tolist() == [3, 3]


def test_the_searched_tables_are_what_they_say():
    """Against a plain program, for all rounds and arms; a value for each run is that run's table."""
    searched = script("searched_adversary")
    tables = searched.fresh(np.random.default_rng(1), 6, delay=3, rounds=30)
    tables[0] = [4, 1, 0, 0.1, 1, 0, 0, 5]  # arms in turn, and a gap from the start
    tables[1] = [3, 0.5, 1, 0.2, 11, 0.3, 0.4, 7]  # random blocks, reversed before round 11, all losses rise there
    together = jax.jit(searched.law(tables, 2, 3).expected)
    for t in (1, 4, 5, 10, 11, 30):
        seen = np.asarray(together(t))
        for place, table in enumerate(tables):
            block, amplitude, chance, gap, begin, back, rise, pattern = np.float32(table).astype(float)
            at, late, pattern = int((t - 1) // np.float32(block)), t >= begin, int(pattern)
            random = np.float32(mixed_bits(at, 977, pattern)) / np.float32(2**32) < np.float32(chance)
            for arm in range(3):
                up = mixed_bits(at, arm, pattern) % 2 if random else (at + arm) % 2
                mean = 0.5 * (1 - rise) + rise * late + amplitude * (up - 0.5) + (arm > 0) * (gap if late else -back)
                assert seen[arm, 2 * place : 2 * place + 2] == pytest.approx([np.clip(mean, 0, 1)] * 2, abs=1e-6)


def test_the_game_of_all_learners():
    """Arms in turn, arm 1 first; then arm 0 is better until uniform play has lost the stake; then nothing is at stake."""
    best = script("best_of_all")
    (statement,) = choose(["best_of_all"])
    settings = type("Settings", (), statement.settings(quick=False))
    losses, end = best.game(settings, [0, 1])
    means = np.array([np.asarray(losses.expected(t)) for t in (1, 12, 13, 30_000, 30_001, end, end + 1)])
    assert means == pytest.approx(np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0.7, 1], [0.7, 1], [0.7, 0.7]]), abs=1e-6)
    assert (end - 30_000) * 0.3 / 2 == pytest.approx(350, abs=0.1)


def two_arms(rates, table, delay, runs, rng):
    """Mean regrets of FTRL with 1/η = a, 1/γ = b of each round, two arms and 0-1 losses, in plain NumPy: Newton in the log-odds."""
    rounds = len(table)
    difference, odds, suffered = np.zeros(runs), np.zeros(runs), np.zeros(runs)
    waiting = []
    for t, (a, b) in enumerate(rates):
        for _ in range(4):  # a(x₂^-½ - x₁^-½) + b·odds + L₁ - L₂ = 0
            x = 1 / (1 + np.exp(-odds))
            y = 1 - x
            odds -= (a * (y**-0.5 - x**-0.5) + b * odds + difference) / (a / 2 * (x**-1.5 + y**-1.5) * x * y + b)
        x = 1 / (1 + np.exp(-odds))
        first = rng.random(runs) < x
        loss = (rng.random(runs) < np.where(first, *table[t])).astype(float)
        waiting.append(np.where(first, loss / x, -loss / (1 - x)))
        suffered += x * table[t][0] + (1 - x) * table[t][1]
        if t >= delay:
            difference = difference + waiting[t - delay]
    assert rounds == len(waiting)
    return suffered - table.sum(0).min()


@pytest.mark.slow
def test_the_game_of_all_learners_in_plain_numpy():
    """The three that matter, within five standard errors of both; a rate off by √2 or a delay off by one is seen."""
    best = script("best_of_all")
    (statement,) = choose(["best_of_all"])
    settings = type("Settings", (), statement.settings(quick=False))
    losses, end = best.game(settings, [0, 1])
    starts, means = np.asarray(losses.starts), np.asarray(losses.means)
    table = means[np.searchsorted(starts, np.arange(1, end + 1), side="right") - 1]
    t, log, delay = np.arange(1, end + 1), np.log(2), settings.delay
    waited = np.cumsum(np.minimum(t - 1, delay))  # Σσ_s
    rates = {
        "MZS22": (
            np.sqrt(t + 10 * delay + (delay / (2 ** (1 / 3) * log)) ** 2),
            np.sqrt((waited + 24**2 * delay**2 * 2 ** (2 / 3) * log) / log),
        ),
        "ZS20": (np.sqrt(t), np.sqrt(2 * waited / log)),
        "Delayed Exp3": (np.zeros(end), np.sqrt((2 * t / 2 + waited) / log)),
    }
    found = {}
    for name, (a, b) in rates.items():
        plain = two_arms(list(zip(a, b)), table, delay, 1024, np.random.default_rng(3))
        ours = jb.simulate(
            best.learners(settings)[name], losses, jb.delays.Fixed(delay), rounds=end, runs=1024, seed=4, record=[end]
        )
        ours = ours.regret[-1]
        error = np.hypot(plain.std() / 32, ours.std() / 32)
        print(name, plain.mean(), ours.mean(), error)
        assert abs(plain.mean() - ours.mean()) < 5 * error
        assert error < 0.01 * ours.mean()
        found[name] = plain.mean()
    assert found["MZS22"] < min(found["ZS20"], found["Delayed Exp3"])
