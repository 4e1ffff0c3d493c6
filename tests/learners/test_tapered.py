"""TaperedFTRL against its NumPy reference, past its horizon, and its derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.learners.tapered import remaining
from tests.learners.test_references import ROUNDS, compare, each_delay
from tests.reference import learners as reference

NUMBERS = {"robustness": 0.8, "power": 0.75, "tsallis_scale": 0.9}


@each_delay
@pytest.mark.parametrize("arms", [2, 5])
@pytest.mark.parametrize("horizon", [ROUNDS, 70])  # 70: the horizon is doubled three times
def test_reference(delays, arms, horizon):
    compare(jb.TaperedFTRL(horizon), reference.TaperedFTRL(arms, horizon), delays, arms)
    compare(jb.TaperedFTRL(horizon, **NUMBERS), reference.TaperedFTRL(arms, horizon, **NUMBERS), delays, arms, kind="continuous")


def test_remaining_share():
    """Exact at the ends, where a logarithm would be rounded; never 0, also where float32 does not hold the round."""
    t, horizon = np.arange(1, 5000, dtype=np.float32), 37.0
    doubled = horizon * 2.0 ** np.array([next(k for k in range(20) if horizon * 2**k >= one) for one in t])
    np.testing.assert_allclose(remaining(jnp.asarray(t), jnp.float32(horizon)), (doubled - t + 1) / doubled, rtol=1e-6)
    assert remaining(jnp.float32(2**25 + 1), jnp.float32(2**25)) > 0
    assert remaining(jnp.float32(1), jnp.float32(1)) == 1


@pytest.mark.filterwarnings("ignore:.*guarantee")
def test_without_taper_it_is_mzs22_without_constants():
    losses, delays = jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(7)
    options = {"rounds": 300, "runs": 64, "seed": 4, "record": 3}
    plain = jb.BestOfBothWorlds(0, linear=0.0, factor=0.0, tsallis_scale=0.6, entropy_scale=0.5)
    mine, theirs = (jb.simulate(one, losses, delays, **options) for one in (jb.TaperedFTRL(300, power=0.0), plain))
    # Their solvers stop at other places, and rounding may flip the arm of a rare run.
    assert np.mean(np.abs(mine.regret[-1] - theirs.regret[-1]) < 1e-2 * theirs.regret[-1]) > 0.9


@pytest.mark.thorough
@pytest.mark.parametrize("share", [0.8, 0.5])
def test_a_horizon_that_is_too_short_is_not_ruinous(share):
    """Delay-matched switching that begins at the given horizon. Rates that stayed at their last value would follow each change at once.

    A negative control: the same learner stopped from doubling (its horizon is huge and its robustness that of the last round) loses more.
    """
    rounds, delay = 2000, 20
    start = int(share * rounds)
    flip = np.maximum(np.arange(rounds) - start, 0) // (2 * delay) % 2
    table = np.stack([flip, 1 - flip], 1) * (np.arange(rounds) >= start)[:, None] * 1.0
    table[:start] = 0.5
    losses, delays = jb.losses.Table(table), jb.delays.Fixed(delay)
    options = {"rounds": rounds, "runs": 512, "seed": 1, "record": 1}
    right, short, stuck = (
        jb.simulate(learner, losses, delays, **options).estimate()
        for learner in (
            jb.TaperedFTRL(rounds),
            jb.TaperedFTRL(start),
            jb.TaperedFTRL(1e8, robustness=0.5 * start**-0.5),
        )
    )
    assert short.mean[-1] < 1.5 * right.mean[-1] + 20
    assert stuck.mean[-1] > 3 * short.mean[-1]


@pytest.mark.thorough
def test_gradient_agrees_with_paired_differences():
    game = jb.TaperedFTRL(200, robustness=0.8), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5)
    options = {"rounds": 200, "runs": 4096, "seed": 0, "only": ["robustness"]}
    jump, paired = (jb.regret_gradient(*game, **options, estimator=estimator) for estimator in ("jump", "paired"))
    error = np.hypot(jump.error.robustness, paired.error.robustness)
    assert abs(jump.gradient.robustness - paired.gradient.robustness) < 5 * error + 0.03 * abs(paired.gradient.robustness)
    assert jump.gradient.robustness > 5 * jump.error.robustness > 0  # robustness has a price under stochastic losses


@pytest.mark.thorough
def test_gradients_are_numbers():
    """Reverse mode through the last round and past the horizon."""
    losses, delays = jb.losses.Bernoulli([0.3, 0.5, 0.6]), jb.delays.UniformRandom(0, 3)

    def regret(learner):
        return jb.rollout(learner, losses, delays, rounds=30, key=jax.random.key(0), runs=4, record=[30]).regret.mean()

    for horizon in (30.0, 12.0):
        gradient = jax.jit(jax.grad(regret))(jax.tree.map(lambda leaf: jnp.asarray(leaf, float), jb.TaperedFTRL(horizon)))
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))


def test_one_arm_one_round_and_an_agent():
    one = jb.simulate(jb.TaperedFTRL(20), jb.losses.Bernoulli([0.3]), jb.delays.Fixed(2), rounds=20, runs=4, seed=0)
    np.testing.assert_array_equal(one.regret, 0)
    jb.simulate(jb.TaperedFTRL(1), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(0), rounds=1, runs=2, seed=0)
    agent = jb.Agent(jb.TaperedFTRL(horizon=5), arms=["a", "b"], seed=0)
    for _ in range(12):  # past the horizon
        ticket = agent.act()
        assert 0 < ticket.probability <= 1
        agent.observe(ticket.id, loss=0.5)
