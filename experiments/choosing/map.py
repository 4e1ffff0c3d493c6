"""Which algorithm has the lowest regret, over delay and horizon, under stochastic losses and in the worst of four environments.

python -m experiments.choosing.map --out DIR
"""

import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as t_distribution

import jaxbandit as jb
from experiments.choosing import adversary
from experiments.looks import COLOURS, text_on
from jaxbandit import plots
from jaxbandit._io.optional import need
from jaxbandit._io.progress import showing
from jaxbandit.cli import main_of
from jaxbandit.cli.app import ALL_OR_NOTHING
from jaxbandit.cli.options import Whole, check_folder, check_new
from jaxbandit.extend import Losses
from jaxbandit.plots.panels import save_png

NAME = "python -m experiments.choosing.map"
ARMS, RUNS, BOUND = 4, 256, 256  # one bound for all delays: one program per learner and environment
DELAYS = (1, 4, 16, 64, 256)
HORIZONS = (200, 600, 2_000, 6_000, 20_000)


def learners(delay: Any) -> dict[str, Any]:
    """The algorithms of docs/choosing.md with their defaults, oracle-tuned where they require inputs."""
    return {
        "Thompson": jb.DelayedThompson(),
        "UCB1": jb.DelayedUCB1(),
        "Tsallis-INF": jb.TsallisINF(),
        "Tsallis-INF, RV": jb.TsallisINF("rv"),
        "Delayed Exp3": jb.DelayedExp3(),
        "ZS20": jb.ZimmertSeldin(),
        "MZS24": jb.RobustBestOfBothWorlds(),
        "MZS22": jb.BestOfBothWorlds(delay),
        "MZS22, constants (1, 1)": jb.BestOfBothWorlds(delay, linear=1.0, factor=1.0),
    }


SEARCHED = "made against Thompson and UCB1"


def games(delay: Any) -> dict[str, Losses]:
    """The environments of docs/choosing.md that serve all horizons; the first has stochastic losses."""
    return {
        "stochastic": jb.losses.Bernoulli([0.3, *[0.5] * (ARMS - 1)]),
        "stochastically constrained adversary": jb.losses.StochasticallyConstrained(0.2, ARMS),
        "delay-matched switching": jb.losses.DelayMatchedSwitching(delay, ARMS),
    }


def simulated(seed: int) -> np.ndarray:
    """Final regret of every run, ``[environment, learner, delay, horizon, run]``.

    The last environment is searched for each delay and horizon, on other random numbers.
    """
    shape = (len(games(1)), len(learners(1)), len(DELAYS))
    found = np.zeros((shape[0] + 1, *shape[1:], len(HORIZONS), RUNS))
    work = RUNS * (math.prod(shape) * HORIZONS[-1] + math.prod(shape[1:]) * sum(HORIZONS))
    with warnings.catch_warnings(), showing(True, work, "simulating") as bar:
        warnings.simplefilter("ignore")  # bounds that do not apply here are expected
        for column, row in np.ndindex(len(DELAYS), len(HORIZONS)):
            delay, rounds = DELAYS[column], HORIZONS[row]
            losses = adversary.environment(adversary.search(delay, rounds), rounds)
            setting = dict(rounds=rounds, runs=RUNS, seed=seed, record=[rounds], progress=bar)
            for name, learner in enumerate(learners(delay).values()):
                result = jb.simulate(learner, losses, jb.delays.Fixed(delay, bound=BOUND), **setting)
                found[-1, name, column, row] = result.regret[-1]
        for game, name, column in np.ndindex(shape):
            delay = DELAYS[column]
            setting = [*learners(delay).values()][name], [*games(delay).values()][game], jb.delays.Fixed(delay, bound=BOUND)
            result = jb.simulate(*setting, rounds=HORIZONS[-1], runs=RUNS, seed=seed, record=HORIZONS, progress=bar)
            found[game, name, column] = result.regret
    return found


def not_worse(regret: np.ndarray, level: float = 0.05) -> np.ndarray:
    """Whether each algorithm is not significantly worse than the lowest mean of its cell, ``[learner, delay, horizon]``.

    Paired t-tests over runs ``regret [learner, delay, horizon, run]``, with Holm's correction over all cells and algorithms.
    """
    best = regret.mean(-1).argmin(0)
    difference = regret - np.take_along_axis(regret, best[None, ..., None], 0)
    error = difference.std(-1, ddof=1) / np.sqrt(difference.shape[-1])
    mean = difference.mean(-1)
    score = np.divide(mean, error, out=np.where(mean > 0, np.inf, 0.0), where=error > 0)
    chance = t_distribution.sf(score, difference.shape[-1] - 1)
    rivals = np.arange(len(regret))[:, None, None] != best
    order = np.argsort(chance[rivals])
    limits = level / np.arange(rivals.sum(), 0, -1)
    kept = np.ones(rivals.sum(), bool)
    kept[order] = ~np.logical_and.accumulate(chance[rivals][order] <= limits)
    found = np.ones(rivals.shape, bool)
    found[rivals] = kept
    return found


