"""``rollout`` as a user would write it: jit, vmap, jvp, grad; and the same numbers as ``simulate``."""

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._checks import derivatives

KEY = jax.random.key(3)
LOSSES = jb.losses.Bernoulli([0.3, 0.5, 0.5])


def final(learner, delays, key=KEY, losses=LOSSES, rounds=60, **options):
    return jb.rollout(learner, losses, delays, rounds=rounds, key=key, record=1, **options).regret[-1]


@pytest.mark.parametrize(
    "delays",
    [
        pytest.param(jb.delays.Fixed(4), marks=pytest.mark.thorough),
        jb.delays.Geometric(2.0, bound=8),
        pytest.param(jb.delays.Outlier(30), marks=pytest.mark.thorough),
    ],
)
def test_agrees_with_simulate(delays):
    result = jb.simulate(jb.BestOfBothWorlds(30), LOSSES, delays, rounds=60, runs=5, key=KEY, probabilities=True)
    mine = jb.rollout(
        jb.BestOfBothWorlds(30), LOSSES, delays, rounds=60, runs=5, key=KEY, record=result.rounds, probabilities=True
    )
    np.testing.assert_allclose(mine.regret, result.regret, rtol=1e-5)
    np.testing.assert_allclose(mine.probabilities, result.probabilities, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(np.broadcast_to(mine.total_delay.exact(), 5), result.total_delay)
    one = jb.rollout(jb.BestOfBothWorlds(30), LOSSES, delays, rounds=60, first_run=2, key=KEY, record=result.rounds)
    np.testing.assert_allclose(one.regret, result.regret[:, 2], rtol=1e-5)


@pytest.mark.thorough
def test_traced_rounds_agree_with_static_ones():
    def play(record):
        return jb.rollout(
            jb.TsallisINF(), LOSSES, jb.delays.Geometric(2.0, bound=8), rounds=record[-1], key=KEY, runs=4, record=record
        )

    traced = jax.jit(play)(jnp.array([10, 60]))
    np.testing.assert_allclose(traced.regret[-1], final(jb.TsallisINF(), jb.delays.Geometric(2.0, bound=8), runs=4), rtol=1e-5)


@pytest.mark.thorough
def test_vmap_over_seeds_learners_and_delays():
    keys = jax.random.split(KEY, 4)
    one = jax.jit(lambda key: final(jb.TsallisINF(), jb.delays.Geometric(2.0, bound=8), key))
    np.testing.assert_allclose(jax.vmap(one)(keys), [one(key) for key in keys], rtol=1e-4)

    factors = jnp.array([0.0, 1.0, 24.0])
    learners = jax.vmap(lambda factor: jb.BestOfBothWorlds(max_delay=4.0, factor=factor))(factors)
    over_learners = jax.vmap(lambda learner: final(learner, jb.delays.Fixed(4), runs=3))(learners)
    one = jax.jit(lambda factor: final(jb.BestOfBothWorlds(4.0, factor=factor), jb.delays.Fixed(4), runs=3))
    expected = [one(factor) for factor in factors]
    np.testing.assert_allclose(over_learners, expected, rtol=1e-4)

    waits = jnp.array([0, 3])
    over_delays = jax.vmap(lambda wait: final(jb.BestOfBothWorlds(4.0), jb.delays.Fixed(wait, bound=8), runs=3))(waits)
    np.testing.assert_allclose(
        over_delays, [final(jb.BestOfBothWorlds(4.0), jb.delays.Fixed(int(wait)), runs=3) for wait in waits], rtol=1e-4
    )
    both = jax.vmap(
        jax.vmap(lambda key, mean: final(jb.TsallisINF(), jb.delays.Geometric(mean, bound=8), key), (0, None)), (None, 0)
    )
    assert both(keys, jnp.array([1.0, 2.0])).shape == (2, 4)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "delays",
    [
        jb.delays.Fixed(3),
        pytest.param(jb.delays.Geometric(2.0, bound=8), marks=pytest.mark.thorough),
        pytest.param(jb.delays.Fixed(0), marks=pytest.mark.thorough),
    ],
)
def test_derivatives_with_the_arms_held_fixed(delays):
    """Forward and reverse mode agree with each other and with differences of the same path (float64, no arm flips)."""
    with jax.enable_x64(True):

        def regret(learner):
            return final(learner, delays, rounds=40, runs=6).mean()

        # At these scales a step of 1e-6 flips no arm in 40 rounds of 6 runs: the path is one smooth function.
        learner = jb.BestOfBothWorlds(max_delay=3.0, linear=2.0, factor=1.5, tsallis_scale=1.1, entropy_scale=0.9)
        learner = jax.tree.map(jnp.asarray, learner)
        reverse = jax.jit(jax.grad(regret))(learner)
        along = jax.jit(lambda direction: jax.jvp(regret, (learner,), (direction,))[1])
        value = jax.jit(regret)
        for field in ("linear", "factor", "tsallis_scale", "entropy_scale"):
            direction = dataclasses.replace(jax.tree.map(jnp.zeros_like, learner), **{field: jnp.ones(())})
            up, down = (jax.tree.map(lambda leaf, d, step=step: leaf + step * d, learner, direction) for step in (1e-6, -1e-6))
            forward, difference = along(direction), (value(up) - value(down)) / 2e-6
            np.testing.assert_allclose(forward, getattr(reverse, field), rtol=1e-8, atol=1e-12)
            np.testing.assert_allclose(forward, difference, rtol=1e-4, atol=1e-8)


@pytest.mark.thorough
def test_optax_updates_a_learner():
    import optax

    learner = jax.tree.map(jnp.asarray, jb.BestOfBothWorlds(max_delay=3.0))
    gradient = jax.grad(lambda learner: final(learner, jb.delays.Fixed(3), rounds=20))(learner)
    optimizer = optax.adam(0.1)
    updates, _ = optimizer.update(gradient, optimizer.init(learner), learner)  # type: ignore[arg-type]
    moved = optax.apply_updates(learner, updates)  # type: ignore[arg-type]
    assert isinstance(moved, jb.BestOfBothWorlds)
    assert float(moved.factor) != 24.0


@pytest.mark.thorough
def test_a_derivative_by_a_number_of_a_law_warns_once():
    """It would be taken for that of the expected regret; values and plain transformations say nothing."""

    def regret(gap, scale=1.0):
        law = jb.losses.Bernoulli(jnp.stack([0.3, 0.3 + gap]))
        return jb.rollout(jb.TsallisINF(scale=scale), law, jb.delays.Fixed(1), rounds=5, seed=0).regret[-1]

    derivatives._warn.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.jit(regret)(0.2)
        jax.vmap(regret)(jnp.array([0.1, 0.2]))
        jax.grad(lambda scale: regret(0.2, scale))(1.0)
    with pytest.warns(UserWarning, match="not that of the expected regret; jb.regret_gradient"):
        jax.grad(jax.jit(regret))(0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.grad(regret)(0.2)
