"""Learners that know d_max against learners that do not, and a search for environments in which ZS20 is not logarithmic."""

import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend
from experiments.claims.harness.verdict import increments, mean_of, regret_of
from experiments.claims.no_oracle.learner import SkippingMZS22
from jaxbandit import theory

WITHOUT_ORACLE = {
    "ZS20": jb.ZimmertSeldin(),
    "ZS20, skipping": jb.ZimmertSeldin(skipping=True),
    "MZS24": jb.RobustBestOfBothWorlds(),
    "MZS24, factor 1": jb.RobustBestOfBothWorlds(factor=1.0),
    "MZS22 (1, 1), threshold for d_max": SkippingMZS22(skipping=True),
}


def compare(experiment, panels):
    s = experiment.settings
    rng, t = np.random.default_rng(0), np.arange(s.rounds)
    laws = {
        "fixed 10": np.full(s.rounds, 10),
        "uniform 0..20": rng.integers(0, 21, s.rounds),
        "20 outliers of 60": np.where(t < 20, 60, 0),
        "geometric, mean 4": np.minimum(rng.geometric(1 / 5, s.rounds) - 1, 60),
    }
    turns = t // 20 % 2
    table = np.full((s.rounds, s.arms), 0.9)
    table[:, 0], table[:, 1] = turns, 1 - turns
    regimes = {
        "stochastic, Δ = 0.2": jb.losses.Bernoulli([0.4, *[0.6] * (s.arms - 1)]),
        "delay-matched switching": jb.losses.Table(table),
    }
    for panel, (regime, losses) in zip(panels, regimes.items(), strict=True):
        bars = {}
        for law, delays in laws.items():
            delays = theory.optimal_skipping.truncated(delays)
            trace = jb.delays.Trace(delays, bound=64, long_waits=0)
            oracle = experiment.simulate(
                jb.BestOfBothWorlds(max_delay=int(delays.max())), losses, trace, rounds=s.rounds, runs=s.runs
            )
            same = experiment.simulate(
                jb.BestOfBothWorlds(max_delay=int(delays.max()), linear=1.0, factor=1.0),
                losses,
                trace,
                rounds=s.rounds,
                runs=s.runs,
            )
            bars.setdefault("MZS22 (10, 24), given d_max", []).append(regret_of(oracle))
            bars.setdefault("MZS22 (1, 1), given d_max", []).append(regret_of(same))
            for name, learner in WITHOUT_ORACLE.items():
                result = experiment.simulate(learner, losses, trace, rounds=s.rounds, runs=s.runs)
                bars.setdefault(name, []).append(regret_of(result))
                difference = mean_of(result, result.regret[-1] - oracle.regret[-1])
                if name == "ZS20, skipping":
                    label = f"regret of {name} − that of MZS22 (10, 24), {law}, {regime}"
                    experiment.check(label, difference, "at most", 0.0, kind="open")
                else:
                    experiment.number(f"{name} − MZS22 (10, 24), paired, {law}, {regime}", difference)
                if "1" in name.split(",")[-1] or "threshold" in name:
                    against = mean_of(result, result.regret[-1] - same.regret[-1])
                    experiment.number(f"{name} − MZS22 (1, 1), paired, {law}, {regime}", against)
        for index, (name, values) in enumerate(bars.items()):
            at = np.arange(len(laws)) + 0.12 * index
            heights, errors = [one.value for one in values], [1.96 * one.error for one in values]
            panel.bar(at, heights, 0.11, yerr=errors, color=jb.plots.COLOURS[index], label=name)
        panel.set_xticks(np.arange(len(laws)) + 0.3, [name.replace(" ", "\n", 1) for name in laws], fontsize=8)
        panel.set(ylabel=f"mean pseudo-regret at T = {s.rounds}", title=regime)
        draw_legend(panel)
    smaller = sum(check.outcome(1.96) == "holds" for check in experiment.checks)
    experiment.say(
        f"ZS20 with skipping, without knowledge of the delays, has no larger regret than MZS22 (10, 24) in {smaller} of {len(experiment.checks)} cases."
    )
    for name in list(WITHOUT_ORACLE)[2:]:
        against = "MZS22 (10, 24)" if name == "MZS24" else "MZS22 (1, 1)"
        start = f"{name} − {against}, paired, "
        found = {label.removeprefix(start): one for label, one in experiment.numbers if label.startswith(start)}
        worse = [case for case, one in found.items() if one.interval()[0] > 0]
        experiment.say(
            f"{name} has a larger regret than {against} in {len(worse)} of {len(found)} cases ({'; '.join(worse) or 'none'})."
        )


def search(experiment, panel):
    s = experiment.settings
    t = np.arange(1, s.search_rounds + 1)
    late = (t & (t - 1) == 0) & (t > 16)  # one play at each power of two waits long
    laws = {
        "fixed 1": np.full(len(t), 1),
        "fixed 10": np.full(len(t), 10),
        "bursts of 20": -t % 20,
        "bursts of 100, every 1000": np.where(t % 1000 >= 900, 999 - t % 1000, 0),
        "powers of two wait 100": np.where(late, 100, 0),
    }
    games = {
        (arms, gap): jb.losses.Bernoulli([0.5 - gap / 2, *[0.5 + gap / 2] * (arms - 1)]) for arms, gap in map(tuple, s.search)
    }
    record = sorted({s.search_rounds // 100, s.search_rounds // 10, s.search_rounds})
    found = {}

    def play(name, losses, law):
        return experiment.simulate(WITHOUT_ORACLE[name], losses, law, rounds=s.search_rounds, runs=s.search_runs, record=record)

    for (arms, gap), losses in games.items():
        for law, delays in laws.items():
            trace = jb.delays.Trace(theory.optimal_skipping.truncated(delays), bound=128, long_waits=0)
            for name in ("ZS20", "ZS20, skipping"):
                result = play(name, losses, trace)
                found[name, f"K = {arms}, Δ = {gap}, {law}"] = increments(result)
    for name in ("ZS20", "ZS20, skipping"):
        ratios = {game: one for (who, game), one in found.items() if who == name}
        order = sorted(ratios, key=lambda game: ratios[game].value)
        panel.errorbar(
            [ratios[game].value for game in order], range(len(order)), xerr=[1.96 * ratios[game].error for game in order],
            fmt="o" if name == "ZS20" else "s", label=name,
        )  # fmt: skip
        worst = order[-1]
        label = f"regret of the last decade / that of the one before, {name}, largest of {len(order)} games ({worst})"
        experiment.check(label, ratios[worst], "at most", s.most_increment, kind="open")
        for game in order:
            experiment.number(f"regret of the last decade / that of the one before, {name}, {game}", ratios[game])
        lost = play(name, next(iter(games.values())), jb.delays.PacketLoss(0.7))
        experiment.mutant("missing feedback: σ_t grows without bound", label, increments(lost))
        if name == "ZS20":
            panel.set_yticks(range(len(order)), [game.replace(", ", "\n", 1) for game in order], fontsize=6)
    panel.axvline(s.most_increment, color="black", linewidth=1)
    panel.axvline(np.sqrt(10), color="grey", linestyle="--", label="√T")
    panel.set(xlabel="last decade's regret / that of the one before", title="Is ZS20 logarithmic? (order of ZS20)")
    draw_legend(panel)


def run(experiment):
    *panels, last = experiment.panels(3)
    compare(experiment, panels)
    search(experiment, last)
