"""What a simulation returns: arrays on the host, with the means to cut, join, save, label and draw them."""

import dataclasses
import itertools
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jaxbandit._checks.inputs import check_switch, is_whole
from jaxbandit._core.display import share, table
from jaxbandit._core.fields import is_numeric, show
from jaxbandit._io.files import checked_path, read_arrays, whole_file
from jaxbandit._io.optional import need
from jaxbandit._provenance.identity import check_identity
from jaxbandit._provenance.package_code import own_versions
from jaxbandit.results.statistics import Estimate, estimate, failed_share
from jaxbandit.results.stopping import Stopping
from jaxbandit.results.summary import ResultSummary
from jaxbandit.results.trajectory import Trajectories

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = 3
WITH_TRAJECTORY = 4
READABLE = (2, 3, 4)  # format 2 has one residual for all runs


def _kept_as(program: dict[str, Any]) -> tuple[Any, ...]:
    """How outstanding observations are kept: the queue, and its rows where these end at the horizon."""
    queue, later = program.get("queue", program.get("arrivals", "listed")), program.get("later", "")
    return queue, later, program["ring"] if later else 0


def _axes(*names: str) -> dict[str, tuple[str, ...]]:
    """Marks a field of arrays with these axes: ``round`` can only be the first, ``run`` only the last; ``...`` are any others.

    Cutting, joining and checking a Result read these marks. A field without ``round`` covers all rounds up to the last.
    """
    return {"axes": names}


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """The outcome of :func:`jaxbandit.simulate`: NumPy arrays, C recorded rounds, runs on the last axis.

    >>> import jaxbandit as jb
    >>> result = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.25, 0.75]), jb.delays.Fixed(3), rounds=100, runs=4, seed=0)
    >>> float(result.estimate().mean[-1]), result.total_delay
    (25.0, array([294, 294, 294, 294]))
    >>> result.take_runs(1, 3).run_ids
    array([1, 2])
    """

    # [C] int64, the recorded rounds; the last one is the horizon
    rounds: np.ndarray = field(metadata=_axes("round"))
    # [C, runs] pseudo-regret: x_t in place of the sampled arm, best arm in hindsight
    regret: np.ndarray = field(metadata=_axes("round", "run"))
    # [runs] int32, σ_max
    outstanding_max: np.ndarray = field(metadata=_axes("run"))
    # [runs] int64, Σ_s min(d_s, T - s), exact
    total_delay: np.ndarray = field(metadata=_axes("run"))
    # [runs] int32, plays whose feedback never arrives
    lost: np.ndarray = field(metadata=_axes("run"))
    # [runs] the worst |Σx - 1| the projection left, before scaling; 0 for learners without one
    residuals: np.ndarray = field(metadata=_axes("run"))
    # leaves of the final state, from which to resume; only those that ``per_run`` marks have the runs as last axis; empty: not kept
    state: list[np.ndarray] = field(metadata=_axes("...", "run"))
    per_run: list[bool]
    # the id of the first run
    first_run: int
    # marks of learner, losses, delays, key and measure, see jaxbandit._provenance.identity.fingerprint
    identity: dict[str, str]
    # [C, K, runs], if requested
    probabilities: np.ndarray | None = field(default=None, metadata=_axes("round", "arm", "run"))
    # name -> [C, ..., runs], by ``measure``
    measured: dict[str, np.ndarray] = field(default_factory=dict, metadata=_axes("round", "...", "run"))
    program: dict[str, Any] = field(
        default_factory=dict
    )  # how they were played, see jaxbandit._engine.execution.Execution; empty: not kept
    # of ``measure=[jb.measure.Trajectory(...)]``
    trajectory: Trajectories | None = None
    # the interval with which ``until=`` stopped
    stopping: Stopping | None = None

    def __repr__(self) -> str:
        lost = share(int(self.lost.sum(dtype=np.int64)), self.runs * int(self.rounds[-1]))
        return (
            f"Result({self.runs:,} run{'s' if self.runs > 1 else ''} × {self.rounds[-1]:,} rounds: "
            f"regret {self.estimate().last()} at {self.rounds[-1]:,}, lost {lost})"
        )

    def _repr_html_(self) -> str:
        return table("Result", self.summary().rows(), self.estimate().sparkline())

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return self.regret.shape[1]

    @property
    def run_ids(self) -> np.ndarray:
        """``[runs]`` the id of each run."""
        return np.arange(self.first_run, self.first_run + self.runs)

    @property
    def residual(self) -> float:
        """The worst |Σx - 1| of all runs that the projection left, before scaling; 0 for learners without one."""
        return float(self.residuals.max())

    def take_runs(self, start: int, stop: int) -> "Result":
        """The runs from the ``start``-th up to, without, the ``stop``-th, counted from 0: as if they had been played alone."""
        if not is_whole(start, 0) or not is_whole(stop, 1, self.runs) or start >= stop:
            raise ValueError(
                f"take_runs({show(start)}, {show(stop)}): give whole numbers, 0 <= start < stop <= {self.runs}, the number of runs"
            )

        def cut(arrays, axes):
            return np.ascontiguousarray(arrays[0][..., start:stop]) if "run" in axes else arrays[0]

        kept = self.trajectory
        if kept is not None:
            first, last = self.first_run + start, self.first_run + stop - 1
            kept = kept.take_runs([one for one in kept.runs if first <= one <= last])
        return dataclasses.replace(_each_array([self], cut), first_run=self.first_run + start, trajectory=kept, stopping=None)

    def without_state(self) -> "Result":
        """The same without the final state, which is most of a file: it cannot be resumed."""
        return dataclasses.replace(self, state=[], per_run=[])

    def at_end(self) -> "Result":
        """The last recorded round alone, with the state: all that going on needs."""
        return _each_array([self], lambda arrays, axes: arrays[0][-1:] if "round" in axes else arrays[0], trajectory=None)

    @classmethod
    def concat_runs(cls, results: Sequence["Result"]) -> "Result":
        """Results of neighbouring runs of one game, in order, as one; without a state where theirs are kept in different ways."""
        _check_alike(results, "concat_runs")
        for one, after in itertools.pairwise(results):
            if after.first_run != one.first_run + one.runs or not np.array_equal(after.rounds, one.rounds):
                raise ValueError(
                    f"concat_runs: runs {after.first_run} … recorded at {show(after.rounds)} do not go on after "
                    f"{one.first_run} … {one.first_run + one.runs - 1} recorded at {show(one.rounds)}"
                )

        def join(arrays, axes):
            return np.concatenate(arrays, -1) if "run" in axes else arrays[0]

        waiting = {_kept_as(result.program) for result in results}
        if len(waiting) > 1 or not all(result.state for result in results):
            results = [result.without_state() for result in results]
        if len(results) == 1:
            return results[0]
        new = {"first_run": results[0].first_run, "trajectory": _joined_trajectory(results, -1), "stopping": None}
        return _each_array(results, join, **new)

    @classmethod
    def concat_rounds(cls, results: Sequence["Result"]) -> "Result":
        """Results of the same runs, each resumed from the one before it, as one."""
        _check_alike(results, "concat_rounds")
        for one, after in itertools.pairwise(results):
            if (after.first_run, after.runs) != (one.first_run, one.runs) or after.rounds[0] <= one.rounds[-1]:
                raise ValueError(
                    f"concat_rounds: runs {after.first_run} … {after.first_run + after.runs - 1} from round {after.rounds[0]} do not go on "
                    f"after runs {one.first_run} … {one.first_run + one.runs - 1} up to round {one.rounds[-1]}"
                )

        def join(arrays, axes):
            return np.concatenate(arrays) if "round" in axes else arrays[-1]

        last = {"state": results[-1].state, "per_run": results[-1].per_run, "program": results[-1].program}
        if len(results) == 1:
            return results[0]
        trajectory = _joined_trajectory(results, 0)
        return _each_array([dataclasses.replace(one, **last) for one in results], join, trajectory=trajectory)

    def block_state(self, like: Any, start: int, block: int) -> Any:
        """The state of the runs ``start … start + block - 1``, in the structure of ``like``; padding repeats a run."""
        columns = np.minimum(np.arange(start, start + block), self.runs - 1)
        leaves, structure = jax.tree.flatten(like)
        mine = [leaf[..., columns] if has else leaf for leaf, has in zip(self.state, self.per_run, strict=True)]
        if [(leaf.shape, leaf.dtype) for leaf in mine] != [(leaf.shape, leaf.dtype) for leaf in leaves]:
            raise ValueError("resume: the saved state has other shapes than this version of the learner or the delay model makes")
        return jax.tree.unflatten(structure, mine)

    def estimate(self, control_variates: bool = True) -> Estimate:
        """Mean regret and its 95 % interval at each recorded round (Student's t over runs).

        With ``measure=[jb.ControlVariates()]`` recorded, the mean is the intercept of a least squares fit of the regret on
        quantities F whose mean is known to be 0: regret = mean + <c, F> + noise. The error is that of the intercept. With
        few runs fewer F are used (at most one for every ten runs), with fewer than 10 K runs none.
        ``control_variates=False`` gives the plain mean.

        Few or skewed runs make the interval unreliable: see ``note`` and ``reliable`` of the :class:`jaxbandit.Estimate`.
        """
        check_switch("control_variates", control_variates)
        return estimate(self.regret, self.rounds, self.measured.get("control_variates") if control_variates else None)

    def quantile(self, probability: float) -> np.ndarray:
        """The quantile of the regret over the runs, ``[C]``: ``quantile(0.95)`` is the 95th percentile in each recorded round.

        >>> import jaxbandit as jb
        >>> result = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.25, 0.75]), jb.delays.Fixed(3), rounds=100, runs=4, seed=0)
        >>> float(result.quantile(0.95)[-1])
        25.0
        """
        if not (is_numeric(probability) and np.ndim(probability) == 0 and 0 <= probability <= 1):
            raise ValueError(f"Result.quantile(probability={show(probability)}): give a number from 0 to 1, such as 0.95")
        return np.quantile(self.regret.astype(np.float64), probability, axis=1)

    def summary(self) -> ResultSummary:
        """The numbers one looks at first, by name; shown as a small table.

        >>> import jaxbandit as jb
        >>> result = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.25, 0.75]), jb.delays.Fixed(3), rounds=100, runs=4, seed=0)
        >>> result
        Result(4 runs × 100 rounds: regret 25 exactly at 100, lost 0)
        >>> result.summary().mean_delay, result.summary().outstanding_max
        (2.94, 3)
        """
        estimate, last, rounds = self.estimate(), self.regret[-1].astype(np.float64), int(self.rounds[-1])
        return ResultSummary(
            runs=self.runs,
            rounds=rounds,
            regret=float(estimate.mean[-1]),
            low=float(estimate.low[-1]),
            high=float(estimate.high[-1]),
            median=float(np.median(last)),
            quantile_95=float(self.quantile(0.95)[-1]),
            worst=float(last.max()),
            failed=failed_share(last),
            note=estimate.note,
            lost=int(self.lost.sum(dtype=np.int64)),
            mean_delay=float(self.total_delay.mean() / rounds),
            outstanding_max=int(self.outstanding_max.max()),
        )

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one ``.npz`` file, whole or not at all; :meth:`load` reads it back (no pickle)."""
        path = checked_path("Result.save(path=…)", path)
        arrays: dict[str, Any] = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        arrays |= {f"state_{i}": leaf for i, leaf in enumerate(self.state)}
        arrays |= {f"measured_{name}": array for name, array in self.measured.items()}
        if self.trajectory is not None:
            arrays |= {f"trajectory_{name}": array for name, array in vars(self.trajectory).items()}
        about = {
            "format": FORMAT if self.trajectory is None else WITH_TRAJECTORY,
            "first_run": self.first_run,
            "identity": self.identity,
            "per_run": self.per_run,
            "program": self.program,
            **({} if self.stopping is None else {"stopping": dataclasses.asdict(self.stopping)}),
            "versions": {**own_versions(), "jax": jax.__version__, "numpy": np.__version__},
        }
        arrays["about"] = np.array(json.dumps(about))
        with whole_file(path) as file:
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Result":
        """Read a file written by :meth:`save`, of this version or an earlier one."""
        path = checked_path("Result.load(path=…)", path)
        try:
            arrays = read_arrays(path)
            about = json.loads(str(arrays.pop("about")))
            if about["format"] in READABLE:
                return cls._from_arrays(arrays, about)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"Result.load({str(path)!r}): this is not a file written by Result.save") from error
        raise ValueError(
            f"Result.load({str(path)!r}): format {show(about['format'])} is not known here; this version reads up to {READABLE[-1]}"
        )

    @classmethod
    def _from_arrays(cls, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> "Result":
        if about["format"] == 2:
            arrays["residuals"] = np.full(arrays["regret"].shape[1], float(about["residual"]))
        state = [arrays.pop(f"state_{i}") for i in range(len(about["per_run"]))]
        measured = {name: arrays.pop(f"measured_{name}") for name in [n[9:] for n in arrays if n.startswith("measured_")]}
        kept = {name: about[name] for name in ("first_run", "identity", "per_run")}
        own = {name[11:]: arrays.pop(name) for name in [n for n in arrays if n.startswith("trajectory_")]}
        trajectory = Trajectories(**own) if own else None
        kept["stopping"] = Stopping(**about["stopping"]) if "stopping" in about else None
        program = about.get("program", {})
        result = cls(**arrays, **kept, state=state, measured=measured, program=program, trajectory=trajectory)
        result._check()
        return result

    def _check(self) -> None:
        """Whether the arrays fit together, where they come from a file."""
        sizes: dict[str, int] = {}

        def check(arrays, axes):
            (array,) = arrays
            named = [name for name in axes if name != "..."]
            if array.ndim < len(named) or (len(named) == len(axes) > 0 and array.ndim > len(named)):
                raise ValueError(f"an array of shape {array.shape} for the axes {axes}")
            for name, place in (("round", 0), ("run", -1)):
                if name in axes and sizes.setdefault(name, array.shape[place]) != array.shape[place]:
                    raise ValueError(f"{array.shape[place]} {name}s where others have {sizes[name]}")

        _each_array([self], check)
        numbers = self.rounds.dtype.kind == "i" and self.regret.dtype.kind == "f" and self.residuals.dtype.kind == "f"
        if not numbers or 0 in self.regret.shape or self.rounds[0] < 1 or np.any(np.diff(self.rounds) <= 0):
            raise ValueError("no rounds or runs")
        has_run_ids = isinstance(self.first_run, int) and 0 <= self.first_run <= 2**32 - self.runs
        if not has_run_ids or not all(isinstance(mark, str) for mark in self.identity.values()):
            raise ValueError("not a first run or no identity")

    def to_xarray(self) -> Any:
        """A labelled ``xarray.Dataset`` with dimensions ``round``, ``run`` (and ``arm``). Needs the extra ``jaxbandit[data]``."""
        xarray = need("xarray", "data", "to_xarray")
        variables: dict[str, Any] = {"regret": (("round", "run"), self.regret)}
        for name in ("outstanding_max", "total_delay", "lost"):
            variables[name] = ("run", vars(self)[name])
        if self.probabilities is not None:
            variables["probability"] = (("round", "arm", "run"), self.probabilities)
        for name, array in self.measured.items():
            between = [f"{name}_{axis}" for axis in range(1, array.ndim - 1)]
            variables[name] = (("round", *between, "run"), array)
        data = xarray.Dataset(
            variables,
            {"round": self.rounds, "run": self.run_ids},
            {"residual": self.residual, "identity": json.dumps(self.identity)},
        )
        data.regret.attrs["long_name"] = "pseudo-regret"
        return data

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` with a row for each recorded round and run. Needs the extra ``jaxbandit[data]``.

        Columns ``round``, ``run``, ``regret``; ``probability_1 …`` for each arm where they were kept; what was measured, with a
        column for each arm (``…_1``, ``…_2``) where it has arms.

        >>> import jaxbandit as jb
        >>> result = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.25, 0.75]), jb.delays.Fixed(3), rounds=100, runs=2,
        ...                      record=[10, 100], seed=0)
        >>> result.to_pandas().groupby("round").regret.mean().to_dict()
        {10: 2.5, 100: 25.0}
        """
        rounds, runs = np.meshgrid(self.rounds, self.run_ids, indexing="ij")
        columns = {"round": rounds.ravel(), "run": runs.ravel(), "regret": self.regret.ravel()}
        extra = {} if self.probabilities is None else {"probability": self.probabilities}
        for name, array in (extra | self.measured).items():
            for place in np.ndindex(array.shape[1:-1]):
                number = "".join(f"_{index + 1}" for index in place)
                columns[f"{name}{number}"] = array[(slice(None), *place)].ravel()
        return need("pandas", "data", "to_pandas").DataFrame(columns)

    def plot(self, **options: Any) -> "Figure":
        """Regret with its 95 % interval as a ``matplotlib.figure.Figure``; options as in :func:`jaxbandit.plots.regret`."""
        from jaxbandit import plots

        return plots.regret({"regret": self}, **options)


