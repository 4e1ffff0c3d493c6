"""Figures: good defaults, colour-blind safe (Okabe & Ito), told apart by line style in grey.

Every ``draw_…`` draws into a panel of yours; the function of the same name without it makes a figure of one panel. Both
return or use plain matplotlib objects, so anything can be changed afterwards. All of it needs the extra ``jaxbandit[plot]``.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import jax
import numpy as np

from jaxbandit.delays import NEVER, Delays
from jaxbandit.extras import need
from jaxbandit.pytrees import is_numeric, show
from jaxbandit.result import Result
from jaxbandit.simulation import delays_of_run_0
from jaxbandit.statistics import Estimate
from jaxbandit.theory import Bound, optimal_skipping

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")


def figure(columns: int = 1) -> "tuple[Figure, list[Axes]]":
    """A figure with ``columns`` panels side by side, not tied to any window or notebook.

    >>> import jaxbandit as jb
    >>> made, panels = jb.plots.figure(columns=2)
    >>> len(panels)
    2
    """
    made = need("matplotlib.figure", "plot", "a figure").Figure(figsize=(1.2 + 4.8 * columns, 4.0), layout="constrained")
    panels = made.subplots(1, columns, squeeze=False)[0]
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25)
    return made, list(panels)


Results = Result | Sequence[Result] | Mapping[str, Result]
Log = Literal["x", "y", "both"] | bool
Band = Literal["interval"] | tuple[float, float] | None


def draw_regret(
    panel: "Axes", results: Results, *, log: Log = False, title: str = "", band: Band = "interval", **line: Any
) -> None:
    """Mean regret of each result with a band around it; see :func:`regret`."""
    _draw_regret("draw_regret", panel, results, log, title, band, line)


def _draw_regret(caller: str, panel: "Axes", results: Results, log: Any, title: str, band: Any, line: dict[str, Any]) -> None:
    labelled = _labelled(caller, results)
    if log not in (True, False, "x", "y", "both"):
        raise ValueError(f"plots.{caller}(log={show(log)}): the logarithmic axis is 'x', 'y' or 'both' (True is 'x')")
    if band not in ("interval", None) and not _are_quantiles(band):
        raise ValueError(
            f"plots.{caller}(band={show(band)}): the band is 'interval' (of the mean), two quantiles of the runs such as (0.05, 0.95), or None"
        )
    smallest = []
    for index, (label, result) in enumerate(labelled.items()):
        estimate = result.estimate()
        low, high = (
            (estimate.low, estimate.high) if band == "interval" else np.quantile(result.regret, band or (0.5, 0.5), axis=1)
        )
        edges = (
            dataclasses.replace(estimate, low=low, high=high)
            if band
            else dataclasses.replace(estimate, low=np.full_like(low, np.nan))
        )
        try:
            draw_estimate(panel, edges, index, label, **line)
        except AttributeError as error:
            raise TypeError(
                f"plots.{caller}: {error}; other options are those of a matplotlib line, such as linewidth=3"
            ) from None
        smallest.append(np.append(estimate.mean, low[np.isfinite(low)] if band else []))
    panel.set(xlabel="round", ylabel="mean pseudo-regret", title=title)
    panel.set_xscale("log" if log in (True, "x", "both") else "linear")
    _y_axis(panel, np.concatenate(smallest), log in ("y", "both"))
    if len(labelled) > 1:
        place_legend(panel)


def _labelled(caller: str, results: Any) -> Mapping[str, Result]:
    """One result, a list or a dict, as a dict."""
    if isinstance(results, Result):
        return {"regret": results}
    if isinstance(results, Sequence) and not isinstance(results, str):
        results = {f"result {number}": result for number, result in enumerate(results, 1)}
    if not isinstance(results, Mapping) or not results or not all(isinstance(result, Result) for result in results.values()):
        raise TypeError(f"plots.{caller}(results={show(results)}): give a Result, a list of them, or {{label: Result}}")
    return results


def _are_quantiles(band: Any) -> bool:
    return isinstance(band, tuple | list) and is_numeric(band) and np.shape(band) == (2,) and bool(0 <= band[0] < band[1] <= 1)


def _y_axis(panel: "Axes", values: np.ndarray, log: bool) -> None:
    """From 0, or from the smallest value where that is below; on a logarithmic axis from a little below the smallest above 0."""
    if log:
        panel.set_yscale("log")
        # Regret may start at 0, or its band reach below: what is 5 decades below the largest tells nothing.
        top = np.max(values, initial=1e-300)
        panel.set_ylim(bottom=0.7 * np.min(values[values > 1e-5 * top], initial=top))
    else:
        panel.set_yscale("linear")
        panel.set_ylim(bottom=min(0.0, float(np.min(values, initial=0.0))))


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
    if any(_enters(panel, line, box) for line in panel.get_lines()):
        columns = 2 if len(legend.get_texts()) > 2 else 1
        panel.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=columns, fontsize="small")


def _enters(panel: "Axes", line: Any, box: Any) -> bool:
    """Whether a line goes through a box on the screen: its points, and 50 between each two of them."""
    points = panel.transData.transform(np.column_stack(line.get_data()))
    points = points[np.all(np.isfinite(points), axis=1)]
    if len(points) < 2:
        return False
    between = np.linspace(points[:-1], points[1:], 50).reshape(-1, 2)
    inside = (between > [box.x0, box.y0]) & (between < [box.x1, box.y1])
    return bool(np.any(inside.all(1)))


def draw_estimate(panel: "Axes", estimate: Estimate, index: int = 0, label: str | None = None, **line: Any) -> None:
    """A mean over rounds with its 95 % interval as a band, in the look of curve ``index``; see :func:`regret`."""
    colour, style = look(index)
    (drawn,) = panel.plot(
        estimate.rounds, estimate.mean, **{"color": colour, "linestyle": style, "linewidth": 1.8, "label": label, **line}
    )
    if np.all(np.isfinite(estimate.low)):
        panel.fill_between(estimate.rounds, estimate.low, estimate.high, color=drawn.get_color(), alpha=0.2, linewidth=0)


def look(index: int) -> tuple[str, str]:
    """Colour and line style of the curve with this index; no two of the first 28 agree in both.

    >>> import jaxbandit as jb
    >>> jb.plots.look(0), jb.plots.look(1)
    (('#0072B2', '-'), ('#D55E00', '--'))
    """
    return COLOURS[index % len(COLOURS)], STYLES[index % len(STYLES)]


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


def regret(
    results: Results,
    *,
    ax: "Axes | None" = None,
    log: Log = False,
    title: str = "",
    band: Band = "interval",
    **line: Any,
) -> "Figure":
    """One panel of regret curves.

    Args:
      results: a Result, a list of them, or ``{label: Result}``.
      ax: a panel of yours to draw into; its figure is returned.
      log: ``"x"``, ``"y"`` or ``"both"`` for logarithmic axes (True is ``"x"``).
      title: of the panel.
      band: ``"interval"``, the 95 % interval of the mean; two quantiles of the runs, such as ``(0.05, 0.95)``; or None.
      line: options of the matplotlib lines, such as ``linewidth=3``.

    >>> import jax, jaxbandit as jb
    >>> result = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(0), rounds=9, runs=4,
    ...                      key=jax.random.key(0))
    >>> type(jb.plots.regret({"uniform": result}, log="both")).__name__
    'Figure'
    """
    made, panel = _panel("regret", ax)
    _draw_regret("regret", panel, results, log, title, band, line)
    return made


def _panel(caller: str, ax: Any) -> "tuple[Figure, Axes]":
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


def draw_bounds(panel: "Axes", bounds: Mapping[str, Bound], rounds: Any) -> None:
    """Bounds as thin grey curves over ``rounds``, each labelled with what its constants are worth; see :func:`bounds`."""
    rounds = np.asarray(rounds)
    for index, (label, bound) in enumerate(bounds.items()):
        total = np.asarray(bound.total, float)
        if total.ndim and total.shape != rounds.shape:
            if total.ndim > 1 or len(total) < rounds[-1]:
                raise ValueError(
                    f"bounds[{label!r}]: {total.shape} numbers fit neither the {len(rounds)} recorded rounds nor each of {rounds[-1]}"
                )
            total = total[rounds - 1]  # one number for each round of the game
        worth = "order, all constants 1" if bound.status == "order" else bound.status
        style, total = STYLES[(index + 1) % len(STYLES)], np.broadcast_to(total, rounds.shape)
        panel.plot(rounds, total, color="0.35", linewidth=1.1, linestyle=style, label=f"{label} ({worth})")
    panel.autoscale(axis="y")  # the regret had the panel to itself; bounds lie above it
    if panel.get_yscale() == "linear":
        panel.set_ylim(bottom=0)
    panel.legend(frameon=False)


def bounds(results: Mapping[str, Result], bounds: Mapping[str, Bound], **options: Any) -> "Figure":
    """Regret curves under the bounds of :mod:`jaxbandit.theory`, both axes logarithmic.

    Args:
      results: ``{label: Result}``; the recorded rounds of the first are where the bounds are drawn.
      bounds: ``{label: Bound}`` with a total for each recorded round, for each round of the game, or one number.
      options: ``title``.

    >>> import jax, numpy as np, jaxbandit as jb
    >>> result = jb.simulate(jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(0), rounds=99, runs=4,
    ...                      key=jax.random.key(0))
    >>> bound = jb.theory.tsallis_inf_adversarial(num_arms=2, rounds=result.rounds)
    >>> made = jb.plots.bounds({"Tsallis-INF": result}, {"4√(KT) + 1": bound})
    >>> [line.get_label() for line in made.axes[0].get_lines()]
    ['Tsallis-INF', '4√(KT) + 1 (proved)']
    """
    labelled = _labelled("bounds", results)
    made, (panel,) = figure()
    draw_regret(panel, labelled, log="both", **options)
    draw_bounds(panel, bounds, next(iter(labelled.values())).rounds)
    means = np.concatenate([result.estimate().mean for result in labelled.values()])
    _y_axis(panel, means, log=True)
    place_legend(panel)
    return made


def draw_probabilities(panel: "Axes", result: Result, *, log: bool = True, title: str = "") -> None:
    """Mean x_t of each arm and the middle 80 % of the runs as a band; see :func:`probabilities`."""
    if result.probabilities is None:
        raise ValueError("result.probabilities is None: simulate with probabilities=True to keep x_t at the recorded rounds")
    for arm in range(result.probabilities.shape[1]):
        of_runs = result.probabilities[:, arm]
        colour, style = look(arm)
        panel.plot(result.rounds, of_runs.mean(-1), color=colour, linestyle=style, linewidth=1.8, label=f"arm {arm + 1}")
        low, high = np.quantile(of_runs, [0.1, 0.9], axis=-1)
        panel.fill_between(result.rounds, low, high, color=colour, alpha=0.15, linewidth=0)
    panel.set(xlabel="round", ylabel="probability of playing", title=title, ylim=(0, 1))
    panel.set_xscale("log" if log else "linear")
    if result.probabilities.shape[1] <= 12:  # a longer legend would cover the curves
        panel.legend(frameon=False)


def probabilities(result: Result, **options: Any) -> "Figure":
    """How likely each arm is played, over time: the mean over runs, with the middle 80 % of them as a band.

    Args:
      result: of ``simulate(..., probabilities=True)``.
      options: ``log=False`` for a linear time axis, ``title``.

    >>> import jax, jaxbandit as jb
    >>> result = jb.simulate(jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(3), rounds=50, runs=4,
    ...                      key=jax.random.key(0), probabilities=True)
    >>> len(jb.plots.probabilities(result).axes[0].get_lines())
    2
    """
    made, (panel,) = figure()
    draw_probabilities(panel, result, **options)
    return made


def draw_outstanding(
    panel: "Axes", delays: Mapping[str, Delays], *, rounds: int | None = None, key: jax.Array | None = None, title: str = ""
) -> None:
    """How many plays wait for feedback at the start of each round; see :func:`outstanding`."""
    for index, (label, law) in enumerate(delays.items()):
        sigma = optimal_skipping.outstanding(delays_of_run_0(law, rounds, key))
        colour, style = look(index)
        panel.plot(np.arange(1, len(sigma) + 1), sigma, color=colour, linestyle=style, linewidth=1.2, label=label)
    panel.set(xlabel="round", ylabel="outstanding plays", title=title)
    panel.set_ylim(bottom=0)
    if len(delays) > 1:
        panel.legend(frameon=False)


def outstanding(delays: Mapping[str, Delays], **options: Any) -> "Figure":
    """The number of plays whose feedback is outstanding, :math:`\\sigma_t`, as run 0 of a simulation with this key meets it.

    Args:
      delays: ``{label: law}``; laws that look at neither arm nor loss.
      options: ``rounds`` (a trace knows its own), ``key`` (``jax.random.key(0)`` unless given), ``title``.

    >>> import jaxbandit as jb
    >>> made = jb.plots.outstanding({"fixed": jb.delays.Fixed(3), "bursts": jb.delays.Bursts(4)}, rounds=20)
    >>> [int(line.get_ydata().max()) for line in made.axes[0].get_lines()]
    [3, 3]
    """
    made, (panel,) = figure()
    draw_outstanding(panel, delays, **options)
    return made


def draw_delay_histogram(
    panel: "Axes", delays: Delays, *, rounds: int | None = None, key: jax.Array | None = None, title: str = ""
) -> None:
    """Shares of plays by delay, in bins that double, and of those whose feedback never comes; see :func:`delay_histogram`."""
    drawn = delays_of_run_0(delays, rounds, key)
    came = drawn[drawn != NEVER]
    edges = np.append(0, 2 ** np.arange(int(came.max(initial=0)).bit_length() + 1))
    shares = np.bincount(np.searchsorted(edges, came, side="right") - 1, minlength=len(edges) - 1) / len(drawn)
    names = [str(low) if high - low == 1 else f"{low}–{high - 1}" for low, high in itertools.pairwise(edges)]
    panel.bar(np.arange(len(shares)), shares, color=COLOURS[0], width=0.85)
    panel.bar(len(shares) + 0.5, 1 - len(came) / len(drawn), color=COLOURS[1], width=0.85, hatch="//", edgecolor="white")
    panel.set_xticks([*range(len(names)), len(names) + 0.5], [*names, "never"], rotation=45, ha="right", rotation_mode="anchor")
    panel.set(xlabel="delay in rounds", ylabel="share of plays", title=title)
    panel.grid(axis="x", visible=False)


def delay_histogram(delays: Delays, **options: Any) -> "Figure":
    """How long feedback takes: bins 0, 1, 2–3, 4–7, …, and a hatched bar for what never comes.

    Args:
      delays: a law that looks at neither arm nor loss, such as a :class:`jaxbandit.delays.Trace`.
      options: ``rounds`` (a trace knows its own), ``key`` (``jax.random.key(0)`` unless given), ``title``.

    >>> import jaxbandit as jb
    >>> made = jb.plots.delay_histogram(jb.delays.Trace([0, 0, 1, jb.delays.NEVER]))
    >>> [float(bar.get_height()) for bar in made.axes[0].patches]
    [0.5, 0.25, 0.25]
    """
    made, (panel,) = figure()
    draw_delay_histogram(panel, delays, **options)
    return made
