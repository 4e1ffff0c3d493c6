"""What is played: a game, its state and its records. How a machine plays it is in :mod:`jaxbandit._engine.player`."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandit._core import arms, randomness
from jaxbandit._core.fields import canonical, float_dtype, pytree_dataclass
from jaxbandit._core.sums import Sum
from jaxbandit._engine.devices import platform
from jaxbandit._engine.measuring import readings
from jaxbandit._engine.queues import Queue
from jaxbandit.delays import Delays
from jaxbandit.learners.base import Learner, Round, as_learner
from jaxbandit.losses import Losses


@pytree_dataclass
class State:
    """Everything a block of runs carries from one round to the next."""

    learner_state: Any
    pending: Queue  # outstanding observations
    suffered: Sum  # [...] Σ_t <x_t, m_t - min m_t>
    excess: Sum | None  # [K] or [K, ...] Σ_t (m_t - min m_t), for losses whose means move; None: the best arm is always the same
    measured: tuple[Any, ...]  # the state of each measurement


@pytree_dataclass
class Records:
    """What is kept of the recorded rounds."""

    regret: jax.Array  # [C, ...]
    probabilities: jax.Array | None  # [C, K, ...]
    measured: dict[str, jax.Array]  # [C, ..., runs]
    trajectory: dict[str, jax.Array] | None = None  # [R, ..., S], on the host only: see jaxbandit._engine.trajectories


@pytree_dataclass
class Game:
    """A learner, a loss model, a delay model and the random streams: the constants of a simulation."""

    learner: Learner
    losses: Losses
    delays: Delays
    streams: tuple[randomness.Words, ...]
    runs: jax.Array  # [...] uint32 run ids
    grain: jax.Array  # [] float, see randomness.uniform
    measure: tuple[Any, ...] = ()

    @classmethod
    def set_up(
        cls, learner: Any, losses: Losses, delays: Delays, key: jax.Array, runs: Any, measure: Sequence[Any] = ()
    ) -> "Game":
        """The game as given, unchecked; ``runs`` are the run ids. Users' arguments go through :func:`jaxbandit._engine.set_up.checked_game`."""
        return cls(
            as_learner(canonical(learner)),
            canonical(losses.prepare()),
            canonical(delays).prepare(),
            randomness.streams(key),
            runs,
            randomness.grain(float_dtype()),
            canonical(tuple(measure)),
        )

    def round(self, t: jax.Array, pending: Queue | None, outstanding: jax.Array, total_outstanding: jax.Array) -> Round:
        """What the learner may know in round t."""

        def is_outstanding(s):
            if self.delays.oblivious:
                zero = jnp.zeros(jnp.shape(s), float_dtype())
                # Drawn again from the key; NEVER is later than any round.
                late = self.delays.draw(s, jnp.zeros_like(s), zero, self.delay_noise(s)) >= t - s
            else:
                late = jnp.zeros(self.runs.shape, bool) if pending is None else pending.is_due_from(s, t)
            return (s >= 1) & (s < t) & late

        return Round(t, outstanding, total_outstanding, lambda pair=0: self.words(randomness.LEARNER, t, pair), is_outstanding)

    def words(self, purpose: int, t: jax.Array, pair: Any = 0) -> randomness.Words:
        """Two random words for each run in round t."""
        return randomness.fold(self._round_key(purpose, t), self.runs, pair)

    def _round_key(self, purpose: int, t: jax.Array) -> randomness.Words:
        key = randomness.fold(self.streams[purpose], t)
        # With a key for each run, a CPU would work out both words of it again in every turn of the next hash.
        return randomness.in_one_pass(key) if key.first.ndim and platform() == "cpu" else key

    def delay_noise(self, t: jax.Array) -> jax.Array:
        """The uniform number that the delay of round t is drawn from."""
        # One number for all runs if they share the sequence: an oblivious adversary does not know the run.
        words = randomness.fold(
            self._round_key(randomness.DELAY, t), jnp.zeros((), jnp.uint32) if self.delays.shared else self.runs
        )
        return randomness.uniform(words.first, self.grain)

    def regret(self, state: State) -> jax.Array:
        """Pseudo-regret so far against the best arm in hindsight, ``[...]``."""
        if state.excess is None:
            return state.suffered.value + state.suffered.error
        best = jnp.argmin(state.excess.value + state.excess.error, 0)
        value, error = (arms.pick(part, best) if best.ndim else part[best] for part in (state.excess.value, state.excess.error))
        return (state.suffered.value - value) + (state.suffered.error - error)

    def readings(self, state: State) -> dict[str, jax.Array]:
        """What the measurements read so far, by name, ``[..., runs]``."""
        return readings(self.measure, state.measured)
