"""A second searcher, written without the first: random restarts and coordinate flips of block tables with losses 0 and 1, in NumPy.

    python -m experiments.frontier.second [--cells 1] [--restarts 3] [--flips 300] [--out FILE]

For two learners in the first pre-registered cells: the largest regret of this searcher, on keys that no search used, and W of grid.json.
It shares with jb.worst_case neither the family of tables, nor the gradient, nor the edits.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import jaxbandit as jb
from experiments.frontier.grid import cell_name, delay_model, learners, registered
from experiments.frontier.verdicts import point
from jaxbandit._io.files import write_whole

LEARNERS = ("TaperedFTRL 0.5/0.5", "DEW 4")
FIRST, RUNS, FRESH, RENEW = 32, 256, 2048, 100  # tables of a restart, runs of a comparison, runs of the result, flips on one seed


def searched(learner: Any, cell: dict[str, Any], restarts: int, flips: int) -> np.ndarray:
    """The best table ``[T, K]`` of all restarts."""
    rng, arms, rounds = np.random.default_rng(11), cell["arms"], cell["rounds"]
    found = []
    for restart in range(restarts):
        length = max(int((cell["delay"] + 1) * [1.0, 2.0, 0.5, 4.0, 1.5][restart % 5]), 1)
        shape = (-(-rounds // length), arms)

        def regret(blocks: np.ndarray, seed: int, length: int = length) -> float:
            return mean(learner, np.repeat(blocks, length, 0)[:rounds], cell, RUNS, seed)

        # Half of the first tables are random, half have one arm at loss 0 in each block.
        first = [rng.integers(0, 2, shape).astype(float) for _ in range(FIRST // 2)]
        first += [(rng.integers(arms, size=shape[0])[:, None] != np.arange(arms)).astype(float) for _ in range(FIRST // 2)]
        kept = max(first, key=lambda blocks: regret(blocks, 1000 * restart))
        best = -np.inf
        for flip in range(flips):
            seed = 1000 * restart + 1 + flip // RENEW
            if flip % RENEW == 0:  # other runs, so that the table is not fitted to the arms that some runs happen to draw
                best = regret(kept, seed)
            changed = kept.copy()
            for _ in range(rng.integers(1, 3)):
                block, arm = rng.integers(shape[0]), rng.integers(arms)
                changed[block, arm] = 1 - changed[block, arm]
            now = regret(changed, seed)
            if now >= best:
                best, kept = now, changed
        found.append(np.repeat(kept, length, 0)[:rounds])
    return max(found, key=lambda table: mean(learner, table, cell, RUNS, 77))


def mean(learner: Any, table: np.ndarray, cell: dict[str, Any], runs: int, seed: int) -> float:
    options = {"rounds": cell["rounds"], "runs": runs, "seed": seed, "record": 1}
    return float(jb.simulate(learner, jb.losses.Table(table), delay_model(cell), **options).regret[-1].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("cells", 1), ("restarts", 3), ("flips", 300)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    stored = json.loads((Path(__file__).parent / "grid.json").read_text())
    rows = []
    for cell in registered()["cells"][: arguments.cells]:
        for name in LEARNERS:
            begun, learner = time.process_time(), learners(cell)[name]
            table = searched(learner, cell, arguments.restarts, arguments.flips)
            row = {"cell": cell_name(cell), "learner": name, "second": mean(learner, table, cell, FRESH, 5001)}
            row |= {"W": point(stored[cell_name(cell)][name])[2], "seconds": time.process_time() - begun}
            rows.append(row)
            print(f"{row['cell']:16s}{name:22s} second searcher {row['second']:.1f}, W {row['W']:.1f}", flush=True)
    if arguments.out:
        write_whole(arguments.out, json.dumps(rows, indent=1).encode())


if __name__ == "__main__":
    main()
