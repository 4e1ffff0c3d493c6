"""The cost of missing feedback for a learner with and without skipping.

    python experiments/skipping/outliers.py [--out FOLDER]

The first n plays wait T rounds (their feedback comes after the end), all others are seen at once: D = nT, but skipping
the outliers leaves min_S(|S| + √(D log K)) = n. Theory: without skipping √(nT log K), with it n, both on top of the
√(KT) of the undelayed problem; n = √(KT/log K) is where skipping itself starts to cost as much as the bandit.
"""

import argparse
from pathlib import Path

import jax
import numpy as np

import jaxbandit as jb

ARMS, ROUNDS, RUNS = 5, 20_000, 512
LEARNERS = {
    "ZS20, no skipping": jb.ZimmertSeldin(skipping=False),
    "ZS20, skipping": jb.ZimmertSeldin(skipping=True),
    "MZS24 (discards)": jb.RobustBestOfBothWorlds(),
    "Tsallis-INF (ignores delay)": jb.TsallisINF(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    out = parser.parse_args().out
    critical = int(np.sqrt(ARMS * ROUNDS / np.log(ARMS)))
    counts = np.unique([0, 1, 3, 10, 30, 100, critical])
    losses = jb.losses.Bernoulli([0.4, *[0.6] * (ARMS - 1)])
    figure, (panel,) = jb.plots.figure()
    print(f"K={ARMS}, T={ROUNDS}, {RUNS} runs, mean regret ± standard error; √(KT/log K) = {critical}\n")
    print(f"{'outliers':28}" + "".join(f"{n:>14}" for n in counts))
    for index, (name, learner) in enumerate(LEARNERS.items()):
        estimates = []
        for count in counts:
            delays = jb.delays.Outlier(first=ROUNDS, count=int(count), long_waits=256)
            result = jb.simulate(learner, losses, delays, rounds=ROUNDS, runs=RUNS, key=jax.random.key(0), record=1)
            estimates.append(result.estimate())
        means = np.array([estimate.mean[-1] for estimate in estimates])
        errors = np.array([estimate.error[-1] for estimate in estimates])
        print(f"{name:28}" + "".join(f"{mean:8.0f} ±{error:4.1f}" for mean, error in zip(means, errors, strict=True)), flush=True)
        colour, style = jb.plots.COLOURS[index], jb.plots.STYLES[index]
        panel.errorbar(counts, means, 1.96 * errors, color=colour, linestyle=style, marker="o", markersize=4, label=name)
    panel.axvline(critical, color="grey", linewidth=0.8)
    panel.text(0.97 * critical, 0.02, "√(KT/log K)", transform=panel.get_xaxis_transform(), ha="right", fontsize=9)
    panel.set_xscale("symlog", linthresh=1, linscale=0.5)
    panel.set_xlim(-0.15, 1.3 * critical)
    panel.set_yscale("log")
    jb.plots.label_logarithms(panel)
    panel.set(xlabel="plays whose feedback takes T rounds", ylabel=f"mean pseudo-regret at T = {ROUNDS}", title="Skipping")
    panel.legend(frameon=False)
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "outliers.png", dpi=150)


if __name__ == "__main__":
    main()
