"""Regret against d at fixed K and against K at fixed d."""

import numpy as np

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit.claims.figures import draw_legend, draw_measured
from jaxbandit.claims.verdict import exponent, regret_of


def run(experiment):
    s = experiment.settings
    by_delay, by_arms = experiment.panels(2)

    def play(arms, delay):
        losses = jb.losses.Bernoulli([0.5 - s.gap / 2, *[0.5 + s.gap / 2] * (arms - 1)])
        law = jb.delays.Fixed(delay, bound=16)
        regret = regret_of(experiment.simulate(jb.BestOfBothWorlds(max_delay=delay), losses, law, rounds=s.rounds, runs=s.runs))
        gaps = [0, *[s.gap] * (arms - 1)]
        limit = theory.self_bounding_limits(gaps, s.rounds, delay, 1, delay).total
        experiment.check(f"regret at T, K = {arms}, d = {delay}, against the recomputed bound", regret, "at most", limit)
        return regret, float(theory.fixed_delay_stochastic(gaps, s.rounds, delay).total)

    lines = (
        (by_delay, "delay d", s.delays, [play(s.arms[1], delay) for delay in s.delays], f"K = {s.arms[1]}"),
        (by_arms, "arms K", s.arms, [play(arms, s.delay) for arms in s.arms], f"d = {s.delay}"),
    )
    for panel, label, x, found, title in lines:
        regrets, orders = zip(*found, strict=True)
        power = exponent(x, regrets)
        fitted = max(one.value / order for one, order in found)
        draw_measured(panel, x, regrets, label="MZS22, measured")
        panel.plot(x, fitted * np.array(orders), color="black", linestyle="--", label=f"{fitted:.2f} × the O-form (fitted)")
        panel.set(
            xscale="log",
            yscale="log",
            xlabel=label,
            ylabel=f"mean pseudo-regret at T = {s.rounds}",
            title=f"{title}, Δ = {s.gap}: exponent {power.value:.2f}",
        )
        draw_legend(panel)
        experiment.check(f"exponent of {label}", power, "at most", 1.1, kind="shape")
        experiment.number(f"constant of the O-form that covers all {label}", fitted)
