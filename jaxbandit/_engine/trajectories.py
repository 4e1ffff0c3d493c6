"""Trajectories of chosen runs: more rounds are recorded, and only the chosen rounds and runs are kept on the host."""

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbandit._checks.warn import caller
from jaxbandit._core.fields import float_dtype, is_concrete, show
from jaxbandit._engine.devices import memory
from jaxbandit._engine.game import Game, Records
from jaxbandit.measure import Trajectory
from jaxbandit.results.trajectory import Trajectories

LARGE = 1 << 30  # bytes above which a warning states the memory
AT_ONCE = 1024  # recorded rounds in one call of the program, at most
NUMBERS = 1 << 24  # in the records of one call: 64 MB
PREFIX = "trajectory."


@dataclasses.dataclass(frozen=True)
class Chosen:
    """The rounds and runs of a trajectory."""

    rounds: np.ndarray  # [R] ascending
    runs: np.ndarray  # [S] indices of the runs, from 0, ascending


def trajectory_of(measure: Sequence[Any]) -> Trajectory | None:
    """The :class:`Trajectory` among some measurements."""
    found = [one for one in measure if isinstance(one, Trajectory)]
    if len(found) > 1:
        raise ValueError(f"measure={show(list(measure))}: give one Trajectory, with all the runs and rounds in it")
    return found[0] if found else None


def choose(
    measure: Sequence[Any],
    num_arms: int,
    rounds: int,
    runs: int,
    first_run: int,
    after: int = 0,
    within: tuple[int, int] | None = None,
) -> Chosen | None:
    """The rounds and runs that a Trajectory among ``measure`` selects after round ``after``; None without a Trajectory.

    ``within``: the first run and the number of runs of the whole simulation, of which these runs are a part.
    """
    wanted = trajectory_of(measure)
    if wanted is None:
        return None
    first, count = within or (first_run, runs)
    ids, all_rounds = np.asarray(wanted.chosen_runs(count, first), np.int64), wanted.chosen_rounds(rounds)
    _check_memory(len(all_rounds), len(ids), num_arms)
    ids, chosen = ids[(ids >= first_run) & (ids < first_run + runs)], np.asarray(all_rounds, np.int64)
    return Chosen(chosen[chosen > after], ids - first_run)


def _check_memory(rounds: int, runs: int, num_arms: int) -> None:
    each = 12 + (1 + num_arms) * float_dtype().itemsize
    total = rounds * runs * each
    words = (
        f"measure=[Trajectory(…)]: {rounds:,} rounds × {runs:,} runs × {each} bytes are {total / 1e9:,.1f} GB; "
        "choose fewer with runs= and rounds="
    )
    if total > (memory() or np.inf):
        raise ValueError(words)
    if total > LARGE:
        warnings.warn(words, stacklevel=caller())


def records_at_once(rounds: int, num_arms: int, block: int) -> int:
    """How many of ``rounds`` records one call of the program returns."""
    return min(rounds, AT_ONCE, max(NUMBERS // ((num_arms + 4) * block), 16))


def chosen_of_block(chosen: Chosen | None, first: int, runs: int) -> Chosen | None:
    """The selection within a block of ``runs`` runs that starts at index ``first``."""
    if chosen is None:
        return None
    inside = (chosen.runs >= first) & (chosen.runs < first + runs)
    return dataclasses.replace(chosen, runs=chosen.runs[inside] - first)


def recorded_with(recorded: np.ndarray, chosen: Chosen | None) -> np.ndarray:
    """The rounds to record, and those of the trajectory."""
    return recorded if chosen is None or not len(chosen.runs) else np.union1d(recorded, chosen.rounds)


def separated(records: Records, rounds: np.ndarray, recorded: np.ndarray, chosen: Chosen) -> Records:
    """Split the records of a block at ``rounds`` into a trajectory of the chosen rounds and runs, and the requested records."""
    rows, mine = np.isin(rounds, recorded), np.isin(rounds, chosen.rounds)
    measured, found = {}, {}
    for name, array in records.measured.items():
        if name.startswith(PREFIX):
            found[name.removeprefix(PREFIX)] = array[mine][..., chosen.runs]
        else:
            measured[name] = array[rows]
    x = None if records.probabilities is None else records.probabilities[rows]
    return Records(records.regret[rows], x, measured, found)


def with_all_rows(records: Records, chosen: Chosen | None) -> Records:
    """Records of a block. If none of its runs is chosen, the empty arrays have as many rounds as those of other blocks."""
    if chosen is None or len(chosen.runs) or records.trajectory is None:
        return records
    empty: Any = {name: np.zeros((len(chosen.rounds), *a.shape[1:]), a.dtype) for name, a in records.trajectory.items()}
    return dataclasses.replace(records, trajectory=empty)


def assembled(chosen: Chosen | None, found: dict[str, Any] | None, first_run: int) -> Trajectories | None:
    """The trajectories of a Result."""
    if chosen is None or found is None:
        return None
    return Trajectories(chosen.rounds.astype(np.int64), chosen.runs + first_run, **found)


def of_rollout(wanted: Trajectory | None, game: Game, rounds: Any, runs: int | None, first_run: Any) -> tuple[Any, Any]:
    """Rounds and indices of the runs that a rollout keeps; the indices are None if all runs are kept."""
    if wanted is None:
        return None, None
    if not is_concrete(rounds) and not isinstance(wanted.rounds, range | tuple):
        raise ValueError("measure=[Trajectory(rounds=…)]: where rounds is traced, give a list of rounds, such as range(1, 101)")
    last = int(rounds) if is_concrete(rounds) else max(wanted.rounds)
    places = None
    if wanted.runs is not None and not (runs is None and wanted.runs == 1):
        if not is_concrete(first_run) and not isinstance(wanted.runs, int):
            raise ValueError("measure=[Trajectory(runs=…)]: where first_run is traced, give a number of runs")
        first = int(first_run) if is_concrete(first_run) else 0
        ids = np.asarray(wanted.chosen_runs(runs or 1, first))
        places = None if runs is None else ids - first
    chosen = wanted.chosen_rounds(last)
    count = 1 if runs is None else len(places) if places is not None else runs
    _check_memory(len(chosen), count, game.losses.num_arms)
    return np.asarray(chosen), places


def split_rollout(record: Any, chosen: Any, played: Any, measured: dict[str, Any], places: Any, ids: Any) -> tuple[Any, Any]:
    """Indices of the rounds of ``record`` among the rounds ``played``, and the trajectories; all may be traced."""
    at = jnp.searchsorted(played, chosen)
    keep = slice(None) if places is None else places
    found = {name.removeprefix(PREFIX): array[at][..., keep] if ids.ndim else array[at] for name, array in measured.items()}
    return jnp.searchsorted(played, record), Trajectories(chosen, ids[keep] if ids.ndim else ids, **found)
