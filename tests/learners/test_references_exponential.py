"""Exponential weights against independent float64 NumPy references, path by path."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.learners.exponential import DelayedExp3, DelayedExponentialWeights, Exp3, Exp3PlusPlus, FixedDelayExp3, Skipper
from tests.learners.test_references import ROUNDS, compare, each_delay
from tests.reference import learners as reference

TOTAL = 900.0


@each_delay
@pytest.mark.parametrize("arms", [2, 5, 20])
def test_anytime_rates(delays, arms):
    compare(DelayedExp3(), reference.DelayedExp3(arms), delays, arms)
    compare(DelayedExp3(), reference.DelayedExp3(arms), delays, arms, kind="continuous")
    compare(Exp3(), reference.Exp3(arms), delays, arms, kind="continuous")


@each_delay
@pytest.mark.parametrize("max_delay", [0, 2, 14])  # no cap, a cap that does not bind, one that does
def test_delayed_exponential_weights(delays, max_delay):
    theirs = reference.DelayedExponentialWeights(4, ROUNDS, TOTAL, max_delay)
    compare(DelayedExponentialWeights(ROUNDS, TOTAL, max_delay), theirs, delays)


@each_delay
@pytest.mark.parametrize("beta", [3, 7, 8])  # a fixed delay of 7 is thrown away by 7 and used by 8
def test_skipper(delays, beta):
    compare(Skipper(beta, ROUNDS, TOTAL), reference.Skipper(4, beta, ROUNDS, TOTAL), delays)


@each_delay
@pytest.mark.parametrize("gamma", [None, 0.4])
def test_fixed_delay_exp3(delays, gamma):
    compare(FixedDelayExp3(ROUNDS, 7, gamma), reference.FixedDelayExp3(4, ROUNDS, 7, gamma), delays)
    compare(FixedDelayExp3(ROUNDS, 0, gamma), reference.FixedDelayExp3(4, ROUNDS, 0, gamma), delays, kind="continuous")


@each_delay
@pytest.mark.parametrize(("alpha", "beta"), [(3.0, 256.0), (0.05, 0.01)])  # with the first, no gap is found in 300 rounds
def test_exp3_plus_plus(delays, alpha, beta):
    compare(Exp3PlusPlus(alpha, beta), reference.Exp3PlusPlus(4, alpha, beta), delays)
    compare(Exp3PlusPlus(alpha, beta), reference.Exp3PlusPlus(2, alpha, beta), delays, arms=2, kind="continuous")


def test_small_alpha_finds_gaps():
    """The second case above does reach the forced exploration that shrinks with the gap."""
    learner = reference.Exp3PlusPlus(4, 0.05, 0.01)
    rng = np.random.default_rng(0)
    reference.play(learner, None, (rng.random((ROUNDS, 4)) < np.linspace(0.3, 0.7, 4)) * 1.0, [0] * ROUNDS, rng=rng)
    assert (learner.exploration(ROUNDS) < min(1 / 8, learner.rate(ROUNDS))).any()


def test_the_horizon_must_be_a_number_of_rounds():
    with pytest.raises(ValueError, match="horizon"):
        jb.simulate(
            DelayedExponentialWeights(0, 0, 0),
            jb.losses.Bernoulli([0.3, 0.5]),
            jb.delays.Fixed(0),
            rounds=5,
            runs=1,
            key=jax.random.key(0),
        )
