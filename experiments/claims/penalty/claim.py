"""The penalty term against both of its limits."""

import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend, draw_runs
from jaxbandit import theory


def run(experiment):
    s = experiment.settings
    panels = experiment.panels(2)
    losses = jb.losses.Bernoulli([0.3, *[0.6] * (s.arms - 1)])
    t = np.arange(1, s.rounds + 1)
    laws = {"fixed": np.full(s.rounds, s.delay), "bursts": -t % (s.delay + 1)}
    start = theory.bounds.mzs22_constants(s.delay, s.arms)
    constant = 2 * np.sqrt(1 + start.tsallis) * (np.sqrt(s.arms) - 1) + np.sqrt(start.entropy * np.log(s.arms))
    for panel, (name, delays) in zip(panels, laws.items(), strict=True):
        learner = jb.BestOfBothWorlds(max_delay=s.delay)
        law = jb.delays.Trace(theory.optimal_skipping.truncated(delays), bound=16, long_waits=0)
        measure = [theory.measurements.StabilityAndPenalty(learner, s.delay), theory.measurements.SelfBounding(learner, s.delay)]
        result = experiment.simulate(learner, losses, law, rounds=s.rounds, runs=s.runs, measure=measure, burning_in=True)
        penalty, limit = result.measured["penalty"], result.measured["penalty_limit"]
        a, _, c = np.moveaxis(result.measured["self_bounding"], 1, 0)
        coarse = 2 * a + c + constant
        label = f"largest penalty / limit of all paths and recorded rounds, {name}"
        experiment.check(label, np.max(penalty / limit), "at most", 1.0)
        experiment.mutant("half the limit", label, 2 * np.max(penalty / limit))
        label = f"largest limit / (2A + C + const), {name}"
        experiment.check(label, np.max(limit / coarse), "at most", 1.0)
        experiment.mutant("half of A and C, without the constant", label, np.max((limit / (a + c / 2))[result.rounds > s.delay]))
        curves = {"penalty": penalty, "limit, path by path": limit, "2A + C + const": coarse}
        for index, (label, values) in enumerate(curves.items()):
            draw_runs(panel, result.rounds, values, index, label)
        panel.set(xscale="log", xlabel="round t", ylabel="sum up to t", title=f"delays: {name} (bands: 95 % of the runs)")
        draw_legend(panel)
