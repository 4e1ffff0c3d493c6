"""Four times the search of the figure, from the tables found for all learners, for the learners whose order matters.

python -m experiments.frontier.larger --out FOLDER [--budget 4]
"""

import argparse
import concurrent.futures
import json
import multiprocessing
from pathlib import Path

import numpy as np

import jaxbandit as jb
from experiments.frontier.curves import curves

LEARNERS = (
    ("DEW", "scale 4"),
    ("TaperedFTRL, p = 0.5", "κ = 0.5"),
    ("DEW", "scale 3"),
    ("TaperedFTRL, p = 0.75", "κ = 0.8"),
    ("Delayed Exp3", "scale 2"),
)


def one(out: Path, arms: int, delay: int, rounds: int, budget: int, curve: str, point: str) -> str:
    learner = curves(delay, rounds)[curve].points[point]
    starts = [np.load(file) for file in sorted(out.glob("*.npy"))]
    found = jb.worst_case(learner, jb.delays.Fixed(delay), arms, rounds, budget=budget, seed=5, starts=starts)
    return f"{curve}, {point}: {found.regret:.0f} ± {found.error:.1f}; by epoch {', '.join(f'{w:.0f}' for w in found.by_epoch)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=int, default=4)
    arguments = parser.parse_args()
    given = json.loads((arguments.out / "results.json").read_text())["setting"] | {"budget": arguments.budget}
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        waiting = [pool.submit(one, arguments.out, *given.values(), *which) for which in LEARNERS]
        for future in concurrent.futures.as_completed(waiting):
            print(future.result(), flush=True)


if __name__ == "__main__":
    main()
