"""Regret, bounds and probabilities over the rounds."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit._core.fields import show
from jaxbandit.plots.panels import (
    Band,
    Log,
    check_band,
    check_log_axes,
    draw_estimate,
    label_logarithms,
    line_options,
    panel_of,
    place_legend,
    set_y_axis,
)
from jaxbandit.plots.style import STYLES, look, styles_for
from jaxbandit.results.result import Result
from jaxbandit.theory.bounds import Bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Results = Result | Sequence[Result] | Mapping[str, Result]


def _draw_regret(caller: str, panel: "Axes", results: Results, log: Any, title: str, band: Any, line: dict[str, Any]) -> None:
    labelled = _labelled(caller, results)
    log_x, log_y = check_log_axes(caller, log)
    check_band(caller, band)
    smallest = []
    for style, (label, result) in zip(styles_for(labelled), labelled.items(), strict=True):
        estimate = result.estimate()
        low, high = estimate.low, estimate.high
        if band != "interval":
            low, high = np.quantile(result.regret, band, axis=1) if band else np.full((2, len(estimate.mean)), np.nan)
        with line_options(caller):
            draw_estimate(panel, dataclasses.replace(estimate, low=low, high=high), style, label, **line)
        smallest += [estimate.mean, low[np.isfinite(low)]]
    panel.set(xlabel="round", ylabel="mean pseudo-regret", title=title)
    panel.set_xscale("log" if log_x else "linear")
    set_y_axis(panel, np.concatenate(smallest), log_y)
    label_logarithms(panel)
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

    >>> import jaxbandit as jb
    >>> result = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(0), rounds=9, runs=4, seed=0)
    >>> type(jb.plots.regret({"uniform": result}, log="both")).__name__
    'Figure'
    """
    made, panel = panel_of("regret", ax)
    _draw_regret("regret", panel, results, log, title, band, line)
    return made


def _draw_bounds(panel: "Axes", bounds: Mapping[str, Bound], rounds: np.ndarray) -> None:
    """Bounds as thin grey curves over ``rounds``, each labelled with the status of its constants."""
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
    place_legend(panel)


def bounds(results: Results, bounds: Mapping[str, Bound], *, ax: "Axes | None" = None, **options: Any) -> "Figure":
    """Regret curves under the bounds of :mod:`jaxbandit.theory`, both axes logarithmic.

    Args:
      results: a Result, a list of them, or ``{label: Result}``; the recorded rounds of the first are where the bounds are drawn.
      bounds: ``{label: Bound}`` with a total for each recorded round, for each round of the game, or one number.
      ax: a panel of yours to draw into; its figure is returned.
      options: ``title``, ``band`` and options of the matplotlib lines, as in :func:`regret`.

    >>> import jax, numpy as np, jaxbandit as jb
    >>> result = jb.simulate(jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(0), rounds=99, runs=4,
    ...                      key=jax.random.key(0))
    >>> bound = jb.theory.bounds.tsallis_inf_adversarial(num_arms=2, rounds=result.rounds)
    >>> made = jb.plots.bounds({"Tsallis-INF": result}, {"4√(KT) + 1": bound})
    >>> [line.get_label() for line in made.axes[0].get_lines()]
    ['Tsallis-INF', '4√(KT) + 1 (proved)']
    """
    labelled = _labelled("bounds", results)
    made, panel = panel_of("bounds", ax)
    title, band = options.pop("title", ""), options.pop("band", "interval")
    _draw_regret("bounds", panel, labelled, "both", title, band, options)
    _draw_bounds(panel, bounds, next(iter(labelled.values())).rounds)
    means = np.concatenate([result.estimate().mean for result in labelled.values()])
    set_y_axis(panel, means, log=True)
    label_logarithms(panel)
    place_legend(panel)
    return made


def probabilities(result: Result, *, ax: "Axes | None" = None, log: Log = "x", title: str = "") -> "Figure":
    """How likely each arm is played, over time: the mean over runs, with the middle 80 % of them as a band.

    Args:
      result: of ``simulate(..., probabilities=True)``.
      ax: a panel of yours to draw into; its figure is returned.
      log, title: as in :func:`regret`.

    >>> import jaxbandit as jb
    >>> result = jb.simulate(jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(3), rounds=50, runs=4, seed=0,
    ...                      probabilities=True)
    >>> len(jb.plots.probabilities(result).axes[0].get_lines())
    2
    """
    if result.probabilities is None:
        raise ValueError("result.probabilities is None: simulate with probabilities=True to keep x_t at the recorded rounds")
    log_x, log_y = check_log_axes("probabilities", log)
    made, panel = panel_of("probabilities", ax)
    for arm in range(result.probabilities.shape[1]):
        of_runs = result.probabilities[:, arm]
        colour, style = look(arm)
        panel.plot(result.rounds, of_runs.mean(-1), color=colour, linestyle=style, linewidth=1.8, label=f"arm {arm + 1}")
        low, high = np.quantile(of_runs, [0.1, 0.9], axis=-1)
        panel.fill_between(result.rounds, low, high, color=colour, alpha=0.15, linewidth=0)
    panel.set(xlabel="round", ylabel="probability of playing", title=title, ylim=(0, 1))
    panel.set_xscale("log" if log_x else "linear")
    if log_y:
        panel.set_yscale("log")
        panel.autoscale(axis="y")
    label_logarithms(panel)
    if result.probabilities.shape[1] <= 12:  # more would be a wall of text
        place_legend(panel)
    return made
