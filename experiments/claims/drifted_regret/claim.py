"""Regret against drifted regret on every path; unbiasedness of the drifted estimate."""

import numpy as np

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit.claims.figures import draw_legend, draw_measured
from jaxbandit.claims.verdict import mean_of


def run(experiment):
    s = experiment.settings
    paths, means = experiment.panels(2)
    losses = jb.losses.Bernoulli([0.3, *[0.6] * (s.arms - 1)])
    rng = np.random.default_rng(0)

    def laws(rounds):
        t = np.arange(1, rounds + 1)
        raw = {"fixed": np.full(rounds, s.delay), "bursts": -t % (s.delay + 1), "random": rng.integers(0, s.delay + 1, rounds)}
        return {name: jb.delays.Trace(theory.truncated(delays), bound=16, long_waits=0) for name, delays in raw.items()}

    for index, (name, law) in enumerate(laws(s.rounds).items()):
        learner = jb.BestOfBothWorlds(max_delay=s.delay)
        result = experiment.simulate(
            learner, losses, law, rounds=s.rounds, runs=s.runs, measure=[theory.DriftedRegret()], burning_in=True
        )
        limit = 2 * result.measured["drifted_regret"][-1] + s.delay
        experiment.check(
            f"largest regret / (2·drifted + d_max) of all paths, {name}", np.max(result.regret[-1] / limit), "at most", 1.0
        )
        paths.scatter(result.measured["drifted_regret"][-1], result.regret[-1], s=6, color=jb.plots.COLOURS[index], label=name)
    ends = np.array(paths.get_xlim())
    paths.plot(ends, 2 * ends + s.delay, color="black", label="2·drifted + d_max")
    paths.plot(ends, ends, color="grey", linestyle="--", label="equality")
    paths.set(
        xlabel="drifted regret of a path", ylabel="regret of the path", title=f"Every path (K = {s.arms}, d_max = {s.delay})"
    )
    draw_legend(paths)

    for index, (name, law) in enumerate(laws(s.short_rounds).items()):
        learner = jb.BestOfBothWorlds(max_delay=s.delay, linear=1.0, factor=1.0)
        measure = [theory.DriftedRegret(), theory.StabilityAndPenalty(learner, s.delay)]
        result = experiment.simulate(
            learner, losses, law, rounds=s.short_rounds, runs=s.short_runs, measure=measure, burning_in=True
        )
        drifted = float(result.measured["drifted_regret"][-1].mean())
        bias = mean_of(result, result.measured["estimated_drift"][-1] - result.measured["drifted_regret"][-1])
        experiment.check(
            f"bias of the estimated drifted regret (which is {drifted:.0f}), {name}",
            bias,
            "equals",
            0.0,
            resolution=0.02 * drifted,
        )
        draw_measured(means, [index], [bias], index, capsize=4)
        means.plot([index - 0.3, index + 0.3], [0.02 * drifted] * 2, color="grey")
        means.plot([index - 0.3, index + 0.3], [-0.02 * drifted] * 2, color="grey")
    means.axhline(0, color="black", linewidth=0.8)
    means.set(
        xticks=range(3),
        xticklabels=list(laws(s.short_rounds)),
        ylabel="estimated − true drifted regret, mean",
        title="Unbiased? (grey: ±2 % of the drifted regret)",
    )
