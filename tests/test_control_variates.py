"""Control variates: intervals of regrets and gradients get narrower and stay calibrated, also with few runs."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._engine.game import Game
from jaxbandit._engine.player import Player
from jaxbandit._io.progress import Progress
from jaxbandit.gradients import estimators as gradients
from jaxbandit.gradients import programs
from jaxbandit.results.statistics import increments, intercept, intercepts, student_quantile

LEARNER, DELAYS, ROUNDS = jb.BestOfBothWorlds(5, 1.0, 1.0), jb.delays.Fixed(5), 200
LAW = jb.losses.Bernoulli([0.3, 0.5, 0.6])


def test_intercept_is_that_of_ordinary_least_squares():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(4, 50))
    values = 3 + np.array([1.0, -2.0, 0.5, 0.0]) @ features + 0.1 * rng.normal(size=50)
    design = np.column_stack([np.ones(50), features.T])
    coefficients, residue, *_ = np.linalg.lstsq(design, values, rcond=None)
    error = np.sqrt(residue[0] / 45 * np.linalg.inv(design.T @ design)[0, 0])
    assert intercept(values, features) == (pytest.approx(coefficients[0]), pytest.approx(error), 45)


def test_features_that_do_not_move_are_left_alone():
    values = np.random.default_rng(0).normal(size=30)
    mean, error, _ = intercept(values, np.zeros((2, 30)))
    assert mean == pytest.approx(values.mean())
    assert np.isfinite(error)


def test_features_have_mean_zero():
    result = jb.simulate(LEARNER, LAW, DELAYS, rounds=ROUNDS, runs=4096, key=jax.random.key(1), measure=[jb.ControlVariates()])
    features = result.measured["control_variates"][-1]
    assert np.all(np.abs(features.mean(1)) < 5 * features.std(1) / 4096**0.5)


def coverage(values, features, rounds, size):
    """How many of the 95 % intervals of groups of ``size`` runs hold the truth, told by all runs."""
    truth = intercept(values, None if features is None else increments(features, rounds))[0]
    hits = []
    for start in range(0, len(values) - size + 1, size):
        own = slice(start, start + size)
        mean, error, freedom = intercept(values[own], None if features is None else increments(features[..., own], rounds))
        hits.append(abs(mean - truth) < student_quantile(freedom) * error)
    return np.mean(hits), len(hits)


@pytest.mark.thorough
@pytest.mark.parametrize("size", [40, 160])
def test_intervals_of_the_regret_cover(size):
    result = jb.simulate(
        LEARNER, LAW, DELAYS, rounds=ROUNDS, runs=200 * size, key=jax.random.key(2), record=24, measure=[jb.ControlVariates()]
    )
    values = result.regret[-1].astype(float)
    for features in (None, result.measured["control_variates"]):
        hit, groups = coverage(values, features, result.rounds, size)
        assert groups == 200
        assert 0.91 < hit < 0.99


@pytest.mark.thorough
def test_intervals_of_the_gradient_cover():
    ids, measure = np.arange(200 * 120, dtype=np.uint32), (jb.ControlVariates(),)
    game = Game.set_up(LEARNER, LAW, DELAYS, jax.random.key(3), ids, measure)
    which = (1,)  # factor
    record = gradients.log_spaced(ROUNDS, gradients.RECORDED).astype(np.int32)
    work = programs.Work(game, Player(hook=gradients.JumpTangent()), 256, ROUNDS, Progress(False, 0, ""))
    out = programs.over_blocks(programs.forward, work, record, which=which)
    values = out.gradient[0].astype(float)
    for features in (None, out.features):
        hit, _ = coverage(values, features, record, 120)
        assert 0.91 < hit < 0.99


def test_rows_share_one_fit():
    rng = np.random.default_rng(1)
    values, features = rng.normal(size=(3, 60)), rng.normal(size=(5, 60))
    means, errors = intercepts(values, features)
    for row, mean, error in zip(values, means, errors, strict=True):
        assert intercept(row, features)[:2] == (pytest.approx(mean), pytest.approx(error))


@pytest.mark.slow
@pytest.mark.parametrize("law", [jb.losses.Bernoulli([0.3] + [0.5] * 4), jb.losses.StochasticallyConstrained(0.2, arms=5)])
def test_regret_intervals_are_narrower(law):
    result = jb.simulate(
        jb.BestOfBothWorlds(5), law, DELAYS, rounds=2000, runs=2048, key=jax.random.key(4), measure=[jb.ControlVariates()]
    )
    assert result.estimate(control_variates=False).error[-1] > 2.5 * result.estimate().error[-1]
