"""Fields declare what they may hold: what is inside gives finite results, at both ends of every range."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._checks.inputs import check_fields
from jaxbandit._core.fields import Limits, given, limits, number, pytree_dataclass, static
from jaxbandit.learners.base import signals_read
from jaxbandit.testing import delays_to_play

KEY = jax.random.key(0)
ARMS, ROUNDS = 3, 200
FACTS = {"max_delay": 5, "horizon": ROUNDS, "total_delay": 900, "beta": 4, "max_missing": 5, "copies": 12, "queue_capacity": 36}
FACTS["mean_delay"] = 3
FACTS["conversion_curve"] = [0.2, 0.5, 1.0]
STATES = np.array([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])
FACTS |= {"transitions": STATES, "signals": 2}
LAW_OF_STATES = jb.losses.IntermediateStates(STATES, jb.losses.Bernoulli([0.1, 0.7]))
GIVEN = {
    "means": [0.2, 0.5, 0.6],
    "losses": np.full((ROUNDS, ARMS), 0.5),
    "delays": np.arange(ROUNDS) % 7,
    "low": 1,
    "high": 6,
    "bound": 31,
    "gap": 0.2,
    "arms": ARMS,
    "mean": 3.0,
    "alpha": 1.5,
    "probability": 0.8,
    "every": 4,
    "first": 50,
    "delay": 3,
    "budget": 5.0,
    "starts": [1, 50],
    "scale": 7,
    "window": 9,
    "transitions": STATES,
    "clicks": [0.2, 0.5, 0.6],
    "purchases": [0.5, 0.9, 0.1],
    "start": [0.2, 0.5, 0.6],
    "end": [0.6, 0.5, 0.2],
    "rounds": 100,
    "shares": [0.5, 0.2, 0.3],
    "capacity": 3,
    "rates": [[0.2, 0.5, 0.6], [0.6, 0.5, 0.2]],
    "values": [[0.5, 1.0], [0.2, 0.4], [0.1, 0.9]],
    "no_conversion": jb.delays.Fixed(1),
    "conversion": jb.delays.UniformRandom(0, 4),
    "matrix": [[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]],
}
BASES = (
    (jb.learners.Learner, jb.TsallisINF()),
    (jb.losses.Losses, jb.losses.Bernoulli(GIVEN["means"])),
    (jb.delays.Delays, jb.delays.Fixed(3)),
)


def example(cls):
    """One of the class, its facts told and its laws made of simple ones."""
    values = {}
    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING and field.name not in ("means",):
            continue
        if field.metadata.get("fact"):
            values[field.name] = FACTS[field.metadata["fact"]]
        elif field.name == "base":
            values["base"] = next(base for kind, base in BASES if issubclass(cls, kind))
        elif field.name == "laws":
            values["laws"] = [jb.delays.Fixed(1), jb.delays.Fixed(3), jb.delays.UniformRandom(0, 4)]
        elif cls is jb.losses.IntermediateStates and field.name == "losses":
            values["losses"] = LAW_OF_STATES.losses
        else:
            values[field.name] = GIVEN[field.name]
    if cls is jb.delays.EmpiricalByArm:
        values["delays"] = np.reshape(GIVEN["delays"], (-1,))[: 2 * ARMS].reshape(ARMS, -1)
    if cls is jb.losses.Switching:
        values["means"] = [GIVEN["means"], GIVEN["means"][::-1]]
    return cls(**values)


def ends(field):
    """The ends of the range of a number; just above an open one."""
    declared = limits(field)
    assert math.isfinite(declared.high), field.name
    return [np.nextafter(np.float32(declared.low), np.float32(1)) if declared.open_low else declared.low, declared.high]


def cases(registry):
    return [
        pytest.param(cls, field, id=f"{name} {field.name}")
        for name, cls in registry.items()
        for field in dataclasses.fields(cls)
        if limits(field).axes is not None
        and field.name not in ("transitions", "shares")  # these must sum to 1
        and not name.startswith("progressive")  # covariances are checked together: tests/learners/test_progressive.py
    ]


def play(learner, losses, delays):
    with jax.debug_nans(False):
        result = jb.simulate(learner, losses, delays, rounds=ROUNDS, runs=4, key=KEY, record=3, probabilities=True)
    assert np.isfinite(result.regret).all()
    assert result.probabilities is not None
    np.testing.assert_allclose(result.probabilities.sum(1), 1, atol=1e-5)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("cls", "field"), cases(jb.REGISTRY))
def test_learners_at_the_ends_of_their_ranges(cls, field):
    learner = example(cls)
    for value in ends(field):
        value = np.full(np.shape(vars(learner)[field.name]) or ARMS, value) if limits(field).axes else value
        losses = LAW_OF_STATES if signals_read(learner) else jb.losses.Bernoulli([0.2, 0.5, 0.6])
        play(dataclasses.replace(learner, **{field.name: value}), losses, delays_to_play(learner, jb.delays.UniformRandom(0, 5)))


@pytest.mark.thorough
@pytest.mark.parametrize(("cls", "field"), cases(jb.losses.REGISTRY))
def test_losses_at_the_ends_of_their_ranges(cls, field):
    law = example(cls)
    for value in ends(field):
        if field.name == "starts":
            value = [1, 2**30]
        value = np.broadcast_to(value, np.shape(vars(law)[field.name]))
        play(jb.TsallisINF(), dataclasses.replace(law, **{field.name: value}), jb.delays.Fixed(2))


@pytest.mark.thorough
@pytest.mark.parametrize(("cls", "field"), cases(jb.delays.REGISTRY))
def test_delays_at_the_ends_of_their_ranges(cls, field):
    law = example(cls)
    for value in ends(field):
        if "bound" in law.__dataclass_fields__ and not law.may_lose and field.name not in ("first", "delays"):
            value = min(value, 31)  # a law that loses nothing needs a ring as long as its delays
        if cls is jb.delays.PacketLoss or field.name == "count":
            value = min(value, 31)
        changes = {field.name: np.broadcast_to(value, np.shape(vars(law)[field.name])), "bound": 31, "long_waits": 256}
        changes |= {"low": 0} if field.name == "high" else {"high": 31} if field.name == "low" else {}
        changes = {name: value for name, value in changes.items() if name in law.__dataclass_fields__}
        play(jb.TsallisINF(), jb.losses.Bernoulli([0.2, 0.5, 0.6]), dataclasses.replace(law, **changes))


@pytree_dataclass
class Declared(jb.learners.Learner):
    size: int = static(default=2, low=1, high=9)
    weights: object = number(default=(0.5, 0.5), low=0.1, high=2.0, axes="K")
    gap: object = given("gap", default=0.1, high=1.0)
    free: object = -3.0


def test_a_class_of_ones_own_declares_its_fields():
    good = Declared(weights=[0.2, 0.3])
    assert isinstance(good.weights, np.ndarray)  # a list is one leaf
    check_fields(good, {"K": 2})
    for wrong, message in [
        (Declared(size=0), r"Declared\(size=0\): size must be a whole number, 1 or more"),
        (Declared(size=10), r"size must be a whole number, 9 at most"),
        (Declared(weights=[0.2, 3.0]), r"weights must be numbers, 2 at most; 3.0 is not"),
        (Declared(weights=[0.2]), r"1 numbers for 2 arms"),
        (Declared(gap=1.5), r"gap must lie between 0 and 1; 1.5 does not"),
        (Declared(free=math.nan), r"free must be finite"),
        (Declared(free="x"), r"free must be a number"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            check_fields(wrong, {"K": 2})


def test_a_number_of_its_own_for_each_run():
    """Allowed where the caller says how many runs there are, and only behind the declared axes."""
    one_each = Declared(weights=np.full((2, 7), 0.5), gap=np.linspace(0, 1, 7))
    check_fields(one_each, {"K": 2}, (7,))
    for runs_shape in ((), (6,)):
        with pytest.raises(ValueError, match="not an array of shape"):
            check_fields(one_each, {"K": 2}, runs_shape)


def test_what_is_traced_is_checked_for_its_shape_alone():
    def checked(gap):
        check_fields(Declared(gap=gap), {"K": 2})
        return gap

    jax.vmap(checked)(jnp.array([5.0, -1.0]))
    with pytest.raises(ValueError, match="gap must be a number"):
        jax.jit(checked)(jnp.zeros(3))


def test_markers_say_what_they_limit():
    fields = {field.name: field for field in dataclasses.fields(jb.BestOfBothWorlds)}
    assert limits(fields["max_delay"]) == Limits(0.0, 2**30, axes="")
    assert fields["max_delay"].metadata["fact"] == "max_delay"
