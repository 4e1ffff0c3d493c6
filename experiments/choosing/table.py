"""Mean regret ± standard error by algorithm, environment and horizon: the tables of docs/appendix/regret_tables.md.

K = 4, fixed delay 50. Three environments: stochastic losses (one arm better by 0.2), the stochastically constrained adversary
(time-varying means, gap 0.2) and delay-matched switching (two arms alternate every 100 rounds). Algorithms that require an input
are oracle-tuned. The last table has the worst case over the three environments.

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
        "MZS22, constants (1, 1)": jb.BestOfBothWorlds(DELAY, linear=1.0, factor=1.0),
        "ZS20": jb.ZimmertSeldin(),
        "MZS24": jb.RobustBestOfBothWorlds(),
        "Tsallis-INF": jb.TsallisINF(),
        "Tsallis-INF, RV": jb.TsallisINF("rv"),
        "Delayed Exp3": jb.DelayedExp3(),
        "UCB1": jb.DelayedUCB1(),
        "Thompson": jb.DelayedThompson(),
        "Uniform": jb.Uniform(),
    }


def games():
    return {
        "stochastic losses": jb.losses.Bernoulli([0.3, 0.5, 0.5, 0.5]),
        "stochastically constrained adversary": jb.losses.StochasticallyConstrained(0.2, ARMS),
        "delay-matched switching": jb.losses.DelayMatchedSwitching(DELAY, ARMS),
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
    print_heading("worst case over the three environments")
    for label, values in largest.items():
        print(f"| {label} | " + " | ".join(f"{value:.0f}" for value in values) + " |")


def print_heading(name):
    print(f"\n**{name}**\n")
    print("| algorithm | " + " | ".join(f"T = {horizon:,}" for horizon in HORIZONS) + " |")
    print("|---" * (1 + len(HORIZONS)) + "|")


if __name__ == "__main__":
    main()
