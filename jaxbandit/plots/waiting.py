"""Figures of delays: outstanding observations and the distribution of the delays."""

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import jax
import numpy as np

from jaxbandit._engine.simulation import delays_of_run_0
from jaxbandit.delays import NEVER, Delays
from jaxbandit.plots.panels import panel_of, place_legend
from jaxbandit.plots.style import COLOURS, look
from jaxbandit.theory import optimal_skipping

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def outstanding(
    delays: Mapping[str, Delays],
    *,
    ax: "Axes | None" = None,
    rounds: int | None = None,
    key: jax.Array | None = None,
    title: str = "",
) -> "Figure":
    """The number of outstanding observations, :math:`\\sigma_t`, as run 0 of a simulation with this key meets it.

    Args:
      delays: ``{label: delay model}``; models that depend on neither arm nor loss.
      ax: a panel of yours to draw into; its figure is returned.
      rounds: how many; a trace knows its own.
      key: ``jax.random.key(0)`` unless given.
      title: of the panel.

    >>> import jaxbandit as jb
    >>> made = jb.plots.outstanding({"fixed": jb.delays.Fixed(3), "bursts": jb.delays.Bursts(4)}, rounds=20)
    >>> [int(line.get_ydata().max()) for line in made.axes[0].get_lines()]
    [3, 3]
    """
    made, panel = panel_of("outstanding", ax)
    for index, (label, law) in enumerate(delays.items()):
        sigma = optimal_skipping.outstanding(delays_of_run_0(law, rounds, key))
        colour, style = look(index)
        panel.plot(np.arange(1, len(sigma) + 1), sigma, color=colour, linestyle=style, linewidth=1.2, label=label)
    panel.set(xlabel="round", ylabel="outstanding observations", title=title)
    panel.set_ylim(bottom=0)
    if len(delays) > 1:
        place_legend(panel)
    return made


def delay_histogram(
    delays: Delays, *, ax: "Axes | None" = None, rounds: int | None = None, key: jax.Array | None = None, title: str = ""
) -> "Figure":
    """A histogram of delays: bins 0, 1, 2–3, 4–7, …, and a hatched bar for missing feedback.

    Args:
      delays: a delay model that depends on neither arm nor loss, such as a :class:`jaxbandit.delays.Trace`.
      ax: a panel of yours to draw into; its figure is returned.
      rounds: how many; a trace knows its own.
      key: ``jax.random.key(0)`` unless given.
      title: of the panel.

    >>> import jaxbandit as jb
    >>> made = jb.plots.delay_histogram(jb.delays.Trace([0, 0, 1, jb.delays.NEVER]))
    >>> [float(bar.get_height()) for bar in made.axes[0].patches]
    [0.5, 0.25, 0.25]
    """
    made, panel = panel_of("delay_histogram", ax)
    drawn = delays_of_run_0(delays, rounds, key)
    came = drawn[drawn != NEVER]
    edges = np.append(0, 2 ** np.arange(int(came.max(initial=0)).bit_length() + 1))
    shares = np.bincount(np.searchsorted(edges, came, side="right") - 1, minlength=len(edges) - 1) / len(drawn)
    names = [str(low) if high - low == 1 else f"{low}–{high - 1}" for low, high in itertools.pairwise(edges)]
    panel.bar(np.arange(len(shares)), shares, color=COLOURS[0], width=0.85)
    panel.bar(len(shares) + 0.5, 1 - len(came) / len(drawn), color=COLOURS[1], width=0.85, hatch="//", edgecolor="white")
    panel.set_xticks([*range(len(names)), len(names) + 0.5], [*names, "never"], rotation=45, ha="right", rotation_mode="anchor")
    panel.set(xlabel="delay in rounds", ylabel="share of rounds", title=title)
    panel.grid(axis="x", visible=False)
    return made
