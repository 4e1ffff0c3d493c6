"""How many 95 % intervals of the jump tangent hold its mean, in thirteen settings: the first fresh task of each learner.

    python experiments/gradients/coverage.py [FILE]

100 groups of 160 runs each, with and without control variates; the mean is told by all 16 000 runs. Two standard errors of a share of 100 are
4.4 %. FILE, by default coverage.json beside this script, gets the numbers.
"""

import json
import sys
from pathlib import Path

import jax
import numpy as np
from fresh_tasks import ROUNDS, cases

import jaxbandit as jb
from jaxbandit._core.fields import canonical
from jaxbandit._engine.blocks import execution_for
from jaxbandit._engine.player import Player
from jaxbandit._engine.set_up import checked_game
from jaxbandit._io.progress import Progress
from jaxbandit.gradients import estimators, programs
from jaxbandit.gradients.numbers import chosen
from jaxbandit.results.statistics import increments, intercept, student_quantile

GROUPS, RUNS = 100, 160
HERE = Path(__file__).parent / "coverage.json"


def per_run(law, delays, learner, name) -> programs.PerRun:
    """The jump tangent of every run, and its control variates."""
    game, _ = checked_game(
        learner,
        law,
        delays,
        rounds=ROUNDS,
        key=jax.random.key(2),
        runs=GROUPS * RUNS,
        first_run=0,
        measure=(jb.ControlVariates(),),
    )
    (number,) = chosen({"learner": canonical(learner)}, [name])
    record = estimators.log_spaced(ROUNDS, estimators.RECORDED).astype(np.int32)
    execution = execution_for(game, differentiable=True)
    hook = estimators.feedback_of("jump", ROUNDS)
    work = programs.Work(game, Player(hook=hook, execution=execution), execution.block, ROUNDS, Progress(False, 0, ""))
    return programs.over_blocks(programs.forward, work, record, which=(number.place,))


def coverage(values: np.ndarray, features: np.ndarray | None, rounds: np.ndarray) -> float:
    """The share of groups whose interval holds the mean of all."""

    def fit(own: slice) -> tuple[float, float, int]:
        return intercept(values[own], None if features is None else increments(features[..., own], rounds))

    truth = fit(slice(None))[0]
    fits = [fit(slice(first, first + RUNS)) for first in range(0, GROUPS * RUNS, RUNS)]
    return float(np.mean([abs(mean - truth) < student_quantile(freedom) * error for mean, error, freedom in fits]))


def main(file: Path) -> None:
    found = {}
    print("| setting | without control variates | with |\n|---|---|---|")
    for label, *case in cases():
        if label.split(":")[0].endswith(".0"):
            out = per_run(*case)
            values = out.gradient[0].reshape(-1).astype(np.float64)
            found[label] = [coverage(values, features, np.asarray(out.rounds)) for features in (None, out.features)]
            print(f"| {label} | " + " | ".join(f"{100 * share:.0f} %" for share in found[label]) + " |", flush=True)
            file.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
