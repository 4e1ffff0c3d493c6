"""Standard error × √cost of the estimators without a bias, beside paired differences and the jump tangent.

    python experiments/gradients/unbiased.py [RUNS] [FILE]

27 settings: 2, 5 and 10 arms, delays 0, 5 and 20, each with the paper's, lower and tuned constants of MZS22. Derivative in the
logarithm of ``factor``, T = 500, coins with a gap of .2, 8192 runs by default; all estimators with their control variates. Cost
is processor time over that of a simulation of as many runs, each the least of five calls after a first one that compiles.

FILE, by default unbiased.json beside this script, gets all numbers after each setting. What it has already, with as many runs,
is not measured again: the same command goes on where it was stopped, and prints the tables of docs/appendix/gradient_estimators.md at the end.
"""

import functools
import itertools
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import other_estimators

import jaxbandit as jb

ROUNDS, GAP, CALLS = 500, 0.2, 5
ARMS, DELAYS = (2, 5, 10), (0, 5, 20)
CONSTANTS = {"the paper's (10, 24)": (10.0, 24.0), "lower (1, 1)": (1.0, 1.0), "tuned (.1, .5)": (0.1, 0.5)}
LIBRARY = {
    "paired differences, step .3": {"estimator": "paired"},
    "paired differences, step .1": {"estimator": "paired", "step": 0.1},
    "jump tangent": {"estimator": "jump"},
    "unbiased": {"estimator": "unbiased"},
    "score function": {"estimator": "score"},
}
OTHERS = {
    "measure-valued derivatives": "measure-valued",
    "smoothed perturbation analysis": "smoothed",
    "stochastic AD": "stochastic AD",
}
PAIRED, *MORE, SCORE = LIBRARY
ROWS = [PAIRED, *MORE, *OTHERS, SCORE]
HERE = Path(__file__).parent / "unbiased.json"


def slope_of(row: str, game: tuple[Any, ...], options: dict[str, Any]) -> tuple[float, float]:
    """The derivative in ``factor`` by the estimator of a row, and its standard error."""
    if row in OTHERS:
        return other_estimators.gradient(*game, number="factor", estimator=OTHERS[row], **options)
    found = jb.regret_gradient(*game, only=["factor"], **LIBRARY[row], **options)
    return float(found.gradient.factor), float(found.error.factor)


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a function, and the least processor time of some calls, since other programs may slow one down."""
    result, seconds = function(), []
    for _ in range(CALLS):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return result, min(seconds)


def measured(rows: list[str], runs: int, arms: int, delay: int, constants: str) -> list[dict[str, Any]]:
    """Some rows of one setting."""
    linear, factor = CONSTANTS[constants]
    law, delays = jb.losses.Bernoulli([0.5 - GAP] + [0.5] * (arms - 1)), jb.delays.Fixed(delay)
    game = jb.BestOfBothWorlds(max(delay, 1), linear, factor), law, delays
    options: dict[str, Any] = {"rounds": ROUNDS, "runs": runs, "seed": 0}
    _, simulation = timed(lambda: jb.simulate(*game, record=1, **options))
    found = []
    for row in rows:
        (slope, error), seconds = timed(functools.partial(slope_of, row, game, options))
        cost = seconds / simulation
        scaled = factor * error * math.sqrt(cost * runs / 2048)  # as if 2048 runs had been made
        setting = {"arms": arms, "delay": delay, "constants": constants, "runs": runs, "estimator": row}
        found.append(setting | {"cost": cost, "slope": factor * slope, "error": factor * error, "SE × √cost": scaled})
    return found


def show(found: list[dict[str, Any]]) -> None:
    """SE × √cost for each delay, and ratios to that of paired differences; cells: the paper's / lower / tuned constants."""
    by_setting = {(one["arms"], one["delay"], one["constants"], one["estimator"]): one["SE × √cost"] for one in found}

    def cell(arms: int, delay: int, rows: list[str], over: str = "") -> str:
        """The least of some rows, or its ratio to that of another one."""
        numbers = []
        for constants in CONSTANTS:
            least = min(by_setting[arms, delay, constants, row] for row in rows)
            numbers.append(least / by_setting[arms, delay, constants, over] if over else least)
        return " / ".join(f"{number:.2g}" if number < 100 else f"{number:.0f}" for number in numbers)

    for delay in DELAYS:
        print(f"\n| d = {delay} | cost, in simulations | " + " | ".join(f"K = {arms}" for arms in ARMS) + " |")
        print("|---|---|" + "---|" * len(ARMS))
        for row in ROWS:
            costs = [one["cost"] for one in found if one["delay"] == delay and one["estimator"] == row]
            values = " | ".join(cell(arms, delay, [row]) for arms in ARMS)
            print(f"| {row} | {min(costs):.1f} to {max(costs):.1f} | {values} |")
    groups = {row: [row] for row in ("jump tangent", "unbiased")} | {"the best without a bias": ["unbiased", *OTHERS, SCORE]}
    print(f"\n| K, d; over {PAIRED} | " + " | ".join(groups) + " |")
    print("|---|" + "---|" * len(groups))
    for arms, delay in itertools.product(ARMS, DELAYS):
        print(f"| {arms}, {delay} | " + " | ".join(cell(arms, delay, rows, PAIRED) for rows in groups.values()) + " |")


def main(runs: int, file: Path) -> None:
    found = [one for one in json.loads(file.read_text()) if one.get("runs") == runs] if file.exists() else []
    for setting in itertools.product(ARMS, DELAYS, CONSTANTS):
        done = {one["estimator"] for one in found if (one["arms"], one["delay"], one["constants"]) == setting}
        missing = [row for row in ROWS if row not in done]
        if not missing:
            continue
        found += measured(missing, runs, *setting)
        found.sort(
            key=lambda one: (one["arms"], one["delay"], list(CONSTANTS).index(one["constants"]), ROWS.index(one["estimator"]))
        )
        part = file.with_name(file.name + ".part")
        part.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        os.replace(part, file)
        print(*setting, "measured", flush=True)
    show(found)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", ".*plays nearly uniformly.*")  # so it does, with the paper's constants
    given = sys.argv[1:]
    main(int(given[0]) if given else 8192, Path(given[1]) if len(given) > 1 else HERE)
