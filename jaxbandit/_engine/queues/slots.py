"""Arrival buffer: outstanding observations of learners that only sum arriving feedback.

With per-round delays, lists (:mod:`jaxbandit._engine.queues.listed`) need a loop over arrivals whose length is set by the busiest
run. In each turn an accelerator waits for the host, and a CPU processes all runs. If ``adds_only`` is set, observations may be
delivered one at a time or summed, and the update of an action is known when it is taken. It is therefore computed at once:

- :class:`Slots` adds it to the sum of all updates that arrive in the same round. A delivery reads one row.
- :class:`Dense` stores it with its round of arrival, and a delivery reads all rows. It is for TPUs, which cannot add to a
  different
  row in each run without copying the whole memory.

Sums are computed in another order than with lists: results agree up to rounding.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit._core.arms import pick
from jaxbandit._core.fields import float_dtype, pytree_dataclass, static
from jaxbandit._core.ring import read_row, write_row
from jaxbandit._core.sums import Count
from jaxbandit._engine.queues.listed import Play, row
from jaxbandit.learners.base import Observation

Brought = dict[int, jax.Array]  # index of a leaf of the learner's state -> the update added to it, [K, ...] or [...]
Read = tuple[list[jax.Array], jax.Array, jax.Array]  # the updated leaves, outstanding observations, arrived observations


@pytree_dataclass
class Arrivals:
    """Counts of outstanding observations: ``[]`` if all runs have the same delays, else ``[...]``."""

    outstanding: jax.Array  # int32, σ_t
    outstanding_max: jax.Array  # int32
    total_outstanding: Count  # Σ σ_s
    lost: jax.Array  # int32, actions with missing feedback
    made: tuple[Play, jax.Array] | None  # the action of this round and its delay, until the round's delivery
    at_arm: bool = static()  # updates are nonzero in the row of their own arm only
    lasting: int = static()  # from this delay on, feedback is missing; 0: the number of rows

    def begin(self, mask: jax.Array | None) -> "Arrivals":
        """Count the observations outstanding at the start of a round."""
        del mask  # all rows are used
        return dataclasses.replace(
            self,
            outstanding_max=jnp.maximum(self.outstanding_max, self.outstanding),
            total_outstanding=self.total_outstanding.add(self.outstanding),
        )

    def is_due_from(self, s: jax.Array, t: jax.Array) -> jax.Array:
        """Not available: observations of one round are kept as one sum."""
        raise TypeError("a learner that calls round.is_outstanding must say watches_plays = True in its class")

    def size(self) -> int:
        """The number of rows."""
        raise NotImplementedError

    def add(self, t: jax.Array, play: Play, delay: jax.Array) -> "Arrivals":
        """Add the action of round t with its delay; delays that no row can hold count as missing feedback."""
        lost = self.lost + (delay >= (self.lasting or self.size())).astype(jnp.int32)
        return dataclasses.replace(self, outstanding=self.outstanding + 1, lost=lost, made=(play, delay))

    def deliver(self, t: jax.Array, age: Any, observe: Callable, state: Any, loop: str) -> tuple["Arrivals", Any]:
        """Add the updates that arrive at the end of round t to ``state``, and store that of this round's action."""
        del age, loop
        assert self.made is not None
        play, delay = self.made
        comes = delay < (self.lasting or self.size())
        brought = bring(observe, state, play, comes, t)
        sums, came = self._due(t, play.arm, brought)
        now = comes & (delay == 0)
        leaves, structure = jax.tree.flatten(state)
        for place, new in brought.items():
            leaves[place] = leaves[place] + (sums[place] + jnp.where(now, new, 0)).astype(leaves[place].dtype)
        arrived = came.astype(jnp.int32) + now.astype(jnp.int32)
        arrived = arrived if arrived.ndim == self.outstanding.ndim else arrived[0]  # the same in every run
        outstanding = self.outstanding - arrived
        read = [leaves[place] for place in brought], outstanding, came
        delay = jnp.where(comes, delay, 0)
        kept = self._logged(t, delay, play.arm, brought)._keep(t, delay, comes & (delay > 0), play.arm, brought, read)
        return dataclasses.replace(kept, outstanding=outstanding, made=None), jax.tree.unflatten(structure, leaves)

    def _logged(self, t: jax.Array, delay: jax.Array, arm: jax.Array, brought: "Brought") -> Any:
        """``self`` with the data on this round's action that a longer queue would need."""
        del t, delay, arm, brought
        return self

    def _due(self, t: jax.Array, arm: jax.Array, brought: "Brought") -> tuple["Brought", jax.Array]:
        """The sums of the updates that arrive in round t, leaf by leaf, and the number of their actions."""
        raise NotImplementedError

    def _keep(self, t: jax.Array, delay: jax.Array, later: jax.Array, arm: jax.Array, brought: "Brought", read: "Read") -> Any:
        """``self`` without the updates that have arrived, and with ``brought`` stored where it arrives ``later``.

        ``read`` is computed from :meth:`_due`. XLA copies the whole memory in every round unless written values are
        computed from values that were read (see :mod:`jaxbandit._engine.queues.listed`).
        """
        raise NotImplementedError


