"""Tsallis-INF without delay against the curves of Zimmert & Seldin (2021), for two thresholds of the RV baseline.

    python experiments/published_regret/thresholds.py                  # about 20 seconds of one core
    python experiments/published_regret/thresholds.py TInf-IW 10240    # one estimator, ten times the runs

The last line compares Tsallis-INF with an independent float64 program (tests/data/independent_regret.json).
"""

import json
import sys
from pathlib import Path

import numpy as np

import jaxbandit as jb

DATA = Path(__file__).parents[2] / "tests" / "data"
VALUES = json.loads((DATA / "published_regret.json").read_text())["values"]
LEARNERS = {
    "TInf-IW": {"IW": jb.TsallisINF()},
    "TInf-RV": {"RV, 16/t": jb.TsallisINF("rv"), "RV, 4/t": jb.TsallisINF("rv", threshold=4.0)},
}
ROUNDS, THEIR_RUNS = 10_000, 100


def independent(runs):
    """Regret of Tsallis-INF here and in the independent program, K = 5, gap 0.2, 20,000 rounds."""
    rows = json.loads((DATA / "independent_regret.json").read_text())["values"]
    row = next(one for one in rows if (one["learner"], one["delay"]) == ("Tsallis-INF IW", "fixed 0"))
    setting = dict(rounds=row["rounds"], runs=runs, seed=5, record=1)
    regret = np.asarray(
        jb.simulate(jb.TsallisINF(), jb.losses.Bernoulli(row["means"]), jb.delays.Fixed(0), **setting).regret[-1], float
    )
    error = regret.std(ddof=1) / np.sqrt(runs)
    print(f"\nindependent program {row['regret']:.1f} ± {row['stderr']:.1f}, here {regret.mean():.1f} ± {error:.1f}")


def main(only, runs):
    print("| environment | Δ | K | round | published | learner | ours | difference | standard errors of both |")
    print("|---|---|---|---|---|---|---|---|---|")
    curves = {
        (one["env"], one["gap"], one["arms"], one["learner"])
        for one in VALUES
        if one["learner"] in (only or LEARNERS) and one["arms"] <= 8
    }
    for env, gap, arms, name in sorted(curves):
        means = [(1 - gap) / 2, *[(1 + gap) / 2] * (arms - 1)]
        losses = jb.losses.Bernoulli(means) if env == "A" else jb.losses.StochasticallyConstrained(gap, arms)
        key = (env, gap, arms, name)
        values = {
            v["round"]: v["regret"]
            for v in VALUES
            if (v["env"], v["gap"], v["arms"], v["learner"]) == key and v["round"] <= ROUNDS
        }
        for label, learner in LEARNERS[name].items():
            setting = dict(rounds=max(values), runs=runs, seed=5, record=sorted(values))
            regret = np.asarray(jb.simulate(learner, losses, jb.delays.Fixed(0), **setting).regret, float)
            for place, (t, published) in enumerate(sorted(values.items())):
                mean, error = regret[place].mean(), regret[place].std(ddof=1) * np.sqrt(1 / runs + 1 / THEIR_RUNS)
                print(
                    f"| {env} | {gap} | {arms} | {t:,} | {published} | {label} | {mean:.1f} | {mean / published - 1:+.1%} | {(mean - published) / error:+.1f} |",
                    flush=True,
                )

    independent(runs)


if __name__ == "__main__":
    main(sys.argv[1:2], int(sys.argv[2]) if len(sys.argv) > 2 else 1024)
