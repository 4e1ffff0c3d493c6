"""The base of every loss law: what may be asked of one. Helpers that laws share."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._core.arms import pick
from jaxbandit._core.fields import is_concrete, is_numeric, lists_to_arrays, show


class Losses:
    """Base of every loss law, also of a user's own: all that may be asked of one, with defaults.

    A law must have ``num_arms``, :meth:`expected` and :meth:`sample`. Each trait may be a constant of the class, a static
    field or a property.
    """

    num_arms: int = 0  # K; every law must say it
    stationary: bool = False  # the means are the same in every round
    needs_key: bool = False  # `sample` gets a JAX key for each run in place of a uniform number
    num_signals: int = 0  # S: a play shows one of S signals at once, its loss comes later; 0: plays show nothing
    length: int | None = None  # how many rounds there are losses for; None: any number
    chance_fields: tuple[str, ...] = ()  # losses are 0 or 1, and `expected` has the right derivative in these fields
    value_fields: tuple[str, ...] = ()  # `sample` has the right derivative in these fields

    def __post_init__(self) -> None:
        lists_to_arrays(self)

    def expected(self, t: jax.Array) -> jax.Array:
        """The mean losses of round t, ``[K]``, exact."""
        raise NotImplementedError(f"{type(self).__name__} has no method expected(t)")

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        """The loss of ``arm [...]`` in round t, in [0, 1]; ``noise [...]`` is uniform in (0, 1), or keys (``needs_key``)."""
        raise NotImplementedError(f"{type(self).__name__} has no method sample(t, arm, noise)")

    def signal(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        """The signal, int32 from 0 to S - 1, of the play whose loss is ``sample(t, arm, noise)``; where ``num_signals`` is S > 0."""
        raise NotImplementedError(f"{type(self).__name__} has no method signal(t, arm, noise)")

    def second_moment(self, t: jax.Array) -> jax.Array:
        """E[ℓ²] of each arm in round t, ``[K]``; as given here right for losses 0 and 1. Sharpens gradients, nothing else."""
        return self.expected(t)

    def prepare(self) -> "Losses":
        """The law that the rounds use: what :meth:`expected` needs that can be computed once, before round 1."""
        return self

    def check(self) -> None:
        """Raise ValueError, in one sentence, if fields do not go together; each by itself has been checked before."""


class WithMeans(Losses):
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
