"""Warnings, each given once, about valid simulations that are probably not intended."""

import contextlib
import inspect
import math
import warnings
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._checks.dry_run import from_elsewhere
from jaxbandit._checks.per_run import over_runs, own_leaves, run_of
from jaxbandit._core.fields import facts, is_concrete, show
from jaxbandit.delays import Delays
from jaxbandit.learners.ftrl import FTRL
from jaxbandit.learners.states import StateExp3
from jaxbandit.losses import Losses

_warned: set[tuple] = set()
_muted: ContextVar[bool] = ContextVar("_muted", default=False)
_noted: ContextVar[list[tuple] | None] = ContextVar("_noted", default=None)


@contextlib.contextmanager
def noted() -> Iterator[list[tuple]]:
    """The cases that checks inside would warn about, whether or not they were warned about before."""
    cases: list[tuple] = []
    token = _noted.set(cases)
    try:
        yield cases
    finally:
        _noted.reset(token)


def warned_about(cases: Iterable[tuple]) -> bool:
    """Whether all these cases were warned about before."""
    return _warned.issuperset(cases)


def is_muted() -> bool:
    """Whether warnings are suppressed: see :func:`no_more_about_burn_in`."""
    return _muted.get()


def _is_new(case: tuple) -> bool:
    cases = _noted.get()
    if cases is not None:
        cases.append(case)
    if case in _warned:
        return False
    _warned.add(case)
    return True


@contextlib.contextmanager
def no_more_about_burn_in() -> Iterator[None]:
    """Suppress repeated warnings about the burn-in during an optimisation path."""
    token = _muted.set(True)
    try:
        yield
    finally:
        _muted.reset(token)


def caller() -> int:
    """The ``stacklevel`` of a warning that names the first line outside the package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "jaxbandit":
        frame, level = frame.f_back, level + 1
    return level


def warn_about_max_delay(learner: Any, delays: Delays, runs: int | None = None) -> None:
    """Warn if delays can exceed the ``max_delay`` of a learner, in any run."""
    for field, fact in facts(learner).items():
        value = vars(learner)[field]
        if fact == "max_delay" and is_concrete((value, delays)):
            given, longest = np.broadcast_arrays(np.asarray(value, np.float64), _longest(delays, runs))
            wrong = np.flatnonzero(given < longest)
            if wrong.size:
                _warn_of_longer(type(learner).__name__, field, float(given.flat[wrong[0]]), float(longest.flat[wrong[0]]))


def _longest(delays: Delays, runs: int | None) -> np.ndarray:
    """The longest delay, ``[]`` or ``[runs]``; a user's class is evaluated run by run."""
    with jax.ensure_compile_time_eval():  # also inside jit, where the numbers of the model may be known
        if runs is None or not from_elsewhere(delays):
            return np.asarray(delays.longest(), np.float64)
        return np.array([np.max(np.asarray(run_of(delays, run).longest())) for run in range(runs)])


def _warn_of_longer(name: str, field: str, given: float, longest: float) -> None:
    if _is_new((name, given, longest)):
        can_come = "feedback can be lost" if math.isinf(longest) else f"delays of {longest:.0f} can come"
        warnings.warn(
            f"{name}({field}={given:g}): {can_come}, so its guarantee does not hold here (the simulation is still exact)",
            stacklevel=caller(),
        )


def warn_about_state_rate(learner: Any, num_arms: int) -> None:
    """Warn if the rate of State-EXP3 is too large for its analysis, which assumes fixed delays."""
    if not (isinstance(learner, StateExp3) and is_concrete(learner)):
        return
    with jax.ensure_compile_time_eval():
        rate, delay = np.broadcast_arrays(
            np.asarray(learner.rate(num_arms), np.float64), np.asarray(learner.mean_delay, np.float64)
        )
    wrong = np.flatnonzero((delay > 0) & (rate > (1 + 1e-6) / (np.e * (delay + 1))))
    case = ("StateExp3", float(rate.flat[wrong[0]]), float(delay.flat[wrong[0]])) if wrong.size else None
    if case is not None and _is_new(case):
        warnings.warn(
            f"StateExp3(mean_delay={case[2]:g}): its rate {case[1]:.4g} is above 1/(e(d + 1)) = {1 / (np.e * (case[2] + 1)):.4g}, so its "
            "guarantee does not hold here (the simulation is still exact); a smaller scale= or a longer horizon= would restore it",
            stacklevel=caller(),
        )


def burn_in(learner: Any, losses: Losses, runs: int | None = None) -> float | None:
    """About how many rounds the learner explores at the start, the most of all runs; None: the means move, or it is not known."""
    if not (isinstance(learner, FTRL) and losses.stationary and is_concrete((learner, losses))):
        return None
    with jax.ensure_compile_time_eval():  # also inside jit
        first = jnp.ones((), jnp.int32)
        own = runs is not None and any(own_leaves(losses))
        means = np.asarray(over_runs(_expected, losses, first) if own else losses.expected(first), np.float64)
    gaps = means - means.min(0)
    gap = np.where(gaps > 0, gaps, np.inf).min(0)  # [] or [runs]
    if not np.any(np.isfinite(gap)):
        return None
    if runs is None or not from_elsewhere(learner):
        longest = learner.burn_in(losses.num_arms, gap)
        return None if longest is None else float(np.max(np.asarray(longest)))
    each = [run_of(learner, run).burn_in(losses.num_arms, np.broadcast_to(gap, (runs,))[run]) for run in range(runs)]
    return max((float(np.max(np.asarray(one))) for one in each if one is not None), default=None)


def _expected(losses: Losses, t: jax.Array) -> jax.Array:
    return losses.expected(t)


def warn_about_burn_in(learner: Any, losses: Losses, rounds: Any, runs: int | None = None) -> None:
    """Warn if the burn-in of a learner exceeds the horizon, in any run."""
    longest = None if _muted.get() else burn_in(learner, losses, runs)
    if longest is None or not is_concrete(rounds) or longest <= rounds:
        return
    case = (type(learner).__name__, longest, int(rounds))
    if _is_new(case):
        warnings.warn(
            f"{show(learner)}: with its constants it explores nearly uniformly for about {case[1]:,.0f} rounds "
            f"(factor·max_delay·K^(1/3)·log K/gap), and rounds={case[2]:,}; "
            f"divide factor by {max(10 * longest / case[2], 2):,.0f} to make it a tenth of the horizon, or simulate more rounds",
            stacklevel=caller(),
        )
