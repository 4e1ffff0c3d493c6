"""Learners × games × horizons: mean regret ± standard error, the table of docs/choosing.md.

Every loss is seen 50 rounds late, K = 4. Three games: *stochastic* (one arm better by 0.2), *moving together* (the stochastically
constrained adversary, gap 0.2: means move, gaps do not), and *in step with the delay* (the demo's adversary: two arms take turns
every 100 rounds). The learners that must be told something are told the truth. The last table has the largest of the three
for each learner: what to expect of it when the game is not known.

    python experiments/choosing/table.py          # a few minutes
"""

import argparse

import numpy as np

import jaxbandit as jb

ARMS, DELAY = 4, 50
HORIZONS = (5_000, 20_000, 80_000, 320_000)


def learners():
    return {
        "MZS22": jb.BestOfBothWorlds(DELAY),
        "MZS22, constants 1": jb.BestOfBothWorlds(DELAY, linear=1.0, factor=1.0),
        "ZS20": jb.ZimmertSeldin(),
        "MZS24": jb.RobustBestOfBothWorlds(),
        "Tsallis-INF": jb.TsallisINF(),
        "Tsallis-INF rv": jb.TsallisINF("rv"),
        "Delayed Exp3": jb.DelayedExp3(),
        "UCB1": jb.DelayedUCB1(),
        "Thompson": jb.DelayedThompson(),
        "Uniform": jb.Uniform(),
    }


def games():
    return {
        "stochastic": jb.losses.Bernoulli([0.3, 0.5, 0.5, 0.5]),
        "moving together": jb.losses.StochasticallyConstrained(0.2, ARMS),
        "in step with the delay": jb.losses.DelayMatchedSwitching(DELAY, ARMS),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=256)
    options = parser.parse_args()
    largest = {label: np.zeros(len(HORIZONS)) for label in learners()}
    for name, losses in games().items():
        print_heading(name)
        for label, learner in learners().items():
            game = learner, losses, jb.delays.Fixed(DELAY)
            estimate = jb.simulate(*game, rounds=HORIZONS[-1], record=HORIZONS, runs=options.runs, seed=0).estimate()
            cells = [f"{mean:.0f} ± {error:.0f}" for mean, error in zip(estimate.mean, estimate.error)]
            print(f"| {label} | " + " | ".join(cells) + " |", flush=True)
            largest[label] = np.maximum(largest[label], estimate.mean)
    print_heading("the largest of the three")
    for label, values in largest.items():
        print(f"| {label} | " + " | ".join(f"{value:.0f}" for value in values) + " |")


def print_heading(name):
    print(f"\n**{name}**\n")
    print("| learner | " + " | ".join(f"T = {horizon:,}" for horizon in HORIZONS) + " |")
    print("|---" * (1 + len(HORIZONS)) + "|")


if __name__ == "__main__":
    main()
