"""Every public field of every learner, loss and delay model, given anything: one sentence before anything is traced, or finite results.

The examples are drawn from what each field declares: its type, its range, its axes. ``make test`` draws a few, ``make test-slow`` 2,000.
"""

import dataclasses
import datetime
import decimal
import fractions
import math
import traceback
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jaxbandit as jb
from jaxbandit._core.fields import limits
from tests.test_fields import ARMS, LAW_OF_STATES, example

PACKAGE = Path(jb.__file__).parent
KINDS = {"learner": jb.REGISTRY, "losses": jb.losses.REGISTRY, "delays": jb.delays.REGISTRY}
FIELDS = [
    (kind, name, field.name)
    for kind, registry in KINDS.items()
    for name, cls in registry.items()
    for field in dataclasses.fields(cls)
    if field.init
]
GOOD = {
    "learner": jb.TsallisINF(),
    "losses": jb.losses.Bernoulli([0.2, 0.5, 0.6]),
    "delays": jb.delays.UniformRandom(0, 4),
}


class Odd:
    """Something that is nothing of what a field can hold, and fails when it is asked."""

    def __array__(self, *args, **options):
        raise RuntimeError("this is not an array")

    def __repr__(self):
        return "Odd()"


# Never right in a field of numbers.
NO_NUMBER = [
    "x", "3", "", "oracle", b"3", None, True, False, np.True_, {}, {"a": 1}, {1, 2}, object, print, math, ..., Odd(), Odd,
    1j, np.complex64(1), decimal.Decimal("NaN"), datetime.date(2026, 1, 1), np.datetime64("2026-01-01"), np.array(["a"]),
    np.array([None, 1]), [None], ["a"], [1, "a"], [[1], [1, 2]], [[]], (), [], np.zeros(0), np.zeros((0, 3)), lambda x: x, range(0),
    jb.Uniform, jb.delays.Fixed, KeyError("x"), np.ma.masked, float("nan"), -float("nan"), math.inf, -math.inf,
    [math.nan] * 3, [math.inf] * 3, np.full(3, np.nan), jnp.full(3, jnp.nan), np.float32("nan"), jnp.inf, 10**400, -(10**400),
    [10**400] * 3, 1e308, -1e308, jax.random.key(0), np.array([True, False, True]), "\x00", "a\nb", "x" * 10_000,
]  # fmt: skip
# Never right in a field of one number.
NO_SCALAR = [[1.0], [1.0, 2.0], np.zeros(7), np.zeros((2, 2)), jnp.ones(3), (0.5,) * 4, np.ones((1, 1)), [[0.5]]]
WRONG_SHAPES = [0.5, np.float32(0.5), 1, np.full(7, 0.5), np.full((2, 3, 4), 0.5), np.full((1, 1, 1, 1), 1)]


def field_of(kind, name, field):
    cls = KINDS[kind][name]
    return cls, next(one for one in dataclasses.fields(cls) if one.name == field)


def outside(declared):
    """Numbers beyond either end of a range, from just beyond to far."""
    found = []
    if math.isfinite(declared.low):
        low = declared.low
        found += [low] if declared.open_low else []
        found += [low - step for step in (1e-3, 1.0, 1e6, 2.0**40)] + [np.nextafter(low, -math.inf), -(2**63), -(10**30)]
    if math.isfinite(declared.high):
        high = declared.high
        found += [high + 1, high * 2 + 3, np.nextafter(high, math.inf), 10**40, 2**64, 1e39]
    return [
        value for value in found if value < declared.low or value > declared.high or (declared.open_low and value == declared.low)
    ]


def wrong_values(kind, name, field):
    """What a field is declared not to hold."""
    cls, one = field_of(kind, name, field)
    hint, declared = get_type_hints(cls).get(field), limits(one)
    choices = [value for value in NO_NUMBER if not (value is None and one.default is None)]
    if one.metadata.get("static"):
        if hint is bool:
            choices = [value for value in choices if not isinstance(value, bool | np.bool_)] + [0, 1, 2.0, "no", "False", [True]]
        elif get_origin(hint) is Literal:
            choices = [*choices, 0, 1, "IW", *(option + " " for option in get_args(hint))]
        else:
            choices += [2.0, 0.5, np.float64(3), -1, -(2**70), [3], np.zeros(3, int)]
            choices += outside(declared)
    elif declared.axes == "":
        choices += NO_SCALAR + outside(declared)
        if one.metadata.get("whole"):
            choices += [0.5, 1e-9, np.float32(2.5), fractions.Fraction(5, 2)]
    elif declared.axes:
        beyond = outside(declared)
        shape = np.shape(vars(example(cls))[field]) or (ARMS,)
        shapes = [value for value in WRONG_SHAPES if np.ndim(value) != len(declared.axes)]  # of one axis, any length may be right
        choices += [value for value in shapes if not (declared.or_number and np.ndim(value) == 0)]
        choices += [np.full(shape, value, object if isinstance(value, int) else float).tolist() for value in beyond]
    else:  # a law or a learner inside
        choices = [value for value in NO_NUMBER] + [3, [3], [jb.Uniform()], GOOD["learner" if kind != "learner" else "losses"]]
    return choices


