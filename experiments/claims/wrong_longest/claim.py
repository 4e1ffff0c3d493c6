"""MZS22 given 0.1, 1 and 10 times the true d_max."""

import warnings

import numpy as np

import jaxbandit as jb
from experiments.claims.harness.verdict import mean_of


def run(experiment):
    warnings.filterwarnings("ignore", ".*its guarantee does not hold here.*")  # that is the experiment
    s = experiment.settings
    panels = experiment.panels(2)
    turns = np.arange(s.rounds) // (2 * s.delay) % 2
    table = np.full((s.rounds, s.arms), 0.9)
    table[:, 0], table[:, 1] = turns, 1 - turns
    regimes = {
        "stochastic, Δ = 0.2": jb.losses.Bernoulli([0.4, *[0.6] * (s.arms - 1)]),
        "delay-matched switching": jb.losses.Table(table),
    }
    for panel, (regime, losses) in zip(panels, regimes.items(), strict=True):
        results = {}
        for factor in (0.1, 1.0, 10.0):
            learner = jb.BestOfBothWorlds(max_delay=factor * s.delay)
            results[factor] = experiment.simulate(
                learner, losses, jb.delays.Fixed(s.delay, bound=32), rounds=s.rounds, runs=s.runs
            )
        jb.plots.regret({f"told {factor:g} × d_max": result for factor, result in results.items()}, ax=panel, title=regime)
        right = results[1.0].regret[-1]
        differences = {factor: mean_of(results[factor], results[factor].regret[-1] - right) for factor in (0.1, 10.0)}
        if regime.startswith("stochastic"):
            experiment.check("extra regret given 10 × d_max, stochastic", differences[10.0], "at least", 0.0, kind="open")
            experiment.check("extra regret given 0.1 × d_max, stochastic", differences[0.1], "at most", 0.0, kind="open")
            experiment.mutant("given a tenth", "extra regret given 10 × d_max, stochastic", differences[0.1])
            experiment.mutant("given ten times", "extra regret given 0.1 × d_max, stochastic", differences[10.0])
        for factor, difference in differences.items():
            experiment.number(f"regret given {factor:g} × d_max − regret given d_max, paired, {regime}", difference)
            experiment.say(
                f"{regime[0].upper()}{regime[1:]}: given {factor:g} × d_max, the regret changes by {difference.value:.0f} "
                f"[{difference.interval()[0]:.0f}, {difference.interval()[1]:.0f}] from {right.mean():.0f}."
            )
