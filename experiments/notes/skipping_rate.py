"""ZS20 with skipping against min_S(|S| + √(D_S̄ log K)) for non-uniform delays: the tables of docs/notes/skipping_rate.md.

python -m experiments.notes.skipping_rate          # under a minute of one idle core
"""

import warnings

import numpy as np

import jaxbandit as jb
from jaxbandit import theory

ROUNDS, RUNS, BLOCKS = 4000, 256, (16, 128, 512)


def sequences():
    """Delays ``[T]`` by name."""
    t = np.arange(ROUNDS)
    rng = np.random.default_rng(0)
    return {
        "none": 0 * t,
        "fixed, 16": 16 + 0 * t,
        "fixed, 128": 128 + 0 * t,
        "128 in the first half, then none": np.where(t < ROUNDS / 2, 128, 0),
        "falling from 256 to 0": np.linspace(256, 0, ROUNDS).astype(int),
        "1 in 50 missing": np.where(t % 50 == 0, ROUNDS, 0),
        "first 100 missing, then 16": np.where(t < 100, ROUNDS, 16),
        "heavy tail, P(d > n) = 1/(n + 1)": np.minimum(1 / (1 - rng.random(ROUNDS)) - 1, ROUNDS).astype(int),
    }


def largest_regret(learner, delays, arms):
    """Mean and standard error of the regret, on losses that are redrawn in blocks of the most harmful length."""
    found = []
    for length in BLOCKS:
        rng = np.random.default_rng(length)
        drawn = rng.integers(0, 2, (-(-ROUNDS // length), arms, RUNS)).astype(np.float32)
        losses = jb.losses.Switching(drawn, starts=1 + length * np.arange(len(drawn)))
        law = jb.delays.Trace(theory.optimal_skipping.truncated(delays), bound=ROUNDS)
        estimate = jb.simulate(learner, losses, law, rounds=ROUNDS, runs=RUNS, seed=0, record=[ROUNDS]).estimate()
        found.append((float(estimate.mean[-1]), float(estimate.error[-1])))
    return max(found)


def without_delay(arms):
    """Regret/√(KT) by learner: Bernoulli losses of mean ½, the last arm better by ½√(K/T), no delay."""
    gap = np.sqrt(arms / ROUNDS) / 2
    losses = jb.losses.Bernoulli([*[0.5] * (arms - 1), 0.5 - gap])
    learners = {
        "Thompson sampling": jb.DelayedThompson(),
        "UCB1": jb.DelayedUCB1(),
        "Tsallis-INF": jb.TsallisINF(),
        "Tsallis-INF, RV": jb.TsallisINF("rv"),
        "Delayed Exp3": jb.DelayedExp3(),
        "MZS22": jb.BestOfBothWorlds(0),
        "uniform baseline": jb.Uniform(),
    }
    setting = dict(rounds=ROUNDS, runs=1024, seed=0, record=[ROUNDS])
    found = {name: jb.simulate(one, losses, jb.delays.Fixed(0), **setting).estimate() for name, one in learners.items()}
    return {name: (one.mean[-1], one.error[-1]) / np.sqrt(arms * ROUNDS) for name, one in found.items()}


def main():
    warnings.simplefilter("ignore")
    tables = {arms: without_delay(arms) for arms in (2, 8, 32)}
    print("| learner | " + " | ".join(f"K = {arms}" for arms in tables) + " |")
    print("|---" * (1 + len(tables)) + "|")
    for name in tables[2]:
        print(f"| {name} | " + " | ".join("{:.3f} ± {:.3f}".format(*table[name]) for table in tables.values()) + " |")
    print(flush=True)
    learners = {"skipping": jb.ZimmertSeldin(skipping=True), "none": jb.ZimmertSeldin()}
    print("| delays | K | √(KT) | min over S | D | regret, skipping | ratio | regret without skipping | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, delays in sequences().items():
        cut = theory.optimal_skipping.truncated(delays)
        for arms in (2, 8):
            root, least = np.sqrt(arms * ROUNDS), theory.optimal_skipping.skipping_optimum(cut, arms).value
            cells = []
            for learner in learners.values():
                mean, error = largest_regret(learner, delays, arms)
                cells += [f"{mean:.0f} ± {error:.0f}", f"{mean / (root + least):.2f}"]
            print(f"| {name} | {arms} | {root:.0f} | {least:.0f} | {cut.sum():,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
