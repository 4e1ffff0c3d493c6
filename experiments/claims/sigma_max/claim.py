"""Thousands of delay sequences, exactly."""

import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend
from jaxbandit import theory


def sequence(kind, rounds, rng):
    scale = int(np.exp(rng.uniform(0, np.log(rounds / 4)))) + 1
    few = np.zeros(rounds, np.int64)
    few[rng.choice(rounds, min(scale, rounds), replace=False)] = rounds
    return {
        "fixed": lambda: np.full(rounds, scale),
        "uniform": lambda: rng.integers(0, scale + 1, rounds),
        "geometric": lambda: rng.geometric(1 / scale, rounds) - 1,
        "heavy tails": lambda: np.minimum(rng.pareto(0.7, rounds) * scale, rounds).astype(np.int64),
        "bursts": lambda: -np.arange(rounds) % (scale + 1),
        "outliers": lambda: few,
        "falling": lambda: np.sort(rng.integers(0, scale + 1, rounds))[::-1],
        "lost packets": lambda: np.where(rng.random(rounds) < 0.02, rounds, 0),
    }[kind]()


KINDS = ("fixed", "uniform", "geometric", "heavy tails", "bursts", "outliers", "falling", "lost packets")


def run(experiment):
    s, rng = experiment.settings, np.random.default_rng(105)
    (panel,) = experiment.panels(1)
    worst, worst_maximum, differ = 0.0, 0.0, 0
    for index, kind in enumerate(KINDS):
        points = []
        for number in range(s.sequences):
            delays = sequence(kind, s.rounds, rng)
            sigma = int(theory.optimal_skipping.outstanding(delays).max())
            points.append((theory.optimal_skipping.outstanding_optimum(delays).value, sigma))
            falling = np.sort(delays)[::-1]
            maximum = np.maximum(np.arange(len(falling)), falling).min()  # the n longest in S
            worst_maximum = max(worst_maximum, sigma / max(maximum, 1))
            if number == 0:
                law = jb.delays.Trace(theory.optimal_skipping.truncated(delays[:2000]), bound=2048, long_waits=0)
                played = experiment.simulate(jb.Uniform(), jb.losses.Bernoulli([0.5, 0.6]), law, rounds=2000, runs=2)
                differ += int(played.outstanding_max[0] != theory.optimal_skipping.outstanding(delays[:2000]).max())
        optimum, sigma = np.array(points).T
        worst = max(worst, float(np.max(sigma / np.maximum(optimum, 1))))
        panel.scatter(optimum, np.maximum(sigma, 1), s=9, color=jb.plots.COLOURS[index % 7], marker="osd^v<>x"[index], label=kind)
        experiment.number(f"σ_max / minimum, mean over sequences, {kind}", float(np.mean(sigma / np.maximum(optimum, 1))))
    panel.plot([1, s.rounds], [1, s.rounds], color="black", linewidth=1, label="equality")
    panel.set(
        xscale="log",
        yscale="log",
        xlabel="min over S of |S| + d_max(S̄)",
        ylabel="σ_max",
        title=f"{len(KINDS) * s.sequences} delay sequences, T = {s.rounds}",
    )
    draw_legend(panel)
    label = "largest σ_max / min_S(|S| + d_max(S̄))"
    experiment.check(label, worst, "at most", 1.0)
    experiment.mutant("min_S max{|S|, d_max(S̄)} in place of the sum", label, worst_maximum)
    experiment.check("sequences for which the simulator counts another σ_max", differ, "at most", 0)
