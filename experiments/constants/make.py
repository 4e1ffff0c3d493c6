"""The table of constants that a practitioner copies from: docs/constants.md with its figure.

    python experiments/constants/make.py [PROCESSES]          # about ten minutes of processor time (an estimate); goes on where it was stopped

Files beside this one: ``surfaces.json`` (regret over two constants, for each game of the grid), ``trial.json`` (copied constants against
those tuned for the very game), ``rows.json`` (each row beside the paper's constants). Remove them to recompute everything; with all there, only the page is written.
"""

import concurrent.futures
import json
import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import page
from games import ARMS, DELAYS, HORIZONS, REGIMES, TRIALS, Cell, Game, games
from surfaces import surface
from table import PAPER, Row, copied, rule, table
from trial import beside, crossed, trial

from jaxbandit._io.files import write_whole

HERE = Path(__file__).parent
PROCESSES = int(sys.argv[1]) if len(sys.argv) > 1 else os.cpu_count()
# What the trial is judged by: regret at the copied constants over that of constants tuned for the very game, in how many of the cells
# of the first two kinds. Written before the trial was run.
LIMIT, SHARE = 1.02, 0.9


def kept(file: Path, jobs: dict[str, tuple[Callable, tuple]]) -> dict[str, Any]:
    """What each job returns, by name; those that the file has are not done again, and it is written after each."""
    known = json.loads(file.read_text()) if file.exists() else {}
    with concurrent.futures.ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(what, *of): name for name, (what, of) in jobs.items() if name not in known}
        for job in concurrent.futures.as_completed(running):
            known[running[job]] = job.result()
            write_whole(file, json.dumps(dict(sorted(known.items()))).replace('], "', '],\n "').replace('}, "', '},\n "'))
            print(f"{file.stem}: {running[job]}", flush=True)
    return {name: known[name] for name in jobs}


def main() -> None:
    rows = table(kept(HERE / "surfaces.json", {str(game): (surface, (game,)) for game in games(ARMS, DELAYS)}))
    tried = [cell for cells in TRIALS.values() for cell in cells]
    candidates = {
        str(cell): {"table": list(copied(cell, rows)), "rule": [float(f"{one:.3g}") for one in rule(cell)]} for cell in tried
    }
    jobs: dict[str, tuple[Callable, tuple]] = {str(cell): (trial, (cell, candidates[str(cell)])) for cell in tried}
    middle = [Cell(Game(regime, 4, 16), 3000) for regime in REGIMES]
    jobs["crossed"] = crossed, (middle, [list(PAPER), *(list(rule(cell)) for cell in middle)])
    tried_out = kept(HERE / "trial.json", jobs)
    beside_paper = kept(HERE / "rows.json", {str(game): (beside, (game, _constants(game, rows))) for game in games(ARMS, DELAYS)})
    page.write(rows, beside_paper, tried_out, LIMIT, SHARE)


def _constants(game: Game, rows: dict[str, Row]) -> dict[int, list[float]]:
    return {rounds: list(copied(Cell(game, rounds), rows)) for rounds in HORIZONS}


if __name__ == "__main__":
    main()
