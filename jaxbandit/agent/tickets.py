"""The tickets of an agent: which decisions wait for feedback, and what is kept with them.

Columns in ascending order of id, so that a ticket is found by bisection, and the plays of a run are in order of their rounds.
"""

from typing import Any, NamedTuple

import numpy as np

from jaxbandit.pytrees import show

WAITING, ARRIVED, GONE = range(3)  # what has arrived is kept until it is delivered, at the run's next decision
FIRST_ROWS = 64  # rows of a new book; it is made larger when it is full


class TicketError(ValueError):
    """A ticket that cannot be answered: unknown, answered before, or expired."""


class Ticket(NamedTuple):
    """One decision. In a fleet every field is an array, one entry for each run that decided."""

    id: Any  # from 1, in order of the decisions
    arm: Any  # its number, from 0, or its name
    probability: Any  # with which it was drawn
    round: Any  # from 1, of this run
    run: Any = 0  # which of the fleet


class Book:
    """Columns of the tickets that are not done with."""

    def __init__(self, memo: list[tuple[tuple[int, ...], Any]], dtype: Any):
        """``memo``: shape and dtype of each array that waits with a play; ``dtype``: of losses and probabilities."""
        self.size = 0
        self._expired: set[int] = set()
        counts = {"id": np.int64, "run": np.int32, "round": np.int32, "arm": np.int32, "status": np.int8, "place": np.int32}
        self._columns: dict[str, np.ndarray] = {name: np.zeros(FIRST_ROWS, kind) for name, kind in counts.items()}
        self._columns |= {name: np.zeros(FIRST_ROWS, dtype) for name in ("probability", "loss")}
        self.memo_names = [f"memo_{i}" for i in range(len(memo))]
        self._columns |= {
            name: np.zeros((FIRST_ROWS, *shape), kind) for name, (shape, kind) in zip(self.memo_names, memo, strict=True)
        }

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name][: self.size]

    def append(self, **values: Any) -> None:
        """New tickets, with ids above all others."""
        end = self.size + len(values["id"])
        if end > len(self._columns["id"]):
            self._make_room(end)
            end = self.size + len(values["id"])
        for name, column in self._columns.items():
            column[self.size : end] = values.get(name, 0)
        self.size = end

    def _make_room(self, needed: int) -> None:
        kept = np.flatnonzero(self["status"] != GONE)
        needed += len(kept) - self.size
        rows = len(self._columns["id"])
        while rows < 2 * needed:  # at least half is free afterwards, so that this is rare
            rows *= 2
        for name, column in self._columns.items():
            new = np.zeros((rows, *column.shape[1:]), column.dtype)
            new[: len(kept)] = column[kept]
            self._columns[name] = new
        self.size = len(kept)

    def find(self, ids: np.ndarray, last: int) -> np.ndarray:
        """The rows of tickets that wait, or TicketError; ``last`` is the newest id."""
        rows = np.searchsorted(self["id"], ids)
        if self.size:
            here = np.minimum(rows, self.size - 1)
            if ((self["id"][here] == ids) & (self["status"][here] == WAITING)).all():
                _check_distinct(ids)
                return here
        for number, row in zip(ids.tolist(), rows.tolist(), strict=True):
            if not 1 <= number <= last:
                so_far = f"the ids so far are 1 to {last}" if last else "none was given out yet"
                raise TicketError(f"ticket {number}: no such ticket was given out; {so_far}")
            if number in self._expired:
                raise TicketError(f"ticket {number}: it has expired; feedback that may still come must not be expired")
            if row == self.size or self["id"][row] != number or self["status"][row] != WAITING:
                raise TicketError(f"ticket {number}: its feedback is already in; each ticket is answered once")
        return rows

    def arrive(self, rows: np.ndarray, losses: np.ndarray) -> None:
        self["status"][rows] = ARRIVED
        self["loss"][rows] = losses

    def arrived(self) -> np.ndarray:
        """The rows of what has arrived and is not yet delivered."""
        return np.flatnonzero(self["status"] == ARRIVED)

    def waiting(self) -> np.ndarray:
        return np.flatnonzero(self["status"] == WAITING)

    def waiting_ids(self) -> set[int]:
        return set(self["id"][self.waiting()].tolist())

    def set_arms(self, drawn: list[tuple[int, int, float]]) -> int:
        """Let tickets be of these arms (id, arm, probability), whatever was drawn; returns in how many that is another one."""
        ids, arms, probabilities = (np.array(column) for column in zip(*drawn, strict=True))
        rows = np.searchsorted(self["id"], ids)
        differs = int((self["arm"][rows] != arms).sum())
        self["arm"][rows], self["probability"][rows] = arms, probabilities
        return differs

    def expire(self, rows: np.ndarray) -> None:
        self._expired.update(self["id"][rows].tolist())
        self.drop(rows)

    def drop(self, rows: np.ndarray) -> None:
        self["status"][rows] = GONE

    def to_arrays(self) -> dict[str, np.ndarray]:
        kept = np.flatnonzero(self["status"] != GONE)
        return {name: self[name][kept] for name in self._columns} | {"expired": np.array(sorted(self._expired), np.int64)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._expired = set(arrays["expired"].tolist())
        self.append(**{name: arrays[name] for name in self._columns})


def as_ids(ticket: Any) -> np.ndarray:
    """The ids in one ticket, one id, or many: ``[n]`` int64."""
    ids = np.asarray(ticket.id if isinstance(ticket, Ticket) else ticket)
    if ids.ndim > 1 or (ids.dtype.kind not in "iu" and ids.size):
        raise TicketError(
            f"ticket {show(ticket)}: a ticket is the whole number that act() gave as its id, or a list of such numbers"
        )
    return ids.reshape(-1).astype(np.int64)


def _check_distinct(ids: np.ndarray) -> None:
    if len(ids) > 1 and not (np.diff(ids) > 0).all():
        numbers, counts = np.unique(ids, return_counts=True)
        if (counts > 1).any():
            raise TicketError(f"ticket {numbers[counts > 1][0]}: it is in this batch twice; each ticket is answered once")
