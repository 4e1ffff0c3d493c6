"""Wrappers around a base learner. Two of them let a learner for games without delays play with delays: QPM-D and BOLD."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit._core import randomness
from jaxbandit._core.arms import constant_min, one_hot, pick
from jaxbandit._core.fields import PyTree, float_dtype, named, pytree_dataclass, show, static
from jaxbandit._core.ring import read_row, write_own_row
from jaxbandit.learners.base import (
    FullInformation,
    Learner,
    Observation,
    ReadsDelays,
    ReadsSignals,
    ReadsStages,
    Round,
    as_learner,
    is_a,
    signalled,
    signals_read,
)
from jaxbandit.learners.decision import decide


class Wrapper(ReadsSignals):
    """What all wrappers share: a ``base``."""

    base: Any
    hands_on_signals: bool = False  # the base sees the signals of its plays

    @property
    def num_signals(self) -> int:
        return signals_read(self.inner)

    @property
    def inner(self) -> Learner:
        """The base, with the defaults for what it does not say."""
        return as_learner(self.base)

    def check(self) -> None:
        try:
            as_learner(self.base)
        except TypeError:
            name = type(self).__name__
            raise TypeError(f"{name}(base={show(self.base)}): the base is a learner, such as jb.TsallisINF()") from None
        if self.num_signals and not self.hands_on_signals:
            name, base = type(self).__name__, type(self.base).__name__
            raise ValueError(
                f"{name}(base={base}(…)): the base would see no signals here, which {base} reads; BOLD hands them on"
            )
        for kind, needs in (
            (ReadsDelays, "the delay of an action"),
            (FullInformation, "the losses of all arms"),
            (ReadsStages, "outcomes before the loss"),
        ):
            if is_a(self.inner, kind):
                name, base = type(self).__name__, type(self.base).__name__
                raise ValueError(
                    f"{name}(base={base}(…)): {base} requires {needs}, which a base does not get; use {base}(…) itself"
                )


class Sized(Wrapper):
    """Base of QPM-D and BOLD: room for ``capacity`` losses or copies; the base observes no delay."""

    capacity: int

    def _check_capacity(self, needed: Any, what: str) -> None:
        needed = np.asarray(needed)
        if np.any(needed > self.capacity):
            runs = f" in {np.sum(needed > self.capacity)} of {needed.size} runs" if needed.ndim else ""
            raise RuntimeError(f"{named(self, 'capacity')}: {needed.max()} {what}{runs}; use capacity={needed.max()}")


@pytree_dataclass
class Dialogue:
    """What has passed between QPM-D and its base."""

    base: Any  # the base's state
    memo: PyTree  # the base's memo of its last answer
    arm: jax.Array  # [...] int32, the arm the base named last
    probability: jax.Array  # [...] of that arm in that answer
    clock: jax.Array  # [...] int32, the number of decisions of the base: its round
    fed: jax.Array  # [K, ...] int32, how many losses of each arm the base was fed


@pytree_dataclass
class QPMDState:
    """The base, and the losses that it has not observed yet."""

    dialogue: Dialogue
    queue: jax.Array  # [capacity * K, ...], row (n % capacity) * K + i: the n-th loss (from 0) of arm i that arrived
    arrived: jax.Array  # [K, ...] int32, how many losses of each arm arrived
    needed: jax.Array  # [...] int32, the longest queue and the most questions in one round met


@pytree_dataclass
class QPMD(Sized):
    """QPM-D: a learner without delays, fed from a queue of arrived losses per arm.

    The base names an arm, and the arm is played, round after round, until one of its losses has arrived. The base then
    observes the oldest one as if it were not delayed, and names its next arm; if losses of that arm are in its queue, it gets
    the oldest of those without an action, and so on. The rounds of the base are its questions, each with one action or none.

    A queue grows only while its arm is not played, hence to one more than the largest number of outstanding observations; K queues of d + 1
    losses can be observed by the base in one round at most. The answer is an arm, so the derivative in the base's hyperparameters is 0.

    Args:
      base: any learner, such as :class:`jaxbandit.TsallisINF`.
      capacity: the largest number of questions to the base in one round, and of losses in a queue; an error is raised
        if more are needed. K·(longest delay + 1) is always enough, a few times the delay nearly always (static).

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.QPMD(jb.TsallisINF(), capacity=22), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100,
    ...             runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Joulani, György & Szepesvári, *Online Learning under Delayed Feedback*, ICML 2013.
    """

    base: Learner | Any
    capacity: int = static(low=1, fact="queue_capacity")

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> QPMDState:
        count, zero = jnp.zeros((num_arms, *runs_shape), jnp.int32), jnp.zeros(runs_shape, jnp.int32)
        base = self.inner.init(num_arms, runs_shape)
        words = randomness.Words(zero.astype(jnp.uint32), zero.astype(jnp.uint32))
        memo = jax.eval_shape(base_memo, self.inner, base, zero, words)
        memo = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), memo)
        dialogue = Dialogue(base, memo, zero, jnp.ones(runs_shape, float_dtype()), zero, count)
        return QPMDState(dialogue, jnp.zeros((self.capacity * num_arms, *runs_shape), float_dtype()), count, zero)

    def act(self, state: QPMDState, round: Round) -> tuple[jax.Array, Any, QPMDState]:
        # A named arm is a constant to differentiation, and so is all that leads to it: reverse mode never enters the loop.
        self, state = lax.stop_gradient((self, state))
        words = round.words()

        def waiting(dialogue):
            return pick(state.arrived - dialogue.fed, dialogue.arm) > 0

        def next_question(carry):
            number, asking, dialogue = carry
            asked = self._ask(self._feed(dialogue, state.queue, asking), words, number)
            dialogue = jax.tree.map(lambda new, old: jnp.where(asking, new, old), asked, dialogue)
            return number + 1, asking & waiting(dialogue), dialogue

        first = (state.dialogue.clock == 0) | waiting(state.dialogue)
        carry = (jnp.zeros((), jnp.int32), first, state.dialogue)
        _, asking, dialogue = lax.while_loop(lambda carry: carry[1].any() & (carry[0] < self.capacity), next_question, carry)
        probabilities = one_hot(dialogue.arm, state.arrived.shape[0]).astype(float_dtype())
        asked = dialogue.clock - state.dialogue.clock + asking
        return probabilities, (), QPMDState(dialogue, state.queue, state.arrived, jnp.maximum(state.needed, asked))

    def _feed(self, dialogue: Dialogue, queue, asking) -> Dialogue:
        """Give the base the oldest loss of the arm it named, as feedback of that very question."""
        num_arms, arm = dialogue.fed.shape[0], dialogue.arm
        fed = asking & (dialogue.clock > 0)  # before the first question there is nothing to feed
        loss = read_row(queue, self._row(pick(dialogue.fed, arm), arm, num_arms))
        observation = Observation(fed, dialogue.clock, jnp.where(fed, arm, -1), loss, dialogue.probability, dialogue.memo)
        base = self.inner.observe(dialogue.base, observation)
        count = dialogue.fed + (one_hot(arm, num_arms) & fed).astype(jnp.int32)
        return Dialogue(base, dialogue.memo, arm, dialogue.probability, dialogue.clock, count)

    def _ask(self, dialogue: Dialogue, words: randomness.Words, number) -> Dialogue:
        """The base's next answer; ``number`` counts the questions of this round, each with two pairs of words of its own."""
        clock = dialogue.clock + 1
        round = undelayed(clock, lambda pair=0: randomness.fold(words, 2 * number + 1, pair))
        uniform = randomness.uniform(randomness.fold(words, 2 * number).first, randomness.grain(float_dtype()))
        made = decide(self.inner, dialogue.base, round, uniform)
        return Dialogue(made.state, made.memo, made.arm, made.probability, clock, dialogue.fed)

    def _row(self, count, arm, num_arms):
        return count % self.capacity * num_arms + arm

    def observe(self, state: QPMDState, observation: Observation) -> QPMDState:
        num_arms = state.arrived.shape[0]
        arm = jnp.maximum(observation.arm, 0)
        row = self._row(pick(state.arrived, arm), arm, num_arms)
        queue = write_own_row(state.queue, jnp.where(observation.arrived, observation.loss, read_row(state.queue, row)), row)
        arrived = state.arrived + (one_hot(arm, num_arms) & observation.arrived).astype(jnp.int32)
        # Past the capacity the newest loss replaces the oldest: wrong, but finite, and the lengths stay right.
        needed = jnp.maximum(state.needed, pick(arrived - state.dialogue.fed, arm))
        return QPMDState(state.dialogue, queue, arrived, needed)

    def _check_state(self, state: QPMDState) -> None:
        """Raise if a queue was longer, or more questions were due in one round, than the capacity."""
        self._check_capacity(state.needed, "or more questions were due in one round, or losses in one queue")


