"""What is compiled of an agent: deliver what has arrived, then decide, by the rule of one round of :mod:`jaxbandit.game`.

``...`` is the shape of the runs: ``()`` for a single agent, ``(fleet,)`` for a fleet.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit import arms, randomness
from jaxbandit.blocks import memory
from jaxbandit.learners.base import Learner, Observation, Round
from jaxbandit.pytrees import float_dtype, pytree_dataclass


@pytree_dataclass
class Setup:
    """Who decides, with which randomness: all that never changes."""

    learner: Learner
    streams: tuple[randomness.Words, ...]
    runs: jax.Array  # [...] uint32 run ids
    grain: jax.Array  # [] float, see randomness.uniform


class Inbox(NamedTuple):
    """At most C observations for each run, the oldest first."""

    filled: np.int32  # how many of the C rows are in use
    origin: np.ndarray  # [C, ...] int32, the round of the play
    arm: np.ndarray  # [C, ...] int32, -1: none
    loss: np.ndarray  # [C, ...]
    probability: np.ndarray  # [C, ...]
    memo: Any  # of [C, ..., runs]


class Clock(NamedTuple):
    """What the learner may know when it decides."""

    acts: np.ndarray | None  # [...] bool, which runs decide; None: all
    round: np.ndarray  # [...] int32
    outstanding: np.ndarray  # [...] int32, σ_t
    total_outstanding: np.ndarray  # [...] float, Σ σ_s
    watched: np.ndarray | None  # [P, ...] int32, the rounds of the outstanding plays, 0: none; if the learner watches them


class Decision(NamedTuple):
    """What was decided, for every run, also for those that do not act. NumPy arrays, traced arrays within a program."""

    arm: Any  # [...] int32
    probability: Any  # [...] of that arm
    probabilities: Any  # [K, ...]
    memo: Any  # what waits with the play, runs on the last axis


def check_memory(setup: Setup, num_arms: int) -> None:
    """One sentence if the state, which a decision needs before and after itself, cannot fit into the memory."""
    like = jax.eval_shape(lambda: setup.learner.init(num_arms, setup.runs.shape))
    need, available = 2 * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(like)), memory()
    if available is not None and need > available:
        raise ValueError(
            f"arms={num_arms}: {setup.runs.size} learners with so many arms need {need / 1e9:,.0f} GB of memory and there are "
            f"{available / 1e9:,.0f} GB; take fewer arms or a smaller fleet"
        )


def start(setup: Setup, num_arms: int) -> Any:
    """The learner's state before round 1. Not compiled: `rollout` starts so too, and a compiler may round differently."""
    state = setup.learner.init(num_arms, setup.runs.shape)
    return jax.tree.map(lambda leaf: _with_runs(leaf, setup.runs.shape), state)


def decision_like(setup: Setup, num_arms: int) -> Decision:
    """Shapes and dtypes of a decision."""
    zero = np.zeros(setup.runs.shape, np.int32)
    clock = Clock(None, zero + 1, zero, zero.astype(float_dtype()), zero[None] if setup.learner.watches_plays else None)
    return jax.eval_shape(lambda setup: _decide(setup, start(setup, num_arms), clock)[0], setup)


def decide(setup: Setup, state: Any, inbox: Inbox, clock: Clock) -> tuple[Decision, Any]:
    """Deliver the inbox, then decide in the runs that act; the state of the others only changes by what is in the inbox."""
    state = deliver(setup, state, inbox)
    decision, acted = _decide(setup, state, clock)
    acts = clock.acts
    return decision, acted if acts is None else jax.tree.map(lambda new, old: jnp.where(acts, new, old), acted, state)


def deliver(setup: Setup, state: Any, inbox: Inbox) -> Any:
    """Only deliver: for what does not fit into one inbox."""
    _, *rows = inbox

    def observe(row: jax.Array, state: Any) -> Any:
        origin, arm, loss, probability, memo = jax.tree.map(lambda leaf: jnp.asarray(leaf)[row], rows)
        observation = Observation(arm >= 0, origin, arm, loss, probability, memo)
        return _like(setup.learner.observe(state, observation), state)

    return lax.fori_loop(0, inbox.filled, observe, state)


def _decide(setup: Setup, state: Any, clock: Clock) -> tuple[Decision, Any]:
    t, outstanding, total = (jnp.asarray(value) for value in clock[1:4])

    def words(purpose: int, pair: int = 0) -> randomness.Words:
        return randomness.fold(randomness.fold(setup.streams[purpose], t), setup.runs, pair)

    def is_outstanding(s: jax.Array) -> jax.Array:
        if clock.watched is None:
            raise TypeError("a learner that calls round.is_outstanding must say watches_plays = True in its class")
        return (s >= 1) & (s < t) & (clock.watched == s).any(0)

    round = Round(t, outstanding, total, lambda pair=0: words(randomness.LEARNER, pair), is_outstanding)
    probabilities, memo, acted = setup.learner.act(state, round)
    arm = arms.draw(probabilities, randomness.uniform(words(randomness.PLAY).first, setup.grain))
    probability = arms.pick(probabilities, arm)
    acted = setup.learner.played(acted, round, arm, probability)
    memo = jax.tree.map(lambda leaf: _with_runs(leaf, setup.runs.shape), memo)
    return Decision(arm, probability, probabilities, memo), _like(acted, state)


def _with_runs(leaf: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """A leaf of a learner's state or memo with the runs on its last axis; one number may serve all of them."""
    if leaf.shape[leaf.ndim - len(shape) :] == shape:
        return leaf
    if leaf.ndim:
        raise TypeError(
            f"a learner's arrays have the runs on the last axis; one of shape {leaf.shape} has not the {shape[0]} runs"
        )
    return jnp.broadcast_to(leaf, shape)


def _like(new: Any, old: Any) -> Any:
    return jax.tree.map(lambda new, old: jnp.broadcast_to(new, old.shape), new, old)
