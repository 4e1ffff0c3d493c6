"""The stability term against both parts of its lemma."""

import numpy as np

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit.claims.figures import draw_legend, draw_runs
from jaxbandit.claims.verdict import mean_of


def run(experiment):
    s = experiment.settings
    panels = experiment.panels(2)
    losses = jb.losses.Bernoulli([0.3, *[0.6] * (s.arms - 1)])
    t = np.arange(1, s.rounds + 1)
    laws = {"fixed": np.full(s.rounds, s.delay), "bursts": -t % (s.delay + 1)}
    for panel, (name, delays) in zip(panels, laws.items(), strict=True):
        learner = jb.BestOfBothWorlds(max_delay=s.delay)
        law = jb.delays.Trace(theory.truncated(delays), bound=16, long_waits=0)
        measure = [theory.StabilityAndPenalty(learner, s.delay), theory.SelfBounding(learner, s.delay)]
        result = experiment.simulate(learner, losses, law, rounds=s.rounds, runs=s.runs, measure=measure, burning_in=True)
        read = result.measured
        experiment.check(f"largest stability / limit of one round, {name}", read["stability_ratio"].max(), "at most", 1.0)
        experiment.check(f"largest α_t·γ_t, {name}", read["shift_ratio"].max(), "at most", 1.0)
        experiment.check(f"largest α_t/(a_t(K − 1)^(1/3)) (Lemma aux1), {name}", read["aux1_ratio"].max(), "at most", 4.0)
        expected = read["stability_tsallis"] + read["stability_entropy"]
        share = mean_of(result, read["stability"][-1] / expected[-1].mean())
        experiment.check(f"E stability / E(sums of the second part), {name}", share, "at most", 4.0)
        experiment.number(f"the same against the printed constant 2, {name}: 1 or less would hold", share / 2)
        curves = {
            "stability": read["stability"],
            "first part, path by path": read["stability_limit"],
            "second part, constant 4": 4 * expected,
        }
        for index, (label, values) in enumerate(curves.items()):
            come = values.mean(-1) > 0  # nothing before the first feedback
            draw_runs(panel, result.rounds[come], values[come], index, label)
        panel.set(
            xscale="log", yscale="log", xlabel="round t", ylabel="sum up to t", title=f"delays: {name} (bands: 95 % of the runs)"
        )
        draw_legend(panel)
