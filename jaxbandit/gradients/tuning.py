"""Tune a learner's hyperparameters on one or several tasks by following the gradient of its expected regret."""

import dataclasses
import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import jax
import numpy as np
import optax

from jaxbandit.display import plus_minus, sparkline, table
from jaxbandit.gradients.estimators import Estimator, check_options, regret_gradient
from jaxbandit.gradients.gradient import named_leaves
from jaxbandit.gradients.numbers import check_names
from jaxbandit.measure import ControlVariates
from jaxbandit.progress import Progress
from jaxbandit.pytrees import canonical, facts, show
from jaxbandit.simulation import simulate
from jaxbandit.validation import check_game, check_outside_transformations, check_rounds, check_runs, given_key

Goal = Literal["mean", "worst"]


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """Final regret on runs that the tuning never saw."""

    value: float  # mean over tasks, or that of the worst
    error: float  # its standard error
    tasks: np.ndarray  # [tasks] regret of each, losses by delays
    errors: np.ndarray  # [tasks]

    def __repr__(self) -> str:
        return f"Outcome({plus_minus(self.value, self.error)} over {len(self.tasks)} task{'s' if len(self.tasks) > 1 else ''})"


@dataclasses.dataclass(frozen=True, eq=False)
class Audit:
    """The gradient in the logarithms at the end, twice: as the tuning used it, and by paired differences."""

    used: dict[str, tuple[float, float]]  # name -> gradient, standard error
    paired: dict[str, tuple[float, float]]
    agrees: bool  # all within 4 standard errors and 10 %


@dataclasses.dataclass(frozen=True, eq=False)
class Tuned:
    """What :func:`tune` returns."""

    learner: Any
    path: dict[str, np.ndarray]  # name -> [steps + 1] values on the way; "regret" and "error" [steps]
    before: Outcome
    after: Outcome
    audit: Audit | None

    def __repr__(self) -> str:
        before, after = (plus_minus(one.value, one.error) for one in (self.before, self.after))
        return f"Tuned(regret {before} → {after}; {', '.join(f'{name} {text}' for name, text in self._moves())})"

    def _repr_html_(self) -> str:
        before, after = (plus_minus(one.value, one.error) for one in (self.before, self.after))
        steps = self.path["regret"]
        return table("Tuned", [("regret", f"{before} → {after}"), *self._moves()], sparkline(np.arange(len(steps)), steps))

    def _moves(self) -> list[tuple[str, str]]:
        return [(name, f"{self.path[name][0]:.3g} → {value:.3g}") for name, value in self.values().items()]

    def __str__(self) -> str:
        values = ", ".join(f"{name} {self.path[name][0]:.3g} -> {value:.3g}" for name, value in self.values().items())
        before, after = self.before, self.after
        lines = [f"regret {before.value:.4g} ± {before.error:.2g} -> {after.value:.4g} ± {after.error:.2g}; {values}"]
        if self.audit is not None:
            lines.append(f"audit by paired differences: {'agrees' if self.audit.agrees else 'DISAGREES'}")
        return "\n".join(lines)

    def values(self) -> dict[str, float]:
        """The tuned hyperparameters by name."""
        known = named_leaves(self.learner)
        return {name: float(known[name]) for name in self.path if name not in ("regret", "error")}


