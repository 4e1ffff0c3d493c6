"""Comparison of the learners of a sweep in each environment: results, paired tests, and proved bounds."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbandit import theory
from jaxbandit.delays import NEVER
from jaxbandit.learners import BestOfBothWorlds, DelayedExp3, TsallisINF, ZimmertSeldin
from jaxbandit.results.comparison import Difference, Sample, paired_differences
from jaxbandit.results.result import Result
from jaxbandit.sweeps.oracle import Oracle
from jaxbandit.sweeps.plan import Cell, Plan
from jaxbandit.sweeps.spec import AXES, SpecError
from jaxbandit.sweeps.store import Store
from jaxbandit.sweeps.undecided import limits_of


@dataclasses.dataclass(frozen=True)
class Curve:
    """A bound at the recorded rounds."""

    rounds: np.ndarray  # [C]
    values: np.ndarray  # [C]
    source: str


@dataclasses.dataclass(frozen=True)
class Environment:
    """All learners against one loss model and one delay model."""

    name: str  # such as losses0_delays1: for files
    title: str
    results: dict[str, Result]  # label -> result
    bounds: dict[str, Curve]  # label -> upper bound with proved constants, where there is one
    limits: tuple[float, float] | None = None  # of the regret of a run, where runs were added with until

    def means(self) -> dict[str, float]:
        """Label -> mean regret at the horizon."""
        return {label: float(result.regret[-1].mean()) for label, result in self.results.items()}


def environments(store: Store) -> list[Environment]:
    """Every pair of losses and delays of a sweep with at least one computed block of runs."""
    files = store.to_read()
    cells = _rebuilt(store)
    limits = limits_of(store) if "until" in store.manifest else [None] * store.shape[1]
    found = []
    for j, k in np.ndindex(store.shape[1:]):
        results, bounds = {}, {}
        for i, label in enumerate(store.labels("learners")):
            result = store.result((i, j, k), files)
            if result is None:
                continue
            results[label] = result
            bound = proved_bound(cells[i, j, k], result.rounds) if (i, j, k) in cells else None
            if bound is not None:
                bounds[label] = bound
        if results:
            title = f"{store.labels('losses')[j]}; {store.labels('delays')[k]}"
            found.append(Environment(f"losses{j}_delays{k}", title, results, bounds, limits[j]))
    return found


def _rebuilt(store: Store) -> dict[tuple[int, ...], Cell]:
    """The cells as objects, where the manifest suffices (it holds only the name of a user-defined learner)."""
    axes = store.manifest["axes"]
    document = {axis: [{**_given(s["about"]), "label": s["label"]} for s in axes[axis]] for axis in AXES}
    try:
        plan = Plan.make({**document, "rounds": store.rounds, "runs": store.runs, "seed": store.manifest["seed"]})
    except (SpecError, TypeError, ValueError):
        return {}
    return {cell.at: cell for cell in plan.cells}


def _given(about: Any) -> Any:
    """The fields that were given: those that are None stand for a default."""
    if isinstance(about, dict):
        return {name: _given(value) for name, value in about.items() if value is not None}
    return [_given(item) for item in about] if isinstance(about, list) else about


def proved_bound(cell: Cell, rounds: np.ndarray) -> Curve | None:
    """An upper bound with proved constants at ``rounds [C]``, for one known sequence of delays; None where there is none."""
    learner, arms, horizon = cell.learner, cell.losses.num_arms, int(rounds[-1])
    delays = Oracle(cell.losses, cell.delays, horizon).sequence()
    if delays is None or np.any(delays == NEVER) or arms < 2:
        return None
    if isinstance(learner, BestOfBothWorlds) and learner.tsallis_scale == 1 and learner.entropy_scale == 1:
        given = (float(np.asarray(value)) for value in (learner.max_delay, learner.linear, learner.factor))
        bound = theory.bounds.adversarial(theory.bounds.mzs22_rates(delays, arms, *given), delays, arms)
        return Curve(rounds, bound.total[rounds - 1], bound.source)
    if isinstance(learner, ZimmertSeldin) and not learner.skipping:
        bound = theory.bounds.adversarial(theory.bounds.zs20_rates(delays, arms), delays, arms)
        return Curve(rounds, bound.total[rounds - 1], bound.source)
    if isinstance(learner, DelayedExp3) and learner.scale == 1:
        each = [theory.bounds.delayed_exp3(delays[:t], arms) for t in rounds]
        return Curve(rounds, np.array([float(bound.total) for bound in each]), each[0].source)
    if isinstance(learner, TsallisINF) and not delays.any() and learner.estimator == "iw":
        bound = theory.bounds.tsallis_inf_adversarial(arms, rounds, "iw")
        return Curve(rounds, bound.total, bound.source)
    return None


def differences(environments: Sequence[Environment]) -> dict[tuple[str, str, str], Difference]:
    """Every pair of learners in every environment; ``(environment, one, other) -> Difference``, both ways round."""
    samples = {one.name: {label: Sample.of(result) for label, result in one.results.items()} for one in environments}
    limits = {one.name: one.limits for one in environments if one.limits is not None}
    both = {}
    for pair in paired_differences(samples, limits or None):
        both[pair.environment, pair.one, pair.other] = pair
        both[pair.environment, pair.other, pair.one] = pair.reversed()
    return both
