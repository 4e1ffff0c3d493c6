"""Reductions over the arms against NumPy, and drawing an arm against a cumulative sum in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxbandit._core import arms

draw = jax.jit(arms.draw)
FEW, MORE = [1, 2, 16, 17, 100], [15, 31, 1000]
SIZES = pytest.mark.parametrize("num_arms", [*FEW, *(pytest.param(size, marks=pytest.mark.slow) for size in MORE)])
SHAPES = pytest.mark.parametrize("shape", [pytest.param((), marks=pytest.mark.thorough), (5,)], ids=["one", "five"])
LAST = np.float32(1 - 2.0**-24)  # the largest uniform number there is in float32
EPS = np.finfo(np.float32).eps


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@SIZES
@SHAPES
def test_sums(num_arms, shape):
    one, other = normal(0, num_arms, *shape), normal(1, num_arms, *shape)
    got = jax.jit(arms.sums)(one, other)
    for mine, array in zip(got, (one, other), strict=True):
        assert mine.shape == shape
        exact, scale = array.astype(float).sum(0), np.abs(array.astype(float)).sum(0)
        assert (np.abs(mine - exact) <= EPS * (num_arms**0.5 + 1) * scale).all()
    # Whole numbers add up without rounding: every arm counts once.
    whole = jnp.asarray(np.random.default_rng(2).integers(-50, 50, (num_arms, *shape)), jnp.float32)
    np.testing.assert_array_equal(arms.sums(whole)[0], np.asarray(whole).sum(0))


@pytest.mark.thorough
@SIZES
@SHAPES
def test_sums_derivatives(num_arms, shape):
    """Forward, reverse and second order; a sum of squares so that nothing is constant."""
    x, v = jnp.asarray(normal(3, num_arms, *shape)), jnp.asarray(normal(4, num_arms, *shape))

    def f(x):
        square, cube = arms.sums(x**2, x**3)
        return jnp.sum(square + cube)

    value, tangent = jax.jvp(f, (x,), (v,))
    gradient = jax.grad(f)(x)
    expected = 2 * x + 3 * x**2
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(tangent, (expected * v).sum(), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(value, (x**2 + x**3).sum(), rtol=1e-4, atol=1e-3)
    _, curvature = jax.jvp(jax.grad(f), (x,), (v,))
    np.testing.assert_allclose(curvature, (2 + 6 * x) * v, rtol=1e-5, atol=1e-5)


@SIZES
@SHAPES
def test_least(num_arms, shape):
    array = normal(5, num_arms, *shape)
    np.testing.assert_array_equal(jax.jit(arms.constant_min)(array), array.min(0))
    np.testing.assert_array_equal(jax.grad(lambda a: arms.constant_min(a).sum())(jnp.asarray(array)), 0)
    for place in {0, num_arms // 2, num_arms - 1}:
        array[place] = -100 - place
        np.testing.assert_array_equal(arms.constant_min(jnp.asarray(array)), array.min(0))


@SIZES
@SHAPES
def test_pick(num_arms, shape):
    rng = np.random.default_rng(6)
    values = normal(7, num_arms, *shape)
    for arm in (np.zeros(shape), np.full(shape, num_arms - 1), rng.integers(0, num_arms, shape)):
        arm = np.asarray(arm, np.int32)
        expected = np.take_along_axis(values, arm[None], 0)[0]
        np.testing.assert_array_equal(jax.jit(arms.pick)(values, arm), expected)
        np.testing.assert_array_equal(jax.jit(arms.pick)(normal(8, num_arms), arm), normal(8, num_arms)[arm])
        gradient = jax.grad(lambda v, arm=arm: arms.pick(v, arm).sum())(jnp.asarray(values))
        np.testing.assert_array_equal(gradient, np.asarray(arms.one_hot(jnp.asarray(arm), num_arms), np.float32))


def test_one_hot_without_an_arm():
    np.testing.assert_array_equal(arms.one_hot(jnp.array([-1, 0, 2, 3]), 3), np.eye(3)[:, [0, 0, 2, 0]] * [0, 1, 1, 0])


def reference_cells(probabilities):
    """The borders of the cells ``[K + 1]`` in float64, the total stretched to one."""
    borders = np.concatenate([[0], np.cumsum(probabilities.astype(float))])
    return borders / borders[-1]


def check_draws(probabilities, uniforms):
    """Each uniform's arm has positive weight, and its cell holds the uniform up to rounding at the border."""
    num_arms = len(probabilities)
    columns = np.repeat(probabilities[:, None], len(uniforms), 1)
    got = np.asarray(jax.jit(arms.draw)(columns, uniforms))
    assert got.dtype == np.int32
    assert (got >= 0).all()
    assert (got < num_arms).all(), (num_arms, got.max())
    idle = probabilities[got] == 0
    assert not idle.any(), (num_arms, uniforms[idle][:3], got[idle][:3])
    borders, slack = reference_cells(probabilities), 2 * EPS * (num_arms**0.5 + 1)
    outside = (uniforms < borders[got] - slack) | (uniforms > borders[got + 1] + slack)
    assert not outside.any(), (num_arms, uniforms[outside][:3], got[outside][:3])
    # Away from the borders there is nothing to round: the very same arm.
    expected = np.searchsorted(borders, uniforms, "right") - 1
    inside = (uniforms - borders[expected] > slack) & (borders[expected + 1] - uniforms > slack)
    np.testing.assert_array_equal(got[inside], expected[inside])


