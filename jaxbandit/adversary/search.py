"""Search for the oblivious loss table on which a learner has the largest regret."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._checks.inputs import check_outside_transformations, check_rounds, check_runs, check_switch, given_key, is_whole
from jaxbandit._checks.per_run import declared_axes, own_leaves
from jaxbandit._core.fields import is_numeric, show
from jaxbandit._io.progress import Progress, showing
from jaxbandit.adversary.arena import MEASURING, MOST_NUMBERS, Arena
from jaxbandit.adversary.found import Step, WorstCase
from jaxbandit.adversary.moves import climbed, evolved, mutated
from jaxbandit.delays import Delays
from jaxbandit.learners.base import LearnerLike
from jaxbandit.losses import AdaptiveLosses, Losses, Table

GENERATIONS, STEPS, EDITS = 16, 20, 6  # of one epoch: of the evolution, of each climb, of the random edits
RUNS_OF_EPOCH = 60_000  # about, for the progress bar


def worst_case(
    learner: LearnerLike,
    delays: Delays,
    num_arms: int,
    rounds: int,
    *,
    budget: int = 4,
    seed: int = 0,
    starts: Sequence[Any] = (),
    runs: int = 2048,
    progress: bool | Progress = False,
) -> WorstCase:
    r"""Search for the oblivious loss table with the largest regret of a learner.

    .. math:: W = \max_{\ell \in [0, 1]^{T \times K}} \mathbb{E} \Big[ \sum_t \langle x_t, \ell_t \rangle \Big] - \min_i \sum_t \ell_{t,i}

    An epoch of the search has three stages. Evolution recombines tables of a structured family: blocks that alternate in turn or at random,
    with period, phase, growth, bursts, onset and offset, around gaps and levels that may ramp. Climbs follow the gradient of the expected
    regret in the losses of all rounds, in pieces of a quarter to half of the delay: once from the best table of this evolution, once from
    the best table so far. Random edits change segments of the best table. Learners that are not importance-weighted, and delays that
    depend on arms or losses, have no such gradient. They get more random edits instead.

    The result is a lower bound of :math:`W`. All tables are selected on other random numbers than those of ``regret``.

    Args:
      learner: any learner, also of a class of your own.
      delays: the delay model.
      num_arms: :math:`K`, at least 2.
      rounds: :math:`T`.
      budget: the number of epochs. Compare learners with the same budget.
      seed: of the search and of the measurement; the result is a function of the arguments, bitwise identical.
      starts: tables to try first, such as those found for other learners: loss models, or arrays ``[T, K]``.
      runs: of the final measurement.
      progress: show a progress bar, or move one that is shown already.

    Returns:
      A :class:`WorstCase`: ``table``, a loss model to be simulated, ``regret`` and ``error`` with fresh keys, and ``history``, the best
      regret against the number of runs.

    >>> import jaxbandit as jb
    >>> found = jb.worst_case(jb.Uniform(), jb.delays.Fixed(2), num_arms=2, rounds=40, budget=1, runs=64)
    >>> bool(found.regret > 0.8 * 20)  # uniform play loses T/2 on the table (0, 1), (0, 1), ...
    True
    >>> again = jb.simulate(jb.Uniform(), found.table, jb.delays.Fixed(2), rounds=40, runs=8, seed=3)
    """
    check_outside_transformations("worst_case", learner, delays, rounds, seed)
    key = given_key(None, seed)
    check_rounds(rounds)
    check_runs(runs, 0)
    if not is_whole(num_arms, 2):
        raise ValueError(
            f"num_arms={show(num_arms)}: the number of arms is a whole number, 2 or more; a single arm has no regret"
        )
    if not is_whole(budget, 1):
        raise ValueError(f"budget={show(budget)}: the budget is a whole number of epochs, 1 or more")
    if not is_whole(runs, 2):
        raise ValueError(f"runs={show(runs)}: a standard error needs 2 runs or more")
    if not isinstance(progress, Progress):
        check_switch("progress", progress)
    num_arms, rounds, budget, runs = int(num_arms), int(rounds), int(budget), int(runs)
    if rounds * num_arms > MOST_NUMBERS:
        raise ValueError(
            f"rounds={rounds}: a table has {rounds} × {num_arms} losses, and a search keeps several; "
            f"at most {MOST_NUMBERS // num_arms} rounds of {num_arms} arms"
        )
    if isinstance(starts, str) or not np.iterable(starts):
        raise TypeError(f"starts={show(starts)}: starts are a list of loss models or arrays [T, K]")
    tables = [_tabulated(start, place, rounds, num_arms) for place, start in enumerate(starts)]
    _check_one_value(learner, delays)
    with showing(progress, budget * RUNS_OF_EPOCH * rounds, f"worst case of {type(learner).__name__}") as bar:
        arena = Arena(learner, delays, num_arms, rounds, key, bar)
        table, history = _search(arena, np.random.default_rng(int(seed)), tables, budget)
        regret, error = arena.regret(table, runs, MEASURING)
    return WorstCase(Table(table), regret, error, runs, tuple(history))


def _search(arena: Arena, rng: np.random.Generator, starts: list[np.ndarray], budget: int) -> tuple[np.ndarray, list[Step]]:
    delay = min(arena.mean_outstanding(), arena.rounds / 4)
    coarse, fine = (max(int((delay + 1) / share), arena.rounds // pieces, 1) for share, pieces in ((2, 1000), (4, 2000)))
    best, kept, history = (-np.inf, 0.0), np.zeros((arena.rounds, arena.num_arms), np.float32), []

    def offer(table: np.ndarray) -> None:
        nonlocal best, kept
        regret = arena.regret(table)
        if regret[0] > best[0]:
            best, kept = regret, table

    def note(epoch: int, stage: str) -> None:
        history.append(Step(epoch, stage, arena.runs, *best))

    for start in starts:
        offer(start)
    if starts:
        note(1, "starts")
    for epoch in range(1, budget + 1):
        fresh = evolved(arena, rng, delay, GENERATIONS)
        offer(fresh)
        note(epoch, "evolution")
        if arena.has_gradient:
            offer(climbed(arena, fresh, STEPS, coarse))
            offer(climbed(arena, kept, STEPS, fine))
            note(epoch, "climb")
        offer(mutated(arena, rng, [kept, fresh], EDITS if arena.has_gradient else 4 * EDITS))
        note(epoch, "mutation")
    return kept, history


def _check_one_value(*parts: Any) -> None:
    """Raise ValueError if a field has a value for each run: a worst case is that of one learner."""
    for part in parts:
        if all(map(is_numeric, jax.tree.leaves(part))) and any(own_leaves(part)):
            name = next(name for own, (name, _) in zip(own_leaves(part), declared_axes(part), strict=True) if own)
            raise ValueError(f"{name} has a value for each run: call worst_case once for each value")


def _tabulated(start: Any, place: int, rounds: int, num_arms: int) -> np.ndarray:
    """A start as an array ``[T, K]``: the expected losses of a model, or the first rows of a table."""
    name = f"starts[{place}]"
    if isinstance(start, Losses):
        if start.num_arms != num_arms:
            raise ValueError(f"{name}={show(start)}: it has {start.num_arms} arms, and num_arms={num_arms}")
        if start.length is not None and start.length < rounds:
            raise ValueError(f"{name}={show(start)}: it has {start.length} rounds, and rounds={rounds}; give a longer one")
        if isinstance(start, AdaptiveLosses):
            raise TypeError(f"{name}={show(start)}: its losses depend on the arms of the run; give an oblivious loss model")
        if any(own_leaves(start)):
            raise ValueError(f"{name}={show(start)}: it has numbers that differ between runs; give one number")
        return np.asarray(jax.vmap(start.prepare().expected)(jnp.arange(1, rounds + 1)), np.float32)
    if not is_numeric(start) or np.ndim(start) != 2 or np.shape(start)[1] != num_arms or np.shape(start)[0] < rounds:
        raise ValueError(
            f"{name}={show(start)}: a start is a loss model or an array of {rounds} rows (or more) of {num_arms} losses"
        )
    table = np.asarray(start, np.float32)[:rounds]
    if not np.all((table >= 0) & (table <= 1)):
        raise ValueError(f"{name}={show(start)}: losses must lie between 0 and 1")
    return table
