"""Delayed conversions with a learned delay curve: against independent float64 references, and against waiting for the window."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.learners.censored import age_edges
from tests.injected import injected
from tests.learners.test_references import compare, each_delay
from tests.reference import learners as reference


@each_delay
@pytest.mark.parametrize("window", [60, pytest.param(9, marks=pytest.mark.thorough), pytest.param(1, marks=pytest.mark.thorough)])
def test_kl_ucb_is_the_reference(delays, window):
    """Rejects ages counted a round early or late, conversions that stay open, and a curve that ignores outstanding actions."""
    compare(jb.CensoredKLUCB(window, 0.4), reference.CensoredKLUCB(4, window, 0.4), delays, kind="continuous")


@pytest.mark.parametrize("window", [40, 8])
def test_thompson_has_the_posterior_of_the_reference(window):
    """Rewards, failures, rates and curve of the last round; that a draw is right is tested of Thompson sampling itself."""
    rng = np.random.default_rng(3)
    losses = (rng.random((120, 3)) < 0.7) * 1.0
    waits, arms = np.where(rng.random(120) < 0.9, rng.integers(0, 15, 120), np.inf), rng.integers(0, 3, 120)
    theirs = reference.CensoredThompson(3, window)
    theirs.act = lambda t, outstanding: theirs.posterior(t) and np.full(3, 1 / 3)  # its integrals are not needed
    reference.play(theirs, arms, losses, waits)
    with jax.enable_x64(True):
        state = injected(jb.CensoredThompson(window), arms, losses, waits)["state"]
    np.testing.assert_allclose(state.rates, theirs.rates, rtol=1e-9)
    np.testing.assert_allclose(state.arrived, theirs.curve, rtol=1e-9)
    assert np.asarray(state.open).min() == 0
    assert np.asarray(state.open).sum() + np.asarray(state.closed).sum() == 120


def test_edges():
    for window in (1, 2, 5, 16, 17, 1000):
        edges = age_edges(window)
        assert (edges[0], edges[-1]) == (0, window)
        assert (np.diff(edges) > 0).all()
        assert len(edges) <= 17


@pytest.mark.thorough
def test_the_curve_is_learned():
    """Failures are never observed: a curve learned from conversions alone is that of their delays."""
    delays = jb.delays.LossDependent(no_conversion=jb.delays.PacketLoss(0.0), conversion=jb.delays.Geometric(30.0, bound=255))
    result = jb.simulate(
        jb.CensoredThompson(256), jb.losses.Bernoulli(rewards=[0.3, 0.2]), delays, rounds=2000, runs=16, seed=0, record=1
    )
    edges = age_edges(256)
    arrived = next(
        leaf for leaf in result.state if leaf.shape == (16, 16) and leaf.max() <= 1 and leaf.min() > 0 and leaf[-1].min() > 0.9
    )
    middle = (edges[1:] + edges[:-1]) / 2
    expected = 1 - (30 / 31) ** middle
    assert np.abs(arrived.mean(1) - expected).max() < 0.06
    waiting = jb.simulate(jb.KLUCB(0.3), jb.losses.Bernoulli(rewards=[0.3, 0.2]), delays, rounds=2000, runs=16, seed=0, record=1)
    assert result.regret[-1].mean() < 0.5 * waiting.regret[-1].mean()


@pytest.mark.thorough
def test_in_an_agent():
    agent = jb.Agent(jb.CensoredThompson(50), ["a", "b"], jax.random.key(0))
    for t in range(60):
        ticket = agent.act()
        if t % 3 == 0:
            agent.observe(ticket.id, reward=1.0)
    assert len(agent.outstanding()) == 40
