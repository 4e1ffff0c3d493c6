"""The first part of a report: the lowest regret per environment and its margin, as text and as a coloured table."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from jaxbandit._core.display import interval, number
from jaxbandit._io.html import escape
from jaxbandit.results.comparison import Difference
from jaxbandit.sweeps.comparison import Environment

LEVEL = 0.05


@dataclasses.dataclass(frozen=True)
class Win:
    """The learner with the lowest mean regret in an environment, and the second lowest."""

    title: str  # of the environment
    best: str
    second: str
    lead: Difference  # second minus best
    ratio: float  # of their mean regrets
    clear: bool  # whether the paired difference is significant after correction


def wins(games: Sequence[Environment], pairs: Mapping[tuple[str, str, str], Difference]) -> list[Win]:
    """One for each environment with at least two learners."""
    found = []
    for game in games:
        means = game.means()
        if len(means) < 2:
            continue
        best, second = sorted(means, key=means.__getitem__)[:2]
        lead = pairs[game.name, second, best]
        ratio = means[second] / means[best] if means[best] > 0 else np.nan
        found.append(Win(game.title, best, second, lead, ratio, lead.adjusted < LEVEL))
    return found


def in_words(games: Sequence[Environment], found: Sequence[Win], labels: Sequence[str]) -> str:
    """A sentence for each learner that has the lowest regret somewhere, as HTML."""
    if not found:
        return "<p>The sweep has one learner; its regret is below.</p>"
    if len(games) == 1:
        return f"<p>{_one_game(found[0])}</p>"
    items = []
    for label in sorted(labels, key=lambda label: -sum(win.best == label for win in found)):
        mine = [win for win in found if win.best == label]
        if not mine:
            continue
        clear = [win for win in mine if win.clear]
        ratios = [win.ratio for win in mine if np.isfinite(win.ratio)]
        level = all(f"{ratio:.3g}" == "1" for ratio in ratios)
        by = (
            " The second-lowest regret is the same." if level else f" The second-lowest regret is {_span(ratios)} times as large."
        )
        widest = max(clear, key=lambda win: win.lead.mean, default=None)
        most = f" Largest margin: {_lead(widest)} below {escape(widest.second)} ({escape(widest.title)})." if widest else ""
        items.append(
            f"<li><b>{escape(label)}</b> has the lowest regret in {len(mine)} of {len(found)} environments, significantly in {len(clear)} of them.{by}{most}</li>"
        )
    never = [label for label in labels if all(win.best != label for win in found)]
    last = f"<p>Lowest in no environment: {escape(', '.join(never))}.</p>" if never else ""
    return f"<ul>{''.join(items)}</ul>{last}"


def _one_game(win: Win) -> str:
    clearly = "" if win.clear else "; the difference is not significant"
    return f"<b>{escape(win.best)}</b> has the lowest regret: {_lead(win)} below {escape(win.second)}{clearly}."


def _lead(win: Win) -> str:
    return escape(interval(win.lead.mean, win.lead.mean - win.lead.half, win.lead.mean + win.lead.half))


def _span(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"


def heat_table(games: Sequence[Environment], labels: Sequence[str]) -> str:
    """Environments x learners: mean regret, coloured by its ratio to the lowest of the environment."""
    rows = []
    for game in games:
        means = game.means()
        least = min(means.values())
        cells = []
        for label in labels:
            if label not in means:
                cells.append("<td>–</td>")
                continue
            ratio = means[label] / least if least > 0 else (1.0 if means[label] == least else np.inf)
            bold = "<b>{}</b>" if means[label] == least else "{}"
            cells.append(f'<td style="background:{_colour(ratio)}">{bold.format(number(means[label]))}</td>')
        rows.append(f'<tr><th><a href="#{escape(game.name)}">{escape(game.title)}</a></th>{"".join(cells)}</tr>')
    head = "".join(f"<th>{escape(label)}</th>" for label in labels)
    table = f"<table class=heat><thead><tr><th>environment</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    note = "<p class=small>Mean regret; the shade is its ratio to the lowest of the row (white: 1, full: 10 or more).</p>"
    return f'<div class="wide scrolled">{table}</div>{note}'


def _colour(ratio: float) -> str:
    share = min(np.log10(max(ratio, 1.0)), 1.0) if np.isfinite(ratio) else 1.0
    return f"rgba(213,94,0,{0.75 * share:.2f})"
