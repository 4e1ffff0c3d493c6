"""Symmetric rates, the paper's two asymmetric rules as written, and variants, run by run."""

import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_measured
from experiments.claims.harness.verdict import last_decade, local_exponents, mean_of, width

WRITTEN = ("true gaps, as written", "estimated gaps, as written")
CONTROL = "control: symmetric, 1/γ times √Δ"


def learners(s, gap):
    common = {"max_delay": s.delay, "linear": 1.0, "factor": 1.0}
    gaps = [0.0, *[gap] * (s.arms - 1)]
    make = jb.AsymmetricBestOfBothWorlds
    return {
        "symmetric": jb.BestOfBothWorlds(**common),
        WRITTEN[0]: make(**common, gaps=gaps, floor=0.0),
        WRITTEN[1]: make(**common, floor=0.0),
        f"true gaps, floor {s.floor}, centred": make(**common, gaps=gaps, floor=s.floor, centred=True),
        CONTROL: jb.BestOfBothWorlds(**common, entropy_scale=np.sqrt(gap)),
    }


def cost_of_delay(experiment, learner, gap, rounds):
    """Results with and without delay, and the mean of the paired differences of their regrets."""
    s = experiment.settings
    losses = jb.losses.Bernoulli([0.5 - gap / 2, *[0.5 + gap / 2] * (s.arms - 1)])
    late, prompt = (
        experiment.simulate(learner, losses, jb.delays.Fixed(delay, bound=32), rounds=rounds, runs=s.runs, burning_in=True)
        for delay in (s.delay, 0)
    )
    return late, prompt, mean_of(late, late.regret[-1] - prompt.regret[-1])


def one_horizon(experiment, smallest):
    """The same exponents where all gaps have the horizon of the smallest; ``smallest``: its costs, by learner."""
    s = experiment.settings
    rounds = round(s.horizon / s.gaps[0] ** 2)
    for name in ("symmetric", WRITTEN[0]):
        costs = [smallest[name]]
        costs += [cost_of_delay(experiment, learners(s, gap)[name], gap, rounds)[2] for gap in s.gaps[1 : s.same_horizon]]
        for small, large, power in zip(s.gaps, s.gaps[1:], local_exponents([1 / gap for gap in s.gaps[: len(costs)]], costs)):
            experiment.number(f"exponent of 1/Δ between Δ = {large} and {small}, both at T = {rounds}, {name}", power)


def run(experiment):
    s = experiment.settings
    left, right = experiment.panels(2)
    cost, better = {}, {}
    for gap in s.gaps:
        symmetric = None
        for name, learner in learners(s, gap).items():
            late, prompt, paid = cost_of_delay(experiment, learner, gap, round(s.horizon / gap**2))
            cost.setdefault(name, []).append(paid)
            experiment.number(
                f"share of the cost of delay in the last decade of rounds, {name}, Δ = {gap}", last_decade(late, prompt)
            )
            if symmetric is None:
                symmetric = late
            else:
                better.setdefault(name, []).append(mean_of(late, late.regret[-1] - symmetric.regret[-1]))
    inverse = [1 / gap for gap in s.gaps]
    powers = {name: local_exponents(inverse, values) for name, values in cost.items()}
    for index, (name, values) in enumerate(cost.items()):
        draw_measured(left, inverse, values, index, name)
        for gap, value in zip(s.gaps, values, strict=True):
            experiment.number(f"cost of delay, {name}, Δ = {gap}", value)
        for small, large, power in zip(s.gaps, s.gaps[1:], powers[name]):
            experiment.number(f"exponent of 1/Δ between Δ = {large} and {small}, {name}", power)
    one_horizon(experiment, {name: values[0] for name, values in cost.items()})
    left.set(xscale="log", yscale="log", xlabel="1/Δ", ylabel=f"regret at d = {s.delay} − regret at d = 0", title="Cost of delay")
    for index, (name, values) in enumerate(better.items(), start=1):
        draw_measured(right, inverse, values, index, name)
        for gap, value in zip(s.gaps, values, strict=True):
            experiment.number(f"regret − that of the symmetric learner, paired, {name}, Δ = {gap}", value)
    right.axhline(0, color="black", linewidth=1)
    right.set(
        xscale="log", xlabel="1/Δ", ylabel="regret − that of the symmetric learner",
        title=f"Paired difference at d = {s.delay} (below 0: better)",
    )  # fmt: skip
    right.figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=8)

    for name in WRITTEN:
        label = f"exponent of 1/Δ in the cost of delay between the two smallest gaps, {name}"
        experiment.check(label, powers[name][0], "at most", s.most_exponent, kind="open")
        experiment.mutant("symmetric rates", label, powers["symmetric"][0])
    z = width(experiment.checks)
    said = {"holds": "yes", "not shown": "not decided", "fails": "no"}
    answers = [
        f"{name}: {said[check.outcome(z)]} (exponent {check.measured.value:.2f})"
        for name, check in zip(WRITTEN, experiment.checks, strict=True)
    ]
    experiment.say(
        f"Is the cost of delay flat in 1/Δ with γ_t/√Δ_i as written (exponent between the two smallest gaps at most {s.most_exponent})? "
        f"{'; '.join(answers)}. With symmetric rates the exponent is {powers['symmetric'][0].value:.2f}."
    )
    best = min(better, key=lambda name: better[name][0].value)
    experiment.say(
        f"The control without asymmetry has exponent {powers[CONTROL][0].value:.2f} and changes the regret at Δ = {s.gaps[0]} by "
        f"{better[CONTROL][0].value:.0f}; {best} by {better[best][0].value:.0f}, the rules as written by "
        f"{better[WRITTEN[0]][0].value:.0f} and {better[WRITTEN[1]][0].value:.0f}."
    )
