"""The growth of regret with one, two and three best arms."""

import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend
from experiments.claims.harness.verdict import Measured, growth, slope


def run(experiment):
    s = experiment.settings
    panels = experiment.panels(2)

    def play(learner, gaps):
        losses = jb.losses.Bernoulli(0.4 + np.asarray(gaps))
        return experiment.simulate(learner, losses, jb.delays.Fixed(s.delay), rounds=s.rounds, runs=s.runs, burning_in=True)

    def over(one, two):
        value = one.value / two.value
        return Measured(value, abs(value) * float(np.hypot(one.error / one.value, two.error / two.value)))

    ties = {best: [0.0] * best + [s.gap] * (s.arms - best) for best in range(1, s.arms)}
    for panel, (name, learner) in zip(
        panels, {"MZS22": jb.BestOfBothWorlds(s.delay), "Tsallis-INF": jb.TsallisINF()}.items(), strict=True
    ):
        slopes = {}
        for index, (best, gaps) in enumerate(ties.items()):
            result = play(learner, gaps)
            slopes[best] = slope(result)
            jb.plots.draw_estimate(panel, result.estimate(), index, f"{best} best of {s.arms}")
            experiment.number(f"{name}, {best} best: regret per log t over the last decade", slopes[best])
            experiment.number(f"{name}, {best} best: exponent of T over the last decade", growth(result))
            if best > 1:
                label = f"{name}: regret per log t, {best} best arms over one"
                experiment.check(label, over(slopes[best], slopes[1]), "at most", s.at_most, kind="shape")
        panel.set(xscale="log", xlabel="round t", ylabel="mean pseudo-regret", title=name)
        draw_legend(panel)
        if name == "MZS22":
            near = slope(play(learner, [0.0, s.broken] + [s.gap] * (s.arms - 2)))
            label = f"{name}: regret per log t, 2 best arms over one"
            experiment.mutant(f"a tie broken by {s.broken}", label, over(near, slopes[1]))
            experiment.say(
                f"MZS22: {slopes[1].value:.1f} regret per log t with one best arm, {slopes[2].value:.1f} with two, {slopes[3].value:.1f} with three "
                f"(Σ 1/Δ_i would be {3 / s.gap:.0f}, {2 / s.gap:.0f}, {1 / s.gap:.0f}); {near.value:.1f} where the tie is broken by {s.broken}."
            )
