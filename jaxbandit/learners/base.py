"""What a learner is: three pure methods on a pytree of hyperparameters.

Arrays are ``[K, ...]`` per arm and ``[...]`` per run, arms first and runs last, so the same code serves one run and a block
of runs. :class:`Round` is what a learner may know when it acts, :class:`Observation` what reaches it later.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from jaxbandit.arms import is_arm
from jaxbandit.randomness import Words


class Round(NamedTuple):
    """What a learner may know at the start of round t."""

    t: jax.Array  # [] int32, the round, from 1 ([...] where a wrapper gives each run's copy its own clock)
    outstanding: jax.Array  # [] or [...] int32, σ_t: plays made before t whose feedback has not arrived before t
    total_outstanding: jax.Array  # [] or [...] float, Σ_{s<=t} σ_s
    words: Callable[[], Words]  # two fresh random words for each run, for learners that draw by themselves
    is_outstanding: Callable[[jax.Array], jax.Array]  # of a round s ([] or [...] int32): s < t and s + d_s >= t

    @property
    def time(self) -> jax.Array:
        """t as a float."""
        return self.t.astype(self.total_outstanding.dtype)

    def keys(self) -> jax.Array:
        """One JAX key for each run."""
        return self.words().key()


class Observation(NamedTuple):
    """One arrived observation for each run; where ``arrived`` is False it must change nothing."""

    arrived: jax.Array  # [] or [...] bool
    origin: jax.Array  # [] or [...] int32, the round s of the play
    arm: jax.Array  # [...] int32, -1 where nothing arrived
    loss: jax.Array  # [...]
    probability: jax.Array  # [...] of the arm at play time
    memo: Any  # what the learner left with the play

    def weighted_loss(self) -> jax.Array:
        """The importance-weighted loss ℓ/x_s of the play, 0 where nothing arrived; ``[...]``."""
        # The probability of a play that was never made may be 0: put a safe value in before dividing.
        return jnp.where(self.arrived, self.loss, 0) / jnp.where(self.arrived, self.probability, 1)

    def at_arm(self, value: jax.Array, num_arms: int) -> jax.Array:
        """``value [...]`` in the row of the played arm, 0 elsewhere; ``[K, ...]``."""
        return jnp.where(is_arm(self.arm, num_arms), value, jnp.zeros((), value.dtype))


@runtime_checkable
class Learner(Protocol):
    """The protocol: any object with these three methods is a learner (and a pytree, if its numbers shall be traced).

    A class that calls ``round.is_outstanding`` says ``watches_plays = True``.
    """

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any:
        """The state before round 1: a pytree of ``[K, ...]`` and ``[...]`` arrays."""
        ...

    def act(self, state: Any, round: Round) -> tuple[jax.Array, Any, Any]:
        """``(probabilities [K, ...], memo, state)``; ``memo`` waits with the play and comes back with its feedback."""
        ...

    def observe(self, state: Any, observation: Observation) -> Any:
        """The state after one observation for each run; called in ascending round of origin."""
        ...