def bring(observe: Callable, state: Any, play: Play, comes: jax.Array, t: jax.Array) -> Brought:
    """The update that the feedback of an action will add to the leaves of the learner's state."""
    nothing = jax.tree.map(jnp.zeros_like, state)
    arm = jnp.where(comes, play.arm, -1)
    after = observe(nothing, Observation(comes, t, arm, play.loss, play.probability, play.memo, losses=play.losses))
    # A leaf that is returned unchanged is never updated.
    pairs = enumerate(zip(jax.tree.leaves(after), jax.tree.leaves(nothing), strict=True))
    return {place: new for place, (new, old) in pairs if new is not old}


@pytree_dataclass
class Log:
    """All actions with their updates and rounds of arrival: for resumed runs, where rows end at the horizon."""

    due: jax.Array  # [W, ...] int32, row s: the round of arrival of action s, s itself once its update is complete
    arm: jax.Array  # [W, ...] int32
    values: jax.Array  # [W, n, ...] the update, and the number of actions


@pytree_dataclass
class Slots(Arrivals):
    """A row for each round of arrival, with the sums of the updates that arrive in it."""

    sums: jax.Array  # [W, N + 1, ...] row A % W: N numbers, and the number of actions
    log: Log | None = None

    def size(self) -> int:
        return self.sums.shape[0]

    def _due(self, t, arm, brought):
        due, sums, start = read_row(self.sums, row(t, self.size())), {}, 0
        for leaf, new in brought.items():
            count = len(_numbers(new, arm))
            sums[leaf] = due[start : start + count].reshape(new.shape)
            start += count
        return sums, due[-1]

    def _keep(self, t, delay, later, arm, brought, read):
        size, count = self.sums.shape[:2]
        if self.lasting:  # there is no row for feedback that arrives after the horizon
            later = later & (delay < size)
            delay = jnp.where(later, delay, 0)
        places, start = [], 0
        for new in brought.values():
            new = _numbers(new, arm)
            places.append(start + (arm[None] if self.at_arm else _range(len(new), arm)))
            start += len(new)
        places.append(jnp.full((1, *arm.shape), count - 1, jnp.int32))
        places, values = jnp.concatenate(places).astype(jnp.uint32), jnp.where(later, self._values(arm, brought), 0)
        return dataclasses.replace(self, sums=self._written(row(t, size), row(t + delay, size), places, values, read))

    def _values(self, arm: jax.Array, brought: Brought) -> jax.Array:
        """The numbers that are added to a row, ``[n, ...]``; the last counts the action."""
        values = [_numbers(new, arm) for new in brought.values()]
        values = [pick(new, arm)[None] for new in values] if self.at_arm else values
        return jnp.concatenate([*values, jnp.ones((1, *arm.shape), self.sums.dtype)])

    def _logged(self, t, delay, arm, brought):
        if self.log is None:
            return self
        new = Log(jnp.broadcast_to(t + delay, arm.shape), arm, self._values(arm, brought))
        log = jax.tree.map(lambda table, value: write_row(table, value, row(t, self.size())), self.log, new)
        return dataclasses.replace(self, log=log)

    def regrown(self, fresh: "Slots", done: jax.Array) -> "Slots":
        """Move the queue after round ``done`` to the longer, empty queue ``fresh``; requires a log."""
        assert self.log is not None
        size, (rows, count) = self.size(), fresh.sums.shape[:2]
        among = [jnp.arange(length, dtype=jnp.uint32) for length in self.log.arm.shape[1:]]

        def add(s: jax.Array, sums: jax.Array) -> jax.Array:
            play = read_row(self.log, row(s, size))
            if self.at_arm:
                each = (count - 1) // max(len(play.values) - 1, 1)
                places = jnp.stack([play.arm + each * leaf for leaf in range(len(play.values) - 1)])
                places = jnp.concatenate([places, jnp.full_like(play.arm, count - 1)[None]])
            else:
                places = _range(count, play.arm)
            index = jnp.broadcast_arrays(row(play.due, rows), places.astype(jnp.uint32), *among)
            later = (play.due > done) & (play.due - s < rows)
            # In ascending order of s, as in the longer queue.
            return sums.at[tuple(index)].add(jnp.where(later, play.values, 0), mode="promise_in_bounds", unique_indices=True)

        log = None if fresh.log is None else jax.tree.map(lambda new, old: new.at[:size].set(old), fresh.log, self.log)
        return dataclasses.replace(self, sums=lax.fori_loop(1, done + 1, add, fresh.sums), log=log, lasting=fresh.lasting)

    def _written(self, now: jax.Array, then: jax.Array, places: jax.Array, values: jax.Array, read: Read) -> jax.Array:
        """The sums with row ``now`` cleared, and ``values [N, ...]`` added to the numbers ``places [N, ...]`` of each run's row ``then``."""
        memory = write_row(self.sums, read[2] * 0, now)
        runs = [jnp.arange(length, dtype=jnp.uint32) for length in places.shape[1:]]
        index = jnp.broadcast_arrays(then, places, *runs)
        return memory.at[tuple(index)].add(values, mode="promise_in_bounds", unique_indices=True)


