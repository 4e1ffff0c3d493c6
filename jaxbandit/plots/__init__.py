"""Figures: good defaults, colour-blind safe (Okabe & Ito), with line styles that differ in greyscale.

Every ``draw_…`` draws into a panel of yours; the function of the same name without it makes a figure of one panel, or draws
into the panel given as ``ax``. Both return or use plain matplotlib objects, so anything can be changed afterwards. All of it
needs the extra ``jaxbandit[plot]``.
"""

from jaxbandit.plots.actions import draw_trajectory, trajectory
from jaxbandit.plots.compared import differences, draw_differences
from jaxbandit.plots.curves import bounds, draw_bounds, draw_probabilities, draw_regret, probabilities, regret
from jaxbandit.plots.labels import label_curves
from jaxbandit.plots.panels import draw_estimate, figure, label_logarithms, place_legend, take_literally
from jaxbandit.plots.style import ALGORITHMS, COLOURS, STYLES, Style, look, styles_for
from jaxbandit.plots.swept import against, heatmap
from jaxbandit.plots.waiting import delay_histogram, draw_delay_histogram, draw_outstanding, outstanding

__all__ = [
    "ALGORITHMS",
    "COLOURS",
    "STYLES",
    "Style",
    "against",
    "bounds",
    "delay_histogram",
    "differences",
    "draw_bounds",
    "draw_delay_histogram",
    "draw_differences",
    "draw_estimate",
    "draw_outstanding",
    "draw_probabilities",
    "draw_regret",
    "draw_trajectory",
    "figure",
    "heatmap",
    "label_curves",
    "label_logarithms",
    "look",
    "outstanding",
    "place_legend",
    "probabilities",
    "regret",
    "styles_for",
    "take_literally",
    "trajectory",
]
