"""σ_max fixed, d_max grows: four learners."""

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend, draw_measured
from experiments.claims.harness.verdict import Measured, exponent, regret_of


def run(experiment):
    s = experiment.settings
    (panel,) = experiment.panels(1)
    losses = jb.losses.Bernoulli([0.4, *[0.6] * (s.arms - 1)])
    makers = {
        "MZS22 (given d_max)": lambda longest: jb.BestOfBothWorlds(max_delay=longest),
        "ZS20": lambda _: jb.ZimmertSeldin(),
        "ZS20, skipping": lambda _: jb.ZimmertSeldin(skipping=True),
        "MZS24": lambda _: jb.RobustBestOfBothWorlds(),
    }
    told = Measured(0.0)
    for index, (name, make) in enumerate(makers.items()):
        regrets = [
            regret_of(
                experiment.simulate(
                    make(longest),
                    losses,
                    jb.delays.Outlier(first=longest, delay=1, bound=1, long_waits=1),
                    rounds=s.rounds,
                    runs=s.runs,
                )
            )
            for longest in s.longest
        ]
        draw_measured(panel, s.longest, regrets, index, name)
        label, power = f"exponent of d_max at σ_max = 2, {name}", exponent(s.longest, regrets)
        experiment.check(label, power, "at most", 0.1, kind="open")
        told = power if index == 0 else told
        if index:
            experiment.mutant("MZS22, given d_max", label, told)
    panel.axhline(0.2 * s.rounds * (s.arms - 1) / s.arms, color="grey", linewidth=1, linestyle="--", label="uniform play")
    panel.set(
        xscale="log",
        yscale="log",
        xlabel="d_max (one play waits as long)",
        ylabel=f"mean pseudo-regret at T = {s.rounds}",
        title=f"σ_max = 2, K = {s.arms}, Δ = 0.2",
    )
    draw_legend(panel)
    depends = [check.label.split(", ", 1)[1] for check in experiment.checks if check.outcome(1.96) == "fails"]
    experiment.say(f"At σ_max = 2 the regret grows with d_max for: {', '.join(depends) or 'none of the learners'}.")
