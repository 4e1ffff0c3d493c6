"""The output of the benchmark: tables, ratios, growth of the cost, a figure."""

import re
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jaxbandit.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = dict[str, dict[str, dict[str, float]]]  # table -> row -> column -> number
Ratio = tuple[str, str, float | None]  # what, over what, asked for


def _along(rows: dict[str, dict[str, float]]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers that are varied, but for 0, and the speeds."""
    names = [name for name in rows if name != "d=0"]
    sizes = [float(re.search(r"[\d.e]*\d", name)[0]) for name in names]  # type: ignore[index]
    return np.array(sizes), np.array([rows[name]["rounds_per_second"] for name in names])


def exponents(tables: Tables) -> dict[str, float]:
    """The slope of log seconds per run-round (per run for T, per round for runs) in the log of what is varied."""
    slopes = {}
    for title, per_unit in (("arms", 0.0), ("rounds", 1.0), ("runs", 1.0), ("delay", 0.0)):
        if title not in tables:
            continue
        sizes, speeds = _along(tables[title])
        # Cost of a run-round; a whole run costs T times that, a whole round `runs` times.
        slopes[title] = per_unit - float(np.polyfit(np.log(sizes), np.log(speeds), 1)[0])
    return slopes


def largest_step(rows: dict[str, dict[str, float]]) -> tuple[float, str]:
    """The largest factor between the speeds of two neighbours beyond what the trend of all explains, and which they are."""
    sizes, speeds = _along(rows)
    slope = np.polyfit(np.log(sizes), np.log(speeds), 1)[0]
    beyond = np.abs(np.diff(np.log(speeds)) - slope * np.diff(np.log(sizes)))
    worst = int(np.argmax(beyond))
    names = [name for name in rows if name != "d=0"]
    return float(np.exp(beyond[worst])), f"{names[worst]} to {names[worst + 1]}"


def report(speeds: dict[str, list[float]], ratios: Sequence[Ratio], tables: Tables, library: dict[str, float]) -> list[str]:
    """The lines of bench.md; what was not timed is left out."""
    lines = ["| million rounds/s | median | least | greatest |", "|---|---|---|---|"] if speeds else []
    for name, values in speeds.items():
        low, middle, high = (value / 1e6 for value in (min(values), statistics.median(values), max(values)))
        lines.append(f"| {name} | {middle:.3g} | {low:.3g} | {high:.3g} |")
    if speeds:
        lines += ["", "| ratio, turn by turn | median | least | greatest | target |", "|---|---|---|---|---|"]
    for what, over, asked in ratios:
        if what in speeds and over in speeds:
            each = sorted(a / b for a, b in zip(speeds[what], speeds[over], strict=True))
            lines.append(f"| {what} / {over} | {statistics.median(each):.2f} | {each[0]:.2f} | {each[-1]:.2f} | {asked or ''} |")
    for title, rows in tables.items():
        lines += ["", f"| {title} | million rounds/s | compile, s | peak memory, MB |", "|---|---|---|---|"]
        for name, row in rows.items():
            lines.append(
                f"| {name} | {row['rounds_per_second'] / 1e6:.3g} | {row['compile_seconds']:.1f} | {row['peak_megabytes']:.0f} |"
            )
    if library:
        lines += ["", "| K=10, no delay | SMPyBandits, rounds/s | ours, rounds/s |", "|---|---|---|"]
        for name, speed in library.items():
            lines.append(f"| {name} | {speed:,.0f} | {tables['learner'].get(name, {}).get('rounds_per_second', np.nan):,.0f} |")
    lines += ["", "Cost grows as a power of"]
    for title, slope in exponents(tables).items():
        factor, where = largest_step(tables[title])
        lines.append(f"- {title}: {slope:.2f}; no two neighbours further from that than a factor of {factor:.2f} ({where})")
    return lines


def figure(tables: Tables) -> "Figure":
    """Speed along each axis that is varied."""
    from matplotlib.figure import Figure

    lower = max(3.25, 0.17 * max(map(len, tables.values()), default=0))  # inches, so that the names of all learners can be read
    page = Figure(figsize=(14, 3.25 + lower), layout="constrained")
    axes = page.subplots(2, 4, height_ratios=(3.25, lower))
    axes.flat[-1].set_axis_off()
    for axis, (title, rows), colour in zip(axes.flat, tables.items(), COLOURS * 2, strict=False):
        names, speeds = list(rows), [row["rounds_per_second"] / 1e6 for row in rows.values()]
        if title.startswith(("learner", "delay model")):
            axis.barh(names, speeds, color=colour)
            axis.invert_yaxis()
            axis.set_xlabel("million rounds/s")
            axis.tick_params(axis="y", labelsize=7)
        elif title == "arms":
            sizes = _along(rows)[0]
            axis.loglog(sizes, speeds, "o-", color=colour)
            axis.loglog(sizes, speeds[0] * sizes[0] / sizes, ":", color="gray", label="in proportion to 1/K")
            axis.legend()
            axis.set(xlabel="K", ylabel="million rounds/s")
        else:
            axis.plot(names, speeds, "o-", color=colour)
            axis.set_ylim(0, max(speeds) * 1.15)
            axis.set_ylabel("million rounds/s")
            axis.tick_params(axis="x", labelsize=8)
        axis.set_title(title)
    return page
