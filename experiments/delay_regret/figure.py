"""What delay does to each learner's regret: every learner of the registry that can play this game, with benign losses and with an adversary.

K = 4 and T = 10 000. Above: one arm is better by 0.2. Below: the demo's adversary, who knows the delay (two arms take turns every 2d
rounds). Learners have their defaults and are told the truth; QPM-D, BOLD and CoLo have Tsallis-INF inside.

    python experiments/delay_regret/figure.py          # regret.png and the tables of docs/delay.md; eight minutes on a busy two-core machine
"""

import argparse
import warnings
from dataclasses import MISSING
from pathlib import Path

import numpy as np

import jaxbandit as jb
from jaxbandit.plots import COLOURS, STYLES, figure, label_logarithms

ARMS, ROUNDS, BOUND = 4, 10_000, 512
DELAYS = (1, 10, 50, 250)
HERE = Path(__file__).parent


def given(delay):
    """What a learner may have to be told, by the name of its field."""
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
    """Whether the facts above are all that a learner needs; the others are for other games."""
    fields = jb.REGISTRY[name].__dataclass_fields__.values()
    return all(field.name in given(1) for field in fields if field.default is MISSING and field.init)


def learner(name, delay):
    cls = jb.REGISTRY[name]
    return cls(**{field: value for field, value in given(delay).items() if field in cls.__dataclass_fields__})


def games(delay):
    return {
        "stochastic": jb.losses.Bernoulli([0.3, *[0.5] * (ARMS - 1)]),
        "adversary who knows the delay": jb.losses.DelayMatchedSwitching(delay, 4),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=256)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = list(dict.fromkeys(next(n for n in jb.REGISTRY if jb.REGISTRY[n] is cls) for cls in jb.REGISTRY.values()))
    left_out = [name for name in names if not can_be_given(name)]
    names = [name for name in names if name not in left_out]
    print("left out, because they must be told what this game has not:", ", ".join(left_out) or "none")
    found = np.zeros((2, 2, len(names), len(DELAYS)))  # mean and error, of games, learners, delays
    for row, name in enumerate(names):
        for column, delay in enumerate(DELAYS):
            for game, losses in enumerate(games(delay).values()):
                players = learner(name, delay), losses, jb.delays.Fixed(delay, bound=BOUND)
                estimate = jb.simulate(*players, rounds=ROUNDS, runs=options.runs, seed=0, record=2).estimate()
                found[:, game, row, column] = estimate.mean[-1], estimate.error[-1]
        print(name, found[0, :, row].round().tolist(), flush=True)

    made, panels = figure(rows=2)
    made.set_size_inches(8, 12.5)
    for game, (title, panel) in enumerate(zip(games(1), panels, strict=True)):
        for row, name in enumerate(names):
            look = {"color": COLOURS[row % len(COLOURS)], "linestyle": STYLES[row // len(COLOURS) % len(STYLES)]}
            panel.plot(DELAYS, np.maximum(found[0, game, row], 1), marker="o", markersize=3, label=name, **look)
        panel.set(
            xscale="log",
            yscale="log",
            title=title,
            xlabel="delay of every loss, rounds",
            ylabel=f"regret after {ROUNDS:,} rounds",
        )
        label_logarithms(panel)
        panel.set_xticks(DELAYS, DELAYS)
    made.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=9, columnspacing=1.0
    )
    made.savefig(HERE / "regret.png", dpi=110)

    for game, title in enumerate(games(1)):
        print(f"\n**{title}**\n\n| learner | " + " | ".join(f"d = {delay}" for delay in DELAYS) + " |")
        print("|---" * (1 + len(DELAYS)) + "|")
        for row in np.argsort(found[0, game, :, 0], kind="stable"):
            cells = [f"{mean:.0f} ± {error:.0f}" for mean, error in found[:, game, row].T]
            print(f"| `{names[row]}` | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
