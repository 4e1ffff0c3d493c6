"""Checks of the input before compilation: errors name the argument, its value and a correct value."""

import dataclasses
import functools
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from jaxbandit._checks.dry_run import from_elsewhere, try_game
from jaxbandit._checks.inherited import check_inherited
from jaxbandit._checks.per_run import distinct_runs
from jaxbandit._checks.processes import check_not_forked
from jaxbandit._checks.warn import warn_about_burn_in, warn_about_max_delay, warn_about_state_rate
from jaxbandit._core.fields import MOST_ROUNDS, Limits, field_values, is_concrete, is_numeric, limits, show
from jaxbandit.delays import Delays, ShowsDelays
from jaxbandit.delays.base import check_bound
from jaxbandit.learners.base import (
    FullInformation,
    Learner,
    ReadsDelays,
    TakesSums,
    as_learner,
    is_a,
    signals_read,
    stages_read,
)
from jaxbandit.learners.wrappers import Wrapper
from jaxbandit.losses import Losses, ShowsSignals, ShowsStages
from jaxbandit.losses.base import check_declared


def given_key(key: Any, seed: Any) -> jax.Array:
    """The key of a game: ``key`` itself, or ``jax.random.key(seed)`` of threefry, whichever of the two was given."""
    check_not_forked()
    if (key is None) == (seed is None):
        text = "nothing to draw from" if key is None else f"a key and seed={show(seed)}"
        raise TypeError(f"{text}: give seed=0 or key=jax.random.key(0), one of the two")
    if seed is None:
        check_key(key)
        return key
    if is_concrete(seed) and not (is_numeric(seed) and np.ndim(seed) == 0 and is_whole(np.asarray(seed)[()], 0, 2**32 - 1)):
        raise ValueError(f"seed={show(seed)}: the seed is a whole number from 0 to 2**32 - 1")
    return jax.random.key(jnp.asarray(seed, jnp.uint32), impl="threefry2x32")


def check_key(key: Any) -> None:
    if not isinstance(key, jax.Array) or not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        raise TypeError(
            f"key={show(key)}: the key must be a typed JAX key, as jax.random.key(0) makes (not PRNGKey, not a number); or give seed=0 in its place"
        )
    if key.shape != ():
        raise TypeError(f"key of shape {key.shape}: one key is needed; each run gets its own numbers from it")
    if str(jax.random.key_impl(key)) != "threefry2x32":
        raise TypeError(
            f"key of implementation {jax.random.key_impl(key)}: runs are defined by threefry; use jax.random.key(seed, impl='threefry2x32')"
        )


def is_whole(value: Any, least: int, most: float = math.inf) -> bool:
    """Whether ``value`` is one whole number, of Python, NumPy or JAX, from ``least`` to ``most``."""
    if isinstance(value, jax.Array) and value.ndim == 0 and is_numeric(value):
        value = np.asarray(value)[()]
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value <= most)


def _without_point(value: Any) -> str:
    """A whole number as it should be written, in place of 1e4."""
    whole = isinstance(value, float | np.floating) and 0 < value < math.inf and value == np.floor(value)
    return f"; write {int(value)}" if whole else ""


def check_rounds(rounds: Any) -> None:
    if not is_whole(rounds, 1, MOST_ROUNDS):
        raise ValueError(f"rounds={show(rounds)}: the number of rounds is a whole number from 1 to 2**30{_without_point(rounds)}")


def check_runs(runs: Any, first_run: Any) -> None:
    if not is_whole(runs, 1):
        raise ValueError(f"runs={show(runs)}: the number of runs is a whole number, 1 or more{_without_point(runs)}")
    if is_concrete(first_run) and not is_whole(first_run, 0):
        raise ValueError(
            f"first_run={show(first_run)}: the id of the first run is a whole number, 0 or more{_without_point(first_run)}"
        )
    if is_concrete(first_run) and int(first_run) + int(runs) > 2**32:
        raise ValueError(f"first_run={show(first_run)}, runs={show(runs)}: run ids must stay below 2**32")


