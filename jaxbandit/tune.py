"""Tune a learner's hyperparameters on one or several tasks by following the gradient of its expected regret."""

import dataclasses
import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import jax
import numpy as np
import optax

from jaxbandit.gradients import Estimator, named_leaves, regret_gradient
from jaxbandit.measure import ControlVariates
from jaxbandit.pytrees import canonical, show
from jaxbandit.simulate import _bar, simulate

FACTS = ("max_delay", "max_missing", "delay", "horizon", "total_delay", "gaps")  # what a learner is told, not tuned
Goal = Literal["mean", "worst"]


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """Final regret on runs that the tuning never saw."""

    value: float  # mean over tasks, or that of the worst
    error: float  # its standard error
    tasks: np.ndarray  # [tasks] regret of each, losses by delays
    errors: np.ndarray  # [tasks]


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

    def __str__(self) -> str:
        values = ", ".join(f"{name} {path[0]:.3g} -> {getattr_path(self.learner, name):.3g}" for name, path in self._numbers())
        before, after = self.before, self.after
        lines = [f"regret {before.value:.4g} ± {before.error:.2g} -> {after.value:.4g} ± {after.error:.2g}; {values}"]
        if self.audit is not None:
            lines.append(f"audit by paired differences: {'agrees' if self.audit.agrees else 'DISAGREES'}")
        return "\n".join(lines)

    def _numbers(self):
        return [(name, path) for name, path in self.path.items() if name not in ("regret", "error")]


