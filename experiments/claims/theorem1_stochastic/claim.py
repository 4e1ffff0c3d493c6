"""Regret against T and the gaps, and against d_max and σ_max where one moves and the other stays."""

import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend, draw_measured
from experiments.claims.harness.verdict import Measured, increments, power_over_offset, regret_of, slope
from jaxbandit import theory
from jaxbandit._core.fields import pytree_dataclass

BEST = 0.4  # fixed: importance-weighted losses of the best arm are then as noisy for every gap


@pytree_dataclass
class SlowRate(jb.BestOfBothWorlds):
    """Wrong: 1/η_t = (t + η₀)^{3/4}; its regret grows like √T."""

    def inverse_rates(self, state, round, num_arms):
        tsallis, entropy = jb.learners.BestOfBothWorlds.inverse_rates(self, state, round, num_arms)
        return tsallis * jnp.sqrt(tsallis), entropy


def bernoulli(gaps):
    return jb.losses.Bernoulli([BEST, *[BEST + gap for gap in gaps]])


def in_time(experiment, panel, below):
    s = experiment.settings
    record = sorted({s.rounds // 100, s.rounds // 10, *np.geomspace(10, s.rounds, 25).astype(int).tolist()})
    inverse, slopes = [], []

    def play(learner, gaps):
        law = jb.delays.Fixed(s.delay, bound=2)
        return experiment.simulate(learner, bernoulli(gaps), law, rounds=s.rounds, runs=s.runs, record=record)

    for index, gaps in enumerate(s.gaps):
        result = play(jb.BestOfBothWorlds(max_delay=s.delay), gaps)
        jb.plots.draw_estimate(panel, result.estimate(), index, f"gaps {', '.join(map(str, gaps))}")
        inverse.append(sum(1 / gap for gap in gaps))
        slopes.append(slope(result))
        label = f"regret of the last decade of rounds over that of the one before, gaps {gaps}"
        experiment.check(label, increments(result), "at most", s.most_increment, kind="shape")
        if gaps == s.gaps[1]:
            experiment.mutant("1/η_t = (t + η₀)^{3/4}", label, increments(play(SlowRate(max_delay=s.delay), gaps)))
        limit = theory.bounds.self_bounding_limits([0, *gaps], s.rounds, s.delay, s.delay + 1, s.delay).total
        experiment.number(f"recomputed bound over regret at T, gaps {gaps}", float(limit) / regret_of(result).value)
    for name, learner in {"ZS20": jb.ZimmertSeldin(), "MZS24": jb.RobustBestOfBothWorlds()}.items():
        experiment.number(f"{name}: regret per log t over the last decade, gaps {s.gaps[1]}", slope(play(learner, s.gaps[1])))
    equal = [at for at, gaps in enumerate(s.gaps) if len(set(gaps)) == 1]
    constant = np.mean([slopes[at].value / inverse[at] for at in equal])
    for at, gaps in enumerate(s.gaps):
        label = f"slope in log t over {constant:.2f}·Σ 1/Δ_i, gaps {gaps}"
        experiment.check(label, slopes[at] / (constant * inverse[at]), "equals", 1.0, resolution=s.slope_resolution, kind="shape")
        if at not in equal:
            experiment.mutant("(K − 1)/min Δ in place of Σ 1/Δ_i", label, slopes[at] / (constant * (s.arms - 1) / min(gaps)))
    panel.set(
        xscale="log",
        xlabel="round t",
        ylabel="mean pseudo-regret",
        title=f"Regret grows like log t (K = {s.arms}, d = {s.delay})",
    )
    draw_legend(panel)
    draw_measured(below, inverse, slopes, label="MZS22, measured", fmt="o")
    below.plot(
        sorted(inverse), constant * np.array(sorted(inverse)), color="black", linestyle="--", label=f"{constant:.2f}·Σ 1/Δ_i"
    )
    lines = [float(theory.bounds.lai_robbins(bernoulli(gaps).means, np.e).total) for gaps in s.gaps]
    below.plot(inverse, lines, "kx", label="Lai–Robbins, slope of any consistent learner")
    below.set(
        xscale="log",
        yscale="log",
        xlabel="Σ 1/Δ_i",
        ylabel="regret per unit of log t, last decade",
        title="The slope is proportional to Σ 1/Δ_i",
    )
    draw_legend(below)


def in_delay(experiment, panel):
    s = experiment.settings

    def play(gap, longest, wait, factor=24.0, small=None):
        constants = {"linear": 10.0, "factor": factor} if small is None else {"linear": small, "factor": small}
        law = jb.delays.Outlier(first=longest, delay=wait, bound=64, long_waits=1)
        learner = jb.BestOfBothWorlds(max_delay=longest, **constants)
        game = (learner, bernoulli([gap] * (s.arms - 1)), law)
        return regret_of(experiment.simulate(*game, rounds=s.outlier_rounds, runs=s.outlier_runs))

    longest = max(s.longest)
    for index, gap in enumerate(s.delay_gaps):
        by_longest = [play(gap, one, 1) for one in s.longest]
        by_sigma = [play(gap, longest, wait) for wait in s.waits]
        by_sigma_small = [play(gap, longest, wait, small=s.small) for wait in s.waits]
        sigmas = [wait + 1 for wait in s.waits]
        label = f"p of d_max in offset + slope·d_max^p, σ_max = 2, Δ = {gap}"
        experiment.check(label, power_over_offset(s.longest, by_longest), "at most", s.most_power, kind="shape")
        if gap == max(s.delay_gaps):
            # √γ₀ ∝ d^1.35, the same at the shortest of the delays.
            wrong = [play(gap, one, 1, 24 * (one / s.longest[0]) ** 0.35) for one in s.longest]
            experiment.mutant("γ₀ ∝ d_max^{2.7}", label, power_over_offset(s.longest, wrong))
        label = f"p of σ_max in offset + slope·σ_max^p, d_max = {longest}, constants {s.small}, Δ = {gap}"
        experiment.check(label, power_over_offset(sigmas, by_sigma_small), "at most", s.most_power, kind="shape")
        squares = [Measured(by_sigma_small[0].value + 0.5 * (sigma**2 - sigmas[0] ** 2), one.error)
                   for one, sigma in zip(by_sigma_small, sigmas, strict=True)]  # fmt: skip
        experiment.mutant("a cost of σ_max²/2", label, power_over_offset(sigmas, squares))
        per_delay = (by_longest[-1].value - by_longest[0].value) / (s.longest[-1] - s.longest[0])
        for name, line in (("10 and 24", by_sigma), (s.small, by_sigma_small)):
            cost = (line[-1] + Measured(-line[0].value, line[0].error)) / (sigmas[-1] - sigmas[0])
            experiment.number(
                f"regret per unit of σ_max, d_max = {longest}, constants {name}, Δ = {gap} (1/(Δ log K) is {1 / gap / np.log(s.arms):.1f})",
                cost,
            )
        experiment.number(f"regret per unit of d_max, σ_max = 2, constants 10 and 24, Δ = {gap}", per_delay)
        for place, (x, line, name) in enumerate(
            ((s.longest, by_longest, "d_max, σ_max = 2"), (sigmas, by_sigma, f"σ_max, d_max = {longest}"), (sigmas, by_sigma_small, f"σ_max, constants {s.small}"))
        ):  # fmt: skip
            draw_measured(panel, x, line, 3 * index + place, f"{name}, Δ = {gap}")
    panel.set(
        xscale="log", yscale="log", xlabel="d_max or σ_max", ylabel=f"mean pseudo-regret at T = {s.outlier_rounds}", title="Cost of d_max and of σ_max", ylim=(40, None)
    )  # fmt: skip
    draw_legend(panel, loc="lower right", ncols=2)


def run(experiment):
    time, gaps, delays = experiment.panels(3)
    in_time(experiment, time, gaps)
    in_delay(experiment, delays)
    held = {number[0]: number[1].value for number in experiment.numbers}
    told, waits = (
        next(value for label, value in held.items() if label.startswith(start))
        for start in ("regret per unit of d_max", "regret per unit of σ_max")
    )
    powers = [check.measured.value for check in experiment.checks if check.label.startswith("p of")]
    experiment.say(
        f"With the constants 10 and 24 one more round of d_max costs {told:.0f} in regret at fixed σ_max, one more of σ_max {waits:.1f} at "
        "fixed d_max: the input d_max costs more than the actual number of outstanding observations. Powers over an offset: "
        f"{', '.join(f'{power:.2f}' for power in powers[::2])} of d_max, {', '.join(f'{power:.2f}' for power in powers[1::2])} of σ_max "
        f"(constants {experiment.settings.small})."
    )
