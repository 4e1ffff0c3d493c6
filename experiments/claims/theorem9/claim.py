"""Learners against the adversaries of the proof."""

import numpy as np

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit.claims.figures import draw_legend


def learners(arms, rounds):
    return {
        "Hedge": theory.Hedge(np.sqrt(8 * np.log(arms) / rounds)),
        "MZS22": jb.BestOfBothWorlds(max_delay=1),
        "ZS20": jb.ZimmertSeldin(),
        "Tsallis-INF": jb.TsallisINF(),
        "adaptive Exp3": jb.DelayedExp3(),
        "uniform": jb.Uniform(),
    }


def ranges(rounds):
    t = np.arange(1, rounds + 1)
    mixed = np.random.default_rng(0).permutation(t**-0.5)
    return {
        "all equal": np.ones(rounds),
        "1/√t": t**-0.5,
        "1/√t, shuffled": mixed,
        "steep": 0.99**t,
        "few large": np.where(t % 100 == 0, 5.0, 0.5),
    }


def run(experiment):
    s = experiment.settings
    panels = experiment.panels(len(s.arms))
    for panel, arms in zip(panels, s.arms, strict=True):
        least = np.inf
        for index, (name, learner) in enumerate(learners(arms, s.rounds).items()):
            games = {label: theory.play_with_ranges(learner, sizes, arms) for label, sizes in ranges(s.rounds).items()}
            least = min(least, *(game.ratio for game in games.values()))
            panel.plot(
                [game.ratio for game in games.values()], list(games), "osd^vx"[index], color=jb.plots.COLOURS[index], label=name
            )
            if name == "Hedge":
                spread = [label for label, game in games.items() if game.adversary == "spread"]
                experiment.number(f"kinds of ranges that Algorithm 3 plays (halving plays the others), K = {arms}", len(spread))
        experiment.check(f"least regret / bound, K = {arms}", least, "at least", 1 - 1e-4)
        panel.axvline(1, color="black", linewidth=1.5)
        panel.set(xscale="log", xlabel="regret / lower bound", title=f"K = {arms}, T = {s.rounds}")
        panel.set_xlim(0.8, max(2.0, panel.get_xlim()[1]))
        panel.margins(y=0.15)
        panel.label_outer()
    draw_legend(panels[-1])
