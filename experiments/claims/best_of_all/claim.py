"""Every learner in one game in which slowness pays at first and costs later."""

import numpy as np

import jaxbandit as jb
from experiments.claims.harness.verdict import mean_of
from jaxbandit.learners import REGISTRY


def game(s, order):
    """Arms that take turns, then a gap: until uniform play has lost the stake, and a few rounds in which nothing is at stake."""
    starts = np.arange(1, s.turns + 1, s.block)
    turn = np.arange(len(starts)) % 2
    end = s.turns + round(2 * s.stake / s.gap)
    means = np.vstack([np.stack([1 - turn, turn], 1), [s.level, s.level + s.gap], [s.level, s.level]])
    return jb.losses.Switching(means[:, order], [*starts, s.turns + 1, end + 1]), end


def learners(s):
    told = {"horizon": s.horizon}
    total = s.delay * s.horizon - s.delay * (s.delay + 1) // 2
    return {
        "MZS22": jb.BestOfBothWorlds(s.delay),
        "MZS22, constants 1 and 1": jb.BestOfBothWorlds(s.delay, linear=1.0, factor=1.0),
        "MZS22, constants 0 and 0": jb.BestOfBothWorlds(s.delay, linear=0.0, factor=0.0),
        "ZS20": jb.ZimmertSeldin(),
        "ZS20, skipping": jb.ZimmertSeldin(skipping=True),
        "MZS24": jb.RobustBestOfBothWorlds(),
        "Asymmetric MZS22, gaps estimated": jb.AsymmetricBestOfBothWorlds(s.delay),
        "SAPO": jb.DelayedSAPO(**told),
        "Tsallis-INF": jb.TsallisINF(),
        "Tsallis-INF rv": jb.TsallisINF("rv"),
        "Banker-Tsallis-INF": jb.BankerTsallisINF(),
        "Arm-dependent FTRL": jb.ArmDependentFTRL(s.delay),
        "BOLD of Tsallis-INF": jb.BOLD(jb.TsallisINF(), s.delay + 1),
        "Delayed Exp3": jb.DelayedExp3(),
        "DEW": jb.DelayedExponentialWeights(s.horizon, total, s.delay),
        "Skipper": jb.Skipper(s.delay + 1, s.horizon, total),
        "Fixed-delay Exp3": jb.FixedDelayExp3(s.horizon, s.delay),
        "Exp3": jb.Exp3(),
        "Exp3++": jb.Exp3PlusPlus(),
        "UCB1": jb.DelayedUCB1(),
        "QPM-D of UCB1": jb.QPMD(jb.DelayedUCB1(), 64),
        "KL-UCB": jb.KLUCB(),
        "Thompson sampling": jb.DelayedThompson(),
        "Successive elimination": jb.SuccessiveElimination(**told),
        "Phased elimination": jb.PhasedElimination(**told),
        "OPSE": jb.OptimisticPessimisticElimination(**told),
        "ODAAF": jb.ODAAF(s.horizon, s.delay),
        "Sliding-window UCB": jb.SlidingWindowUCB(),
        "Discounted UCB": jb.DiscountedUCB(),
        "Sliding-window Thompson": jb.SlidingWindowThompson(),
        "Discounted Thompson": jb.DiscountedThompson(),
        "Uniform": jb.Uniform(),
    }


def run(experiment):
    s = experiment.settings
    (panel,) = experiment.panels(1)
    orders = [game(s, order) for order in ([0, 1], [1, 0])]
    ours = []  # of MZS22, for each order of the arms

    def regret_less(results, less=None):
        """Mean over both orders of the arms, less that of other runs on the same draws."""
        ends = [
            one.regret[-1] - (0 if less is None else other.regret[-1])
            for one, other in zip(results, less or results, strict=True)
        ]
        return (mean_of(results[0], ends[0]) + mean_of(results[1], ends[1])) / 2

    def play(learner, runs):
        return [
            experiment.simulate(
                learner,
                losses,
                jb.delays.Fixed(s.delay),
                rounds=end + 10,
                runs=runs,
                record=[s.turns // 4, s.turns // 2, s.turns, end, end + 10],
            )
            for losses, end in orders
        ]

    found, leads, mutants = {}, {}, {}
    for name, learner in learners(s).items():
        if s.learners and name not in s.learners:
            continue
        results = play(learner, s.close_runs if name in ("MZS22", s.close) else s.runs)
        found[name] = regret_less(results)
        experiment.number(f"regret, {name}", found[name])
        if name == "MZS22":
            ours = results
            still = max(float(np.abs(one.regret[-1] - one.regret[-2]).max()) for one in ours)
            experiment.check("largest change of regret once all losses are equal", still, "at most", 0.01, kind="open")
            continue
        paired = [one.take_runs(0, theirs.runs) for one, theirs in zip(ours, results, strict=True)]
        leads[name] = regret_less(results, paired)
        experiment.check(f"{name} less MZS22", leads[name], "at least", 0.0, kind="open")
        if name in ("MZS24", "ZS20"):
            mutants[name] = results
        if name == "Delayed Exp3":
            for wrong, instead in mutants.items():
                experiment.mutant(f"{wrong} in place of MZS22", "Delayed Exp3 less MZS22", regret_less(results, instead))
    ranked = sorted(leads, key=lambda name: leads[name].value, reverse=True)
    values, halves = ([part(leads[name]) for name in ranked] for part in (lambda one: one.value, lambda one: 1.96 * one.error))
    panel.errorbar(values, range(len(ranked)), xerr=halves, fmt="o", markersize=3, capsize=2, color=jb.plots.COLOURS[0])
    panel.set_yticks(range(len(ranked)), ranked, fontsize=6)
    panel.set(
        xscale="log",
        xlabel="regret − regret of MZS22 (paired, 95 % interval)",
        title="Every other algorithm has a larger regret here",
    )
    nearest = min(leads, key=lambda name: leads[name].value)
    experiment.say(
        f"MZS22 has {found['MZS22'].value:.1f}, the best rival, {nearest}, {found[nearest].value:.1f}: "
        f"{leads[nearest].value / found['MZS22'].value:.1%} more, on the same draws. Uniform play has {found['Uniform'].value:.0f}."
    )
    played = {type(learner) for learner in learners(s).values()}
    experiment.say(
        f"Not played: {', '.join(name for name, cls in REGISTRY.items() if cls not in played)} (they need feedback of another kind)."
    )
