"""How the figures of the claims draw what they all draw: measured numbers with their intervals, and sums over all runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.claims.harness.notation import mathtext
from experiments.claims.harness.verdict import Measured
from jaxbandit.plots import ALGORITHMS, label_logarithms, look, styles_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_measured(
    panel: "Axes", x: Sequence[float], y: Sequence[Measured], index: int = 0, label: str = "", **options: Any
) -> None:
    """Points with their 95 % intervals, joined by a line; options as for ``errorbar``.

    In the style of the algorithm if ``label`` is the name of one, else of curve ``index``.
    """
    (style,) = styles_for([label])
    colour, line = (style.colour, style.linestyle) if style in ALGORITHMS.values() else look(index)
    values, halves = [one.value for one in y], [1.96 * one.error for one in y]
    drawn = {} if "fmt" in options else {"marker": "o", "linestyle": line}
    panel.errorbar(x, values, halves, **{**drawn, "color": colour, "label": label, "capsize": 2, **options})


def draw_runs(panel: "Axes", rounds: np.ndarray, values: np.ndarray, index: int = 0, label: str = "") -> None:
    """The mean over runs of ``values [C, runs]``, and the middle 95 % of the runs as a band."""
    colour, style = look(index)
    panel.plot(rounds, values.mean(-1), color=colour, linestyle=style, label=label)
    panel.fill_between(rounds, *np.quantile(values, [0.025, 0.975], axis=-1), color=colour, alpha=0.2)


def draw_legend(panel: "Axes", **options: Any) -> None:
    """A small legend without a frame."""
    panel.legend(**{"frameon": False, "fontsize": 8, **options})


def lay_out(figure: "Figure") -> None:
    """What all figures of claims get when they are done: formulas, and numbers on short axes."""
    for panel in figure.axes:
        legend = panel.get_legend()
        for text in (panel.title, panel.xaxis.label, panel.yaxis.label, *panel.texts, *(legend.get_texts() if legend else ())):
            text.set_text(mathtext(text.get_text()))
        label_logarithms(panel)
    for legend in figure.legends:
        for text in legend.get_texts():
            text.set_text(mathtext(text.get_text()))
