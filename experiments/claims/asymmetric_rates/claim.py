"""Symmetric against asymmetric rates, run by run."""

import numpy as np

import jaxbandit as jb
from jaxbandit.claims.figures import draw_measured
from jaxbandit.claims.verdict import exponent, mean_of, width


def learners(s, gap):
    common = {"max_delay": s.delay, "linear": 1.0, "factor": 1.0}
    gaps = [0.0, *[gap] * (s.arms - 1)]
    make = jb.AsymmetricBestOfBothWorlds
    return {
        "symmetric": jb.BestOfBothWorlds(**common),
        "symmetric, 1/γ times √Δ": jb.BestOfBothWorlds(**common, entropy_scale=np.sqrt(gap)),
        "true gaps, as written": make(**common, gaps=gaps),
        "true gaps, centred": make(**common, gaps=gaps, centred=True),
        "estimated gaps, as written": make(**common),
        "estimated gaps, centred": make(**common, centred=True),
    }


def run(experiment):
    s = experiment.settings
    left, right = experiment.panels(2)
    cost, better = {}, {}
    for gap in s.gaps:
        losses = jb.losses.Bernoulli([0.5 - gap / 2, *[0.5 + gap / 2] * (s.arms - 1)])
        symmetric = None
        for name, learner in learners(s, gap).items():
            late, prompt = (
                experiment.simulate(learner, losses, jb.delays.Fixed(delay, bound=32), rounds=s.rounds, runs=s.runs)
                for delay in (s.delay, 0)
            )
            cost.setdefault(name, []).append(mean_of(late, late.regret[-1] - prompt.regret[-1]))
            if symmetric is None:
                symmetric = late
            else:
                better.setdefault(name, []).append(mean_of(late, late.regret[-1] - symmetric.regret[-1]))
    inverse = [1 / gap for gap in s.gaps]
    for index, (name, values) in enumerate(cost.items()):
        draw_measured(left, inverse, values, index, name)
        if "gaps" not in name:
            experiment.number(f"exponent of 1/Δ in the cost of delay, {name}", exponent(inverse, values))
    left.set(
        xscale="log", yscale="log", xlabel="1/Δ", ylabel=f"regret at d = {s.delay} less regret at d = 0", title="Cost of delay"
    )
    for index, (name, values) in enumerate(better.items(), start=1):
        draw_measured(right, inverse, values, index, name)
        for gap, value in zip(s.gaps, values, strict=True):
            experiment.number(f"regret less that of the symmetric learner, paired, {name}, Δ = {gap}", value)
    right.axhline(0, color="black", linewidth=1)
    right.set(
        xscale="log",
        xlabel="1/Δ",
        ylabel="regret less that of the symmetric learner",
        title=f"Paired difference at d = {s.delay} (below 0: better)",
    )
    right.figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)

    powers = {name: exponent(inverse, values) for name, values in cost.items()}
    names = [name for name in cost if "gaps" in name]
    for name in names:
        experiment.check(f"exponent of 1/Δ in the cost of delay, {name}", powers[name], "at most", 0.1, kind="open")
    z = width(experiment.checks)
    removed = [name for name, check in zip(names, experiment.checks, strict=True) if check.outcome(z) == "holds"]
    fallen = [powers[name].value for name in names]
    experiment.say(
        f"Does γ_t/√Δ_i remove 1/Δ_i in front of σ_max here? The cost of delay grows like (1/Δ)^{powers['symmetric'].value:.2f} with the symmetric "
        f"rates and like (1/Δ)^{min(fallen):.2f} to (1/Δ)^{max(fallen):.2f} with the asymmetric ones. That it no longer grows (exponent at most "
        f"0.1) is shown for {', '.join(removed) or 'none of the four'}."
    )
    control, best = "symmetric, 1/γ times √Δ", "true gaps, centred"
    experiment.say(
        f"How much of that is the asymmetry? The control, the symmetric learner with 1/γ_t times √Δ for all arms, has exponent "
        f"{powers[control].value:.2f} and at Δ = {s.gaps[0]} brings {100 * better[control][0].value / better[best][0].value:.0f} % of the gain of "
        f"the asymmetric learner with {best} ({better[control][0].value:.0f} and {better[best][0].value:.0f} in regret)."
    )
