"""Delay-adapted against importance-weighted estimates: ``nice -n 15 python -m experiments.delay_adapted --out DIR``.

Each learner has two variants, which differ in the estimator alone. For each variant :func:`jaxbandit.worst_case` searches a loss table. The
search for one variant starts from the table that was found for the other, in both orders, so that gradients, which only the
importance-weighted variant has, do not favour one side. Both variants are then simulated on both tables, under delay-matched switching and
under stochastic losses, with common random numbers.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

import jaxbandit as jb
from jaxbandit.results.tables import markdown_table

ROUNDS, DELAY, ARMS, RUNS = 400, 20, 3, 2048
TOTAL = sum(min(DELAY, ROUNDS - t) for t in range(1, ROUNDS + 1))
ESTIMATORS = ("iw", "delay-adapted")
LEARNERS = {
    "Delayed Exp3": lambda one: jb.DelayedExp3(estimator=one),
    "DEW, scale 4": lambda one: jb.DelayedExponentialWeights(ROUNDS, TOTAL, DELAY, 4.0, estimator=one),
    "Tsallis-INF": lambda one: jb.TsallisINF(one),
    "ZS20": lambda one: jb.ZimmertSeldin(estimator=one),
    "MZS22 (1, 1)": lambda one: jb.BestOfBothWorlds(DELAY, 1.0, 1.0, estimator=one),
}
STOCHASTIC = {
    "stochastic, gap 0.2": jb.losses.Bernoulli([0.4, 0.6, 0.6]),
    "stochastic, gap 0.6": jb.losses.Bernoulli([0.2, 0.8, 0.8]),
    "delay-matched switching": jb.losses.DelayMatchedSwitching(DELAY, ARMS),
}


def simulated(learner, losses) -> np.ndarray:
    """The final regret of each run; run i has the same random numbers for all learners and losses."""
    result = jb.simulate(learner, losses, jb.delays.Fixed(DELAY), rounds=ROUNDS, runs=RUNS, seed=1, record=1)
    return result.regret[-1].astype(np.float64)


def searched(make) -> dict[str, jb.losses.Table]:
    """The worst table found for each variant, each search started from the other's table."""
    options = {"delays": jb.delays.Fixed(DELAY), "num_arms": ARMS, "rounds": ROUNDS, "budget": 1, "runs": 256}
    first = jb.worst_case(make("iw"), **options)
    adapted = jb.worst_case(make("delay-adapted"), starts=[first.table], seed=1, **options)
    weighted = jb.worst_case(make("iw"), starts=[adapted.table], seed=2, **options)
    return {"iw": weighted.table, "delay-adapted": adapted.table}


def row(name: str, make, losses) -> dict:
    """Mean regrets of both variants and their paired difference with its 95% interval."""
    weighted, adapted = (simulated(make(one), losses) for one in ESTIMATORS)
    apart = adapted - weighted
    error = apart.std(ddof=1) / np.sqrt(RUNS)
    return {"losses": name, "iw": weighted.mean(), "adapted": adapted.mean(), "difference": apart.mean(), "half": 1.96 * error}


def measure(name: str, make) -> list[dict]:
    tables = {f"table searched for {one}": table for one, table in searched(make).items()}
    rows = [row(label, make, losses) for label, losses in {**tables, **STOCHASTIC}.items()]
    for found in rows:
        found |= {"learner": name}
    return rows


def page(rows: list[dict]) -> str:
    cells = [
        [
            one["learner"],
            one["losses"],
            f"{one['iw']:.1f}",
            f"{one['adapted']:.1f}",
            f"{one['difference']:+.1f} ± {one['half']:.1f}",
        ]
        for one in rows
    ]
    return markdown_table(["learner", "losses", "iw", "delay-adapted", "paired difference, 95%"], cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--learners", nargs="*", default=list(LEARNERS))
    arguments = parser.parse_args()
    about, rows = {"rounds": ROUNDS, "delay": DELAY, "arms": ARMS, "runs": RUNS}, []
    for name in arguments.learners:
        rows += measure(name, LEARNERS[name])
        print(page(rows[-5:]), f"{time.process_time():.0f} s of processor time", flush=True)
        (arguments.out / "results.json").write_text(json.dumps({"settings": about, "rows": rows}, indent=1) + "\n")
        (arguments.out / "table.md").write_text(page(rows) + "\n")


if __name__ == "__main__":
    main()
