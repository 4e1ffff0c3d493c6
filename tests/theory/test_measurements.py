"""Measurements against a dense float64 replay: plays in a list, the projection by Wright's omega, conjugates written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import wrightomega

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit._core.fields import pytree_dataclass

MEANS = np.array([0.2, 0.5, 0.6, 0.4])
ROUNDS, RUNS, WINDOW = 60, 3, 6
LINEAR, FACTOR = 0.5, 0.2  # small, so that the rates and the drift move


@pytree_dataclass
class Log:
    """What was played, and what it waits."""

    def init(self, num_arms, runs_shape):
        return jnp.zeros((3, *runs_shape))

    def update(self, state, info):
        shape = info.arm.shape
        return jnp.stack([jnp.broadcast_to(part, shape).astype(state.dtype) for part in (info.arm, info.loss, info.delay)])

    def read(self, state):
        return {"log": state}


DELAYS = {
    "of each run": jb.delays.UniformRandom(0, WINDOW, bound=8),
    "shared, in bursts": jb.delays.Bursts(WINDOW),
}


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name == "of each run" else pytest.mark.thorough) for name in DELAYS],
)
def game(request):
    """A game with every round recorded, in float64."""
    learner = jb.BestOfBothWorlds(max_delay=WINDOW, linear=LINEAR, factor=FACTOR)
    measure = [
        theory.measurements.Drift(WINDOW),
        theory.measurements.Arrivals(),
        theory.measurements.DriftedRegret(),
        theory.measurements.InverseRates(learner),
        theory.measurements.StabilityAndPenalty(learner, WINDOW),
        theory.measurements.SelfBounding(learner, WINDOW),
        Log(),
    ]
    with jax.enable_x64(True):
        played = jb.rollout(
            learner,
            jb.losses.Bernoulli(MEANS),
            DELAYS[request.param],
            rounds=ROUNDS,
            runs=RUNS,
            key=jax.random.key(1),
            record=range(1, ROUNDS + 1),
            probabilities=True,
            measure=measure,
        )
        return jax.tree.map(np.asarray, played)


def leader(losses, a, b):
    """The probabilities at cumulative losses L, float64: bisection in μ, each arm in closed form."""
    losses = losses - losses.min()
    low, high = -a * np.sqrt(len(losses)) - b * np.log(len(losses)), -a
    for _ in range(100):
        middle = (low + high) / 2
        x = (a / (2 * b * wrightomega((losses - middle) / (2 * b) + np.log(a / (2 * b))))) ** 2
        low, high = (low, middle) if x.sum() > 1 else (middle, high)
    return x


def regulariser(x, a, b):
    return np.sum(-2 * a * np.sqrt(x) + b * x * (np.log(np.where(x > 0, x, 1)) - 1))


def conjugate(losses, a, b):
    """F̄*(-L) = max_x <-L, x> - F(x)."""
    x = leader(losses, a, b)
    return -losses @ x - regulariser(x, a, b)


def replay(result, run):
    """Every measured quantity of one run, ``{name: [T]}``, from the arms, losses and delays alone."""
    arms, losses, delays = (result.measured["log"][:, i, run] for i in range(3))
    arms, delays = arms.astype(int), delays.astype(int)
    num_arms, log_k, gaps = len(MEANS), np.log(len(MEANS)), MEANS - MEANS.min()
    eta0 = LINEAR * WINDOW + WINDOW**2 / (num_arms ** (1 / 3) * log_k) ** 2
    gamma0 = FACTOR**2 * WINDOW**2 * num_arms ** (2 / 3) * log_k
    total, waited, last = np.zeros(num_arms), 0, (0.0, 0.0)
    x, rows, sums, worst = (
        [],
        [],
        dict.fromkeys(
            ["drifted", "stab", "limit", "tsallis", "entropy", "came", "pen", "A", "B", "C", "pairs", "pen_limit"], 0.0
        ),
        {"drift": 1.0, "stab": 0.0, "shift": 0.0, "aux1": 0.0, "a": 0},
    )
    for t in range(1, ROUNDS + 1):
        sigma = sum(s + delays[s - 1] >= t for s in range(1, t))
        waited += sigma
        a, b = np.sqrt(t + eta0), np.sqrt((waited + gamma0) / log_k)
        now = leader(total, a, b)
        x.append(now)
        arrived = [s for s in range(1, t + 1) if s + delays[s - 1] == t]
        observed = np.zeros(num_arms)
        for s in arrived:
            observed[arms[s - 1]] += losses[s - 1] / x[s - 1][arms[s - 1]]
        count = len(arrived)
        before, after = conjugate(total, a, b), conjugate(total + observed, a, b)
        stability = now @ observed + after - before
        curved = 1 / (0.5 * a * now**-1.5 + b / now)
        shift = curved @ observed / curved.sum()
        limit = 2 * curved @ (observed - shift) ** 2
        entropy = -now @ np.log(now)
        if t > 1:
            sums["pen_limit"] += regulariser(now, *last) - regulariser(now, a, b)
        else:
            first = regulariser(now, a, b)
        worst["drift"] = max(worst["drift"], *(np.max(now / x[s - 1]) for s in range(max(1, t - WINDOW), t + 1)))
        worst["stab"] = max(worst["stab"], stability / limit if limit > 1e-9 else 0)
        worst["shift"] = max(worst["shift"], shift / b)
        worst["aux1"] = max(worst["aux1"], shift / max(count, 1) / (num_arms - 1) ** (1 / 3))
        worst["a"] = max(worst["a"], count)
        sums["drifted"] += count * (now @ gaps)
        sums["stab"] += stability
        sums["limit"] += limit
        sums["tsallis"] += sum((now**1.5 * (1 / x[s - 1] - 1)).sum() for s in arrived) / a
        sums["entropy"] += count * (count - 1) * (now @ gaps) / b
        sums["came"] += now @ observed - observed[0]
        sums["pen"] += before - after - observed[0]
        sums["A"] += np.sqrt(now[1:]).sum() / a
        sums["B"] += sum((count - 1) * (x[s - 1] @ gaps) for s in arrived) / b
        sums["C"] += sigma * entropy / b / log_k
        sums["pairs"] += count * (count - 1) / 2
        best = np.eye(num_arms)[0]
        rows.append(
            {
                "drift": worst["drift"], "arrivals_max": worst["a"], "outstanding_sum": waited, "arrival_pairs": sums["pairs"],
                "drifted_regret": sums["drifted"], "tsallis_rate": a, "entropy_rate": b, "stability": sums["stab"],
                "stability_limit": sums["limit"], "stability_ratio": worst["stab"], "stability_tsallis": sums["tsallis"],
                "stability_entropy": sums["entropy"], "shift_ratio": worst["shift"], "aux1_ratio": worst["aux1"],
                "estimated_drift": sums["came"], "penalty": sums["pen"],
                "penalty_limit": sums["pen_limit"] + regulariser(best, a, b) - first,
                "A": sums["A"], "B": sums["B"], "C": sums["C"],
            }
        )  # fmt: skip
        total, last = total + observed, (a, b)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}, np.array(x)


@pytest.mark.thorough
def test_every_measurement_is_that_of_a_dense_replay(game):
    for run in range(RUNS):
        expected, x = replay(game, run)
        np.testing.assert_allclose(game.probabilities[:, :, run], x, rtol=1e-7)
        measured = dict(game.measured)
        measured |= {name: measured["self_bounding"][:, i] for i, name in enumerate("ABC")}
        for name, value in expected.items():
            scale = np.abs(value).max()
            np.testing.assert_allclose(measured[name][:, run], value, rtol=1e-6, atol=1e-7 * scale, err_msg=name)
        assert not measured["arrival_violations"][:, run].any()


def test_the_lemmas_hold_where_they_need_no_constants(game):
    """On every path, whatever the constants: the penalty's limit, the arrivals, and the stability while α_t <= 1/γ_t."""
    measured = game.measured
    assert np.all(measured["penalty"] <= measured["penalty_limit"] * (1 + 1e-5) + 1e-3)
    within = measured["shift_ratio"] <= 1
    assert np.all(measured["stability_ratio"][within] <= 1)
    assert np.all(measured["aux1_ratio"] <= 2 * measured["drift"] * (1 + 1e-5))
    if measured["arrivals_max"].max() == WINDOW:  # bursts: the lemma on arrivals is tight
        whole = np.arange(ROUNDS) % WINDOW == WINDOW - 1
        np.testing.assert_array_equal(measured["outstanding_sum"][whole], measured["arrival_pairs"][whole])


