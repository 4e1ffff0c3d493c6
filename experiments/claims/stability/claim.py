"""The stability term against both parts of its lemma."""

import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend, draw_runs
from experiments.claims.harness.verdict import mean_of
from jaxbandit import theory


def driven(arms, ratio):
    """Stability over Σ 2f''(x_i)^{-1}(ℓ_i − α)² where ℓ hits one arm so hard that α reaches 1/γ; b = 1/γ = 1, a = 1/η = ratio.

    The arm goes from x to x', the others, which are alike, share what it loses. Which ℓ does that follows from the optimality of
    both, and the stability term is the Bregman divergence D_F(x, x'): nothing is solved.
    """
    x, fall = np.meshgrid(np.geomspace(1e-8, 0.99, 120), np.geomspace(1e-4, 30, 160))
    before = np.stack([x, (1 - x) / (arms - 1)])
    after = np.stack([x * np.exp(-fall), (1 - x * np.exp(-fall)) / (arms - 1)])
    slope = ratio * (after**-0.5 - before**-0.5) + np.log(before / after)  # f'(before) − f'(after)
    loss, counts = slope[0] - slope[1], np.array([1, arms - 1])[:, None, None]
    tsallis = ratio * (np.sqrt(before) - np.sqrt(after)) ** 2 / np.sqrt(after)
    stability = (counts * (tsallis + before * np.log(before / after) - before + after)).sum(0)
    z = 1 / (ratio / 2 * before**-1.5 + 1 / before)
    shift = z[0] * loss / (counts * z).sum(0)
    limit = 2 * (z[0] * (loss - shift) ** 2 + (arms - 1) * z[1] * shift**2)
    return (stability / limit)[shift <= 1].max(), shift[shift <= 1].max()


def inverse_slope(y, a, b):
    """x with −a·x^(−1/2) + b·log x = y, by bisection in log x."""
    low, high = np.full_like(y, -120.0), np.full_like(y, 120.0)
    for _ in range(70):
        middle = (low + high) / 2
        small = -a * np.exp(-middle / 2) + b * middle < y
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    return np.exp((low + high) / 2)


def exact_stability(x, loss, counts, a, b):
    """The stability term D_F(x, x') of one round, for arms of several kinds: ``x`` and ``loss`` ``[kind, n]``, ``counts [kind, 1]``."""
    slope = -a * x**-0.5 + b * np.log(x) - loss
    low, high = np.zeros_like(x[0]), loss.max(0)
    for _ in range(60):
        middle = (low + high) / 2
        small = (counts * inverse_slope(slope + middle, a, b)).sum(0) < 1
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    after = inverse_slope(slope + (low + high) / 2, a, b)
    tsallis = a * (np.sqrt(x) - np.sqrt(after)) ** 2 / np.sqrt(after)
    return (counts * (tsallis + b * (x * np.log(x / after) - x + after))).sum(0)


def second_part(arms, delay, t):
    """Largest E stability / Σ_i η_t x_i^{3/2}(1/x_i − 1) of one round in which one loss arrives at once, in float64.

    One arm has probability u, the others are alike. Rates as in Algorithm 1, all earlier feedback having arrived without delay.
    The losses are 1 for all arms, for the one arm, or for all others.
    """
    u = np.concatenate([np.geomspace(1e-6, 0.5, 60), 1 - np.geomspace(1e-8, 0.5, 40), [1 / arms]])
    v = (1 - u) / (arms - 1)
    a = np.sqrt(t + 10 * delay + (delay / (arms ** (1 / 3) * np.log(arms))) ** 2)
    b = 24 * delay * arms ** (1 / 3)
    one, zero = np.array([[1.0], [arms - 1]]), np.zeros_like(u)
    hit = u * exact_stability(np.stack([u, v]), np.stack([1 / u, zero]), one, a, b)
    others = np.array([[1.0], [1.0], [arms - 2]])
    hit_another = (1 - u) * exact_stability(np.stack([v, u, v]), np.stack([1 / v, zero, zero]), others, a, b)
    unit = (np.sqrt(u) * (1 - u) + (arms - 1) * np.sqrt(v) * (1 - v)) / a
    return max((found / unit).max() for found in (hit + hit_another, hit, hit_another))


