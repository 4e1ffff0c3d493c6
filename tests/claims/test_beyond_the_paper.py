"""The scripts of the pages beyond the paper, where they compute something of their own."""

import importlib.util

import numpy as np
import pytest

from jaxbandit import theory
from jaxbandit.claims.runner import choose


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
        delays = theory.truncated(rng.integers(0, rng.integers(1, 9), 40))
        sizes = rising.bucket_sizes(delays, np.ones(40, bool))
        assert np.array_equal(np.cumsum(sizes)[:-1] + 1, theory.buckets(delays)[1:])
        assert rising.repaired(delays, 4) >= theory.delayed_lower(delays, 4).total - 1e-12


def test_buckets_of_long_delays_end_with_the_first_feedback_of_one():
    """Delays 0 and 4 in turn: rounds 2 and 4 and 6 (their feedback after 6, 8, 10), then 8, 10, 12, …"""
    assert script("rising_delays").bucket_sizes(np.array([0, 4] * 6), np.array([False, True] * 6)).tolist() == [3, 3]


def test_the_searched_tables_are_what_they_say():
    """Against a plain program, for all rounds and arms; a value for each run is that run's table."""
    searched = script("searched_adversary")
    tables = searched.fresh(np.random.default_rng(1), 6, delay=3, rounds=30)
    tables[0] = [4, 1, 0, 0.1, 1, 0, 0, 5]  # arms in turn, and a gap from the start
    tables[1] = [3, 0.5, 1, 0.2, 11, 0.3, 0.4, 7]  # random blocks, reversed before round 11, all losses rise there
    together = searched.law(tables, 2, 3)
    for t in (1, 4, 5, 10, 11, 30):
        seen = np.asarray(together.expected(t))
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
