"""Sequential simulation: blocks of runs are added until an interval is short enough."""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._checks.per_run import own_leaves
from jaxbandit._checks.warn import caller
from jaxbandit._core.fields import canonical, show
from jaxbandit._engine.choose import block_size
from jaxbandit._engine.devices import platform
from jaxbandit._provenance.identity import check_identity
from jaxbandit.losses import AdaptiveLosses
from jaxbandit.results.result import Result
from jaxbandit.results.sequential import looks
from jaxbandit.results.stopping import Until, stopping

CHUNK = 1 << 16  # rounds whose means are computed at once


def check_same_runs(*parts: Any) -> None:
    """Raise ValueError if numbers differ between runs: the runs are then not samples of one distribution."""
    for part in parts:
        if any(own_leaves(part)):
            raise ValueError(
                f"until=…: {show(part)} has numbers that differ between runs, and runs must be alike; give one number"
            )


def look_every(num_arms: int) -> int:
    """The least number of runs between two looks: a block."""
    return block_size(num_arms, platform())


def regret_limits(losses: Any, rounds: int) -> tuple[float, float]:
    """Bounds of the pseudo-regret of any learner after ``rounds`` rounds, from the means of the losses."""
    law = canonical(losses.prepare())
    if isinstance(law, AdaptiveLosses):
        return -float(rounds), float(rounds)
    if law.stationary:
        means = np.asarray(law.expected(jnp.int32(1)), np.float64)
        return 0.0, rounds * float(means.max() - means.min())
    each = jax.jit(jax.vmap(law.expected))
    least, most, total = 0.0, 0.0, np.zeros(law.num_arms)
    for first in range(1, rounds + 1, CHUNK):
        t = np.arange(first, first + CHUNK, dtype=np.int32)
        means = np.asarray(each(np.minimum(t, rounds)), np.float64)[: rounds + 1 - first]
        least, most, total = least + means.min(1).sum(), most + means.max(1).sum(), total + means.sum(0)
    return float(least - total.min()), float(most - total.min())


def check_more_runs(name: str, resume: Any, identity: dict[str, str], rounds: int, runs: int, first_run: int) -> None:
    """Check that ``resume`` holds the first runs of this simulation."""
    if not isinstance(resume, Result):
        raise TypeError(f"{name}={show(resume)}: go on from a Result, as simulate returned it or Result.load read it")
    check_identity(f"{name}: this Result", resume.identity, identity)
    if int(resume.rounds[-1]) != rounds or resume.first_run != first_run or resume.runs > runs:
        raise ValueError(
            f"{name}: with until, a Result is resumed with more runs of the same rounds: it has {resume.runs} runs from run "
            f"{resume.first_run} on, at {int(resume.rounds[-1])} rounds; this is runs={runs}, first_run={first_run}, rounds={rounds}"
        )


def simulate_until(
    until: Until, losses: Any, rounds: int, runs: int, first_run: int, resume: Result | None, more: Callable[[int, int], Result]
) -> Result:
    """Simulate at most ``runs`` runs; ``more(first_run, runs)`` simulates some of them."""
    limits = regret_limits(losses, rounds)
    result, done = resume, 0 if resume is None else resume.runs
    if resume is not None and (found := stopping(until, resume.regret[-1], limits)).reached:
        return dataclasses.replace(resume, stopping=found)
    for wanted in looks(runs, look_every(losses.num_arms), done):
        new = more(first_run + done, wanted - done)
        result, done = new if result is None else Result.concat_runs([result, new]), wanted
        found = stopping(until, result.regret[-1], limits)
        if found.reached:
            break
    else:
        found = stopping(until, result.regret[-1], limits)  # type: ignore[union-attr]
        warnings.warn(f"until={until}: not reached with runs={runs}; {found!r}", stacklevel=caller())
    return dataclasses.replace(result, stopping=found)  # type: ignore[type-var]
