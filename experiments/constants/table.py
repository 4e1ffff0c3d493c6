"""From the surfaces to constants: the table, a row for each point of the grid, and the rule, a formula for each regime.

The rule was fitted to the same surfaces, then frozen before the trial.
"""

import math
from collections.abc import Sequence

import numpy as np
from games import ANY, ARMS, DELAYS, HORIZONS, REGIMES, Cell, Game
from surfaces import ENTROPY, FACTOR, LINEAR, TSALLIS

PAPER = (10.0, 24.0, 1.0, 1.0)
POWERS = [(i, j) for i in range(4) for j in range(4 - i)]
FOCUS = 8.0  # a point whose regret is larger by 10 % counts e^{-0.8} as much


def rule(cell: Cell) -> tuple[float, ...]:
    """linear, factor, tsallis_scale, entropy_scale."""
    arms, delay, rounds = cell.game.arms, cell.game.delay, cell.rounds
    if cell.game.regime in REGIMES[:2]:
        height = 0.41 if cell.game.regime == REGIMES[0] else 0.56
        # η₀ has a d²/(K^{1/3} log K)² that no constant lowers; the scale makes up for it at the rounds that count.
        start = (delay / (arms ** (1 / 3) * math.log(arms))) ** 2
        return LINEAR, FACTOR, height / math.sqrt(1 + start / (10 * math.sqrt(rounds))), 0.0
    if cell.game.regime == ANY:
        return LINEAR, FACTOR, 0.41, 0.1 * (rounds / 1000) ** 0.4
    return LINEAR, FACTOR, 0.12 * math.sqrt(arms), 1.4 / math.sqrt(arms) * (rounds / (100 * delay)) ** 0.1


def table(surfaces: dict[str, list]) -> dict[str, tuple[float, float]]:
    """The two scales of each cell of the grid: where a cubic fit to the logarithm of the regret is least, to two digits.

    Where that is the lowest entropy scale of the surface, 0.
    """
    found = {}
    for arms in ARMS:
        for delay in DELAYS:
            known = {r: np.array(surfaces[str(Game(r, arms, delay))])[:, :, 0] for r in REGIMES if arms > 2 or r in REGIMES[:2]}
            if arms > 2:
                known[ANY] = np.mean(list(known.values()), 0)
            for regime, regrets in known.items():
                for place, rounds in enumerate(HORIZONS):
                    found[str(Cell(Game(regime, arms, delay), rounds))] = _least(regrets[:, :, place])
    return found


def _least(regrets: np.ndarray) -> tuple[float, float]:
    heights = np.log(regrets)
    weights = np.exp(-FOCUS / 2 * (heights - heights.min())).ravel()
    basis = _powers(np.log(TSALLIS), np.log(ENTROPY)).reshape(-1, len(POWERS))
    fit = np.linalg.lstsq(basis * weights[:, None], heights.ravel() * weights, rcond=None)[0]
    fine = [np.linspace(math.log(side[0]), math.log(side[-1]), 81) for side in (TSALLIS, ENTROPY)]
    low = np.unravel_index((_powers(*fine) @ fit).argmin(), (81, 81))
    tsallis, entropy = (float(f"{math.exp(side[at]):.2g}") for side, at in zip(fine, low, strict=True))
    return tsallis, 0.0 if low[1] == 0 else entropy


def _powers(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.stack([x[:, None] ** i * y**j for i, j in POWERS], -1)


def copied(cell: Cell, rows: dict[str, tuple[float, float]]) -> tuple[float, ...]:
    """The row of the cell; between rows, linear in log K, log d and log T; beyond them, the last."""
    arms = ARMS if cell.game.regime in REGIMES[:2] else ARMS[1:]
    total = np.zeros(2)
    for k, by_arms in _around(arms, cell.game.arms):
        for d, by_delay in _around(DELAYS, cell.game.delay):
            for horizon, by_rounds in _around(HORIZONS, cell.rounds):
                row = rows[str(Cell(Game(cell.game.regime, k, d), horizon))]
                total += by_arms * by_delay * by_rounds * np.array(row)
    return LINEAR, FACTOR, *(float(f"{scale:.2g}") for scale in total)


def _around(points: Sequence[int], value: int) -> list[tuple[int, float]]:
    """The neighbours of a value among ``points``, and how much each counts."""
    place = float(np.interp(math.log(value), np.log(points), range(len(points))))
    low = min(int(place), len(points) - 2)
    return [(points[low], 1 - (place - low)), (points[low + 1], place - low)]
