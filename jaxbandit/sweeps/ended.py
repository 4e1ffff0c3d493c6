"""The summary of a call of :func:`jaxbandit.sweep`."""

import dataclasses
from pathlib import Path

from jaxbandit._core.display import table


@dataclasses.dataclass(frozen=True)
class Summary:
    """The outcome of a sweep."""

    out: Path
    units: int  # of the whole sweep, or of the part
    done: int  # of these, that are in the store now
    computed: int  # by this call
    damaged: int  # files that were found damaged, and recomputed
    failed: dict[str, str]  # unit -> reason
    seconds: float
    undecided: int = 0  # cells whose regrets are less precise than ``until`` requires

    def __repr__(self) -> str:
        return f"Summary({', '.join(f'{name} {value}' for name, value in self._rows())})"

    def _repr_html_(self) -> str:
        return table("Sweep", self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("in", str(self.out)), ("units done", f"{self.done:,} of {self.units:,}"), ("computed now", f"{self.computed:,}")]
        rows += [("damaged and recomputed", f"{self.damaged:,}")] if self.damaged else []
        rows += [("failed", f"{len(self.failed):,}")] if self.failed else []
        rows += [("undecided cells", f"{self.undecided:,}")] if self.undecided else []
        return [*rows, ("seconds", f"{self.seconds:.1f}")]
