"""One run, action by action, with its feedback in flight."""

import heapq
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit._core.fields import show
from jaxbandit.delays import NEVER
from jaxbandit.plots.panels import figure
from jaxbandit.plots.style import COLOURS, look
from jaxbandit.results.result import Result
from jaxbandit.results.trajectory import Trajectories

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_DRAWN = 2000  # actions; more would overlap


def _one_run(given: Any, run: int | None) -> Trajectories:
    found = given.trajectory if isinstance(given, Result) else given
    if not isinstance(found, Trajectories):
        raise ValueError(
            f"plots.trajectory({show(given)}): there is no trajectory; simulate with measure=[jb.measure.Trajectory(runs=1, rounds=200)]"
        )
    found = found.take_runs([int(found.runs[0]) if run is None else run])
    if found.rounds.size > MOST_DRAWN:
        raise ValueError(
            f"plots.trajectory: {found.rounds.size:,} rounds are too many to draw; simulate with Trajectory(rounds=range(…)) of "
            f"{MOST_DRAWN:,} rounds or fewer"
        )
    return found


def _lanes(rounds: np.ndarray, arms: np.ndarray, arrival: np.ndarray, num_arms: int) -> tuple[np.ndarray, np.ndarray]:
    """A row for each action among those of its arm, free from its round to its arrival; and how many rows each arm has."""
    lanes, rows = np.zeros(len(rounds), int), np.zeros(num_arms, int)
    free: list[list[int]] = [[] for _ in range(num_arms)]
    busy: list[list[tuple[int, int]]] = [[] for _ in range(num_arms)]
    for place, (t, arm, end) in enumerate(zip(rounds, arms, arrival, strict=True)):
        while busy[arm] and busy[arm][0][0] < t:
            heapq.heappush(free[arm], heapq.heappop(busy[arm])[1])
        if not free[arm]:
            free[arm] = [int(rows[arm])]
            rows[arm] += 1
        lanes[place] = heapq.heappop(free[arm])
        heapq.heappush(busy[arm], (int(end), int(lanes[place])))
    return lanes, np.maximum(rows, 1)


def trajectory(result: Result | Trajectories, *, run: int | None = None, title: str = "") -> "Figure":
    """One run: each action a dot on its round, a line to the arrival of its feedback; below, the outstanding observations.

    Dotted grey lines are feedback that never arrives. Lines that reach the right edge arrive later.

    Args:
      result: of ``simulate(..., measure=[jb.measure.Trajectory(...)])``, or its trajectory.
      run: the id of a run; the first one by default.
      title: of the figure.

    >>> import jaxbandit as jb
    >>> result = jb.simulate(jb.DelayedUCB1(), jb.losses.Bernoulli([0.2, 0.8]), jb.delays.Geometric(5), rounds=60, runs=8,
    ...                      seed=0, measure=[jb.measure.Trajectory(runs=[3])])
    >>> made = jb.plots.trajectory(result, run=3)
    >>> [panel.get_ylabel() for panel in made.axes]
    ['', 'outstanding\\nobservations']
    """
    one = _one_run(result, run)
    made, (panel, below) = figure(rows=2)
    made.set_size_inches(8.0, 6.0)
    panel.get_gridspec().set_height_ratios([3, 1])  # type: ignore[union-attr]
    panel.sharex(below)
    rounds, arms, arrival = np.asarray(one.rounds), one.arm[:, 0], one.arrival[:, 0]
    last = int(rounds[-1])
    lanes, rows = _lanes(rounds, arms, arrival, one.probabilities.shape[1])
    bottom = np.append(0, np.cumsum(rows + 1))
    height = bottom[arms] + lanes
    for arm in range(len(rows)):
        mine, (colour, _) = arms == arm, look(arm)
        arrives, never = mine & (arrival != NEVER), mine & (arrival == NEVER)
        panel.hlines(height[arrives], rounds[arrives], np.minimum(arrival[arrives], last), color=colour, linewidth=1.0, alpha=0.7)
        panel.hlines(height[never], rounds[never], last, color="0.6", linewidth=0.8, linestyle=":")
        inside = arrives & (arrival <= last)
        panel.plot(arrival[inside], height[inside], "|", color=colour, markersize=5)
        panel.plot(rounds[mine], height[mine], "o", color=colour, markersize=3.5, label=f"arm {arm}")
    panel.set_yticks(bottom[:-1] + (rows - 1) / 2, [f"arm {arm}" for arm in range(len(rows))])
    panel.set(title=title, ylim=(-1, bottom[-1]))
    panel.grid(axis="y", visible=False)
    below.step(rounds, one.outstanding[:, 0], where="mid", color=COLOURS[-1], linewidth=1.2)
    below.set(xlabel="round", ylabel="outstanding\nobservations")
    below.set_ylim(bottom=0)
    return made
