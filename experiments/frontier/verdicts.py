"""The verdicts of the pre-registered rule on what the grid has found, as Markdown, a figure, and one file of results.

python -m experiments.frontier.verdicts [--out FOLDER] [--keep experiments/frontier/grid.json] [--figure docs/frontier_grid.png]

Cells of grid.json, and those that are finished in FOLDER.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.ticker

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from experiments.frontier.grid import cell_name, registered

TAPERS = ("TaperedFTRL 0.5/0.5", "TaperedFTRL 0.8/0.75")
CONSTANT = ("DEW 4", "DEW 3")
GIVEN = (*TAPERS, *CONSTANT)  # given T
COLOURS = {
    "TaperedFTRL 0.5/0.5": "#d62728",
    "TaperedFTRL 0.8/0.75": "#ff7f0e",
    "DEW 4": "#17becf",
    "DEW 3": "#1f9eb0",
    "Delayed Exp3 2": "#1f77b4",
    "MZS22 without constants 0.45": "#e377c2",
    "ZS20 0.5": "#2ca02c",
    "Tsallis-INF": "#7f7f7f",
    "Thompson": "#000000",
    "Thompson 0.1": "#555555",
}


def point(row: dict[str, Any]) -> tuple[float, float, float]:
    """S at both gaps, and W: the larger of the own search and of the tables of all."""
    return row["S 0.1"][0], row["S 0.3"][0], max(row["own"][0], row["others"]["W"][0])


def dominates(one: tuple[float, float, float], other: tuple[float, float, float], rule: dict[str, float]) -> bool:
    """Of the file: nothing higher by more than 2%, and W or both S lower by more than 5%."""
    ratios = [mine / theirs for mine, theirs in zip(one, other, strict=True)]
    return max(ratios) <= rule["higher"] and (ratios[2] < rule["lower"] or max(ratios[:2]) < rule["lower"])


def verdict(rows: dict[str, Any], rival: str, rule: dict[str, float]) -> str:
    """Of the tapers against a rival in one cell."""
    tapers, theirs = [point(rows[name]) for name in TAPERS], point(rows[rival])
    if any(dominates(taper, theirs, rule) for taper in tapers):
        return "dominated"
    return "dominates" if any(dominates(theirs, taper, rule) for taper in tapers) else "trade-off"


def hypotheses(cells: dict[str, dict[str, Any]], rule: dict[str, float]) -> dict[str, tuple[int, bool]]:
    """By hypothesis and rival: the number of cells that count for or against it, and whether it holds."""

    def count(ones: tuple[str, ...], others: tuple[str, ...]) -> int:
        """The cells in which one of some learners dominates one of others."""
        return sum(
            any(dominates(point(rows[one]), point(rows[other]), rule) for one in ones for other in others)
            for rows in cells.values()
        )

    found = {}
    for rival in ("Delayed Exp3 2", "MZS22 without constants 0.45", "ZS20 0.5"):
        dominated = count(TAPERS, (rival,))
        found[f"any_time: {rival} is dominated"] = dominated, dominated >= 0.75 * len(cells)
    against, ahead = count(CONSTANT, TAPERS), count(TAPERS, CONSTANT)
    found["constant_rate: a DEW dominates a taper"] = against, against < 2
    found["advantage: a taper dominates a DEW"] = ahead, ahead > len(cells) / 2
    for rival in ("Tsallis-INF", "Thompson", "Thompson 0.1"):
        for name, number in (("is dominated", count(TAPERS, (rival,))), ("dominates a taper", count((rival,), TAPERS))):
            found[f"stochastic_end: {rival} {name}"] = number, number < 2
    return found


def raised(cells: dict[str, dict[str, Any]], factor: float) -> dict[str, dict[str, Any]]:
    """The same cells with W of both tapers raised: a search that misses more for the tapers than for their rivals."""

    def higher(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"own": [factor * row["own"][0]], "others": {"W": [factor * row["others"]["W"][0]]}}

    return {cell: {name: higher(row) if name in TAPERS else row for name, row in rows.items()} for cell, rows in cells.items()}


def gathered(out: Path) -> dict[str, dict[str, Any]]:
    """The rows of all finished cells."""
    cells = {}
    for cell in registered()["cells"]:
        rows = [json.loads(file.read_text()) for file in sorted((out / cell_name(cell)).glob("*.json"))]
        if len(rows) == len(registered()["learners"]) and all("others" in row for row in rows):
            cells[cell_name(cell)] = {row["learner"]: row for row in rows}
    return cells


def summary(cells: dict[str, dict[str, Any]], rule: dict[str, float]) -> list[str]:
    """One row for each cell: S at gap 0.1 / W of each learner; bold: dominated by a taper; italic: dominates one."""
    names = list(registered()["learners"])
    lines = [f"| setting | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    mark = {"dominated": "**", "dominates": "*", "trade-off": ""}
    for rows in cells.values():
        cell, parts = next(iter(rows.values()))["cell"], []
        for name in names:
            low, _, worst = point(rows[name])
            around = "" if name in TAPERS else mark[verdict(rows, name, rule)]
            parts.append(f"{around}{low:.0f} / {worst:,.0f}{around}")
        kind = ", geometric" if "delays" in cell else ""
        lines.append(f"| {cell['arms']}, {cell['delay']}, {cell['rounds']:,}{kind} | {' | '.join(parts)} |")
    return lines


def text(cells: dict[str, dict[str, Any]]) -> str:
    plan = registered()
    rivals = [name for name in plan["learners"] if name not in TAPERS]
    lines = [f"| rival | {' | '.join(cells)} |", "|---" * (len(cells) + 1) + "|"]
    for rival in rivals:
        lines.append(f"| {rival} | {' | '.join(verdict(rows, rival, plan['rule']) for rows in cells.values())} |")
    lines += ["", f"| learner | {' | '.join(cells)} |", "|---" * (len(cells) + 1) + "|"]
    for name in plan["learners"]:
        points = (point(rows[name]) for rows in cells.values())
        lines.append(f"| {name} | {' | '.join(f'{low:.0f}, {high:.0f} / {worst:,.0f}' for low, high, worst in points)} |")
    lines += ["", *summary(cells, plan["rule"])]
    lines += [
        "",
        f"| hypothesis | in so many of {len(cells)} cells | outcome | if W of the tapers were 5% higher |",
        "|---" * 4 + "|",
    ]
    moved = hypotheses(raised(cells, 1.05), plan["rule"])
    for name, (number, holds) in hypotheses(cells, plan["rule"]).items():
        outcomes = ["holds" if one else "**rejected**" for one in (holds, moved[name][1])]
        lines.append(f"| {name} | {number} | {outcomes[0]} | {moved[name][0]}, {outcomes[1]} |")
    held = [
        (rows[name]["held out"]["W"][0] / point(rows[name])[2], cell, name, rows[name]["held out"]["table"])
        for cell, rows in cells.items()
        for name in plan["learners"]
    ]
    added = [point(row)[2] / row["own"][0] - 1 for rows in cells.values() for row in rows.values()]
    share, cell, name, table = max(held)
    lines += ["", f"Largest held-out regret over W: {share:.2f} ({cell}, {name}, {table})."]
    few = sum(one < 0.03 for one in added)
    lines += [f"Tables of others added less than 3% to W in {few} of {len(added)} cases, at most {max(added):.0%}."]
    seconds = sum(row["seconds"] for rows in cells.values() for row in rows.values())
    lines += [f"Processor time of the searches: {seconds / 60:.0f} minutes."]
    return "\n".join(lines) + "\n"


def draw(cells: dict[str, dict[str, Any]], file: Path) -> None:
    columns = 3 if len(cells) > 4 else 2
    rows = math.ceil(len(cells) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(10.5, 3.4 * rows), layout="constrained", squeeze=False)
    for axis, found in zip(axes.flat, cells.values(), strict=False):
        cell = next(iter(found.values()))["cell"]
        delay, rounds = cell["delay"], cell["rounds"]
        # Points far above the others would flatten the rest: they are named in a corner.
        top = 2 * sorted(point(row)[2] for row in found.values())[len(found) // 2]
        outside = [(learner, point(row)) for learner, row in found.items() if point(row)[2] > top]
        text = "\n".join(f"not shown: {learner} (S {one[0]:.0f}, W {one[2]:,.0f})" for learner, one in outside)
        axis.text(0.02, 0.98, text, transform=axis.transAxes, fontsize=7, va="top")
        for learner, row in found.items():
            low, _, worst = point(row)
            if worst > top:
                continue
            bar = worst - row["own"][0]
            axis.errorbar(
                low,
                worst,
                yerr=[[0], [max(bar, row["held out"]["W"][0] - worst, 0)]],
                marker="o" if learner in GIVEN else "s",
                markerfacecolor=COLOURS[learner] if learner in GIVEN else "white",
                color=COLOURS[learner],
                capsize=2,
                linestyle="",
                label=learner,
            )
        lower = math.sqrt((delay + 1) * rounds / (2 * math.pi))
        if "delays" not in cell:  # the bound is for a fixed delay
            axis.axhline(lower, color="0.4", linewidth=1)
        axis.set(xscale="log", yscale="log")
        axis.set_ylim(0.9 * lower, 1.4 * top)  # room for the text
        for ticks in (axis.xaxis, axis.yaxis):
            for locator in (ticks.set_major_locator, ticks.set_minor_locator):
                locator(matplotlib.ticker.NullLocator())
            ticks.set_major_locator(matplotlib.ticker.MaxNLocator(5))
            ticks.set_major_formatter(matplotlib.ticker.StrMethodFormatter("{x:,.0f}"))
        kind = "mean delay (geometric)" if "delays" in cell else "d"
        axis.set_title(f"K = {cell['arms']}, {kind} = {delay}, T = {rounds:,}", fontsize=9)
        axis.set(xlabel="stochastic regret S (gap 0.1)", ylabel="largest regret found W")
    for axis in axes.flat[len(cells) :]:
        axis.set_axis_off()
    shown = {label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    order = [name for name in registered()["learners"] if name in shown]
    figure.legend([shown[name] for name in order], order, loc="outside lower center", ncols=4, fontsize=8)
    figure.suptitle("Learners given T (filled) have lower regret in both senses; no learner is below the line", fontsize=10)
    figure.savefig(file, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--figure", type=Path, default=None)
    parser.add_argument("--keep", type=Path, default=None, help="write the rows of all finished cells to this file")
    arguments = parser.parse_args()
    stored = json.loads((Path(__file__).parent / "grid.json").read_text())
    found = stored | (gathered(arguments.out) if arguments.out else {})
    cells = {name: found[name] for name in map(cell_name, registered()["cells"]) if name in found}
    print(text(cells))
    if arguments.figure:
        draw(cells, arguments.figure)
    if arguments.keep:
        arguments.keep.write_text(json.dumps(cells, indent=1))


if __name__ == "__main__":
    main()
