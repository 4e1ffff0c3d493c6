"""Regret against drifted regret on every path; unbiasedness of the drifted estimate."""

import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend, draw_measured
from experiments.claims.harness.verdict import mean_of
from jaxbandit import theory
from jaxbandit._core.arms import pick
from jaxbandit._core.fields import pytree_dataclass


@pytree_dataclass
class WeightAtArrival(jb.BestOfBothWorlds):
    """Wrong: divides by the probability of the round of arrival, not of the play."""

    def observe(self, state, observation):
        x = state.warm.y**-2.0
        now = pick(x / x.sum(0), jnp.maximum(observation.arm, 0))
        return jb.learners.BestOfBothWorlds.observe(self, state, observation._replace(probability=now))


def two_arms(difference, tsallis, entropy):
    """x of the second of two arms, the larger by ``difference`` in estimated loss, by bisection of its log-odds."""
    low, high = -60.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        x, y = 1 / (1 + np.exp(-middle)), 1 / (1 + np.exp(middle))
        value = tsallis * (y**-0.5 - x**-0.5) + entropy * np.log(x / y) + difference
        low, high = (low, middle) if value > 0 else (middle, high)
    return x


def forced_cycles(delay, scale, level, cycles):
    """The largest Reg/Reg_drift on a path on which it should be large, Δ = 1, and the largest (Reg − d_max)/Reg_drift.

    The bad arm is brought down to ``level``. Then in each cycle ``delay`` plays of the good arm, loss 1, wait while the bad arm is
    likely; one play of the bad arm makes it unlikely again, and only then do the others arrive, counted at the small probability.
    """
    start = theory.bounds.mzs22_constants(delay, 2, 10 * scale, 24 * scale)
    estimate, t, waited, regret, drifted, most, most_less = 0.0, 0, 0.0, 0.0, 0.0, 0.0, 0.0

    def bad(waiting):
        nonlocal t, waited, regret
        t, waited = t + 1, waited + waiting
        x = two_arms(estimate, np.sqrt(t + start.tsallis), np.sqrt((waited + start.entropy) / np.log(2)))
        regret += x
        return x

    while (x := bad(0)) > level:
        drifted, estimate = drifted + x, estimate + 1 / x
    for _ in range(cycles):
        plays = sum(1 / (1 - bad(waiting)) for waiting in range(delay))
        x = bad(delay)
        drifted, estimate = drifted + x, estimate + min(1 / x, plays)
        drifted, estimate = drifted + (delay + 1) * bad(delay), estimate - plays
        most, most_less = max(most, regret / drifted), max(most_less, (regret - delay) / drifted)
    return most, most_less


