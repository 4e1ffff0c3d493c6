"""Mean regret ± standard error by algorithm, environment and horizon: the tables of docs/appendix/regret_tables.md.

Where the mean is more than 1.5 times the median, or less than the median divided by 1.5, the median follows, and the share of runs
with more than a tenth of the regret of uniform play. Thompson sampling and UCB1, whose regret is skewed, play 16 times the runs under
the stochastically constrained adversary.

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


SKEWED = {(label, "stochastically constrained adversary") for label in ("Thompson", "UCB1")}


def uniform(losses):
    """The regret of uniform play at the horizons."""
    return np.asarray(
        jb.simulate(jb.Uniform(), losses, jb.delays.Fixed(DELAY), rounds=HORIZONS[-1], record=HORIZONS, runs=1, seed=0).regret[
            :, 0
        ],
        float,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=256)
    options = parser.parse_args()
    largest = {label: np.zeros(len(HORIZONS)) for label in learners()}
    for name, losses in games().items():
        print_heading(name)
        for label, learner in learners().items():
            game = learner, losses, jb.delays.Fixed(DELAY)
            runs = options.runs * (16 if (label, name) in SKEWED else 1)
            result = jb.simulate(*game, rounds=HORIZONS[-1], record=HORIZONS, runs=runs, seed=0)
            estimate, regret = result.estimate(), np.asarray(result.regret, float)
            median, failed = np.median(regret, 1), (regret > 0.1 * uniform(losses)[:, None]).mean(1)
            cells = [f"{mean:,.0f} ± {error:,.0f}" for mean, error in zip(estimate.mean, estimate.error)]
            for place, (mean, middle) in enumerate(zip(estimate.mean, median)):
                if not 1 / 1.5 < mean / middle < 1.5:
                    cells[place] += f" (median {middle:,.0f}, {failed[place]:.0%})"
            print(f"| {label} | " + " | ".join(cells) + " |", flush=True)
            largest[label] = np.maximum(largest[label], estimate.mean)
    print_heading("worst case over the three environments")
    for label, values in largest.items():
        print(f"| {label} | " + " | ".join(f"{value:,.0f}" for value in values) + " |")


def print_heading(name):
    print(f"\n**{name}**\n")
    print("| algorithm | " + " | ".join(f"T = {horizon:,}" for horizon in HORIZONS) + " |")
    print("|---" * (1 + len(HORIZONS)) + "|")


if __name__ == "__main__":
    main()
