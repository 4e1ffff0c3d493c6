"""Tune a learner's hyperparameters on one or several tasks by following the gradient of its expected regret."""

import itertools
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import ArrayLike

from jaxbandit._checks.inputs import (
    check_game,
    check_outside_transformations,
    check_rounds,
    check_runs,
    check_switch,
    given_key,
    is_whole,
)
from jaxbandit._checks.warn import no_more_about_burn_in
from jaxbandit._core.fields import float_dtype, is_numeric, show
from jaxbandit._engine.simulation import simulate
from jaxbandit._io.progress import Progress
from jaxbandit._provenance.identity import fingerprint
from jaxbandit.delays import Delays
from jaxbandit.gradients.coordinates import Constraint, Coordinate, at, coordinates, mean, moved
from jaxbandit.gradients.estimators import Estimator, check_options, regret_gradient
from jaxbandit.gradients.gradient import named_leaves
from jaxbandit.gradients.numbers import check_one_value
from jaxbandit.gradients.record import CODE, Record, Step, check_file
from jaxbandit.gradients.tuned import Audit, Comparison, Outcome, Slopes, Tuned
from jaxbandit.learners.base import LearnerLike
from jaxbandit.losses import Losses
from jaxbandit.measure import ControlVariates

GOALS = ("mean", "worst")
Goal = Literal["mean", "worst"] | Callable[[jax.Array], ArrayLike]
FEWEST = 256  # runs of an audit at the start and in the middle, if there are as many
STRETCH = 6  # steps whose mean regret is compared with that of as many before, to see whether anything is still gained


