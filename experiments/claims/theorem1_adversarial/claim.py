"""Three adversaries against the explicit bound, and the growth of the worst case in T and D."""

import numpy as np

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit.claims.figures import draw_legend, draw_measured
from jaxbandit.claims.verdict import Measured, exponent, regret_of


def adversaries(s):
    turns = np.arange(s.rounds) // (2 * s.delay) % 2
    taking_turns = np.full((s.rounds, s.arms), 0.9)
    taking_turns[:, 0], taking_turns[:, 1] = turns, 1 - turns
    coins = np.random.default_rng(0).integers(0, 2, (s.rounds, s.arms)).astype(float)
    return {
        "environment B, Δ = 0.1": jb.losses.StochasticallyConstrained(0.1, arms=s.arms),
        "two arms take turns": jb.losses.Table(taking_turns),
        "coin flips": jb.losses.Table(coins),
    }


def worst_over_gaps(experiment, delays):
    """The largest mean regret over gaps around √((KT + D log K))/T, where theory expects the worst."""
    s, rounds, found = experiment.settings, len(delays), []
    for multiple in s.multiples:
        gap = min(1.0, multiple * np.sqrt(s.arms * rounds + delays.sum() * np.log(s.arms)) / rounds)
        losses = jb.losses.Bernoulli([0.5 - gap / 2, *[0.5 + gap / 2] * (s.arms - 1)])
        law = jb.delays.Trace(
            np.append(delays, np.zeros(s.rounds - rounds, int)), bound=16, long_waits=0
        )  # of one length: one program
        learner = jb.BestOfBothWorlds(max_delay=s.delay)
        found.append(regret_of(experiment.simulate(learner, losses, law, rounds=rounds, runs=s.runs, burning_in=True)))
    return max(found, key=lambda one: one.value)


def explicit(delays, arms):
    return theory.adversarial(theory.mzs22_rates(delays, arms), delays, arms).total


def run(experiment):
    s = experiment.settings
    left, middle, right = experiment.panels(3)
    bound = explicit(np.full(s.rounds, s.delay), s.arms)
    learners = {"MZS22": jb.BestOfBothWorlds(max_delay=s.delay), "ZS20": jb.ZimmertSeldin(), "MZS24": jb.RobustBestOfBothWorlds()}
    for index, (name, losses) in enumerate(adversaries(s).items()):
        for (short, learner), style in zip(learners.items(), ("-", ":", "-."), strict=True):
            result = experiment.simulate(learner, losses, jb.delays.Fixed(s.delay, bound=16), rounds=s.rounds, runs=s.runs)
            estimate, at = result.estimate(), result.rounds >= 100
            left.plot(
                result.rounds[at], estimate.mean[at], color=jb.plots.COLOURS[index], linestyle=style, label=f"{short}, {name}"
            )
            if short == "MZS22":
                ratio = [estimate.mean[at], estimate.error[at]] / bound[result.rounds[at] - 1]
                tightest = int(np.argmax(ratio[0]))
                experiment.check(
                    f"regret over the explicit bound, largest over time, {name}", Measured(*ratio[:, tightest]), "at most", 1.0
                )
            else:
                experiment.number(f"{short}: regret at T = {s.rounds}, {name}", regret_of(result))
    grid = np.unique(np.geomspace(100, s.rounds, 200).astype(int))
    left.plot(grid, bound[grid - 1], color="black", linewidth=2.2, label="explicit bound, MZS22")
    left.set(
        xscale="log",
        yscale="log",
        xlabel="round t",
        ylabel="mean pseudo-regret",
        title=f"Three adversaries (K = {s.arms}, d = {s.delay})",
    )
    left.set_ylim(bottom=0.02)  # room for the legend
    draw_legend(left, fontsize=7, ncols=2, loc="lower left")

    by_time = [np.full(rounds, s.delay) for rounds in s.horizons]
    by_total = [np.where(np.arange(s.rounds) % 16 < count, s.delay, 0) for count in s.waiting]
    lines = (
        (middle, "T", s.horizons, by_time),
        (right, "total delay D", [int(theory.truncated(delays).sum()) for delays in by_total], by_total),
    )
    for panel, what, x, sequences in lines:
        y = [worst_over_gaps(experiment, delays) for delays in sequences]
        top = [float(explicit(delays, s.arms)[-1]) for delays in sequences]
        power = exponent(x, y)
        draw_measured(panel, x, y, label="MZS22, worst gap")
        panel.plot(x, top, color="black", label="explicit bound")
        panel.plot(
            x,
            y[-1].value * np.sqrt(np.array(x) / x[-1]),
            color="grey",
            linestyle="--",
            label="square root, through the last point",
        )
        panel.set(
            xscale="log",
            yscale="log",
            xlabel=what,
            ylabel="largest mean regret over gaps",
            title=f"Growth in {what}: exponent {power.value:.2f}",
        )
        draw_legend(panel)
        experiment.check(f"exponent of {what}", power, "at most", 0.6, kind="shape")
        experiment.number(
            f"exponent of {what} in the explicit bound over the same range", exponent(x, [Measured(one) for one in top])
        )
        for at, regret, over in zip(x, y, top, strict=True):
            experiment.check(f"worst regret over gaps, {what} = {at}", regret, "at most", over)
