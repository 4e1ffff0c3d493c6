"""The summary of a result, displayed as a short table."""

import dataclasses

from jaxbandit._core.display import interval, number, share, table


@dataclasses.dataclass(frozen=True)
class ResultSummary:
    """The numbers of a :class:`Result` that one looks at first; see :meth:`Result.summary`."""

    runs: int
    rounds: int
    regret: float  # mean at the last round
    low: float  # of its 95 % interval
    high: float
    median: float  # of the runs
    quantile_95: float  # 95th percentile of the runs
    worst: float  # of all runs
    failed: float  # share of the runs that failed: regret above ten times the median (and above 10)
    note: str  # why the interval is unreliable, empty if it is not
    lost: int  # plays of all runs whose feedback never arrives
    mean_delay: float  # of all plays, each counted up to the horizon
    outstanding_max: int  # largest number of outstanding observations

    def __repr__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        return "\n".join(f"{name:{width}}  {value}" for name, value in self.rows())

    def _repr_html_(self) -> str:
        return table("Summary", self.rows())

    def rows(self) -> list[tuple[str, str]]:
        """Names and values as texts."""
        return [
            ("runs × rounds", f"{self.runs:,} × {self.rounds:,}"),
            ("mean regret [95 % interval]", interval(self.regret, self.low, self.high)),
            ("median of the runs", number(self.median)),
            ("95th percentile of the runs", number(self.quantile_95)),
            ("worst run", number(self.worst)),
            ("runs with more than 10 times the median regret", f"{self.failed:.1%}"),
            *([("note", self.note)] if self.note else []),
            ("mean delay of a play, in rounds", number(self.mean_delay)),
            ("most outstanding observations", f"{self.outstanding_max:,}"),
            ("missing feedback, share of all rounds", share(self.lost, self.runs * self.rounds)),
        ]
