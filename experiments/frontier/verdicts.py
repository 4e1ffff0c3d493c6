"""The verdicts of the pre-registered rule on what the grid has found: dominance, hypotheses, and a figure."""

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

    def count(*pairs: tuple[tuple[str, ...], tuple[str, ...]]) -> int:
        """The cells in which, for one of the pairs, one of the first learners dominates one of the others."""
        each = [(one, other) for ones, others in pairs for one in ones for other in others]
        return sum(any(dominates(point(rows[one]), point(rows[other]), rule) for one, other in each) for rows in cells.values())

    found = {}
    for rival in ("Delayed Exp3 2", "MZS22 without constants 0.45", "ZS20 0.5"):
        dominated = count((TAPERS, (rival,)))
        found[f"any_time: {rival} is dominated"] = dominated, dominated >= 0.75 * len(cells)
    against, ahead = count((CONSTANT, TAPERS)), count((TAPERS, CONSTANT))
    found["constant_rate: a DEW dominates a taper"] = against, against < 2
    found["advantage: a taper dominates a DEW"] = ahead, ahead > len(cells) / 2
    for rival in ("Tsallis-INF", "Thompson", "Thompson 0.1"):
        decided = count((TAPERS, (rival,)), ((rival,), TAPERS))
        found[f"stochastic_end: {rival} is dominated or dominates"] = decided, decided < 2
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
    figure.suptitle("Learners given T (filled) combine a low S with the lowest W; no learner is below the line", fontsize=10)
    figure.savefig(file, dpi=130)
    plt.close(figure)
