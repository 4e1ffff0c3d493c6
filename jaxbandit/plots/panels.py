"""What all figures share: panels, looks, legends, and how options are read."""

import contextlib
import os
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from jaxbandit._core.fields import is_numeric, show
from jaxbandit._io.files import whole_file
from jaxbandit._io.optional import need
from jaxbandit.plots.style import Style, look
from jaxbandit.results.statistics import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDEST = 36  # characters of a line in a legend
Log = Literal["x", "y", "both"] | bool
Band = Literal["interval"] | tuple[float, float] | None


def figure(columns: int = 1, rows: int = 1) -> "tuple[Figure, list[Axes]]":
    """A figure with ``columns`` panels side by side in each of ``rows``, not tied to any window or notebook.

    >>> import jaxbandit as jb
    >>> made, panels = jb.plots.figure(columns=2)
    >>> len(panels)
    2
    """
    made = need("matplotlib.figure", "plot", "a figure").Figure(figsize=(1.2 + 4.8 * columns, 4.0 * rows), layout="constrained")
    panels = made.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25)
    return made, list(panels)


def panel_of(caller: str, ax: Any) -> "tuple[Figure, Axes]":
    """A panel of one's own and its figure, or a new one."""
    if ax is None:
        made, (panel,) = figure()
        return made, panel
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(f"plots.{caller}(ax={show(ax)}): give a matplotlib panel, such as the second of plt.subplots()")
    return _figure_of(ax), ax


def _figure_of(panel: "Axes") -> "Figure":
    """The whole figure, also of a panel in a part of it."""
    return cast("Figure", panel.figure.figure)


def check_log_axes(caller: str, log: Any) -> tuple[bool, bool]:
    """Which of the two axes are logarithmic; ValueError for what is no answer."""
    if log not in (True, False, "x", "y", "both"):
        raise ValueError(f"plots.{caller}(log={show(log)}): the logarithmic axis is 'x', 'y' or 'both' (True is 'x')")
    return log in (True, "x", "both"), log in ("y", "both")


def check_band(caller: str, band: Any) -> None:
    """ValueError for what is no band."""
    quantiles = isinstance(band, tuple | list) and is_numeric(band) and np.shape(band) == (2,)
    if band not in ("interval", None) and not (quantiles and 0 <= band[0] < band[1] <= 1):
        raise ValueError(
            f"plots.{caller}(band={show(band)}): the band is 'interval' (of the mean), two quantiles of the runs such as (0.05, 0.95), or None"
        )


@contextlib.contextmanager
def line_options(caller: str) -> Iterator[None]:
    """An option that matplotlib does not know as one sentence."""
    try:
        yield
    except (AttributeError, TypeError) as error:
        raise TypeError(f"plots.{caller}: {error}; other options are those of a matplotlib line, such as linewidth=3") from None


def set_y_axis(panel: "Axes", values: np.ndarray, log: bool) -> None:
    """From 0, or from the smallest value where that is below; on a logarithmic axis from a little below the smallest above 0."""
    if log:
        panel.set_yscale("log")
        # Regret may start at 0, or its band reach below: values 5 decades below the largest are not shown.
        top = np.max(values, initial=1e-300)
        panel.set_ylim(bottom=0.7 * np.min(values[values > 1e-5 * top], initial=top))
    else:
        panel.set_yscale("linear")
        panel.set_ylim(bottom=min(0.0, float(np.min(values, initial=0.0))))


