"""Programs on a CPU: one function where XLA can, without options of the process, and the same numbers either way."""

import dataclasses
import subprocess
import sys

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._engine import blocks
from jaxbandit._engine.choose import choose_execution, fitted
from jaxbandit._engine.game import Game

GAME = jb.BestOfBothWorlds(5, 1.0, 1.0), jb.losses.Bernoulli([0.3, 0.5, 0.5]), jb.delays.Geometric(3.0, bound=15)


def compiled_text(one_function):
    game = Game.set_up(*GAME, jax.random.key(0), np.arange(256, dtype=np.uint32))
    player, game = fitted(game, dataclasses.replace(choose_execution(game, "cpu"), one_function=one_function))
    arguments = player, game, blocks.start(player, game), np.int32(0), np.array([5, 10], np.int32)
    return blocks.advance.lower(*arguments, probabilities=False).compile().as_text()


def test_the_program_of_a_block_carries_the_mark():
    """Newer versions of XLA mark a few small calls by themselves."""
    plain, marked = (compiled_text(one).count("xla_cpu_small_call") for one in (False, True))
    assert marked > plain


@pytest.mark.parametrize(
    "learner",
    [pytest.param(jb.TsallisINF("rv"), marks=pytest.mark.thorough), jb.QPMD(jb.TsallisINF(), 20)],
    ids=["compiles", "has a scatter"],
)
def test_numbers_and_record_of_the_execution(learner, monkeypatch):
    """Where XLA cannot emit one function, the program is compiled as usual, and the Result says so."""
    options = dict(rounds=60, runs=20, seed=0, record=[30, 60])
    game = learner, *GAME[1:]
    result = jb.simulate(*game, **options)
    assert result.program["one_function"] == isinstance(learner, jb.TsallisINF)
    choose = blocks.choose_execution
    monkeypatch.setattr(blocks, "choose_execution", lambda *a, **k: dataclasses.replace(choose(*a, **k), one_function=False))
    plain = jb.simulate(*game, **options)
    assert not plain.program["one_function"]
    np.testing.assert_allclose(result.regret, plain.regret, rtol=1e-5, atol=1e-5)


CODE = """
import os, jax, jax.numpy as jnp
before = dict(os.environ), len(jax.devices()), jax.config.values.copy() if hasattr(jax.config, "values") else None
import jaxbandit as jb
result = jb.simulate(jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(3), rounds=20, runs=1100, seed=0)
assert result.program["one_function"]
assert (dict(os.environ), len(jax.devices())) == before[:2]
"""


def test_a_simulation_after_jax_has_started_changes_nothing_of_the_process():
    subprocess.run([sys.executable, "-c", CODE], check=True, timeout=300)
