"""Frozen dataclasses that are pytrees: how learners, losses and delay laws are made.

Every number a user may sweep, vmap or differentiate is a leaf; every size or switch is a static field.
Constructors only store, because JAX reruns them with tracers, masks and labels in place of numbers.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.tree_util import GetAttrKey, register_pytree_with_keys
from jax.typing import ArrayLike

T = TypeVar("T")
Numbers = ArrayLike | Sequence[Any]  # what a field of numbers may be given as


def static(*, default: Any = dataclasses.MISSING) -> Any:
    """A field that is part of the program: changing it compiles anew."""
    return dataclasses.field(default=default, metadata={"static": True})


def whole(*, default: Any = dataclasses.MISSING) -> Any:
    """A leaf that counts rounds, kept as int32 (any other leaf is a float)."""
    return dataclasses.field(default=default, metadata={"whole": True})


@dataclass_transform(frozen_default=True, field_specifiers=(static, whole, dataclasses.field))
def pytree_dataclass(cls: type[T]) -> type[T]:
    """Make ``cls`` a frozen dataclass and a pytree; fields made by :func:`static` are not leaves."""
    # eq=False: leaves are arrays, whose == is not a truth value.
    cls = dataclasses.dataclass(frozen=True, eq=False)(cls)
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    data = [f.name for f in fields if not f.metadata.get("static")]
    meta = [f.name for f in fields if f.metadata.get("static")]

    def flatten(tree):
        return [getattr(tree, name) for name in data], tuple(getattr(tree, name) for name in meta)

    def flatten_with_keys(tree):
        return [(GetAttrKey(name), getattr(tree, name)) for name in data], tuple(getattr(tree, name) for name in meta)

    def unflatten(statics, leaves):
        return cls(**dict(zip(data, leaves, strict=True)), **dict(zip(meta, statics, strict=True)))

    # Not `register_dataclass`: in jaxlib 0.10.2 the structures of two classes registered by it are equal (==) if only their
    # fields are alike, so that, now and then, jit takes the program of one learner for another's.
    register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls


def float_dtype() -> np.dtype:
    """float32, or float64 when ``jax_enable_x64`` is on."""
    return jax.dtypes.canonicalize_dtype(np.float64)


def canonical(tree: T) -> T:
    """The same object with every leaf an array: float leaves of one dtype, whole-number leaves int32.

    A mix of Python numbers and arrays in one field would compile one program for each mixture.
    """
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        new = {}
        for f in dataclasses.fields(tree):
            value = getattr(tree, f.name)
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
    """Whether ``value`` has numbers in it that can be looked at (it is not a tracer)."""
    return not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value))


def is_numeric(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except (TypeError, ValueError):
        return False


def show(value: Any) -> str:
    """``value`` as a user would have typed it, short enough for one sentence."""
    if isinstance(value, np.ndarray | np.generic | jax.Array) and not jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = np.asarray(value).tolist()
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def named(owner: Any, field: str) -> str:
    """``Bernoulli(means=[0.3, 2.0])``: an object and the one field an error is about."""
    return f"{type(owner).__name__}({field}={show(getattr(owner, field))})"
