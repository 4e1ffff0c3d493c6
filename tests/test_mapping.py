"""``jb.rollout`` under vmap, jit and differentiation: mapped axes become the axis of runs, with unchanged numbers."""

import functools
import os
import re
import subprocess
import sys

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


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
    """Tests have two CPU devices, and only with one is a rollout within a user's program one function."""
    monkeypatch.setattr(jax, "device_count", lambda: 1)


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
    np.testing.assert_array_equal(jax.jit(jax.vmap(one))(jnp.arange(300)), simulated)


def lowered(learner, **options):
    """The text of a user's program that maps a rollout; the words that delays are drawn from are used by nothing in it."""

    def one(run):
        game = learner, jb.losses.Bernoulli([0.3, 0.5, 0.5]), jb.delays.Fixed(5)
        return jb.rollout(*game, rounds=20, seed=0, first_run=run, record=[20]).regret[-1]

    return jax.jit(jax.vmap(one)).trace(jnp.arange(8)).lower(**options)


def test_a_rollout_in_a_users_program_is_one_function_that_uses_all_its_parameters():
    """Rejects a call without the mark, and one with a parameter that nothing uses: XLA:CPU would end the process."""
    text = lowered(jb.TsallisINF()).compile().as_text() or ""
    calls = [line for line in text.splitlines() if " call(" in line and "to_apply=%all_used" in line]
    assert len(calls) == 1
    assert 'xla_cpu_small_call="true"' in calls[0]
    body = text.split(calls[0].split("to_apply=")[1].split(",")[0] + " (")[1].split("\n}")[0]
    assert all(body.count(f"%{name}") > 1 for name in re.findall(r"%(\S+) = \S+ parameter\(", body))


@pytest.mark.parametrize(
    ("learner", "platform"),
    [(jb.learners.make("qpm-d", base=jb.TsallisINF(), capacity=8), "cpu"), (jb.TsallisINF(), "cuda")],
    ids=["scatter", "exported"],
)
def test_calls_that_cannot_be_one_function_are_not_marked(learner, platform):
    """Rejects marks on what XLA:CPU cannot emit, and on programs for another platform."""
    assert "all_used" not in lowered(learner, lowering_platforms=(platform,)).as_text()


def test_programs_for_several_devices_are_not_marked(monkeypatch):
    """Rejects marks where XLA may divide the call among devices: it cannot compile the exchange of data inside."""
    monkeypatch.setattr(jax, "device_count", lambda: 2)
    assert "all_used" not in lowered(jb.Exp3()).as_text()


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


IN_USERS_PROGRAMS = """
from typing import Any

import jax, jax.numpy as jnp, numpy as np
from jax import lax
import jaxbandit as jb
from jaxbandit.extend import pytree_dataclass

@pytree_dataclass
class WithUnusedLeaf(jb.losses.Bernoulli):
    unused: Any = None

ids = jnp.arange(8)

def games(ids, leaf):
    losses = WithUnusedLeaf([0.3, 0.5, 0.5], unused=leaf)
    def one(run):
        return jb.rollout(jb.TsallisINF(), losses, jb.delays.Fixed(5), rounds=20, seed=0, first_run=run, record=[20])
    return jax.vmap(one)(ids)

leaf = jnp.zeros(3)
want = games(ids, leaf)
programs = {
    "constants, one field, in a scan": lambda: lax.scan(lambda c, _: (c, games(ids, leaf).lost), 0, None, 2)[1][0],
    "branches": lambda: jax.jit(lambda yes, i, u: lax.cond(yes, lambda: games(i, u).lost, lambda: games(ids, leaf).lost + 1))(True, ids, leaf),
    "twice": lambda: games(ids, leaf).lost + 0 * games(ids, leaf).lost,
    "an empty leaf": lambda: games(ids, jnp.zeros(0)).lost,
}
for name, program in programs.items():
    lowered = jax.jit(program).lower()
    assert "all_used" in lowered.as_text(), name
    np.testing.assert_array_equal(lowered.compile()(), want.lost, name)
lowered = jax.jit(games, donate_argnums=1).lower(ids, leaf)
assert "all_used" in lowered.as_text()
np.testing.assert_array_equal(lowered.compile()(ids, leaf).regret, want.regret)
print("all programs ran")
"""


@pytest.mark.thorough
def test_no_users_program_ends_the_process():
    """Rejects a marked call that loses a parameter to constants, dead results or unused leaves: XLA:CPU ends the process there."""
    one_device = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"} | {"JAX_NUM_CPU_DEVICES": "1"}
    found = subprocess.run([sys.executable, "-c", IN_USERS_PROGRAMS], env=one_device, capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "all programs ran", (found.returncode, found.stderr[-2000:])
