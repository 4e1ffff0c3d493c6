"""Values that others published for late feedback of other shapes, and ours beside them: one table, in Markdown.

    python experiments/shapes/published.py            # all; some minutes
    python experiments/shapes/published.py pike-burke # one set

Conversions with Bernoulli rewards .5 and .6 over 250 000 rounds (Pike-Burke et al. 2018, figure 3; their values are ratios to
ODAAF, whose regret is known); a clinical trial whose delays depend on the outcome. The values are in ``published_values.json``, which says where each comes from.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import jaxbandit as jb

D, L = jb.delays, jb.losses
VALUES = json.loads((Path(__file__).parent / "published_values.json").read_text())
WITHIN = 0.05, 4.0  # what counts as the same: 5 % and 4 standard errors


def conversions(law: jb.delays.Delays) -> jb.delays.Delays:
    """A success comes late, a failure never."""
    return D.LossDependent(law_if_one=D.PacketLoss(0.0), law_if_zero=law)


def pike_burke(runs: int = 512, only: str = "") -> Iterator[tuple]:
    """Name, delay, round, published, ours, error; of one learner or of all."""
    laws = {
        "Unif(0,50)": (D.UniformRandom(0, 50), np.arange(1, 52) / 51),
        "Unif(0,100)": (D.UniformRandom(0, 100), np.arange(1, 102) / 101),
        "Exp50": (D.Geometric(49.5, bound=511), 1 - (49.5 / 50.5) ** np.arange(1, 513)),
    }
    published, rounds = VALUES["pike-burke"]["values"], 250_000
    for name, (law, curve) in laws.items():
        games = {
            "ODAAF": (jb.ODAAF(rounds, {"Unif(0,50)": 25, "Unif(0,100)": 50, "Exp50": 50}[name]), law),
            "DUCB": (jb.DelayedUCB(curve), conversions(law)),
            "QPM-D(UCB1)": (jb.QPMD(jb.DelayedUCB1(), capacity=208), law),
        }
        for learner, (player, delays) in games.items():
            if only not in ("", learner):
                continue
            values = {row["round"]: row["regret"] for row in published if (row["learner"], row["delay"]) == (learner, name)}
            result = jb.simulate(
                player, L.Bernoulli(rewards=[0.5, 0.6]), delays, rounds=rounds, runs=runs, seed=1, record=sorted(values)
            )
            found = result.estimate()
            at = {int(t): place for place, t in enumerate(result.rounds)}
            for t, value in values.items():
                yield learner, name, t, value, found.mean[at[t]], found.error[at[t]]


def trial(runs: int = 2048) -> Iterator[tuple]:
    """A clinical trial of two arms: a success is known after 154 rounds, a failure when it happens."""
    told = VALUES["trial"]
    days = [11 * (int(day) + 1) for day, count in told["delays"]["histogram_days"].items() for _ in range(count)]
    late = D.LossDependent(law_if_one=D.Empirical(days), law_if_zero=D.Fixed(154))
    games = {
        "QPM-D(Thompson Beta(1,1))": (jb.QPMD(jb.DelayedThompson(), capacity=1024), late),
        "Thompson Beta(1,1)": (jb.DelayedThompson(), D.Fixed(0)),
        "uniform": (jb.Uniform(), D.Fixed(0)),
    }
    rounds, losses = told["rounds"], L.Bernoulli(rewards=told["means_reward"])
    for row in told["values"]:
        if row["learner"] in games:
            learner, delays = games[row["learner"]]
            found = jb.simulate(learner, losses, delays, rounds=rounds, runs=runs, seed=1, record=[rounds]).estimate()
            error = np.hypot(found.error[-1], row["se"])
            yield row["learner"], row["delay"], rounds, row["regret"], found.mean[-1], error


SETS = {"trial": trial, "pike-burke": pike_burke}


def main() -> None:
    jb.use_all_cores()
    print("| learner | delays | T | published | ours | difference | standard errors | |\n|---|---|---|---|---|---|---|---|")
    for title in sys.argv[1:] or SETS:
        for learner, delay, t, value, mean, error in SETS[title]():
            apart, errors = mean / value - 1, (mean - value) / error
            same = abs(apart) <= WITHIN[0] or abs(errors) <= WITHIN[1]
            print(
                f"| {learner} | {delay} | {t} | {value:.1f} | {mean:.1f} ± {error:.1f} | {apart:+.1%} | {errors:+.1f} | {'' if same else 'differs'} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
