"""Learners for other shapes of late feedback: against independent float64 references, and against what they were made for."""

import dataclasses

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.learners.conversions import poisson_excess
from tests.injected import injected
from tests.learners.test_references import ROUNDS, compare, each_delay
from tests.reference import learners as reference

CURVES = {
    "at once": [1.0],
    "half of them": [0.0, 0.2, 0.2, 0.5],
    "long": 1 - 0.83 ** np.arange(1, 21),
}  # no two sums of its entries are equal


@each_delay
@pytest.mark.parametrize("curve", [pytest.param(c, marks=() if c == "long" else pytest.mark.thorough) for c in CURVES])
def test_conversions_are_the_reference(delays, curve):
    """Rejects a curve read one round early or late, and one that ends before its last entry."""
    curve = CURVES[curve]
    compare(jb.DelayedUCB(curve), reference.DelayedUCB(4, curve), delays)
    compare(jb.DelayedKLUCB(curve, 0.5), reference.DelayedKLUCB(4, curve, 0.5), delays, kind="continuous")


def test_poisson_excess():
    """To the last digits, from rare conversions to rates above 1."""
    mean, level = (grid.ravel() for grid in np.meshgrid([0, 1e-6, 1e-3, 0.1, 0.9, 3.0], [0, 1e-7, 1e-4, 0.05, 2.0, 50.0]))
    with jax.enable_x64(True):
        got = np.asarray(poisson_excess(jnp.asarray(mean), jnp.asarray(level)))
    with mpmath.workdps(40):
        for one, height, found in zip(mean, level, got, strict=True):
            one, height, low, high = map(mpmath.mpf, (one, height, 0, 200))
            for _ in range(150):
                middle = (low + high) / 2
                beyond = middle - (one * mpmath.log1p(middle / one) if one else 0) - height
                low, high = (low, middle) if beyond > 0 else (middle, high)
            assert abs(found - float(low)) <= 1e-12 * float(one + low) + 1e-9 * float(low)


def test_a_falling_curve_is_refused():
    with pytest.raises(ValueError, match="never fall"):
        jb.simulate(jb.DelayedUCB([0.5, 0.4]), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(1), rounds=5, runs=2, seed=0)


@each_delay
@pytest.mark.parametrize("horizon", [pytest.param(ROUNDS, marks=pytest.mark.thorough), 2])  # 2: arms go
def test_opse_is_the_reference(delays, horizon):
    """Rejects an average over what has come, and missing plays that count the same in both bounds."""
    theirs = reference.OptimisticPessimisticElimination
    compare(jb.OptimisticPessimisticElimination(horizon), theirs(4, horizon), delays)
    compare(jb.OptimisticPessimisticElimination(horizon), theirs(7, horizon), delays, arms=7, kind="continuous")


@each_delay
@pytest.mark.parametrize("window", [40, pytest.param(3, marks=pytest.mark.thorough), pytest.param(1, marks=pytest.mark.thorough)])
def test_sliding_window_is_the_reference(delays, window):
    """Rejects a window counted from the arrival, and one that is a round too long or too short."""
    compare(jb.SlidingWindowUCB(window), reference.SlidingWindowUCB(4, window), delays, kind="continuous")


@each_delay
@pytest.mark.parametrize("discount", [0.97, pytest.param(0.5, marks=pytest.mark.thorough)])
def test_discounted_is_the_reference(delays, discount):
    compare(jb.DiscountedUCB(discount, 0.3), reference.DiscountedUCB(4, discount, 0.3), delays, kind="continuous")


@pytest.mark.parametrize("kind", ["window", "discount"])
def test_forgetful_thompson_remembers_what_the_reference_does(kind):
    """The posterior of the last round; that a draw from it is right is tested of Thompson sampling itself."""
    rng = np.random.default_rng(3)
    losses, waits, arms = rng.random((120, 3)), rng.integers(0, 15, 120), rng.integers(0, 3, 120)
    mine = jb.SlidingWindowThompson(30) if kind == "window" else jb.DiscountedThompson(0.95)
    theirs = reference.SlidingWindowThompson(3, 30) if kind == "window" else reference.DiscountedThompson(3, 0.95)
    theirs.act = lambda t, outstanding: np.full(3, 1 / 3)  # its integrals are not needed
    reference.play(theirs, arms, losses, waits)
    theirs.tally(121)
    with jax.enable_x64(True):
        state = injected(mine, arms, losses, waits)["state"]
        counts, sums = (state.counts(), state.losses()) if kind == "window" else (0.95 * state.count, 0.95 * state.total)
    assert 0 < theirs.counts.sum() < 110
    np.testing.assert_allclose(counts, theirs.counts, rtol=1e-9)
    np.testing.assert_allclose(sums, theirs.sums, rtol=1e-9)


