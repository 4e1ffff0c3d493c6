"""A second searcher, written without the first: random restarts and flips of single blocks, losses 0 and 1, two arms.

    python -m experiments.frontier.second --out FOLDER [--flips 300]

Prints for some learners of FOLDER/results.json the largest regret of either searcher, on keys that neither used.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import jaxbandit as jb
from experiments.frontier.curves import curves

LEARNERS = (("DEW", "scale 4"), ("TaperedFTRL, p = 0.5", "κ = 0.5"), ("Delayed Exp3", "scale 2"))
RESTARTS, RUNS = 24, 512


def searched(learner: Any, delay: int, rounds: int, flips: int) -> np.ndarray:
    rng, waits = np.random.default_rng(11), jb.delays.Fixed(delay)

    def regret(blocks: np.ndarray, length: int) -> float:
        table = np.repeat(blocks, length, 0)[:rounds]
        return float(
            jb.simulate(learner, jb.losses.Table(table), waits, rounds=rounds, runs=RUNS, seed=21, record=1).regret[-1].mean()
        )

    best, kept, length = -np.inf, np.zeros((0, 2)), 1
    for _ in range(RESTARTS):
        size = int((delay + 1) * rng.choice([0.5, 1, 1.5, 2, 4]))
        first = rng.integers(0, 2, -(-rounds // size))
        blocks = np.stack([first, 1 - first], 1).astype(float)
        found = regret(blocks, size)
        if found > best:
            best, kept, length = found, blocks, size
    for _ in range(flips):
        changed = kept.copy()
        place = rng.integers(len(kept), size=rng.integers(1, 4))
        changed[place] = rng.integers(0, 2, (len(place), 2))
        found = regret(changed, length)
        if found > best:
            best, kept = found, changed
    return np.repeat(kept, length, 0)[:rounds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--flips", type=int, default=300)
    arguments = parser.parse_args()
    done = json.loads((arguments.out / "results.json").read_text())
    given = done["setting"]
    for curve, point in LEARNERS:
        learner = curves(given["delay"], given["rounds"])[curve].points[point]
        table = searched(learner, given["delay"], given["rounds"], arguments.flips)
        fresh = jb.simulate(
            learner, jb.losses.Table(table), jb.delays.Fixed(given["delay"]), rounds=given["rounds"], runs=2048, seed=22, record=1
        )
        first = max((row["W"] for row in done["rows"] if (row["curve"], row["point"]) == (curve, point)), default=float("nan"))
        print(f"{curve}, {point}: second searcher {fresh.regret[-1].mean():.0f}, first {first:.0f}", flush=True)


if __name__ == "__main__":
    main()
