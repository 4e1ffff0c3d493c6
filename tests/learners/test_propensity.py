"""The probability that Thompson sampling draws an arm, against SciPy's Beta distributions and against draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxbandit.learners.propensity import smallest_of_betas

LEVELS = np.r_[
    1e-14, 1e-10, 1e-7, 1e-5, 1e-3, 0.01, 0.05, np.linspace(0.1, 0.9, 9), 0.95, 0.99, 0.999, 1 - 1e-5, 1 - 1e-7, 1 - 1e-10
]


def reference(alpha, beta, arm):
    """Gauss-Legendre quadrature between all quantiles of all arms."""
    edges = np.unique(np.concatenate([stats.beta.ppf(LEVELS, a, b) for a, b in zip(alpha, beta, strict=True)]))
    nodes, weights = np.polynomial.legendre.leggauss(24)
    half = (edges[1:] - edges[:-1])[:, None] / 2
    x = edges[:-1, None] + half * (1 + nodes)
    logs = stats.beta.logpdf(x, alpha[arm], beta[arm])
    for other in range(len(alpha)):
        if other != arm:
            logs = logs + stats.beta.logsf(x, alpha[other], beta[other])
    return float((np.exp(logs) * half * weights).sum())


def posteriors(count, num_arms, seed=0):
    """Parameters of 1 to 10⁶ observations for each arm, at means that are near each other or far apart."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        seen = 10 ** random.uniform(0, 6, num_arms)
        means = np.clip(random.uniform() + random.normal(size=num_arms) * 10 ** random.uniform(-3, -0.5), 0.001, 0.999)
        seen[random.uniform(size=num_arms) < 0.2] = 0
        yield np.float32(1 + seen * means), np.float32(1 + seen * (1 - means))


CASES = [
    ([1, 1], [1, 1], 0, 0.5),
    ([1, 1, 1], [1, 1, 1], 2, 1 / 3),
    ([1], [1], 0, 1.0),
    ([2, 1], [1, 1], 0, 1 / 3),
    ([1e6, 1], [1e6, 1], 1, 0.5),
    ([1, 1e6], [1, 3e6], 0, 0.25),
]


@pytest.mark.parametrize(
    ("alpha", "beta", "arm", "expected"), [*CASES[:2], *(pytest.param(*case, marks=pytest.mark.thorough) for case in CASES[2:])]
)
def test_known_values(alpha, beta, arm, expected):
    found = smallest_of_betas(jnp.float32(alpha), jnp.float32(beta), jnp.int32(arm))
    np.testing.assert_allclose(found, expected, rtol=2e-4)


def test_against_scipy():
    compute = jax.jit(smallest_of_betas)
    for alpha, beta in posteriors(25, 4):
        wanted = np.array([reference(alpha.astype(np.float64), beta.astype(np.float64), arm) for arm in range(4)])
        assert wanted.sum() == pytest.approx(1, abs=1e-6)
        found = np.array([compute(alpha, beta, np.int32(arm)) for arm in range(4)])
        np.testing.assert_allclose(found, wanted, atol=3e-4)
        there = wanted > 1e-6
        np.testing.assert_allclose(found[there], wanted[there], rtol=1e-2)


def test_many_runs_at_once():
    """With the runs on the last axis, the probabilities over the arms sum to 1."""
    alpha, beta = (np.stack(values, -1) for values in zip(*posteriors(200, 7, seed=1), strict=True))
    compute = jax.jit(smallest_of_betas)
    every = [compute(jnp.asarray(alpha), jnp.asarray(beta), jnp.full(200, arm, jnp.int32)) for arm in range(7)]
    np.testing.assert_allclose(np.sum(every, 0), 1, atol=2e-3)
    alone = compute(jnp.asarray(alpha[:, 3]), jnp.asarray(beta[:, 3]), jnp.int32(2))
    np.testing.assert_allclose(every[2][3], alone, rtol=1e-4)
