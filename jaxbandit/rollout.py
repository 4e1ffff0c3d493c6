"""One block of runs: the round, the loop over rounds, and what is recorded.

This is the pure core. It knows nothing of devices, blocks or files.
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit import arms, randomness
from jaxbandit.counting import Count, Sum
from jaxbandit.jump import Expected, Jump, second_moment
from jaxbandit.learners.base import Round, tell_played
from jaxbandit.measure import Moment, check_measure
from jaxbandit.pending import Pending, Play
from jaxbandit.pytrees import canonical, float_dtype, pytree_dataclass, static
from jaxbandit.validation import check_game, check_key, check_record, check_rounds, check_runs


@pytree_dataclass
class State:
    """Everything a block of runs carries from one round to the next."""

    learner: Any
    pending: Pending
    suffered: Sum  # [...] Σ_t <x_t, m_t - min m_t>
    excess: Sum | None  # [K] Σ_t (m_t - min m_t), for losses whose means move; None: the best arm is always the same
    measured: tuple[Any, ...]  # the state of each measurement


@pytree_dataclass
class Rollout:
    """What :func:`rollout` returns; ``...`` is the shape of the runs."""

    rounds: jax.Array  # [C] the recorded rounds
    regret: jax.Array  # [C, ...] pseudo-regret up to them
    probabilities: jax.Array | None  # [C, K, ...] x_t at them, if asked for
    measured: dict[str, jax.Array]  # name -> [C, ..., runs], what was asked for by ``measure``
    state: State

    @property
    def outstanding_max(self) -> jax.Array:
        """The largest number of outstanding plays met; ``[]`` if delays are shared."""
        return self.state.pending.outstanding_max

    @property
    def total_delay(self) -> Count:
        """Σ min(d_s, T - s), exact, as two words; ``[]`` if delays are shared."""
        return self.state.pending.total_outstanding

    @property
    def lost(self) -> jax.Array:
        """How many plays' feedback never arrives; ``[]`` if delays are shared."""
        return self.state.pending.lost


