"""What an agent knows outside of the learner: tickets, clocks, and how many plays are outstanding. NumPy, runs on the last axis."""

from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandit.agent.program import Clock, Inbox
from jaxbandit.agent.tickets import Book, Ticket

INBOX_SINGLE = 14  # observations that one call of the compiled program takes; in a fleet, one of each run
WATCHED = 64  # outstanding plays the program is first compiled for, if the learner watches them; doubled when there are more
# Both so small that an inbox and a clock fit on one page (agent/pages.py).


class Turn(NamedTuple):
    """What a decision starts from; :meth:`Ledger.finish` makes it the past."""

    acting: np.ndarray | None  # which runs decide; None: all
    rows: np.ndarray  # of the book: the feedback that is delivered first
    outstanding: np.ndarray  # [runs] int32, σ_t
    total_outstanding: np.ndarray  # [runs] int64, Σ σ_s
    watched: np.ndarray | None  # [P, runs] int32, the rounds of the outstanding plays, 0: none


class Ledger:
    """Tickets and counts of ``shape`` runs; ``memo`` are the shapes of what waits with a play."""

    def __init__(self, shape: tuple[int, ...], memo: Any, watches: bool, dtype: Any):
        runs = shape[0] if shape else 1
        leaves, self._memo_structure = jax.tree.flatten(memo)
        self.book = Book([(leaf.shape[: leaf.ndim - len(shape)], leaf.dtype) for leaf in leaves], dtype)
        self.decided = 0  # the newest ticket
        self.rounds = np.zeros(runs, np.int32)
        self._shape, self._dtype = shape, dtype
        self._outstanding = np.zeros(runs, np.int32)  # plays of which the learner has no feedback
        self._total_outstanding = np.zeros(runs, np.int64)
        self._watched = np.zeros((WATCHED, runs), np.int32) if watches else None
        self._nothing = self._inbox(np.arange(0), np.arange(0))._replace(filled=np.int32(0))

    def turn(self, acting: np.ndarray | None) -> Turn:
        """What the next decision of these runs starts from. Nothing is changed yet."""
        rows = self.book.arrived()
        runs = self.book["run"][rows]
        if acting is not None and rows.size:
            here = self._mask(acting)[runs]
            rows, runs = rows[here], runs[here]
        outstanding = self._outstanding - np.bincount(runs, minlength=len(self.rounds)).astype(np.int32)
        total = self._total_outstanding.copy()
        if acting is None:
            total += outstanding
        else:
            total[acting] += outstanding[acting]
        watched = self._watched
        if watched is not None:
            watched = watched.copy()
            watched[self.book["place"][rows], runs] = 0
            if outstanding.max(initial=0) >= len(watched):
                watched = np.concatenate([watched, np.zeros_like(watched)])
        return Turn(acting, rows, outstanding, total, watched)

    def clock(self, turn: Turn) -> Clock:
        """The turn as the program takes it."""
        total, watched = turn.total_outstanding, turn.watched
        # As counting.Count makes a float of its two words.
        number = (total >> 32).astype(self._dtype) * 2.0**32 + (total & 0xFFFFFFFF).astype(self._dtype)
        now, outstanding, number = (value.reshape(self._shape) for value in (self.rounds + 1, turn.outstanding, number))
        acts = None if turn.acting is None else self._mask(turn.acting)
        return Clock(acts, now, outstanding, number, None if watched is None else watched.reshape(len(watched), *self._shape))

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

    def tickets(self, turn: Turn, arm: np.ndarray, probability: np.ndarray) -> Ticket:
        """The tickets (of arrays) for what was drawn in all runs."""
        runs = np.arange(len(self.rounds)) if turn.acting is None else turn.acting
        ids = np.arange(self.decided + 1, self.decided + 1 + len(runs))
        return Ticket(ids, arm.reshape(-1)[runs], probability.reshape(-1)[runs], self.rounds[runs] + 1, runs)

    def finish(self, turn: Turn, ticket: Ticket, memo: list[np.ndarray]) -> None:
        """The feedback of the turn is delivered, the tickets are given out; ``memo`` is of all runs."""
        self._outstanding, self._total_outstanding, self._watched = turn.outstanding, turn.total_outstanding, turn.watched
        self.book.drop(turn.rows)
        place = 0
        if self._watched is not None:
            place = (self._watched[:, ticket.run] == 0).argmax(0)
            self._watched[place, ticket.run] = ticket.round
        waiting = [np.moveaxis(leaf, -1, 0)[ticket.run] if self._shape else leaf[None] for leaf in memo]
        self.book.append(**ticket._asdict(), place=place, **dict(zip(self.book.memo_names, waiting, strict=True)))
        self.decided += len(ticket.id)
        self.rounds[ticket.run] = ticket.round
        self._outstanding[ticket.run] += 1

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything, to be saved."""
        arrays = {f"book_{name}": column for name, column in self.book.to_arrays().items()}
        arrays |= {"decided": np.array(self.decided), "rounds": self.rounds, "outstanding": self._outstanding}
        arrays |= {"total_outstanding": self._total_outstanding}
        return arrays if self._watched is None else arrays | {"watched": self._watched}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Everything, into a ledger that is new."""
        self.book.restore({name.removeprefix("book_"): array for name, array in arrays.items() if name.startswith("book_")})
        self.decided, self.rounds = int(arrays["decided"]), arrays["rounds"]
        self._outstanding, self._total_outstanding = arrays["outstanding"], arrays["total_outstanding"]
        self._watched = arrays.get("watched")


def _number_within(groups: np.ndarray) -> np.ndarray:
    """For each entry, how many entries of the same group come before it."""
    if len(groups) == 0 or np.bincount(groups).max() == 1:
        return np.zeros(len(groups), np.int64)
    order = np.argsort(groups, kind="stable")
    _, first, counts = np.unique(groups[order], return_index=True, return_counts=True)
    number = np.empty(len(groups), np.int64)
    number[order] = np.arange(len(groups)) - np.repeat(first, counts)
    return number
