"""Delays by arm: the test for dependence against SciPy, partial pooling, and the delay model that results."""

import numpy as np
import pytest
import scipy.stats

import jaxbandit as jb
from jaxbandit.advice.scenarios import scenarios
from jaxbandit.logs.dependence import STRENGTHS, by_arm, dependence, pooling, quantiles


def conversions(counts, means, seed=0):
    random = np.random.default_rng(seed)
    which = np.repeat(np.arange(len(counts)), counts)
    return which, (random.exponential(np.repeat(means, counts)) * 10).astype(np.int64)


def test_the_test_for_dependence_is_that_of_scipy():
    which, delays = conversions([40, 25, 60], [30.0, 30.0, 45.0])
    expected = scipy.stats.kruskal(*(delays[which == arm] for arm in range(3))).pvalue
    assert dependence(["a", "b", "c"], which, delays).p_value == pytest.approx(expected, rel=1e-9)


def test_verdicts():
    names = ["quick", "late"]
    differ = dependence(names, *conversions([200, 200], [1e12, 1e14]))
    assert differ.differs is True
    assert "Delays differ by arm" in differ.sentence()
    assert "'late' take longer than" in differ.sentence()
    alike = dependence(names, *conversions([200, 200], [1e12, 1e12]))
    assert alike.differs is False
    assert "No difference" in alike.sentence()
    few = dependence(names, *conversions([200, 3], [1e12, 1e12]))
    assert few.differs is None
    assert "cannot tell whether delays differ by arm: 'late' has 3 conversions" in few.sentence()
    none = dependence(names, *conversions([200, 0], [1e12, 1e12]))
    assert none.differs is None
    assert np.isnan(none.p_value)


def test_pooling_follows_the_data():
    """Arms that are alike pool, arms that differ do not, and an arm with few conversions borrows."""
    alike = pooling(*conversions([300] * 6, [50.0] * 6), 6) @ STRENGTHS
    apart = pooling(*conversions([300] * 6, np.geomspace(5, 500, 6)), 6) @ STRENGTHS
    assert alike > 300 > 10 > apart
    which, delays = conversions([1000, 1000, 1], [1.0, 100.0, 50.0])
    strength = pooling(which, delays, 3)
    laws = by_arm(which, delays, strength, 3, 256)
    for arm in (0, 1):
        assert np.median(laws[arm]) == pytest.approx(np.median(delays[which == arm]), rel=0.15)
    assert np.median(laws[0]) < np.median(laws[2]) < np.median(laws[1])
    np.testing.assert_array_equal(quantiles(np.array([5, 1, 3]), np.ones(3), np.array([0.1, 0.5, 0.9])), [1, 3, 5])


def test_empirical_delays_by_arm():
    law = jb.delays.EmpiricalByArm([[0, 3], [5, 9]])
    drawn = law.draw(1, np.array([0, 0, 1, 1]), 0.0, np.array([0.2, 0.7, 0.2, 0.999]))
    assert np.asarray(drawn).tolist() == [0, 3, 5, 9]
    assert (law.bound, law.num_arms, float(law.longest())) == (16, 2, 9.0)
    jb.check_delays(law)
    nested = jb.delays.LossDependent(no_conversion=jb.delays.Fixed(20), conversion=law)
    assert nested.num_arms == 2
    jb.check_delays(nested)
    with pytest.raises(ValueError, match="2 rows for 3 arms; give one row for each arm"):
        jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.3, 0.5, 0.6]), law, rounds=5, runs=1, seed=0)


def test_failures_that_are_reported_have_delays_by_arm(tmp_path):
    """With a window, failures may still be reported before it closes. Rejects delays of failures that are pooled across the arms."""
    random, rows = np.random.default_rng(0), ["arm,action_time,feedback_time,value"]
    for start in range(2000):
        arm = start % 2
        wait = (5, 60)[arm] * random.uniform(0.8, 1.2)
        rows.append(f"{'ab'[arm]},{start},{start + wait},{int(random.uniform() < 0.1)}")
    (tmp_path / "log.csv").write_text("\n".join(rows))
    log = jb.load_log(tmp_path / "log.csv", arm="arm", reward="value", window=100)
    np.testing.assert_allclose(np.median(np.asarray(log.delays.no_conversion.delays), -1), [5, 60], atol=2)
    draws = scenarios(log, 400, 8, (0,))[0].delays.no_conversion
    np.testing.assert_allclose(np.median(np.asarray(draws.delays), 1)[:, 0], [5, 60], atol=2)