@st.composite
def wrong_fields(draw):
    """A field of a class, and a value that it is declared not to hold."""
    one = draw(st.sampled_from(FIELDS))
    return *one, draw(st.sampled_from(wrong_values(*one)))


@st.composite
def any_fields(draw):
    """A field of a number of a class, and some value within its range, often an end."""
    numbers = [one for one in FIELDS if limits(field_of(*one)[1]).axes is not None]
    kind, name, field = draw(st.sampled_from(numbers))
    cls, one = field_of(kind, name, field)
    declared = limits(one)
    if one.metadata.get("whole"):
        value = draw(
            st.one_of(st.sampled_from([declared.low, declared.high]), st.integers(int(declared.low), int(declared.high)))
        )
    else:
        value = draw(
            st.one_of(
                st.sampled_from([declared.low, declared.high]),
                st.floats(declared.low, declared.high, exclude_min=declared.open_low),
                st.floats(-30, 30).map(lambda power: min(max(10.0**power, declared.low), declared.high)),
            )
        )
        if declared.open_low and value <= declared.low:
            value = float(np.nextafter(np.float32(declared.low), np.float32(math.inf)))
    shape = np.shape(vars(example(cls))[field])
    wrap = draw(
        st.sampled_from([lambda x: x, np.float64, np.asarray, jnp.asarray] if abs(value) < 2**30 else [lambda x: x, np.float64])
    )
    return kind, name, field, np.full(shape, value) if shape else wrap(value)


def play(kind, made):
    parts = {**GOOD, kind: made}
    if isinstance(made, jb.StateExp3 | jb.EstimatedStateExp3):
        parts["losses"] = LAW_OF_STATES
    if isinstance(made, jb.ProgressiveThompson):
        parts["losses"] = jb.losses.Funnel([[0.5, 0.4, 0.3]] * 2)
    if isinstance(made, jb.delays.CompositeFeedback):
        parts["learner"] = jb.CoLo(jb.TsallisINF(), 2)
    if isinstance(made, jb.DoublingSkipper):
        parts["delays"] = jb.delays.KnownAtAction(GOOD["delays"])
    result = jb.simulate(
        parts["learner"], parts["losses"], parts["delays"], rounds=40, runs=2, seed=0, record=2, probabilities=True
    )
    assert np.isfinite(result.regret).all()
    assert np.isfinite(np.asarray(result.probabilities)).all()
    assert (np.asarray(result.total_delay) >= 0).all()


def refused(kind, name, field, value):
    """The sentence that the value is refused with; fails for anything that is not one sentence of this package."""
    cls, caught = KINDS[kind][name], None
    try:
        play(kind, dataclasses.replace(example(cls), **{field: value}))
    except (ValueError, TypeError) as error:
        caught = error
    if caught is None:
        return None
    text, last = str(caught), traceback.extract_tb(caught.__traceback__)[-1]
    assert Path(last.filename).is_relative_to(PACKAGE), f"a {type(caught).__name__} from {last.filename}:{last.lineno}: {text}"
    assert "\n" not in text, text
    assert len(text) < 400, text
    assert cls.__name__ in text or f"{field}=" in text, text
    return text


def examples(count):
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(max_examples=count, deadline=None, derandomize=True, database=None, suppress_health_check=checks)


def check_wrong(drawn):
    kind, name, field, value = drawn
    text = refused(kind, name, field, value)
    assert text is not None, f"{name}.{field} took {value!r}"


def check_right(drawn):
    """Within its range: a result, or a sentence that names another field it does not go with."""
    refused(*drawn)


@examples(200)
@given(wrong_fields())
def test_wrong_values(drawn):
    check_wrong(drawn)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@examples(2000)
@given(wrong_fields())
def test_two_thousand_wrong_values(drawn):
    check_wrong(drawn)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@examples(500)
@given(any_fields())
def test_values_within_the_range(drawn):
    check_right(drawn)