@pytree_dataclass
class BOLDState:
    """The copies of the base, and which of them have outstanding feedback."""

    base: Any  # the base's state, [capacity, K, ...] and [capacity, ...]
    clock: jax.Array  # [capacity, ...] int32, how many plays each copy made
    waits: jax.Array  # [capacity, ...] bool, whether its last play is outstanding
    playing: jax.Array  # [...] int32, the copy that plays this round
    needed: jax.Array  # [...] int32, the most copies ever needed at once


@pytree_dataclass
class BOLD(Sized):
    """BOLD: one copy of a learner without delays per outstanding observation.

    In each round the free copy with the smallest number acts, and is then busy until its feedback arrives. A copy has its own
    rounds and no delay. With d + 1 copies each learns from one round in d + 1, so the
    regret is that of d + 1 learners over T/(d + 1) rounds. Lost feedback costs a copy for good.

    Args:
      base: any learner, such as :class:`jaxbandit.TsallisINF`.
      capacity: how many copies; one more than the largest number of outstanding observations, such as the longest delay + 1 (static).

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.BOLD(jb.TsallisINF(), capacity=11), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100,
    ...             runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Joulani, György & Szepesvári, *Online Learning under Delayed Feedback*, ICML 2013.
    """

    base: Learner | Any
    capacity: int = static(low=1, fact="copies")
    hands_on_signals: ClassVar[bool] = True

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> BOLDState:
        base = self.inner.init(num_arms, runs_shape)
        copies = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.capacity, *leaf.shape)), base)
        each = (self.capacity, *runs_shape)
        return BOLDState(copies, jnp.zeros(each, jnp.int32), jnp.zeros(each, bool), *[jnp.zeros(runs_shape, jnp.int32)] * 2)

    def act(self, state: BOLDState, round: Round) -> tuple[jax.Array, Any, BOLDState]:
        numbers = jnp.arange(self.capacity, dtype=jnp.float32).reshape(self.capacity, *[1] * state.needed.ndim)
        # If all are busy, the last copy acts again: wrong, but finite, and `needed` reports it.
        copy = constant_min(jnp.where(state.waits, self.capacity - 1, numbers)).astype(jnp.int32)
        clock = read_row(state.clock, copy) + 1
        probabilities, memo, base = self.inner.act(read_row(state.base, copy), undelayed(clock, round.words))
        state = BOLDState(
            write_own_row(state.base, base, copy),
            write_own_row(state.clock, clock, copy),
            state.waits | one_hot(copy, self.capacity),
            copy,
            jnp.maximum(state.needed, round.outstanding + 1),
        )
        return probabilities, (copy, memo), state

    def played(self, state: BOLDState, round: Round, arm: jax.Array, probability: jax.Array) -> BOLDState:
        if type(self.inner).played is Learner.played:
            return state  # the default: spare the copying of the copy's state
        clock = undelayed(read_row(state.clock, state.playing), round.words)
        base = self.inner.played(read_row(state.base, state.playing), clock, arm, probability)
        return BOLDState(write_own_row(state.base, base, state.playing), state.clock, state.waits, state.playing, state.needed)

    def signalled(self, state: BOLDState, round: Round, arm: jax.Array, signal: jax.Array, memo: PyTree) -> tuple[Any, BOLDState]:
        if not self.num_signals:
            return memo, state
        copy, base = state.playing, read_row(state.base, state.playing)
        clock = undelayed(read_row(state.clock, copy), round.words)
        waiting, base = signalled(self.inner, base, clock, arm, signal, memo[1])
        bases = write_own_row(state.base, base, copy)
        return (copy, waiting), BOLDState(bases, state.clock, state.waits, copy, state.needed)

    def observe(self, state: BOLDState, observation: Observation) -> BOLDState:
        copy, memo = observation.memo
        origin = read_row(state.clock, copy)
        base = self.inner.observe(read_row(state.base, copy), observation._replace(origin=origin, memo=memo))
        waits = state.waits & ~(one_hot(copy, self.capacity) & observation.arrived)
        return BOLDState(write_own_row(state.base, base, copy), state.clock, waits, state.playing, state.needed)

    def _check_state(self, state: BOLDState) -> None:
        """Raise if more copies were needed than there are."""
        self._check_capacity(state.needed, "copies were needed at once, one for each outstanding play")


def base_memo(base: Learner, state: PyTree, clock: jax.Array, words: randomness.Words) -> Any:
    """The memo of the base's answer in its round ``clock``; asked for its shapes."""
    return base.act(state, undelayed(clock, lambda pair=0: randomness.fold(words, 0, pair)))[1]


def undelayed(clock: jax.Array, words: Callable[..., randomness.Words]) -> Round:
    """The base's round ``clock [...]``: it never sees an outstanding play."""
    none = jnp.zeros(clock.shape, jnp.int32)
    return Round(clock, none, none.astype(float_dtype()), words, lambda s: jnp.zeros(jnp.shape(s), bool))
