"""``estimator="unbiased"``: its mean is the derivative of the expected regret, whatever the jump tangent puts in place of a jump."""

import jax
import jax.numpy as jnp
import pytest

import jaxbandit as jb
from jaxbandit.gradients import jump, unbiased
from jaxbandit.gradients.branches import exact_chance
from jaxbandit.learners import tsallis
from tests import enumeration
from tests.gradients.test_exact import Floored

MEANS = [0.6, 0.8]
CASES = {  # learner, the same in NumPy, rounds, delay
    "Tsallis-INF": (jb.TsallisINF(scale=0.7), enumeration.Tsallis(0.7), 5, 0),
    "Tsallis-INF, delay 1": (jb.TsallisINF(scale=0.7), enumeration.Tsallis(0.7), 6, 1),
    "exponential weights": (jb.DelayedExp3(scale=0.9), enumeration.Hedge(0.9), 5, 0),
    "reduced variance": (jb.TsallisINF("rv", scale=2.0, threshold=0.7), enumeration.ReducedVariance(2.0, 0.7), 5, 0),
    "implicit exploration": (Floored(0.7, 0.3), enumeration.Floored(0.7, 0.3), 5, 0),
}


def found(name: str, estimator, runs: int) -> tuple[float, float, float]:
    """An estimate, its standard error, and the truth by enumeration."""
    learner, rule, rounds, delay = CASES[name]
    law, delays = jb.losses.Bernoulli(MEANS), jb.delays.Fixed(delay, bound=3)
    one = jb.regret_gradient(learner, law, delays, rounds=rounds, runs=runs, seed=11, only=["scale"], estimator=estimator)
    assert one.estimator == estimator
    truth = enumeration.true_gradient(rule, "scale", [[0.0, 1.0]] * 2, MEANS, rounds, delay)
    return float(one.gradient.scale), float(one.error.scale), truth


QUICK = ("Tsallis-INF, delay 1", "exponential weights")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.thorough if name in QUICK else pytest.mark.slow) for name in CASES]
)
def test_no_bias_is_left_of_a_wrong_quadrature(name, monkeypatch):
    """With α = 0 the jump tangent leaves out all feedback; an estimator that forgot the branch, or what it takes back, would too."""
    monkeypatch.setattr(jump, "quadrature", lambda jump, fall, share: jnp.zeros_like(jump))
    monkeypatch.setattr(tsallis, "CROSSING", 1e9)  # the truth is the slope between two steps of reduced variance
    monkeypatch.setattr(unbiased, "BRANCHES", 2)  # so that not every play of a short game has one
    jax.clear_caches()  # programs with another quadrature
    wrong, wrong_error, truth = found(name, "jump", 1 << 15)
    mean, error, _ = found(name, "unbiased", 1 << 16)
    jax.clear_caches()
    assert abs(wrong - truth) > 5 * max(wrong_error, error)  # there is a bias to see
    assert abs(mean - truth) < 5 * error


def test_the_chance_of_a_branch_is_one_that_uniform_numbers_have():
    """A chance of 8 in a million, compared with multiples of 2⁻²³, would happen a third of a per cent too often."""
    grains = 2.0**23
    for rounds in (1, 9, 1000, 10**6, 10**8):
        chance = exact_chance(8 / rounds)
        assert chance * grains == int(chance * grains) > 0
        assert chance == pytest.approx(min(8 / rounds, 1), abs=1 / grains)
