"""Regret against values that other programs found: an independent float64 simulation, and published curves."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxbandit as jb

DATA = Path(__file__).parent / "data"
INDEPENDENT = json.loads((DATA / "independent_regret.json").read_text())["values"]
PUBLISHED = json.loads((DATA / "published_regret.json").read_text())["values"]
D = jb.delays
LAWS = {
    "fixed 0": (D.Fixed(0), 0),
    "fixed 10": (D.Fixed(10), 10),
    "fixed 100": (D.Fixed(100), 100),
    "geometric mean 10, >127 never": (D.Geometric(10.0, bound=127), 127),
    "uniform 0..20": (D.UniformRandom(0, 20), 20),
    "packet loss 0.7": (D.PacketLoss(0.7), 0),
}
# What a learner is told: the longest delay, and the total delay that the runs really met.
LEARNERS = {
    "MZS22": lambda longest, total: jb.BestOfBothWorlds(longest),
    "ZS20 simple": lambda longest, total: jb.ZimmertSeldin(),
    "ZS20 skipping": lambda longest, total: jb.ZimmertSeldin(skipping=True),
    "MZS24": lambda longest, total: jb.RobustBestOfBothWorlds(),
    "Tsallis-INF IW": lambda longest, total: jb.TsallisINF(),
    "Tsallis-INF RV": lambda longest, total: jb.TsallisINF("rv"),
    "Delay-adaptive Exp3": lambda longest, total: jb.DelayedExp3(),
    "DEW": lambda longest, total: jb.DelayedExponentialWeights(20_000, total, longest),
    "Delayed UCB1": lambda longest, total: jb.DelayedUCB1(),
    "Delayed Thompson": lambda longest, total: jb.DelayedThompson(),
}


def environment(row):
    gap, arms = row["gap"], row["arms"]
    if row["env"] == "A":
        return jb.losses.Bernoulli([(1 - gap) / 2, *[(1 + gap) / 2] * (arms - 1)])
    return jb.losses.StochasticallyConstrained(gap, arms)


@pytest.mark.thorough
def test_a_researchers_numpy_program():
    """MZS22, K = 10, d = 10, T = 1000: 176.57 ± 0.02 by a float64 program with another solver."""
    result = jb.simulate(
        jb.BestOfBothWorlds(10),
        jb.losses.Bernoulli([0.3, *[0.5] * 9]),
        D.Fixed(10),
        rounds=1000,
        runs=4096,
        key=jax.random.key(0),
    )
    estimate = result.estimate()
    assert abs(estimate.mean[-1] - 176.57) < 5 * np.hypot(estimate.error[-1], 0.02)
    assert estimate.error[-1] < 0.1  # a bias of 1 % would be 1.8


@pytest.mark.slow
@pytest.mark.parametrize("row", INDEPENDENT, ids=lambda row: f"{row['learner']} {row['delay']}")
def test_independent_simulation(row):
    delays, longest = LAWS[row["delay"]]
    losses = jb.losses.Bernoulli(row["means"])
    options = {"rounds": row["rounds"], "runs": 4096, "key": jax.random.key(1), "record": 24, "measure": [jb.ControlVariates()]}
    total = jb.simulate(jb.Uniform(), losses, delays, **options).total_delay.mean()
    estimate = jb.simulate(LEARNERS[row["learner"]](longest, total), losses, delays, **options).estimate()
    joint = np.hypot(estimate.error[-1], row["stderr"])
    # MZS24 skips everything at a delay of 100: both are uniform play, without any error but rounding.
    assert abs(estimate.mean[-1] - row["regret"]) < max(5 * joint, 1e-6 * row["regret"])
    # 0.4 % would show a bias of 2 %; the reference itself has errors of 0.3 to 0.7 % where regret is small.
    assert estimate.error[-1] <= max(0.004 * row["regret"], row["stderr"]), "too few runs to catch a bias"


# The one point that is missed: 184 against 159 published, the last of RV's curve at the largest gap. There a threshold of
# 4/t in place of the 16/t of the text comes close (test below); at the smaller gap it is the text's that fits.
PUBLISHED_MISSES = {("TInf-RV", "A", 0.25, 8, 100_000)}


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["TInf-IW", "TInf-RV"])
@pytest.mark.parametrize("env", ["A", "B"])
@pytest.mark.parametrize("gap", [0.25, 0.125])
@pytest.mark.parametrize("arms", [2, 8])
def test_published_tsallis_inf_curves(learner, env, gap, arms):
    rows = [
        row
        for row in PUBLISHED
        if (row["learner"], row["env"], row["gap"], row["arms"]) == (learner, env, gap, arms) and row["round"] <= 100_000
    ]
    record = [row["round"] for row in rows]
    result = jb.simulate(
        jb.TsallisINF("iw" if learner == "TInf-IW" else "rv"),
        environment(rows[0]),
        D.Fixed(0),
        rounds=record[-1],
        runs=512,
        key=jax.random.key(2),
        record=record,
    )
    estimate = result.estimate()
    spread = result.regret.std(1)
    for row, mean, error, deviation in zip(rows, estimate.mean, estimate.error, spread, strict=True):
        if (learner, env, gap, arms, row["round"]) in PUBLISHED_MISSES:
            continue
        joint = np.hypot(error, deviation / 10)  # the paper has 100 runs
        assert abs(mean - row["regret"]) < 0.06 * row["regret"] + 4 * joint, (row, mean)


@pytest.mark.slow
def test_the_published_miss_is_the_threshold():
    losses = jb.losses.Bernoulli([0.375, *[0.625] * 7])
    options = {"rounds": 100_000, "runs": 1024, "key": jax.random.key(2), "record": 1}
    text = jb.simulate(jb.TsallisINF("rv"), losses, D.Fixed(0), **options).estimate()
    lower = jb.simulate(jb.TsallisINF("rv", threshold=4.0), losses, D.Fixed(0), **options).estimate()
    assert text.mean[-1] > 1.1 * 159
    assert abs(lower.mean[-1] - 159) < 0.06 * 159 + 4 * np.hypot(lower.error[-1], lower.error[-1] * np.sqrt(1024 / 100))


@pytest.mark.slow
def test_zero_delay_is_tsallis_inf_in_distribution():
    options = {"rounds": 10_000, "runs": 2048, "record": 1}
    losses = jb.losses.Bernoulli([0.3, 0.5, 0.5])
    one = jb.simulate(jb.BestOfBothWorlds(0), losses, D.Fixed(0), key=jax.random.key(3), **options).estimate()
    two = jb.simulate(jb.TsallisINF(), losses, D.Fixed(0), key=jax.random.key(4), **options).estimate()
    assert abs(one.mean[-1] - two.mean[-1]) < 5 * np.hypot(one.error[-1], two.error[-1])
    assert one.error[-1] < 0.01 * one.mean[-1]


def test_zero_delay_is_tsallis_inf_path_by_path():
    options = {"rounds": 200, "runs": 256, "key": jax.random.key(3), "record": 20}
    losses = jb.losses.Bernoulli([0.3, 0.5, 0.5])
    one = jb.simulate(jb.BestOfBothWorlds(0), losses, D.Fixed(0), **options)
    two = jb.simulate(jb.TsallisINF(), losses, D.Fixed(0), **options)
    np.testing.assert_allclose(one.regret, two.regret, rtol=1e-4)
