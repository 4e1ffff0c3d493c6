"""Outstanding observations: a ring of at least ``bound + 1`` rounds, with memory constant in the number of rounds.

The ring has W rows, a power of two so that finding a row is one "and". Row ``s % W`` holds the action of round s. Actions whose
feedback arrives at the end of a round are found as follows:

- Delay models with one age (``fixed_age``; Fixed, PacketLoss): the only candidate is the action of ``age`` rounds ago.
- All other delay models: a linked list through the ring for each round of arrival, oldest action first. There is one list for all
  runs if the delays are shared, else one for each run: O(1) for each observation.

The ring may have more rows than are used (``mask``), so that delay models with different longest delays share a program. It may
have fewer than the longest delay (``lasting``) if it has more than the horizon: then no action leaves it, and feedback that
arrives after the horizon is in no list. Its round of arrival is kept in ``due``, and :meth:`Pending.regrown` moves it to a longer
ring.

A few observations with delays longer than the ring (outliers of a shared sequence) are in a side list.

XLA copies a whole ring in every round unless each write to it follows the reads of that round. XLA derives the order from data
dependences only. Some written values are therefore computed from values that were read, in a way that does not change them.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit._core.fields import pytree_dataclass, static
from jaxbandit._core.ring import read_row, write_own_number, write_row
from jaxbandit._core.sums import Count
from jaxbandit.delays import NEVER, Delays
from jaxbandit.learners.base import Observation

NONE = np.int32(-(2**30))  # older than any action
# The loop over the arrivals of a round. while: as many turns as arrivals. cond: as many turns as the queue has rows, skipping
# empty ones, for reverse mode. all: without skipping, because the batching rule of lax.cond cannot be transposed once
# differentiated.
Loop = Literal["while", "cond", "all"]


@pytree_dataclass
class Play:
    """An action with outstanding feedback."""

    arm: jax.Array  # [...] int32
    loss: jax.Array  # [...]
    probability: jax.Array  # [...]
    memo: Any
    jump: Any = None  # set by a Hook, for gradient estimation
    losses: Any = None  # [K, ...] of all arms, for learners with full information
    stages: Any = None  # [J, ...] outcomes before the loss, for learners that read them


@pytree_dataclass
class Lists:
    """Arrival schedule: for each round of arrival a linked list of actions, identified by their rounds, in ascending order.

    ``last`` needs no clearing: feedback that arrives in round A is of an action after round A - W, so older entries are invalid.
    """

    last: jax.Array  # [W] or [W, ...] int32, row A % W: the newest action whose feedback arrives in round A
    links: jax.Array  # [2W] or [2W, ...] int32, row A % W: the oldest such action; row W + s % W: the successor of action s

    def append(self, play: jax.Array, arrival: jax.Array, due: jax.Array) -> "Lists":
        """Put ``play`` at the end of the list of round ``arrival``, where ``due``."""
        size = self.last.shape[0]
        newest = read_row(self.last, row(arrival, size))
        empty = newest <= arrival - size
        # Where ``due`` is False, the row is written back unchanged. `newest > NONE - 1` is always true: it makes the written
        # value
        # depend on the value that was read, so that XLA does not copy the ring (see the module docstring).
        last = write_own_number(self.last, jnp.where(due & (newest > NONE - 1), play, newest), row(arrival, size))
        link = jnp.where(empty, row(arrival, size), size + row(newest, size))
        return Lists(last, write_own_number(self.links, play, jnp.where(due, link, size + row(play, size))))


def ring_size(bound: int) -> int:
    """The number of rows of a ring for delays up to ``bound``: a power of two above it."""
    return 1 << int(bound).bit_length()


def row(round: jax.Array, size: int) -> jax.Array:
    """The row of a round in a ring of ``size`` rows, unsigned, so that JAX adds no handling of negative indices."""
    return round.astype(jnp.uint32) & np.uint32(size - 1)


@pytree_dataclass
class Side:
    """Actions of a shared sequence with delays longer than the ring; the last row takes the writes of all other rounds."""

    plays: Play  # [C + 1, ...]
    origin: jax.Array  # [C + 1] int32
    due: jax.Array  # [C + 1] int32, 0: empty
    filled: jax.Array  # [] int32


@pytree_dataclass
class Pending:
    """All outstanding observations and their counts. Counts are ``[]`` if the delays are shared, else ``[...]``."""

    plays: Play  # [W, ...]
    lists: Lists | None
    side: Side | None
    due: jax.Array | None  # [W, ...] int32, the round of arrival of each observation, if a learner or a longer ring requires it
    outstanding: jax.Array  # int32, σ_t
    outstanding_max: jax.Array  # int32
    total_outstanding: Count  # Σ σ_s
    lost: jax.Array  # int32, actions with missing feedback
    mask: jax.Array | None = None  # uint32, W - 1 for a ring of which only W rows are used; known within a round only
    lasting: int = static(default=0)  # from this delay on, feedback is missing; 0: the number of rows

    @classmethod
    def start(cls, delays: Delays, play: Play, lead: tuple[int, ...], keep_due: bool, rows: int = 0) -> "Pending":
        """An empty queue. ``play`` gives the shapes and dtypes of an entry, ``lead`` is the shape of the counts.

        ``rows`` is the length of a ring that ends at the horizon; 0: the ring holds every delay.
        """

        def empty(count):
            return jax.tree.map(lambda leaf: jnp.zeros((count, *leaf.shape), leaf.dtype), play)

        size, extra = rows or ring_size(delays.bound), delays._long_waits or 0
        # Without a list, an arm of -1 marks missing feedback, or a round without an action.
        plays = empty(size)
        plays = dataclasses.replace(plays, arm=plays.arm - 1)
        lists = (
            None
            if delays.fixed_age() is not None
            else Lists(jnp.full((size, *lead), NONE), jnp.zeros((2 * size, *lead), jnp.int32))
        )
        long = jnp.zeros(extra + 1, jnp.int32)
        zero, none = jnp.zeros(lead, jnp.int32), jnp.zeros(lead, jnp.uint32)
        side = Side(empty(extra + 1), long, long, jnp.zeros((), jnp.int32)) if extra else None
        due = jnp.zeros((size, *lead), jnp.int32) if keep_due else None
        return cls(plays, lists, side, due, zero, zero, Count(none, none), zero, lasting=ring_size(delays.bound) if rows else 0)

    def begin(self, mask: jax.Array | None) -> "Pending":
        """Count the observations outstanding at the start of a round."""
        return self.replace(
            mask=mask,
            outstanding_max=jnp.maximum(self.outstanding_max, self.outstanding),
            total_outstanding=self.total_outstanding.add(self.outstanding),
        )

    def replace(self, **changes: Any) -> "Pending":
        return dataclasses.replace(self, **changes)

    def add(self, t: jax.Array, play: Play, delay: jax.Array) -> "Pending":
        """Add the action of round t, whose feedback is delayed by ``delay`` rounds."""
        size = self.plays.arm.shape[0] if self.mask is None else self.mask.astype(jnp.int32) + 1
        slot = self._row(t)
        # Delays that no list can hold count as missing feedback: delay models are checked, but a user's may return any number.
        never = delay == NEVER if self.side is not None else delay >= (self.lasting or size)
        changes: dict[str, Any] = {
            "outstanding": self.outstanding + 1,
            "lost": self.lost + never.astype(jnp.int32),
        }
        if self.lists is None:
            play = dataclasses.replace(play, arm=jnp.where(never, -1, play.arm))
        else:
            long = (delay >= size) & ~never
            changes["lists"] = self.lists.append(t, t + jnp.where(never | long, 0, delay), ~(never | long))
            if self.side is not None:
                changes["side"] = _set_aside(self.side, t, play, delay, long)
        if self.due is not None:
            changes["due"] = write_row(self.due, jnp.where(never, NEVER, t + delay), slot)
        changes["plays"] = jax.tree.map(lambda ring, row: write_row(ring, row, slot), self.plays, play)
        return self.replace(**changes)

    def regrown(self, fresh: "Pending", done: jax.Array) -> "Pending":
        """Move the queue after round ``done`` to the longer, empty queue ``fresh``. This ring has more than ``done`` rows."""

        def add(s: jax.Array, grown: "Pending") -> "Pending":
            due = read_row(self.due, row(s, size))
            return grown.add(s, read_row(self.plays, row(s, size)), jnp.where(due == NEVER, NEVER, due - s))

        size = self.plays.arm.shape[0]
        if self.lists is None:
            # Row s in both rings is the action of round s.
            grown = fresh.replace(plays=jax.tree.map(lambda new, old: new.at[:size].set(old), fresh.plays, self.plays))
        else:
            grown = lax.fori_loop(1, done + 1, add, fresh)
        return grown.replace(
            outstanding=self.outstanding,
            outstanding_max=self.outstanding_max,
            total_outstanding=self.total_outstanding,
            lost=self.lost,
        )

    def _row(self, round: jax.Array) -> jax.Array:
        if self.mask is None:
            return row(round, self.plays.arm.shape[0])
        return round.astype(jnp.uint32) & self.mask

    def is_due_from(self, s: jax.Array, t: jax.Array) -> jax.Array:
        """Whether the feedback of round s arrives at the end of round t or later; entries that left the ring have arrived."""
        if self.due is None:
            raise TypeError("a learner that calls round.is_outstanding must say watches_plays = True in its class")
        size = self.due.shape[0]
        s = jnp.broadcast_to(s, self.due.shape[1:])
        return (s >= t - size) & (read_row(self.due, row(s, size)) >= t)

    def deliver(self, t: jax.Array, age: jax.Array | None, observe: Callable, state: Any, loop: Loop) -> tuple["Pending", Any]:
        """Pass all feedback that arrives at the end of round t to ``observe(state, observation)``, oldest first."""
        if self.lists is None:
            pending, state = self._deliver_aged(t, age, observe, state)
            return pending.replace(mask=None), state
        pending, state = (self, state) if self.side is None else self._deliver_side(t, observe, state, loop)
        return pending._deliver_listed(t, observe, state, loop)

    def deliver_sum(self, t: jax.Array, shares: jax.Array, observe: Callable, state: Any) -> tuple["Pending", Any]:
        """Pass the sum of all shares of losses that arrive at the end of round t to ``observe``, as one observation of no arm.

        ``shares [M]`` of a loss arrive after 0, 1, … rounds. The ring holds a loss of 0 for rounds without an action.
        """
        size = self.plays.arm.shape[0]
        age = row(t - jnp.arange(size, dtype=jnp.int32), size)  # of the action in each row
        weights = jnp.pad(shares, (0, size - shares.shape[0]))[age]
        total = (self.plays.loss * weights.reshape(size, *[1] * (self.plays.loss.ndim - 1))).sum(0)
        nobody = Play(jnp.full_like(self.plays.arm[0], -1), total, jnp.ones_like(total), read_row(self.plays.memo, row(t, size)))
        state = observe(state, _observation(jnp.asarray(True), t, nobody))
        done = (t >= shares.shape[0]).astype(jnp.int32)
        return self.replace(outstanding=self.outstanding - done, mask=None), state

    def _deliver_aged(self, t, age, observe, state):
        play = read_row(self.plays, self._row(t - age))
        arrived = (t > age) & (play.arm >= 0)
        came = arrived if arrived.ndim == self.outstanding.ndim else arrived[0]  # shared: the same in every run
        state = observe(state, _observation(arrived, t - age, play))
        return self.replace(outstanding=self.outstanding - came.astype(jnp.int32)), state

    def _deliver_listed(self, t, observe, state, loop):
        assert self.lists is not None
        size, links = self.plays.arm.shape[0], self.lists.links
        newest = read_row(self.lists.last, row(t, size))
        waiting = newest > t - size
        oldest = read_row(links, row(t, size))

        def deliver_one(carry):
            state, play, waiting, came = carry
            state = observe(state, _observation(waiting, play, read_row(self.plays, row(play, size))))
            more = waiting & (play != newest)
            return state, read_row(links, size + row(play, size)), more, came + waiting.astype(jnp.int32)

        carry = (state, oldest, waiting, jnp.zeros_like(newest))
        state, _, _, came = _repeat(lambda carry: carry[2].any(), deliver_one, carry, size, loop)
        return self.replace(outstanding=self.outstanding - came), state

    def _deliver_side(self, t, observe, state, loop):
        assert self.side is not None
        side = self.side

        def deliver_one(carry):
            state, due, came = carry
            row = jnp.argmax(due == t)  # the first: rows are filled in ascending order of origin
            waiting = due[row] == t
            state = observe(state, _observation(waiting, side.origin[row], read_row(side.plays, row)))
            return state, due.at[row].set(jnp.where(waiting, 0, due[row])), came + waiting.astype(jnp.int32)

        carry = (state, side.due, jnp.zeros((), jnp.int32))
        state, due, came = _repeat(lambda carry: (carry[1] == t).any(), deliver_one, carry, side.due.shape[0], loop)
        side = Side(side.plays, side.origin, due, side.filled)
        return self.replace(side=side, outstanding=self.outstanding - came), state


def _observation(arrived, origin, play: Play) -> Observation:
    arm = jnp.where(arrived, play.arm, -1)
    return Observation(
        arrived, origin, arm, play.loss, play.probability, play.memo, play.jump, losses=play.losses, stages=play.stages
    )


def _repeat(proceed, body, carry, limit: int, loop: Loop):
    """``while proceed(carry): carry = body(carry)``, at most ``limit`` times; ``body`` changes nothing once ``proceed`` is false."""
    if loop == "while":
        return lax.while_loop(proceed, body, carry)
    if loop == "all":
        return lax.scan(lambda carry, _: (body(carry), None), carry, length=limit)[0]
    return lax.scan(lambda carry, _: (lax.cond(proceed(carry), body, lambda same: same, carry), None), carry, length=limit)[0]


def _set_aside(side: Side, t, play: Play, delay, long) -> Side:
    row = jnp.where(long, side.filled, side.due.shape[0] - 1)
    return Side(
        jax.tree.map(lambda ring, value: write_row(ring, value, row), side.plays, play),
        write_row(side.origin, t, row),
        write_row(side.due, jnp.where(long, t + delay, 0), row),
        side.filled + long.astype(jnp.int32),
    )