def draw(panel: Any, title: str, regret: np.ndarray) -> list[str]:
    """Draw the lowest mean of ``[learner, delay, horizon, run]`` in each cell; returns the names that have it somewhere.

    Names below the number are those of algorithms that are not significantly worse. A cell in which all are tied is grey.
    """
    names, mean, ties = [*learners(1)], regret.mean(-1), not_worse(regret)
    winners = mean.argmin(0)
    for column, row in np.ndindex(winners.shape):
        best = winners[column, row]
        others = [name for place, name in enumerate(names) if ties[place, column, row] and place != best]
        colour = "#D0D0D0" if len(others) == len(names) - 1 else COLOURS.get(names[best], "#8A8A8A")
        panel.add_patch(_rectangle(column, row, colour))
        named = f"\n{len(others) + 1} tied" if len(others) > 2 else "".join(f"\nor {name}" for name in others)
        words = f"{mean[best, column, row]:.0f}{named}"
        size = 7 if others else 10
        panel.text(column, row, words, ha="center", va="center", fontsize=size, color=text_on(colour))
    panel.set(xlim=(-0.5, len(DELAYS) - 0.5), ylim=(-0.5, len(HORIZONS) - 0.5), title=title)
    panel.set(xticks=range(len(DELAYS)), xticklabels=DELAYS, xlabel="fixed delay, rounds")
    panel.set(yticks=range(len(HORIZONS)), yticklabels=[f"{horizon:,}" for horizon in HORIZONS], ylabel="horizon, rounds")
    for side in panel.spines.values():
        side.set_visible(False)
    panel.grid(False)
    panel.tick_params(length=0)
    return [names[one] for one in np.unique(winners)]


def _rectangle(column: int, row: int, colour: Any) -> Any:
    return need("matplotlib.patches", "plot", "a figure").Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, color=colour)


def map(*, out: Path = Path(), seed: Whole = 0, force: bool = False) -> None:
    """Plot the algorithm with the lowest regret over delay and horizon, map.png: two minutes on two cores.

    Left: stochastic losses. Right: the worst case over four environments (stochastic losses, a stochastically constrained
    adversary, delay-matched switching, an environment searched against Thompson sampling and UCB1 for each cell).

    Parameters
    ----------
    out
        Folder for the figure.
    seed
        Random seed; run i of every algorithm uses the same random numbers.
    force
        Replace files that are already there.
    """
    check_folder(out)
    check_new([out / "map.png"], force)
    start = time.perf_counter()
    print(
        f"{len(learners(1))} learners, {RUNS} runs x {HORIZONS[-1]} rounds each, {ARMS} arms; environments: {', '.join([*games(1), SEARCHED])}"
    )
    found = simulated(seed)
    worst = found.mean(-1).argmax(0)[None, ..., None]
    views = {
        "stochastic losses": found[0],
        "worst case over four environments": np.take_along_axis(found, worst, 0)[0],
    }
    figure, panels = plots.figure(columns=2)
    winners: set[str] = set()
    names = [*learners(1)]
    for panel, (title, regret) in zip(panels, views.items(), strict=True):
        winners |= {*draw(panel, title, regret)}
        print(f"\n{title}: lowest regret\n{'rounds':>8}" + "".join(f"{f'delay {delay}':>22}" for delay in DELAYS))
        mean = regret.mean(-1)
        for row in reversed(range(len(HORIZONS))):
            cells = [f"{names[mean[:, column, row].argmin()]} {mean[:, column, row].min():.0f}" for column in range(len(DELAYS))]
            print(f"{HORIZONS[row]:8,}" + "".join(f"{cell:>22}" for cell in cells))
    shown = [name for name in names if name in winners]
    handles = [_rectangle(0, 0, COLOURS.get(name, "#8A8A8A")) for name in shown]
    figure.legend(handles, shown, loc="outside lower center", ncols=5, frameon=False)
    figure.suptitle(
        "Lowest regret: Thompson sampling under stochastic losses; Tsallis-INF or Delayed Exp3 in the worst case", fontsize=12
    )
    save_png(figure, out / "map.png")
    losers = ", ".join(name for name in names if name not in winners)
    print(f"\nThe figure is {out / 'map.png'} ({time.perf_counter() - start:.0f} s). Never lowest: {losers}.")


if __name__ == "__main__":
    main_of(map, NAME, ALL_OR_NOTHING)