def check_switch(name: str, value: Any, *, or_none: bool = False) -> None:
    if not isinstance(value, bool | np.bool_) and not (or_none and value is None):
        raise TypeError(f"{name}={show(value)}: {name} is {'True, False or None' if or_none else 'True or False'}")


def check_outside_transformations(name: str, *arguments: Any) -> None:
    """Raise inside jit, vmap or grad, where no values can be transferred to the host."""
    if not is_concrete((arguments, jnp.zeros(()))):  # inside jit even a constant has no value
        raise TypeError(
            f"{name} cannot be called inside jit, vmap or grad, or with values traced by them; use jb.rollout there, which is a pure function"
        )


def check_game(learner: Any, losses: Any, delays: Any, rounds: Any, runs: int | None = None) -> None:
    """Check learner, losses and delays, each alone and in combination.

    ``runs``: numbers may have a value for each of this many runs (:mod:`jaxbandit._engine.per_run`), and every run is checked.
    """
    validate_losses(losses, runs)
    validate_delays(delays, losses.num_arms, runs)
    validate_learner(learner, losses.num_arms, runs)
    for law, name in ((losses, "losses"), (delays, "delays")):
        if law.length is not None and is_concrete(rounds) and rounds > law.length:
            raise ValueError(
                f"rounds={show(rounds)}: {name}.{type(law).__name__} has only {law.length} rounds; use rounds={law.length} or a longer one"
            )
    if as_learner(learner).watches_plays and not delays.oblivious:
        _check_watched(learner, delays, rounds)
    _check_shape_of_feedback(learner, losses, delays)
    try_game(learner, losses, delays, rounds, runs)
    warn_about_max_delay(learner, delays, runs)
    warn_about_state_rate(learner, losses.num_arms)
    warn_about_burn_in(learner, losses, rounds, runs)


def _check_watched(learner: Any, delays: Delays, rounds: Any) -> None:
    """Check that the ring keeps missing feedback, for learners that query which old observations are outstanding."""
    if delays.may_lose and not (is_concrete(rounds) and delays.bound >= rounds):
        raise ValueError(
            f"delays={type(delays).__name__}(bound={delays.bound}): {type(learner).__name__} reads which observations are outstanding, and "
            f"feedback that depends on the arm may be lost; give the laws bound={show(rounds)}, the number of rounds"
        )


def _check_shape_of_feedback(learner: Any, losses: Losses, delays: Delays) -> None:
    full = as_learner(learner)
    read, name = signals_read(full), type(learner).__name__
    shown = losses.num_signals if isinstance(losses, ShowsSignals) else 0
    if is_a(full, ReadsDelays) and not isinstance(delays, ShowsDelays):
        law = type(delays).__name__
        raise ValueError(
            f"delays={law}(…): {name} requires the delay of an action at action time, and {law} does not show it; "
            f"give jb.delays.KnownAtAction({law}(…))"
        )
    outcomes = len(losses.stage_delays) if isinstance(losses, ShowsStages) else 0
    before_loss = read or stages_read(full)
    if is_a(full, FullInformation) and (before_loss or delays._shares() is not None):
        part = f"learner={name}" if before_loss else f"delays={type(delays).__name__}"
        raise ValueError(
            f"{part}(…): {name} observes the losses of all arms, without intermediate observations or shares of losses"
        )
    if delays._shares() is not None and not isinstance(as_learner(learner), TakesSums):
        raise ValueError(
            f"delays={type(delays).__name__}(…): composite feedback is observed as sums only, and {name} needs the loss of each round; "
            f"give jb.CoLo({name}(…), delay={delays.bound})"
        )
    if stages_read(full) and (stages_read(full) != outcomes or delays._shares() is not None):
        raise ValueError(
            f"losses={type(losses).__name__}(…): actions have {outcomes or 'no'} outcomes before the loss, and {name} reads {stages_read(full)}; "
            f"give losses.Funnel with {stages_read(full) + 1} stages"
        )
    if read and read != shown:
        text = f"plays show {shown} signals" if shown else "plays show no signals"
        raise ValueError(
            f"losses={type(losses).__name__}(…): {text}, and {name} reads {read}; give losses.IntermediateStates with {read} states"
        )


