"""The expected regret of MZS22 over two of its constants, for each game of the grid and all horizons at once.

All points of a game meet the same random numbers. A run to the longest horizon passes through the shorter ones, so that one simulation
tells of all of them. Under stochastic losses, ``entropy_scale`` is 0 (the regret falls all the way down to it) and what is varied is
η₀ and ``tsallis_scale``. Under delay-matched switching it is the two scales, with ``linear`` and ``factor`` at (0.1, 0.5): there the regret is flat in
them (docs/appendix/gradient_estimators.md).
"""

import math
import warnings
from collections.abc import Sequence

import numpy as np
from games import BENIGN, HORIZONS, Game

import jaxbandit as jb

FACTOR = 0.5
LINEAR = 0.1  # delay-matched switching
STARTS, BASES = (1.5, 5.0, 15.0, 45.0), (0.25, 0.35, 0.5, 0.7)  # stochastic losses: η₀/K², and see `constants`
TSALLIS, ENTROPY = (0.08, 0.16, 0.32, 0.64, 1.28), (0.02, 0.05, 0.12, 0.3, 0.7, 1.6)  # delay-matched switching
RUNS, SEED = 256, 0


def axes(game: Game) -> tuple[Sequence[float], Sequence[float]]:
    """The two numbers that are varied."""
    return (STARTS, BASES) if game.regime in BENIGN else (TSALLIS, ENTROPY)


def constants(game: Game, first: float, second: float) -> tuple[float, ...]:
    """linear, factor, tsallis_scale, entropy_scale at a point of the surface."""
    if game.regime not in BENIGN:
        return LINEAR, FACTOR, first, second
    wanted = first * game.arms**2
    # Where η₀ is larger than wanted already, a lower scale makes up for it at the rounds that count, some 500.
    excess = max(game.start - wanted, 0.0)
    return max(wanted - game.start, 0.0) / game.delay, FACTOR, second / math.sqrt(1 + excess / 500), 0.0


def played(game: Game, constants: Sequence[float], horizons: Sequence[int], *, runs: int, seed: int) -> jb.Result:
    """Runs of the game, recorded at the horizons among others."""
    warnings.simplefilter("ignore")  # notes on the paper's constants, which are known here
    learner, delays = jb.BestOfBothWorlds(game.delay, *constants), jb.delays.Fixed(game.delay)
    record = np.union1d(np.geomspace(10, horizons[-1], 24).astype(int), horizons)
    return jb.simulate(
        learner, game.losses, delays, rounds=horizons[-1], record=record, runs=runs, seed=seed, measure=[jb.ControlVariates()]
    )


def surface(game: Game) -> list:
    """``[first, second, 2, horizon]``: mean regret, and its error."""

    def point(first: float, second: float) -> list:
        estimate = played(game, constants(game, first, second), HORIZONS, runs=RUNS, seed=SEED).estimate()
        at = np.searchsorted(estimate.rounds, HORIZONS)
        return [np.round(part[at], 3).tolist() for part in (estimate.mean, estimate.error)]

    firsts, seconds = axes(game)
    return [[point(first, second) for second in seconds] for first in firsts]
