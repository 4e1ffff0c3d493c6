"""A warning for rollouts that are differentiated with respect to numbers of the losses or delays."""

import functools
import warnings
from typing import Any, TypeVar

import jax
import jax.core
import jax.numpy as jnp

T = TypeVar("T")


def warn_of_derivatives(laws: T) -> T:
    """Return ``laws`` unchanged, and warn once if one of their numbers is differentiated.

    Only traced numbers can be differentiated, so that nothing is added to other calls.
    """

    def watched(leaf: Any) -> Any:
        traced = isinstance(leaf, jax.core.Tracer) and jnp.issubdtype(leaf.dtype, jnp.floating)
        return _watched(leaf) if traced else leaf

    return jax.tree.map(watched, laws)


@jax.custom_jvp
def _watched(leaf: jax.Array) -> jax.Array:
    return leaf


@_watched.defjvp
def _(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    _warn()  # JAX evaluates this rule when it differentiates, also under jit
    return primals[0], tangents[0]


@functools.cache
def _warn() -> None:
    warnings.warn(
        "rollout: its derivative in a number of losses or delays holds the sampled arms, losses and delays fixed, and is not that of "
        "the expected regret; jb.regret_gradient(..., wrt='losses') or wrt='delays' estimates that one",
        stacklevel=3,
    )
