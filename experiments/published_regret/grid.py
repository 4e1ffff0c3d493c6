"""The grid of Zimmert & Seldin (JMLR 2021), or parts of it: computes, draws, compares.

    python experiments/published_regret/grid.py --out published --arms 2 8 --values tests/data/published_regret.json

Takes the settings from `grid.toml`. Every number of arms with every learner is a sweep of its own, `OUT/K8-TS`, so that parts may be
computed one after the other, in several calls at once, and to different horizons (`--arms 2 --rounds 10_000_000` goes on from a
million). Stop it when you like and start it again. Writes `OUT/grid.png` with every part that is there (lines: ours with 95 %
intervals; crosses: read off the published figures) and prints every published value beside ours.
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
LATER = (2_500_000, 5_000_000, 10_000_000)  # recorded when more than the million rounds of `grid.toml` are played
PUBLISHED_RUNS = 100


def label(env: str, gap: float, arms: int) -> str:
    return f"A, K={arms}, gap={gap}" if env == "A" else f"stochastically-constrained gap={gap} arms={arms}"


def part(spec: dict, arms: int, learner: str, rounds: int) -> dict:
    """The spec with one of its learners and only those of its games that have so many arms."""
    name, _, estimator = LEARNERS[learner].partition(" estimator=")
    table = next(table for table in spec["learners"] if table["name"] == name)
    games = []
    for game in spec["losses"]:
        if "grid" in game:
            games.append(game | {"grid": game["grid"] | {"arms": [arms]}})
        elif len(game["means"]) == arms:
            games.append(game)
    record = [t for t in (*spec["record"], *LATER) if t < rounds]
    learners = [table | {"grid": {"estimator": [estimator]}} if estimator else table]
    return spec | {"learners": learners, "losses": games, "rounds": rounds, "record": [*record, rounds]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--arms", type=int, nargs="*", default=list(ARMS), choices=ARMS, help="without a number: only draw and compare"
    )
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=LEARNERS)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--values", type=Path, help="the published values, to compare with")
    options = parser.parse_args()

    spec = tomllib.loads(Path(__file__).with_name("grid.toml").read_text())
    for arms in options.arms:
        for learner in options.learners:
            print(f"{learner} with {arms} arms", flush=True)
            jb.sweep(part(spec, arms, learner, options.rounds), options.out / f"K{arms}-{learner}", progress=True)
    played = {
        (arms, learner): jb.open_sweep(options.out / f"K{arms}-{learner}").regret.isel(delays=0, learner=0)
        for arms in ARMS
        for learner in LEARNERS
        if (options.out / f"K{arms}-{learner}").exists()
    }
    published = json.loads(options.values.read_text())["values"] if options.values else []
    draw(played, published, options.out / "grid.png")
    compare(played, published)


def draw(played: dict, published: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    rows = [(env, arms) for env in "AB" for arms in sorted({arms for arms, _ in played})]
    figure, panels = plt.subplots(
        len(rows), len(GAPS), figsize=(3.1 * len(GAPS), 2.3 * len(rows)), sharex=True, squeeze=False, layout="constrained"
    )
    lines = {}
    for (env, arms), row in zip(rows, panels, strict=True):
        for gap, panel in zip(GAPS, row, strict=True):
            for colour, learner in zip(COLOURS, LEARNERS, strict=False):
                if (arms, learner) not in played:
                    continue
                regret = played[arms, learner].sel(losses=label(env, gap, arms))
                regret = regret.isel(round=~regret.isnull().any("run").values)  # the rest is still to be computed
                if not regret.sizes["round"]:
                    continue
                rounds, middle = regret["round"].values, regret.mean("run").values
                half = 1.96 * regret.std("run", ddof=1).values / np.sqrt(regret.sizes["run"])
                (lines[learner],) = panel.plot(rounds, middle, color=colour)
                panel.fill_between(rounds, middle - half, middle + half, color=colour, alpha=0.25, linewidth=0)
                there = [
                    (v["round"], v["regret"])
                    for v in published
                    if (v["env"], v["gap"], v["arms"], v["learner"]) == (env, gap, arms, learner) and v["round"] <= rounds[-1]
                ]
                if there:
                    panel.plot(*zip(*there, strict=True), "x", color=colour, markersize=7, markeredgewidth=1.5)
            panel.set(xscale="log", yscale="log", title=f"{env}, K = {arms}, Δ = {gap:g}")
            panel.grid(alpha=0.3)
        row[0].set_ylabel("pseudo-regret")
    for panel in panels[-1]:
        panel.set_xlabel("round")
    figure.legend(lines.values(), lines, loc="outside upper center", ncols=len(LEARNERS))
    figure.savefig(path, dpi=110)
    print(f"wrote {path}")


def compare(played: dict, published: list[dict]) -> None:
    """Every published value that was played: ours, the difference, and whether it is within 8 % and 4 standard errors."""
    told = missed = 0
    for value in published:
        regret, t = played.get((value["arms"], value["learner"])), value["round"]
        if regret is None or t not in regret["round"]:
            continue
        ours = regret.sel(losses=label(value["env"], value["gap"], value["arms"]), round=t).values
        if np.isnan(ours).any():
            continue
        error = ours.std(ddof=1) * np.sqrt(1 / len(ours) + 1 / PUBLISHED_RUNS)
        inside = abs(ours.mean() - value["regret"]) <= 0.08 * value["regret"] + 4 * error
        told, missed = told + 1, missed + (not inside)
        place = f"{value['learner']:8}{value['env']}  K={value['arms']}  gap={value['gap']:<6}{t:>9,}"
        far = ours.mean() / value["regret"] - 1
        print(f"{place}{ours.mean():11.1f} against {value['regret']:9.1f} {far:+6.0%}  {'' if inside else 'missed'}")
    if told:
        print(f"{told - missed} of {told} published values within 8 % and 4 standard errors")


if __name__ == "__main__":
    main()
