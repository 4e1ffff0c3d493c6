"""Simulation of a game: one round, and the loop over rounds, under an :class:`~jaxbandit._engine.execution.Execution`."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit._core import arms, randomness
from jaxbandit._core.fields import float_dtype, pytree_dataclass, static
from jaxbandit._core.sums import Sum
from jaxbandit._engine import per_run, progressive
from jaxbandit._engine.execution import Execution
from jaxbandit._engine.game import Game, Records, State
from jaxbandit._engine.loop import ArrayRounds, Rounds, play_up_to
from jaxbandit._engine.measuring import updated
from jaxbandit._engine.queues import Queue, slots
from jaxbandit._engine.queues.listed import Loop, Pending, Play, ring_size
from jaxbandit._engine.unrolled.rounds import UnrolledRounds
from jaxbandit.learners.base import (
    FullInformation,
    Learner,
    Observation,
    Round,
    adds_at_arm,
    is_a,
    losses_shown,
    signalled,
    stages_read,
)
from jaxbandit.learners.decision import Decision, decide
from jaxbandit.losses import AdaptiveLosses, Losses, ShowsSignals
from jaxbandit.losses.base import Now
from jaxbandit.measure import RoundInfo


class Hook:
    """Replacement of an action's feedback, for gradient estimation: see :mod:`jaxbandit.gradients.jump`."""

    def of_play(self, game: Any, state: Any, round: Round, probabilities: Any, memo: Any, arm: Any, loss: Any) -> Any:
        """The data stored with an action: a pytree with the method ``estimate`` that ``Observation.loss_estimate`` calls.

        ``state`` is the learner's after ``act`` in this round.
        """
        raise NotImplementedError

    def observe(self, learner: Learner, state: Any, observation: Observation) -> Any:
        """The learner's state after an observation."""
        return learner.observe(state, observation)


