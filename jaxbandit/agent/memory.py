"""The part of the log that an agent without a file needs: keys of callers, and tickets closed with their window."""

from typing import Any

import numpy as np

from jaxbandit.agent.tickets import Ticket

FIELDS = {
    "id": np.int64,
    "arm": np.int64,
    "probability": np.float64,
    "round": np.int64,
    "run": np.int64,
    "time": np.float64,
    "key": str,
}


class Memory:
    """Grows with the number of keys and of closed tickets; a durable agent reads its file instead."""

    def __init__(self) -> None:
        self.given: dict[str, Ticket] = {}  # by key; arms as numbers
        self.closed: set[int] = set()
        self.late: dict[int, float] = {}

    def to_arrays(self) -> dict[str, np.ndarray]:
        columns = zip(*self.given.values(), strict=True) if self.given else [()] * len(FIELDS)
        arrays = {f"given_{name}": np.array(column, kind) for (name, kind), column in zip(FIELDS.items(), columns, strict=True)}
        late = {"late_id": np.array([*self.late], np.int64), "late_loss": np.array([*self.late.values()], np.float64)}
        return arrays | late | {"closed": np.array(sorted(self.closed), np.int64)}

    def restore(self, arrays: dict[str, Any]) -> None:
        if "closed" in arrays:  # earlier versions have none of these
            rows = zip(*(arrays[f"given_{name}"].tolist() for name in FIELDS), strict=True)
            self.given = {row[-1]: Ticket(*row) for row in rows}
            self.closed = set(arrays["closed"].tolist())
            self.late = dict(zip(arrays["late_id"].tolist(), arrays["late_loss"].tolist(), strict=True))
