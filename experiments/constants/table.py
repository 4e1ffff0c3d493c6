"""From the surfaces to constants: the table, a row for each point of the grid, and the rule, a formula for each regime.

The rule was fitted to the same surfaces, then frozen before the trial.
"""

import math
from collections.abc import Sequence

import numpy as np
from games import ARMS, BENIGN, DELAYS, HORIZONS, Cell, Game, games
from surfaces import FACTOR, LINEAR, axes, constants

PAPER = (10.0, 24.0, 1.0, 1.0)
FOCUS = 8.0  # a point whose regret is larger by 10 % counts e^{-0.8} as much
Row = tuple[float, float, float]  # linear, tsallis_scale, entropy_scale


def rule(cell: Cell) -> tuple[float, ...]:
    """linear, factor, tsallis_scale, entropy_scale."""
    game, root = cell.game, math.sqrt(cell.rounds)
    if game.regime not in BENIGN:
        return LINEAR, FACTOR, 0.12 * math.sqrt(game.arms), 1.4 / math.sqrt(game.arms) * (cell.rounds / (100 * game.delay)) ** 0.1
    wanted = 6 * game.arms**0.6 * root  # η₀
    height = 0.375 / game.arms**0.14 if game.regime == BENIGN[0] else 0.42
    linear = max(wanted - game.start, 0.0) / game.delay
    return linear, FACTOR, height / math.sqrt(1 + max(game.start - wanted, 0.0) / (20 * root)), 0.0


def table(surfaces: dict[str, list]) -> dict[str, Row]:
    """The row of each cell of the grid: where a fit to the logarithm of the regret is least, to two digits."""
    found = {}
    for game in games(ARMS, DELAYS):
        regrets = np.array(surfaces[str(game)])[:, :, 0].reshape(-1, len(HORIZONS))
        firsts, seconds = axes(game)
        points = [constants(game, first, second) for first in firsts for second in seconds]
        for place, rounds in enumerate(HORIZONS):
            found[str(Cell(game, rounds))] = _least(game, points, np.log(regrets[:, place]))
    return found


def _least(game: Game, points: Sequence[Sequence[float]], heights: np.ndarray) -> Row:
    """Under stochastic losses the fit is quadratic in log η₀ and log tsallis_scale, else cubic in the logarithms of the scales."""
    benign = game.regime in BENIGN
    x = np.log([game.start + one[0] * game.delay if benign else one[3] for one in points])
    y = np.log([one[2] for one in points])
    powers = [(i, j) for i in range(4) for j in range(4) if i + j <= (2 if benign else 3)]
    if benign and x.std() < 0.2:  # η₀ can hardly be chosen
        powers = [(0, j) for j in range(4)]

    def basis(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.stack([x**i * y**j for i, j in powers], -1)

    weights = np.exp(-FOCUS / 2 * (heights - heights.min()))
    centre = x.mean(), y.mean()
    fit = np.linalg.lstsq(basis(x - centre[0], y - centre[1]) * weights[:, None], heights * weights, rcond=None)[0]
    fine_x, fine_y = np.meshgrid(np.linspace(x.min(), x.max(), 81), np.linspace(y.min(), y.max(), 81), indexing="ij")
    low = np.unravel_index((basis(fine_x - centre[0], fine_y - centre[1]) @ fit).argmin(), fine_x.shape)
    across, tsallis = (math.exp(side[low]) for side in (fine_x, fine_y))
    row = ((across - game.start) / game.delay, tsallis, 0.0) if benign else (LINEAR, tsallis, across)
    linear, tsallis, entropy = (float(f"{max(one, 0.0):.2g}") for one in row)
    return linear if linear >= 0.05 else 0.0, tsallis, entropy


def copied(cell: Cell, rows: dict[str, Row]) -> tuple[float, ...]:
    """The row of the cell; between rows, linear in log K, log d and log T (of ``linear``·d); beyond them, the last."""
    arms = ARMS if cell.game.regime in BENIGN else ARMS[1:]
    total = np.zeros(3)
    for k, by_arms in _around(arms, cell.game.arms):
        for d, by_delay in _around(DELAYS, cell.game.delay):
            for horizon, by_rounds in _around(HORIZONS, cell.rounds):
                row = rows[str(Cell(Game(cell.game.regime, k, d), horizon))]
                total += by_arms * by_delay * by_rounds * np.array(row) * (d, 1, 1)
    linear, tsallis, entropy = (float(f"{one:.2g}") for one in total / (cell.game.delay, 1, 1))
    return linear, FACTOR, tsallis, entropy


def _around(points: Sequence[int], value: int) -> list[tuple[int, float]]:
    """The neighbours of a value among ``points``, and how much each counts."""
    place = float(np.interp(math.log(value), np.log(points), range(len(points))))
    low = min(int(place), len(points) - 2)
    return [(points[low], 1 - (place - low)), (points[low + 1], place - low)]