def tune(
    learner,
    losses,
    delays,
    *,
    rounds: int,
    key: jax.Array,
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
      key: as in :func:`jaxbandit.simulate`; steps, regrets and the audit use different runs of it.
      steps: how many.
      runs: for each step and task.
      optimizer: from optax, on a dict of logarithms by name; ``optax.adam`` with a cosine schedule from 0.5 down if None.
      only: the hyperparameters to tune, by name; None: all scalars but those that state facts (max_delay, horizon, …).
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
    tasks = list(itertools.product(_listed(losses), _listed(delays)))
    _check_options(steps, goal, tasks)
    learner = canonical(learner)
    logs = {name: math.log(value) for name, value in _chosen(learner, only).items()}
    optimizer = optax.adam(optax.cosine_decay_schedule(0.5, steps)) if optimizer is None else optimizer
    state = optimizer.init(logs)
    path: dict[str, list] = {name: [math.exp(value)] for name, value in logs.items()} | {"regret": [], "error": []}
    fresh = {"rounds": rounds, "key": key, "runs": fresh_runs}

    with _bar(progress, steps, runs, rounds) as bar:
        for step in range(steps):
            options = {"rounds": rounds, "runs": runs, "key": key, "first_run": step * runs, "estimator": estimator}
            value, error, slopes = _objective(_with_logs(learner, logs), tasks, list(logs), goal, options)
            moves: Any
            moves, state = optimizer.update({name: slopes[name][0] for name in logs}, state, logs)
            logs = {name: logs[name] + float(moves[name]) for name in logs}
            path["regret"].append(value)
            path["error"].append(error)
            for name, log in logs.items():
                path[name].append(math.exp(log))
            bar.update(1)
    last = max(steps // 4, 1)
    logs = {name: float(np.log(path[name][-last:]).mean()) for name in logs}
    tuned = _with_logs(learner, logs)
    used = steps * runs
    before, after = (_outcome(one, tasks, goal, fresh | {"first_run": used}) for one in (learner, tuned))
    found = _audit(tuned, tasks, list(logs), goal, fresh | {"first_run": used}, estimator) if audit else None
    return Tuned(tuned, {name: np.array(values) for name, values in path.items()}, before, after, found)


def _listed(laws: Any) -> list:
    return list(laws) if isinstance(laws, list | tuple) else [laws]


def _check_options(steps, goal, tasks) -> None:
    if not isinstance(steps, int | np.integer) or isinstance(steps, bool) or steps < 1:
        raise ValueError(f"steps={show(steps)}: the number of steps is a whole number, 1 or more")
    if goal not in get_args(Goal):
        raise ValueError(f"goal={show(goal)}: the goal over several tasks is 'mean' or 'worst'")
    if not tasks:
        raise ValueError("losses, delays: give at least one law of each")


def _chosen(learner, only: Sequence[str] | None) -> dict[str, float]:
    """The numbers to tune, by name."""
    known = named_leaves(learner)
    if only is None:
        only = [name for name, leaf in known.items() if name not in FACTS and leaf.ndim == 0 and float(leaf) > 0]
        if not only:
            raise ValueError(f"learner={type(learner).__name__}(…): it has no positive hyperparameter to tune")
    for name in only:
        if name not in known:
            raise ValueError(f"only=[{name!r}]: {type(learner).__name__} has the hyperparameters {', '.join(known)}")
        if known[name].ndim or float(known[name]) <= 0:
            raise ValueError(f"only=[{name!r}]: {name}={show(known[name])} is not a positive number; start from one")
    return {name: float(known[name]) for name in only}


def _with_logs(learner, logs: Mapping[str, float]):
    """The learner with the numbers that have these logarithms."""
    paths, structure = jax.tree_util.tree_flatten_with_path(learner)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths]
    leaves = [math.exp(logs[name]) if name in logs else leaf for name, (_, leaf) in zip(names, paths, strict=True)]
    return canonical(jax.tree.unflatten(structure, leaves))


def getattr_path(learner, name: str) -> float:
    """The leaf of that name."""
    return float(named_leaves(learner)[name])


def _objective(learner, tasks, names, goal: Goal, options: Mapping[str, Any]) -> tuple[float, float, dict]:
    """Value and error of the goal, and its gradient in the logarithms with errors."""
    found = [regret_gradient(learner, *task, only=names, **options) for task in tasks]
    if goal == "worst":
        found = [max(found, key=lambda one: one.value)]
    value = float(np.mean([one.value for one in found]))
    error = math.hypot(*(one.value_error for one in found)) / len(found)
    leaves = [(named_leaves(one.gradient), named_leaves(one.error)) for one in found]
    slopes = {}
    for name in names:
        scale = getattr_path(learner, name) / len(found)
        slope = sum(float(gradient[name]) for gradient, _ in leaves) * scale
        slopes[name] = (slope, math.hypot(*(float(error[name]) for _, error in leaves)) * scale)
    return value, error, slopes


def _outcome(learner, tasks, goal: Goal, options: Mapping[str, Any]) -> Outcome:
    ends = [simulate(learner, *task, measure=[ControlVariates()], record=24, **options).estimate() for task in tasks]
    regrets, errors = np.array([end.mean[-1] for end in ends]), np.array([end.error[-1] for end in ends])
    if goal == "worst":
        return Outcome(float(regrets.max()), float(errors[regrets.argmax()]), regrets, errors)
    return Outcome(float(regrets.mean()), float(np.sqrt((errors**2).sum()) / len(ends)), regrets, errors)


def _audit(learner, tasks, names, goal: Goal, options: Mapping[str, Any], estimator: Estimator | None) -> Audit:
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


def register(app) -> None:
    """Add ``jaxbandit tune`` to the command line."""

    @app.command(name="tune")
    def command(spec: Path, *, out: Path | None = None) -> None:
        """Tune each learner of a spec on all of its losses and delays; regret before and after is on fresh runs.

        Parameters
        ----------
        spec
            A TOML file as for ``jaxbandit sweep``: rounds, seed, [[learners]], [[losses]], [[delays]]; a table [tune] with
            any of steps, runs, only, goal, estimator, fresh_runs, rate (of Adam), audit.
        out
            Folder for tuned.json with the tuned values, the path and the regrets.
        """
        from jaxbandit.simulate import use_all_cores

        use_all_cores()
        run_spec(spec, out)


def run_spec(source: Path, out: Path | None) -> list[Tuned]:
    """What ``jaxbandit tune`` does; the tuned learners in the order of the spec."""
    import json
    import tomllib

    from jaxbandit.sweep.spec import ORACLE, Reader, SpecError, suggest

    try:
        document = tomllib.loads(source.read_text())
    except FileNotFoundError:
        raise SpecError(str(source), ["there is no such file"]) from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError(str(source), [f"this is not TOML: {error}"]) from None
    settings = document.pop("tune", {})
    document.setdefault("runs", settings.get("runs", 512))
    reader = Reader(document)
    known = ("steps", "runs", "only", "goal", "estimator", "fresh_runs", "rate", "audit")
    for name in settings:
        if name not in known:
            reader.problem(f"tune.{name}", f"this is not a setting of tune; {suggest(name, known)}")
    learners, losses, delays = (reader.settings(axis) for axis in ("learners", "losses", "delays"))
    for setting in (*learners, *losses, *delays):
        fields = dataclasses.fields(setting.object) if dataclasses.is_dataclass(setting.object) else ()
        for field in fields:
            value = getattr(setting.object, field.name)
            if isinstance(value, str) and value == ORACLE:
                reader.problem(f"{setting.path}.{field.name}", "tune needs a number here, not 'oracle'")
    reader.finish()
    options = {name: value for name, value in settings.items() if name != "rate"}
    options.setdefault("runs", document["runs"])
    if "rate" in settings:
        options["optimizer"] = optax.adam(optax.cosine_decay_schedule(settings["rate"], settings.get("steps", 40)))
    key, found, written = jax.random.key(document.get("seed", 0)), [], {}
    for setting in learners:
        laws = [one.object for one in losses], [one.object for one in delays]
        tuned = tune(setting.object, *laws, rounds=document["rounds"], key=key, progress=True, **options)
        print(f"{setting.label}: {tuned}")
        found.append(tuned)
        written[setting.label] = {
            "values": {name: getattr_path(tuned.learner, name) for name, _ in tuned._numbers()},
            "before": [tuned.before.value, tuned.before.error],
            "after": [tuned.after.value, tuned.after.error],
            "path": {name: values.tolist() for name, values in tuned.path.items()},
        }
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "tuned.json").write_text(json.dumps(written, indent=1))
    return found
