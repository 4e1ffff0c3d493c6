"""Learners that know d_max against learners that do not."""

import numpy as np

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit.claims.figures import draw_legend
from jaxbandit.claims.verdict import mean_of, regret_of


def run(experiment):
    s = experiment.settings
    rng = np.random.default_rng(0)
    t = np.arange(s.rounds)
    laws = {
        "fixed 10": np.full(s.rounds, 10),
        "uniform 0..20": rng.integers(0, 21, s.rounds),
        "20 outliers of 1000": np.where(t < 20, 1000, 0),
        "geometric, mean 10": np.minimum(rng.geometric(1 / 11, s.rounds) - 1, 1000),
    }
    turns = t // 20 % 2
    table = np.full((s.rounds, s.arms), 0.9)
    table[:, 0], table[:, 1] = turns, 1 - turns
    regimes = {
        "stochastic, Δ = 0.2": jb.losses.Bernoulli([0.4, *[0.6] * (s.arms - 1)]),
        "adversary in step": jb.losses.Table(table),
    }
    told_nothing = {
        "ZS20": jb.ZimmertSeldin(),
        "ZS20, skipping": jb.ZimmertSeldin(skipping=True),
        "MZS24": jb.RobustBestOfBothWorlds(),
    }
    panels = experiment.panels(2)
    for panel, (regime, losses) in zip(panels, regimes.items(), strict=True):
        bars = {}
        for law, delays in laws.items():
            delays = theory.truncated(delays)
            trace = jb.delays.Trace(delays, bound=128, long_waits=64)
            oracle = experiment.simulate(
                jb.BestOfBothWorlds(max_delay=int(delays.max())), losses, trace, rounds=s.rounds, runs=s.runs
            )
            bars.setdefault("MZS22, told d_max", []).append(regret_of(oracle))
            for name, learner in told_nothing.items():
                result = experiment.simulate(learner, losses, trace, rounds=s.rounds, runs=s.runs)
                bars.setdefault(name, []).append(regret_of(result))
                difference = mean_of(result, result.regret[-1] - oracle.regret[-1])
                experiment.number(f"{name} less MZS22, paired, {law}, {regime}", difference)
                if name == "ZS20, skipping":
                    experiment.check(
                        f"regret of {name} less that of MZS22, {law}, {regime}", difference, "at most", 0.0, kind="open"
                    )
        for index, (name, values) in enumerate(bars.items()):
            at = np.arange(len(laws)) + 0.2 * index
            panel.bar(
                at,
                [one.value for one in values],
                0.18,
                yerr=[1.96 * one.error for one in values],
                color=jb.plots.COLOURS[index],
                label=name,
            )
        panel.set_xticks(np.arange(len(laws)) + 0.3, [name.replace(" ", "\n", 1) for name in laws], fontsize=8)
        panel.set(ylabel=f"mean pseudo-regret at T = {s.rounds}", title=regime)
        draw_legend(panel)
    worse = [
        label.split("paired, ")[1] for label, one in experiment.numbers if label.startswith("MZS24") and one.interval()[0] > 0
    ]
    smaller = sum(check.outcome(1.96) == "holds" for check in experiment.checks)
    experiment.say(
        f"ZS20 with skipping, told nothing, has no larger regret than MZS22 in {smaller} of {len(experiment.checks)} cases."
    )
    experiment.say(f"MZS24, with its constant 49, has a larger one in: {'; '.join(worse) or 'no case'}.")