@pytree_dataclass
class SlotsInTurn(Slots):
    """The same for a CPU and one axis of runs, which are written one after the other.

    On a CPU, XLA compiles a scatter to a separate kernel, which is five times as slow as this loop.
    """

    def _written(self, now, then, places, values, read):
        # XLA on CPUs reads the row again at every use, so zeros are computed from derived values.
        leaves, outstanding, _ = read
        zeros = [jnp.minimum(jnp.abs(_numbers(one, places[0])), 0) for one in (*leaves, outstanding)]
        memory = write_row(self.sums, jnp.concatenate(zeros), now)
        then = jnp.broadcast_to(then, values.shape[-1:])  # a delay model may draw one delay for all runs without declaring it

        def one_run(run, memory):
            for place, value in zip(places, values, strict=True):
                at = then[run], place[run], jnp.asarray(run, jnp.uint32)
                memory = lax.dynamic_update_slice(memory, lax.dynamic_slice(memory, at, (1, 1, 1)) + value[run], at)
            return memory

        return lax.fori_loop(0, values.shape[-1], one_run, memory, unroll=4)


@pytree_dataclass
class Dense(Arrivals):
    """A row for each action, with its update and round of arrival."""

    due: jax.Array  # [W, ...] uint32, the round of arrival times a power of two, plus the arm; 0: empty
    values: tuple[jax.Array, ...]  # [W, ...] each

    def size(self) -> int:
        return self.due.shape[0]

    def _due(self, t, arm, brought):
        now, shift = t.astype(jnp.uint32), self._shift(brought)
        came = (self.due >> shift == now).sum(0, dtype=jnp.int32)
        held, sums = iter(self.values), {}
        for leaf, new in brought.items():
            if self.at_arm:
                one, codes = next(held), [(now << shift) + np.uint32(k) for k in range(len(new))]
                found = [jnp.where(self.due == code, one, 0).sum(0) for code in codes]
            else:
                found = [jnp.where(self.due == now, next(held), 0).sum(0) for _ in range(len(_numbers(new, arm)))]
            sums[leaf] = jnp.stack(found).reshape(new.shape)
        return sums, came

    def _keep(self, t, delay, later, arm, brought, read):
        size, came, shift = self.size(), read[2], self._shift(brought)
        if self.at_arm:
            given = [pick(new, arm) for new in brought.values()]
        else:
            given = [one for new in brought.values() for one in _numbers(new, arm)]
        code = ((t + delay).astype(jnp.uint32) << shift) + (arm.astype(jnp.uint32) if self.at_arm else np.uint32(0))
        # `came >= 0` is always true: it makes the written value depend on a value that was read.
        code = jnp.where(later & (came >= 0), code, np.uint32(0))
        values = tuple(
            write_row(ring, jnp.where(came >= 0, one, 0), row(t, size)) for ring, one in zip(self.values, given, strict=True)
        )
        return dataclasses.replace(self, due=write_row(self.due, code, row(t, size)), values=values)

    def _shift(self, brought: Brought) -> np.uint32:
        """The number of bits by which the round of arrival is shifted to make room for the arm."""
        return np.uint32(max(len(new) - 1 for new in brought.values()).bit_length() if self.at_arm else 0)


