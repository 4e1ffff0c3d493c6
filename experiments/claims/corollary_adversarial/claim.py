"""The constant in front of √((K−1)T) + √(dT log K), over d and K."""

import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend, draw_measured
from experiments.claims.harness.verdict import exponent, local_exponents, regret_of
from jaxbandit import theory


def worst_over_gaps(experiment, arms, delay, factor=24.0):
    """The largest mean regret over the gaps, the same for all d and K."""
    s, regrets = experiment.settings, []
    for gap in s.gaps:
        losses = jb.losses.Bernoulli([0.5 - gap / 2, *[0.5 + gap / 2] * (arms - 1)])
        learner, law = jb.BestOfBothWorlds(max_delay=delay, factor=factor), jb.delays.Fixed(delay, bound=16)
        regrets.append(regret_of(experiment.simulate(learner, losses, law, rounds=s.rounds, runs=s.runs, burning_in=True)))
    return max(regrets, key=lambda one: one.value)


def run(experiment):
    s = experiment.settings
    by_delay, by_arms = experiment.panels(2)
    found = {}
    for arms in s.arms:
        for delay in sorted({*s.delays, s.delay}) if arms == s.arms[0] else (s.delay,):
            order = np.sqrt((arms - 1) * s.rounds) + np.sqrt(delay * s.rounds * np.log(arms))
            worst = worst_over_gaps(experiment, arms, delay)
            delays = np.full(s.rounds, delay)
            limit = float(theory.bounds.adversarial(theory.bounds.mzs22_rates(delays, arms), delays, arms).total[-1])
            found[arms, delay] = worst, order, limit
            experiment.check(f"worst regret over gaps, K = {arms}, d = {delay}", worst, "at most", limit)
    arms, delay = s.arms[0], max(s.delays)
    uniform = max(s.gaps) * s.rounds * (arms - 1) / arms
    experiment.mutant("uniform play", f"worst regret over gaps, K = {arms}, d = {delay}", uniform)
    lines = (
        (by_delay, "delay d", [key for key in found if key[0] == s.arms[0]], 1, f"K = {s.arms[0]}"),
        (by_arms, "arms K", [key for key in found if key[1] == s.delay], 0, f"d = {s.delay}"),
    )
    for panel, label, keys, which, title in lines:
        x = [key[which] for key in keys]
        constants = [found[key][0] / found[key][1] for key in keys]
        draw_measured(panel, x, constants, label="MZS22, worst gap")
        panel.plot(x, [found[key][2] / found[key][1] for key in keys], color="black", label="explicit bound")
        panel.set(xscale="log", xlabel=label, ylabel="regret / (√((K−1)T) + √(dT log K))", title=f"{title}, T = {s.rounds}")
        panel.set_ylim(bottom=0)
        draw_legend(panel)
        check = f"exponent of {label} in regret / (√((K−1)T) + √(dT log K))"
        experiment.check(check, exponent(x, constants), "at most", s.most_exponent, kind="shape")
        for low, high, power in zip(x, x[1:], local_exponents(x, constants)):
            experiment.number(f"exponent between {label} = {low} and {high}", power)
        ends = keys[0], keys[-1]
        wrong = [worst_over_gaps(experiment, *key, 24 * key[which] / x[0]) / found[key][1] for key in ends]
        experiment.mutant(f"√γ₀ times {label[-1]}, first and last {label[-1]}", check, exponent([x[0], x[-1]], wrong))
    orders = [np.sqrt((arms - 1) * s.rounds) for arms in s.arms]
    prompt = [worst_over_gaps(experiment, arms, 0) / order for arms, order in zip(s.arms, orders, strict=True)]
    draw_measured(by_arms, s.arms, prompt, 1, "no delay, / √((K−1)T)", fmt="s--")
    draw_legend(by_arms)
    experiment.number("exponent of arms K in regret / √((K−1)T) without delay (Tsallis-INF)", exponent(s.arms, prompt))
