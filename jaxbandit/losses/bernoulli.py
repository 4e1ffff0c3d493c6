"""Losses 0 and 1, with means that stay or move."""

import functools
from dataclasses import InitVar
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.fields import (
    MOST_ROUNDS,
    Numbers,
    as_float,
    float_dtype,
    is_concrete,
    named,
    number,
    pytree_dataclass,
    static,
    whole_number,
)
from jaxbandit.losses.base import DifferentiableLosses, WithMeans, coin


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

    def expected(self, t: jax.Array) -> jax.Array:
        return jnp.asarray(self.means)

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return coin(self.expected(t), arm, noise)


@pytree_dataclass
class StochasticallyConstrained(DifferentiableLosses):
    """The stochastically constrained adversary: time-varying means, fixed gaps (environment B of Zimmert & Seldin 2021).

    Bernoulli losses whose means (best arm, all others) alternate between :math:`(0, \\Delta)` and :math:`(1 - \\Delta, 1)`; each phase is ``growth``
    times as long as the one before, the first lasts one round. Arm 0 is the best throughout.

    Phase n (from 0) begins with the first round t for which :math:`t - 1 \\ge (g^n - 1)/(g - 1)`, where g is ``growth`` as a number
    of JAX's precision. These rounds are exact, except where ``growth`` is traced: there they are computed in that precision.

    Args:
      gap: :math:`\\Delta` in [0, 1].
      arms: K (static).
      growth: g, above 1.

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

    def prepare(self) -> "StochasticallyConstrained":
        """The loss model with a table of the rounds before each phase, where ``growth`` is known."""
        if not is_concrete(self.growth):
            return self
        growth = np.asarray(self.growth, float_dtype())  # [], or [runs]
        tables = [rounds_before_phases(float(one)) for one in growth.flat]
        size = 1 << max(6, max(map(len, tables)).bit_length())  # few shapes: most growths share a program
        filled = np.stack([np.pad(table, (0, size - len(table)), mode="edge") for table in tables], -1)
        return Tabulated(self.gap, self.arms, self.growth, filled.reshape(size, *growth.shape))

    def expected(self, t: jax.Array) -> jax.Array:
        return self.prepare()._expected(t)

    def _expected(self, t: jax.Array) -> jax.Array:
        gap = as_float(self.gap)
        phase = self._phase(jnp.asarray(t) - 1, jnp.asarray(self.growth, gap.dtype))
        best = jnp.where(phase % 2 == 0, jnp.zeros_like(gap), 1 - gap)
        return best + jnp.where(jnp.arange(self.arms) == 0, jnp.zeros_like(gap), gap)

    def _phase(self, played: jax.Array, growth: jax.Array) -> jax.Array:
        nearest = _nearest_phase(played, growth)
        begun = played.astype(growth.dtype) >= (growth**nearest - 1) / (growth - 1) * (1 - 1e-6)
        return nearest.astype(jnp.int32) - ~begun

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return coin(self.expected(t), arm, noise)


@pytree_dataclass
class Tabulated(StochasticallyConstrained):
    """The same with exact phases: ``before[n]`` rounds are played before phase n."""

    before: Numbers = whole_number(default=None, high=MOST_ROUNDS, axes="P")

    def prepare(self) -> "Tabulated":
        return self

    def _phase(self, played: jax.Array, growth: jax.Array) -> jax.Array:
        # The logarithm may round across the border of a phase: its nearest whole number is the phase or the one after it.
        nearest = jnp.minimum(_nearest_phase(played, growth).astype(jnp.int32), np.shape(self.before)[0] - 1)
        return nearest - (played < jnp.asarray(self.before)[nearest])


def _nearest_phase(played: jax.Array, growth: jax.Array) -> jax.Array:
    """The solution n of ``(growth^n - 1)/(growth - 1) = played``, rounded to a whole number."""
    return jnp.round(jnp.log1p((growth - 1) * played.astype(growth.dtype)) / jnp.log(growth))


FRACTION = 160  # binary digits after the point; errors stay below 10⁻³⁰ rounds


@functools.lru_cache
def rounds_before_phases(growth: float) -> np.ndarray:
    """``[P]`` the rounds before each phase: :math:`(g^n - 1)/(g - 1)` rounded up, for all n below 2³⁰ rounds.

    In integers: :math:`S_0 = 0` and :math:`S_{n+1} = 1 + g S_n`. If g is not a whole number, :math:`S_n` is none from n = 2 on.
    """
    numerator, denominator = growth.as_integer_ratio()  # the denominator is a power of two
    one, total, found = 1 << FRACTION, 0, []
    while total <= MOST_ROUNDS * one:
        found.append(-(-total // one))
        total = one + total * numerator // denominator
    return np.array(found, np.int32)


@pytree_dataclass
class Switching(DifferentiableLosses):
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
        if np.any(starts[0] != 1) or np.any(np.diff(starts, axis=0) <= 0):
            raise ValueError(
                f"losses.{named(self, 'starts')}: starts must be the first rounds of the {phases} phases in means, "
                "whole numbers ascending from 1"
            )

    def expected(self, t: jax.Array) -> jax.Array:
        phase = (jnp.asarray(self.starts) <= t).sum(0) - 1  # [], or [runs] if the starts differ by run
        means = jnp.asarray(self.means)
        if phase.ndim == 0:
            return means[phase]
        rows = means if means.ndim == 3 else means[..., None]  # [P, K, runs or 1]
        return jnp.where((jnp.arange(rows.shape[0])[:, None] == phase)[:, None], rows, 0).sum(0)

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return coin(self.expected(t), arm, noise)


@pytree_dataclass
class DelayMatchedSwitching(DifferentiableLosses):
    r"""Delay-matched switching: an oblivious adversary whose best arm alternates every :math:`2d` rounds.

    .. math:: \mu_{t,0} = \lfloor (t - 1) / 2d \rfloor \bmod 2, \quad \mu_{t,1} = 1 - \mu_{t,0}, \quad \mu_{t,i} = 0.9 \text{ for } i \ge 2

    Under a fixed delay :math:`d` all observations are half a phase old. A learner that follows them at once plays each arm
    when its losses have become large. The losses are Bernoulli with means :math:`\mu_{t,i}`.

    Args:
      delay: :math:`d`, at least 1.
      arms: :math:`K`, at least 2 (static).

    >>> import jaxbandit as jb
    >>> jb.losses.DelayMatchedSwitching(delay=50, arms=4).expected(t=101)
    Array([1. , 0. , 0.9, 0.9], dtype=float32)
    """

    delay: ArrayLike = whole_number(low=1)
    arms: int = static(low=2)

    @property
    def num_arms(self) -> int:
        return self.arms

    def expected(self, t: jax.Array) -> jax.Array:
        best, arm = (jnp.asarray(t) - 1) // (2 * self.delay) % 2, jnp.arange(self.arms)
        return jnp.where(arm > 1, 0.9, arm != best).astype(float_dtype())

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return coin(self.expected(t), arm, noise)


@pytree_dataclass
class Drifting(DifferentiableLosses):
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
