"""Frozen dataclasses that are pytrees: the basis of learners, loss models and delay models.

Every number a user may sweep, vmap or differentiate is a leaf; every size or switch is a static field.
Constructors only store, because JAX reruns them with tracers, masks and labels in place of numbers.
"""

import contextlib
import dataclasses
import difflib
import functools
import inspect
import math
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar, dataclass_transform

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.tree_util import GetAttrKey, register_pytree_with_keys
from jax.typing import ArrayLike

from jaxbandit._core.display import fields_table, one_line

T = TypeVar("T")
PyTree: TypeAlias = Any  # arrays nested in tuples, lists, dicts and pytree dataclasses
Numbers = ArrayLike | Sequence[Any]  # accepted values of a field of numbers


MOST = 1e6  # the default limit of a number: its powers and products still fit into float32
MOST_ROUNDS = 2**30  # no horizon and no delay is longer


@dataclasses.dataclass(frozen=True)
class Limits:
    """The allowed numbers and shape of a field. Checked by :func:`jaxbandit._checks.inputs.check_fields`."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False  # ``low`` itself is not allowed
    # One letter for each axis, such as "K" for the arms, or a digit, which is its size; "" for one number, None for any shape.
    axes: str | None = None
    or_number: bool = False  # one number will do in place of the axes


def static(
    *, default: Any = dataclasses.MISSING, low: float = -math.inf, high: float = MOST_ROUNDS, fact: str | None = None
) -> Any:
    """A static field, a size or a switch: a change recompiles.

    Its type (``bool``, ``int``, ``Literal[...]``) determines its values, and ``low`` and ``high`` limit a whole number.
    ``fact``: as in :func:`given`.

    >>> from jaxbandit.extend import pytree_dataclass, static
    >>> @pytree_dataclass
    ... class Windowed:
    ...     window: int = static(default=100, low=1)
    >>> jax.tree.leaves(Windowed())
    []
    """
    return dataclasses.field(default=default, metadata={"static": True, "limits": Limits(low, high), "fact": fact})


def number(
    *,
    default: Any = dataclasses.MISSING,
    low: float = 0.0,
    high: float = MOST,
    open_low: bool = False,
    axes: str = "",
    or_number: bool = False,
    instead: str | None = None,
) -> Any:
    """A leaf that is a float, from ``low`` (or above it, ``open_low``) to ``high``, or an array of them with named ``axes``.

    By default it is limited to 0 … 10⁶: hyperparameters are rarely negative, and powers and products of such numbers fit into
    float32. ``low=-math.inf`` and ``high=math.inf`` lift the limits.
    A field without a marker is a leaf too, of any shape and any finite value. None is allowed where it is the default.
    ``instead`` names an argument that may be given in place of this one, which is then None until it is computed.

    >>> from jaxbandit.extend import number, pytree_dataclass
    >>> @pytree_dataclass
    ... class Greedy:
    ...     epsilon: float = number(default=0.1, high=1.0)
    >>> jax.tree.map(lambda leaf: leaf / 2, Greedy(0.5)).epsilon
    0.25
    """
    return dataclasses.field(default=default, metadata={"limits": Limits(low, high, open_low, axes, or_number), "or": instead})


def whole_number(*, default: Any = dataclasses.MISSING, low: int = 0, high: int = MOST_ROUNDS - 1, axes: str = "") -> Any:
    """A leaf that counts rounds or actions, kept as int32 (any other leaf is a float).

    >>> from jaxbandit.extend import pytree_dataclass, whole_number
    >>> @pytree_dataclass
    ... class Weekly:
    ...     delay: int = whole_number(default=7)
    >>> Weekly(14).delay
    14
    """
    return dataclasses.field(default=default, metadata={"whole": True, "limits": Limits(low, high, axes=axes)})


def given(
    fact: str,
    *,
    default: Any = dataclasses.MISSING,
    low: float = 0.0,
    high: float = MOST_ROUNDS,
    axes: str = "",
) -> Any:
    """A required input that is a property of the environment, such as the longest delay.

    ``fact`` names it: a sweep's ``"oracle"`` fills the field with the true value of that name, and tuning does not change it.
    The names are ``max_delay``, ``copies``, ``queue_capacity``, ``horizon``, ``total_delay`` and ``gaps``.

    >>> from jaxbandit.extend import given, pytree_dataclass
    >>> @pytree_dataclass
    ... class Patient:
    ...     longest: int = given("max_delay")
    >>> Patient(20).longest
    20
    """
    return dataclasses.field(default=default, metadata={"fact": fact, "limits": Limits(low, high, axes=axes)})


@dataclass_transform(frozen_default=True, field_specifiers=(static, number, whole_number, given, dataclasses.field))
def pytree_dataclass(cls: type[T]) -> type[T]:
    """Make ``cls`` a frozen dataclass and a pytree; fields made by :func:`static` are not leaves.

    >>> from jaxbandit.extend import number, pytree_dataclass, static
    >>> @pytree_dataclass
    ... class Pair:
    ...     scale: float = number(default=1.0)
    ...     window: int = static(default=10)
    >>> jax.tree.leaves(Pair(2.0))
    [2.0]
    """
    # eq=False: leaves are arrays, whose == is not a truth value.
    cls = dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
    if cls.__repr__ is object.__repr__:  # not a class with its own repr
        cls.__repr__ = one_line
        cls._repr_html_ = fields_table  # type: ignore[attr-defined]
    cls.__init__ = _kind_to_typos(cls.__name__, cls.__init__)
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    data = [f.name for f in fields if not f.metadata.get("static")]
    meta = [f.name for f in fields if f.metadata.get("static")]

    def flatten(tree):
        values = vars(tree)
        return [values[name] for name in data], tuple(values[name] for name in meta)

    def flatten_with_keys(tree):
        values = vars(tree)
        return [(GetAttrKey(name), values[name]) for name in data], tuple(values[name] for name in meta)

    def unflatten(statics, leaves):
        return cls(**dict(zip(data, leaves, strict=True)), **dict(zip(meta, statics, strict=True)))

    # Not `register_dataclass`: in jaxlib 0.10.2 the structures of two classes registered by it are equal (==) if only their
    # fields are alike, so that, now and then, jit takes the program of one learner for another's.
    register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls


def _kind_to_typos(name: str, init: Callable[..., None]) -> Callable[..., None]:
    """A constructor whose errors suggest the intended name for an unknown field."""
    known = [*inspect.signature(init).parameters][1:]

    @functools.wraps(init)
    def construct(self, *values, **fields):
        unknown = next((field for field in fields if field not in known), None)
        if unknown is not None:
            there = suggest(unknown, known) if known else "it has no fields"
            raise TypeError(f"{name}({unknown}={show(fields[unknown])}): there is no field {unknown!r}; {there}")
        init(self, *values, **fields)

    return construct


def field_values(owner: Any) -> dict[str, Any]:
    """The fields of a dataclass by name; empty for anything else."""
    if not dataclasses.is_dataclass(owner) or isinstance(owner, type):
        return {}
    return {f.name: vars(owner)[f.name] for f in dataclasses.fields(owner)}


def facts(owner: Any) -> dict[str, str]:
    """The required inputs (:func:`given`), each with the name of its fact."""
    if not dataclasses.is_dataclass(owner):
        return {}
    return {f.name: f.metadata["fact"] for f in dataclasses.fields(owner) if f.metadata.get("fact")}


def limits(field: dataclasses.Field) -> Limits:
    """The limits of a field."""
    return field.metadata.get("limits", Limits())


@functools.cache
def _fields_of_arrays(cls: type) -> tuple[str, ...]:
    """The leaves that are not declared to be one number."""
    return tuple(f.name for f in dataclasses.fields(cls) if not f.metadata.get("static") and limits(f).axes != "")


def lists_to_arrays(owner: Any) -> None:
    """Convert lists of numbers to arrays, in fields that may hold arrays; other values (models, tracers, labels) are unchanged.

    A list would be a pytree of as many leaves as it has numbers.
    """
    for field in _fields_of_arrays(type(owner)) if dataclasses.is_dataclass(owner) else ():
        value = vars(owner)[field]
        if isinstance(value, list | tuple) and value and is_concrete(value) and is_numeric(value):
            object.__setattr__(owner, field, np.asarray(value))


def float_dtype() -> np.dtype:
    """float32, or float64 when ``jax_enable_x64`` is on.

    >>> from jaxbandit.extend import float_dtype
    >>> float_dtype() == (np.float64 if jax.config.jax_enable_x64 else np.float32)
    True
    """
    return jax.dtypes.canonicalize_dtype(np.float64)


def canonical(tree: T) -> T:
    """The same object with every leaf an array: float leaves of one dtype, whole-number leaves int32.

    A mix of Python numbers and arrays in one field would compile one program for each mixture.
    """
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        new = {}
        for f in dataclasses.fields(tree):
            value = vars(tree)[f.name]
            if f.metadata.get("static"):
                new[f.name] = value
            elif f.metadata.get("whole"):
                new[f.name] = jnp.asarray(np.asarray(value).astype(np.int32) if is_concrete(value) else value)
            else:
                new[f.name] = canonical(value)
        return dataclasses.replace(tree, **new)
    return jax.tree.map(as_float, tree)


def as_float(value: Any) -> jax.Array:
    """``value`` as an array of :func:`float_dtype`, strongly typed."""
    return jnp.asarray(value, float_dtype())


def is_concrete(value: Any) -> bool:
    """Whether the numbers in ``value`` can be read: they are neither traced nor only shapes."""
    return not any(isinstance(leaf, jax.core.Tracer | jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(value))


def is_numeric(value: Any) -> bool:
    """Whether ``value`` is a number, or an array or nested list of numbers; arrays with masked numbers are not."""
    if isinstance(value, np.ma.MaskedArray):
        return False
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except Exception:  # the conversion of an object to an array may raise anything
        return False


def arms_first(function: Callable[..., T]) -> Callable[..., T]:
    """``function`` with JAX's rank promotion allowed, for any value of ``jax_numpy_rank_promotion``.

    Arrays ``[K, runs]`` and ``[runs]`` are combined in every round.
    """

    @functools.wraps(function)
    def call(*arguments, **options):
        with jax.numpy_rank_promotion("allow"):
            return function(*arguments, **options)

    return call


@contextlib.contextmanager
def explain_tracing(call: str) -> Iterator[None]:
    """Convert JAX's tracer errors to an error about ``call``, a method of a user's class."""
    try:
        yield
    except (
        jax.errors.ConcretizationTypeError,
        jax.errors.TracerArrayConversionError,
        jax.errors.TracerIntegerConversionError,
    ) as error:
        # The line of the user's code: the last one that is neither of JAX nor of NumPy.
        lines = [frame for frame in traceback.extract_tb(error.__traceback__) if "site-packages" not in frame.filename]
        where = f" (line {lines[-1].lineno} of {os.path.basename(lines[-1].filename)}: {lines[-1].line})" if lines else ""
        raise TypeError(
            f"{call} asks for the value of a number{where}, and numbers are traced: they have none while the program is compiled. "
            "Write jnp.where(condition, a, b) for `if`, jnp for np, and declare sizes and switches with jb.extend.static()"
        ) from error


def show(value: Any) -> str:
    """``value`` as a user would have typed it, shortened for messages."""
    if isinstance(value, jax.core.Tracer):
        return str(value.aval)
    if isinstance(value, np.ndarray | np.generic | jax.Array) and not jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = np.asarray(value).tolist()
    try:
        text = " ".join(repr(value).split())
    except Exception:  # whole numbers of more than 4300 digits, and objects whose repr raises
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else text[:57] + "..."


def suggest(word: str, known: Iterable[str]) -> str:
    """``did you mean 'factor'?``, or the list of known names."""
    known = sorted(known)
    near = difflib.get_close_matches(word.lower(), known, 1, 0.6)
    return f"did you mean {near[0]!r}?" if near else f"there {'is' if len(known) == 1 else 'are'} {', '.join(known)}"


def named(owner: Any, field: str) -> str:
    """``Bernoulli(means=[0.3, 2.0])``: an object and the one field an error is about."""
    return f"{type(owner).__name__}({field}={show(vars(owner)[field])})"


@functools.cache
def speaks_of(cls: type, trait: str, method: str) -> bool:
    """Whether a trait is declared in the class that defines ``method`` or below it; true for methods of the library.

    A user's subclass of a class of the library with a method of its own inherits the traits of the former method.
    """
    for one in cls.__mro__:
        if trait in vars(one) or trait in vars(one).get("__annotations__", {}):
            return True
        if method in vars(one):
            return one.__module__.partition(".")[0] == __name__.partition(".")[0]
    return True
