"""Figures of a sweep: regret against one swept number, a map over two."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jaxbandit._core.display import number
from jaxbandit._core.fields import show as shown
from jaxbandit.plots.panels import (
    Band,
    Log,
    check_band,
    check_log_axes,
    figure,
    label_logarithms,
    line_options,
    panel_of,
    place_common_legend,
    place_legend,
    set_y_axis,
)
from jaxbandit.plots.style import styles_for
from jaxbandit.plots.table import Group, SweepTable, words
from jaxbandit.results.statistics import intercept, paired_test, student_quantile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 12
MOST_CELLS = 60  # along one side of a map
HATCHES = ("", "//", "..", "\\\\", "xx", "++", "oo")


def against(
    sweep: Any,
    x: str,
    *,
    round: int | None = None,
    ax: "Axes | None" = None,
    log: Log = False,
    title: str = "",
    band: Band = "interval",
    **line: Any,
) -> "Figure":
    """Regret against a number that a sweep varies, with a line for each learner.

    What else varies among losses and delays gets a panel of its own; choose with ``sweep.sel(losses=…)`` before. Where ``x`` is
    a number of the learners, those without it are drawn as level lines.

    Args:
      sweep: what :func:`jaxbandit.open_sweep` returned, whole or a part of it.
      x: the number, by the name of its coordinate, ``"delays_delay"``, or only of its field, ``"delay"``.
      round: a recorded round; the last one unless given.
      ax: a panel of yours to draw into; its figure is returned.
      log: ``"x"``, ``"y"`` or ``"both"`` for logarithmic axes (True is ``"x"``); a 0 keeps its place beside the least number.
      title: of the figure.
      band: the bars: ``"interval"``, the 95% interval of the mean; two quantiles of the runs, as ``(0.05, 0.95)``; or None.
      line: options of the matplotlib lines, such as ``linewidth=3``.

    >>> import tempfile, jaxbandit as jb
    >>> spec = jb.Spec(rounds=40, runs=8, learners=[jb.Uniform()], losses=[jb.losses.Bernoulli([0.25, 0.75])],
    ...                delays=[jb.delays.Fixed(wait) for wait in (1, 4, 16)])
    >>> data = jb.open_sweep(jb.sweep(spec, tempfile.mkdtemp()).out)
    >>> made = jb.plots.against(data, x="delay", log="x")
    >>> made.axes[0].get_lines()[0].get_xdata()
    array([ 1.,  4., 16.])
    """
    table = SweepTable.of("against", sweep, round)
    name = table.find("x", x)
    log_x, log_y = check_log_axes("against", log)
    check_band("against", band)
    dimension = table.dimension(name)
    groups = {axis: table.groups(axis, [name]) for axis in table.labels}
    level = [Group(table.labels["learner"][place], [place]) for place in table.without(name)] if dimension == "learner" else []
    combinations = [(one, two) for one in groups["losses"] for two in groups["delays"]]
    made, panels = _panels("against", table, len(combinations), ax, title)
    values = np.asarray(table.values_of[name])
    for panel, (losses, delays) in zip(panels, combinations, strict=True):
        lowest = [np.zeros(0)]
        learners = [*groups["learner"], *level]
        for style, learner in zip(styles_for(learner.label for learner in learners), learners, strict=True):
            places = [(i, j, k) for i in learner.places for j in losses.places for k in delays.places]
            at = values[[place[list(table.labels).index(dimension)] for place in places]]
            points = sorted((value, *_edges(table.runs(place), band)) for value, place in zip(at, places, strict=True))
            across, mean, low, high = np.array([point for point in points if not math.isnan(point[1])]).reshape(-1, 4).T
            options = {"color": style.colour, "linestyle": style.linestyle, "linewidth": 1.8, "label": learner.label, **line}
            with line_options("against"):
                if learner not in level:
                    marks = {"marker": style.marker, "markersize": 4, "capsize": 2.5, "elinewidth": 1.2, **options}
                    panel.errorbar(across, mean, None if band is None else (mean - low, high - mean), **marks)
                elif len(mean):
                    panel.axhline(mean[0], **{**options, "linewidth": 1.1, **line})
            lowest += [mean, low[np.isfinite(low)]]
        panel.set(xlabel=words(name), ylabel=f"mean pseudo-regret at round {table.round:,}")
        panel.set_title(table.title(losses, delays) if len(combinations) > 1 else title if ax is not None else "", wrap=True)
        _set_x_axis(panel, values, log_x)
        set_y_axis(panel, np.concatenate(lowest), log_y)
        label_logarithms(panel)
    if len(groups["learner"]) + len(level) > 1:
        place_legend(panels[0]) if len(panels) == 1 else place_common_legend(made, panels[0])
    return made


def _set_x_axis(panel: "Axes", values: np.ndarray, log: bool) -> None:
    """A logarithmic axis that holds a 0 is linear up to the least number above 0: no delay belongs into the figure."""
    above = values[np.isfinite(values) & (values > 0)]
    if not log or not len(above):
        panel.set_xscale("linear")
    elif np.nanmin(values) == 0:
        panel.set_xscale("symlog", linthresh=float(above.min()), linscale=0.5)
        panel.set_xlim(left=-0.15 * float(above.min()))
    else:
        panel.set_xscale("log")


def _edges(runs: np.ndarray, band: Any) -> tuple[float, float, float]:
    """The mean of some runs, and where its bar begins and ends."""
    if not len(runs):
        return np.nan, np.nan, np.nan
    mean, error, freedom = intercept(runs, None)
    if band == "interval":
        half = student_quantile(freedom) * error if freedom else 0.0
        return mean, mean - half, mean + half
    low, high = np.quantile(runs, band) if band else (mean, mean)
    return mean, float(low), float(high)


def heatmap(
    sweep: Any,
    x: str,
    y: str,
    *,
    show: Literal["winner", "regret"] = "winner",
    round: int | None = None,
    ax: "Axes | None" = None,
    title: str = "",
) -> "Figure":
    """A map over two swept numbers: the learner with the lowest regret, or each learner's regret.

    What else varies gets a panel of its own; choose with ``sweep.sel(losses=…)`` before.

    Args:
      sweep: what :func:`jaxbandit.open_sweep` returned, whole or a part of it.
      x, y: the two numbers, by the name of their coordinate, ``"delays_delay"``, or only of their field, ``"delay"``.
      show: ``"winner"``: the learner with the lowest mean regret, and the ratio of the second lowest to it; pale where the
        95% interval of the paired difference between the two contains 0. ``"regret"``: mean regret, a panel for each learner.
      round: a recorded round; the last one unless given.
      ax: a panel of yours to draw into; its figure is returned.
      title: of the figure.

    >>> import tempfile, jaxbandit as jb
    >>> spec = jb.Spec(rounds=40, runs=8, learners=[jb.Uniform(), jb.TsallisINF()],
    ...                losses=[jb.losses.Bernoulli([0.5 - gap, 0.5]) for gap in (0.1, 0.3)],
    ...                delays=[jb.delays.Fixed(wait) for wait in (1, 4, 16)])
    >>> data = jb.open_sweep(jb.sweep(spec, tempfile.mkdtemp()).out)
    >>> made = jb.plots.heatmap(data, x="delay", y="means_1")
    >>> len(made.axes[0].patches)
    6
    """
    table = SweepTable.of("heatmap", sweep, round)
    names = table.find("x", x), table.find("y", y)
    if names[0] == names[1]:
        raise ValueError(f"plots.heatmap(x={shown(x)}, y={shown(y)}): give two different numbers; there are {table.known()}")
    if show not in ("winner", "regret"):
        raise ValueError(f"plots.heatmap(show={shown(show)}): a map shows the 'winner' or the 'regret'")
    groups = {axis: table.groups(axis, names) for axis in table.labels}
    if show == "winner" and len(groups["learner"]) < 2:
        raise ValueError("plots.heatmap(show='winner'): there is one learner only; show='regret' draws its regret")
    sets = [groups["learner"]] if show == "winner" else [[learner] for learner in groups["learner"]]
    combinations = [(who, one, two) for one in groups["losses"] for two in groups["delays"] for who in sets]
    maps = [_Map(table, names, *combination) for combination in combinations]
    made, panels = _panels("heatmap", table, len(combinations), ax, title)
    means = np.concatenate([[0.0], *(list(one.means().values()) for one in maps)])
    for panel, one, (who, losses, delays) in zip(panels, maps, combinations, strict=True):
        if show == "winner":
            _draw_winners(panel, one, [learner.label for learner in groups["learner"]])
        else:
            _draw_means(panel, one, float(np.nanmax(means)))
        _label_sides(panel, one, names)
        several = len(combinations) > 1
        whose = who[0].label if show == "regret" and len(sets) > 1 else ""
        described = [whose, table.title(losses, delays)] if several else [title if ax is not None else ""]
        panel.set_title("; ".join(filter(None, described)), wrap=True)
    return made


class _Map:
    """The regret ``[runs]`` of each learner at each pair of two numbers, NaN for runs that are missing."""

    def __init__(self, table: SweepTable, names: tuple[str, str], learners: Sequence[Group], losses: Group, delays: Group):
        axes = list(table.labels)
        found: dict[tuple[float, float], dict[str, np.ndarray]] = {}
        for learner in learners:
            for place in ((i, j, k) for i in learner.places for j in losses.places for k in delays.places):
                at = [float(table.values_of[name][place[axes.index(table.dimension(name))]]) for name in names]
                here = found.setdefault((at[0], at[1]), {})
                if learner.label in here:
                    words = ", ".join(f"{name}={value:g}" for name, value in zip(names, at, strict=True))
                    raise ValueError(f"plots.heatmap: more than one cell has {words}; choose one with .sel(...) before")
                here[learner.label] = table.regret[place]
        sides = [sorted({point[side] for point in found}) for side in (0, 1)]
        if max(map(len, sides)) > MOST_CELLS:
            raise ValueError(
                f"plots.heatmap: {len(sides[0])} x {len(sides[1])} cells are too many to draw; at most {MOST_CELLS} a side"
            )
        self.sides = sides
        self.runs = {(sides[0].index(one), sides[1].index(two)): runs for (one, two), runs in found.items()}

    def means(self) -> dict[tuple[int, int], float]:
        """Place -> mean regret of the first learner there."""
        first = {place: next(iter(runs.values())) for place, runs in self.runs.items()}
        return {place: float(np.nanmean(runs)) for place, runs in first.items() if np.isfinite(runs).any()}

    def winners(self) -> dict[tuple[int, int], tuple[str, float, bool]]:
        """Place -> label of the lowest mean regret, ratio of the second lowest to it, whether the paired difference is significant.

        Only runs that all learners of a place have are compared, so that differences are between runs of the same id.
        """
        found = {}
        for place, every in self.runs.items():
            complete = np.isfinite(list(every.values())).all(0)
            if not complete.any():
                continue
            runs = {label: values[complete] for label, values in every.items()}
            ranked = sorted(runs, key=lambda label, runs=runs: runs[label].mean())
            best, second = (runs[label] for label in ranked[:2])
            mean, half, _ = paired_test(second - best)
            ratio = second.mean() / best.mean() if best.mean() > 0 else np.nan
            found[place] = ranked[0], float(ratio), bool(mean > half)
        return found


def _draw_winners(panel: "Axes", one: _Map, labels: Sequence[str]) -> None:
    from matplotlib.patches import Rectangle

    winners, styles = one.winners(), styles_for(labels)
    for (i, j), (label, ratio, clear) in winners.items():
        index = labels.index(label)
        colour, hatch = styles[index].colour, HATCHES[index % len(HATCHES)]
        panel.add_patch(
            Rectangle(
                (i - 0.5, j - 0.5), 1, 1, facecolor=colour, alpha=0.9 if clear else 0.35, hatch=hatch, edgecolor="white", lw=0.6
            )
        )
        if max(map(len, one.sides)) <= 12 and np.isfinite(ratio):
            box = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "boxstyle": "round,pad=0.15"}
            panel.text(i, j, f"{ratio:.3g}×" if ratio < 100 else "> 99×", ha="center", va="center", fontsize="small", bbox=box)
    present = {label for label, _, _ in winners.values()}
    handles = [
        Rectangle(
            (0, 0), 1, 1, facecolor=styles[index].colour, hatch=HATCHES[index % len(HATCHES)], edgecolor="white", label=label
        )
        for index, label in enumerate(labels)
        if label in present
    ]
    columns = 2 if len(handles) > 2 else max(len(handles), 1)
    note = "lowest regret, and the ratio of the second lowest to it (pale: not significant)"
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": columns}
    panel.legend(handles=handles, frameon=False, title=note, fontsize="small", title_fontsize="small", **below)


def _draw_means(panel: "Axes", one: _Map, most: float) -> None:
    grid = np.full([len(side) for side in reversed(one.sides)], np.nan)
    for (i, j), mean in one.means().items():
        grid[j, i] = mean
    panel.imshow(grid, origin="lower", aspect="auto", cmap="cividis_r", vmin=0.0, vmax=most)
    if max(map(len, one.sides)) <= 12:
        for (i, j), mean in one.means().items():
            panel.text(
                i, j, number(mean), ha="center", va="center", fontsize="small", color="white" if mean > 0.55 * most else "black"
            )


def _label_sides(panel: "Axes", one: _Map, names: tuple[str, str]) -> None:
    for side, values, axis in zip("xy", one.sides, (panel.xaxis, panel.yaxis), strict=True):
        shown_at = list(range(0, len(values), max(1, len(values) // 12)))
        axis.set_ticks(shown_at, [f"{values[at]:g}" for at in shown_at])
        panel.set(**{f"{side}lim": (-0.5, len(values) - 0.5), f"{side}label": words(names["xy".index(side)])})
    panel.grid(visible=False)


def _panels(caller: str, table: SweepTable, count: int, ax: Any, title: str) -> "tuple[Figure, list[Axes]]":
    """A panel of the user's, or a new figure with so many."""
    if ax is not None and count > 1:
        raise ValueError(f"plots.{caller}(ax=…): this would be {count} panels, for {table.sizes()}; choose with .sel(...) before")
    if count > MOST_PANELS:
        raise ValueError(f"plots.{caller}: this would be {count} panels, for {table.sizes()}; choose some with .sel(...) before")
    if ax is not None:
        made, panel = panel_of(caller, ax)
        return made, [panel]
    columns = min(count, 3)
    made, panels = figure(columns, -(-count // columns))
    for panel in panels[count:]:
        panel.remove()
    if title:
        made.suptitle(title)
    return made, panels[:count]
