"""Figures: good defaults, colour-blind safe (Okabe & Ito), told apart by line style in grey.

Every ``draw_…`` draws into a panel of yours; the function of the same name without it makes a figure of one panel. Both
return or use plain matplotlib objects, so anything can be changed afterwards. All of it needs the extra ``jaxbandit[plot]``.
"""

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import randomness
from jaxbandit.delays import NEVER, Delays
from jaxbandit.pytrees import canonical, float_dtype, show
from jaxbandit.validation import check_delays, check_key, check_rounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from jaxbandit.result import Result
    from jaxbandit.theory import Bound

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")


def figure(columns: int = 1) -> "tuple[Figure, list[Axes]]":
    """A figure with ``columns`` panels side by side, not tied to any window or notebook.

    >>> import jaxbandit as jb
    >>> made, panels = jb.plots.figure(columns=2)
    >>> len(panels)
    2
    """
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
    """Mean regret of each result with its 95 % interval as a band; see :func:`regret`."""
    for index, (label, result) in enumerate(results.items()):
        estimate = result.estimate()
        colour, style = _look(index)
        panel.plot(estimate.rounds, estimate.mean, color=colour, linestyle=style, linewidth=1.8, label=label)
        if np.all(np.isfinite(estimate.low)):
            panel.fill_between(estimate.rounds, estimate.low, estimate.high, color=colour, alpha=0.2, linewidth=0)
    panel.set(xlabel="round", ylabel="mean pseudo-regret", title=title)
    panel.set_xscale("log" if log else "linear")
    panel.set_ylim(bottom=0)
    if len(results) > 1:
        panel.legend(frameon=False)


def _look(index: int) -> tuple[str, str]:
    """Colour and line style of the curve with this index; no two of the first 28 agree in both."""
    return COLOURS[index % len(COLOURS)], STYLES[index % len(STYLES)]


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


def draw_bounds(panel: "Axes", bounds: "Mapping[str, Bound]", rounds: Any) -> None:
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


def bounds(results: "Mapping[str, Result]", bounds: "Mapping[str, Bound]", **options: Any) -> "Figure":
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
    made, (panel,) = figure()
    draw_regret(panel, results, log=True, **options)
    panel.set_yscale("log")
    draw_bounds(panel, bounds, next(iter(results.values())).rounds)
    # Regret may start at 0: the axis begins a little below the smallest mean that is not.
    means = np.concatenate([result.estimate().mean for result in results.values()])
    panel.set_ylim(bottom=0.7 * np.min(means[means > 0], initial=1.0))
    return made


def draw_probabilities(panel: "Axes", result: "Result", *, log: bool = True, title: str = "") -> None:
    """Mean x_t of each arm and the middle 80 % of the runs as a band; see :func:`probabilities`."""
    if result.probabilities is None:
        raise ValueError("result.probabilities is None: simulate with probabilities=True to keep x_t at the recorded rounds")
    for arm in range(result.probabilities.shape[1]):
        of_runs = result.probabilities[:, arm]
        colour, style = _look(arm)
        panel.plot(result.rounds, of_runs.mean(-1), color=colour, linestyle=style, linewidth=1.8, label=f"arm {arm + 1}")
        low, high = np.quantile(of_runs, [0.1, 0.9], axis=-1)
        panel.fill_between(result.rounds, low, high, color=colour, alpha=0.15, linewidth=0)
    panel.set(xlabel="round", ylabel="probability of playing", title=title, ylim=(0, 1))
    panel.set_xscale("log" if log else "linear")
    if result.probabilities.shape[1] <= 12:  # a longer legend would cover the curves
        panel.legend(frameon=False)


def probabilities(result: "Result", **options: Any) -> "Figure":
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


def draw_outstanding(panel: "Axes", delays: Mapping[str, Delays], *, rounds=None, key=None, title: str = "") -> None:
    """How many plays wait for feedback at the start of each round; see :func:`outstanding`."""
    from jaxbandit.theory.skipping import outstanding

    for index, (label, law) in enumerate(delays.items()):
        sigma = outstanding(_drawn(law, rounds, key))
        colour, style = _look(index)
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


def draw_delay_histogram(panel: "Axes", delays: Delays, *, rounds=None, key=None, title: str = "") -> None:
    """Shares of plays by delay, in bins that double, and of those whose feedback never comes; see :func:`delay_histogram`."""
    drawn = _drawn(delays, rounds, key)
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


def _drawn(delays: Any, rounds: int | None, key: jax.Array | None) -> np.ndarray:
    """The delays ``[rounds]`` that run 0 of a simulation with this key meets."""
    check_delays(delays, 1)
    if not getattr(delays, "oblivious", False):
        raise ValueError(f"delays={show(delays)}: only laws that look at neither arm nor loss can be drawn without a learner")
    rounds = getattr(delays, "length", None) if rounds is None else rounds
    if rounds is None:
        raise ValueError(f"rounds=None: {type(delays).__name__} goes on for ever; say how many rounds to draw")
    check_rounds(rounds)
    key = jax.random.key(0) if key is None else key
    check_key(key)
    law = canonical(delays)
    law = law.prepare() if hasattr(law, "prepare") else law
    stream, grain = randomness.stream(key, randomness.DELAY), randomness.grain(float_dtype())

    def draw(t):
        words = randomness.fold(randomness.fold(stream, t), jnp.zeros((), jnp.uint32))
        return law.draw(t, jnp.int32(0), jnp.zeros((), float_dtype()), randomness.uniform(words.first, grain))

    return np.asarray(jax.vmap(draw)(jnp.arange(1, rounds + 1, dtype=jnp.int32)))
