"""The largest drift ever seen, as the constants 10 and 24 shrink together."""

import warnings

import numpy as np

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit.claims.figures import draw_legend


def games(s, arms):
    turns = np.arange(s.rounds) // (2 * s.delay) % 2
    table = np.full((s.rounds, arms), 1.0)
    table[:, 0], table[:, 1] = turns, 1 - turns
    fixed, bursts = jb.delays.Fixed(s.delay, bound=16), jb.delays.Bursts(s.delay + 1, bound=16)
    easy = jb.losses.Bernoulli([0.1, *[0.9] * (arms - 1)])
    return {
        f"K = {arms}, stochastic, fixed delay": (easy, fixed),
        f"K = {arms}, arms take turns, bursts": (jb.losses.Table(table), bursts),
    }


def run(experiment):
    warnings.filterwarnings("ignore", ".*its guarantee does not hold here.*")  # of ZS20 as a member of the family
    s = experiment.settings
    (panel,) = experiment.panels(1)
    measure = [theory.Drift(s.delay)]
    drawn = [scale or min(one for one in s.scales if one) / 4 for scale in s.scales]
    played = 0
    for index, (name, (losses, delays)) in enumerate({k: v for arms in s.arms for k, v in games(s, arms).items()}.items()):

        def largest(learner, runs, losses=losses, delays=delays):
            result = experiment.simulate(learner, losses, delays, rounds=s.rounds, runs=runs, measure=measure, burning_in=True)
            return float(result.measured["drift"][-1].max())

        by_scale = []
        for scale in s.scales:
            runs = s.runs if scale == 1 else s.scaled_runs
            by_scale.append(largest(jb.BestOfBothWorlds(max_delay=s.delay, linear=10 * scale, factor=24 * scale), runs))
            played += s.rounds * runs if scale == 1 else 0
        experiment.check(f"largest drift, paper's constants, {name}", by_scale[0], "at most", 2.0)
        broken = [scale for scale, drift in zip(s.scales, by_scale, strict=True) if drift > 2]
        where = (
            f"first passes 2 at {max(broken):g} times the constants"
            if broken
            else f"never passes 2 (largest {max(by_scale):.2f})"
        )
        experiment.say(f"{name}: as the constants shrink through {s.scales}, the drift {where}.")
        # ZS20 as a member of the family: a = √t, 1/γ_t = √(2Σσ/log K).
        rivals = {"ZS20": jb.BestOfBothWorlds(max_delay=0, entropy_scale=np.sqrt(2))}
        if losses.num_arms == max(s.arms):
            rivals["MZS24"] = jb.RobustBestOfBothWorlds()
        for short, learner in rivals.items():
            experiment.number(f"largest drift of {short}, {name}", largest(learner, s.scaled_runs))
        panel.plot(drawn, by_scale, "o" + jb.plots.STYLES[index % 4], color=jb.plots.COLOURS[index], label=name)
    panel.axhline(2, color="black", linewidth=1.5)
    panel.annotate("key lemma: 2", (drawn[0], 2), xytext=(0, 4), textcoords="offset points", ha="right", fontsize=9)
    panel.set(
        xscale="log",
        xlabel="scale of the constants 10 and 24 (leftmost: 0)",
        ylabel="largest x_t,i / x_s,i within d_max rounds",
        title=f"Drift, d_max = {s.delay}",
    )
    draw_legend(panel)
    experiment.say(
        f"With the paper's constants {played:.3g} run-rounds were played, and every window of d_max + 1 rounds and every arm looked at."
    )
