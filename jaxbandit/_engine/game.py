"""A game, its state and its records. :mod:`jaxbandit._engine.player` simulates it."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbandit._core import arms, randomness
from jaxbandit._core.fields import canonical, float_dtype, pytree_dataclass
from jaxbandit._core.sums import Sum
from jaxbandit._engine.measuring import readings
from jaxbandit._engine.queues import Queue
from jaxbandit._engine.queues.listed import Pending
from jaxbandit.delays import Delays
from jaxbandit.learners.base import Learner, ReadsDelays, Round, as_learner, is_a
from jaxbandit.losses import AdaptiveLosses, Losses, ShowsStages
from jaxbandit.losses.base import Now


@pytree_dataclass
class State:
    """Everything a block of runs carries from one round to the next."""

    learner_state: Any
    pending: Queue  # outstanding observations
    suffered: Sum  # [...] Σ_t <x_t, m_t - min m_t>
    excess: Sum | None  # [K] or [K, ...] Σ_t (m_t - min m_t), for losses whose means move; None: the best arm is always the same
    measured: tuple[Any, ...]  # the state of each measurement
    adversary: Any = None  # the state of adaptive losses
    stages: tuple[Pending, ...] | None = None  # outcomes before the loss that are outstanding, a queue for each stage


@pytree_dataclass
class Records:
    """Measurements at the recorded rounds."""

    regret: Float[Array, " C *runs"]
    probabilities: Float[Array, " C K *runs"] | None
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
        """The information available to the learner in round t."""

        def is_outstanding(s):
            if self.delays.oblivious:
                zero = jnp.zeros(jnp.shape(s), float_dtype())
                # Recomputed from the key; NEVER exceeds every round.
                late = self.delays.draw(s, jnp.zeros_like(s), zero, self.delay_noise(s)) >= t - s
            else:
                late = jnp.zeros(self.runs.shape, bool) if pending is None else pending.is_due_from(s, t)
            return (s >= 1) & (s < t) & late

        round = Round(t, outstanding, total_outstanding, lambda pair=0: self.words(randomness.LEARNER, t, pair), is_outstanding)
        if not is_a(self.learner, ReadsDelays):
            return round
        # Delays that are known do not depend on the arm or the loss.
        nothing = jnp.zeros(self.runs.shape, float_dtype())
        return round._replace(delay=self.delays.draw(t, nothing.astype(jnp.int32), nothing, self.delay_noise(t)))

    def losses_after(self, adversary: Any) -> Losses | Now:
        """The loss model of a round; ``adversary`` is the state of adaptive losses."""
        return Now(self.losses, adversary) if isinstance(self.losses, AdaptiveLosses) else self.losses

    def losses_with_stages(self) -> ShowsStages:
        """The loss model, which has outcomes before the loss."""
        assert isinstance(self.losses, ShowsStages)
        return self.losses

    def loss_noise(self, t: jax.Array, arm: jax.Array) -> jax.Array:
        """The noise ``[K, ...]`` of the losses of all arms ``[K, 1, ...]``, for games in which all losses are drawn."""
        # Pair 0 is the key of the chosen arm in games that draw no other.
        words = self.words(randomness.LOSS, t, arm.astype(jnp.uint32) + 1)
        return words.key() if self.losses.needs_key else randomness.uniform(words.first, self.grain)

    def words(self, purpose: int, t: jax.Array, pair: Any = 0) -> randomness.Words:
        """Two random words for each run in round t."""
        return randomness.fold(randomness.round_key(self.streams[purpose], t), self.runs, pair)

    def delay_noise(self, t: jax.Array, stage: int | None = None) -> jax.Array:
        """The uniform number that the delay of round t is drawn from, or that of an outcome before the loss."""
        # One number for all runs if they share the sequence: oblivious delays do not depend on the run.
        law = self.delays if stage is None else self.losses_with_stages().stage_delays[stage]
        key = randomness.round_key(self.streams[randomness.DELAY], t)
        pair = 0 if stage is None else stage + 1
        words = randomness.fold(key, jnp.zeros((), jnp.uint32) if law.shared else self.runs, pair)
        return randomness.uniform(words.first, self.grain)

    def regret(self, state: State) -> jax.Array:
        """Pseudo-regret so far against the best arm in hindsight, ``[...]``."""
        if state.excess is None:
            return state.suffered.value + state.suffered.error
        best = jnp.argmin(state.excess.value + state.excess.error, 0)
        value, error = (arms.pick(part, best) if best.ndim else part[best] for part in (state.excess.value, state.excess.error))
        return (state.suffered.value - value) + (state.suffered.error - error)

    def readings(self, state: State) -> dict[str, jax.Array]:
        """The current values of the measurements by name, ``[..., runs]``."""
        return readings(self.measure, state.measured)
