"""Which cells of a sweep with ``until`` need more runs, by a look at the regrets that are there."""

import numpy as np

from jaxbandit.results.comparison import Sample, paired_differences
from jaxbandit.results.sequential import looks
from jaxbandit.results.stopping import Until, stopping
from jaxbandit.sweeps.store import Store


class Undecided:
    """Looks at the cells of a store, each time when the runs of its manifest are computed.

    A look is a function of the manifest and the unit files, so that a sweep that was interrupted takes the same decisions.
    Cells with units that failed get no more runs and are not compared.
    """

    def __init__(self, store: Store, until: Until, most: int):
        self.store, self.until, self.most = store, until, most
        self.incomplete: set[str] = set()
        self._samples: dict[str, Sample] = {}

    def look(self) -> tuple[int, dict[str, int]]:
        """How many cells are undecided, and the numbers of runs up to the next look of those that may have more."""
        self._read()
        undecided = self._undecided_pairs() if self.until.kind == "decided" else self._wide()
        more = {}
        for name in undecided:
            cell = self.store.cells[name]
            wanted = next(looks(self.most, cell["block"], self.store.runs_of(cell)), None)
            if wanted is not None:
                more[name] = wanted
        return len(undecided), more

    def _read(self) -> None:
        """Read the regrets of cells that have new runs."""
        files = self.store.files()
        for name, cell in self.store.cells.items():
            runs = self.store.runs_of(cell)
            if name in self.incomplete or (name in self._samples and len(self._samples[name].run_ids) == runs):
                continue
            result = self.store.result(cell["at"], files)
            if result is None or result.runs < runs:
                self.incomplete.add(name)
                self._samples.pop(name, None)
            else:
                self._samples[name] = Sample.of(result)

    def _wide(self) -> list[str]:
        limits = limits_of(self.store)
        cells = {name: self.store.cells[name]["at"][1] for name in self._samples}
        return [name for name, at in cells.items() if not stopping(self.until, self._samples[name].regret, limits[at]).reached]

    def _undecided_pairs(self) -> list[str]:
        """The cells of pairs of learners that are not significantly different, corrected for all pairs of the sweep."""
        places: dict[tuple[str, str], str] = {}  # environment, learner -> cell
        samples: dict[str, dict[str, Sample]] = {}
        limits: dict[str, tuple[float, float]] = {}
        for cell in self.store.manifest["cells"]:
            if cell["id"] in self._samples:
                learner, environment = str(cell["at"][0]), "{} {}".format(*cell["at"][1:])
                places[environment, learner] = cell["id"]
                samples.setdefault(environment, {})[learner] = self._samples[cell["id"]]
                limits[environment] = limits_of(self.store)[cell["at"][1]]
        found: dict[str, None] = {}
        for pair in paired_differences(samples, limits):
            one, other = places[pair.environment, pair.one], places[pair.environment, pair.other]
            if not pair.significant and one != other:  # two names of one learner always have the same regret
                found |= dict.fromkeys((one, other))
        return list(found)


def limits_of(store: Store) -> list[tuple[float, float]]:
    """The least and the largest regret of a run, for each of the losses of a sweep with ``until``."""
    assert "until" in store.manifest
    return [(float(low), float(high)) for low, high in np.asarray(store.manifest["until"]["limits"], np.float64)]
