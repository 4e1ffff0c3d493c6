"""The cost of missing feedback for a learner with and without skipping.

    python experiments/skipping/outliers.py [--out FOLDER]

The first n observations are delayed by T rounds (they arrive after the end), all others by 0: D = nT, but skipping
the outliers leaves min_S(|S| + √(D log K)) = n. Theory: without skipping √(nT log K), with it n, both on top of the
√(KT) of the undelayed problem; n = √(KT/log K) is where skipping itself starts to cost as much as the bandit.
"""

import argparse
from pathlib import Path

import jax
import numpy as np

import jaxbandit as jb

ARMS, ROUNDS, RUNS = 5, 20_000, 512
LEARNERS = {  # with the style of each algorithm; the variant with skipping is drawn as a solid line
    "ZS20, no skipping": (jb.ZimmertSeldin(skipping=False), "zimmert-seldin", None),
    "ZS20, skipping": (jb.ZimmertSeldin(skipping=True), "zimmert-seldin", "-"),
    "MZS24 (discards)": (jb.RobustBestOfBothWorlds(), "robust-bobw", None),
    "Tsallis-INF (ignores delay)": (jb.TsallisINF(), "tsallis-inf", None),
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
    for name, (learner, algorithm, line) in LEARNERS.items():
        estimates = []
        for count in counts:
            delays = jb.delays.Outlier(first=ROUNDS, count=int(count), long_waits=256)
            result = jb.simulate(learner, losses, delays, rounds=ROUNDS, runs=RUNS, key=jax.random.key(0), record=1)
            estimates.append(result.estimate())
        means = np.array([estimate.mean[-1] for estimate in estimates])
        errors = np.array([estimate.error[-1] for estimate in estimates])
        print(f"{name:28}" + "".join(f"{mean:8.0f} ±{error:4.1f}" for mean, error in zip(means, errors, strict=True)), flush=True)
        style = jb.plots.ALGORITHMS[algorithm]
        drawn = dict(color=style.colour, linestyle=line or style.linestyle, marker=style.marker, markersize=5)
        panel.errorbar(counts, means, 1.96 * errors, label=name, **drawn)
    panel.axvline(critical, color="grey", linewidth=0.8)
    panel.text(0.97 * critical, 0.02, r"$\sqrt{KT/\log K}$", transform=panel.get_xaxis_transform(), ha="right", fontsize=9)
    panel.set_xscale("symlog", linthresh=1, linscale=0.5)
    panel.set_xlim(-0.15, 1.3 * critical)
    panel.set_yscale("log")
    jb.plots.label_logarithms(panel)
    panel.set(xlabel="missing observations n (rounds 1 to n)", ylabel=f"mean pseudo-regret after {ROUNDS:,} rounds")
    panel.set_title("Skipping limits the cost of missing observations")
    panel.legend(frameon=False)
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "outliers.png", dpi=200)


if __name__ == "__main__":
    main()
