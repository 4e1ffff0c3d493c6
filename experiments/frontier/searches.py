"""The search for one learner, in a process of its own."""

import time
from pathlib import Path
from typing import Any

import numpy as np

import jaxbandit as jb
from experiments.frontier.curves import curves

RUNS = 2048
GAP = 0.2


def one_search(out: Path, arms: int, delay: int, rounds: int, budget: int, curve: str, point: str, stage: int) -> dict[str, Any]:
    """One learner: stage 1 searches its worst table and keeps it in a file, stage 2 plays the tables found for all learners."""
    begun = time.process_time()
    learner, delays = curves(delay, rounds)[curve].points[point], jb.delays.Fixed(delay)
    if stage == 1:
        found = jb.worst_case(learner, delays, arms, rounds, budget=budget, runs=RUNS)
        np.save(out / f"{slug(curve, point)}.npy", np.asarray(found.table.losses))
        worst, error, history = found.regret, found.error, [step._asdict() for step in found.history]
    else:
        worst, error, history = *best_of_all(learner, delays, rounds, out), []
    losses = jb.losses.Bernoulli([0.5 - GAP / 2] + [0.5 + GAP / 2] * (arms - 1))
    stochastic = jb.simulate(learner, losses, delays, rounds=rounds, runs=RUNS, seed=99, record=1).regret[-1].astype(float)
    return {
        "curve": curve,
        "point": point,
        "stage": stage,
        "S": float(stochastic.mean()),
        "S error": float(stochastic.std(ddof=1) / np.sqrt(RUNS)),
        "W": worst,
        "W error": error,
        "history": history,
        "seconds": time.process_time() - begun,  # of the processor, with compilation
    }


def best_of_all(learner: Any, delays: Any, rounds: int, out: Path) -> tuple[float, float]:
    """The largest mean regret over all searched tables, and its standard error; selected and measured on different keys."""
    tables = [jb.losses.Table(np.load(file)) for file in sorted(out.glob("*.npy"))]

    def regret(table: Any, runs: int, seed: int) -> np.ndarray:
        return jb.simulate(learner, table, delays, rounds=rounds, runs=runs, seed=seed, record=1).regret[-1].astype(float)

    worst = max(tables, key=lambda table: regret(table, 512, 7).mean())
    found = regret(worst, RUNS, 8)
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(RUNS))


def slug(curve: str, point: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in f"{curve} {point}")
