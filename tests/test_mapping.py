"""``jb.rollout`` under vmap, jit and differentiation: mapped axes become the axis of runs, with unchanged numbers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._engine import mapping
from jaxbandit._engine.player import Player

ROUNDS, KEY = 25, jax.random.key(1)
KEYS, NUMBERS = jax.random.split(KEY, 5), jnp.linspace(0.5, 2, 5)


def regret(law, key=KEY, factor=1.0, shift=0.0, run=0, mean=3.0, runs=None):
    delays = jb.delays.Fixed(5) if law == "fixed" else jb.delays.Geometric(mean, bound=15)
    losses = jb.losses.Bernoulli(jnp.linspace(0.3, 0.6, 3) + shift)
    learner = jb.BestOfBothWorlds(10, 1.0, factor)
    return jb.rollout(learner, losses, delays, rounds=ROUNDS, key=key, first_run=run, record=[10, ROUNDS], runs=runs).regret[-1]


MAPS = {
    "keys": lambda f: jax.vmap(lambda key: f(key=key))(KEYS),
    "run ids": lambda f: jax.vmap(lambda run: f(run=run))(jnp.arange(5)),
    "runs and keys": lambda f: jax.vmap(lambda key: f(key=key, runs=3))(KEYS),
    "factor": lambda f: jax.vmap(lambda factor: f(factor=factor))(NUMBERS),
    "means": lambda f: jax.vmap(lambda shift: f(shift=shift))(NUMBERS / 10),
    "delay": lambda f: jax.vmap(lambda mean: f(mean=mean))(NUMBERS + 1),
    "nested": lambda f: jax.vmap(lambda factor: jax.vmap(lambda key: f(key=key, factor=factor))(KEYS))(NUMBERS),
    "vmap(grad)": lambda f: jax.vmap(jax.grad(lambda factor, key: f(factor=factor, key=key)))(NUMBERS, KEYS),
    "grad(vmap)": lambda f: jax.grad(lambda factor: jax.vmap(lambda key: f(factor=factor, key=key))(KEYS).mean())(1.0),
    "jacfwd(vmap)": lambda f: jax.jacfwd(lambda factor: jax.vmap(lambda key: f(factor=factor, key=key))(KEYS))(1.0),
}
QUICK = {"nested", "grad(vmap)"}


def loop(function, *arguments):
    """``jax.vmap`` by a Python loop."""
    return lambda *mapped: jnp.stack([function(*one) for one in zip(*mapped, strict=True)])


@pytest.mark.parametrize("law", ["fixed", "geometric"])
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.thorough) for n in MAPS])
def test_maps_are_loops(name, law, monkeypatch):
    """Rejects axes that are taken for each other, and derivatives of rounds that the rule of vmap plays otherwise."""
    rolled = functools.partial(regret, law)
    mapped = jax.jit(lambda: MAPS[name](rolled))()
    monkeypatch.setattr(jax, "vmap", loop)
    np.testing.assert_allclose(mapped, MAPS[name](rolled), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("delays", [jb.delays.Fixed(5), jb.delays.Geometric(3.0, bound=15)], ids=["fixed", "geometric"])
def test_mapped_run_ids_are_bitwise_the_runs_of_a_simulation(delays):
    game = jb.BestOfBothWorlds(15, 1.0, 1.0), jb.losses.Bernoulli([0.3, 0.5, 0.5]), delays
    simulated = jb.simulate(*game, rounds=60, runs=300, seed=0, record=[60]).regret[-1]

    def one(run):
        return jb.rollout(*game, rounds=60, seed=0, first_run=run, record=[60]).regret[-1]

    np.testing.assert_array_equal(jax.vmap(one)(jnp.arange(300)), simulated)
    # Inside a user's program feedback is delivered one by one: sums are rounded in another order than in arrival slots.
    jitted = jax.jit(jax.vmap(one))(jnp.arange(300))
    assert np.mean(np.abs(jitted - simulated) < 1e-3 * (1 + simulated)) > 0.97


def test_a_mapped_rollout_plays_all_runs_at_once(monkeypatch):
    """Rejects a rule that leaves the mapped axis to vmap: runs would come first and queues be walked whole."""
    shapes, original = [], Player.advance
    monkeypatch.setattr(Player, "advance", lambda self, game, *a: shapes.append(game.runs.shape) or original(self, game, *a))
    mapping._program.clear_cache()
    MAPS["nested"](functools.partial(regret, "geometric"))
    assert (25,) in shapes


@pytest.mark.parametrize("form", [jax.vmap, lambda function: jax.jit(jax.vmap(function))], ids=["vmap", "jit"])
def test_more_runs_than_a_block_are_those_of_simulate(form):
    """i.i.d. delays are played block after block; 300 runs are one block and a part. Rejects blocks that mix up runs or their values."""
    means = jnp.linspace(0.1, 0.4, 300)

    def regret(run, mean):
        game = jb.DelayedExp3(), jb.losses.Bernoulli(jnp.stack([mean, jnp.float32(0.5)])), jb.delays.Geometric(3.0, bound=15)
        return jb.rollout(*game, rounds=60, key=KEY, first_run=run, record=[20, 60]).regret

    found = form(regret)(jnp.arange(300), means)
    losses = jb.losses.Bernoulli(np.stack([means, np.full(300, 0.5, np.float32)]))
    result = jb.simulate(
        jb.DelayedExp3(), losses, jb.delays.Geometric(3.0, bound=15), rounds=60, runs=300, key=KEY, record=[20, 60]
    )
    np.testing.assert_allclose(found.T, result.regret, rtol=1e-4)
