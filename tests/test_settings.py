"""A value of its own for each run, in learner, losses and delays, against separate simulations."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import blocks

EACH, ROUNDS = 40, 200
CELLS = [(24.0, 0.2, 10.0), (2.0, 0.1, 3.0), (0.5, 0.3, 1.0), (1.0, 0.05, 6.0)]  # factor, gap, mean delay
KEY = jax.random.key(2)


def cell(factor, gap, mean):
    return jb.BestOfBothWorlds(31, factor=factor), jb.losses.Bernoulli([0.5 - gap, 0.5, 0.5]), jb.delays.Geometric(mean, bound=31)


def packed():
    factor, gap, mean = (np.repeat(values, EACH) for values in zip(*CELLS, strict=True))
    means = np.stack([0.5 - gap, np.full_like(gap, 0.5), np.full_like(gap, 0.5)])
    return jb.BestOfBothWorlds(31, factor=factor), jb.losses.Bernoulli(means), jb.delays.Geometric(mean, bound=31)


@pytest.mark.parametrize("platform", ["cpu", pytest.param("gpu", marks=pytest.mark.thorough)])
def test_four_settings_in_one_launch_are_four_launches(monkeypatch, platform):
    count = EACH * len(CELLS)
    alone = [jb.simulate(*cell(*one), rounds=ROUNDS, runs=count, key=KEY, record=[50, ROUNDS]) for one in CELLS]
    monkeypatch.setattr(blocks, "platform", lambda: platform)
    together = jb.simulate(*packed(), rounds=ROUNDS, runs=count, key=KEY, record=[50, ROUNDS])
    assert together.program["evaluation"] == "flat"
    agree = []
    for index, one in enumerate(alone):
        runs = slice(index * EACH, (index + 1) * EACH)  # the same run ids meet the same words
        mine, other = together.regret[:, runs], one.regret[:, runs]
        agree.append(np.mean(np.abs(mine - other) < 1e-3 * (1 + np.abs(other))))
        np.testing.assert_array_equal(together.total_delay[runs], one.total_delay[runs])
        np.testing.assert_array_equal(together.lost[runs], one.lost[runs])
    assert min(agree) > 0.97  # where rounding decides which arm is drawn, a run goes another way


@pytest.mark.thorough
def test_each_run_its_own_fixed_delay():
    delays = np.arange(300) % 7
    learner, losses = jb.TsallisINF(), jb.losses.Switching([[0.2, 0.6], [0.7, 0.3]], [1, 80])
    together = jb.simulate(learner, losses, jb.delays.Fixed(delays), rounds=120, runs=300, key=KEY, record=[120])
    for delay in (0, 6):
        alone = jb.simulate(learner, losses, jb.delays.Fixed(delay), rounds=120, runs=300, key=KEY, record=[120])
        mine = delays == delay
        assert np.mean(np.abs(together.regret - alone.regret)[0, mine] < 1e-3 * (1 + np.abs(alone.regret[0, mine]))) > 0.95
        np.testing.assert_array_equal(together.total_delay[mine], alone.total_delay[mine])


def test_wrong_values_are_told_in_a_sentence():
    arguments = dict(rounds=10, runs=4, key=KEY)
    with pytest.raises(ValueError, match=r"Bernoulli.means of shape \(2, 3\): the last axis is for the runs, and there are 4"):
        jb.simulate(jb.TsallisINF(), jb.losses.Bernoulli(np.full((2, 3), 0.5)), jb.delays.Fixed(1), **arguments)
    means = np.full((2, 4), 0.5)
    means[1, 2] = 1.5
    with pytest.raises(ValueError, match="between 0 and 1"):
        jb.simulate(jb.TsallisINF(), jb.losses.Bernoulli(means), jb.delays.Fixed(1), **arguments)
    with pytest.raises(ValueError, match="a value for each run in learner, losses or delays: not possible for this game"):
        jb.simulate(jb.TsallisINF(scale=np.ones(4)), jb.losses.Bernoulli([0.2, 0.4]), jb.delays.Outlier(50), **arguments)


@pytest.mark.thorough
def test_a_wrapper_has_them_too():
    """Each run's scale reaches the copies of the base: runs of scale 3 play as if all had it."""
    game, options = (jb.losses.Bernoulli([0.2, 0.5]), jb.delays.Fixed(2)), dict(rounds=100, runs=32, key=KEY, record=[100])
    scales = np.where(np.arange(32) % 2, 1.0, 3.0)
    mixed, three = (jb.simulate(jb.BOLD(jb.TsallisINF(scale=one), 3), *game, **options).regret[0] for one in (scales, 3.0))
    np.testing.assert_allclose(mixed[::2], three[::2], rtol=1e-3)
    assert np.any(np.abs(mixed - three)[1::2] > 0.1)


@pytest.mark.thorough
def test_rates_of_each_run_are_played_on_arrays():
    """Means of losses with the runs as last axis are read as they are: the runs play what they play where all have their means.

    Fails if the regret is counted against the best arm of another run, or if runs read each other's means.
    """
    random, runs = np.random.default_rng(0), 256
    means = random.uniform(size=(2, 3, runs))
    delays = jb.delays.UniformRandom(0, 6)
    for law in (lambda m: jb.losses.Switching(m, [1, 30]), lambda m: jb.losses.Bernoulli(m[0])):
        together = jb.simulate(jb.TsallisINF("rv"), law(means), delays, rounds=60, runs=runs, key=KEY, record=[30, 60])
        assert together.program["evaluation"] == "array"
        for run in (0, 255):
            alone = jb.simulate(jb.TsallisINF("rv"), law(means[..., run]), delays, rounds=60, runs=runs, key=KEY, record=[30, 60])
            np.testing.assert_allclose(together.regret[:, run], alone.regret[:, run], rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(together.total_delay, alone.total_delay)
