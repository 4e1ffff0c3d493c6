"""Each learner against an independent float64 NumPy reference, written from the papers and not from our code."""

import math

import jax
import numpy as np
import pytest

import jaxbandit as jb
from tests.injected import injected
from tests.reference import learners as reference

ROUNDS = 300
DELAYS = {
    "none": lambda rng: np.zeros(ROUNDS),
    "fixed": lambda rng: np.full(ROUNDS, 7.0),
    "random": lambda rng: rng.integers(0, 15, ROUNDS).astype(float),
    "lost": lambda rng: np.where(rng.random(ROUNDS) < 0.8, rng.integers(0, 5, ROUNDS), math.inf),
}

# The last kind covers most of what the others do; longer delays are for `make test-all`, the easy ones for `make test-slow`.
each_delay = pytest.mark.parametrize(
    "delays",
    [
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("none", "fixed")),
        pytest.param("random", marks=pytest.mark.thorough),
        "lost",
    ],
)


def compare(mine, theirs, delays: str, arms: int = 4, seed: int = 0, tolerance: float = 1e-9, kind: str = "bernoulli") -> None:
    """The same probabilities, round by round, for injected arms, losses and delays."""
    rng = np.random.default_rng(seed)
    losses = (
        (rng.random((ROUNDS, arms)) < np.linspace(0.3, 0.7, arms)) * 1.0 if kind == "bernoulli" else rng.random((ROUNDS, arms))
    )
    waits, played = DELAYS[delays](rng), rng.integers(0, arms, ROUNDS)
    # Arms drawn from the reference's own probabilities: uniform ones would weigh rare arms far too often.
    expected = reference.play(theirs, None, losses, list(waits), rng=rng)
    played = expected["arms"]
    with jax.enable_x64(True):
        got = injected(mine, played, losses, waits)
    np.testing.assert_array_equal(got["outstanding"], expected["sigma"])
    np.testing.assert_allclose(got["probabilities"], expected["probabilities"], rtol=tolerance, atol=tolerance)


@each_delay
def test_tsallis_inf(delays):
    compare(jb.TsallisINF(), reference.TsallisINF(4), delays)
    compare(jb.TsallisINF("rv"), reference.TsallisINF(4, estimator="rv"), delays)


@each_delay
@pytest.mark.parametrize("arms", [2, 5, 20])
def test_best_of_both_worlds(delays, arms):
    compare(jb.BestOfBothWorlds(7), reference.BestOfBothWorlds(arms, max_delay=7), delays, arms)
    scaled = jb.BestOfBothWorlds(7, linear=1.0, factor=0.5, tsallis_scale=0.7, entropy_scale=1.3)
    theirs = reference.BestOfBothWorlds(arms, max_delay=7, linear=1.0, factor=0.5, eta_scale=0.7, gamma_scale=1.3)
    compare(scaled, theirs, delays, arms, kind="continuous")
