"""The states that a running sweep has on disk, and when they may be removed.

A block of runs resumes from a state at the round where a unit ends. The state is written before its unit, and removed only after
the unit that resumed from it is on disk. A sweep that is killed at any moment can be resumed, at worst with one extra state,
which the next call removes.
"""

from pathlib import Path

from jaxbandit.results.result import Result
from jaxbandit.sweeps.layout import Unit
from jaxbandit.sweeps.writer import StoreWriter


class States:
    """The states of a store that is being written.

    Args:
      store: the store.
      files: its unit files; what is written here is added.
      kept: the cells whose states at the horizon are kept.
    """

    def __init__(self, store: StoreWriter, files: dict[Unit, Path], kept: set[str]):
        self._store, self._files, self._kept = store, files, kept
        self._states = store.states()
        self.segments = {name: store.segments(cell) for name, cell in store.cells.items()}

    def before(self, unit: Unit) -> Unit:
        """The unit that this one resumes from."""
        segment = next(part for part in self.segments[unit.cell] if part.stop == unit.start)
        return Unit(unit.cell, unit.block, segment.start, segment.stop)

    def _after(self, unit: Unit) -> Unit | None:
        segment = next((part for part in self.segments[unit.cell] if part.start == unit.stop), None)
        return None if segment is None else Unit(unit.cell, unit.block, segment.start, segment.stop)

    def lead_on(self, unit: Unit) -> bool:
        """Whether the successor of a finished unit can resume from it, or need not."""
        after = self._after(unit)
        return after is None or after in self._files or unit in self._states or self._store.holds_state(self._files[unit])

    def resume(self, unit: Unit) -> Result:
        """The result that a unit resumes from; unit files of earlier versions contain the state."""
        before = self.before(unit)
        return self._store.read(before, self._states.get(before) or self._files[before]).at_end()

    def write(self, unit: Unit, result: Result) -> None:
        """Add a unit, with its state if a later unit may resume from it, and drop the state that it resumed from."""
        after, old = self._after(unit), self._files.get(unit)
        keep = unit.cell in self._kept if after is None else after not in self._files
        self._files[unit], state = self._store.write(unit, result, keep)
        if state is not None:
            self._states[unit] = state
        if old not in (None, self._files[unit]):  # computed again for its state, in another environment
            self._store.remove(old)
        if unit.start:
            self.drop(self.before(unit))

    def drop(self, unit: Unit) -> None:
        """Remove the state of a unit if no unit will resume from it: the next unit is finished, or there is none."""
        after = self._after(unit)
        useless = unit in self._files and unit.cell not in self._kept if after is None else after in self._files
        if useless and unit in self._states:
            self._store.remove(self._states.pop(unit))