def near_borders(probabilities):
    """The uniform numbers on each side of every cell border, besides the first and the last there are."""
    grains = np.round(reference_cells(probabilities) * 2**24)[:, None] + np.arange(-4, 5)
    return np.append(np.clip(grains.ravel(), 0, 2**24 - 1) / 2**24, [0, LAST]).astype(np.float32)


@SIZES
@pytest.mark.parametrize("zeros", ["none", "first", "last", "half", "most"])
def test_draw_against_float64(num_arms, zeros):
    for seed in range(5):
        rng = np.random.default_rng([num_arms, seed])
        weights = rng.random(num_arms) ** rng.choice([1, 8])
        kept = rng.integers(num_arms)
        if zeros == "first":
            weights[: (num_arms + 2) // 3] = 0
        elif zeros == "last":
            weights[-((num_arms + 2) // 3) :] = 0
        elif zeros in ("half", "most"):
            weights[rng.random(num_arms) < {"half": 0.5, "most": 0.95}[zeros]] = 0
        weights[kept] = 1 if weights.sum() == 0 else weights[kept]
        probabilities = (weights / weights.sum()).astype(np.float32)
        check_draws(
            probabilities, np.concatenate([near_borders(probabilities), rng.integers(0, 2**24, 2000) / 2**24]).astype(np.float32)
        )


@SIZES
@SHAPES
def test_draw_one_hot(num_arms, shape):
    """A sure arm is drawn whatever the number, in any shape of runs."""
    for arm in {0, num_arms // 2, num_arms - 1}:
        sure = jnp.zeros((num_arms, *shape)).at[arm].set(1.0)
        for uniform in (0.0, 0.5, LAST):
            drawn = draw(sure, jnp.full(shape, uniform, jnp.float32))
            assert drawn.shape == shape
            np.testing.assert_array_equal(drawn, arm)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_draw_any_weights(data):
    num_arms = data.draw(st.sampled_from([2, 16, 17, 300]))
    weight = st.one_of(st.just(0.0), st.sampled_from([1e-30, 1e-12, 1e-6]), st.floats(0, 1, width=32))
    weights = np.array(data.draw(st.lists(weight, min_size=num_arms, max_size=num_arms)))
    weights[data.draw(st.integers(0, num_arms - 1))] += 0.5
    probabilities = (weights / weights.sum()).astype(np.float32)
    uniforms = data.draw(st.lists(st.integers(0, 2**24 - 1), min_size=6, max_size=6))
    check_draws(probabilities, np.array([0, 2**24 - 1, *uniforms], np.float32) / np.float32(2**24))


@pytest.mark.parametrize("num_arms", [5, pytest.param(300, marks=pytest.mark.slow)])
def test_draw_frequencies(num_arms):
    """Chi-square of a million draws; some arms have weight 0 and are never drawn."""
    rng, count = np.random.default_rng(num_arms), 1_000_000
    weights = rng.random(num_arms) + 0.05
    weights[rng.integers(0, num_arms, num_arms // 5)] = 0
    probabilities = (weights / weights.sum()).astype(np.float32)
    draws = jax.jit(lambda uniform: arms.draw(jnp.broadcast_to(probabilities[:, None], (num_arms, uniform.size)), uniform))
    counts = np.zeros(num_arms)
    for _ in range(10):
        uniforms = (rng.integers(0, 2**24, count // 10) / 2**24).astype(np.float32)
        counts += np.bincount(np.asarray(draws(uniforms)), minlength=num_arms)
    expected, alive = count * probabilities.astype(float) / probabilities.astype(float).sum(), probabilities > 0
    assert (counts[~alive] == 0).all()
    chi_square, freedom = ((counts - expected)[alive] ** 2 / expected[alive]).sum(), alive.sum() - 1
    assert abs(chi_square - freedom) < 5 * np.sqrt(2 * freedom)


def test_draw_in_float64():
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        for num_arms in (5, 17, 300):
            probabilities = rng.dirichlet(np.full(num_arms, 0.3))
            uniforms = rng.integers(0, 2**32, 2000) / 2**32
            got = np.asarray(draw(jnp.asarray(np.repeat(probabilities[:, None], 2000, 1)), jnp.asarray(uniforms)))
            np.testing.assert_array_equal(got, np.searchsorted(reference_cells(probabilities), uniforms, "right") - 1)
