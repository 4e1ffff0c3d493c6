"""Gradients in the large blocks of an accelerator, here played by a CPU that says it is one."""

from typing import Any

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._engine import blocks
from jaxbandit._engine import choose as choosing
from jaxbandit.gradients import estimators, programs

GAME = jb.BestOfBothWorlds(4), jb.losses.Bernoulli([0.3, 0.5, 0.5]), jb.delays.Fixed(4)


@pytest.mark.parametrize(
    ("options", "copies"),
    [
        pytest.param({"only": ["factor"]}, 2, marks=pytest.mark.thorough),
        pytest.param({"only": ["factor"], "reverse": True}, 16, marks=pytest.mark.thorough),
        pytest.param({"only": ["factor"], "estimator": "paired"}, 1, marks=pytest.mark.thorough),
        pytest.param({"only": ["factor"], "estimator": "score"}, 2, marks=pytest.mark.thorough),
    ],
)
def test_one_large_block(monkeypatch, options, copies):
    """Run by run the same derivatives, whatever the block; a block of the size that accelerators have."""
    arguments: dict[str, Any] = {"rounds": 70, "runs": 600, "key": jax.random.key(1), **options}
    here = jb.regret_gradient(*GAME, **arguments)
    sizes, real, kept, choose = [], programs.play_blocks, [], estimators.execution_for

    def counted(play, player, game, *, size, **options):
        sizes.append(size)
        return real(play, player, game, size=size, **options)

    monkeypatch.setattr(programs, "play_blocks", counted)
    monkeypatch.setattr(
        estimators, "execution_for", lambda game, at_once, **rest: kept.append(at_once) or choose(game, at_once=at_once, **rest)
    )
    monkeypatch.setattr(blocks, "platform", lambda: "gpu")
    monkeypatch.setattr(choosing, "ACCELERATOR_BLOCKS", ((32, 1024),))
    there = jb.regret_gradient(*GAME, **arguments)
    assert (set(sizes), kept) == ({1024}, [copies])
    # Baselines of the score and groups of reverse mode are of the block (the last group is filled up with runs that were not asked
    # for); derivatives of the others are the runs' own.
    by_block = "reverse" in options or options.get("estimator") == "score"
    apart = 3 * there.error.factor if by_block else 0.02 * abs(here.gradient.factor)
    assert abs(there.gradient.factor - here.gradient.factor) < apart
    np.testing.assert_allclose(there.value, here.value, rtol=2e-3)
