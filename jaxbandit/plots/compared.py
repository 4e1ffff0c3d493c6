"""Paired differences with their intervals."""

from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit._core.fields import show
from jaxbandit.plots.panels import figure, panel_of
from jaxbandit.plots.style import COLOURS
from jaxbandit.results.comparison import Comparison, Difference

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PAIRS = 12  # more are too many for a panel: then each learner against the one with the lowest mean


def _drawn(comparison: Comparison, environment: str) -> list[Difference]:
    pairs = [pair for pair in comparison.pairs if pair.environment == environment]
    if len(pairs) > MOST_PAIRS:
        best = comparison.best(environment)
        pairs = [pair if pair.other == best else pair.reversed() for pair in pairs if best in (pair.one, pair.other)]
    return sorted((pair if pair.mean >= 0 else pair.reversed() for pair in pairs), key=lambda pair: pair.mean)


def _draw_differences(panel: "Axes", comparison: Comparison, environment: str | None = None, *, title: str = "") -> None:
    """Each pair of learners as a row."""
    names = list(comparison.samples)
    environment = names[0] if environment is None else environment
    if environment not in names:
        raise ValueError(f"plots.differences(environment={show(environment)}): there are {', '.join(map(repr, names))}")
    pairs = _drawn(comparison, environment)
    for row, pair in enumerate(pairs):
        colour = COLOURS[0] if pair.significant else "0.55"
        panel.errorbar(
            pair.mean, row, xerr=[[pair.mean - pair.low], [pair.high - pair.mean]], fmt="o" if pair.significant else "s",
            color=colour, markersize=5, capsize=3, markerfacecolor=colour if pair.significant else "white",
        )  # fmt: skip
    panel.axvline(0, color="0.3", linewidth=1)
    panel.set_yticks(np.arange(len(pairs)), [f"{pair.one} − {pair.other}" for pair in pairs])
    panel.set(
        xlabel=f"difference of regret at round {comparison.rounds:,}", title=title or environment, ylim=(-0.6, len(pairs) - 0.4)
    )
    panel.grid(axis="y", visible=False)


def differences(comparison: Comparison, *, ax: "Axes | None" = None, **options: Any) -> "Figure":
    """Mean paired differences of regret with their 95% intervals: filled where significant after Holm's correction, else hollow.

    Args:
      comparison: of :func:`jaxbandit.compare`.
      ax: a panel of yours to draw into; its figure is returned. By default there is a panel for each environment.
      options: ``environment`` (with ``ax``; the first by default), ``title``.

    >>> import jaxbandit as jb
    >>> found = jb.compare([jb.Uniform(), jb.DelayedUCB1()], jb.losses.Bernoulli([0.2, 0.8]), jb.delays.Fixed(3), rounds=50, runs=32, seed=0)
    >>> [label.get_text() for label in found.plot().axes[0].get_yticklabels()]
    ['Uniform() − DelayedUCB1()']
    """
    if ax is not None or "environment" in options:
        made, panel = panel_of("differences", ax)
        _draw_differences(panel, comparison, **options)
        return made
    names = list(comparison.samples)
    columns = min(len(names), 3)
    made, panels = figure(columns, -(-len(names) // columns))
    for panel in panels[len(names) :]:
        panel.remove()
    for name, panel in zip(names, panels, strict=False):
        _draw_differences(panel, comparison, name, **options)
    return made
