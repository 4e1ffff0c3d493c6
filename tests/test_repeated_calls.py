"""A game is checked and identified once: a later call with the same numbers finds it, one with others does not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._core.contents import MOST_BYTES, contents
from jaxbandit._engine import set_up


def simulated(means, seed=0, learner=None):
    return jb.simulate(
        learner or jb.TsallisINF(), jb.losses.Bernoulli(means), jb.delays.Fixed(3), rounds=30, runs=5, first_run=2, seed=seed
    )


def test_a_repeated_call_gives_the_bits_and_identity_of_a_first_one():
    """Rejects a stored game that keeps the key or the run ids of its first call."""
    simulated([0.3, 0.5], seed=1)
    again = simulated([0.3, 0.5], seed=0)
    set_up._games.clear()
    first = simulated([0.3, 0.5], seed=0)
    assert again.identity == first.identity
    assert np.array_equal(again.regret, first.regret)
    for one, other in zip(again.state, first.state, strict=True):
        assert np.array_equal(one, other)


def test_numbers_changed_in_place_are_read_again():
    """Rejects games that are found by the object."""
    means = np.array([0.3, 0.5])
    losses = jb.losses.Bernoulli(means)
    options = {"rounds": 30, "runs": 5, "seed": 0}
    before = jb.simulate(jb.TsallisINF(), losses, jb.delays.Fixed(3), **options)
    means[0] = 0.1
    after = jb.simulate(jb.TsallisINF(), losses, jb.delays.Fixed(3), **options)
    assert before.identity["losses"] != after.identity["losses"]
    assert not np.array_equal(before.regret, after.regret)
    means[0] = 2.0
    with pytest.raises(ValueError, match="means"):
        jb.simulate(jb.TsallisINF(), losses, jb.delays.Fixed(3), **options)


def test_keys_tell_apart_what_python_takes_for_equal():
    """Rejects keys of the values alone: True == 1 == 1.0, and 0.0 == -0.0."""
    values = [
        True,
        1,
        1.0,
        "1",
        None,
        0.0,
        -0.0,
        np.float32(1),
        np.ones(()),
        np.ones(1),
        jnp.ones(()),
        (1,),
        [1],
        (1, 2),
        ((1,), 2),
    ]
    keys = [contents(value) for value in values]
    assert None not in keys
    assert len(set(keys)) == len(values)
    assert contents(float("nan")) == contents(float("nan"))
    assert contents(jb.delays.Geometric(2.0)) == contents(jb.delays.Geometric(2.0)) != contents(jb.delays.Geometric(3.0))


@jb.extend.pytree_dataclass
class Own(jb.TsallisINF):
    pass


def test_classes_from_elsewhere_are_checked_each_time():
    """Rejects a cache that keeps code of a user's class, which may change."""
    assert contents(Own()) is contents(jb.CoLo(Own(), delay=3)) is contents(lambda: 0) is None
    assert contents(np.zeros(MOST_BYTES)) is contents(jax.random.key(0)) is contents(np.ma.ones(2)) is None
    known = len(set_up._games)
    simulated([0.3, 0.5], learner=Own())
    assert len(set_up._games) == known
