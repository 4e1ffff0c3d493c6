"""Learners against the adversaries of the proof, each branch of the bound by itself."""

import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend
from jaxbandit import theory

BRANCHES = {"spread": "Algorithm 3", "halving": "halving"}


def learners(arms, rounds):
    return {
        "Hedge": theory.games.Hedge(np.sqrt(8 * np.log(arms) / rounds)),
        "MZS22": jb.BestOfBothWorlds(max_delay=1),
        "ZS20": jb.ZimmertSeldin(),
        "Tsallis-INF": jb.TsallisINF(),
        "adaptive Exp3": jb.DelayedExp3(),
        "uniform": jb.Uniform(),
    }


def ranges(rounds):
    t = np.arange(1, rounds + 1)
    rng = np.random.default_rng(0)
    return {
        "all equal": np.ones(rounds),
        "between ½ and 1": rng.uniform(0.5, 1, rounds),
        "t^−0.1, shuffled": rng.permutation(t**-0.1),
        "1/√t": t**-0.5,
        "steep": 0.99**t,
        "few large": np.where(t % 100 == 0, 5.0, 0.5),
    }


def run(experiment):
    s = experiment.settings
    panels = experiment.panels(len(s.arms))
    for panel, arms in zip(panels, s.arms, strict=True):
        least, shown, branches = {}, {}, {}
        for index, (name, learner) in enumerate(learners(arms, s.rounds).items()):
            for label, sizes in ranges(s.rounds).items():
                game = theory.games.play_with_ranges(learner, sizes, arms)
                branch = BRANCHES[game.adversary]
                branches[label] = branch
                least[branch] = min(least.get(branch, np.inf), game.ratio)
                totals = np.cumsum(game.losses, 0)
                sight = game.losses[np.arange(s.rounds), totals.argmin(1)].sum() - totals[-1].min()
                shown[branch] = max(shown.get(branch, -np.inf), sight / game.bound)
                panel.plot(
                    [game.ratio], [f"{label}: {branch}"], "osd^vx"[index], color=jb.plots.COLOURS[index],
                    label=name if label == "all equal" else None,
                )  # fmt: skip
        for branch, ratio in least.items():
            kinds = ", ".join(label for label, one in branches.items() if one == branch)
            label = f"least regret / bound, K = {arms}, {branch} ({kinds})"
            experiment.check(label, ratio, "at least", 1 - 1e-4)
            experiment.mutant("a learner that is shown the losses before it plays", label, shown[branch])
            factor = 32 if branch == BRANCHES["spread"] else 1.01
            experiment.mutant(f"a bound {factor} times as large", label, ratio / factor)
        panel.axvline(1, color="black", linewidth=1.5)
        panel.set(xscale="log", xlabel="regret / lower bound", title=f"K = {arms}, T = {s.rounds}")
        panel.set_xlim(0.8, max(2.0, panel.get_xlim()[1]))
        panel.margins(y=0.15)
    draw_legend(panels[-1])
