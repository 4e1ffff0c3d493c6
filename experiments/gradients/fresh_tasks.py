"""The jump tangent against brute-force differences on tasks that had no part in choosing anything about it.

    python experiments/gradients/fresh_tasks.py [RUNS] [FILE] [ROWS]

Thirteen rows (learners that weigh by importance, and the number to differentiate by) × five tasks each: 2 to 10 arms, delays 0 to 20, coins or
the stochastically constrained adversary, 200 rounds. Every task has its own random learner. The truth is as in random_tasks.py: paired
differences at steps .6 and .3 extrapolated to step 0, on other runs than the jump tangent's. All tasks get 16 384 runs, and those that are not
decided by four standard errors more, up to RUNS. FILE, by default fresh_tasks.json beside this script, keeps the sums, and a second call goes on. ROWS, such as
0,3,12, plays some of them only.

Written before the first run: the jump tangent shall be within 2 % in 95 % of the tasks. Exceptions are printed by name.
"""

import json
import sys
from pathlib import Path

import numpy as np
from random_tasks import joined, measured, report, verdict

import jaxbandit as jb
from jaxbandit.learners.asymmetric import AsymmetricBestOfBothWorlds
from jaxbandit.learners.exponential import DelayedExponentialWeights, FixedDelayExp3
from jaxbandit.learners.skipping import RobustBestOfBothWorlds, ZimmertSeldin

SEED, TASKS, ROUNDS, CHUNK, LONGEST = 20261117, 5, 200, 16_384, 20
HERE = Path(__file__).parent / "fresh_tasks.json"


def learners(rng: np.random.Generator, delay: int, gaps: np.ndarray):
    """Name, learner and number of each row."""
    low, high, linear, factor = np.exp(rng.uniform([-1.2, -0.3, -2, -2], [0.3, 1, 2, 2]))
    most = max(delay, 1)
    total = delay * ROUNDS
    yield "MZS22", jb.BestOfBothWorlds(most, linear, factor), "factor"
    yield "MZS22", jb.BestOfBothWorlds(most, linear, factor), "tsallis_scale"
    yield "asymmetric MZS22", AsymmetricBestOfBothWorlds(most, gaps, linear=linear, factor=factor), "tsallis_scale"
    yield "ZS20", ZimmertSeldin(tsallis_scale=high), "tsallis_scale"
    yield "MZS24", RobustBestOfBothWorlds(tsallis_scale=high), "tsallis_scale"
    yield "Tsallis-INF", jb.TsallisINF(scale=high), "scale"
    yield "Tsallis-INF, reduced variance", jb.TsallisINF("rv", scale=2 * high), "scale"
    yield "banker", jb.BankerTsallisINF(scale=high), "scale"
    yield "Exp3", jb.Exp3(scale=low), "scale"
    yield "delayed Exp3", jb.DelayedExp3(scale=low), "scale"
    yield "DEW", DelayedExponentialWeights(ROUNDS, total, delay, scale=2 * low), "scale"
    yield "Skipper", jb.Skipper(delay + 1, ROUNDS, total, scale=2 * low), "scale"
    yield "Exp3 for a fixed delay", FixedDelayExp3(ROUNDS, delay, gamma=low / 2), "gamma"


def cases():
    """Label, losses, delays, learner, the number."""
    rng = np.random.default_rng(SEED)
    for row in range(13):
        for task in range(TASKS):
            arms, delay, gap = int(rng.integers(2, 11)), int(rng.integers(0, LONGEST + 1)), float(rng.uniform(0.1, 0.5))
            means = np.sort(rng.uniform(0.1, 0.9, arms))
            adversary = rng.uniform() < 0.5
            law = jb.losses.StochasticallyConstrained(gap, arms=arms) if adversary else jb.losses.Bernoulli(means)
            gaps = np.append(0, np.full(arms - 1, gap)) if adversary else means - means[0]
            name, learner, number = list(learners(rng, delay, gaps))[row]
            game = f"gap {gap:.2f}, adversarial" if adversary else f"means {', '.join(f'{one:.2f}' for one in means)}"
            label = f"{row}.{task}: {name} by {number} at {float(getattr(learner, number)):.2f}, K={arms}, d={delay}, {game}"
            yield label, law, jb.delays.Fixed(delay, bound=LONGEST), learner, number


def main(runs: int, file: Path, rows: set[str]) -> None:
    found = json.loads(file.read_text()) if file.exists() else {}
    for target in range(CHUNK, runs + CHUNK, CHUNK):
        for label, *case in cases():
            done = found.get(label, {}).get("runs", 0)
            wanted = not rows or label.split(".")[0] in rows
            if wanted and done < min(target, runs) and (not done or verdict(found[label], 4) == "open"):
                size = min(target, runs) - done
                found[label] = joined(found.get(label), measured(*case, first_run=done, runs=size, rounds=ROUNDS), size)
                file.write_text(json.dumps(found, indent=1) + "\n")
    report(found)


if __name__ == "__main__":
    given = sys.argv[1:]
    runs, file, rows = given + ["65536", str(HERE), ""][len(given) :]
    main(int(runs), Path(file), set(filter(None, rows.split(","))))