@pytest.mark.thorough
def test_measuring_changes_no_bit_of_the_game():
    def play(measure):
        return jb.simulate(
            jb.BestOfBothWorlds(max_delay=3), jb.losses.Bernoulli(MEANS), jb.delays.Fixed(3), rounds=200, runs=5,
            key=jax.random.key(2), record=1, measure=measure,
        )  # fmt: skip

    np.testing.assert_array_equal(play([theory.measurements.Arrivals()]).regret, play([]).regret)


@pytest.mark.parametrize("window", [0, 1, 2, 3, 7, 8, 20])
def test_drift_of_windows_of_any_length(window):
    x = np.random.default_rng(window).uniform(0.1, 1, (50, 3, 2)).astype(np.float32)
    measure = theory.measurements.Drift(window)

    def step(state, row):
        info = jb.measure.RoundInfo(row[0], row[1], *[None] * 9)
        state = measure.update(state, info)
        return state, measure.read(state)["drift"]

    _, drift = jax.lax.scan(step, measure.init(3, (2,)), (jnp.arange(1, 51), jnp.asarray(x)))
    expected = [max(np.max(x[t] / x[s], axis=0).max() for s in range(max(0, t - window), t + 1)) for t in range(50)]
    np.testing.assert_allclose(np.max(drift, 1), np.maximum.accumulate(expected), rtol=1e-6)


@pytest.mark.thorough
def test_zs20_is_a_case_of_the_family():
    """So that every measurement that needs rates can be made of Zimmert & Seldin (2020) too."""

    def play(learner):
        return jb.rollout(
            learner, jb.losses.Bernoulli(MEANS), jb.delays.Fixed(9), rounds=100, runs=8, key=jax.random.key(3)
        ).regret

    np.testing.assert_allclose(
        play(jb.BestOfBothWorlds(max_delay=0, entropy_scale=2**0.5)), play(jb.ZimmertSeldin()), rtol=1e-3, atol=1e-3
    )


def test_a_learner_without_rates_is_told_so():
    with pytest.raises(TypeError, match="needs a learner with inverse_rates"):
        jb.simulate(
            jb.DelayedExp3(), jb.losses.Bernoulli(MEANS), jb.delays.Fixed(3), rounds=9, runs=2, key=jax.random.key(0),
            measure=[theory.measurements.StabilityAndPenalty(jb.DelayedExp3(), 3)],
        )  # fmt: skip
    with pytest.raises(ValueError, match=r"Drift\(window=-1\)"):
        theory.measurements.Drift(-1).init(2, ())
