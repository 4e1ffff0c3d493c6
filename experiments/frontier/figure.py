"""The figure of the frontier: stochastic regret against the largest regret found."""

import math
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.ticker

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from experiments.frontier.curves import curves


def points(done: dict[str, Any], curve: str) -> list[tuple[str, float, float, float]]:
    """Label, S, W and the increase of W by the tables of other learners, of each point of a curve, by S."""
    rows = {(row["point"], row["stage"]): row for row in done["rows"] if row["curve"] == curve}
    known = curves(done["setting"]["delay"], done["setting"]["rounds"])[curve].points
    found = []
    for label in known:
        both = [rows[label, stage]["W"] for stage in (1, 2) if (label, stage) in rows]
        if both:
            found.append((label, rows[label, 1]["S"], max(both), max(both[-1] - both[0], 0.0)))
    return sorted(found, key=lambda one: one[1])


def draw(done: dict[str, Any], file: Path) -> None:
    given = done["setting"]
    arms, delay, rounds = given["arms"], given["delay"], given["rounds"]
    figure, axis = plt.subplots(figsize=(8.4, 5.6), layout="constrained")
    for name, curve in curves(delay, rounds).items():
        found = points(done, name)
        if not found:
            continue
        stochastic, worst, bar = ([one[place] for one in found] for place in (1, 2, 3))
        line = "-" if curve.needs_horizon else "--"
        width = 2.2 if "κ" in name or "Tapered" in name else 1.2
        axis.errorbar(
            stochastic,
            worst,
            yerr=[[0] * len(bar), bar],
            color=curve.colour,
            marker=curve.marker,
            linestyle=line,
            linewidth=width,
            capsize=2,
            label=name + (", given T" if curve.needs_horizon and "given" not in name else ""),
        )
    # Points far above all others would flatten the rest of the figure: they are named in a corner.
    every = [(name, *one) for name in curves(delay, rounds) for one in points(done, name)]
    top = 2 * sorted(one[3] for one in every)[len(every) // 2]
    shown, outside = [one for one in every if one[3] <= top], [one for one in every if one[3] > top]
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlim(0.8 * min(one[2] for one in shown), 1.3 * max(one[2] for one in shown))
    lower = math.sqrt((delay + 1) * rounds / (2 * math.pi))
    axis.set_ylim(0.8 * (lower if arms == 2 else min(one[3] for one in shown)), 1.15 * top)
    text = [f"not shown: {name} {label} (S {one:,.0f}, W {worst:,.0f})" for name, label, one, worst, _ in outside]
    axis.text(0.01, 0.99, "\n".join(text), transform=axis.transAxes, fontsize=8, va="top")
    if arms == 2:
        axis.axhline(lower, color="0.4", linewidth=1)
        axis.text(axis.get_xlim()[0] * 1.02, lower * 1.02, "no learner is below this line", fontsize=8, color="0.3", va="bottom")
    axis.set(
        xlabel="stochastic regret S (Bernoulli losses, gap 0.2)",
        ylabel="largest regret found W (oblivious tables)",
        title=f"Tuned scales close most of the gap: K = {arms}, d = {delay}, T = {rounds:,}",
    )
    for ticks in (axis.xaxis, axis.yaxis):
        ticks.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:,.0f}"))
        ticks.set_minor_formatter(matplotlib.ticker.LogFormatter(minor_thresholds=(3, 1)))
    axis.legend(fontsize=7)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def table(done: dict[str, Any]) -> str:
    """The rows of the figure as Markdown."""
    errors = {(row["curve"], row["point"], row["stage"]): (row["S error"], row["W error"]) for row in done["rows"]}
    lines = ["| learner | given | S | W, own search | W, tables of all |", "|---|---|---|---|---|"]
    for name, curve in curves(done["setting"]["delay"], done["setting"]["rounds"]).items():
        rows = {(row["point"], row["stage"]): row for row in done["rows"] if row["curve"] == name}
        for label in curve.points:
            if (label, 1) not in rows:
                continue
            own = rows[label, 1]
            both = [
                f"{rows[label, stage]['W']:,.0f} ± {errors[name, label, stage][1]:.1f}" if (label, stage) in rows else ""
                for stage in (1, 2)
            ]
            given = "T" if curve.needs_horizon else ""
            lines.append(
                f"| {', '.join(filter(None, (name, label)))} | {given} | {own['S']:.1f} ± {own['S error']:.1f} | {' | '.join(both)} |"
            )
    return "\n".join(lines) + "\n"
