"""Regret against delay for every algorithm of the registry that this environment suits: regret.png and the tables of
docs/delay.md and docs/appendix/regret_tables.md.

K = 4, T = 10,000. Environments: stochastic losses (one arm better by 0.2) and delay-matched switching (two arms alternate every 2d
rounds). Default hyperparameters, oracle-tuned inputs; QPM-D, BOLD and CoLo wrap Tsallis-INF.

    python experiments/delay_regret/figure.py          # a few minutes on two cores
"""

import argparse
import itertools
import warnings
from dataclasses import MISSING
from pathlib import Path

import numpy as np

import jaxbandit as jb
from jaxbandit.plots import ALGORITHMS, figure, label_logarithms
from jaxbandit.plots.panels import save_png

ARMS, ROUNDS, BOUND = 4, 10_000, 512
DELAYS = (1, 10, 50, 250)
HERE = Path(__file__).parent
FAMILIES = {
    "stochastic": ("thompson", "kl-ucb", "ucb1", "successive-elimination", "phased-elimination", "opse"),
    "FTRL": ("tsallis-inf", "zimmert-seldin", "bobw", "robust-bobw", "asymmetric-bobw", "banker", "arm-dependent"),
    "exponential weights": ("exp3", "exp3++", "delayed-exp3", "dew", "skipper", "fixed-delay-exp3"),
    "wrappers, elimination": ("qpm-d", "bold", "colo", "delayed-sapo"),
    "non-stationary arms": ("sliding-window-ucb", "discounted-ucb", "sliding-window-thompson", "discounted-thompson"),
}
OTHER_FEEDBACK = ("censored-thompson", "censored-kl-ucb")  # for delayed conversions
OTHER_FEEDBACK += ("doubling-skipper", "delayed-hedge", "full-information")  # delays at action time, full information
OTHER_FEEDBACK += ("progressive-thompson",)  # progressive feedback


def given(delay):
    """Values of the inputs that a learner may require, by field name."""
    return {
        "max_delay": delay,
        "delay": delay,
        "horizon": ROUNDS,
        "total_delay": delay * ROUNDS,
        "beta": delay,
        "max_missing": delay,
        "base": jb.TsallisINF(),
        "capacity": 4 * BOUND,
    }


def can_be_given(name):
    """Whether this environment provides all required inputs and suits the feedback model of the algorithm."""
    if name in OTHER_FEEDBACK:
        return False
    fields = jb.REGISTRY[name].__dataclass_fields__.values()
    return all(field.name in given(1) for field in fields if field.default is MISSING and field.init)


def learner(name, delay):
    cls = jb.REGISTRY[name]
    return cls(**{field: value for field, value in given(delay).items() if field in cls.__dataclass_fields__})


def games(delay):
    return {
        "stochastic losses": jb.losses.Bernoulli([0.3, *[0.5] * (ARMS - 1)]),
        "delay-matched switching": jb.losses.DelayMatchedSwitching(delay, 4),
    }


def family(name):
    return next((title for title, members in FAMILIES.items() if name in members), "other feedback models")


def draw(names, mean):
    """Small multiples ``mean [environment, learner, delay]``: a row per environment, a column per family of algorithms."""
    titles = [*dict.fromkeys([*FAMILIES, *(family(name) for name in names if name != "uniform")])]
    made, panels = figure(columns=len(titles), rows=2)
    made.set_size_inches(3.3 * len(titles), 8.2)
    for (game, environment), (column, title) in itertools.product(enumerate(games(1)), enumerate(titles)):
        panel = panels[game * len(titles) + column]
        members = [row for row, name in enumerate(names) if name != "uniform" and family(name) == title]
        for row in members:
            name, colour, marker, _ = style = ALGORITHMS[names[row]]
            panel.plot(DELAYS, mean[game, row], marker=marker, markersize=5, label=name, color=colour, linestyle=style.linestyle)
        if "uniform" in names:
            panel.plot(DELAYS, mean[game, names.index("uniform")], color="0.6", linewidth=1, label="uniform baseline")
        panel.set(xscale="log", yscale="log", ylim=(20, 4000), title=title if game == 0 else "")
        panel.set(
            xlabel="fixed delay, rounds" if game else "",
            ylabel="" if column else f"{environment}\nregret after {ROUNDS:,} rounds",
        )
        label_logarithms(panel)
        panel.set_xticks(DELAYS, DELAYS)
        if game:
            panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False, fontsize=8, ncols=1)
    made.suptitle(
        "Stochastic losses: algorithms that ignore the delay are hardly affected.\n"
        "Delay-matched switching: their regret grows most among FTRL and Exp3",
        fontsize=13,
    )
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=256)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = list(dict.fromkeys(next(n for n in jb.REGISTRY if jb.REGISTRY[n] is cls) for cls in jb.REGISTRY.values()))
    left_out = [name for name in names if not can_be_given(name)]
    names = [name for name in names if name not in left_out]
    print("left out, because they require inputs that this environment does not provide:", ", ".join(left_out) or "none")
    found = np.zeros((2, 2, len(names), len(DELAYS)))  # mean and error, of games, learners, delays
    for row, name in enumerate(names):
        for column, delay in enumerate(DELAYS):
            for game, losses in enumerate(games(delay).values()):
                players = learner(name, delay), losses, jb.delays.Fixed(delay, bound=BOUND)
                estimate = jb.simulate(*players, rounds=ROUNDS, runs=options.runs, seed=0, record=2).estimate()
                found[:, game, row, column] = estimate.mean[-1], estimate.error[-1]
        print(name, found[0, :, row].round().tolist(), flush=True)

    save_png(draw(names, found[0]), HERE / "regret.png")

    for game, title in enumerate(games(1)):
        print(f"\n**{title}**\n\n| algorithm | " + " | ".join(f"d = {delay}" for delay in DELAYS) + " |")
        print("|---" * (1 + len(DELAYS)) + "|")
        for row in np.argsort(found[0, game, :, 0], kind="stable"):
            cells = [f"{mean:.0f} ± {error:.0f}" for mean, error in found[:, game, row].T]
            print(f"| `{names[row]}` | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