@pytree_dataclass
class Game:
    """Who plays whom, with which randomness: all that the rounds read and never change."""

    learner: Any
    losses: Any
    delays: Any
    streams: tuple[randomness.Words, ...]
    runs: jax.Array  # [...] uint32 run ids
    grain: jax.Array  # [] float, see randomness.uniform
    measure: tuple[Any, ...] = ()
    feedback: Literal["sampled", "jump", "expected"] = static(default="sampled")  # see jaxbandit.jump

    @classmethod
    def set_up(cls, learner, losses, delays, key, runs, measure=()) -> "Game":
        return cls(
            learner,
            losses,
            delays.prepare() if hasattr(delays, "prepare") else delays,
            randomness.streams(key),
            runs,
            randomness.grain(float_dtype()),
            tuple(measure),
        )

    def start(self) -> State:
        num_arms, shape = self.losses.num_arms, self.runs.shape
        learner = self.learner.init(num_arms, shape)
        zero = jnp.zeros(shape, float_dtype())

        lead = () if getattr(self.delays, "shared", False) else shape
        # The shape is asked of a function that lives as long as the module: JAX's caches know functions by reference.
        play = Play(jnp.zeros(shape, jnp.int32), zero, zero, *jax.eval_shape(_first_memo, self, learner))
        excess = None if getattr(self.losses, "stationary", False) else Sum.zero((num_arms,))
        measured = tuple(measurement.init(num_arms, shape) for measurement in self.measure)
        return State(learner, Pending.start(self.delays, play, lead, self._keeps_due()), Sum.zero(shape), excess, measured)

    def _keeps_due(self) -> bool:
        """Whether arrival rounds must be kept: a learner asks for them and they cannot be drawn again from the key."""
        return getattr(self.learner, "watches_plays", False) and not getattr(self.delays, "oblivious", False)

    def _round(self, t, pending: Pending | None, outstanding, total_outstanding) -> Round:
        def is_outstanding(s):
            if getattr(self.delays, "oblivious", False):
                zero = jnp.zeros(jnp.shape(s), float_dtype())
                late = (
                    self.delays.draw(s, jnp.zeros_like(s), zero, self._delay_noise(s)) >= t - s
                )  # NEVER is later than any round
            else:
                late = jnp.zeros(self.runs.shape, bool) if pending is None else pending.is_due_from(s, t)
            return (s >= 1) & (s < t) & late

        return Round(t, outstanding, total_outstanding, lambda pair=0: self._words(randomness.LEARNER, t, pair), is_outstanding)

    def _words(self, purpose: int, t, pair=0) -> randomness.Words:
        return randomness.fold(randomness.fold(self.streams[purpose], t), self.runs, pair)

    def step(self, state: State, t: jax.Array, differentiable: bool = False) -> tuple[State, jax.Array]:
        """Round t: act, draw an arm, suffer, and receive what arrives at its end. Returns the state and x_t."""
        dtype = float_dtype()
        pending = state.pending.begin()
        round = self._round(t, pending, pending.outstanding, pending.total_outstanding.as_float(dtype))
        probabilities, memo, acted = self.learner.act(state.learner, round)

        which_arm, which_loss = self._words(randomness.PLAY, t)
        arm = lax.stop_gradient(arms.draw(probabilities, randomness.uniform(which_arm, self.grain)))
        if getattr(self.losses, "needs_key", False):
            noise = self._words(randomness.LOSS, t).key()
        else:
            noise = randomness.uniform(which_loss, self.grain)
        loss = jnp.broadcast_to(self.losses.sample(t, arm, noise), arm.shape).astype(dtype)
        delay = self.delays.draw(t, arm, loss, self._delay_noise(t))

        jump = self._jump(acted, round, probabilities, arm, loss)
        play = Play(arm, loss, arms.pick(probabilities, arm), memo, jump)
        acted = tell_played(self.learner, acted, round, arm, play.probability)
        pending = pending.add(t, play, delay)
        age = getattr(self.delays, "age", None)
        pending, learner = pending.deliver(t, age, self.learner.observe, acted, differentiable)

        means = self.losses.expected(t)
        above = means - means.min()
        (suffered,) = arms.sums(probabilities * above.reshape(above.shape[0], *[1] * arm.ndim))
        excess = None if state.excess is None else state.excess.add(above)
        arrivals = round.outstanding + 1 - pending.outstanding
        moment = Moment(t, probabilities, arm, loss, means, round.outstanding, arrivals, acted, learner, delay, round)
        measured = tuple(m.update(one, moment) for m, one in zip(self.measure, state.measured, strict=True))
        return State(learner, pending, state.suffered.add(suffered), excess, measured), probabilities

    def _jump(self, acted, round, probabilities, arm, loss) -> Jump | Expected | None:
        if self.feedback == "sampled":
            return None
        means = self.losses.expected(round.t)
        if self.feedback == "expected":
            return Expected.of(self.learner, round, probabilities, means)
        return Jump.of(self.learner, acted, round, probabilities, arm, loss, means, second_moment(self.losses, round.t))

    def _delay_noise(self, t):
        # One number for all runs if they share the sequence: an oblivious adversary does not know the run.
        key = randomness.fold(self.streams[randomness.DELAY], t)
        words = randomness.fold(key, jnp.zeros((), jnp.uint32) if getattr(self.delays, "shared", False) else self.runs)
        return randomness.uniform(words.first, self.grain)

    def regret(self, state: State) -> jax.Array:
        """Pseudo-regret so far against the best arm in hindsight, ``[...]``."""
        if state.excess is None:
            return state.suffered.value + state.suffered.error
        best = jnp.argmin(state.excess.value + state.excess.error)
        return (state.suffered.value - state.excess.value[best]) + (state.suffered.error - state.excess.error[best])

    def readings(self, state: State) -> dict[str, jax.Array]:
        """What the measurements say so far, by name, ``[..., runs]``."""
        return {
            name: value
            for measurement, one in zip(self.measure, state.measured, strict=True)
            for name, value in measurement.read(one).items()
        }

    def advance(self, state: State, done: jax.Array, record: jax.Array, probabilities: bool) -> tuple[State, "Records"]:
        """Play from round ``done + 1`` to the last of ``record`` (traced, ascending); memory flat in rounds."""
        x = jnp.zeros((self.losses.num_arms, *self.runs.shape), float_dtype()) if probabilities else None

        def one_round(t, carry):
            state, x = self.step(carry[0], t)
            return state, x if probabilities else None

        def one_record(index, carry):
            state, x, done, records = carry
            state, x = lax.fori_loop(done + 1, record[index] + 1, one_round, (state, x))
            new = Records(self.regret(state), x, self.readings(state))
            records = jax.tree.map(lambda all, one: lax.dynamic_update_index_in_dim(all, one, index, 0), records, new)
            return state, x, record[index], records

        empty = Records(self.regret(state), x, self.readings(state))
        empty = jax.tree.map(lambda leaf: jnp.zeros((record.shape[0], *leaf.shape), leaf.dtype), empty)
        carry = (state, x, jnp.asarray(done, jnp.int32), empty)
        state, _, _, records = lax.fori_loop(0, record.shape[0], one_record, carry)
        return state, records

    def scan(self, state: State, rounds: int, record: np.ndarray, probabilities: bool) -> tuple[State, "Records"]:
        """The same from round 1 for a static number of rounds: a ``lax.scan``, which reverse mode can walk back."""

        def one_round(state, t):
            state, x = self.step(state, t, differentiable=True)
            return state, Records(self.regret(state), x if probabilities else None, self.readings(state))

        state, records = lax.scan(one_round, state, jnp.arange(1, rounds + 1, dtype=jnp.int32))
        return state, jax.tree.map(lambda leaf: leaf[record - 1], records)