def test_the_delay_is_the_payoff():
    """round(D·ℓ) for every loss, and the longest is that of the loss 1."""
    law = jb.delays.DelayAsPayoff(40)
    losses = np.linspace(0, 1, 201)
    drawn = [int(law.draw(jnp.int32(1), jnp.int32(0), jnp.float32(loss), jnp.float32(0.5))) for loss in losses]
    exact = 40 * losses
    assert np.all(np.abs(drawn - exact) <= 0.5 + 1e-5)
    assert (drawn[0], drawn[-1], law.longest(), law.may_lose) == (0, 40, 40, False)


@each_delay
@pytest.mark.parametrize("phase", [0.3, pytest.param(20.0, marks=pytest.mark.thorough)], ids=["phase errors", "phases end"])
def test_sapo_is_the_reference(delays, phase):
    """Constants so small that it happens within 300 rounds. Rejects banks that forget their level, and phases of the arm's plays alone."""
    theirs = reference.DelayedSAPO(4, ROUNDS, separation=0.0, phase=phase)
    compare(jb.DelayedSAPO(ROUNDS, separation=0.0, phase=phase), theirs, delays)
    if phase < 1:
        assert any(arm.errors for arm in theirs.dropped.values())
    else:
        assert len({level for at in theirs.level_at.values() for level in at.values()}) > 1


@pytest.mark.parametrize("check", [pytest.param("sum of losses", marks=pytest.mark.thorough), "interval"])
def test_sapo_falls_back_when_losses_jump(check):
    """Both checks, each alone. Rejects a base that is told of plays before its own, and bounds that rise again."""
    options = {"horizon": ROUNDS, "limit": 0.0} if check == "sum of losses" else {"horizon": 3, "limit": 100.0}
    losses = np.full((ROUNDS, 2), 0.0)
    losses[100:] = 1.0
    if check == "interval":
        losses[:, 1] = 1 - losses[:, 0]
    waits = np.random.default_rng(2).integers(0, 4, ROUNDS)
    theirs = reference.DelayedSAPO(2, **options)
    expected = reference.play(theirs, None, losses, waits, rng=np.random.default_rng(5))
    assert 100 < theirs.start < 270
    with jax.enable_x64(True):
        got = injected(jb.DelayedSAPO(**options), expected["arms"], losses, waits)
    np.testing.assert_allclose(got["probabilities"], expected["probabilities"], rtol=1e-9, atol=1e-9)


@each_delay
def test_odaaf_is_the_reference(delays):
    """A horizon so short that phases are. Rejects rewards counted to the arm they come from, and bridges that count."""
    theirs = reference.ODAAF(3, 1.5, 0.1)
    compare(jb.ODAAF(1.5, 0.1), theirs, delays, arms=3)
    assert theirs.phase > 2


def test_odaaf_sees_sums_alone():
    """Whoever made the plays that come, and whenever: the state is the same."""
    learner = jb.ODAAF(1000.0, 5.0)
    state = dataclasses.replace(learner.init(3, ()), counted=jnp.int32(1))
    after = []
    for arm, origin in ((0, 1), (2, 7)):
        seen = [jnp.asarray(True), jnp.int32(origin), jnp.int32(arm), jnp.float32(0.25), jnp.float32(0.5), ()]
        after.append(jax.tree.leaves(learner.observe(state, jb.learners.Observation(*seen))))
    assert any(np.any(one != two) for one, two in zip(jax.tree.leaves(state), after[0], strict=True))
    for one, two in zip(*after, strict=True):
        np.testing.assert_array_equal(one, two)