def tune(
    learner: Any,
    losses: Any,
    delays: Any,
    *,
    rounds: int,
    key: jax.Array | None = None,
    seed: int | None = None,
    steps: int = 40,
    runs: int = 512,
    optimizer: optax.GradientTransformation | None = None,
    only: Sequence[str] | None = None,
    goal: Goal = "mean",
    estimator: Estimator | None = None,
    fresh_runs: int = 2048,
    audit: bool = True,
    progress: bool = False,
) -> Tuned:
    """Lower the expected regret after ``rounds`` rounds, step by step, each on runs of its own.

    Works in the logarithms of the hyperparameters, so they stay positive; those that are 0 stay 0. The result is the mean
    of the last quarter of the path. Regret before and after is measured on fresh runs.

    Args:
      learner: where to start from.
      losses, delays: a law each, or lists of laws: the tasks are all pairs.
      rounds: the horizon T.
      key, seed: as in :func:`jaxbandit.simulate`; steps, regrets and the audit use different runs of it.
      steps: how many.
      runs: for each step and task.
      optimizer: from optax, on a dict of logarithms by name; ``optax.adam`` with a cosine schedule from 0.5 down if None.
      only: the hyperparameters to tune, by name; None: all scalars but what the learner is told (max_delay, horizon, …).
      goal: ``"mean"`` over the tasks, or ``"worst"``.
      estimator: of :func:`jaxbandit.regret_gradient`.
      fresh_runs: for the regret before and after, and for the audit.
      audit: compare the last gradient with paired differences, and warn if they disagree.
      progress: show a progress bar.

    >>> import jax, jaxbandit as jb
    >>> tuned = jb.tune(jb.BestOfBothWorlds(max_delay=5), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5), rounds=300,
    ...                 runs=64, steps=8, only=["factor"], fresh_runs=256, key=jax.random.key(0))
    >>> bool(tuned.after.value < tuned.before.value), bool(tuned.learner.factor < 24)
    (True, True)
    """
    key = given_key(key, seed)
    tasks = check_tune(
        learner,
        losses,
        delays,
        rounds=rounds,
        steps=steps,
        runs=runs,
        optimizer=optimizer,
        only=only,
        goal=goal,
        estimator=estimator,
        fresh_runs=fresh_runs,
    )
    learner = canonical(learner)
    logs = {name: math.log(value) for name, value in _chosen(learner, only).items()}
    optimizer = optax.adam(optax.cosine_decay_schedule(0.5, steps)) if optimizer is None else optimizer
    state = optimizer.init(logs)
    path: dict[str, list] = {name: [math.exp(value)] for name, value in logs.items()} | {"regret": [], "error": []}
    fresh = {"rounds": rounds, "key": key, "runs": fresh_runs}

    with Progress(progress, steps * len(tasks) * runs * rounds, f"step 1 of {steps}") as bar:
        for step in range(steps):
            bar.update(0, f"step {step + 1} of {steps}")
            options = {
                "rounds": rounds,
                "runs": runs,
                "key": key,
                "first_run": step * runs,
                "estimator": estimator,
                "progress": bar,
            }
            value, error, slopes = _objective(_with_logs(learner, logs), tasks, list(logs), goal, options)
            moves: Any
            moves, state = optimizer.update({name: slopes[name][0] for name in logs}, state, logs)
            logs = {name: logs[name] + float(moves[name]) for name in logs}
            path["regret"].append(value)
            path["error"].append(error)
            for name, log in logs.items():
                path[name].append(math.exp(log))
    last = max(steps // 4, 1)
    logs = {name: float(np.log(path[name][-last:]).mean()) for name in logs}
    tuned = _with_logs(learner, logs)
    used = steps * runs
    before, after = (_outcome(one, tasks, goal, fresh | {"first_run": used}) for one in (learner, tuned))
    found = _audit(tuned, tasks, list(logs), goal, fresh | {"first_run": used}, estimator) if audit else None
    return Tuned(tuned, {name: np.array(values) for name, values in path.items()}, before, after, found)


def _listed(laws: Any) -> list:
    return list(laws) if isinstance(laws, list | tuple) else [laws]


def check_tune(
    learner: Any,
    losses: Any,
    delays: Any,
    *,
    rounds: Any,
    steps: Any = 40,
    runs: Any = 512,
    optimizer: Any = None,
    only: Any = None,
    goal: Any = "mean",
    estimator: Any = None,
    fresh_runs: Any = 2048,
) -> list[tuple[Any, Any]]:
    """The tasks of :func:`tune`; raises, in one sentence, whatever is wrong with its arguments, before anything is computed."""
    check_outside_transformations("tune", learner, losses, delays, rounds, runs)
    if not isinstance(steps, int | np.integer) or isinstance(steps, bool) or steps < 1:
        raise ValueError(f"steps={show(steps)}: the number of steps is a whole number, 1 or more")
    if goal not in get_args(Goal):
        raise ValueError(f"goal={show(goal)}: the goal over several tasks is 'mean' or 'worst'")
    if optimizer is not None and not isinstance(optimizer, optax.GradientTransformation):
        raise TypeError(f"optimizer={show(optimizer)}: give an optimizer of optax, such as optax.adam(0.1), or leave it out")
    check_options(estimator)
    check_rounds(rounds)
    check_runs(runs, 0)
    try:
        check_runs(fresh_runs, steps * runs)
    except ValueError as error:
        raise ValueError(f"fresh_{error}" if str(error).startswith("runs=") else f"steps={steps}, runs={runs}: {error}") from None
    tasks = list(itertools.product(_listed(losses), _listed(delays)))
    if not tasks:
        raise ValueError("losses, delays: give at least one law of each")
    for task in tasks:
        check_game(learner, *task, rounds)
    _chosen(canonical(learner), only)
    return tasks


def _chosen(learner: Any, only: Sequence[str] | None) -> dict[str, float]:
    """The numbers to tune, by name."""
    known = named_leaves(learner)
    check_names(list(known), type(learner).__name__, only)
    if only is None:
        told = facts(learner)
        only = [name for name, leaf in known.items() if name not in told and leaf.ndim == 0 and float(leaf) > 0]
        if not only:
            raise ValueError(f"learner={type(learner).__name__}(…): it has no positive hyperparameter to tune")
    for name in only:
        if known[name].ndim or float(known[name]) <= 0:
            raise ValueError(f"only=[{name!r}]: {name}={show(known[name])} is not a positive number; start from one")
    return {name: float(known[name]) for name in only}


def _with_logs(learner: Any, logs: Mapping[str, float]) -> Any:
    """The learner with the numbers that have these logarithms."""
    paths, structure = jax.tree_util.tree_flatten_with_path(learner)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths]
    leaves = [math.exp(logs[name]) if name in logs else leaf for name, (_, leaf) in zip(names, paths, strict=True)]
    return canonical(jax.tree.unflatten(structure, leaves))


