"""The tickets of an agent: decisions with outstanding feedback, and the data stored with them.

Columns in ascending order of id, so that a ticket is found by bisection, and the actions of a run are in order of their rounds.
"""

from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from jaxbandit._core.fields import show
from jaxbandit.agent.later import Later

WAITING, ARRIVED, GONE = range(3)  # arrived feedback is kept until it is delivered, at the run's next decision
FIRST_LATER = 8  # calls with unread propensities before the answered ones are looked for
FIRST_ROWS = 64  # rows of a new book; it is made larger when it is full


class TicketError(ValueError):
    """A ticket that cannot be answered: unknown, answered before, or expired."""


class _Fields(NamedTuple):
    id: Any  # from 1, in order of the decisions
    arm: Any  # its number, from 0, or its name
    probability: Any  # of the arm given the history; 1 if it was forced; NaN if the learner does not know it
    round: Any  # from 1, of this run
    run: Any = 0  # the number of the learner in the fleet
    time: Any = 0.0  # of the decision, in seconds since 1970
    key: Any = None  # the caller's name for the decision


class Ticket(_Fields):
    """One decision. In a fleet every field is an array, one entry for each run that decided.

    Propensities that cost more than the decisions are computed when ``probability`` is read, unless the agent is durable.
    """

    __slots__ = ()

    @property
    def probability(self) -> Any:  # type: ignore[override]
        """The probability of the arm given the history; 1 if it was forced; NaN if the learner does not know it."""
        value = self[2]
        return value.read() if isinstance(value, Later) else value

    def _asdict(self) -> dict[str, Any]:  # type: ignore[override]
        return super()._asdict() | {"probability": self.probability}


class Book:
    """Columns of the tickets that are still needed."""

    def __init__(self, memo: list[tuple[tuple[int, ...], Any]], dtype: DTypeLike):
        """``memo``: shape and dtype of each array stored with an action; ``dtype``: of losses and probabilities."""
        self._expired: set[int] = set()
        self.keys: dict[int, str] = {}  # of the outstanding tickets
        self._later: deque[tuple[np.ndarray, Later]] = deque()  # ids, and propensities that are not in their column yet
        self._most_later = FIRST_LATER
        counts = {"id": np.int64, "run": np.int32, "round": np.int32, "arm": np.int32, "status": np.int8, "place": np.int32}
        columns: dict[str, np.ndarray] = {name: np.zeros(FIRST_ROWS, kind) for name, kind in counts.items()}
        columns |= {name: np.zeros(FIRST_ROWS, dtype) for name in ("probability", "propensity", "loss")}
        columns["time"] = np.zeros(FIRST_ROWS, np.float64)
        self.memo_names = [f"memo_{i}" for i in range(len(memo))]
        columns |= {name: np.zeros((FIRST_ROWS, *shape), kind) for name, (shape, kind) in zip(self.memo_names, memo, strict=True)}
        # One attribute, so that an interrupt cannot separate the columns from the number of rows in use.
        self._table = columns, 0

    @property
    def size(self) -> int:
        return self._table[1]

    def __getitem__(self, name: str) -> np.ndarray:
        columns, size = self._table
        return columns[name][:size]

    def reserve(self, count: int) -> None:
        """Make room for ``count`` more tickets. Row numbers change."""
        columns, size = self._table
        if size + count <= len(columns["id"]):
            return
        kept = np.flatnonzero(self["status"] != GONE)
        rows = len(columns["id"])
        while rows < 2 * (len(kept) + count):  # at least half of the rows are free afterwards, so this is rare
            rows *= 2
        new = {name: np.zeros((rows, *column.shape[1:]), column.dtype) for name, column in columns.items()}
        for name, column in columns.items():
            new[name][: len(kept)] = column[kept]
        self._table = new, len(kept)

    def write(self, start: int, values: dict[str, Any]) -> None:
        """Set the rows from ``start`` on, which is at most ``size``. Ids ascend. :meth:`reserve` has made the room."""
        columns, _ = self._table
        end = start + len(values["id"])
        later = values.get("propensity")
        if isinstance(later, Later):
            values = values | {"propensity": np.nan}
            if not self._later or self._later[-1][1] is not later:
                self._later.append((values["id"], later))
        for name, column in columns.items():
            column[start:end] = values.get(name, 0)
        self._table = columns, end
        # Once a call's tickets are answered, only its caller can read its propensities. The list is gone through when it has doubled:
        # a ticket that is never answered must not keep the later ones.
        if len(self._later) > self._most_later:
            self._later = deque(one for one in self._later if self._waits(one[0]))
            self._most_later = 2 * len(self._later) + FIRST_LATER

    def _waits(self, ids: np.ndarray) -> bool:
        """Whether any of these tickets, with consecutive ids, is outstanding."""
        if not len(ids):
            return False
        first, stop = self["id"].searchsorted(ids[0]), ids[-1] - ids[0] + 1
        rows = slice(first, first + stop)  # at most so many; some may be gone
        return bool(((self["status"][rows] == WAITING) & (self["id"][rows] <= ids[-1])).any())

    def read_propensities(self) -> None:
        """Compute the propensities of all outstanding tickets."""
        while self._later:
            ids, later = self._later[0]
            if self._waits(ids):
                rows = np.minimum(np.searchsorted(self["id"], ids), self.size - 1)
                here = self["id"][rows] == ids
                self["propensity"][rows[here]] = np.atleast_1d(later.read())[here]
            self._later.popleft()

    def find(self, ids: np.ndarray, last: int) -> np.ndarray:
        """The rows of outstanding tickets; raises TicketError. ``last`` is the newest id."""
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
        """The rows with feedback that has arrived and is not yet delivered."""
        return np.flatnonzero(self["status"] == ARRIVED)

    def waiting(self) -> np.ndarray:
        return np.flatnonzero(self["status"] == WAITING)

    def waiting_ids(self) -> set[int]:
        return set(self["id"][self.waiting()].tolist())

    def overwrite(self, ids: Any, columns: dict[str, Any]) -> int:
        """Overwrite these columns of these tickets, the arm among them; returns how many arms changed."""
        rows = np.searchsorted(self["id"], ids)
        differs = int((self["arm"][rows] != columns["arm"]).sum())
        for name, values in columns.items():
            self[name][rows] = values
        return differs

    def expire(self, rows: np.ndarray) -> None:
        self._expired.update(self["id"][rows].tolist())
        self.drop(rows)

    def drop(self, rows: np.ndarray) -> None:
        self["status"][rows] = GONE
        if self.keys:
            for id in self["id"][rows].tolist():
                self.keys.pop(id, None)

    def to_arrays(self) -> dict[str, np.ndarray]:
        self.read_propensities()
        kept = np.flatnonzero(self["status"] != GONE)
        keys = {"key_id": np.array([*self.keys], np.int64), "key": np.array([*self.keys.values()], str)}
        expired = np.array(sorted(self._expired), np.int64)
        return {name: self[name][kept] for name in self._table[0]} | keys | {"expired": expired}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._expired = set(arrays["expired"].tolist())
        self.reserve(len(arrays["id"]))
        # Files of earlier versions have no propensities, times and keys.
        former = {"propensity": np.full(len(arrays["id"]), np.nan), "time": np.zeros(len(arrays["id"]))}
        self.write(0, former | {name: arrays[name] for name in self._table[0] if name in arrays or name not in former})
        self.keys = dict(zip(arrays["key_id"].tolist(), arrays["key"].tolist(), strict=True)) if "key" in arrays else {}


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