@pytree_dataclass
class Player:
    """Simulates games under ``execution``."""

    hook: Hook | None = None  # None: the feedback of an action is the loss of its arm
    mask: jax.Array | None = None  # [] uint32, for a queue of which not all rows are used: see queues.listed
    execution: Execution = static(default=Execution())

    def start(self, game: Game) -> State:
        """The state before round 1."""
        if self._by_run():
            return self._for_each_run(Player.start, game)
        num_arms, shape = game.losses.num_arms, game.runs.shape
        learner = game.learner.init(num_arms, shape)
        zero = jnp.zeros(shape, float_dtype())
        # Shapes come from a function at module level, because JAX's caches compare functions by reference.
        play = Play(jnp.zeros(shape, jnp.int32), zero, zero, *jax.eval_shape(_first_memo, self, game, learner))
        if is_a(game.learner, FullInformation):
            play = dataclasses.replace(play, losses=jnp.zeros((num_arms, *shape), float_dtype()))
        if stages_read(game.learner):
            play = dataclasses.replace(play, stages=jnp.zeros((stages_read(game.learner), *shape), float_dtype()))
        adversary = game.losses.init(shape) if isinstance(game.losses, AdaptiveLosses) else None
        means = jax.eval_shape(game.losses_after(adversary).expected, jax.ShapeDtypeStruct((), np.int32))
        excess = None if game.losses.stationary else Sum.zero(means.shape)
        measured = tuple(measurement.init(num_arms, shape) for measurement in game.measure)
        queue, stages = self._queue(game, learner, play), progressive.start(game, play)
        return State(learner, queue, Sum.zero(shape), excess, measured, adversary, stages)

    def _queue(self, game: Game, learner: Any, play: Play) -> Queue:
        """An empty queue; ``learner`` is the learner's state, ``play`` the shapes of an entry."""
        kind, lead, all_rows = self.execution.queue, self._lead(game), ring_size(game.delays.bound)
        rows, kept = self.execution.ring if self.execution.later else 0, self.execution.later == "kept"
        if kind == "listed":
            # Arrival rounds are kept if a learner requires them and they cannot be recomputed from the key.
            asked = game.learner.watches_plays and not game.delays.oblivious
            return Pending.start(game.delays, play, lead, asked or (kept and game.delays.fixed_age() is None), rows)
        brings, at_arm = game.learner.observe, adds_at_arm(game.learner)
        return slots.start(kind, rows or all_rows, brings, learner, play, lead, at_arm, all_rows if rows else 0, kept)

    def grow(self, game: Game, state: State, done: jax.Array) -> State:
        """``state`` after round ``done``, of an execution whose queue ended there, with the longer queue of this one."""
        if self._by_run():
            return self._for_each_run(lambda player, game, state: player.grow(game, state, done), game, state)
        pending: Any = state.pending
        fresh = self.start(game).pending
        return dataclasses.replace(state, pending=pending.regrown(fresh, done))

    def step(self, game: Game, state: State, t: jax.Array, loop: Loop = "while") -> tuple[State, jax.Array]:
        """Round t: act, draw an arm, incur its loss, observe the feedback that arrives. Returns the state and x_t."""
        dtype = float_dtype()
        pending = state.pending.begin(self.mask)
        round = game.round(t, pending, pending.outstanding, pending.total_outstanding.as_float(dtype))
        words = game.words(randomness.PLAY, t)
        which_arm, which_loss = randomness.in_one_pass(words) if self.execution.one_pass else words
        decision = decide(game.learner, state.learner_state, round, randomness.uniform(which_arm, game.grain))
        arm = decision.arm
        losses, shown = game.losses_after(state.adversary), None
        noise = game.words(randomness.LOSS, t).key() if game.losses.needs_key else randomness.uniform(which_loss, game.grain)
        if is_a(game.learner, FullInformation):
            drawn = _all_losses(game, losses, t, arm)
            loss, shown = arms.pick(drawn, arm), losses_shown(game.learner, drawn, arm)
        else:
            loss = jnp.broadcast_to(losses.sample(t, arm, noise), arm.shape).astype(dtype)
        delay = game.delays.draw(t, arm, loss, game.delay_noise(t))

        memo, acted = decision.memo, decision.state
        if isinstance(game.losses, ShowsSignals):
            memo, acted = signalled(game.learner, acted, round, arm, game.losses.signal(t, arm, noise), memo)
        feedback = self._feedback(game, decision, round, memo, loss)
        play = Play(arm, loss, decision.probability, memo, feedback, shown)
        stages = None
        if state.stages is not None:
            play, stages, acted = progressive.step(game, state.stages, play, acted, t, noise, delay, loop)
        pending = pending.add(t, play, delay)
        observe = game.learner.observe if self.hook is None else functools.partial(self.hook.observe, game.learner)
        shares = game.delays._shares()
        if shares is not None and isinstance(pending, Pending):
            pending, learner = pending.deliver_sum(t, shares, observe, acted)
        else:
            pending, learner = pending.deliver(t, game.delays.fixed_age(), observe, acted, loop)

        means = losses.expected(t)
        above = means - means.min(0)
        suffered = state.suffered.add(arms.inner(decision.probabilities, above))
        excess = None if state.excess is None else state.excess.add(above)
        arrivals = round.outstanding + 1 - pending.outstanding
        outstanding, arrived, delayed = (jnp.broadcast_to(one, arm.shape) for one in (round.outstanding, arrivals, delay))
        info = RoundInfo(t, decision.probabilities, arm, loss, means, outstanding, arrived, acted, learner, delayed, round)
        measured = tuple(updated(m, one, info) for m, one in zip(game.measure, state.measured, strict=True))
        adversary = game.losses.update(state.adversary, t, arm) if isinstance(game.losses, AdaptiveLosses) else None
        return State(learner, pending, suffered, excess, measured, adversary, stages), decision.probabilities

    def advance(
        self, game: Game, state: State, done: jax.Array, record: jax.Array, probabilities: bool = False
    ) -> tuple[State, Records]:
        """Simulate rounds ``done + 1`` to the last of ``record`` (traced, ascending); memory is constant in the number of rounds.

        Args:
          game: the game.
          state, done: the state after round ``done``.
          record: the rounds to record.
          probabilities: also record x_t.
        """
        rounds = self._rounds(game, state, probabilities)

        def one_record(index, carry):
            carry, done, records = carry
            carry = play_up_to(record[index], done, rounds.play, carry, self.execution.chunk)
            new = self._records(game, *rounds.leave(carry))
            records = jax.tree.map(lambda all, one: lax.dynamic_update_index_in_dim(all, one, index, 0), records, new)
            return carry, record[index], records

        done = jnp.asarray(done, jnp.int32)
        carry = rounds.enter(state, done)
        empty = self._records(game, *rounds.leave(carry))
        empty = jax.tree.map(lambda leaf: jnp.zeros((record.shape[0], *leaf.shape), leaf.dtype), empty)
        carry, _, records = lax.fori_loop(0, record.shape[0], one_record, (carry, done, empty))
        return rounds.leave(carry)[0], records

    def scan(
        self, game: Game, rounds: int, record: np.ndarray, probabilities: bool = False, loop: Loop = "all"
    ) -> tuple[State, Records]:
        """The same from round 1 for a static number of rounds: a ``lax.scan``, which reverse mode can differentiate."""

        def one_round(state, t):
            state, x = self.step(game, state, t, loop)
            return state, Records(game.regret(state), x if probabilities else None, game.readings(state))

        state, records = lax.scan(one_round, self.start(game), jnp.arange(1, rounds + 1, dtype=jnp.int32))
        return state, jax.tree.map(lambda leaf: leaf[record - 1], records)

    def _rounds(self, game: Game, state: State, probabilities: bool) -> Rounds:
        if self.execution.evaluation == "unrolled":
            return UnrolledRounds(self.alone(), game, self.execution.per_run, state, probabilities)
        step = self._mapped_step if self._by_run() else self.step
        return ArrayRounds(lambda state, t: step(game, state, t), game.losses.num_arms, game.runs.shape, probabilities)

    def _mapped_step(self, game: Game, state: State, t: jax.Array) -> tuple[State, jax.Array]:
        return self._for_each_run(lambda player, game, state: player.step(game, state, t), game, state)

    def _records(self, game: Game, state: State, probabilities: jax.Array | None) -> Records:
        if self._by_run():
            regret, readings = self._for_each_run(lambda _, game, state: (game.regret(state), game.readings(state)), game, state)
            return Records(regret, probabilities, readings)
        return Records(game.regret(state), probabilities, game.readings(state))

    def _by_run(self) -> bool:
        """Whether each run is evaluated separately, because runs have different values."""
        return any(self.execution.per_run) and self.execution.evaluation != "arrays"

    def alone(self) -> "Player":
        """The player of one run."""
        return dataclasses.replace(
            self, execution=dataclasses.replace(self.execution, evaluation="arrays", per_run=(), platform="")
        )

    def _for_each_run(self, function: Callable, game: Game, *states: Any) -> Any:
        alone = self.alone()
        return per_run.for_each_run(lambda *given: function(alone, *given), game, self.execution.per_run, *states)

    def _lead(self, game: Game) -> tuple[int, ...]:
        """The shape of the counts of delays: ``()`` if all runs have the same delays."""
        same = game.delays.shared and not per_run.of_delays(game, self.execution.per_run)
        return () if same else game.runs.shape

    def _feedback(self, game: Game, decision: Decision, round: Round, memo: Any, loss: jax.Array) -> Any:
        if self.hook is None:
            return None
        return self.hook.of_play(game, decision.acted, round, decision.probabilities, memo, decision.arm, loss)


