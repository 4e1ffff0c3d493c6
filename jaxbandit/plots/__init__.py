"""Figures: good defaults, colour-blind safe (Okabe & Ito), with line styles that differ in greyscale.

Each function makes a figure, or draws into the panel given as ``ax``. Figures and panels are plain matplotlib objects, so that
anything can be changed afterwards. All of it needs the extra ``jaxbandit[plot]``.
"""

from jaxbandit.plots.actions import trajectory
from jaxbandit.plots.compared import differences
from jaxbandit.plots.curves import bounds, probabilities, regret
from jaxbandit.plots.labels import label_curves
from jaxbandit.plots.panels import draw_estimate, figure, label_logarithms, place_legend, take_literally
from jaxbandit.plots.style import ALGORITHMS, COLOURS, STYLES, Style, look, styles_for
from jaxbandit.plots.swept import against, heatmap
from jaxbandit.plots.waiting import delay_histogram, outstanding

__all__ = [
    "ALGORITHMS",
    "COLOURS",
    "STYLES",
    "Style",
    "against",
    "bounds",
    "delay_histogram",
    "differences",
    "draw_estimate",
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
