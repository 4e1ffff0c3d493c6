"""One block of runs: the round, the loop over rounds, and what is recorded.

This is the pure core. It knows nothing of devices, blocks or files.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit import arms, randomness, slots
from jaxbandit.counting import Count, Sum
from jaxbandit.delays import Delays
from jaxbandit.derivatives import warn_of_derivatives
from jaxbandit.learners.base import Learner, Round, as_learner
from jaxbandit.losses import Losses
from jaxbandit.measure import Moment, check_measure
from jaxbandit.pending import Pending, Play, ring_size
from jaxbandit.pytrees import canonical, float_dtype, is_concrete, pytree_dataclass, show, static
from jaxbandit.rounds import ArrayRounds, Rounds, play_up_to
from jaxbandit.settings import extremes, for_each_run, prepared, values_for_each_run
from jaxbandit.validation import MOST_ROUNDS, check_game, check_record, check_rounds, check_runs, given_key, rounds_to_record

Waiting = Literal["listed", "slots", "slots in turn", "dense"]


@pytree_dataclass
class State:
    """Everything a block of runs carries from one round to the next."""

    learner_state: Any
    pending: Pending | slots.Arrivals
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


class Feedback(Protocol):
    """What a play brings in place of the loss of its arm, where a gradient is estimated: see :mod:`jaxbandit.gradients.jump`."""

    def of_play(self, game: "Game", state: Any, round: Round, probabilities: jax.Array, arm: jax.Array, loss: jax.Array) -> Any:
        """What waits with a play: a pytree with the method ``estimate`` that ``Observation.loss_estimate`` calls.

        ``state`` is the learner's after ``act`` in this round.
        """
        ...


@pytree_dataclass
class Game:
    """Who plays whom, with which randomness: all that the rounds read and never change."""

    learner: Learner
    losses: Losses
    delays: Delays
    streams: tuple[randomness.Words, ...]
    runs: jax.Array  # [...] uint32 run ids
    grain: jax.Array  # [] float, see randomness.uniform
    measure: tuple[Any, ...] = ()
    feedback: "Feedback | None" = None  # None: the loss of the arm that was played
    mask: jax.Array | None = None  # [] uint32, for a ring of which not all rows are used: see pending
    arrivals: Waiting = static(default="listed")  # how plays wait: jaxbandit.pending or jaxbandit.slots
    one_pass: bool = static(default=False)  # both random words of a play are made in one pass over the runs: see randomness
    own: tuple[bool, ...] = static(default=())  # leaves of learner, losses and delays with a value for each run; (): none
    broadcast: bool = static(default=False)  # all of those are read on arrays of runs as they are: see `by_run` of losses

    @classmethod
    def set_up(
        cls,
        learner: Any,
        losses: Losses,
        delays: Delays,
        key: jax.Array,
        runs: Any,
        measure: Sequence[Any] = (),
        feedback: "Feedback | None" = None,
    ) -> "Game":
        """The game as it is, unchecked; ``runs`` are the run ids. What comes from a user goes through :func:`checked_game`."""
        return cls(
            as_learner(canonical(learner)),
            canonical(losses),
            canonical(delays).prepare(),
            randomness.streams(key),
            runs,
            randomness.grain(float_dtype()),
            canonical(tuple(measure)),
            feedback,
        )

    def start(self) -> State:
        """The state before round 1."""
        if self.own and not self.broadcast:
            return for_each_run(Game.start, self)
        num_arms, shape = self.losses.num_arms, self.runs.shape
        learner = self.learner.init(num_arms, shape)
        zero = jnp.zeros(shape, float_dtype())

        lead = () if self.delays.shared else shape
        # The shape is asked of a function that lives as long as the module: JAX's caches know functions by reference.
        play = Play(jnp.zeros(shape, jnp.int32), zero, zero, *jax.eval_shape(_first_memo, self, learner))
        excess = None if self.losses.stationary else Sum.zero((num_arms, *(shape if self.broadcast else ())))
        measured = tuple(measurement.init(num_arms, shape) for measurement in self.measure)
        if self.arrivals == "listed":
            pending = Pending.start(self.delays, play, lead, self._keeps_due())
        else:
            size, at_arm = ring_size(self.delays.bound), self.learner.adds_at_arm
            pending = slots.start(self.arrivals, size, self.learner.observe, learner, play, lead, at_arm)
        return State(learner, pending, Sum.zero(shape), excess, measured)

    def _keeps_due(self) -> bool:
        """Whether arrival rounds must be kept: a learner asks for them and they cannot be drawn again from the key."""
        return self.learner.watches_plays and not self.delays.oblivious

    def _round(self, t, pending: Pending | slots.Arrivals | None, outstanding, total_outstanding) -> Round:
        """What the learner may know in round t."""

        def is_outstanding(s):
            if self.delays.oblivious:
                zero = jnp.zeros(jnp.shape(s), float_dtype())
                # Drawn again from the key; NEVER is later than any round.
                late = self.delays.draw(s, jnp.zeros_like(s), zero, self._delay_noise(s)) >= t - s
            else:
                late = pending.is_due_from(s, t) if isinstance(pending, Pending) else jnp.zeros(self.runs.shape, bool)
            return (s >= 1) & (s < t) & late

        return Round(t, outstanding, total_outstanding, lambda pair=0: self._words(randomness.LEARNER, t, pair), is_outstanding)

    def _words(self, purpose: int, t, pair=0) -> randomness.Words:
        """Two random words for each run in round t."""
        return randomness.fold(randomness.fold(self.streams[purpose], t), self.runs, pair)

    def step(self, state: State, t: jax.Array, differentiable: bool = False) -> tuple[State, jax.Array]:
        """Round t: act, draw an arm, suffer, and receive what arrives at its end. Returns the state and x_t."""
        dtype = float_dtype()
        pending = state.pending.begin(self.mask)
        round = self._round(t, pending, pending.outstanding, pending.total_outstanding.as_float(dtype))
        probabilities, memo, acted = self.learner.act(state.learner_state, round)

        words = self._words(randomness.PLAY, t)
        which_arm, which_loss = randomness.in_one_pass(words) if self.one_pass else words
        arm = lax.stop_gradient(arms.draw(probabilities, randomness.uniform(which_arm, self.grain)))
        noise = self._words(randomness.LOSS, t).key() if self.losses.needs_key else randomness.uniform(which_loss, self.grain)
        loss = jnp.broadcast_to(self.losses.sample(t, arm, noise), arm.shape).astype(dtype)
        delay = self.delays.draw(t, arm, loss, self._delay_noise(t))

        probability, feedback = arms.pick(probabilities, arm), self._feedback(acted, round, probabilities, arm, loss)
        acted = self.learner.played(acted, round, arm, probability)
        if self.losses.num_signals:
            memo, acted = self.learner.signalled(acted, round, arm, self.losses.signal(t, arm, noise), memo)
        play = Play(arm, loss, probability, memo, feedback)
        pending, shares = pending.add(t, play, delay), self.delays.pieces()
        if shares is not None and isinstance(pending, Pending):
            pending, learner = pending.deliver_sum(t, shares, self.learner.observe, acted)
        else:
            pending, learner = pending.deliver(t, self.delays.fixed_age(), self.learner.observe, acted, differentiable)

        means = self.losses.expected(t)
        above = means - means.min(0)
        suffered = arms.inner(probabilities, above)
        excess = None if state.excess is None else state.excess.add(above)
        arrivals = round.outstanding + 1 - pending.outstanding
        moment = Moment(t, probabilities, arm, loss, means, round.outstanding, arrivals, acted, learner, delay, round)
        measured = tuple(m.update(one, moment) for m, one in zip(self.measure, state.measured, strict=True))
        return State(learner, pending, state.suffered.add(suffered), excess, measured), probabilities

    def _feedback(self, acted, round, probabilities, arm, loss) -> Any:
        return None if self.feedback is None else self.feedback.of_play(self, acted, round, probabilities, arm, loss)

    def _delay_noise(self, t):
        # One number for all runs if they share the sequence: an oblivious adversary does not know the run.
        key = randomness.fold(self.streams[randomness.DELAY], t)
        words = randomness.fold(key, jnp.zeros((), jnp.uint32) if self.delays.shared else self.runs)
        return randomness.uniform(words.first, self.grain)

    def regret(self, state: State) -> jax.Array:
        """Pseudo-regret so far against the best arm in hindsight, ``[...]``."""
        if state.excess is None:
            return state.suffered.value + state.suffered.error
        best = jnp.argmin(state.excess.value + state.excess.error, 0)
        value, error = (
            arms.pick(part, best) if self.broadcast else part[best] for part in (state.excess.value, state.excess.error)
        )
        return (state.suffered.value - value) + (state.suffered.error - error)

    def readings(self, state: State) -> dict[str, jax.Array]:
        """What the measurements say so far, by name, ``[..., runs]``."""
        return {
            name: value
            for measurement, one in zip(self.measure, state.measured, strict=True)
            for name, value in measurement.read(one).items()
        }

    def advance(
        self,
        state: State,
        done: jax.Array,
        record: jax.Array,
        probabilities: bool,
        rounds: Rounds | None = None,
        chunk: int = 0,
    ) -> tuple[State, "Records"]:
        """Play from round ``done + 1`` to the last of ``record`` (traced, ascending); memory flat in rounds.

        Args:
          state, done, record: where to begin, and what to record.
          probabilities: also record x_t.
          rounds: how a round is evaluated; on arrays by default.
          chunk: play rounds in inner loops of this fixed length: an accelerator runs those without asking the host after each
            round whether to go on. 0: no inner loops.
        """
        rounds = rounds or ArrayRounds(self.step, self.losses.num_arms, self.runs.shape, probabilities)

        def one_record(index, carry):
            carry, done, records = carry
            carry = play_up_to(record[index], done, rounds.play, carry, chunk)
            new = self._records(*rounds.leave(carry))
            records = jax.tree.map(lambda all, one: lax.dynamic_update_index_in_dim(all, one, index, 0), records, new)
            return carry, record[index], records

        done = jnp.asarray(done, jnp.int32)
        carry = rounds.enter(state, done)
        empty = self._records(*rounds.leave(carry))
        empty = jax.tree.map(lambda leaf: jnp.zeros((record.shape[0], *leaf.shape), leaf.dtype), empty)
        carry, _, records = lax.fori_loop(0, record.shape[0], one_record, (carry, done, empty))
        return rounds.leave(carry)[0], records

    def _records(self, state: State, probabilities: jax.Array | None) -> "Records":
        if self.own and not self.broadcast:
            regret, readings = for_each_run(lambda game, state: (game.regret(state), game.readings(state)), self, state)
            return Records(regret, probabilities, readings)
        return Records(self.regret(state), probabilities, self.readings(state))

    def scan(self, state: State, rounds: int, record: np.ndarray, probabilities: bool) -> tuple[State, "Records"]:
        """The same from round 1 for a static number of rounds: a ``lax.scan``, which reverse mode can differentiate."""

        def one_round(state, t):
            state, x = self.step(state, t, differentiable=True)
            return state, Records(self.regret(state), x if probabilities else None, self.readings(state))

        state, records = lax.scan(one_round, state, jnp.arange(1, rounds + 1, dtype=jnp.int32))
        return state, jax.tree.map(lambda leaf: leaf[record - 1], records)


def _first_memo(game: Game, learner: Any) -> tuple[Any, Any]:
    """What would wait with a play of round 1, memo and feedback; asked for its shape."""
    lead = () if game.delays.shared else game.runs.shape
    none = jnp.zeros(lead, jnp.int32)
    first = game._round(jnp.ones((), jnp.int32), None, none, none.astype(float_dtype()))
    probabilities, memo, acted = game.learner.act(learner, first)
    zero = jnp.zeros(game.runs.shape, jnp.int32)
    feedback = game._feedback(acted, first, probabilities, zero, zero.astype(float_dtype()))
    return (game.learner.signalled(acted, first, zero, zero, memo)[0] if game.losses.num_signals else memo), feedback


@pytree_dataclass
class Records:
    """What is kept of the recorded rounds."""

    regret: jax.Array  # [C, ...]
    probabilities: jax.Array | None  # [C, K, ...]
    measured: dict[str, jax.Array]  # [C, ..., runs]


def checked_game(
    learner: Any,
    losses: Any,
    delays: Any,
    *,
    rounds: Any,
    key: jax.Array,
    runs: Any,
    first_run: Any,
    measure: Any = (),
    settings: bool = False,
) -> Game:
    """Check everything that a simulation is made of (``key`` is one of ``given_key``), and build its game.

    Wrong input ends here, before anything is compiled. The game has the ids of all ``runs``, for None the id of one. With
    ``settings``, leaves may have a value for each run (:mod:`jaxbandit.settings`).
    """
    if is_concrete(rounds):
        check_rounds(rounds)
    check_runs(1 if runs is None else runs, first_run)
    check_measure(measure)
    own = values_for_each_run(learner, losses, delays, runs) if settings and runs is not None else []
    parts: Any
    if any(map(any, own)):
        parts = zip(*(extremes(part, flags) for part, flags in zip((learner, losses, delays), own, strict=True)), strict=True)
    else:
        parts = [(learner, losses, delays)]
    for a_learner, some_losses, some_delays in parts:
        check_game(a_learner, some_losses, some_delays, rounds)
    first = jnp.uint32(int(first_run)) if is_concrete(first_run) else first_run.astype(jnp.uint32)
    run_ids = first if runs is None else first + jnp.arange(int(runs), dtype=jnp.uint32)
    if not any(map(any, own)):
        return Game.set_up(learner, losses, delays, key, run_ids, measure)
    game = Game.set_up(learner, losses, prepared(delays, own[2]), key, run_ids, measure)
    of_delays = [True] * len(jax.tree.leaves(game.delays)) if any(own[2]) else own[2]
    return dataclasses.replace(game, own=(*own[0], *own[1], *of_delays))


def rollout(
    learner: Any,
    losses: Losses,
    delays: Delays,
    *,
    rounds: Any,
    key: jax.Array | None = None,
    seed: Any = None,
    runs: int | None = None,
    first_run: Any = 0,
    record: Any = 50,
    probabilities: bool = False,
    measure: Sequence[Any] = (),
) -> Rollout:
    """Play ``rounds`` rounds as a pure function: safe under jit, vmap, jvp and grad.

    A derivative holds the sampled arms, losses and delays fixed: that of the expected regret is :func:`jaxbandit.regret_gradient`.

    The same randomness as :func:`simulate`: run i of either meets the same words. Where ``simulate`` is the fast driver,
    this is what notebooks transform.

    Args:
      learner, losses, delays: as in :func:`simulate`; their leaves may be traced (then give ``bound=`` to the delays).
      rounds: a Python int for a ``lax.scan`` (reverse mode works, memory grows with rounds), or an array of JAX, also a
        traced one, for a loop whose memory is flat (forward mode only).
      key: a typed key, ``jax.random.key(0)``.
      seed: a whole number in place of the key; may be traced.
      runs: None for a single run of shape ``()``, or how many, on the last axis.
      first_run: id of the first run, a number (may be traced).
      record: how many log-spaced rounds to record, or the rounds themselves, ascending; the last is the horizon. With traced
        ``rounds`` only the latter; nothing is played past ``rounds``, so that later records repeat the last one.
      probabilities: also record x_t.
      measure: measurements of :mod:`jaxbandit.measure` to make along the way.

    >>> import jax, jaxbandit as jb
    >>> def regret(key):
    ...     return jb.rollout(jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5), rounds=50, key=key).regret[-1]
    >>> jax.vmap(regret)(jax.random.split(jax.random.key(0), 3)).shape
    (3,)
    """
    key = given_key(key, seed)
    losses, delays = warn_of_derivatives((losses, delays))
    game = checked_game(learner, losses, delays, rounds=rounds, key=key, runs=runs, first_run=first_run, measure=measure)
    if isinstance(rounds, jax.Array):
        known = is_concrete(rounds)
        recorded = jnp.asarray(rounds_to_record(record, int(rounds)) if known else _traced_record(record, rounds), jnp.int32)
        state, records = game.advance(game.start(), jnp.int32(0), recorded, probabilities)
    else:
        recorded = rounds_to_record(record, rounds)
        state, records = game.scan(game.start(), int(rounds), recorded, probabilities)
    return Rollout(jnp.asarray(recorded, jnp.int32), records.regret, records.probabilities, records.measured, state)


def _traced_record(record: Any, rounds: jax.Array) -> jax.Array:
    """The rounds to record where their number is traced: they are checked as far as they are known, and none is past it."""
    if is_concrete(record):
        if np.ndim(record) == 0:
            raise ValueError(
                f"record={show(record)}: where rounds is traced, give the rounds to record themselves, such as [10, 100]"
            )
        record = check_record(record, 0, MOST_ROUNDS)[: np.size(record)]
    return jnp.minimum(jnp.asarray(record, jnp.int32), jnp.asarray(rounds, jnp.int32))