def _all_losses(game: Game, losses: Losses | Now, t: jax.Array, arm: jax.Array) -> jax.Array:
    """The losses ``[K, ...]`` of all arms, drawn independently of each other and of ``arm [...]``, which gives the shape."""
    every = jnp.arange(game.losses.num_arms, dtype=jnp.int32)
    noise = game.loss_noise(t, every.reshape(-1, *[1] * arm.ndim))
    sample = jax.vmap(lambda arm, noise: losses.sample(t, jnp.broadcast_to(arm, noise.shape), noise))
    return jnp.broadcast_to(sample(every, noise), (every.size, *arm.shape)).astype(float_dtype())


def _first_memo(player: Player, game: Game, learner: Any) -> tuple[Any, Any]:
    """The memo and feedback that would be stored with the action of round 1; only the shapes are used."""
    none = jnp.zeros(player._lead(game), jnp.int32)
    first = game.round(jnp.ones((), jnp.int32), None, none, none.astype(float_dtype()))
    zero = jnp.zeros(game.runs.shape, float_dtype())
    decision = decide(game.learner, learner, first, zero)
    memo = decision.memo
    if isinstance(game.losses, ShowsSignals):
        none = jnp.zeros(game.runs.shape, jnp.int32)
        memo = signalled(game.learner, decision.state, first, none, none, memo)[0]
    return memo, player._feedback(game, decision, first, memo, zero)
