"""Exceptions inside measurements, and records where blocks of runs or segments of rounds end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._engine import simulation

GAME = jb.Uniform(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Geometric(3.0, bound=8)


class Failing:
    """A measurement that raises in one of its methods."""

    def __init__(self, where):
        self.where = where

    def _fail(self, where):
        if self.where == where:
            raise RuntimeError(f"mine, in {where}")

    def init(self, num_arms, runs_shape):
        self._fail("init")
        return jnp.zeros(runs_shape)

    def update(self, state, info):
        self._fail("update")
        return state + 1

    def read(self, state):
        self._fail("read")
        return {"count": state}


jax.tree_util.register_static(Failing)


@pytest.mark.parametrize("where", ["init", "update", "read"])
def test_an_exception_in_a_measurement_is_the_users_own(where):
    """It comes out as it was raised, and the next simulation is not disturbed by it."""
    with pytest.raises(RuntimeError, match=f"mine, in {where}"):
        jb.simulate(*GAME, rounds=10, runs=4, seed=0, measure=[Failing(where)])
    assert jb.simulate(*GAME, rounds=10, runs=4, seed=0, measure=[Failing("")]).measured["count"][-1].tolist() == [10] * 4


def test_records_at_the_ends_of_segments(monkeypatch):
    """Every round is recorded, and rounds beside the ends of segments are, however long segments are."""
    whole = jb.simulate(*GAME, rounds=40, runs=4, seed=0, record=range(1, 41))
    monkeypatch.setattr(simulation, "SEGMENT", 1)
    monkeypatch.setattr(simulation, "TICK", 0.0)  # segments never grow
    for record in (range(1, 41), [1, 2, 40], [39, 40], [40]):
        cut = jb.simulate(*GAME, rounds=40, runs=4, seed=0, record=record)
        np.testing.assert_array_equal(cut.regret, whole.regret[np.asarray(record) - 1])


def test_records_at_the_ends_of_blocks():
    """Runs on both sides of the end of a block, alone and among others, and resumed at a recorded round."""
    size = jb.simulate(*GAME, rounds=2, runs=1, seed=0).program["block"]
    whole = jb.simulate(*GAME, rounds=20, runs=size + 1, seed=0, record=[1, 10, 11, 20])
    for first, runs in ((0, size), (size - 1, 2), (size, 1)):
        part = jb.simulate(*GAME, rounds=20, runs=runs, first_run=first, seed=0, record=[1, 10, 11, 20])
        np.testing.assert_array_equal(part.regret, whole.regret[:, first : first + runs])
    begun = jb.simulate(*GAME, rounds=10, runs=size + 1, seed=0, record=[1, 10])
    later = jb.simulate(*GAME, rounds=20, runs=size + 1, seed=0, record=[11, 20], resume=begun)
    np.testing.assert_array_equal(np.vstack([begun.regret, later.regret]), whole.regret)