def run(experiment):
    s = experiment.settings
    panels = experiment.panels(2)
    found = np.array([driven(arms, ratio) for arms in (2, 4, 64, 1024) for ratio in np.geomspace(1e-3, 1e3, 13)])
    label = "largest stability / limit of one round, all states, losses of one arm up to α_t = 1/γ_t"
    experiment.check(label, found[:, 0].max(), "at most", 1.0)
    experiment.mutant("½ in place of 2", label, 4 * found[:, 0].max())
    experiment.number("largest α_t·γ_t reached there", found[:, 1].max())
    worst = max(second_part(arms, delay, t) for arms in (2, 4, 16, 256) for delay in (1, 4, 64) for t in (1, 100, 1e4, 1e6, 1e9))
    label = "second part, one round: largest E stability / E sum, all states of two kinds of arms, one arrival"
    experiment.check(label, worst, "at most", 4.0, kind="recomputed")
    experiment.mutant("constant ½ in place of 4", label, bound=0.5)
    # A game that comes close: no delay although one round is allowed, and losses that are all 1.
    learner = jb.BestOfBothWorlds(max_delay=1)
    measure = [theory.measurements.StabilityAndPenalty(learner, 1), theory.measurements.SelfBounding(learner, 1)]
    ones, prompt = jb.losses.Bernoulli([1.0] * s.arms), jb.delays.Fixed(0, bound=1)
    result = experiment.simulate(learner, ones, prompt, rounds=s.rounds, runs=s.runs, measure=measure)
    read = result.measured
    share = mean_of(result, read["stability"][-1] / (read["stability_tsallis"] + read["stability_entropy"])[-1].mean())
    label = "E stability / E(sums of the second part), no delay, d_max = 1, all losses 1"
    experiment.check(label, share, "at most", 4.0, kind="recomputed")
    experiment.mutant("constants ¼ in place of 4", label, bound=0.25)
    experiment.say(
        f"Second part: over all states of one round the ratio to the sums approaches {worst:.3f}; the proof gives 4, the paper prints 2. "
        "In the limit of small steps it is at most 1, by the same proof with ½ in place of 2."
    )
    losses = jb.losses.Bernoulli([0.3, *[0.6] * (s.arms - 1)])
    t = np.arange(1, s.rounds + 1)
    laws = {"fixed": np.full(s.rounds, s.delay), "bursts": -t % (s.delay + 1)}
    for panel, (name, delays) in zip(panels, laws.items(), strict=True):
        learner = jb.BestOfBothWorlds(max_delay=s.delay)
        law = jb.delays.Trace(theory.optimal_skipping.truncated(delays), bound=16, long_waits=0)
        measure = [theory.measurements.StabilityAndPenalty(learner, s.delay), theory.measurements.SelfBounding(learner, s.delay)]
        result = experiment.simulate(learner, losses, law, rounds=s.rounds, runs=s.runs, measure=measure, burning_in=True)
        read = result.measured
        experiment.check(f"largest stability / limit of one round, {name}", read["stability_ratio"].max(), "at most", 1.0)
        experiment.check(f"largest α_t·γ_t, {name}", read["shift_ratio"].max(), "at most", 1.0)
        if name == "bursts":
            tiny = jb.BestOfBothWorlds(max_delay=s.delay, linear=10 / 64, factor=24 / 64)
            measure = [theory.measurements.StabilityAndPenalty(tiny, s.delay)]
            wrong = experiment.simulate(tiny, losses, law, rounds=s.rounds, runs=256, measure=measure, burning_in=True)
            experiment.mutant("both constants times 1/64", f"largest α_t·γ_t, {name}", wrong.measured["shift_ratio"].max())
        experiment.check(f"largest α_t/(a_t(K − 1)^(1/3)) (Lemma aux1), {name}", read["aux1_ratio"].max(), "at most", 4.0)
        expected = read["stability_tsallis"] + read["stability_entropy"]
        share = mean_of(result, read["stability"][-1] / expected[-1].mean())
        label = f"E stability / E(sums of the second part), {name}"
        experiment.check(label, share, "at most", 4.0, kind="recomputed")
        experiment.number(f"the same against the printed constant 2, {name}: 1 or less would hold", share / 2)
        curves = {
            "stability": read["stability"],
            "first part, path by path": read["stability_limit"],
            "second part, constant 4": 4 * expected,
        }
        for index, (label, values) in enumerate(curves.items()):
            come = values.mean(-1) > 0  # nothing before the first feedback
            draw_runs(panel, result.rounds[come], values[come], index, label)
        panel.set(
            xscale="log", yscale="log", xlabel="round t", ylabel="sum up to t", title=f"delays: {name} (bands: 95 % of the runs)"
        )
        draw_legend(panel)
