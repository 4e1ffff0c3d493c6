"""Exp3, UCB1 and Thompson sampling against the curves of Zimmert & Seldin (JMLR 2021), without delay: prints a table.

    python experiments/published_regret/stochastic_rows.py published_regret.json [learner ...]

The file holds the values read off the published figures. Two readings of Exp3's rate and of "UCB1 with α = 1.5" are run. A
cell is: ours / published, the difference, and what is allowed: 8 % plus four standard errors (of 100 published runs and of
ours). In environment B UCB1 and Thompson are heavy-tailed (a run in a hundred locks on the wrong arm and costs a hundred times
the median), so there much is allowed and a mean of 100 runs says little: the last line of each such game gives the share of
means of 100 of our runs that lie at or below the published one, which should be neither 0 nor 1.
"""

import json
import sys

import jax
import numpy as np

import jaxbandit as jb
from jaxbandit.learners.exponential import Exp3
from jaxbandit.learners.thompson import DelayedThompson
from jaxbandit.learners.ucb import DelayedUCB1

READINGS = {
    "Exp3": {"rate √(log K/tK)": Exp3(), "rate √(2 log K/tK)": Exp3(scale=np.sqrt(2))},
    "UCB1": {"√(1.5 log t/S)": DelayedUCB1(1.5), "√(1.5 log t/2S)": DelayedUCB1(0.75)},
    "TS": {"Beta(1, 1)": DelayedThompson()},
}
ROUNDS = [2_500, 5_000, 10_000, 100_000]
RUNS, PUBLISHED_RUNS = 1024, 100


def losses(env: str, gap: float, arms: int):
    if env == "A":
        return jb.losses.Bernoulli([(1 - gap) / 2] + [(1 + gap) / 2] * (arms - 1))
    return jb.losses.StochasticallyConstrained(gap, arms)


def shares(regret: np.ndarray, wanted: list[float]) -> list[str]:
    """For each round, how many of the means of 100 runs drawn from ours are at most the published one."""
    chosen = np.random.default_rng(0).integers(0, RUNS, (4000, PUBLISHED_RUNS))
    return [f"{(row[chosen].mean(1) <= value).mean():12.2f}{'':18}" for row, value in zip(regret, wanted, strict=True)]


def main() -> None:
    with open(sys.argv[1]) as file:
        values = json.load(file)["values"]
    published = {(v["env"], v["gap"], v["arms"], v["learner"], v["round"]): v["regret"] for v in values}
    games = sorted({key[:3] for key in published})
    for name in sys.argv[2:] or READINGS:
        for reading, learner in READINGS[name].items():
            print(f"\n{name}, {reading}\nenv   gap    K " + "".join(f"{t:>30,}" for t in ROUNDS))
            for env, gap, arms in games:
                law = losses(env, gap, arms)
                result = jb.simulate(
                    learner, law, jb.delays.Fixed(0), rounds=ROUNDS[-1], runs=RUNS, key=jax.random.key(0), record=ROUNDS
                )
                cells = []
                for row, t in enumerate(ROUNDS):
                    wanted = published.get((env, gap, arms, name, t))
                    mine, spread = result.regret[row].mean(dtype=float), result.regret[row].std(ddof=1, dtype=float)
                    allowed = 0.08 * wanted + 4 * spread * np.sqrt(1 / RUNS + 1 / PUBLISHED_RUNS)
                    mark = " " if abs(mine - wanted) <= allowed else "*"
                    cells.append(f"{mine:9.1f} /{wanted:7.1f} {mine / wanted - 1:+6.0%}{mark}±{allowed / wanted:4.0%}  ")
                print(f"{env:3}{gap:7}{arms:4}  " + "".join(cells), flush=True)
                if env == "B":
                    print(" " * 16 + "".join(shares(result.regret, [published[env, gap, arms, name, t] for t in ROUNDS])))


if __name__ == "__main__":
    main()
