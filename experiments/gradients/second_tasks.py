"""The jump tangent against brute-force differences on a second set of tasks that had no part in choosing anything about it.

    python experiments/gradients/second_tasks.py [RUNS] [FILE] [TASKS]

As fresh_tasks.py, with another seed and other rows: thirteen learners and numbers × five tasks, 2 to 10 arms, delays 0 to 20, coins or the
stochastically constrained adversary, 200 rounds. The truth: paired differences at steps .6 and .3, extrapolated to step 0, on other runs than
the jump tangent's. FILE, by default second_tasks.json beside this script, keeps the sums, and a second call goes on. TASKS, such as 0,3: the
tasks of each row that are played, in that order; 0 first in all rows, so that a set that is not finished has all learners.

Written down before the first was played:

- The jump tangent shall be within 2 % in 95 % of the tasks that count. Exceptions are printed by name.
- A task counts if its derivative in the logarithm is, by two standard errors, more than 1 % of the regret: less is nothing to tune by, and
  a relative error of it says nothing. What does not count is printed as well.
- Every task gets 16 384 runs. All whose comparison then has a standard error above 0.7 % are played on to RUNS (65 536), whatever they say.
- Row 4 is MZS24 by its entropy_scale: by tsallis_scale its derivative is 0 over 200 rounds. Banker is not in the set: its gradient is taken by
  paired differences.
"""

import json
import sys
from pathlib import Path

import numpy as np
from random_tasks import compared, joined, measured, report, verdict

import jaxbandit as jb
from jaxbandit.learners.asymmetric import AsymmetricBestOfBothWorlds
from jaxbandit.learners.exponential import DelayedExponentialWeights, FixedDelayExp3
from jaxbandit.learners.skipping import RobustBestOfBothWorlds, ZimmertSeldin

SEED, ROWS, TASKS, ROUNDS, CHUNK, LONGEST = 20261119, 13, 5, 200, 16_384, 20
NOISE, SLOPE = (
    0.007,
    0.01,
)  # of a comparison, above which it is played on; of a derivative beside the regret, below which it does not count
HERE = Path(__file__).parent / "second_tasks.json"


def learners(rng: np.random.Generator, delay: int, gaps: np.ndarray):
    """Name, learner and number of each row."""
    low, high, linear, factor = np.exp(rng.uniform([-1.2, -0.3, -2, -2], [0.3, 1, 2, 2]))
    most = max(delay, 1)
    total = delay * ROUNDS
    yield "MZS22", jb.BestOfBothWorlds(most, linear, factor), "factor"
    yield "MZS22", jb.BestOfBothWorlds(most, linear, factor), "tsallis_scale"
    yield "asymmetric MZS22", AsymmetricBestOfBothWorlds(most, gaps, linear=linear, factor=factor), "tsallis_scale"
    yield "ZS20", ZimmertSeldin(tsallis_scale=high), "tsallis_scale"
    yield "MZS24", RobustBestOfBothWorlds(factor, entropy_scale=high), "entropy_scale"
    yield "Tsallis-INF", jb.TsallisINF(scale=high), "scale"
    yield "Tsallis-INF, reduced variance", jb.TsallisINF("rv", scale=2 * high), "scale"
    yield "MZS22", jb.BestOfBothWorlds(most, linear, factor), "entropy_scale"
    yield "Exp3", jb.Exp3(scale=low), "scale"
    yield "delayed Exp3", jb.DelayedExp3(scale=low), "scale"
    yield "DEW", DelayedExponentialWeights(ROUNDS, total, delay, scale=2 * low), "scale"
    yield "Skipper", jb.Skipper(delay + 1, ROUNDS, total, scale=2 * low), "scale"
    yield "Exp3 for a fixed delay", FixedDelayExp3(ROUNDS, delay, gamma=low / 2), "gamma"


def cases():
    """Row, task, label, losses, delays, learner, the number."""
    rng = np.random.default_rng(SEED)
    for row in range(ROWS):
        for task in range(TASKS):
            arms, delay, gap = int(rng.integers(2, 11)), int(rng.integers(0, LONGEST + 1)), float(rng.uniform(0.2, 0.5))
            means = np.sort(rng.uniform(0.1, 0.9, arms))
            adversary = rng.uniform() < 0.5
            law = jb.losses.StochasticallyConstrained(gap, arms=arms) if adversary else jb.losses.Bernoulli(means)
            gaps = np.append(0, np.full(arms - 1, gap)) if adversary else means - means[0]
            name, learner, number = list(learners(rng, delay, gaps))[row]
            game = f"gap {gap:.2f}, adversarial" if adversary else f"means {', '.join(f'{one:.2f}' for one in means)}"
            label = f"{row}.{task}: {name} by {number} at {float(getattr(learner, number)):.2f}, K={arms}, d={delay}, {game}"
            yield row, task, label, law, jb.delays.Fixed(delay, bound=LONGEST), learner, number


def counts(case: dict) -> bool:
    """Whether the derivative is, by two standard errors, more than 1 % of the regret."""
    truth, *_ = compared(case)
    error = np.hypot(4 / 3 * case["narrow"][1], case["wide"][1] / 3)
    return not abs(truth) - 2 * error <= SLOPE * case["regret"][0]  # what is no number counts, as a miss


def summary(found: dict) -> None:
    """What the rule that was written down says."""
    scored = {label: case for label, case in found.items() if counts(case)}
    within = [label for label, case in scored.items() if abs(compared(case)[1]) <= 0.02]
    print(f"\n{len(found)} played, {len(scored)} count; within 2 %: {len(within)}, {len(within) / max(len(scored), 1):.1%}")
    kinds = [verdict(case, 2) for case in scored.values()]
    print("by two standard errors: " + ", ".join(f"{kind} {kinds.count(kind)}" for kind in ("inside", "outside", "open")))
    for label in scored:
        if label not in within:
            _, bias, noise, _ = compared(scored[label])
            print(f"beyond: {label}: {bias:+.2%} ± {noise:.2%}")
    print("do not count: " + ("; ".join(label for label in found if label not in scored) or "none"))


def main(runs: int, file: Path, tasks: list[int]) -> None:
    found = json.loads(file.read_text()) if file.exists() else {}
    for more in (False, True):
        for wanted in tasks:
            for _, task, label, *case in cases():
                done = found.get(label, {}).get("runs", 0)
                size = runs - done if more else CHUNK
                noisy = bool(done) and compared(found[label])[2] > NOISE
                if task == wanted and runs and size > 0 and (noisy and done < runs if more else not done):
                    found[label] = joined(found.get(label), measured(*case, first_run=done, runs=size, rounds=ROUNDS), size)
                    file.write_text(json.dumps(found, indent=1) + "\n")
    report(found)
    summary(found)


if __name__ == "__main__":
    given = sys.argv[1:]
    runs, file, tasks = given + ["65536", str(HERE), "0,1,2,3,4"][len(given) :]
    main(int(runs), Path(file), [int(one) for one in tasks.split(",")])
