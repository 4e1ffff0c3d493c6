"""Learners side by side in the same runs: paired differences with intervals and corrected tests, as an object and as tables."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jaxbandit._core.display import interval, number
from jaxbandit._core.fields import show, suggest
from jaxbandit._io.optional import need
from jaxbandit.results import sequential
from jaxbandit.results.statistics import COCHRAN, FEW_RUNS, failed_share, holm, paired_test, skewness, student_quantile
from jaxbandit.results.stopping import LEVEL
from jaxbandit.results.tables import html_table, latex_table, markdown_table, text_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxbandit.results.result import Result

What = Literal["learners", "pairs"]


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """The regret of some runs of one learner at the horizon."""

    run_ids: np.ndarray  # [runs] ascending
    regret: np.ndarray  # [runs] float64

    @classmethod
    def of(cls, result: "Result") -> "Sample":
        """The runs of a Result."""
        return cls(result.run_ids, result.regret[-1].astype(np.float64))


@dataclasses.dataclass(frozen=True)
class Difference:
    """Regret of ``one`` minus that of ``other`` at the horizon, run by run."""

    environment: str
    one: str
    other: str
    runs: int  # runs that both have
    mean: float
    low: float  # of the interval
    high: float
    p: float  # two-sided, of "the mean is 0"
    adjusted: float  # p-value corrected by Holm for all pairs
    reliable: bool  # whether the runs are enough for the interval and the test; see :class:`jaxbandit.Estimate`

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is at most 5%."""
        return self.adjusted <= LEVEL

    def reversed(self) -> "Difference":
        """``other`` minus ``one``."""
        return dataclasses.replace(self, one=self.other, other=self.one, mean=-self.mean, low=-self.high, high=-self.low)


@dataclasses.dataclass(frozen=True)
class Standing:
    """The regret of one learner in one environment at the horizon."""

    environment: str
    learner: str
    runs: int
    mean: float
    low: float  # of the 95% interval
    high: float
    median: float
    failed: float  # share of runs with more than ten times the median regret (and more than 10)


Environments = Mapping[str, Mapping[str, Sample]]


def paired(one: Sample, other: Sample) -> np.ndarray:
    """Differences of the runs that both have, in the order of their ids."""
    _, mine, its = np.intersect1d(one.run_ids, other.run_ids, assume_unique=True, return_indices=True)
    return one.regret[mine] - other.regret[its]


def paired_differences(environments: Environments, limits: Mapping[str, tuple[float, float]] | None = None) -> list[Difference]:
    """Every pair of learners in every environment; p-values are corrected by Holm for all of them.

    Args:
      environments: environment -> learner -> sample.
      limits: of the regret in each environment. Given, intervals and tests are those of confidence sequences: they hold at any number
        of runs, and the intervals for all pairs at once. By default Student's, each by itself.
    """
    pairs = [(name, one, other) for name, samples in environments.items() for one, other in itertools.combinations(samples, 2)]
    found = []
    for name, one, other in pairs:
        values = paired(environments[name][one], environments[name][other])
        if limits is None:
            mean, half, p = paired_test(values)
            reliable = half == 0 or len(values) >= max(FEW_RUNS, COCHRAN * skewness(values) ** 2)
            ends = float(mean - half), float(mean + half)
            found.append(Difference(name, one, other, len(values), float(mean), *ends, float(p), 1.0, bool(reliable)))
        else:
            width = limits[name][1] - limits[name][0]
            level = LEVEL / len(pairs)
            ends = sequential.confidence_interval(values, (-width, width), level)
            p = sequential.p_value(values, (-width, width))
            found.append(Difference(name, one, other, len(values), float(values.mean()), *ends, p, 1.0, True))
    adjusted = holm([one.p for one in found])
    return [dataclasses.replace(one, adjusted=float(p)) for one, p in zip(found, adjusted, strict=True)]


