"""The grid of Zimmert & Seldin (JMLR 2021), or the part with some numbers of arms: computes, draws, compares.

    python experiments/published_regret/grid.py --out published --arms 2 8 --values tests/data/published_regret.json

Takes the settings from `grid.toml`. Stop it when you like and start it again; raise `--rounds` later. Writes `OUT/grid.png` (lines:
ours with 95 % intervals; crosses: read off the published figures) and prints every published value beside ours.
"""

import argparse
import json
import tomllib
from pathlib import Path

import numpy as np

import jaxbandit as jb
from jaxbandit.plots import COLOURS

LEARNERS = {
    "TInf-IW": "tsallis-inf estimator=iw",
    "TInf-RV": "tsallis-inf estimator=rv",
    "Exp3": "exp3",
    "UCB1": "ucb1",
    "TS": "thompson",
}
GAPS = (0.25, 0.125, 0.0625, 0.03125)
ARMS = (2, 8, 32, 128)
PUBLISHED_RUNS = 100


def label(env: str, gap: float, arms: int) -> str:
    return f"A, K={arms}, gap={gap}" if env == "A" else f"stochastically-constrained gap={gap} arms={arms}"


def with_arms(spec: dict, arms: list[int]) -> dict:
    """The spec with only those of its games that have so many arms."""
    games = []
    for table in spec["losses"]:
        if "grid" in table:
            games.append(table | {"grid": table["grid"] | {"arms": [k for k in table["grid"]["arms"] if k in arms]}})
        elif len(table["means"]) in arms:
            games.append(table)
    return spec | {"losses": games}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--arms", type=int, nargs="+", default=list(ARMS), choices=ARMS)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--values", type=Path, help="the published values, to compare with")
    options = parser.parse_args()
    jb.use_all_cores()

    spec = with_arms(tomllib.loads(Path(__file__).with_name("grid.toml").read_text()), options.arms)
    spec["record"] = [t for t in spec["record"] if t < options.rounds] + [options.rounds]
    jb.sweep(spec, options.out, rounds=options.rounds, progress=True)
    regret = jb.open_sweep(options.out).regret.isel(delays=0)
    mean, spread = regret.mean("run"), regret.std("run", ddof=1)
    published = json.loads(options.values.read_text())["values"] if options.values else []
    draw(mean, spread / np.sqrt(regret.sizes["run"]), published, options)
    compare(mean, spread, regret.sizes["run"], published)


def draw(mean, error, published: list[dict], options) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    rows = [(env, arms) for env in "AB" for arms in options.arms]
    figure, panels = plt.subplots(
        len(rows), len(GAPS), figsize=(3.1 * len(GAPS), 2.3 * len(rows)), sharex=True, squeeze=False, layout="constrained"
    )
    rounds = mean["round"].values
    for (env, arms), row in zip(rows, panels, strict=True):
        for gap, panel in zip(GAPS, row, strict=True):
            for colour, (name, learner) in zip(COLOURS, LEARNERS.items(), strict=False):
                cell = {"learner": learner, "losses": label(env, gap, arms)}
                middle, half = mean.sel(cell).values, 1.96 * error.sel(cell).values
                panel.plot(rounds, middle, color=colour, label=name)
                panel.fill_between(rounds, middle - half, middle + half, color=colour, alpha=0.25, linewidth=0)
                there = [
                    (v["round"], v["regret"])
                    for v in published
                    if (v["env"], v["gap"], v["arms"], v["learner"]) == (env, gap, arms, name) and v["round"] <= rounds[-1]
                ]
                if there:
                    panel.plot(*zip(*there, strict=True), "x", color=colour, markersize=7, markeredgewidth=1.5)
            panel.set(xscale="log", yscale="log", title=f"{env}, K = {arms}, Δ = {gap:g}")
            panel.grid(alpha=0.3)
        row[0].set_ylabel("pseudo-regret")
    for panel in panels[-1]:
        panel.set_xlabel("round")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=len(LEARNERS))
    figure.savefig(options.out / "grid.png", dpi=110)
    print(f"wrote {options.out / 'grid.png'}")


def compare(mean, spread, runs: int, published: list[dict]) -> None:
    """Every published value that was played: ours, the difference, and whether it is within 8 % and 4 standard errors."""
    told = missed = 0
    known = set(mean["losses"].values), set(mean["round"].values)
    for value in published:
        game, t = label(value["env"], value["gap"], value["arms"]), value["round"]
        if game not in known[0] or t not in known[1]:
            continue
        cell = {"learner": LEARNERS[value["learner"]], "losses": game, "round": t}
        ours, wanted = mean.sel(cell).item(), value["regret"]
        error = spread.sel(cell).item() * np.sqrt(1 / runs + 1 / PUBLISHED_RUNS)
        inside = abs(ours - wanted) <= 0.08 * wanted + 4 * error
        told, missed = told + 1, missed + (not inside)
        place = f"{value['learner']:8}{value['env']}  K={value['arms']}  gap={value['gap']:<6}{t:>9,}"
        print(f"{place}{ours:11.1f} against {wanted:9.1f} {ours / wanted - 1:+6.0%}  {'' if inside else 'missed'}")
    if told:
        print(f"{told - missed} of {told} published values within 8 % and 4 standard errors")


if __name__ == "__main__":
    main()
