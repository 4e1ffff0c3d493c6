"""Regret against d at fixed K and against K at fixed d."""

import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend, draw_measured
from experiments.claims.harness.verdict import power_over_offset, regret_of
from jaxbandit import theory


def run(experiment):
    s = experiment.settings
    by_delay, by_arms = experiment.panels(2)

    def play(arms, delay, factor=24.0):
        losses = jb.losses.Bernoulli([0.5 - s.gap / 2, *[0.5 + s.gap / 2] * (arms - 1)])
        learner, law = jb.BestOfBothWorlds(max_delay=delay, factor=factor), jb.delays.Fixed(delay, bound=16)
        return regret_of(experiment.simulate(learner, losses, law, rounds=s.rounds, runs=s.runs))

    few = s.arms[1]
    lines = (
        (by_delay, "delay d", s.delays, [(few, delay) for delay in s.delays], f"K = {few}", "γ₀ ∝ d^{2.7}", lambda d: (d / s.delays[0]) ** 0.35),
        (by_arms, "arms K", s.arms, [(arms, s.delay) for arms in s.arms], f"d = {s.delay}", "γ₀ ∝ K^{8/3}", lambda k: k / s.arms[0]),
    )  # fmt: skip
    for panel, label, x, games, title, wrong, factor in lines:
        regrets = [play(*game) for game in games]
        mutated = [play(*game, 24 * factor(one)) for game, one in zip(games, x, strict=True)]
        orders = [float(theory.bounds.fixed_delay_stochastic([0, *[s.gap] * (arms - 1)], s.rounds, d).total) for arms, d in games]
        limits = [
            float(theory.bounds.self_bounding_limits([0, *[s.gap] * (arms - 1)], s.rounds, d, 1, d).total) for arms, d in games
        ]
        power, power_wrong = power_over_offset(x, regrets), power_over_offset(x, mutated)
        check = f"p of {label} in offset + slope·{label[-1]}^p"
        experiment.check(check, power, "at most", s.most_power, kind="shape")
        experiment.mutant(wrong, check, power_wrong)
        fitted = max(one.value / order for one, order in zip(regrets, orders, strict=True))
        experiment.number(f"constant of the O-form that covers all {label}", fitted)
        experiment.number(
            f"recomputed bound over regret, least of all {label}", min(np.array(limits) / [one.value for one in regrets])
        )
        draw_measured(panel, x, regrets, label=f"MZS22: p = {power.value:.2f}")
        draw_measured(panel, x, mutated, 1, f"negative control, {wrong}: p = {power_wrong.value:.2f}")
        panel.plot(x, fitted * np.array(orders), color="black", linestyle="--", label=f"{fitted:.2f} × the O-form (fitted)")
        panel.set(
            xscale="log", yscale="log", xlabel=label, ylabel=f"mean pseudo-regret at T = {s.rounds}", title=f"Exponent of {label}: {power.value:.2f}, at most 1 ({title})"
        )  # fmt: skip
        draw_legend(panel)