def _objective(
    learner: Any, tasks: Sequence[Any], names: Sequence[str], goal: Goal, options: Mapping[str, Any]
) -> tuple[float, float, dict]:
    """Value and error of the goal, and its gradient in the logarithms with errors."""
    found = [regret_gradient(learner, *task, only=names, **options) for task in tasks]
    if goal == "worst":
        found = [max(found, key=lambda one: one.value)]
    value = float(np.mean([one.value for one in found]))
    error = math.hypot(*(one.value_error for one in found)) / len(found)
    leaves = [(named_leaves(one.gradient), named_leaves(one.error)) for one in found]
    slopes = {}
    for name in names:
        scale = float(named_leaves(learner)[name]) / len(found)  # d/d log v = v d/dv
        slope = sum(float(gradient[name]) for gradient, _ in leaves) * scale
        slopes[name] = (slope, math.hypot(*(float(error[name]) for _, error in leaves)) * scale)
    return value, error, slopes


def _outcome(learner: Any, tasks: Sequence[Any], goal: Goal, options: Mapping[str, Any]) -> Outcome:
    ends = [simulate(learner, *task, measure=[ControlVariates()], record=24, **options).estimate() for task in tasks]
    regrets, errors = np.array([end.mean[-1] for end in ends]), np.array([end.error[-1] for end in ends])
    if goal == "worst":
        return Outcome(float(regrets.max()), float(errors[regrets.argmax()]), regrets, errors)
    return Outcome(float(regrets.mean()), float(np.sqrt((errors**2).sum()) / len(ends)), regrets, errors)


def _audit(
    learner: Any, tasks: Sequence[Any], names: Sequence[str], goal: Goal, options: Mapping[str, Any], estimator: Estimator | None
) -> Audit:
    used, paired = (_objective(learner, tasks, names, goal, {**options, "estimator": one})[2] for one in (estimator, "paired"))
    off = {name: abs(used[name][0] - paired[name][0]) - 4 * math.hypot(used[name][1], paired[name][1]) for name in names}
    largest = max(abs(paired[name][0]) for name in names)
    wrong = [name for name in names if off[name] > 0.1 * largest]
    if wrong:
        warnings.warn(
            f"tune: the gradient in {', '.join(wrong)} disagrees with paired differences at the end; "
            "see Tuned.audit, and tune with estimator='paired' to be sure",
            stacklevel=3,
        )
    return Audit(used, paired, not wrong)