def label_logarithms(panel: "Axes") -> None:
    """Logarithmic axes with plain numbers, at 1, 2 and 5 where they span less than two decades: matplotlib's own overlap there.

    >>> import jaxbandit as jb
    >>> made, (panel,) = jb.plots.figure()
    >>> limits = panel.set(xscale="log", xlim=(3, 60))
    >>> jb.plots.label_logarithms(panel)
    >>> [tick.get_text() for tick in panel.get_xticklabels() if 3 <= tick.get_position()[0] <= 60]
    ['5', '10', '20', '50']
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis in (panel.xaxis, panel.yaxis):
        low, high = sorted(axis.get_view_interval())
        scale = axis.get_scale()
        if high > 1e7 or not (scale == "symlog" or (scale == "log" and low > 1e-4)):
            continue
        if scale == "log" and high < 100 * low:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1e3 else f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def draw_estimate(panel: "Axes", estimate: Estimate, index: int | Style = 0, label: str | None = None, **line: Any) -> None:
    """A mean over rounds with its 95 % interval as a band, in the look of curve ``index`` or in a style; see :func:`regret`."""
    colour, style = (index.colour, index.linestyle) if isinstance(index, Style) else look(index)
    (drawn,) = panel.plot(
        estimate.rounds, estimate.mean, **{"color": colour, "linestyle": style, "linewidth": 1.8, "label": label, **line}
    )
    if np.all(np.isfinite(estimate.low)):
        panel.fill_between(estimate.rounds, estimate.low, estimate.high, color=drawn.get_color(), alpha=0.2, linewidth=0)


def place_legend(panel: "Axes") -> None:
    """A legend inside the panel where it covers no curve, else below it.

    >>> import jaxbandit as jb
    >>> made, (panel,) = jb.plots.figure()
    >>> _ = panel.plot([0, 1], [0, 1], label="a curve")
    >>> jb.plots.place_legend(panel)
    >>> [text.get_text() for text in panel.get_legend().get_texts()]
    ['a curve']
    """
    from matplotlib.text import Text

    made = _figure_of(panel)
    legend = panel.legend(frameon=False, loc="best")
    _wrap(legend)
    # "best" is decided, and sizes are known, only when a figure is drawn. Texts are measured as they are written: whether a "$"
    # in a label begins mathematics is not decided here, and half a formula cannot be drawn.
    texts = [artist for artist in made.findobj() if isinstance(artist, Text)]
    parsed = [text.get_parse_math() for text in texts]
    for text in texts:
        text.set_parse_math(False)
    made.draw_without_rendering()
    box = legend.get_window_extent()
    for text, before in zip(texts, parsed, strict=True):
        text.set_parse_math(before)
    if any(_enters(line, box) for line in panel.get_lines()):
        columns = 2 if len(legend.get_texts()) > 2 else 1
        _wrap(panel.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=columns, fontsize="small"))


def place_common_legend(made: "Figure", panel: "Axes") -> None:
    """One legend below a figure for all its panels, whose curves are those of ``panel``."""
    columns = min(len(panel.get_legend_handles_labels()[1]), max(1, int(made.get_figwidth() / 2.4)))
    _wrap(made.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=columns, frameon=False))


def _wrap(legend: Any) -> None:
    """Long labels in several lines: one line of them would leave no room for the curves."""
    for text in legend.get_texts():
        text.set_text(textwrap.fill(text.get_text(), WIDEST))


def _enters(line: Any, box: Any) -> bool:
    """Whether a line goes through a box on the screen: its points, and 50 between each two of them."""
    points = line.get_transform().transform(line.get_xydata().astype(float))
    points = points[np.all(np.isfinite(points), axis=1)]
    if len(points) < 2:
        return False
    between = np.linspace(points[:-1], points[1:], 50).reshape(-1, 2)
    inside = (between > [box.x0, box.y0]) & (between < [box.x1, box.y1])
    return bool(np.any(inside.all(1)))


def save_png(figure: "Figure", path: str | os.PathLike) -> None:
    """Write a figure, whole or not at all."""
    with whole_file(path) as file:
        figure.savefig(file, dpi=150)


def take_literally(figure: "Figure") -> None:
    """Titles, axis names and legends as they are written: a ``$`` in a label is a dollar sign, not the beginning of mathematics.

    >>> import jaxbandit as jb
    >>> made, (panel,) = jb.plots.figure()
    >>> title = panel.set_title("$\\\\frac$")
    >>> jb.plots.take_literally(made)
    >>> title.get_parse_math()
    False
    """
    for panel in figure.axes:
        legend = panel.get_legend()
        for text in (panel.title, panel.xaxis.label, panel.yaxis.label, *(legend.get_texts() if legend else ())):
            text.set_parse_math(False)
    for legend in figure.legends:
        for text in legend.get_texts():
            text.set_parse_math(False)