def standings(environments: Environments, limits: Mapping[str, tuple[float, float]] | None = None) -> list[Standing]:
    """Every learner in every environment, those with the lowest mean regret first."""
    found = []
    for name, samples in environments.items():
        mine = []
        for label, sample in samples.items():
            values, runs = sample.regret, len(sample.regret)
            mean = float(values.mean())
            half = student_quantile(runs - 1) * float(values.std(ddof=1)) / np.sqrt(runs) if runs > 1 else np.nan
            ends = (mean - half, mean + half) if limits is None else sequential.confidence_interval(values, limits[name], LEVEL)
            low, high = map(float, ends)
            mine.append(Standing(name, label, runs, mean, low, high, float(np.median(values)), failed_share(values)))
        found += sorted(mine, key=lambda one: one.mean)
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """Learners in the same environments and runs, as :func:`jaxbandit.compare` returns it.

    Attributes:
      rounds: the horizon, at which regrets are compared.
      learners: a :class:`Standing` for each learner in each environment, with the lowest mean regret first.
      pairs: a :class:`Difference` for each pair of learners in each environment.
      samples: environment -> learner -> run ids and regrets.
      results: environment -> learner -> :class:`jaxbandit.Result`; empty where a dataset was compared.
      until: what ``until=`` asked for; None for a fixed number of runs.
      reached: whether it was reached; None for a fixed number of runs, or where a sweep took the runs.
    """

    rounds: int
    learners: list[Standing]
    pairs: list[Difference]
    samples: Environments
    results: "dict[str, dict[str, Result]]"
    until: str | None = None
    reached: bool | None = None

    @classmethod
    def of(
        cls,
        environments: Environments,
        rounds: int,
        results: "dict[str, dict[str, Result]] | None" = None,
        limits: Mapping[str, tuple[float, float]] | None = None,
        **about: Any,
    ) -> "Comparison":
        """The comparison of samples; see :func:`paired_differences`."""
        pairs = paired_differences(environments, limits)
        return cls(rounds, standings(environments, limits), pairs, environments, results or {}, **about)

    def difference(self, one: str, other: str, environment: str | None = None) -> Difference:
        """Regret of ``one`` minus that of ``other``; the environment may be left out where there is one."""
        names = list(self.samples)
        environment = names[0] if environment is None and len(names) == 1 else environment
        if environment not in names:
            raise KeyError(f"difference(environment={show(environment)}): {suggest(str(environment), names)}")
        for pair in self.pairs:
            if pair.environment == environment and {pair.one, pair.other} == {one, other}:
                return pair if pair.one == one else pair.reversed()
        raise KeyError(f"difference({one!r}, {other!r}): {suggest(one, self.samples[environment])}")

    def best(self, environment: str) -> str:
        """The learner with the lowest mean regret."""
        return next(one.learner for one in self.learners if one.environment == environment)

    def __repr__(self) -> str:
        return text_table(*self._cells("learners")) + f"\n{self._note()}"

    def _repr_html_(self) -> str:
        return html_table(*self._cells("learners"), self._note())

    def to_markdown(self, what: What = "learners") -> str:
        """A Markdown table of the ``"learners"``, each with its difference from the one with the lowest mean, or of all ``"pairs"``."""
        return markdown_table(*self._cells(what)) + f"\n\n{self._note()}\n"

    def to_latex(self, what: What = "learners") -> str:
        """A LaTeX table (package ``booktabs``) of the ``"learners"`` or of all ``"pairs"``."""
        return latex_table(*self._cells(what), self._note())

    def to_pandas(self, what: What = "pairs") -> Any:
        """A ``pandas.DataFrame`` of all ``"pairs"`` or of the ``"learners"``. Needs the extra ``jaxbandit[data]``."""
        rows = self._rows(what)
        return need("pandas", "data", "to_pandas").DataFrame([dataclasses.asdict(row) for row in rows])

    def plot(self, **options: Any) -> "Figure":
        """Paired differences with their intervals as a figure; options as in :func:`jaxbandit.plots.differences`."""
        from jaxbandit import plots

        return plots.differences(self, **options)

    def _rows(self, what: Any) -> Sequence[Any]:
        if what not in ("learners", "pairs"):
            raise ValueError(f"{show(what)}: a table is one of 'learners' or of 'pairs'")
        return self.learners if what == "learners" else self.pairs

    def _cells(self, what: What) -> tuple[list[str], list[list[str]]]:
        """Head and rows of a table, as texts."""
        several = len(self.samples) > 1
        head = ["environment"] * several
        rows = self._rows(what)
        if what == "pairs":
            head += ["pair", "runs", "difference [95% interval]", "p (Holm)", ""]
            table = [[f"{p.one} − {p.other}", f"{p.runs:,}", *_told(p), _verdict(p)] for p in rows]
        else:
            head += ["learner", "runs", "mean regret [95% interval]", "median", "failed runs", "difference to lowest", "p (Holm)"]
            table = [self._learner(one) for one in rows]
        return head, [[row.environment] * several + cells for row, cells in zip(rows, table, strict=True)]

    def _learner(self, one: Standing) -> list[str]:
        best = self.best(one.environment)
        told = ["lowest", ""] if one.learner == best else _told(self.difference(one.learner, best, one.environment))
        mean = interval(one.mean, one.low, one.high)
        return [one.learner, f"{one.runs:,}", mean, number(one.median), f"{one.failed:.1%}", *told]

    def _note(self) -> str:
        words = (
            f"Pseudo-regret at round {self.rounds:,}, differences paired by run. Failed: more than 10 times the median (and 10)."
        )
        if self.until is not None:
            ended = {None: "", True: " reached;", False: " not reached with these runs;"}[self.reached]
            words += f" until={self.until}:{ended} confidence sequences, differences simultaneous over all pairs."
        elif not all(pair.reliable for pair in self.pairs):
            words += " †: too few runs for their skewness; add runs or use until=."
        return words


def _told(pair: Difference) -> list[str]:
    p = "< 0.001" if pair.adjusted < 0.001 else f"{pair.adjusted:.3f}"
    return [interval(pair.mean, pair.low, pair.high) + ("" if pair.reliable else " †"), p]


def _verdict(pair: Difference) -> str:
    if not pair.significant:
        return "not significantly different"
    return f"{pair.one if pair.mean < 0 else pair.other} lower"


def until_met(met: Callable[[float, float, float], bool] | None, environments: Environments, pair: Difference) -> bool:
    """Whether a pair needs no more runs: its test is decided, or its interval is short enough.

    A relative width refers to the smaller mean regret of the two.
    """
    if met is None:
        return pair.significant
    smaller = min(float(environments[pair.environment][label].regret.mean()) for label in (pair.one, pair.other))
    return met(smaller, pair.low, pair.high)
