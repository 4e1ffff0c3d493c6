"""The base of every loss model: what may be asked of one. Helpers that laws share."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._core.arms import pick
from jaxbandit._core.fields import is_concrete, is_numeric, lists_to_arrays, show


class Losses:
    """Base of every loss model, also of a user's own: all that may be asked of one, with defaults.

    A law must have ``num_arms``, :meth:`expected` and :meth:`sample`. Each trait may be a constant of the class, a static
    field or a property.
    """

    num_arms: int = 0  # K; every law must say it
    stationary: bool = False  # the means are the same in every round
    needs_key: bool = False  # `sample` gets a JAX key for each run in place of a uniform number
    length: int | None = None  # how many rounds there are losses for; None: any number

    def __post_init__(self) -> None:
        lists_to_arrays(self)

    def expected(self, t: jax.Array) -> jax.Array:
        """The mean losses of round t, ``[K]``, exact."""
        raise NotImplementedError(f"{type(self).__name__} has no method expected(t)")

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        """The loss of ``arm [...]`` in round t, in [0, 1]; ``noise [...]`` is uniform in (0, 1), or keys (``needs_key``)."""
        raise NotImplementedError(f"{type(self).__name__} has no method sample(t, arm, noise)")

    def prepare(self) -> "Losses":
        """The law that the rounds use: what :meth:`expected` needs that can be computed once, before round 1."""
        return self

    def check(self) -> None:
        """Raise ValueError if fields are inconsistent; each field has been checked before."""


class DifferentiableLosses(Losses):
    """Losses with respect to whose numbers the expected regret may be differentiated without differences of runs."""

    chance_fields: tuple[str, ...] = ()  # losses are 0 or 1, and `expected` has the right derivative in these fields
    value_fields: tuple[str, ...] = ()  # `sample` has the right derivative in these fields

    def second_moment(self, t: jax.Array) -> jax.Array:
        """E[ℓ²] of each arm in round t, ``[K]``; as given here right for losses 0 and 1. Reduces the variance of gradients."""
        return self.expected(t)


class ShowsSignals(Losses):
    """Losses whose plays show a signal at once; the loss arrives later (intermediate observations)."""

    num_signals: int = 0  # S: how many different signals there are

    def signal(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        """The signal, int32 from 0 to S - 1, of the play whose loss is ``sample(t, arm, noise)``."""
        raise NotImplementedError(f"{type(self).__name__} has no method signal(t, arm, noise)")


def second_moment(losses: Losses, t: jax.Array) -> jax.Array:
    """E[ℓ²] of each arm in round t, ``[K]``; the mean, which is at least as large, where it is not known."""
    return losses.second_moment(t) if isinstance(losses, DifferentiableLosses) else losses.expected(t)


def check_declared(losses: Losses) -> None:
    """Raise for a trait that has no effect, because the class does not inherit from the base that declares it."""
    cls = type(losses)
    for base in (DifferentiableLosses, ShowsSignals):
        unused = [name for name in vars(base) if not name.startswith("_") and name in dir(cls)]
        if unused and not issubclass(cls, base):
            name = cls.__name__
            raise TypeError(
                f"losses={name}(…): {name}.{unused[0]} counts only in a class that inherits from jb.extend.{base.__name__}"
            )


class WithMeans(DifferentiableLosses):
    """Base of the laws with a field ``means``, the same in every round, or ``rewards`` in its place: a reward r is the loss 1 - r."""

    means: Any
    stationary: bool = True

    def __post_init__(self, rewards: Any) -> None:
        if rewards is not None:
            name = f"losses.{type(self).__name__}"
            if self.means is not None:
                raise ValueError(f"{name}(rewards={show(rewards)}): means and rewards are both given; give one of the two")
            if is_concrete(rewards) and not is_numeric(rewards):
                raise ValueError(
                    f"{name}(rewards={show(rewards)}): mean rewards must be numbers between 0 and 1, one for each arm"
                )
            if is_concrete(rewards) and not np.all((np.asarray(rewards) >= 0) & (np.asarray(rewards) <= 1)):
                raise ValueError(f"{name}(rewards={show(rewards)}): mean rewards must lie between 0 and 1")
            object.__setattr__(self, "means", 1 - (np.asarray(rewards) if is_concrete(rewards) else jnp.asarray(rewards)))
        super().__post_init__()

    @property
    def num_arms(self) -> int:
        return np.shape(self.means)[0]

    def check(self) -> None:
        if self.means is None:
            name = f"losses.{type(self).__name__}"
            raise ValueError(
                f"{name}(): give means=[0.3, 0.5], the mean losses, or rewards=[0.7, 0.5], the mean rewards, one for each arm"
            )


def coin(means: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
    """1 with probability ``means[arm]``, else 0."""
    noise = jnp.asarray(noise)
    return (noise < pick(means, jnp.asarray(arm))).astype(means.dtype)