def _first_memo(game: Game, learner: Any) -> tuple[Any, Any]:
    """What would wait with a play of round 1, memo and jump; asked for its shape."""
    lead = () if getattr(game.delays, "shared", False) else game.runs.shape
    none = jnp.zeros(lead, jnp.int32)
    first = game._round(jnp.ones((), jnp.int32), None, none, none.astype(float_dtype()))
    probabilities, memo, acted = game.learner.act(learner, first)
    zero = jnp.zeros(game.runs.shape, jnp.int32)
    return memo, game._jump(acted, first, probabilities, zero, zero.astype(float_dtype()))


@pytree_dataclass
class Records:
    """What is kept of the recorded rounds."""

    regret: jax.Array  # [C, ...]
    probabilities: jax.Array | None  # [C, K, ...]
    measured: dict[str, jax.Array]  # [C, ..., runs]


def log_spaced(rounds: int, count: int, after: int = 0) -> np.ndarray:
    """At most ``count`` rounds from ``after + 1`` to ``rounds``, evenly spaced on a log scale; the last is ``rounds``."""
    spaced = np.round(np.geomspace(after + 1, rounds, count)).astype(np.int64)
    return np.unique(np.append(spaced, rounds))[-count:] if count > 1 else np.array([rounds])


def rollout(
    learner, losses, delays, *, rounds, key, runs=None, first_run=0, record=50, probabilities=False, measure=()
) -> Rollout:
    """Play ``rounds`` rounds as a pure function: safe under jit, vmap, jvp and grad.

    The same randomness as :func:`simulate`: run i of either meets the same words. Where ``simulate`` is the fast driver,
    this is what notebooks transform.

    Args:
      learner, losses, delays: as in :func:`simulate`; their leaves may be traced (then give ``bound=`` to the delays).
      rounds: a Python int for a ``lax.scan`` (reverse mode works, memory grows with rounds), or a traced number for a
        loop whose memory is flat (forward mode only; ``record`` must then be the rounds themselves).
      key: a typed key, ``jax.random.key(seed)``.
      runs: None for a single run of shape ``()``, or how many, on the last axis.
      first_run: id of the first run, a number (may be traced).
      record: how many log-spaced rounds to record, or the rounds themselves, ascending; the last is the horizon.
      probabilities: also record x_t.
      measure: measurements of :mod:`jaxbandit.measure` to make along the way.

    >>> import jax, jaxbandit as jb
    >>> def regret(key):
    ...     return jb.rollout(jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5), rounds=50, key=key).regret[-1]
    >>> jax.vmap(regret)(jax.random.split(jax.random.key(0), 3)).shape
    (3,)
    """
    check_key(key)
    check_runs(1 if runs is None else runs, first_run)
    check_game(learner, losses, delays, rounds)
    check_measure(measure)
    learner, losses, delays = canonical(learner), canonical(losses), canonical(delays)
    run_ids = jnp.asarray(first_run).astype(jnp.uint32) + (jnp.uint32(0) if runs is None else jnp.arange(runs, dtype=jnp.uint32))
    game = Game.set_up(learner, losses, delays, key, run_ids, canonical(tuple(measure)))
    state = game.start()
    if isinstance(rounds, int | np.integer):
        check_rounds(rounds)
        rounds = int(rounds)
        record = log_spaced(rounds, record) if isinstance(record, int) else check_record(record, 0, rounds)
        state, records = game.scan(state, rounds, record, probabilities)
    else:
        record = jnp.asarray(record, jnp.int32)
        state, records = game.advance(state, jnp.int32(0), record, probabilities)
    return Rollout(jnp.asarray(record, jnp.int32), records.regret, records.probabilities, records.measured, state)
