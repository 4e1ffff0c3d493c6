"""The result of a search for the worst case."""

import dataclasses
from typing import NamedTuple

import numpy as np

from jaxbandit._core.display import number, plus_minus, sparkline, table
from jaxbandit.losses import Table


class Step(NamedTuple):
    """The best table after one stage of the search."""

    epoch: int  # from 1
    stage: str  # "starts", "evolution", "climb" or "mutation"
    runs: int  # simulated so far
    regret: float  # of the best table so far, over runs that select among tables: slightly too large
    error: float  # its standard error


@dataclasses.dataclass(frozen=True, eq=False)
class WorstCase:
    """The loss table with the largest regret found, and the history of the search. Returned by :func:`jaxbandit.worst_case`.

    ``regret`` is a lower bound of the true worst case, up to its standard error: a longer search may find more. :attr:`gain` is
    the increase in the second half of the search. A gain that is not small against the regret calls for a larger budget.
    """

    table: Table  # [T, K], a loss model
    regret: float  # mean over runs with fresh keys
    error: float  # its standard error
    runs: int  # of that mean
    history: tuple[Step, ...]

    @property
    def epochs(self) -> int:
        """The number of epochs of the search."""
        return self.history[-1].epoch

    @property
    def by_epoch(self) -> np.ndarray:
        """``[epochs]`` the regret of the best table after each epoch: the worst case against the budget."""
        last = {step.epoch: step.regret for step in self.history}
        return np.array([last[epoch] for epoch in sorted(last)])

    @property
    def gain(self) -> float:
        """The regret that the second half of the epochs added; NaN for a single epoch."""
        found = self.by_epoch
        return float("nan") if len(found) < 2 else float(found[-1] - found[len(found) // 2 - 1])

    def __repr__(self) -> str:
        rounds, epochs = np.shape(self.table.losses)[0], self.epochs
        added = "" if epochs < 2 else f", the second half of which added {number(self.gain)}"
        return f"WorstCase(regret {plus_minus(self.regret, self.error)} at {rounds:,}; {epochs} epoch{'s' if epochs > 1 else ''}{added})"

    def _repr_html_(self) -> str:
        rows = [
            ("regret", plus_minus(self.regret, self.error)),
            ("rounds, arms", " × ".join(f"{size:,}" for size in np.shape(self.table.losses))),
            ("epochs", f"{self.epochs} ({self.history[-1].runs:,} runs)"),
            *([("second half added", number(self.gain))] if self.epochs > 1 else []),
        ]
        return table("WorstCase", rows, sparkline([step.runs for step in self.history], [step.regret for step in self.history]))
