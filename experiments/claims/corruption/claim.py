"""What a budget of corruption adds to the regret."""

import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend, draw_measured
from experiments.claims.harness.verdict import mean_of, regret_of


def run(experiment):
    s = experiment.settings
    (panel,) = experiment.panels(1)
    base = jb.losses.Bernoulli([0.5 - s.gap / 2, 0.5 + s.gap / 2])
    promising = ("MZS22", "Tsallis-INF")
    learners = {
        "MZS22": jb.BestOfBothWorlds(s.delay),
        "Tsallis-INF": jb.TsallisINF(),
        "ZS20": jb.ZimmertSeldin(),
        "Delayed Exp3": jb.DelayedExp3(),
        "UCB1": jb.DelayedUCB1(),
        "Thompson sampling": jb.DelayedThompson(),
        "Successive elimination": jb.SuccessiveElimination(s.rounds),
    }

    def play(learner, budget):
        law = jb.losses.Corrupted(base, float(budget))
        return experiment.simulate(learner, law, jb.delays.Fixed(s.delay), rounds=s.rounds, runs=s.runs)

    found = {}
    for index, (name, learner) in enumerate(learners.items()):
        honest = play(learner, 0)
        clean = regret_of(honest).value
        experiment.number(f"{name}: regret without corruption", regret_of(honest))
        found[name] = {}
        for budget in s.budgets:
            result = play(learner, budget)
            added = mean_of(result, result.regret[-1] - honest.regret[-1])
            found[name][budget] = added / np.sqrt(budget * clean)
            experiment.number(f"{name}, C = {budget}: added regret", added)
            if name in promising:
                label = f"{name}, C = {budget}: added regret over √(C·R)"
                experiment.check(label, found[name][budget], "at most", s.constant, kind="open")
        if name != "Successive elimination":  # whose values would hide all others
            draw_measured(panel, s.budgets, list(found[name].values()), index, name)
    panel.axhline(s.constant, color="black", linestyle=":")
    panel.set(
        xscale="log", xlabel="budget C", ylabel="added regret over √(C·R)", title=f"Δ = {s.gap}, d = {s.delay}, T = {s.rounds}"
    )
    draw_legend(panel)
    most = s.budgets[-1]
    for name in promising:
        experiment.mutant(
            "successive elimination in its place",
            f"{name}, C = {most}: added regret over √(C·R)",
            found["Successive elimination"][most],
        )
    experiment.say(
        f"At the largest budget, C = {most}, the added regret over √(C·R) is "
        + ", ".join(f"{values[most].value:.2f} for {name}" for name, values in found.items())
        + "."
    )
