"""The bookkeeping of an agent: tickets, clocks, and outstanding observations. NumPy arrays, runs on the last axis."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import DTypeLike

from jaxbandit.agent.later import Later
from jaxbandit.agent.program import Clock, Decision, Inbox
from jaxbandit.agent.tickets import Book, Ticket

INBOX_SINGLE = 14  # observations that one call of the compiled program takes; in a fleet, one of each run
WATCHED = 64  # outstanding observations the program is first compiled for, if the learner watches them; doubled when exceeded
# Both so small that an inbox and a clock fit on one page (agent/pages.py).


class Turn(NamedTuple):
    """The basis of a decision, before anything is changed."""

    acting: np.ndarray | None  # which runs decide; None: all
    rows: np.ndarray  # of the book: the feedback that is delivered first
    outstanding: np.ndarray  # [runs] int32, σ_t
    total_outstanding: np.ndarray  # [runs] int64, Σ σ_s
    watched: np.ndarray | None  # [P, runs] int32, the rounds of the outstanding observations, 0: none


class Counts(NamedTuple):
    """The counters of a ledger, replaced as a whole."""

    decided: int  # the newest ticket
    rounds: np.ndarray  # [runs] int32
    outstanding: np.ndarray  # [runs] int32, actions without feedback so far
    total_outstanding: np.ndarray  # [runs] int64
    watched: np.ndarray | None  # [P, runs] int32, see Turn


class Change(NamedTuple):
    """The effect of a decision on a ledger. Applying it twice equals applying it once."""

    delivered: np.ndarray  # rows of the book
    start: int  # the row of the first new ticket
    tickets: dict[str, Any]  # its columns
    counts: Counts


class Ledger:
    """Tickets and counts of ``shape`` runs; ``memo`` are the shapes of the data stored with an action."""

    def __init__(self, shape: tuple[int, ...], memo: Any, watches: bool, dtype: DTypeLike):
        runs = shape[0] if shape else 1
        leaves, self._memo_structure = jax.tree.flatten(memo)
        self.book = Book([(leaf.shape[: leaf.ndim - len(shape)], leaf.dtype) for leaf in leaves], dtype)
        self._shape, self._dtype = shape, dtype
        watched = np.zeros((WATCHED, runs), np.int32) if watches else None
        self._counts = Counts(0, np.zeros(runs, np.int32), np.zeros(runs, np.int32), np.zeros(runs, np.int64), watched)
        self._nothing = self._inbox(np.arange(0), np.arange(0))._replace(filled=np.int32(0))

    @property
    def decided(self) -> int:
        """The newest ticket."""
        return self._counts.decided

    @property
    def rounds(self) -> np.ndarray:
        return self._counts.rounds

    def turn(self, acting: np.ndarray | None) -> Turn:
        """The basis of the next decision of these runs. Nothing is changed yet."""
        self.book.reserve(len(self.rounds) if acting is None else len(acting))
        rows = self.book.arrived()
        runs = self.book["run"][rows]
        if acting is not None and rows.size:
            here = self._mask(acting)[runs]
            rows, runs = rows[here], runs[here]
        outstanding = self._counts.outstanding - np.bincount(runs, minlength=len(self.rounds)).astype(np.int32)
        total = self._counts.total_outstanding.copy()
        if acting is None:
            total += outstanding
        else:
            total[acting] += outstanding[acting]
        watched = self._counts.watched
        if watched is not None:
            watched = watched.copy()
            watched[self.book["place"][rows], runs] = 0
            if outstanding.max(initial=0) >= len(watched):
                watched = np.concatenate([watched, np.zeros_like(watched)])
        return Turn(acting, rows, outstanding, total, watched)

    def clock(self, turn: Turn, forced: np.ndarray | None = None, active: np.ndarray | None = None) -> Clock:
        """The turn as the program takes it; ``forced`` is of the runs that act, -1: none."""
        total, watched = turn.total_outstanding, turn.watched
        # As counting.Count makes a float of its two words.
        number = (total >> 32).astype(self._dtype) * 2.0**32 + (total & 0xFFFFFFFF).astype(self._dtype)
        now, outstanding, number = (value.reshape(self._shape) for value in (self.rounds + 1, turn.outstanding, number))
        acts = None if turn.acting is None else self._mask(turn.acting)
        demanded = np.full(len(self.rounds), -1, np.int32)
        if forced is not None:
            demanded[slice(None) if turn.acting is None else turn.acting] = forced
        watched = None if watched is None else watched.reshape(len(watched), *self._shape)
        return Clock(acts, now, outstanding, number, demanded.reshape(self._shape), active, watched)

    def _mask(self, acting: np.ndarray) -> np.ndarray:
        mask = np.zeros(len(self.rounds), bool)
        mask[acting] = True
        return mask

    def inboxes(self, rows: np.ndarray) -> list[Inbox]:
        """These rows of the book, cut into inboxes that the program takes; at least one, which may be empty."""
        if not rows.size:
            return [self._nothing]
        if not self._shape:
            return [self._inbox(rows[first : first + INBOX_SINGLE]) for first in range(0, len(rows), INBOX_SINGLE)]
        runs = self.book["run"][rows]
        number = _number_within(runs)  # which observation of its run
        parts = [number == i for i in range(number.max() + 1)] if number.any() else [slice(None)]
        return [self._inbox(rows[part], runs[part]) for part in parts]

    def _inbox(self, rows: np.ndarray, runs: np.ndarray | None = None) -> Inbox:
        """These rows of the book one after the other, or beside each other, each in its run of a fleet."""

        def column(name: str, empty: int = 0) -> np.ndarray:
            values = self.book[name]
            if not self._shape:
                filled = np.zeros((INBOX_SINGLE, *values.shape[1:]), values.dtype)
                filled[: len(rows)] = values[rows]
                return filled
            filled = np.full((*self._shape, *values.shape[1:]), empty, values.dtype)
            filled[runs] = values[rows]
            return np.moveaxis(filled, 0, -1)[None]

        memo = jax.tree.unflatten(self._memo_structure, [column(name) for name in self.book.memo_names])
        filled = np.int32(1 if self._shape else len(rows))
        return Inbox(filled, column("round"), column("arm", -1), column("loss"), column("probability"), memo)

    def tickets(self, turn: Turn, decision: Decision, now: float, keys: Sequence[str] | None) -> Ticket:
        """The tickets (of arrays) of the runs that act."""
        runs = np.arange(len(self.rounds)) if turn.acting is None else turn.acting
        ids = np.arange(self.decided + 1, self.decided + 1 + len(runs))
        arm, propensity = decision.arm.reshape(-1)[runs], decision.propensity
        if not isinstance(propensity, Later):
            propensity = propensity.reshape(-1)[runs]
        return Ticket(ids, arm, propensity, self.rounds[runs] + 1, runs, np.full(len(runs), now), keys)

    def change(self, turn: Turn, ticket: Ticket, decision: Decision) -> Change:
        """The feedback of the turn is delivered and the tickets are given out."""
        memo = jax.tree.leaves(decision.memo)
        outstanding, rounds, watched = turn.outstanding.copy(), self.rounds.copy(), turn.watched
        outstanding[ticket.run] += 1
        rounds[ticket.run] = ticket.round
        place = 0
        if watched is not None:
            watched = watched.copy()
            place = (watched[:, ticket.run] == 0).argmax(0)
            watched[place, ticket.run] = ticket.round
        waiting = [np.moveaxis(leaf, -1, 0)[ticket.run] if self._shape else leaf[None] for leaf in memo]
        columns = (
            dict(zip(ticket._fields, ticket, strict=True))
            | {"place": place}
            | dict(zip(self.book.memo_names, waiting, strict=True))
        )
        columns |= {"propensity": ticket[2], "probability": decision.probability.reshape(-1)[ticket.run]}
        counts = Counts(self.decided + len(ticket.id), rounds, outstanding, turn.total_outstanding, watched)
        return Change(turn.rows, self.book.size, columns, counts)

    def apply(self, change: Change) -> None:
        self.book.drop(change.delivered)
        self.book.write(change.start, change.tickets)
        if change.tickets["key"] is not None:
            self.book.keys.update(zip(change.tickets["id"].tolist(), change.tickets["key"], strict=True))
        self._counts = change.counts

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything, to be saved."""
        arrays = {f"book_{name}": column for name, column in self.book.to_arrays().items()}
        named = {name: np.asarray(value) for name, value in self._counts._asdict().items() if value is not None}
        return arrays | named

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Everything, into a ledger that is new."""
        self.book.restore({name.removeprefix("book_"): array for name, array in arrays.items() if name.startswith("book_")})
        counts = {name: arrays[name] for name, value in self._counts._asdict().items() if value is not None}
        self._counts = self._counts._replace(**counts | {"decided": int(counts["decided"])})


def _number_within(groups: np.ndarray) -> np.ndarray:
    """For each entry, the number of earlier entries of the same group."""
    if len(groups) == 0 or np.bincount(groups).max() == 1:
        return np.zeros(len(groups), np.int64)
    order = np.argsort(groups, kind="stable")
    _, first, counts = np.unique(groups[order], return_index=True, return_counts=True)
    number = np.empty(len(groups), np.int64)
    number[order] = np.arange(len(groups)) - np.repeat(first, counts)
    return number
