"""Learners with delays against the bucket adversary."""

import numpy as np

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit.claims.figures import draw_legend
from jaxbandit.theory.optimal_skipping import truncated


def learners(longest, arms, rounds):
    return {
        "Hedge": theory.Hedge(np.sqrt(8 * np.log(arms) / (rounds * (longest + 1)))),
        "MZS22": jb.BestOfBothWorlds(max_delay=longest),
        "MZS22, constants 1": jb.BestOfBothWorlds(max_delay=longest, linear=1.0, factor=1.0),
        "ZS20": jb.ZimmertSeldin(),
        "Tsallis-INF": jb.TsallisINF(),
        "adaptive Exp3": jb.DelayedExp3(),
    }


def sequences(rounds):
    t = np.arange(rounds)
    return {
        "fixed 10": truncated(np.full(rounds, 10)),
        "fixed 100": truncated(np.full(rounds, 100)),
        "falling": (rounds - t) // 10,
        "outliers": np.where(t < 50, rounds // 2, 0),
        "no delay": np.zeros(rounds, int),
    }


def run(experiment):
    s = experiment.settings
    panels = experiment.panels(len(s.arms))
    for panel, arms in zip(panels, s.arms, strict=True):
        least, shares = np.inf, []
        for label, delays in sequences(s.rounds).items():
            bound = float(theory.delayed_lower(delays, arms).total)
            optimum = theory.skipping_optimum(delays, arms).value
            if optimum > 0:
                shares.append(bound / optimum)
                experiment.number(f"explicit bound / min_S(|S| + √(D_S̄ log K)), K = {arms}, {label}", shares[-1])
            for index, (name, learner) in enumerate(learners(int(delays.max()), arms, s.rounds).items()):
                ratio = theory.play_with_delays(learner, delays, arms).ratio
                least = min(least, ratio)
                panel.plot(
                    [ratio], [label], "osd^vx"[index], color=jb.plots.COLOURS[index], label=name if label == "fixed 10" else None
                )
        experiment.check(f"least regret / explicit bound, K = {arms}", least, "at least", 1 - 1e-4)
        experiment.check(
            f"least explicit bound / min_S(…), K = {arms}: the constant of Ω", min(shares), "at least", 1 / 64, kind="shape"
        )
        panel.axvline(1, color="black", linewidth=1.5)
        panel.set(xscale="log", xlabel="regret / explicit lower bound", title=f"K = {arms}, T = {s.rounds}")
        panel.set_xlim(0.8, max(2.0, panel.get_xlim()[1]))
        panel.margins(y=0.15)
        panel.label_outer()
    draw_legend(panels[-1])