def validate_losses(losses: Any, runs: int | None = None) -> None:
    _check_law(losses, Losses, "losses", "jb.losses.Bernoulli([0.3, 0.5])", runs)
    check_declared(losses)
    check_inherited(losses, "losses")
    _check_runs_of(losses, runs, lambda law: law.check())
    if not is_whole(losses.num_arms, 1):
        raise ValueError(f"losses={type(losses).__name__}(…): num_arms={show(losses.num_arms)} must be a whole number, 1 or more")
    for inner in _nested(losses, Losses):
        validate_losses(inner, runs)
    for stage, law in enumerate(losses.stage_delays if isinstance(losses, ShowsStages) else ()):
        _check_stage(losses, stage, law, runs)


def _check_stage(losses: Losses, stage: int, law: Any, runs: int | None) -> None:
    """Raise if the delay model of an outcome before the loss is wrong."""
    validate_delays(law, losses.num_arms, runs)
    if law._shares() is not None or law._long_waits:
        raise ValueError(
            f"losses={type(losses).__name__}(…): stage {stage} has the delays {type(law).__name__}(…), which have a side list or shares; "
            "give a model such as jb.delays.Fixed(3)"
        )


def validate_delays(delays: Any, num_arms: int, runs: int | None = None) -> None:
    _check_law(delays, Delays, "delays", "jb.delays.Fixed(10)", runs)
    check_inherited(delays, "delays")
    _check_runs_of(delays, runs, lambda law: law.check(num_arms))
    check_bound(delays)
    if delays.shared and not delays.oblivious:
        raise ValueError(
            f"delays={type(delays).__name__}(…): shared delays must be oblivious to arm and loss (say oblivious = True in the class)"
        )
    if isinstance(delays, ShowsDelays) and not delays.oblivious:
        raise ValueError(
            f"delays={type(delays).__name__}(…): delays that are known at action time must be oblivious to arm and loss "
            "(say oblivious = True in the class)"
        )
    for inner in _nested(delays, Delays):
        validate_delays(inner, num_arms, runs)


def validate_learner(learner: Any, num_arms: int | None = None, runs: int | None = None) -> None:
    """Check a learner. ``num_arms``: where known, its required inputs per arm must have this length."""
    full = as_learner(learner)
    if full is learner:
        _check_names(learner, Learner)
    _check_pytree(learner, "learner")
    check_fields(learner, {} if num_arms is None else {"K": num_arms}, () if runs is None else (runs,))
    _check_runs_of(learner, runs, lambda one: as_learner(one).check())
    for inner in [learner.base] if isinstance(learner, Wrapper) else _nested(learner, Learner):
        validate_learner(inner, num_arms, runs)


def _check_runs_of(part: Any, runs: int | None, check: Callable[[Any], None]) -> None:
    """``check(part)``. Classes of the library check all runs at once; the ``check`` of a user's class sees the values of one run."""
    if runs is None or not from_elsewhere(part):
        check(part)
        return
    for one in distinct_runs(part):
        check(one)


def _check_law(law: Any, kind: type, argument: str, example: str, runs: int | None) -> None:
    if isinstance(law, type) or not isinstance(law, kind):
        raise TypeError(
            f"{argument}={show(law)}: give a law such as {example}; a class of your own inherits from jb.{argument}.{kind.__name__}"
        )
    _check_pytree(law, argument)
    _check_names(law, kind)
    check_fields(law, {}, () if runs is None else (runs,))


def _check_pytree(owner: Any, argument: str) -> None:
    if jax.tree_util.all_leaves([owner]):
        cls = type(owner).__name__
        raise TypeError(
            f"{argument}={cls}(…): make {cls} a pytree of its numbers: put @jb.extend.pytree_dataclass before the class"
        )


