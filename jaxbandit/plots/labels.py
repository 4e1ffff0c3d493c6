"""Direct labels: the name of each curve beside its end, in place of a legend."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPACING = 1.35  # lines of text between two labels


def label_curves(panel: "Axes", *, fontsize: float = 9.0) -> None:
    """Write the label of each curve beside its right end, in its colour, moved apart where labels would overlap.

    Call it last: scales and limits of the axes must not change afterwards. Lines without a label, as matplotlib counts them, get none.

    Args:
      panel: the axes whose lines are labelled; a legend is removed.
      fontsize: in points.

    >>> import jaxbandit as jb
    >>> made, (panel,) = jb.plots.figure()
    >>> _ = panel.plot([0, 1], [0, 1], label="first"), panel.plot([0, 1], [0, 1.01], label="second")
    >>> jb.plots.label_curves(panel)
    >>> [text.get_text() for text in panel.texts]
    ['first', 'second']
    """
    if (legend := panel.get_legend()) is not None:
        legend.remove()
    made = panel.get_figure(root=True)
    assert made is not None
    made.draw_without_rendering()
    lines = [
        line for line in panel.get_lines() if not str(line.get_label()).startswith("_") and len(np.asarray(line.get_xdata()))
    ]
    ends = [np.asarray(line.get_xydata(), float)[-1] for line in lines]
    points = 72 / made.dpi
    heights = [float(panel.transData.transform(end)[1]) * points for end in ends]
    for line, end, height, place in zip(lines, ends, heights, spread(heights, SPACING * fontsize), strict=True):
        panel.annotate(
            str(line.get_label()),
            (float(end[0]), float(end[1])),
            (7, place - height),
            textcoords="offset points",
            va="center",
            fontsize=fontsize,
            color=line.get_color(),
            annotation_clip=False,
        )


def spread(heights: list[float], gap: float) -> list[float]:
    """Heights moved as little as possible so that neighbours are at least ``gap`` apart; their order stays.

    Overlapping groups are merged and centred on the mean of their members.

    >>> spread([0.0, 1.0, 50.0], 10)
    [-4.5, 5.5, 50.0]
    """
    order = np.argsort(heights, kind="stable")
    groups: list[list[float]] = []  # centre, number of members
    for index in order:
        groups.append([heights[index], 1])
        while len(groups) > 1 and groups[-1][0] - groups[-2][0] < gap * (groups[-1][1] + groups[-2][1]) / 2:
            centre, count = groups.pop()
            before, members = groups[-1]
            groups[-1] = [(before * members + centre * count) / (members + count), members + count]
    placed = [centre + gap * (place - (count - 1) / 2) for centre, count in groups for place in range(int(count))]
    found = [0.0] * len(heights)
    for index, place in zip(order, placed, strict=True):
        found[int(index)] = float(place)
    return found
