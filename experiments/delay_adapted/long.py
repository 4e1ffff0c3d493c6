"""The same comparison at a longer horizon, on a family of loss tables: ``nice -n 15 python -m experiments.delay_adapted.long --out DIR``.

:func:`jaxbandit.worst_case` searches tables of some hundred rounds. Here the search is over tables with few parameters: two arms that alternate,
arms that change places once, and bursts of losses on the best arm. The adversary of a variant is the table with its largest regret, chosen
on some runs and evaluated on others.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

import jaxbandit as jb
from jaxbandit.results.tables import markdown_table

ROUNDS, DELAY, ARMS, RUNS = 10_000, 100, 3, 256
TOTAL = sum(min(DELAY, ROUNDS - t) for t in range(1, ROUNDS + 1))
ESTIMATORS = ("iw", "delay-adapted")
LEARNERS = {
    "Delayed Exp3": lambda one: jb.DelayedExp3(estimator=one),
    "DEW, scale 4": lambda one: jb.DelayedExponentialWeights(ROUNDS, TOTAL, DELAY, 4.0, estimator=one),
    "Tsallis-INF": lambda one: jb.TsallisINF(one),
    "ZS20": lambda one: jb.ZimmertSeldin(estimator=one),
    "MZS22 (1, 1)": lambda one: jb.BestOfBothWorlds(DELAY, 1.0, 1.0, estimator=one),
}


def family() -> dict[str, np.ndarray]:
    """Tables ``[T, K]`` by name."""
    t = np.arange(ROUNDS)

    def table(first, second):
        return np.stack([first, second, *[np.ones(ROUNDS)] * (ARMS - 2)], 1).astype(np.float32)

    found = {}
    for share in (0.5, 1, 2, 4, 8, 16):
        odd = (t // int(share * DELAY)) % 2 == 1
        found[f"alternating every {share:g} delays"] = table(odd, ~odd)
    for share in (0.1, 0.2, 0.3, 0.4, 0.45):
        late = t >= share * ROUNDS
        found[f"reversal after {share:.0%}"] = table(late, ~late)
        found[f"improvement after {share:.0%}"] = table(np.full(ROUNDS, 0.5), ~late)
    for length in (0.5, 1, 2):
        burst = t % (5 * DELAY) < length * DELAY
        found[f"bursts of {length:g} delays"] = table(burst, np.full(ROUNDS, 0.5))
    return found


def regrets(learner, table: np.ndarray, first_run: int) -> np.ndarray:
    """The final regret of each run; run i has the same random numbers for all learners and tables."""
    game = (learner, jb.losses.Table(table), jb.delays.Fixed(DELAY))
    return jb.simulate(*game, rounds=ROUNDS, runs=RUNS, first_run=first_run, seed=1, record=1).regret[-1].astype(np.float64)


def measure(name: str, make, tables: dict[str, np.ndarray]) -> dict:
    chosen = {one: {label: regrets(make(one), table, 0).mean() for label, table in tables.items()} for one in ESTIMATORS}
    worst = {one: max(chosen[one], key=lambda label, one=one: chosen[one][label]) for one in ESTIMATORS}
    rows = []
    for one in ESTIMATORS:
        weighted, adapted = (regrets(make(variant), tables[worst[one]], RUNS) for variant in ESTIMATORS)
        apart = adapted - weighted
        half = 1.96 * apart.std(ddof=1) / np.sqrt(RUNS)
        rows.append(
            {"worst for": one, "table": worst[one], "iw": weighted.mean(), "adapted": adapted.mean()}
            | {"difference": apart.mean(), "half": half}
        )
    differences = {label: chosen["delay-adapted"][label] - chosen["iw"][label] for label in tables}
    return {"learner": name, "rows": rows, "differences": differences, "regrets": chosen}


def page(found: list[dict]) -> str:
    """A row for each worst table: one where both variants have the same."""
    cells = []
    for one in found:
        least, most = min(one["differences"].values()), max(one["differences"].values())
        for row in one["rows"][: len({row["table"] for row in one["rows"]})]:
            whose = "both" if one["rows"][0]["table"] == one["rows"][1]["table"] else row["worst for"]
            apart = f"{row['difference']:+.0f} ± {row['half']:.0f}"
            cells.append(
                [
                    one["learner"],
                    f"{row['table']} ({whose})",
                    f"{row['iw']:.0f}",
                    f"{row['adapted']:.0f}",
                    apart,
                    f"{least:+.0f} to {most:+.0f}",
                ]
            )
    heads = ["learner", "worst losses (for)", "iw", "delay-adapted", "paired difference, 95%", "differences on all losses"]
    return markdown_table(heads, cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--learners", nargs="*", default=list(LEARNERS))
    arguments = parser.parse_args()
    tables, found = family(), []
    for name in arguments.learners:
        found.append(measure(name, LEARNERS[name], tables))
        print(page(found[-1:]), f"{time.process_time():.0f} s of processor time", flush=True)
        about = {"rounds": ROUNDS, "delay": DELAY, "arms": ARMS, "runs": RUNS, "tables": len(tables)}
        (arguments.out / "long.json").write_text(json.dumps({"settings": about, "found": found}, indent=1) + "\n")
        (arguments.out / "long.md").write_text(page(found) + "\n")


if __name__ == "__main__":
    main()