def _check_names(owner: Any, kind: type) -> None:
    """A static field may set a trait; no field may take the name of a method."""
    cls = type(owner).__name__
    protocols = [base for base in type(owner).__mro__ if issubclass(base, kind) and "__dataclass_fields__" not in vars(base)]
    declared = {name: base for base in protocols for name in vars(base)}
    for field in dataclasses.fields(owner) if dataclasses.is_dataclass(owner) else ():
        name, base = field.name, declared.get(field.name)
        if base and isinstance(vars(base)[name], FunctionType):
            raise TypeError(f"{cls}({name}=…): {name} is a method of {base.__name__}, which a field would hide; rename the field")
        if base and not field.metadata.get("static"):
            default = "" if field.default is dataclasses.MISSING else f"default={show(field.default)}"
            raise TypeError(
                f"{cls}({name}=…): {name} must be known before anything is compiled; write "
                f"{name}: {field.type.__name__ if isinstance(field.type, type) else field.type} = jb.extend.static({default})"
            )


def _nested(owner: Any, kind: type) -> list[Any]:
    """The models or learners that another consists of."""
    inside = [
        inner for value in field_values(owner).values() for inner in (value if isinstance(value, tuple | list) else [value])
    ]
    return [inner for inner in inside if isinstance(inner, kind)]


def check_fields(owner: Any, sizes: dict[str, int], runs_shape: tuple[int, ...] = ()) -> None:
    """Check every field of a learner or model against its declaration.

    Args:
      owner: its fields are made by :func:`jaxbandit._core.fields.number` and its kin; others may be any finite numbers.
      sizes: of the axes by their letters; unknown sizes are taken from the first field that has them.
      runs_shape: the axes that may follow the declared ones: a value for each run.
    """
    if not dataclasses.is_dataclass(owner):
        _check_any(owner, "", owner)
        return
    hints, sizes = _hints(type(owner)), dict(sizes)
    for field in dataclasses.fields(owner):
        value = vars(owner)[field.name]
        made_of = {Learner, Losses, Delays} & {hints.get(field.name), *get_args(hints.get(field.name))}
        if made_of or (value is None and field.default is None):  # nested models and learners are checked separately
            continue
        if field.metadata.get("static"):
            _check_static(owner, field.name, hints.get(field.name), limits(field), value)
        elif limits(field).axes is not None:
            # A table with a row for each round has no values for each run: see jaxbandit._engine.per_run.
            _check_shape(owner, field.name, limits(field), value, sizes, () if "T" in (limits(field).axes or "") else runs_shape)
            _check_limits(owner, field.name, limits(field), bool(field.metadata.get("whole")), value)
        else:
            _check_any(owner, field.name, value)


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    try:
        return get_type_hints(cls)
    except (NameError, TypeError):  # a user-defined class with annotations that do not exist at run time
        return {}


def _label(owner: Any, field: str, value: Any) -> str:
    _, kind, *_ = (*type(owner).__module__.split("."), "")
    prefix = f"{kind}." if kind in ("losses", "delays") else ""
    return f"{prefix}{type(owner).__name__}({field}={show(value)})"


def _check_any(owner: Any, field: str, value: Any) -> None:
    """Finite numbers, of any shape."""
    kinds = Learner | Losses | Delays
    for path, leaf in jax.tree_util.tree_flatten_with_path(value, is_leaf=lambda node: isinstance(node, kinds))[0]:
        if isinstance(leaf, jax.core.Tracer | kinds):
            continue
        name = (field + jax.tree_util.keystr(path)).lstrip(".")
        if not is_numeric(leaf):
            raise TypeError(f"{_label(owner, name, leaf)}: {name} must be a number")
        if not np.all(np.isfinite(leaf)):
            raise ValueError(f"{_label(owner, name, leaf)}: {name} must be finite")


