"""Search for the loss sequence that forces the most regret on each algorithm of the playground's adversary mode.

``python -m experiments.playground.search`` writes ``docs/playground/adversaries.js`` (about two minutes on two cores).

The environment is that of the playground: two arms, 300 rounds, every observation delayed by 20 rounds; in each round one arm has
loss 0 and the other loss 1. A hill climb moves, inserts and removes the rounds at which the good arm changes; it starts from the
best of several periodic sequences. The regret of the sequence found is then measured on runs that the search has not used.
"""

import json
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

import jaxbandit as jb

ROUNDS, DELAY, ARMS = 300, 20, 2
SEARCH_RUNS, FRESH_RUNS, STEPS, CLIMBS = 256, 4096, 600, 3
TARGET = Path(__file__).parents[2] / "docs" / "playground" / "adversaries.js"


def learners() -> dict[str, object]:
    """The algorithms of the playground, by their keys in ``jb.plots.ALGORITHMS``."""
    return {
        "bobw": jb.BestOfBothWorlds(max_delay=DELAY),
        "bobw-1-1": jb.BestOfBothWorlds(max_delay=DELAY, linear=1.0, factor=1.0),
        "zimmert-seldin": jb.ZimmertSeldin(),
        "delayed-exp3": jb.DelayedExp3(),
        "tsallis-inf": jb.TsallisINF(),
        "ucb1": jb.DelayedUCB1(),
        "thompson": jb.DelayedThompson(),
        "uniform": jb.Uniform(),
    }


def good_arms(switches: np.ndarray) -> np.ndarray:
    """``[ROUNDS]`` the arm with loss 0; the good arm changes before each round in ``switches`` (counted from 0)."""
    changes = np.zeros(ROUNDS, int)
    changes[switches] = 1
    return np.cumsum(changes) % ARMS


def losses(good: np.ndarray) -> jb.losses.Table:
    return jb.losses.Table(1.0 - np.eye(ARMS)[good])


def regret(learner: object, good: np.ndarray, runs: int, seed: int) -> tuple[float, float]:
    """Mean regret after the last round, and its standard error."""
    key = jax.random.key(seed)
    result = jb.simulate(learner, losses(good), jb.delays.Fixed(DELAY), rounds=ROUNDS, runs=runs, key=key, record=1)
    estimate = result.estimate()
    return float(estimate.mean[-1]), float(estimate.error[-1])


def moved(rng: np.random.Generator, switches: np.ndarray) -> np.ndarray:
    """A neighbour: one switch moved, removed or inserted, or two inserted close to each other."""
    kind = rng.integers(4) if len(switches) else 2
    if kind == 0:
        switches = switches.copy()
        switches[rng.integers(len(switches))] += rng.integers(-15, 16)
    elif kind == 1:
        switches = np.delete(switches, rng.integers(len(switches)))
    else:
        first = rng.integers(1, ROUNDS)
        switches = np.append(switches, [first, first + rng.integers(5, 60)][: kind - 1])
    values, counts = np.unique(np.clip(switches, 1, ROUNDS - 1), return_counts=True)
    return values[counts % 2 == 1]  # two switches at one round cancel


def search(score: Callable[[np.ndarray], float], steps: int, seed: int) -> np.ndarray:
    """The switches of the best sequence found."""
    rng = np.random.default_rng(seed)
    periods = [
        np.arange(first, ROUNDS, period) for period in (21, 30, 40, 50, 60, 80, 100, 150) for first in (period // 2, period)
    ]
    starts = [np.array([], int), *periods]
    values = [score(good_arms(start)) for start in starts]
    best, most = starts[int(np.argmax(values))], max(values)
    for _ in range(steps):
        tried = moved(rng, best)
        value = score(good_arms(tried))
        if value > most:
            best, most = tried, value
    return best


def main() -> None:
    found = {}
    for name, learner in learners().items():

        def score(good: np.ndarray, learner: object = learner) -> float:
            return regret(learner, good, SEARCH_RUNS, seed=1)[0]

        climbs = [search(score, STEPS, seed) for seed in range(CLIMBS)]
        switches = max(climbs, key=lambda switches: score(good_arms(switches)))
        mean, error = regret(learner, good_arms(switches), FRESH_RUNS, seed=2)
        found[name] = {"switches": [int(at) for at in switches], "regret": round(mean, 2), "error": round(error, 3)}
        print(f"{name:16} regret {mean:7.2f} ± {error:.2f}, {len(switches)} switches", flush=True)
    text = ",\n".join(f'  "{name}": {json.dumps(one)}' for name, one in found.items())
    TARGET.write_text(
        "// Written by `python -m experiments.playground.search`: the switches of the worst sequence found for each algorithm,\n"
        f"// and its mean regret with standard error over {FRESH_RUNS} runs of the library.\n"
        f"const SEARCHED = {{ rounds: {ROUNDS}, delay: {DELAY}, arms: {ARMS}, adversaries: {{\n{text},\n}} }};\n"
    )


if __name__ == "__main__":
    main()