def tune(
    learner: LearnerLike,
    losses: Losses | Sequence[Losses],
    delays: Delays | Sequence[Delays],
    *,
    rounds: int,
    key: jax.Array | None = None,
    seed: int | None = None,
    steps: int = 40,
    runs: int = 512,
    optimizer: optax.GradientTransformation | None = None,
    only: Sequence[str] | None = None,
    constraints: Mapping[str, Constraint] | None = None,
    goal: Goal = "mean",
    tolerance: float | None = None,
    file: str | os.PathLike | None = None,
    estimator: Estimator | None = None,
    fresh_runs: int = 2048,
    audit: bool = True,
    progress: bool = False,
) -> Tuned:
    """Lower the expected regret after ``rounds`` rounds, step by step, each on runs of its own.

    Hyperparameters may be numbers or arrays, such as a schedule with a rate for each of ten knots. Steps are made in free
    numbers, mostly logarithms, so that every hyperparameter stays what it must be; see ``constraints``. The result is the
    mean of the last quarter of the path. Regret before and after is measured on fresh runs.

    Args:
      learner: the starting point; a learner of the library or of your own.
      losses, delays: a model each, or lists of models: the tasks are all pairs.
      rounds: the horizon T.
      key, seed: as in :func:`jaxbandit.simulate`; steps, regrets and the audit use different runs of it.
      steps: the largest number of steps.
      runs: for each step and task.
      optimizer: from optax, on a dict of free numbers by name; ``optax.adam`` with a cosine schedule from 0.5 down if None.
      only: the hyperparameters to tune, by name; None: all positive ones except required inputs (max_delay, horizon, …), and
        those of ``constraints``.
      constraints: by name, ``"positive"`` (for all that are not named: steps in the logarithm), ``"simplex"`` (a list of
        positive numbers with sum 1: steps in the logarithms, softmax) or ``"real"`` (any sign: steps in the number itself). The
        range that a field declares, ``number(low=, high=)``, is kept as well.
      goal: ``"mean"`` over the tasks, ``"worst"``, or a function of the regrets ``[tasks]`` that JAX can differentiate:
        weights, such as ``lambda regrets: regrets[0] + 0.5 * regrets[1:].max()``, or a constraint by a penalty.
      tolerance: stop early once the interval shows that the last six steps gained less than this part of the regret over the
        six before them: the difference of their means and two standard errors; 0.01 is a good choice. None: make all steps.
      file: where to keep the steps. If it exists, tuning resumes from it, bitwise identical to a run without interruption.
      estimator: of :func:`jaxbandit.regret_gradient`.
      fresh_runs: for the regret before and after, and for the audit; 2 or more.
      audit: compare the gradient with paired differences at the start, in the middle and at the end of the path, and warn if
        they disagree anywhere. A regret that is significantly higher after tuning than before raises a warning with or without.
      progress: show a progress bar.

    >>> import jaxbandit as jb
    >>> tuned = jb.tune(jb.BestOfBothWorlds(max_delay=5), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5), rounds=300,
    ...                 runs=64, steps=8, only=["factor"], fresh_runs=256, seed=0)
    >>> bool(tuned.after.value < tuned.before.value), bool(tuned.learner.factor < 24)
    (True, True)
    """
    check_outside_transformations("tune", learner, losses, delays, rounds, steps, runs, fresh_runs, tolerance, key, seed)
    key = given_key(key, seed)
    tasks, which = check_tune(
        learner,
        losses,
        delays,
        rounds=rounds,
        steps=steps,
        runs=runs,
        optimizer=optimizer,
        only=only,
        constraints=constraints,
        goal=goal,
        tolerance=tolerance,
        file=file,
        estimator=estimator,
        fresh_runs=fresh_runs,
        audit=audit,
        progress=progress,
    )
    rounds, steps, runs, fresh_runs = int(rounds), int(steps), int(runs), int(fresh_runs)
    optimizer = optax.adam(optax.cosine_decay_schedule(0.5, steps)) if optimizer is None else optimizer
    frees = [{name: one.start() for name, one in which.items()}]
    named = "a function" if callable(goal) else goal
    identity = _identity(learner, tasks, which, key, rounds=rounds, runs=runs, goal=named, estimator=estimator)
    record = Record(file, identity, frees[0])
    state = optimizer.init(frees[0])
    options = {"rounds": rounds, "runs": runs, "key": key, "estimator": estimator}

    with Progress(progress, steps * len(tasks) * runs * rounds, f"step 1 of {steps}") as bar:
        for step in range(steps):
            if step < len(record.steps):
                record.check(step, frees[-1])
                bar.update(len(tasks) * runs * rounds)
            else:
                bar.update(0, f"step {step + 1} of {steps}")
                here = {**options, "first_run": step * runs, "progress": bar}
                measured = Step(frees[-1], *_objective(at(learner, which, frees[-1]), tasks, which, goal, here))
                text = f"learner={type(learner).__name__}(…): in step {step + 1} its regret has no finite derivative by"
                _check_finite({name: slope for name, (slope, _) in measured.slopes.items()}, text, "start from other numbers")
                record.add(measured)
            slopes = {name: slope for name, (slope, _) in record.steps[step].slopes.items()}
            moves: Any
            moves, state = optimizer.update(slopes, state, frees[-1])
            text = f"optimizer={show(optimizer)}: in step {step + 1} it makes no finite move of"
            _check_finite(moves, text, "give another, such as optax.adam(0.1)")
            frees.append(moved(which, frees[-1], moves))
            if tolerance is not None and _nothing_gained(record.steps[: step + 1], tolerance):
                break
    made = len(frees) - 1
    tuned = at(learner, which, mean(which, frees[-max(made // 4, 1) :]))
    path = {name: np.array([one.value(free[name]) for free in frees], np.float64) for name, one in which.items()}
    path["regret"], path["error"] = (np.array(column) for column in zip(*(one[1:3] for one in record.steps[:made]), strict=True))
    fresh = {"rounds": rounds, "key": key, "runs": fresh_runs, "first_run": steps * runs}
    with Progress(progress, 2 * len(tasks) * fresh_runs * rounds, "before and after, on fresh runs") as bar:
        before, after = (_outcome(one, tasks, goal, {**fresh, "progress": bar}) for one in (learner, tuned))
    points = {"start": learner, "middle": at(learner, which, frees[made // 2]), "end": tuned}
    found = Tuned(tuned, path, before, after, _audit(points, tasks, which, goal, fresh, estimator) if audit else None)
    if found.worse:
        warnings.warn(
            f"tune: the regret after tuning, {after.value:.4g} ± {after.error:.2g}, is significantly higher than before, "
            f"{before.value:.4g} ± {before.error:.2g}; keep the start, or use estimator='paired', smaller steps or more runs",
            stacklevel=2,
        )
    return found


def _check_finite(numbers: Mapping[str, Any], text: str, remedy: str) -> None:
    for name, value in numbers.items():
        if not np.isfinite(value).all():
            raise ValueError(f"{text} {name}, but {show(value)}; {remedy}")


def _nothing_gained(made: Sequence[Step], tolerance: float) -> bool:
    """Whether the last stretch is for certain (two standard errors) not better than the one before by ``tolerance`` of it."""
    if len(made) < 2 * STRETCH:
        return False
    regrets = np.array([one.value for one in made[-2 * STRETCH :]])
    error = math.hypot(*(one.error for one in made[-2 * STRETCH :])) / STRETCH
    late = regrets[STRETCH:].mean()
    return bool(regrets[:STRETCH].mean() - late + 2 * error <= tolerance * abs(late))  # both may be 0


def _identity(
    learner: Any, tasks: Sequence[tuple[Any, Any]], which: Mapping[str, Coordinate], key: jax.Array, **options: Any
) -> dict[str, Any]:
    """Everything that the steps of a tuning depend on, except the optimizer."""
    marks = [fingerprint(learner, losses, delays, key) for losses, delays in tasks]
    return {
        "learner": marks[0]["learner"],
        "losses": [one["losses"] for one in marks],
        "delays": [one["delays"] for one in marks],
        "key": marks[0]["key"],
        CODE: [[one[f"{part} code"] for part in ("learner", "losses", "delays")] for one in marks],
        "choice of hyperparameters": {name: one.constraint for name, one in which.items()},
        "precision": float_dtype().name,
        **options,
    }


def _listed(laws: Any) -> list:
    return list(laws) if isinstance(laws, list | tuple) else [laws]


def check_tune(
    learner: LearnerLike,
    losses: Losses | Sequence[Losses],
    delays: Delays | Sequence[Delays],
    *,
    rounds: int,
    steps: int = 40,
    runs: int = 512,
    optimizer: object = None,
    only: Sequence[str] | None = None,
    constraints: Mapping[str, Constraint] | None = None,
    goal: Goal = "mean",
    tolerance: float | None = None,
    file: str | os.PathLike | None = None,
    estimator: object = None,
    fresh_runs: int = 2048,
    audit: object = True,
    progress: object = False,
) -> tuple[list[tuple[Any, Any]], dict[str, Coordinate]]:
    """The tasks of :func:`tune` and the hyperparameters that it changes; raises on invalid input before anything is computed."""
    if not is_whole(steps, 1):
        raise ValueError(f"steps={show(steps)}: the number of steps is a whole number, 1 or more")
    if not (goal in GOALS if isinstance(goal, str) else callable(goal)):
        raise ValueError(f"goal={show(goal)}: the goal over several tasks is 'mean', 'worst' or a function of their regrets")
    if callable(goal) and file is not None:
        raise ValueError(f"file={show(str(file))}: steps towards a goal that is a function cannot be resumed; leave file out")
    if optimizer is not None and not isinstance(optimizer, optax.GradientTransformation):
        raise TypeError(f"optimizer={show(optimizer)}: give an optimizer of optax, such as optax.adam(0.1), or leave it out")
    if tolerance is not None and not (is_numeric(tolerance) and np.ndim(tolerance) == 0 and 0 < tolerance < 1):
        raise ValueError(f"tolerance={show(tolerance)}: a part of the regret, a number between 0 and 1 such as 0.01, or None")
    check_file(file)
    check_switch("audit", audit)
    check_switch("progress", progress)
    check_options(estimator)
    check_rounds(rounds)
    check_runs(runs, 0)
    try:
        check_runs(fresh_runs, int(steps) * int(runs))
    except ValueError as error:
        raise ValueError(f"fresh_{error}" if str(error).startswith("runs=") else f"steps={steps}, runs={runs}: {error}") from None
    if fresh_runs < 2:
        raise ValueError(f"fresh_runs={show(fresh_runs)}: one run has no error to judge by; give 2 or more")
    tasks = list(itertools.product(_listed(losses), _listed(delays)))
    for task in tasks:
        check_one_value(learner, *task, runs)
    if not tasks:
        raise ValueError("losses, delays: give at least one law of each")
    for task in tasks:
        check_game(learner, *task, rounds)
    if not isinstance(goal, str):
        value: Any = goal(jnp.ones(len(tasks)))
        if not is_numeric(value):
            raise TypeError(f"goal={show(goal)}: of {len(tasks)} regrets it makes {show(value)}; it must make one number")
        if shape := jnp.shape(value):
            raise ValueError(
                f"goal={show(goal)}: of {len(tasks)} regrets it makes an array of shape {shape}; it must make one number"
            )
        _combined(goal, [1.0] * len(tasks))  # raises where JAX cannot differentiate it
    return tasks, coordinates(learner, only, constraints)


@no_more_about_burn_in()
def _objective(
    learner: Any, tasks: Sequence[Any], which: Mapping[str, Coordinate], goal: Goal, options: Mapping[str, Any]
) -> tuple[float, float, Slopes]:
    """Value and error of the goal, and its gradient in the free numbers with errors."""
    found = [regret_gradient(learner, *task, only=list(which), **options) for task in tasks]
    if goal == "worst":
        found = [max(found, key=lambda one: one.value)]
    shares = None
    if isinstance(goal, str):
        value = float(np.mean([one.value for one in found]))
        error = math.hypot(*(one.value_error for one in found)) / len(found)
    else:
        value, shares = _combined(goal, [one.value for one in found])
        error = math.hypot(*(share * one.value_error for share, one in zip(shares, found, strict=True)))
    values = named_leaves(learner)
    gradients, errors = ([named_leaves(one) for one in trees] for trees in zip(*((one.gradient, one.error) for one in found)))
    slopes = {}
    for name, one in which.items():
        each, spreads = (np.stack([np.asarray(leaves[name], np.float64) for leaves in trees]) for trees in (gradients, errors))
        if shares is None:
            gradient, spread = np.mean(each, 0), np.sqrt(np.sum(spreads**2, 0)) / len(found)
        else:
            gradient, spread = np.tensordot(shares, each, 1), np.sqrt(np.tensordot(shares**2, spreads**2, 1))
        slopes[name] = one.slope(gradient, spread, np.asarray(values[name], np.float64))
    return value, error, slopes


def _combined(goal: Callable[..., Any], regrets: Sequence[float]) -> tuple[float, np.ndarray]:
    """The value of a goal of the user's own, and its derivative ``[tasks]`` in the regret of each task."""
    value, shares = jax.value_and_grad(goal)(jnp.asarray(regrets, float_dtype()))
    return float(value), np.asarray(shares, np.float64)


@no_more_about_burn_in()
def _outcome(learner: Any, tasks: Sequence[Any], goal: Goal, options: Mapping[str, Any]) -> Outcome:
    ends = [simulate(learner, *task, measure=[ControlVariates()], record=24, **options).estimate() for task in tasks]
    regrets, errors = np.array([end.mean[-1] for end in ends]), np.array([end.error[-1] for end in ends])
    if goal == "worst":
        return Outcome(float(regrets.max()), float(errors[regrets.argmax()]), regrets, errors)
    if not isinstance(goal, str):
        value, shares = _combined(goal, list(regrets))
        return Outcome(value, float(np.linalg.norm(shares * errors)), regrets, errors)
    return Outcome(float(regrets.mean()), float(np.sqrt((errors**2).sum()) / len(ends)), regrets, errors)


def _audit(
    points: Mapping[str, Any],
    tasks: Sequence[Any],
    which: Mapping[str, Coordinate],
    goal: Goal,
    options: Mapping[str, Any],
    estimator: Estimator | None,
) -> Audit:
    """Compare the gradient with paired differences at each of the points, which are learners by name."""
    # The end gets all runs: the start and the middle serve to find large errors.
    few = {**options, "runs": max(options["runs"] // 4, min(options["runs"], FEWEST))}
    audit = Audit(
        {
            place: _comparison(one, tasks, which, goal, options if place == "end" else few, estimator)
            for place, one in points.items()
        }
    )
    if audit.agrees is not True:
        places = " and ".join(place for place, one in audit.points.items() if one.agrees is audit.agrees)
        warnings.warn(
            f"tune: the gradient disagrees with paired differences at the {places} of the path; "
            "see Tuned.audit, and tune with estimator='paired' to be sure"
            if audit.agrees is False
            else f"tune: the gradient cannot be compared with paired differences at the {places} of the path, "
            f"because its error is not known; give more than fresh_runs={options['runs']}",
            stacklevel=3,
        )
    return audit


def _comparison(
    learner: Any,
    tasks: Sequence[Any],
    which: Mapping[str, Coordinate],
    goal: Goal,
    options: Mapping[str, Any],
    estimator: Estimator | None,
) -> Comparison:
    used, paired = (_objective(learner, tasks, which, goal, {**options, "estimator": one})[2] for one in (estimator, "paired"))
    largest = max(np.abs(slope).max() for slope, _ in paired.values())
    off = {name: np.abs(used[name][0] - paired[name][0]) - 4 * np.hypot(used[name][1], paired[name][1]) for name in which}
    wrong = any(np.any(one > 0.1 * largest) for one in off.values())
    unknown = any(np.any(np.isnan(one)) for one in off.values())
    return Comparison(used, paired, False if wrong else None if unknown else True)
