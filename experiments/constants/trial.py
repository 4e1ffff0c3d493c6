"""Copied constants against constants tuned for the very game, on runs that neither has seen."""

import warnings
from typing import Any

import numpy as np
import optax
from games import Cell, Game
from surfaces import played
from table import PAPER

import jaxbandit as jb
from jaxbandit.results.statistics import increments, intercepts

NAMES = ("linear", "factor", "tsallis_scale", "entropy_scale")
START = (10.0, 1.0, 0.4, 0.1)  # the same for all, nobody's row
STEPS, RATE = 28, 0.5
TUNING, LAST = 1, 3  # seeds; the surfaces have 0
STEP, TRIAL = 800_000, 9_000_000  # rounds, over all runs, of a step of the tuning and of the last simulations


def tuned(cell: Cell) -> list[float]:
    """All four constants, by ``jb.tune``."""
    warnings.simplefilter("ignore")
    found = jb.tune(
        jb.BestOfBothWorlds(cell.game.delay, *START),
        cell.game.losses,
        jb.delays.Fixed(cell.game.delay),
        rounds=cell.rounds,
        seed=TUNING,
        steps=STEPS,
        runs=min(max(STEP // cell.rounds // 64 * 64, 128), 512),
        optimizer=optax.adam(optax.cosine_decay_schedule(RATE, STEPS)),
        only=NAMES,
        fresh_runs=16,
        audit=False,
    ).values()
    return [float(f"{found[name]:.3g}") for name in NAMES]


def trial(cell: Cell, candidates: dict[str, list[float]]) -> dict[str, Any]:
    """Regret of the paper's constants, of the candidates and of those tuned for the cell, and their ratios to the last."""
    every = {"paper": list(PAPER), **candidates, "tuned": tuned(cell)}
    runs = max(TRIAL // cell.rounds // 256 * 256, 1024)
    results = {name: played(cell.game, one, (cell.rounds,), runs=runs, seed=LAST) for name, one in every.items()}
    regret = {name: _estimate(one) for name, one in results.items()}
    # Both sides of a difference meet the same random numbers, which makes it more certain than the two regrets.
    apart = {name: _estimate(results[name], results["tuned"]) for name in candidates}
    level = regret["tuned"][0]
    ratio = {name: (1 + difference / level, error / level) for name, (difference, error) in apart.items()}
    return {"constants": every, "regret": _rounded(regret), "ratio": _rounded(ratio)}


def beside(game: Game, rows: dict[int, list[float]]) -> dict[str, list[list[float]]]:
    """By horizon, regret and error of the row's constants and of the paper's, on fresh runs."""
    paper = played(game, PAPER, tuple(rows), runs=512, seed=LAST).estimate()
    found = {}
    for rounds, one in rows.items():
        own = played(game, one, (rounds,), runs=512, seed=LAST)
        at = int(np.searchsorted(paper.rounds, rounds))
        found[str(rounds)] = list(_rounded({"row": _estimate(own), "paper": (paper.mean[at], paper.error[at])}).values())
    return found


def crossed(cells: list[Cell], constants: list[list[float]]) -> list[list[list[float]]]:
    """Regret and error of each of the constants (rows) in each of the cells (columns)."""
    runs = max(TRIAL // cells[0].rounds // 256 * 256, 1024)
    return [
        list(
            _rounded(
                {str(cell): _estimate(played(cell.game, row, (cell.rounds,), runs=runs, seed=LAST)) for cell in cells}
            ).values()
        )
        for row in constants
    ]


def _estimate(one: jb.Result, less: jb.Result | None = None) -> tuple[float, float]:
    """The mean of the final regret, or of its difference to another's, and its error, by control variates."""
    row = one.regret[-1].astype(np.float64) - (0 if less is None else less.regret[-1])
    features = [each.measured["control_variates"] for each in (one, less) if each is not None]
    mean, error = intercepts(row[None], increments(np.concatenate(features, 1), one.rounds))
    return float(mean[0]), float(error[0])


def _rounded(pairs: dict[str, tuple[float, float]]) -> dict[str, list[float]]:
    return {name: [float(f"{one:.5g}") for one in pair] for name, pair in pairs.items()}
