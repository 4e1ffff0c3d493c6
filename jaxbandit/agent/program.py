"""The compiled part of an agent: deliver arrived feedback, then decide, as in one round of :mod:`jaxbandit._engine.game`.

``...`` is the shape of the runs: ``()`` for a single agent, ``(fleet,)`` for a fleet.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit._core import arms, randomness
from jaxbandit._core.fields import PyTree, float_dtype, pytree_dataclass, static
from jaxbandit._engine.devices import memory
from jaxbandit.learners.base import Learner, Observation, Round, is_importance_weighted, propensity_of


@pytree_dataclass
class Setup:
    """The learner and the random streams: the constants of an agent."""

    learner: Learner
    streams: tuple[randomness.Words, ...]
    runs: jax.Array  # [...] uint32 run ids
    grain: jax.Array  # [] float, see randomness.uniform
    propensities: bool = static(default=True)  # whether to compute those that cost more than the decision


class Inbox(NamedTuple):
    """At most C observations for each run, the oldest first."""

    filled: np.int32  # how many of the C rows are in use
    origin: np.ndarray  # [C, ...] int32, the round of the action
    arm: np.ndarray  # [C, ...] int32, -1: none
    loss: np.ndarray  # [C, ...]
    probability: np.ndarray  # [C, ...]
    memo: Any  # of [C, ..., runs]


class Clock(NamedTuple):
    """The information available to the learner when it decides."""

    acts: np.ndarray | None  # [...] bool, which runs decide; None: all
    round: np.ndarray  # [...] int32
    outstanding: np.ndarray  # [...] int32, σ_t
    total_outstanding: np.ndarray  # [...] float, Σ σ_s
    forced: np.ndarray  # [...] int32, the arm that the caller demands, -1: none
    active: np.ndarray | None  # [K] bool, the arms that are not withdrawn; None: all
    watched: np.ndarray | None  # [P, ...] int32, the rounds of the outstanding observations, 0: none; if the learner watches them


class Decision(NamedTuple):
    """The decision of every run, also of those that do not act. NumPy arrays, traced arrays within a program."""

    arm: Any  # [...] int32
    probability: Any  # [...] of that arm, given the learner's own draws in `act`
    propensity: Any  # [...] of that arm, given the history alone; NaN: not known
    probabilities: Any  # [K, ...]
    memo: Any  # the data stored with the action, runs on the last axis


def check_agent_memory(setup: Setup, num_arms: int) -> None:
    """Raise if the state, which a decision needs twice, before and after, cannot fit into the memory."""
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
    return jax.eval_shape(lambda setup: _decide(setup, start(setup, num_arms), first_clock(setup))[0], setup)


def first_clock(setup: Setup) -> Clock:
    """The clock of round 1."""
    zero = np.zeros(setup.runs.shape, np.int32)
    watched = zero[None] if setup.learner.watches_plays else None
    return Clock(None, zero + 1, zero, zero.astype(float_dtype()), zero - 1, None, watched)


def decide(setup: Setup, state: PyTree, inbox: Inbox, clock: Clock) -> tuple[Decision, Any]:
    """Deliver the inbox, then decide in the runs that act; the state of the others only changes by what is in the inbox."""
    state = deliver(setup, state, inbox)
    decided, acted = _decide(setup, state, clock)
    acts = clock.acts
    return decided, acted if acts is None else jax.tree.map(lambda new, old: jnp.where(acts, new, old), acted, state)


def deliver(setup: Setup, state: PyTree, inbox: Inbox) -> Any:
    """Deliver without deciding: for feedback that does not fit into one inbox."""
    _, *rows = inbox

    def observe(row: jax.Array, state: PyTree) -> Any:
        origin, arm, loss, probability, memo = jax.tree.map(lambda leaf: jnp.asarray(leaf)[row], rows)
        observation = Observation(arm >= 0, origin, arm, loss, probability, memo)
        return _like(setup.learner.observe(state, observation), state)

    return lax.fori_loop(0, inbox.filled, observe, state)


def propensity(setup: Setup, state: PyTree, inbox: Inbox, clock: Clock) -> jax.Array:
    """The probabilities ``[...]`` of the arms ``clock.forced`` in a decision that was made before, given the history.

    The other arguments are those of the decision.
    """
    known = propensity_of(setup.learner, deliver(setup, state, inbox), _round(setup, clock, set()), jnp.asarray(clock.forced))
    assert known is not None  # see has_costly_propensity
    return jnp.broadcast_to(known, setup.runs.shape)


def has_costly_propensity(setup: Setup, num_arms: int) -> bool:
    """Whether the learner draws within its rule and can compute the probability of its arm."""
    asked: set[str] = set()
    known: list[bool] = []

    def attempt(setup: Setup) -> Any:
        state, round = start(setup, num_arms), _round(setup, first_clock(setup), asked)
        setup.learner.act(state, round)
        known.append(propensity_of(setup.learner, state, round, jnp.zeros(setup.runs.shape, jnp.int32)) is not None)

    jax.eval_shape(attempt, setup)
    return "words" in asked and known[0]


def _words(setup: Setup, clock: Clock, purpose: int, pair: int = 0) -> randomness.Words:
    return randomness.fold(randomness.fold(setup.streams[purpose], jnp.asarray(clock.round)), setup.runs, pair)


def _round(setup: Setup, clock: Clock, asked: set[str]) -> Round:
    """The round as the learner sees it; ``asked`` collects what `act` uses, known once it is traced."""
    t, outstanding, total = (jnp.asarray(value) for value in clock[1:4])

    def is_outstanding(s: jax.Array) -> jax.Array:
        if clock.watched is None:
            raise TypeError("a learner that calls round.is_outstanding must say watches_plays = True in its class")
        return (s >= 1) & (s < t) & (clock.watched == s).any(0)

    def draw(pair: int = 0) -> randomness.Words:
        asked.add("words")
        return _words(setup, clock, randomness.LEARNER, pair)

    def restrict(values: jax.Array) -> jax.Array:
        asked.add("restrict")
        return values if clock.active is None else jnp.where(_rows(clock.active, values), values, jnp.inf)

    return Round(t, outstanding, total, draw, is_outstanding, restrict, setup.runs.shape)


def _decide(setup: Setup, state: PyTree, clock: Clock) -> tuple[Decision, Any]:
    asked: set[str] = set()
    round = _round(setup, clock, asked)
    probabilities, memo, acted = setup.learner.act(state, round)
    if clock.active is not None and "restrict" not in asked:
        probabilities = _renormalised(setup.learner, probabilities, clock.active)
    drawn = arms.draw(probabilities, randomness.uniform(_words(setup, clock, randomness.PLAY).first, setup.grain))
    forced = jnp.asarray(clock.forced)
    arm = jnp.where(forced >= 0, forced, drawn)
    # A forced arm has probability 1.
    probability = jnp.where(forced >= 0, 1, arms.pick(probabilities, drawn))
    propensity = probability
    if "words" in asked:
        known = propensity_of(setup.learner, state, round, drawn) if setup.propensities else None
        propensity = jnp.where(forced >= 0, 1, jnp.nan if known is None else known).astype(probability.dtype)
    acted = setup.learner.played(acted, round, arm, probability)
    memo = jax.tree.map(lambda leaf: _with_runs(leaf, setup.runs.shape), memo)
    return Decision(arm, probability, jnp.broadcast_to(propensity, arm.shape), probabilities, memo), _like(acted, state)


def _renormalised(learner: Learner, probabilities: jax.Array, active: Any) -> jax.Array:
    """The probabilities of the arms that are not withdrawn."""
    if not is_importance_weighted(learner):
        name = type(learner).__name__
        raise ValueError(f"withdraw(): {name} decides by rules that need every arm; start a new agent with the other arms")
    left = jnp.where(_rows(active, probabilities), probabilities, 0)
    return left / arms.sums(left)[0]


def _rows(active: Any, values: jax.Array) -> jax.Array:
    """``active [K]`` with the axes of ``values [K, ...]``."""
    return jnp.asarray(active).reshape(-1, *[1] * (values.ndim - 1))


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