def run(experiment):
    s = experiment.settings
    paths, means = experiment.panels(2)
    losses = jb.losses.Bernoulli([0.3, *[0.6] * (s.arms - 1)])
    rng = np.random.default_rng(0)

    def laws(rounds):
        t = np.arange(1, rounds + 1)
        raw = {"fixed": np.full(rounds, s.delay), "bursts": -t % (s.delay + 1), "random": rng.integers(0, s.delay + 1, rounds)}
        return {
            name: jb.delays.Trace(theory.optimal_skipping.truncated(delays), bound=16, long_waits=0)
            for name, delays in raw.items()
        }

    for index, (name, law) in enumerate(laws(s.rounds).items()):
        learner = jb.BestOfBothWorlds(max_delay=s.delay)
        result = experiment.simulate(
            learner, losses, law, rounds=s.rounds, runs=s.runs, measure=[theory.measurements.DriftedRegret()], burning_in=True
        )
        limit = 2 * result.measured["drifted_regret"][-1] + s.delay
        label = f"largest regret / (2·drifted + d_max) of all paths, {name}"
        experiment.check(label, np.max(result.regret[-1] / limit), "at most", 1.0)
        smaller = result.measured["drifted_regret"][-1] / 2 + s.delay
        experiment.mutant("½ in place of 2", label, np.max(result.regret[-1] / smaller))
        paths.scatter(result.measured["drifted_regret"][-1], result.regret[-1], s=6, color=jb.plots.COLOURS[index], label=name)
    ends = np.array(paths.get_xlim())
    paths.plot(ends, 2 * ends + s.delay, color="black", label="2·drifted + d_max")
    paths.plot(ends, ends, color="grey", linestyle="--", label="equality")
    paths.set(
        xlabel="drifted regret of a path", ylabel="regret of the path", title=f"Every path (K = {s.arms}, d_max = {s.delay})"
    )
    draw_legend(paths)

    for index, (name, law) in enumerate(laws(s.short_rounds).items()):
        learner = jb.BestOfBothWorlds(max_delay=s.delay, linear=1.0, factor=1.0)
        measure = [theory.measurements.DriftedRegret(), theory.measurements.StabilityAndPenalty(learner, s.delay)]
        result = experiment.simulate(
            learner, losses, law, rounds=s.short_rounds, runs=s.short_runs, measure=measure, burning_in=True
        )
        drifted = float(result.measured["drifted_regret"][-1].mean())
        bias = mean_of(result, result.measured["estimated_drift"][-1] - result.measured["drifted_regret"][-1])
        experiment.check(
            f"bias of the estimated drifted regret (which is {drifted:.0f}), {name}",
            bias,
            "equals",
            0.0,
            resolution=0.02 * drifted,
        )
        if name == "fixed":
            wrong = WeightAtArrival(max_delay=s.delay, linear=1.0, factor=1.0)
            measure = [theory.measurements.DriftedRegret(), theory.measurements.StabilityAndPenalty(wrong, s.delay)]
            other = experiment.simulate(
                wrong, losses, law, rounds=s.short_rounds, runs=s.short_runs, measure=measure, burning_in=True
            )
            off = mean_of(other, other.measured["estimated_drift"][-1] - other.measured["drifted_regret"][-1])
            experiment.mutant("the probability at arrival in the weight", experiment.checks[-1].label, off)
        draw_measured(means, [index], [bias], index, capsize=4)
        means.plot([index - 0.3, index + 0.3], [0.02 * drifted] * 2, color="grey")
        means.plot([index - 0.3, index + 0.3], [-0.02 * drifted] * 2, color="grey")
    means.axhline(0, color="black", linewidth=0.8)
    means.set(
        xticks=range(3),
        xticklabels=list(laws(s.short_rounds)),
        ylabel="estimated − true drifted regret, mean",
        title="Unbiased? (grey: ±2 % of the drifted regret)",
    )
    most = {
        scale: np.max([forced_cycles(delay, scale, level, s.cycles) for delay in (4, s.delay) for level in (0.1, 0.02)], axis=0)
        for scale in (1.0, 1 / 16, 1 / 64, 0.0)
    }
    for scale, (ratio, less) in most.items():
        experiment.number(f"largest Reg/Reg_drift on forced cycles, both constants times {scale:g}", ratio)
        experiment.number(f"largest (Reg − d_max)/Reg_drift there, both constants times {scale:g}", less)
    less = max(one[1] for one in most.values())
    without = "holds there too" if less <= 1 else f"is missed there by up to {less - 1:.1%}"
    experiment.say(
        "Does the factor 2 matter? It was looked for and not found. On paths on which plays of the good arm wait while the bad arm is "
        f"likely and arrive while it is not, Reg/Reg_drift reaches {most[1.0][0]:.3f} with the paper's constants and "
        f"{max(one[0] for one in most.values()):.3f} with smaller ones: what waits is counted in 1/γ_t and slows the learner down. "
        f"Reg ≤ Reg_drift + d_max, without the factor, {'holds' if most[1.0][1] <= 1 else 'fails'} on them with the paper's constants "
        f"({most[1.0][1]:.4f} for (Reg − d_max)/Reg_drift) and {without} with smaller ones."
    )