def _check_static(owner: Any, field: str, hint: Any, limits: Limits, value: Any) -> None:
    label = _label(owner, field, value)
    if get_origin(hint) is Literal and not any(type(value) is type(one) and value == one for one in get_args(hint)):
        raise ValueError(f"{label}: the {field} is {' or '.join(map(repr, get_args(hint)))}")
    if hint is bool and not isinstance(value, bool | np.bool_):
        raise TypeError(f"{label}: {field} is True or False")
    if hint is int and not (is_whole(value, -(2**63)) and limits.low <= value <= limits.high):
        raise ValueError(f"{label}: {field} must be {_range(limits, 'a whole number', value)}")


EACH = {
    "K": "arm",
    "T": "round",
    "P": "phase",
    "N": "recorded play",
    "M": "delay from 0 on",
    "S": "signal",
    "J": "stage",
}  # what the letters of axes stand for


def _check_shape(owner: Any, field: str, limits: Limits, value: Any, sizes: dict[str, int], runs_shape: tuple[int, ...]) -> None:
    axes = limits.axes or ""
    wanted = _shape_in_words(axes)
    if isinstance(value, jax.core.Tracer):
        shape = value.shape
    elif not is_concrete(value):
        return
    elif not is_numeric(value) or np.asarray(value).dtype.kind == "b":
        raise TypeError(f"{_label(owner, field, value)}: {field} must be {wanted}")
    else:
        shape = np.shape(value)
    if runs_shape and len(shape) == len(axes) + len(runs_shape) and shape[len(axes) :] == runs_shape:
        shape = shape[: len(axes)]
    if limits.or_number and not shape:
        return
    if len(shape) != len(axes) or 0 in shape:
        raise ValueError(f"{_label(owner, field, value)}: {field} must be {wanted}, not an array of shape {shape}")
    for letter, size in zip(axes, shape, strict=True):
        if sizes.setdefault(letter, int(letter) if letter.isdigit() else size) != size:
            each = EACH.get(letter, letter)
            raise ValueError(
                f"{_label(owner, field, value)}: {size} numbers for {sizes[letter]} {each}s; give one for each {each}"
            )


def _shape_in_words(axes: str) -> str:
    if not axes:
        return "a number"
    if len(axes) == 1:
        return f"a list of {axes} numbers, one for each {EACH.get(axes, axes)}"
    if len(axes) == 2:
        return f"a table with a row of {axes[1]} numbers for each {EACH.get(axes[0], axes[0])}"
    return f"an array with the axes {', '.join(axes)}"


def _check_limits(owner: Any, field: str, limits: Limits, whole: bool, value: Any) -> None:
    if not is_concrete(value):
        return
    array = np.asarray(value).astype(np.float64)
    good = (array > limits.low if limits.open_low else array >= limits.low) & (array <= limits.high)
    if whole:
        good &= array == np.floor(array)
    if good.all():
        return
    bad = np.asarray(value)[~good].flat[0] if array.ndim else value
    label, whose = _label(owner, field, value), ""
    if array.ndim > len(limits.axes or ""):
        whose = f" of run {np.argwhere(~good)[0][-1]}"
    if limits.high <= 1 and not limits.open_low:
        raise ValueError(f"{label}: {field} must lie between {limits.low:g} and {limits.high:g}; {show(bad)}{whose} does not")
    if array.ndim:
        raise ValueError(
            f"{label}: {field} must be {_range(limits, 'whole numbers' if whole else 'numbers', bad)}; {show(bad)}{whose} is not"
        )
    raise ValueError(f"{label}: {field} must be {_range(limits, 'a whole number' if whole else 'a number', bad)}")


def _range(limits: Limits, noun: str, value: Any) -> str:
    """The end of the range that ``value`` is beyond, in words."""
    if (isinstance(value, int) and value > limits.high) or (is_numeric(value) and np.all(np.asarray(value) > limits.high)):
        return f"{noun}, {limits.high:.10g} at most"
    if limits.open_low:
        return f"{noun} above {limits.low:.10g}"
    return noun if math.isinf(limits.low) else f"{noun}, {limits.low:.10g} or more"
