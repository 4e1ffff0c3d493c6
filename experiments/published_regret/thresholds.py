"""Tsallis-INF without delay against the curves of Zimmert & Seldin (2021), for two thresholds of the RV baseline.

python experiments/published_regret/thresholds.py          # about 20 seconds of one core
"""

import json
from pathlib import Path

import numpy as np

import jaxbandit as jb

VALUES = json.loads((Path(__file__).parents[2] / "tests" / "data" / "published_regret.json").read_text())["values"]
LEARNERS = {
    "TInf-IW": {"IW": jb.TsallisINF()},
    "TInf-RV": {"RV, 16/t": jb.TsallisINF("rv"), "RV, 4/t": jb.TsallisINF("rv", threshold=4.0)},
}
ROUNDS, RUNS, THEIR_RUNS = 10_000, 1024, 100


def main():
    print("| environment | Δ | K | round | published | learner | ours | difference | standard errors of both |")
    print("|---|---|---|---|---|---|---|---|---|")
    curves = {
        (one["env"], one["gap"], one["arms"], one["learner"]) for one in VALUES if one["learner"] in LEARNERS and one["arms"] <= 8
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
            setting = dict(rounds=max(values), runs=RUNS, seed=5, record=sorted(values))
            regret = np.asarray(jb.simulate(learner, losses, jb.delays.Fixed(0), **setting).regret, float)
            for place, (t, published) in enumerate(sorted(values.items())):
                mean, error = regret[place].mean(), regret[place].std(ddof=1) * np.sqrt(1 / RUNS + 1 / THEIR_RUNS)
                print(
                    f"| {env} | {gap} | {arms} | {t:,} | {published} | {label} | {mean:.1f} | {mean / published - 1:+.1%} | {(mean - published) / error:+.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
