"""The shapes and dtypes that public array types declare are those that the rounds pass."""

import typing

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import jaxtyped

import jaxbandit as jb
from jaxbandit._core.fields import pytree_dataclass
from jaxbandit.learners.base import Observation, Round
from jaxbandit.measure import RoundInfo


def declared(cls: type) -> dict[str, typing.Any]:
    """The fields whose annotations are arrays with a shape."""
    return {name: hint for name, hint in typing.get_type_hints(cls).items() if "runs" in str(hint) or "Array" in str(hint)}


@jaxtyped(typechecker=None)  # one set of axes: K and runs are the same sizes in all fields
def check(*values: typing.NamedTuple) -> None:
    for value in values:
        for name, hint in declared(type(value)).items():
            if typing.get_origin(hint) is not typing.get_origin(typing.Callable[..., int]):
                assert isinstance(getattr(value, name), hint), (
                    f"{type(value).__name__}.{name}: {getattr(value, name)} is not {hint}"
                )


@pytree_dataclass
class Checked(jb.extend.Learner):
    """Uniform actions; every round and observation is checked while the program is traced."""

    def init(self, num_arms, runs_shape):
        return jnp.zeros((num_arms, *runs_shape))

    def act(self, state, round):
        check(round)
        return jnp.full(state.shape, 1 / state.shape[0]), (), state

    def observe(self, state, observation):
        check(observation)
        return state + observation.loss_estimate(state.shape[0])


@pytree_dataclass
class CheckedRound:
    """A measurement that checks what it is given."""

    def init(self, num_arms, runs_shape):
        return jnp.zeros(runs_shape)

    def update(self, state, info):
        check(info, info.round)
        return state

    def read(self, state):
        return {"nothing": state}


GAMES = {
    "fixed": (jb.losses.Bernoulli([0.3, 0.5, 0.6]), jb.delays.Fixed(3)),
    "i.i.d. delays": (jb.losses.Bernoulli([0.3, 0.5, 0.6]), jb.delays.Geometric(2.0, bound=15)),
    "moving means": (jb.losses.DelayMatchedSwitching(3, arms=3), jb.delays.Fixed(3)),
    "values per run": (jb.losses.Bernoulli(np.full((3, 8), 0.5)), jb.delays.Fixed(np.arange(8))),
}


@pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)
def test_rounds_have_the_declared_shapes(game):
    """Rejects a count with a trailing axis, a loss in another precision, and arms as floats."""
    jb.simulate(Checked(), *game, rounds=20, runs=8, seed=0, measure=[CheckedRound()])


@pytest.mark.thorough
@pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)
def test_float64(game):
    with jax.enable_x64(True):
        jb.simulate(Checked(), *game, rounds=20, runs=8, seed=0, measure=[CheckedRound()])


def test_wrong_shapes_are_found():
    """Rejects a check that accepts anything."""
    t, one = jnp.ones((), jnp.int32), jnp.ones(5)
    arms = jnp.zeros(5, jnp.int32)
    good = Observation(jnp.ones(5, bool), t, arms, one, one, None)
    check(good)
    for wrong in ({"loss": jnp.ones((5, 1))}, {"loss": jnp.ones(4)}, {"arm": one}, {"arrived": t}):
        with pytest.raises(AssertionError, match=r"Observation\."):
            check(good._replace(**wrong))
    assert {"t", "outstanding", "total_outstanding"} <= {*declared(Round)}
    assert {"probabilities", "arm", "loss", "means", "outstanding", "arrivals", "delay"} <= {*declared(RoundInfo)}
