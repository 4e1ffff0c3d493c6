"""Losses 0 and 1, with means that stay or move."""

from dataclasses import InitVar
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit.losses.base import Losses, WithMeans, coin
from jaxbandit.pytrees import MOST_ROUNDS, Numbers, as_float, is_concrete, named, number, pytree_dataclass, static, whole_number


@pytree_dataclass
class Bernoulli(WithMeans):
    """Losses 1 with probability ``means[arm]``, else 0.

    Args:
      means: ``[K]`` mean losses in [0, 1].
      rewards: mean rewards in their place; a reward r is the loss 1 - r.

    In float32, gaps below 3·10⁻⁶ next to 0.5 and means below 6·10⁻⁶ are off by more than 1 %; ``jax_enable_x64`` holds them.

    >>> import jaxbandit as jb
    >>> jb.losses.Bernoulli([0.3, 0.5]).sample(t=1, arm=1, noise=0.4)
    Array(1., dtype=float32)
    >>> jb.losses.Bernoulli(rewards=[0.75, 0.5])
    Bernoulli(means=[0.25, 0.5])
    """

    means: Numbers = number(default=None, high=1.0, axes="K", instead="rewards")
    rewards: InitVar[Numbers | None] = None
    chance_fields: ClassVar[tuple[str, ...]] = ("means",)
    by_run: ClassVar[tuple[str, ...]] = ("means",)

    def expected(self, t: jax.Array) -> jax.Array:
        return jnp.asarray(self.means)

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return coin(self.expected(t), arm, noise)


@pytree_dataclass
class StochasticallyConstrained(Losses):
    """The stochastically constrained adversary: means move, gaps do not (environment B of Zimmert & Seldin 2021).

    Bernoulli losses whose means (best arm, all others) alternate between (0, Δ) and (1 - Δ, 1); each phase is ``growth``
    times as long as the one before, the first lasts one round. Arm 0 is the best throughout.

    Args:
      gap: Δ in [0, 1].
      arms: K (static).
      growth: above 1.

    >>> import jaxbandit as jb
    >>> jb.losses.StochasticallyConstrained(0.25, arms=3).expected(t=2)
    Array([0.75, 1.  , 1.  ], dtype=float32)
    """

    gap: ArrayLike = number(high=1.0)
    arms: int = static(low=1)
    growth: ArrayLike = number(default=1.6, low=1.001)
    chance_fields: ClassVar[tuple[str, ...]] = ("gap",)  # the ends of the phases jump with `growth`

    @property
    def num_arms(self) -> int:
        return self.arms

    def expected(self, t: jax.Array) -> jax.Array:
        gap = as_float(self.gap)
        growth = jnp.asarray(self.growth, gap.dtype)
        played = (jnp.asarray(t) - 1).astype(gap.dtype)
        # Phase n starts after (growth^n - 1)/(growth - 1) rounds. The logarithm may round across a border: look at both sides.
        phase = jnp.round(jnp.log1p((growth - 1) * played) / jnp.log(growth))
        phase = phase - (played < (growth**phase - 1) / (growth - 1) * (1 - 1e-6))
        phase = phase.astype(jnp.int32)
        best = jnp.where(phase % 2 == 0, jnp.zeros_like(gap), 1 - gap)
        return best + jnp.where(jnp.arange(self.arms) == 0, jnp.zeros_like(gap), gap)

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return coin(self.expected(t), arm, noise)


@pytree_dataclass
class Switching(Losses):
    """Bernoulli losses with piecewise constant means.

    Args:
      means: ``[P, K]`` mean losses of each phase.
      starts: ``[P]`` first round of each phase, ascending from 1.

    >>> import jaxbandit as jb
    >>> jb.losses.Switching([[0.2, 0.8], [0.8, 0.2]], starts=[1, 100]).expected(t=100)
    Array([0.8, 0.2], dtype=float32)
    """

    means: Numbers = number(high=1.0, axes="PK")
    starts: Numbers = whole_number(low=1, high=MOST_ROUNDS, axes="P")
    chance_fields: ClassVar[tuple[str, ...]] = ("means",)
    by_run: ClassVar[tuple[str, ...]] = ("means",)

    @property
    def num_arms(self) -> int:
        return np.shape(self.means)[1]

    def check(self) -> None:
        if not is_concrete(self.starts):
            return
        starts, phases = (
            np.asarray(self.starts, np.float64),
            np.shape(self.means)[0],
        )  # differences of unsigned numbers would wrap
        if starts[0] != 1 or np.any(np.diff(starts, axis=0) <= 0):
            raise ValueError(
                f"losses.{named(self, 'starts')}: starts must be the first rounds of the {phases} phases in means, "
                "whole numbers ascending from 1"
            )

    def expected(self, t: jax.Array) -> jax.Array:
        phase = (jnp.asarray(self.starts) <= t).sum() - 1
        return jnp.asarray(self.means)[phase]

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return coin(self.expected(t), arm, noise)


@pytree_dataclass
class Drifting(Losses):
    """Bernoulli losses whose means move in straight lines, from ``start`` in round 1 to ``end``, which they keep after ``rounds`` rounds.

    Args:
      start: ``[K]`` mean losses of round 1.
      end: ``[K]`` mean losses of round ``rounds + 1`` and all later ones.
      rounds: how many rounds it takes.

    >>> import jaxbandit as jb
    >>> jb.losses.Drifting([0.25, 0.5], [0.75, 0.5], rounds=100).expected(t=51)
    Array([0.5, 0.5], dtype=float32)
    """

    start: Numbers = number(high=1.0, axes="K")
    end: Numbers = number(high=1.0, axes="K")
    rounds: ArrayLike = number(low=1, high=MOST_ROUNDS)
    chance_fields: ClassVar[tuple[str, ...]] = ("start", "end")

    @property
    def num_arms(self) -> int:
        return np.shape(self.start)[0]

    def expected(self, t: jax.Array) -> jax.Array:
        start, end = as_float(self.start), as_float(self.end)
        share = jnp.minimum((jnp.asarray(t) - 1).astype(start.dtype) / self.rounds, 1)
        return (1 - share) * start + share * end

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return coin(self.expected(t), arm, noise)