def _each_array(
    results: Sequence[Result], change: Callable[[Sequence[np.ndarray], tuple[str, ...]], Any], **others: Any
) -> Result:
    """``change(arrays, axes)`` in place of every array, ``arrays`` being the same one of each result; the rest is of the last."""
    last, new = results[-1], {}
    for one in dataclasses.fields(Result):
        axes, values = one.metadata.get("axes", ()), [vars(result)[one.name] for result in results]
        if one.name == "state":
            each = zip(last.per_run, *values, strict=True)
            new["state"] = [change(leaves, axes if has else ()) for has, *leaves in each]
        elif axes:
            new[one.name] = jax.tree.map(lambda *arrays, axes=axes: change(arrays, axes), *values)
    return dataclasses.replace(last, **new, **others)


def _joined_trajectory(results: Sequence[Result], axis: int) -> Trajectories | None:
    parts = [one.trajectory for one in results if one.trajectory is not None]
    parts = [one for one in parts if one.runs.size] or parts[:1]
    return Trajectories.concat(parts, axis) if parts else None


def _check_alike(results: Sequence[Result], name: str) -> None:
    """Whether results are of one game and hold the same things."""
    if not isinstance(results, Sequence) or not all(isinstance(one, Result) for one in results):
        wrong = next((one for one in results if not isinstance(one, Result)), None) if isinstance(results, Sequence) else results
        raise TypeError(f"{name}: give a list of Results; {show(wrong)} is not one")
    if not results:
        raise ValueError(f"{name}([]): give at least one Result")
    first = results[0]
    for other in results[1:]:
        check_identity(f"{name}: one of these Results", first.identity, other.identity)
        if first.measured.keys() != other.measured.keys() or (first.probabilities is None) != (other.probabilities is None):
            raise ValueError(f"{name}: one of these Results has probabilities or measurements that another lacks")
