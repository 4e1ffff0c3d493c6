"""Which algorithm has the lowest regret, over delay and horizon, under stochastic losses and in the worst of three environments.

python -m experiments.choosing.map --out DIR
"""

import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import jaxbandit as jb
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
        "Tsallis-INF rv": jb.TsallisINF("rv"),
        "Delayed Exp3": jb.DelayedExp3(),
        "ZS20": jb.ZimmertSeldin(),
        "MZS24": jb.RobustBestOfBothWorlds(),
        "MZS22": jb.BestOfBothWorlds(delay),
        "MZS22, constants 1": jb.BestOfBothWorlds(delay, linear=1.0, factor=1.0),
    }


def games(delay: Any) -> dict[str, Losses]:
    """The environments of docs/choosing.md; the first has stochastic losses."""
    return {
        "stochastic": jb.losses.Bernoulli([0.3, *[0.5] * (ARMS - 1)]),
        "stochastically constrained adversary": jb.losses.StochasticallyConstrained(0.2, ARMS),
        "delay-matched switching": jb.losses.DelayMatchedSwitching(delay, ARMS),
    }


def played(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean regret and its standard error, ``[game, learner, delay, horizon]``."""
    shape = (len(games(1)), len(learners(1)), len(DELAYS))
    found = np.zeros((2, *shape, len(HORIZONS)))
    with warnings.catch_warnings(), showing(True, math.prod(shape) * RUNS * HORIZONS[-1], "simulating") as bar:
        warnings.simplefilter("ignore")  # bounds that do not apply here are expected
        for game, name, column in np.ndindex(shape):
            delay = DELAYS[column]
            players = [*learners(delay).values()][name], [*games(delay).values()][game], jb.delays.Fixed(delay, bound=BOUND)
            result = jb.simulate(*players, rounds=HORIZONS[-1], runs=RUNS, seed=seed, record=HORIZONS, progress=bar)
            estimate = result.estimate()
            found[:, game, name, column] = estimate.mean, estimate.error
    return found[0], found[1]


def draw(panel: Any, title: str, mean: np.ndarray, error: np.ndarray, colours: dict[str, Any]) -> list[str]:
    """Draw the lowest regret of ``[learner, delay, horizon]`` in each cell; returns the names of the algorithms that have it somewhere.

    A second name below the number is that of an algorithm within two standard errors of the lowest regret.
    """
    names, order = [*colours], mean.argsort(0)
    for column, row in np.ndindex(mean.shape[1:]):
        best, second = order[:2, column, row]
        panel.add_patch(_rectangle(column, row, colours[names[best]]))
        near = mean[second, column, row] - mean[best, column, row] < 2 * np.hypot(*error[[best, second], column, row])
        words = f"{mean[best, column, row]:.0f}" + (f"\nor {names[second]}" if near else "")
        panel.text(column, row, words, ha="center", va="center", fontsize=7 if near else 10, color="white")
    panel.set(xlim=(-0.5, len(DELAYS) - 0.5), ylim=(-0.5, len(HORIZONS) - 0.5), title=title)
    panel.set(xticks=range(len(DELAYS)), xticklabels=DELAYS, xlabel="fixed delay, rounds")
    panel.set(yticks=range(len(HORIZONS)), yticklabels=[f"{horizon:,}" for horizon in HORIZONS], ylabel="horizon, rounds")
    for side in panel.spines.values():
        side.set_visible(False)
    panel.tick_params(length=0)
    return [names[one] for one in np.unique(order[0])]


def _rectangle(column: int, row: int, colour: Any) -> Any:
    return need("matplotlib.patches", "plot", "a figure").Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, color=colour)


def map(*, out: Path = Path(), seed: Whole = 0, force: bool = False) -> None:
    """Plot the algorithm with the lowest regret over delay and horizon, map.png: under a minute on two cores.

    Left: stochastic losses. Right: the worst case over three environments (stochastic losses, a stochastically constrained
    adversary, delay-matched switching).

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
        f"{len(learners(1))} learners, {RUNS} runs x {HORIZONS[-1]} rounds each, {ARMS} arms; environments: {', '.join(games(1))}"
    )
    mean, error = played(seed)
    worst = mean.argmax(0)[None]
    views = {
        "stochastic losses": (mean[0], error[0]),
        "worst case over three environments": tuple(np.take_along_axis(one, worst, 0)[0] for one in (mean, error)),
    }
    palette = need("matplotlib", "plot", "a figure").colormaps["tab10"]
    colours = {name: palette(place) for place, name in enumerate(learners(1))}
    figure, panels = plots.figure(columns=2)
    winners: set[str] = set()
    for panel, (title, (regret, width)) in zip(panels, views.items(), strict=True):
        winners |= {*draw(panel, title, regret, width, colours)}
        print(f"\n{title}: lowest regret\n{'rounds':>8}" + "".join(f"{f'delay {delay}':>22}" for delay in DELAYS))
        for row in reversed(range(len(HORIZONS))):
            cells = [
                f"{[*colours][regret[:, column, row].argmin()]} {regret[:, column, row].min():.0f}"
                for column in range(len(DELAYS))
            ]
            print(f"{HORIZONS[row]:8,}" + "".join(f"{cell:>22}" for cell in cells))
    handles = [_rectangle(0, 0, colours[name]) for name in colours if name in winners]
    figure.legend(handles, [name for name in colours if name in winners], loc="outside lower center", ncols=5, frameon=False)
    save_png(figure, out / "map.png")
    losers = ", ".join(name for name in colours if name not in winners)
    print(f"\nThe figure is {out / 'map.png'} ({time.perf_counter() - start:.0f} s). Never lowest: {losers}.")


if __name__ == "__main__":
    main_of(map, NAME, ALL_OR_NOTHING)
