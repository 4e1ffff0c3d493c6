"""Warnings, each given once, about games that are played as they are, although they are probably not what was meant."""

import contextlib
import math
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.delays import Delays
from jaxbandit.learners.base import as_learner
from jaxbandit.losses import Losses
from jaxbandit.pytrees import facts, is_concrete, show

_warned: set[tuple] = set()
_muted: ContextVar[bool] = ContextVar("_muted", default=False)


@contextlib.contextmanager
def no_more_about_burn_in() -> Iterator[None]:
    """For games whose learner is one of many on a way: what is said of the first is enough."""
    token = _muted.set(True)
    try:
        yield
    finally:
        _muted.reset(token)


def warn_about_max_delay(learner: Any, delays: Delays) -> None:
    """Whether a longer delay can come than a learner was told."""
    for field, fact in facts(learner).items():
        value = vars(learner)[field]
        if fact == "max_delay" and is_concrete((value, delays)):
            _warn_if_longer(type(learner).__name__, field, float(np.max(np.asarray(value))), delays)


def _warn_if_longer(name: str, field: str, told: float, delays: Delays) -> None:
    longest = float(np.max(np.asarray(delays.longest())))
    case = (name, told, longest)
    if told < longest and case not in _warned:
        _warned.add(case)
        can_come = "feedback can be lost" if math.isinf(longest) else f"delays of {longest:.0f} can come"
        warnings.warn(
            f"{name}({field}={told:g}): {can_come}, so its guarantee does not hold here (the simulation is still exact)",
            stacklevel=6,
        )


def burn_in(learner: Any, losses: Losses) -> float | None:
    """About how many rounds the learner explores at the start; None where means move, so that no gap is known, or nobody knows."""
    if not (losses.stationary and is_concrete((learner, losses))):
        return None
    with jax.ensure_compile_time_eval():  # also where the game is played inside jit
        means = np.asarray(losses.expected(jnp.ones((), jnp.int32)), np.float64)
    gaps = means - means.min()
    longest = as_learner(learner).burn_in(losses.num_arms, float(gaps[gaps > 0].min())) if np.any(gaps > 0) else None
    return None if longest is None else float(np.max(np.asarray(longest)))


def warn_about_burn_in(learner: Any, losses: Losses, rounds: Any) -> None:
    """Whether the learner explores for longer than the game lasts."""
    longest = None if _muted.get() else burn_in(learner, losses)
    if longest is None or not is_concrete(rounds) or longest <= rounds:
        return
    case = (type(learner).__name__, longest, int(rounds))
    if case not in _warned:
        _warned.add(case)
        warnings.warn(
            f"{show(learner)}: with its constants it plays nearly uniformly for about {case[1]:,.0f} rounds "
            f"(factor·max_delay·K^(1/3)·log K/gap), and rounds={case[2]:,}; "
            f"divide factor by {max(10 * longest / case[2], 2):,.0f} to make it a tenth of the game, or play more rounds",
            stacklevel=5,
        )
