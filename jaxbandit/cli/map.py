"""``jaxbandit map``: which learner wins, over delay and horizon, when nobody means harm and when somebody does."""

import math
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

import jaxbandit as jb
from jaxbandit import plots
from jaxbandit.cli.options import Whole, check_folder
from jaxbandit.extend import Losses, float_dtype, pick, pytree_dataclass, static, whole_number
from jaxbandit.extras import need
from jaxbandit.plots.panels import save_png
from jaxbandit.progress import showing

ARMS, RUNS, BOUND = 4, 256, 256  # one bound for all delays: one program for each learner and game
DELAYS = (1, 4, 16, 64, 256)
HORIZONS = (200, 600, 2_000, 6_000, 20_000)


@pytree_dataclass
class TakingTurns(Losses):
    """The adversary of the demo, who knows the delay: two arms take turns every 2·``delay`` rounds, loss 0 and 1, the others have 0.9."""

    delay: ArrayLike = whole_number(low=1)
    arms: int = static(default=ARMS)

    @property
    def num_arms(self) -> int:
        return self.arms

    def expected(self, t: jax.Array) -> jax.Array:
        turn, arm = (t - 1) // (2 * self.delay) % 2, jnp.arange(self.arms)
        return jnp.where(arm > 1, 0.9, arm != turn).astype(float_dtype())

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        mean = pick(self.expected(t), arm)
        return (noise < mean).astype(mean.dtype)


def learners(delay: Any) -> dict[str, Any]:
    """Those of docs/choosing.md, with their defaults; who must be told something is told the truth."""
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
    """Those of docs/choosing.md: the first is benign."""
    return {
        "stochastic": jb.losses.Bernoulli([0.3, *[0.5] * (ARMS - 1)]),
        "moving together": jb.losses.StochasticallyConstrained(0.2, ARMS),
        "in step with the delay": TakingTurns(delay),
    }


def played(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean regret and its standard error, ``[game, learner, delay, horizon]``."""
    shape = (len(games(1)), len(learners(1)), len(DELAYS))
    found = np.zeros((2, *shape, len(HORIZONS)))
    with warnings.catch_warnings(), showing(True, math.prod(shape) * RUNS * HORIZONS[-1], "who wins where") as bar:
        warnings.simplefilter("ignore")  # guarantees that do not hold here are what the map is about
        for game, name, column in np.ndindex(shape):
            delay = DELAYS[column]
            players = [*learners(delay).values()][name], [*games(delay).values()][game], jb.delays.Fixed(delay, bound=BOUND)
            result = jb.simulate(*players, rounds=HORIZONS[-1], runs=RUNS, seed=seed, record=HORIZONS, progress=bar)
            estimate = result.estimate()
            found[:, game, name, column] = estimate.mean, estimate.error
    return found[0], found[1]


def draw(panel: Any, title: str, mean: np.ndarray, error: np.ndarray, colours: dict[str, Any]) -> list[str]:
    """Who has the least regret of ``[learner, delay, horizon]``: its colour and its regret; the names of all who win somewhere.

    A second name below the number is of who is within two standard errors of the winner.
    """
    names, order = [*colours], mean.argsort(0)
    for column, row in np.ndindex(mean.shape[1:]):
        best, second = order[:2, column, row]
        panel.add_patch(_rectangle(column, row, colours[names[best]]))
        near = mean[second, column, row] - mean[best, column, row] < 2 * np.hypot(*error[[best, second], column, row])
        words = f"{mean[best, column, row]:.0f}" + (f"\nor {names[second]}" if near else "")
        panel.text(column, row, words, ha="center", va="center", fontsize=7 if near else 10, color="white")
    panel.set(xlim=(-0.5, len(DELAYS) - 0.5), ylim=(-0.5, len(HORIZONS) - 0.5), title=title)
    panel.set(xticks=range(len(DELAYS)), xticklabels=DELAYS, xlabel="delay of every loss, rounds")
    panel.set(yticks=range(len(HORIZONS)), yticklabels=[f"{horizon:,}" for horizon in HORIZONS], ylabel="horizon, rounds")
    for side in panel.spines.values():
        side.set_visible(False)
    panel.tick_params(length=0)
    return [names[one] for one in np.unique(order[0])]


def _rectangle(column: int, row: int, colour: Any) -> Any:
    return need("matplotlib.patches", "plot", "a figure").Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, color=colour)


def map(*, out: Path = Path(), seed: Whole = 0) -> None:
    """Which learner wins, over delay and horizon, in one figure, map.png: under a minute on two free cores.

    Left, nobody means harm. Right, the worst of three games counts, one of which knows the delay.

    Parameters
    ----------
    out
        Folder for the figure.
    seed
        Seed of the key; run i of every learner meets the same losses.
    """
    check_folder(out)
    start = time.perf_counter()
    print(f"{len(learners(1))} learners, {RUNS} runs x {HORIZONS[-1]} rounds each, {ARMS} arms; games: {', '.join(games(1))}")
    mean, error = played(seed)
    worst = mean.argmax(0)[None]
    views = {
        "nobody means harm": (mean[0], error[0]),
        "the worst of three games counts": tuple(np.take_along_axis(one, worst, 0)[0] for one in (mean, error)),
    }
    palette = need("matplotlib", "plot", "a figure").colormaps["tab10"]
    colours = {name: palette(place) for place, name in enumerate(learners(1))}
    figure, panels = plots.figure(columns=2)
    winners: set[str] = set()
    for panel, (title, (regret, width)) in zip(panels, views.items(), strict=True):
        winners |= {*draw(panel, title, regret, width, colours)}
        print(f"\n{title}: least regret\n{'rounds':>8}" + "".join(f"{f'delay {delay}':>22}" for delay in DELAYS))
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
    print(f"\nThe figure is {out / 'map.png'} ({time.perf_counter() - start:.0f} s). Nowhere the best: {losers}.")
