"""Confidence sequences against enumeration and against capitals written as loops."""

import itertools
import math

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._engine.until import regret_limits
from jaxbandit.results import sequential
from jaxbandit.results.sequential import SHARES, WEIGHTS, confidence_interval, log_capital, looks, p_value
from jaxbandit.results.stopping import Until


def capitals(values, mean):
    """K⁺ and K⁻ after each value, as the formulas of the module say them, one value and one share at a time."""
    up, down, found = list(WEIGHTS), list(WEIGHTS), []
    for value in values:
        for place, share in enumerate(SHARES):
            up[place] *= 1 + share * (value - mean) / mean
            down[place] *= 1 - share * (value - mean) / (1 - mean)
        found.append((math.fsum(up), math.fsum(down)))
    return np.array(found)


def test_capitals_are_martingales():
    """Rejects weights that do not add up to 1, and shares with which the capital becomes negative."""
    points, chances = (0.0, 0.1, 1.0), (0.3, 0.5, 0.2)
    mean = sum(p * x for p, x in zip(chances, points))
    expected = np.zeros((6, 2))
    for outcome in itertools.product(range(3), repeat=6):
        weight = math.prod(chances[i] for i in outcome)
        values = np.array([points[i] for i in outcome])
        both = capitals(values, mean)
        assert both.min() >= 0
        np.testing.assert_allclose(log_capital(values, mean), max(0.0, np.log(both[:, 0]).max()), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(log_capital(1 - values, 1 - mean), max(0.0, np.log(both[:, 1]).max()), rtol=1e-9, atol=1e-12)
        expected += weight * both
    np.testing.assert_allclose(expected, 1, rtol=1e-12)


def test_chunks_do_not_matter(monkeypatch):
    values = np.random.default_rng(3).beta(2, 5, size=700)
    whole = log_capital(values, 0.2)
    monkeypatch.setattr(sequential, "CHUNK", 64)
    assert log_capital(values, 0.2) == pytest.approx(whole, rel=1e-12)
    assert log_capital(values, 0.2, enough=3.0) >= 3.0
    assert log_capital(np.zeros(4), 0.0) == 0
    assert log_capital(np.array([0.0, 1e-9]), 0.0) == np.inf


@pytest.mark.parametrize("limits", [(0.0, 1.0), (-3.0, 5.0)])
def test_the_interval_is_what_is_not_rejected(limits):
    low, high = limits
    values = np.random.default_rng(0).beta(2, 5, size=80)
    found = confidence_interval(low + (high - low) * values, limits, 0.1)
    ends = (np.array(found) - low) / (high - low)
    for mean in np.linspace(0.01, 0.99, 197):
        rejected = capitals(values, mean).max() >= 2 / 0.1
        if np.abs(ends - mean).min() > 1e-6:
            assert rejected == (not ends[0] < mean < ends[1])
        p = p_value(low + (high - low) * values, limits, low + (high - low) * mean)
        assert p == pytest.approx(min(1, 2 / max(1, capitals(values, mean).max())), rel=1e-9)


def test_intervals_shrink_and_p_values_fall():
    values = np.random.default_rng(1).normal(3.0, 5.0, size=3000).clip(-40, 40)
    ends = np.array([confidence_interval(values[:n], (-40, 40)) for n in (10, 100, 1000, 3000)])
    assert np.all(np.diff(ends[:, 0]) >= 0)
    assert np.all(np.diff(ends[:, 1]) <= 0)
    assert np.all(np.diff([p_value(values[:n], (-40, 40)) for n in (10, 100, 1000, 3000)]) <= 0)
    assert p_value(values, (-40, 40)) < 1e-6


@pytest.mark.parametrize("skewed", [False, True])
def test_the_level_is_held_at_every_number_of_runs(skewed):
    """Rejects Student's intervals at each look, which miss the mean of the skewed values more often than not."""
    chance, missed, naive = np.random.default_rng(2), 0, 0
    for _ in range(400):
        if skewed:  # a run in a thousand is a disaster
            values = np.where(chance.random(1024) < 0.001, 1000.0, 0.0) + chance.normal(50, 5, 1024)
            mean = 51.0
        else:
            values, mean = chance.normal(50, 5, 1024), 50.0
        low, high = confidence_interval(values, (0.0, 1200.0))
        missed += not low <= mean <= high
        some = values[:256]
        naive += abs(some.mean() - mean) > 1.97 * some.std(ddof=1) / 16
    assert missed <= 0.05 * 400
    assert (naive > 0.5 * 400) == skewed


def test_values_out_of_the_limits_are_refused():
    with pytest.raises(ValueError, match=r"regret of a run from 0\.5 to 2: it must lie between 0 and 1"):
        confidence_interval(np.array([0.5, 2.0]), (0.0, 1.0))
    assert confidence_interval(np.zeros(9), (0.0, 0.0)) == (0.0, 0.0)
    assert p_value(np.zeros(9), (0.0, 0.0)) == 1


@pytest.mark.parametrize(("most", "after"), [(1, 0), (256, 0), (257, 0), (10_000, 0), (10_000, 700), (512, 512)])
def test_looks_end_with_the_last_run(most, after):
    found = list(looks(most, 256, after))
    assert found == sorted(set(found))
    assert all(after < one <= most for one in found)
    assert found[-1:] == ([most] if most > after else [])


def test_limits_of_the_regret_hold_for_all_ways_to_play():
    means = np.array([[0.2, 0.9, 0.4], [0.7, 0.1, 0.4], [0.0, 0.3, 0.6], [0.5, 0.5, 0.2]])
    best = means.sum(0).min()
    all_ways = [sum(means[t, arm] for t, arm in enumerate(arms)) - best for arms in itertools.product(range(3), repeat=4)]
    assert min(all_ways) < 0
    np.testing.assert_allclose(regret_limits(jb.losses.Table(means), 4), (min(all_ways), max(all_ways)), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(regret_limits(jb.losses.Bernoulli([0.2, 0.5, 0.9]), 100), (0, 70), rtol=1e-6)


@pytest.mark.parametrize("until", [0, -1, True, "2", "x%", "-1%", "decided", None, [1], float("inf")])
def test_wrong_until(until):
    with pytest.raises(ValueError, match="until="):
        Until.read(until, decided=False)


GAME = (jb.TsallisINF(), jb.losses.Bernoulli([0.2, 0.8, 0.8]), jb.delays.Fixed(5))


def test_simulate_until_is_resumed_as_one_go(tmp_path):
    """Rejects a stop that depends on where the simulation was interrupted, and runs that are not those of a fixed number."""
    options = {"rounds": 100, "seed": 3, "record": 3, "measure": [jb.measure.Trajectory(runs=[0, 300], rounds=2)]}
    whole = jb.simulate(*GAME, runs=5000, until="4%", **options)
    assert whole.stopping.reached
    assert 256 < whole.runs < 5000
    half = (whole.stopping.high - whole.stopping.low) / 2
    assert half <= 0.04 * whole.regret[-1].mean(dtype=np.float64)
    assert whole.trajectory.runs.tolist() == [0, 300]
    fixed = jb.simulate(*GAME, runs=whole.runs, **options)
    np.testing.assert_array_equal(whole.regret, fixed.regret)
    with pytest.warns(UserWarning, match="until=4%: not reached with runs=301"):
        part = jb.simulate(*GAME, runs=301, until="4%", **options)
    assert not part.stopping.reached
    part.save(tmp_path / "part.npz")
    rest = jb.simulate(*GAME, runs=5000, until="4%", resume=jb.Result.load(tmp_path / "part.npz"), **options)
    np.testing.assert_array_equal(rest.regret, whole.regret)
    assert rest.stopping == whole.stopping
    again = jb.simulate(*GAME, runs=5000, until="4%", resume=rest, **options)
    assert again.runs == rest.runs
    assert whole.take_runs(0, 9).stopping is None


def test_until_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="has numbers that differ between runs"):
        jb.simulate(jb.DelayedUCB1(np.full(9, 2.0)), *GAME[1:], rounds=9, runs=9, seed=0, until=1)
    done = jb.simulate(*GAME, rounds=9, runs=9, seed=0)
    with pytest.raises(ValueError, match="with until, a Result is resumed with more runs of the same rounds"):
        jb.simulate(*GAME, rounds=18, runs=9, seed=0, until=1, resume=done)
    with pytest.raises(ValueError, match="until='decided': give half the width"):
        jb.simulate(*GAME, rounds=9, runs=9, seed=0, until="decided")
