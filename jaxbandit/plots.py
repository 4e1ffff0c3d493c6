"""Figures: good defaults, colour-blind safe (Okabe & Ito), told apart by line style in grey."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from jaxbandit.result import Result

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")


def figure(columns: int = 1) -> "tuple[Figure, list[Axes]]":
    """A figure with ``columns`` panels side by side, not tied to any window or notebook."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'jaxbandit[plot]'") from error
    made = Figure(figsize=(1.2 + 4.8 * columns, 4.0), layout="constrained")
    panels = made.subplots(1, columns, squeeze=False)[0]
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25)
    return made, list(panels)


def draw_regret(panel: "Axes", results: "Mapping[str, Result]", *, log: bool = False, title: str = "") -> None:
    """Mean regret of each result with its 95 % interval as a band, labelled at the right end of its curve."""
    for index, (label, result) in enumerate(results.items()):
        estimate = result.estimate()
        colour, style = COLOURS[index % len(COLOURS)], STYLES[index % len(STYLES)]
        panel.plot(estimate.rounds, estimate.mean, color=colour, linestyle=style, linewidth=1.8, label=label)
        if np.all(np.isfinite(estimate.low)):
            panel.fill_between(estimate.rounds, estimate.low, estimate.high, color=colour, alpha=0.2, linewidth=0)
    panel.set(xlabel="round", ylabel="mean pseudo-regret", title=title)
    panel.set_xscale("log" if log else "linear")
    panel.set_ylim(bottom=0)
    if len(results) > 1:
        panel.legend(frameon=False)


def regret(results: "Mapping[str, Result]", **options: Any) -> "Figure":
    """One panel of regret curves.

    Args:
      results: ``{label: Result}``.
      options: ``log=True`` for a logarithmic time axis, ``title``.

    >>> import jax, jaxbandit as jb
    >>> result = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(0), rounds=9, runs=4,
    ...                      key=jax.random.key(0))
    >>> type(jb.plots.regret({"uniform": result})).__name__
    'Figure'
    """
    made, (panel,) = figure()
    draw_regret(panel, results, **options)
    return made
