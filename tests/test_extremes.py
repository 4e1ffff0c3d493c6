"""Far ends: nothing overflows, nothing is NaN, probabilities stay on the simplex."""

import jax
import numpy as np
import pytest

import jaxbandit as jb

KEY = jax.random.key(0)
D, L = jb.delays, jb.losses
GOOD = L.Bernoulli([0.3, 0.5, 0.7])


def play(learner, losses, delays, rounds, runs=8, **options):
    result = jb.simulate(learner, losses, delays, rounds=rounds, runs=runs, key=KEY, probabilities=True, **options)
    assert np.all(np.isfinite(result.regret))
    assert np.all(np.isfinite(result.probabilities))
    assert np.all(result.probabilities >= 0)
    np.testing.assert_allclose(result.probabilities.sum(1, dtype=np.float64), 1, atol=4e-7 * np.sqrt(losses.num_arms))
    return result


@pytest.mark.thorough
@pytest.mark.parametrize(
    "learner",
    [
        pytest.param(jb.TsallisINF(), marks=pytest.mark.slow),
        jb.TsallisINF("rv"),
        jb.BestOfBothWorlds(5),
        pytest.param(jb.BestOfBothWorlds(0), marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    ("losses", "delays"),
    [
        (L.Bernoulli([0.5, 0.5, 0.5]), D.Fixed(5)),  # gap 0
        (L.Bernoulli([1.0, 1.0, 1.0]), D.Fixed(5)),
        (L.Bernoulli([0.0, 0.0, 0.0]), D.Fixed(5)),
        (L.Bernoulli([0.0, 1.0, 1.0]), D.Fixed(5)),
        (GOOD, D.Outlier(first=2000)),  # d_1 = T, the rest 0
        (GOOD, D.Pareto(0.3, bound=1023)),
        (GOOD, D.PacketLoss(0.0)),  # nothing ever arrives
        (GOOD, D.Fixed(2000)),  # max_delay = T
    ],
)
def test_hostile_laws(learner, losses, delays):
    play(learner, losses, delays, rounds=2000)


def test_one_arm():
    for learner in (jb.TsallisINF(), jb.TsallisINF("rv"), jb.BestOfBothWorlds(5), jb.Uniform()):
        result = play(learner, L.Bernoulli([0.4]), D.Fixed(5), rounds=50)
        np.testing.assert_array_equal(result.regret, 0)


def test_thousands_outstanding():
    result = play(jb.BestOfBothWorlds(5000), GOOD, D.Fixed(5000), rounds=6000)
    assert set(result.outstanding_max) == {5000}
    assert set(result.total_delay) == {sum(min(5000, 6000 - s) for s in range(1, 6001))}


@pytest.mark.thorough
def test_ten_thousand_arms():
    means = np.full(10_000, 0.6)
    means[17] = 0.1
    play(jb.BestOfBothWorlds(3), L.Bernoulli(means), D.Fixed(3), rounds=50)


@pytest.mark.slow
def test_ten_thousand_arms_for_a_thousand_rounds():
    means = np.full(10_000, 0.6)
    means[17] = 0.1
    for learner in (jb.BestOfBothWorlds(3), jb.TsallisINF(), jb.TsallisINF("rv")):
        play(learner, L.Bernoulli(means), D.Fixed(3), rounds=1000)


@pytest.mark.slow
def test_ten_million_rounds():
    for learner in (jb.TsallisINF(), jb.BestOfBothWorlds(1000)):
        delays = D.Fixed(1000) if isinstance(learner, jb.BestOfBothWorlds) else D.Fixed(0)
        result = play(learner, GOOD, delays, rounds=10_000_000, runs=64)
        assert np.all(np.diff(result.regret, axis=0) >= 0)  # late growth may be less than float32 can show
        if delays.delay:
            assert result.total_delay[0] == sum(min(t - 1, 1000) for t in range(1, 1002)) + 1000 * (10_000_000 - 1001)  # Σσ_t
            assert result.total_delay[0] > 2**32
        assert result.residual < 1e-4
