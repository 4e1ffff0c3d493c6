"""The terms of the self-bounding analysis against their limits."""

import numpy as np

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit.claims.figures import draw_legend
from jaxbandit.claims.verdict import mean_of, regret_of


def run(experiment):
    s = experiment.settings
    panels = experiment.panels(len(s.gaps))
    constants = theory.RECOMPUTED
    rest = theory.self_bounding_remainder(s.arms, s.delay)
    delays = theory.truncated(-np.arange(1, s.rounds + 1) % (s.delay + 1))
    facts = theory.summary(delays)
    for panel, gap in zip(panels, s.gaps, strict=True):
        learner = jb.BestOfBothWorlds(max_delay=s.delay)
        losses = jb.losses.Bernoulli([0.5 - gap / 2, *[0.5 + gap / 2] * (s.arms - 1)])
        law = jb.delays.Trace(delays, bound=8, long_waits=0)
        result = experiment.simulate(
            learner, losses, law, rounds=s.rounds, runs=s.runs, measure=[theory.SelfBounding(learner, s.delay)], burning_in=True
        )
        terms = result.measured["self_bounding"] * np.array(constants)[:, None]
        limits = theory.self_bounding_limits(
            [0, *[gap] * (s.arms - 1)], s.rounds, facts["outstanding_max"], facts["arrivals_max"], s.delay
        )
        for index, name in enumerate("ABC"):
            worst = np.max((4 * terms[-1, index] - result.regret[-1]) / limits[name])
            experiment.check(f"largest (4·{name} − Reg)/limit of all paths, Δ = {gap}", worst, "at most", 1.0)
        total = mean_of(result, terms[-1].sum(0)).value + rest
        experiment.check(f"E Reg / E(aA + bB + cC + D), Δ = {gap}", regret_of(result) / total, "at most", 1.0)
        shown = {"regret": result.regret, "aA": terms[:, 0], "bB": terms[:, 1], "cC": terms[:, 2]}
        for (label, values), style in zip(shown.items(), ("-", "--", "-.", ":"), strict=True):
            come = values.mean(-1) > 0
            panel.plot(
                result.rounds[come],
                values[come].mean(-1),
                linestyle=style,
                label=label,
                linewidth=2.4 if label == "regret" else 1.5,
            )
        panel.axhline(rest, color="grey", linewidth=1, label="D")
        panel.set(
            xscale="log", yscale="log", xlabel="round t", ylabel="mean up to t", title=f"Δ = {gap}, bursts of {s.delay + 1}"
        )
        panel.set_ylim(bottom=0.1)
        draw_legend(panel)
