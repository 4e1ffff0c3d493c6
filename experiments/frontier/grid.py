"""The pre-registered settings: for each cell and learner the stochastic regret S, the largest regret found W, and held-out tables.

    python -m experiments.frontier.grid --out FOLDER [--budget 1] [--minutes 60] [--larger]

Reads preregistered.toml. One JSON file for each cell and learner; what is in FOLDER is not computed again. No cell begins, and no search
within a cell, after ``--minutes`` of processor time. ``--larger``: the larger search of the file instead.
"""

import argparse
import json
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

import jaxbandit as jb
from experiments.frontier.curves import InflatedThompson
from experiments.frontier.heldout import held_out
from experiments.frontier.searches import slug
from jaxbandit._io.files import write_whole
from jaxbandit.adversary.tables import Tables

FEW = 64  # runs of each table when the largest of several is selected


def registered() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "preregistered.toml").read_text())


def learners(cell: dict[str, Any]) -> dict[str, Any]:
    """The learners of a cell by the names of the file."""
    delay, rounds = cell["delay"], cell["rounds"]
    made = {
        "TaperedFTRL 0.5/0.5": jb.TaperedFTRL(rounds),
        "TaperedFTRL 0.8/0.75": jb.TaperedFTRL(rounds, robustness=0.8, power=0.75),
        **{f"DEW {scale}": jb.DelayedExponentialWeights(rounds, delay * rounds, 0, scale) for scale in (4, 3)},
        "Delayed Exp3 2": jb.DelayedExp3(2),
        "MZS22 without constants 0.45": jb.BestOfBothWorlds(0, linear=0.0, factor=0.0, tsallis_scale=0.54, entropy_scale=0.45),
        "ZS20 0.5": jb.ZimmertSeldin(tsallis_scale=0.5, entropy_scale=0.5),
        "Tsallis-INF": jb.TsallisINF(),
        "Thompson": jb.DelayedThompson(),
        "Thompson 0.1": InflatedThompson(share=0.1),
    }
    return {name: made[name] for name in registered()["learners"]}


def delay_model(cell: dict[str, Any]) -> Any:
    return jb.delays.Geometric(float(cell["delay"])) if cell.get("delays") == "geometric" else jb.delays.Fixed(cell["delay"])


def cell_name(cell: dict[str, Any]) -> str:
    return f"K{cell['arms']}_d{cell['delay']}_T{cell['rounds']}" + ("_geometric" if "delays" in cell else "")


def regret(learner: Any, losses: Any, cell: dict[str, Any], runs: int, seed: int) -> np.ndarray:
    options = {"rounds": cell["rounds"], "runs": runs, "seed": seed, "record": 1}
    return jb.simulate(learner, losses, delay_model(cell), **options).regret[-1].astype(float)


def measured(values: np.ndarray) -> list[float]:
    """Mean and standard error."""
    return [float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))]


def largest(learner: Any, tables: dict[str, np.ndarray], cell: dict[str, Any], runs: int, seed: int) -> dict[str, Any]:
    """The table with the largest regret, selected on few runs, measured on others."""
    which = np.repeat(np.arange(len(tables)), FEW)
    all_at_once = Tables(np.stack(list(tables.values()), 1).astype(np.float32), which)
    few = regret(learner, all_at_once, cell, len(which), seed).reshape(-1, FEW).mean(1)
    three = [list(tables)[place] for place in np.argsort(-few)[:3]]
    chosen = max(three, key=lambda one: regret(learner, jb.losses.Table(tables[one]), cell, 512, seed + 1).mean())
    return {"table": chosen, "W": measured(regret(learner, jb.losses.Table(tables[chosen]), cell, runs, seed + 2))}


def larger(out: Path, plan: dict[str, Any]) -> None:
    """The larger search: all tables of the cell as starts, other seeds."""
    later = plan["later"]
    cell = later["larger_cell"]
    folder = out / cell_name(cell)
    starts = [np.load(file) for file in sorted(folder.glob("*.npy"))]
    for name in later["larger_learners"]:
        options = {"budget": later["larger_budget"], "seed": plan["seed"] + 900, "starts": starts, "runs": plan["runs"]}
        found = jb.worst_case(learners(cell)[name], delay_model(cell), cell["arms"], cell["rounds"], **options)
        row = {"learner": name, "W": [found.regret, found.error], "by epoch": found.by_epoch.tolist()}
        print(json.dumps(row), flush=True)
        write_whole(out / f"larger_{slug(name, '')}.json", json.dumps(row, indent=1).encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=int, default=None, help="epochs of each search; that of the file if left out")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of processor time")
    parser.add_argument("--larger", action="store_true", help="the larger search in one cell; needs the tables of that cell")
    arguments = parser.parse_args()
    plan = registered()
    if arguments.larger:
        return larger(arguments.out, plan)
    budget = arguments.budget or plan["budget"]
    for place, cell in enumerate(plan["cells"]):
        folder = arguments.out / cell_name(cell)
        folder.mkdir(parents=True, exist_ok=True)
        seed = plan["seed"] + place
        for name, learner in learners(cell).items():
            file = folder / f"{slug(name, '')}.json"
            if file.exists():
                continue
            if time.process_time() > 60 * arguments.minutes:
                return
            begun = time.process_time()
            found = jb.worst_case(
                learner, delay_model(cell), cell["arms"], cell["rounds"], budget=budget, seed=seed, runs=plan["runs"]
            )
            np.save(file.with_suffix(".npy"), np.asarray(found.table.losses))
            row = {"learner": name, "cell": cell, "budget": budget, "own": [found.regret, found.error]}
            for gap in plan["gaps"]:
                means = [(1 - gap) / 2] + [(1 + gap) / 2] * (cell["arms"] - 1)
                row[f"S {gap}"] = measured(regret(learner, jb.losses.Bernoulli(means), cell, plan["runs"], seed + 500))
            row["seconds"] = time.process_time() - begun
            write_whole(file, json.dumps(row, indent=1).encode())
            print(f"{cell_name(cell):22s}{name:30s} W {found.regret:7.1f}  {row['seconds']:5.0f} s", flush=True)
        tables = {file.stem: np.load(file) for file in sorted(folder.glob("*.npy"))}
        for name, learner in learners(cell).items():
            file = folder / f"{slug(name, '')}.json"
            row = json.loads(file.read_text())
            if row.get("of") == len(tables):
                continue
            row["others"] = largest(learner, tables, cell, plan["runs"], seed + 600)
            row["held out"] = largest(learner, held_out(cell), cell, plan["runs"], seed + 700)
            row["of"] = len(tables)
            write_whole(file, json.dumps(row, indent=1).encode())


if __name__ == "__main__":
    main()
