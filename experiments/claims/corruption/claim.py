"""What a budget of corruption adds to the regret."""

import numpy as np

import jaxbandit as jb
from experiments.claims.corruption.search import environment, search
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
        for budget in s.searched if name in promising else ():
            way = search(learner, s.delay, s.gap, budget, s.rounds, seed=1000)
            law, delays = environment(way, s.gap, budget, s.rounds), jb.delays.Fixed(s.delay)
            result = experiment.simulate(learner, law, delays, rounds=s.rounds, runs=16 * s.runs)
            added = mean_of(result, result.regret[-1] - clean)
            label = f"{name}, C = {budget}, searched: added regret over √(C·R)"
            experiment.check(label, added / np.sqrt(budget * clean), "at most", s.constant, kind="open")
            experiment.number(f"{name}, C = {budget}, searched: added regret", added)
            starts, means = (np.asarray(value).tolist() for value in (law.starts, np.round(law.means, 2)))
            experiment.say(f"{name}, C = {budget}: phases from rounds {starts} with means {means}.")
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