def _numbers(leaf: jax.Array, arm: jax.Array) -> jax.Array:
    """A leaf as ``[N, ...]``."""
    return leaf.reshape(-1, *arm.shape).astype(float_dtype())


def _range(count: int, arm: jax.Array) -> jax.Array:
    numbers = jnp.arange(count, dtype=jnp.int32).reshape(count, *[1] * arm.ndim)
    return jnp.broadcast_to(numbers, (count, *arm.shape))


def start(
    kind: str,
    size: int,
    observe: Callable,
    state: Any,
    play: Play,
    lead: tuple[int, ...],
    at_arm: bool,
    lasting: int = 0,
    logged: bool = False,
) -> Arrivals:
    """An empty queue. ``state`` and ``play`` give the shapes of its entries, ``lead`` is the shape of the counts.

    ``kind`` is "slots", "slots in turn" or "dense". ``lasting`` is the first delay that counts as missing where ``size`` rows
    end at the horizon, and ``logged`` means that such runs may be resumed.
    """
    play = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), play)
    brought = bring(observe, state, play, jnp.zeros(lead, bool), jnp.zeros((), jnp.int32))
    arm, dtype = play.arm, float_dtype()
    zero, none = jnp.zeros(lead, jnp.int32), jnp.zeros(lead, jnp.uint32)
    counts = (zero, zero, Count(none, none), zero, None, at_arm, lasting)
    numbers = sum(len(_numbers(new, arm)) for new in brought.values())
    if kind != "dense":
        each = jnp.zeros((size, *arm.shape), jnp.int32)
        values = jnp.zeros((size, (len(brought) if at_arm else numbers) + 1, *arm.shape), dtype)
        log = Log(each, each, values) if logged else None
        return (Slots if kind == "slots" else SlotsInTurn)(*counts, jnp.zeros((size, numbers + 1, *arm.shape), dtype), log)
    rows = tuple(jnp.zeros((size, *arm.shape), dtype) for _ in range(len(brought) if at_arm else numbers))
    return Dense(*counts, jnp.zeros((size, *arm.shape), jnp.uint32), rows)
