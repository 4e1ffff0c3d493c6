"""Tests and their corrections against independent ones."""

import dataclasses

import mpmath
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.results.statistics import (
    estimate,
    failed_share,
    holm,
    intercepts,
    paired_test,
    skewness,
    student_p,
    student_quantile,
)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 30, 255, 1023])
def test_student_p_against_mpmath(freedom):
    for t in (0.0, 0.3, 1.0, 2.5, 4.0, -3.0, 40.0):
        assert student_p(t, freedom) == pytest.approx(_exact_p(t, freedom), rel=1e-9, abs=0)


def _exact_p(t, freedom):
    return float(mpmath.betainc(freedom / 2, 0.5, 0, freedom / (freedom + mpmath.mpf(t) ** 2), regularized=True))


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 30, 255, 1023])
def test_student_quantile_against_mpmath(freedom):
    quantile = student_quantile(freedom)
    assert quantile == pytest.approx(float(mpmath.findroot(lambda t: _exact_p(t, freedom) - 0.05, quantile)), rel=1e-9)
    assert np.isnan(student_quantile(0))


SAMPLES = 2000
DISTRIBUTIONS = {  # draw, mean
    "normal": (lambda chance, size: chance.normal(size=size), 0.0),
    "exponential": (lambda chance, size: chance.exponential(size=size), 1.0),
    "one run in twenty fails": (lambda chance, size: chance.normal(size=size) + 50 * (chance.random(size) < 0.05), 2.5),
}


def _coverage(name, runs):
    """How often the 95% interval holds the mean, and how often it is called reliable."""
    draw, mean = DISTRIBUTIONS[name]
    found = estimate(draw(np.random.default_rng(1), (SAMPLES, runs)), np.arange(1, SAMPLES + 1), None)
    return np.mean((found.low < mean) & (mean < found.high)), np.mean(found.reliable)


def test_intervals_of_enough_runs_hold_the_mean():
    """Nominal for normal runs; within Cochran's 6% of misses for skewed runs that are enough of them."""
    chance = 5 * np.sqrt(0.05 * 0.95 / SAMPLES)
    covered, reliable = _coverage("normal", 64)
    assert abs(covered - 0.95) < chance
    assert reliable > 0.99
    covered, reliable = _coverage("exponential", 256)
    assert covered > 0.94 - chance
    assert reliable > 0.95


@pytest.mark.parametrize(("runs", "most"), [(5, 0.3), (16, 0.65), (64, 0.9)])
def test_intervals_that_miss_the_mean_are_called_unreliable(runs, most):
    covered, reliable = _coverage("one run in twenty fails", runs)
    assert covered < most
    assert reliable < 0.06  # samples of 64 runs of which none failed


def test_an_estimate_says_that_its_runs_are_skewed():
    runs = np.r_[np.linspace(9, 11, 60), [500.0] * 3]
    found = estimate(np.stack([np.full(63, 7.0), runs]), np.array([10, 20]), None)
    assert found.reliable.tolist() == [True, False]  # runs that are all alike have no interval to be wrong
    assert found.skewness[1] == pytest.approx(4.25, abs=0.05)
    assert "skewed (4.2), so the interval is unreliable; use 45" in repr(found)
    assert found.median[1] == pytest.approx(np.median(runs))
    assert "few to judge the interval; use 30 or more" in estimate(np.array([[1.0, 2.0, 3.0]]), np.array([5]), None).note
    assert failed_share(runs) == 3 / 63


def test_skewness_is_that_of_the_residuals():
    """A regret that is skewed only because of a control variate has residuals that are not."""
    chance = np.random.default_rng(0)
    feature, noise = chance.exponential(size=400) - 1, chance.normal(size=400)
    assert skewness(10 * feature + noise) > 1.5
    assert abs(skewness(10 * feature + noise, feature[None])) < 0.3


def test_a_summary_shows_median_failed_runs_and_the_note():
    result = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.2, 0.4]), jb.delays.Fixed(0), rounds=20, runs=40, seed=0, record=2)
    regret = np.r_[np.full(38, 4.0), [90.0, 95.0]]
    result = dataclasses.replace(result, regret=np.stack([regret, regret]))
    summary = result.summary()
    assert (summary.median, summary.failed) == (4.0, 0.05)
    assert "skewed" in summary.note
    assert "5.0%" in repr(summary)
    assert summary.note in repr(summary)


def test_holm_against_its_definition():
    values = [0.001, 0.2, 0.04, 0.01, 0.01, 0.9]
    ordered = sorted(values)
    steps = [max(min(1, (len(values) - j) * ordered[j]) for j in range(i + 1)) for i in range(len(values))]
    np.testing.assert_allclose(holm(values), [steps[ordered.index(v)] for v in values])
    assert holm([]).size == 0


def test_false_claims_are_rare_under_the_null():
    """400 reports of 15 pairs of equal learners: at most about 5 % of the reports claim any difference."""
    chance = np.random.default_rng(0)
    claims = 0
    for _ in range(400):
        runs = chance.normal(size=(6, 64)) + chance.normal(size=64)  # shared luck, as in paired runs
        p = [paired_test(runs[i] - runs[j])[2] for i in range(6) for j in range(i)]
        claims += bool(np.any(holm(p) < 0.05))
    assert claims / 400 < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 400)


def test_a_control_variate_of_rounding_errors_takes_no_part():
    """Its mean is a hundred of its own standard errors from 0: a fit on it moved a derivative by more than its error."""
    rng = np.random.default_rng(0)
    noise, rounding = rng.normal(size=(2, 4096))
    values = 3 + noise + 0.1 * rounding
    features = np.stack([noise, -1e-8 + 1e-10 * rounding])
    mean, error = intercepts(values[None], features)
    alone, alone_error = intercepts(values[None], features[:1])
    np.testing.assert_allclose([mean[0], error[0]], [alone[0], alone_error[0]], rtol=1e-2)
