"""The expected regret of the paper's learner over its two scales, for each game of the grid and all horizons at once.

All points of a game meet the same random numbers. A run to the longest horizon passes through the shorter ones, so that one simulation
tells of all of them. ``linear`` and ``factor`` are held at (0.1, 0.5), from where on down the regret is flat (docs/gradients.md).
"""

import warnings
from collections.abc import Sequence

import numpy as np
from games import HORIZONS, Game

import jaxbandit as jb

LINEAR, FACTOR = 0.1, 0.5
TSALLIS = (0.08, 0.16, 0.32, 0.64, 1.28)
ENTROPY = (0.02, 0.05, 0.12, 0.3, 0.7, 1.6)
RUNS, SEED = 256, 0


def played(game: Game, constants: Sequence[float], horizons: Sequence[int], *, runs: int, seed: int) -> list[jb.Result]:
    """A result for each law of the game, recorded at the horizons among others."""
    warnings.simplefilter("ignore")  # notes on the paper's constants, which are known here
    learner, delays = jb.BestOfBothWorlds(game.delay, *constants), jb.delays.Fixed(game.delay)
    record = np.union1d(np.geomspace(10, horizons[-1], 24).astype(int), horizons)
    options = {"rounds": horizons[-1], "record": record, "runs": runs, "seed": seed, "measure": [jb.ControlVariates()]}
    return [jb.simulate(learner, law, delays, **options) for law in game.losses]


def surface(game: Game) -> list:
    """``[tsallis, entropy, 2, horizon]``: mean regret, and its error."""

    def point(tsallis: float, entropy: float) -> list:
        estimate = played(game, (LINEAR, FACTOR, tsallis, entropy), HORIZONS, runs=RUNS, seed=SEED)[0].estimate()
        at = np.searchsorted(estimate.rounds, HORIZONS)
        return [np.round(part[at], 3).tolist() for part in (estimate.mean, estimate.error)]

    return [[point(tsallis, entropy) for entropy in ENTROPY] for tsallis in TSALLIS]
