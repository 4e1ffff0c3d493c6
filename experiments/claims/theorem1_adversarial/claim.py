"""Three adversaries against the explicit bound, and the growth of the worst case in T and D."""

import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend, draw_measured
from experiments.claims.harness.verdict import Measured, exponent, regret_of
from jaxbandit import theory


def adversaries(s):
    turns = np.arange(s.rounds) // (2 * s.delay) % 2
    switching = np.full((s.rounds, s.arms), 0.9)
    switching[:, 0], switching[:, 1] = turns, 1 - turns
    coins = np.random.default_rng(0).integers(0, 2, (s.rounds, s.arms)).astype(float)
    return {
        "environment B, Δ = 0.1": jb.losses.StochasticallyConstrained(0.1, arms=s.arms),
        "delay-matched switching": jb.losses.Table(switching),
        "coin flips": jb.losses.Table(coins),
    }


def worst_over_gaps(experiment, learner, delays, at):
    """The largest mean regret over the gaps at each of the rounds ``at``; the gaps are the same for all: a learner that never learns pays ∝ T."""
    s, found = experiment.settings, []
    law = jb.delays.Trace(delays, bound=16, long_waits=0)
    for gap in s.gaps:
        losses = jb.losses.Bernoulli([0.5 - gap / 2, *[0.5 + gap / 2] * (s.arms - 1)])
        result = experiment.simulate(learner, losses, law, rounds=s.rounds, runs=s.runs, burning_in=True, record=at)
        estimate = result.estimate()
        found.append([Measured(float(mean), float(error)) for mean, error in zip(estimate.mean, estimate.error, strict=True)])
    return [max(column, key=lambda one: one.value) for column in zip(*found, strict=True)]


def worst_over_periods(experiment, learner):
    """The largest mean regret under delay-matched switching: two arms alternate every d, 2d or 3d rounds."""
    s, found = experiment.settings, []
    for period in (s.long_delay, 2 * s.long_delay, 3 * s.long_delay):
        turns = np.arange(s.long_rounds) // period % 2
        losses, law = jb.losses.Table(np.stack([turns, 1 - turns], 1).astype(float)), jb.delays.Fixed(s.long_delay)
        found.append(
            regret_of(experiment.simulate(learner, losses, law, rounds=s.long_rounds, runs=s.long_runs, burning_in=True))
        )
    return max(found, key=lambda one: one.value)


def explicit(delays, arms):
    return theory.bounds.adversarial(theory.bounds.mzs22_rates(delays, arms), delays, arms).total


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

    mzs22 = learners["MZS22"]
    fixed = np.full(s.rounds, s.delay)
    by_total = [np.where(np.arange(s.rounds) % 16 < count, s.delay, 0) for count in s.waiting]
    by_time = worst_over_gaps(experiment, mzs22, fixed, s.horizons)
    lines = (
        (middle, "T", s.horizons, by_time, [bound[at - 1] for at in s.horizons]),
        (
            right,
            "total delay D",
            [int(theory.optimal_skipping.truncated(delays).sum()) for delays in by_total],
            [worst_over_gaps(experiment, mzs22, delays, [s.rounds])[0] for delays in by_total],
            [float(explicit(delays, s.arms)[-1]) for delays in by_total],
        ),
    )
    for panel, what, x, y, top in lines:
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
        experiment.check(f"exponent of {what}", power, "at most", s.most_exponent, kind="shape")
        experiment.number(
            f"exponent of {what} in the explicit bound over the same range", exponent(x, [Measured(one) for one in top])
        )
        for at, regret, over in zip(x, y, top, strict=True):
            experiment.check(f"worst regret over gaps, {what} = {at}", regret, "at most", over)
    never = worst_over_gaps(experiment, jb.Uniform(), fixed, s.horizons)
    experiment.mutant("uniform play", "exponent of T", exponent(s.horizons, never))
    experiment.mutant("uniform play", f"worst regret over gaps, T = {s.horizons[-1]}", never[-1])

    limit = float(explicit(np.full(s.long_rounds, s.long_delay), 2)[-1])
    label = f"regret under delay-matched switching, K = 2, d = {s.long_delay}, T = {s.long_rounds}"
    experiment.check(label, worst_over_periods(experiment, jb.BestOfBothWorlds(s.long_delay)), "at most", limit)
    experiment.mutant("Tsallis-INF, which ignores the delay", label, worst_over_periods(experiment, jb.TsallisINF()))
