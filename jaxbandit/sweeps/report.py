"""A sweep as one HTML file that needs no network: curves, tables, paired tests, provenance; and PNGs beside it."""

import contextlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jaxbandit import plots
from jaxbandit._core.display import number
from jaxbandit._io.files import checked_path, write_whole
from jaxbandit._io.html import escape, page, svg
from jaxbandit.plots.panels import save_png
from jaxbandit.plots.table import SweepTable, words
from jaxbandit.results.comparison import Difference
from jaxbandit.sweeps.chart import Line, chart
from jaxbandit.sweeps.comparison import Environment, differences, environments
from jaxbandit.sweeps.layout import MismatchError, StoreError, in_plain_words
from jaxbandit.sweeps.open import open_sweep
from jaxbandit.sweeps.spec import AXES
from jaxbandit.sweeps.store import Store
from jaxbandit.sweeps.summary import LEVEL, heat_table, in_words, wins

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OPEN = 6  # games, or panels of a figure, that are not folded
Figures = dict[str, tuple[str, "Figure"]]  # name of its file -> title, figure
Differences = Mapping[tuple[str, str, str], Difference]
Styles = Mapping[str, plots.Style]


def write_report(
    folder: str | os.PathLike,
    out: str | os.PathLike | None = None,
    *,
    title: str | None = None,
    text: str | None = None,
    force: bool = False,
) -> Path:
    """Write ``report.html`` into ``out`` (default: ``folder/report``), and its figures as PNGs beside it.

    The figures over what was varied always become PNGs, the curves of the games where there are at most six of them (for one of
    many: ``jb.plots.regret``). ``title`` and ``text`` are the reader's first lines, in place of those of the spec; blank lines in the text part paragraphs.
    Files that are already in ``out`` are replaced only with ``force``.
    """
    store = Store.open(folder)
    force = force or out is None
    out = store.path / "report" if out is None else checked_path("report(out=…)", out)
    games = environments(store)
    if not games:
        raise StoreError(f"{folder}: no cell has a block of runs yet; run the sweep first")
    title = title or store.manifest.get("title") or "Sweep report"
    text = store.manifest.get("text", "") if text is None else text
    figures = _swept_figures(store)
    html = page(title, _body(store, games, figures, title, text), _STYLE)
    if len(games) <= OPEN:
        figures = {**figures, **{game.name: (game.title, _picture(game)) for game in games}}
    there = [file for file in (out / "report.html", *(out / f"{name}.png" for name in figures)) if os.path.lexists(file)]
    if there and not force:
        raise MismatchError(
            f"{there[0]}: this file is already there; choose another folder (out=, --out), or replace it (force=True, --force)"
        )
    with in_plain_words(out):
        for name, (_, figure) in figures.items():
            save_png(figure, out / f"{name}.png")
        write_whole(out / "report.html", html)
    return out / "report.html"


def _picture(game: Environment) -> "Figure":
    """The curves of an environment on linear and on logarithmic axes."""
    figure, panels = plots.figure(columns=2)
    for panel, log in zip(panels, (False, True), strict=True):
        plots.regret(game.results, ax=panel, log=log, title=game.title if not log else "")
    plots.take_literally(figure)
    return figure


def _body(store: Store, games: Sequence[Environment], figures: Figures, title: str, text: str) -> list[str]:
    pairs = differences(games)
    labels = store.labels("learners")
    counts = " × ".join(f"{count} {axis}" for count, axis in zip(store.shape, AXES, strict=True))
    least = min(result.regret.shape[1] for game in games for result in game.results.values())
    whole = store.done(store.files()) == store.unit_counts()
    partial = "" if whole else _PARTIAL
    until = _UNTIL.format(escape(store.manifest["until"]["asked"])) if "until" in store.manifest else ""
    runs = f"{store.runs:,} runs" if least == store.runs else f"{least:,} to {store.runs:,} runs"
    sections = "".join(_section(game, pairs, labels, len(games) <= OPEN or game is games[0]) for game in games)
    found = wins(games, pairs)
    own = "".join(f"<p>{escape(part)}</p>" for part in text.split("\n\n") if part.strip())
    return [
        f"""<header><h1>{escape(title)}</h1>{own}
<p>{counts}; {runs} × {store.rounds:,} rounds, seed {escape(str(store.manifest["seed"]))}. Regret is pseudo-regret
against the best arm in hindsight; bands and brackets are 95% intervals over runs. Learners have the same losses and delays run by
run, so differences are paired.{until}</p>{partial}
<h2>Summary</h2>{in_words(games, found, labels)}{heat_table(games, labels) if len(labels) > 1 else ""}</header>
{_drawn(figures)}
<h2>Environments</h2>
<input type="radio" name="axes" id="linear" checked><label for="linear">linear axes</label>
<input type="radio" name="axes" id="log"><label for="log">logarithmic axes</label>
<main>{sections}</main>""",
        _provenance(store, len(pairs) // 2),
    ]


_UNTIL = (
    " Runs were added with until={}: differences are those of confidence sequences, simultaneous over all pairs; intervals of single "
    "learners are Student's, and do not account for the choice of the number of runs."
)
_PARTIAL = '<p class="partial">The sweep is not finished: the runs so far are shown.</p>'


def _section(game: Environment, pairs: Differences, labels: Sequence[str], unfolded: bool) -> str:
    styles = dict(zip(labels, plots.styles_for(labels), strict=True))  # the same in all environments
    means = game.means()
    ranked = sorted(means, key=means.__getitem__)
    figures = "".join(_figure(game, styles, log) for log in (False, True))
    return f"""<section><details{" open" if unfolded else ""}><summary class="game">{escape(game.title)}</summary>
<div class="pair" id="{escape(game.name)}"><div>{figures}{_bound_note(game)}</div>
<div><div class="wide">{_table(game, pairs, ranked, styles)}</div>{_interval_note(game)}{_delay_line(game)}{_matrix(game, pairs, ranked)}</div></div></details></section>
"""


def _figure(game: Environment, styles: Styles, log: bool) -> str:
    """Mean regret with bands, and the bounds; the table beside it is the legend."""
    estimates = {label: result.estimate() for label, result in game.results.items()}
    lines = [Line(bound.rounds, bound.values, styles[label].colour, "1 4", 1.2) for label, bound in game.bounds.items()]
    for label, estimate in estimates.items():
        dashes = " ".join(f"{_WIDTH * length:g}" for length in styles[label].dash)
        lines.append(Line(estimate.rounds, estimate.mean, styles[label].colour, dashes, _WIDTH, estimate.low, estimate.high))
    highest = max(float(np.nanmax(np.fmax(estimate.high, estimate.mean))) for estimate in estimates.values())
    if log:
        means = np.concatenate([estimate.mean for estimate in estimates.values()])
        highest = max([highest, *(float(bound.values[-1]) for bound in game.bounds.values())])
        # Regret may start at 0, where a logarithm has no place for it.
        lowest = max(np.min(means[means > 0], initial=highest if highest > 0 else 1.0), 1e-6 * highest)
        limits = 0.7 * lowest, 1.4 * max(highest, lowest)
    else:
        lowest = min(0.0, *(float(np.nanmin(np.fmin(estimate.low, estimate.mean))) for estimate in estimates.values()))
        # Bounds that lie higher are cut off: the regret would be flat on the axis.
        limits = lowest, 1.04 * highest if highest > max(lowest, 0.0) else 1.0
    return chart(lines, limits, log=log, title=f"regret, {game.title}", css_class="log" if log else "linear")


_WIDTH = 2.0  # of a curve, in pixels; dashes are multiples of it


def _swatch(style: plots.Style) -> str:
    """A short piece of a curve."""
    stops, at = [], 0.0
    for place, length in enumerate(_WIDTH * part for part in style.dash or (13,)):
        stops.append(f"{'transparent' if place % 2 else style.colour} {at:g}px {at + length:g}px")
        at += length
    return f'<span class="swatch" style="background:repeating-linear-gradient(90deg,{",".join(stops)})"></span>'


def _table(game: Environment, pairs: Differences, ranked: Sequence[str], styles: Styles) -> str:
    best = ranked[0]
    rows = []
    for label in ranked:
        estimate = game.results[label].estimate()
        mark = "" if estimate.reliable[-1] else " †"
        interval = f"<small>{number(estimate.low[-1])} … {number(estimate.high[-1])}{mark}</small>"
        summary = game.results[label].summary()
        cells = f"<th>{_swatch(styles[label])}{escape(label)}</th><td>{number(estimate.mean[-1])} {interval}</td>"
        cells += f"<td>{number(summary.median)}</td><td>{number(summary.quantile_95)}</td><td>{summary.failed:.1%}</td>"
        if label != best:
            pair = pairs[game.name, label, best]
            look, star = ("clear", " *") if pair.adjusted < LEVEL else ("open", "")
            described = f"<small>p {_p(pair.adjusted)}{star}</small>"
            cells += f'<td class="{look}">{_signed(pair.mean)} ± {number(pair.half)} {described}</td>'
        elif len(ranked) > 1:
            cells += "<td>best</td>"
        rows.append(f"<tr>{cells}</tr>")
    more = "<th>paired difference to the best</th>" if len(ranked) > 1 else ""
    quantiles = "<th>median</th><th>95th percentile</th><th>failed runs</th>"
    head = f"<tr><th>learner</th><th>regret <small>95% interval</small></th>{quantiles}{more}</tr>"
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _interval_note(game: Environment) -> str:
    """Notes on failed runs and on unreliable intervals."""
    estimates = {label: result.estimate() for label, result in game.results.items()}
    notes = [f"† {escape(label)}: {escape(one.note)}." for label, one in estimates.items() if one.note]
    failed = "Failed runs: regret above ten times the median, and above 10."
    return f"<p class=small>{' '.join([failed, *notes])}</p>"


def _matrix(game: Environment, pairs: Differences, ranked: Sequence[str]) -> str:
    """All pairs, row minus column; a star where the difference is significant after correction."""
    if len(ranked) < 3:
        return ""
    rows = []
    for place, one in enumerate(ranked, 1):
        cells = []
        for other in ranked:
            pair = pairs.get((game.name, one, other))
            star = "&nbsp;*" if pair and pair.adjusted < LEVEL else ""
            cells.append(f'<td class="{"clear" if star else "open"}">{_signed(pair.mean)}{star}</td>' if pair else "<td>·</td>")
        rows.append(f"<tr><th>{place}. {escape(one)}</th>{''.join(cells)}</tr>")
    head = "".join(f"<th>{place}</th>" for place in range(1, len(ranked) + 1))
    return (
        f'<details><summary>all pairs: row − column</summary><div class="wide"><table><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _delay_line(game: Environment) -> str:
    """Delays are the same for all learners unless they depend on the arm; the range over learners shows it."""

    def span(values: Iterable[float]) -> str:
        low, high = min(values), max(values)
        return number(low) if low == high else f"{number(low)} to {number(high)}"

    results = game.results.values()
    return (
        f"<p class=small>Total delay of a run: {span([r.total_delay.mean() for r in results])} rounds on average, "
        f"{span([r.total_delay.mean() / r.rounds[-1] for r in results])} per round; at most "
        f"{span([r.outstanding_max.max() for r in results])} outstanding observations; "
        f"{span([r.lost.mean() for r in results])} observations missing on average.</p>"
    )


def _bound_note(game: Environment) -> str:
    if not game.bounds:
        return ""
    sources: dict[str, list[str]] = {}
    for label, bound in game.bounds.items():
        sources.setdefault(bound.source, []).append(label)
    described = "; ".join(f"{escape(source)}: {escape(', '.join(names))}" for source, names in sources.items())
    return f"<p class=small>Thin dotted lines: upper bounds with proved constants, where they fit ({described}).</p>"


MOST_FIGURES = 4


def _swept_figures(store: Store) -> Figures:
    """The lowest regret over two swept numbers, and regret against each; nothing where the dataset cannot be made."""
    try:
        data = open_sweep(store.path)[["regret"]].isel(round=[-1]).load()  # read once, for all figures
    except ImportError:
        return {}
    table = SweepTable.of("against", data, None)
    numbers = table.numbers()
    found: Figures = {}
    delay, loss = (next((name for name in numbers if table.dimension(name) == axis), None) for axis in ("delays", "losses"))
    if delay and loss and len(table.labels["learner"]) > 1:
        with contextlib.suppress(ValueError):  # too many panels or cells: the user chooses what to draw
            found["lowest_regret"] = "lowest regret", plots.heatmap(data, delay, loss)
    for name in numbers[:MOST_FIGURES]:
        log = "x" if _spread(table.values_of[name]) > 20 else False
        with contextlib.suppress(ValueError):
            found[f"against_{name}"] = f"regret against {words(name)}", plots.against(data, name, log=log)
    for _, figure in found.values():
        plots.take_literally(figure)
    return found


def _drawn(figures: Figures) -> str:
    """The figures over what was varied, folded where there are many panels."""
    parts = []
    for name, (title, figure) in figures.items():
        unfolded = " open" if len(figure.axes) <= OPEN else ""
        columns = round(figure.get_figwidth() / 5)
        drawn = f'<div class="wide">{svg(figure, name, f"against of{columns}")}</div>'
        figure.set_layout_engine("none")  # its panels have found their places: the PNG need not look for them again
        parts.append(f"<details{unfolded}><summary>{escape(title)}</summary>{drawn}</details>")
    return f"<h2>Swept parameters</h2>{''.join(parts)}" if parts else ""


def _spread(values: Sequence[float]) -> float:
    """The largest number over the least above 0, if none is below."""
    finite = np.asarray(values)[np.isfinite(values)]
    return float(finite.max() / finite[finite > 0].min()) if finite.min() >= 0 else 0.0


def _signed(value: float) -> str:
    return ("+" if value > 0 else "−" if value < 0 else "") + number(abs(value))


def _p(value: float) -> str:
    return "&lt; 0.0001" if value < 1e-4 else f"= {value:.2g}" if value < 1 else "= 1"


def _provenance(store: Store, pairs: int) -> str:
    rows = []
    for axis in AXES:
        for setting in store.manifest["axes"][axis]:
            fields = {name: value for name, value in setting["about"].items() if value is not None}
            text = json.dumps(fields, ensure_ascii=False)
            text = text if len(text) < 600 else text[:600] + "…"
            rows.append(f"<tr><th>{escape(setting['label'])}</th><td>{escape(text)}</td></tr>")
    where = "; ".join(", ".join(f"{name} {value}" for name, value in known.items()) for known in store.manifest["environments"])
    horizons = ", ".join(f"{horizon['rounds']:,}" for horizon in store.manifest["horizons"])
    return f"""<footer><h2>Provenance</h2>
<p>Horizons: {escape(horizons)} rounds. {len(store.files())} unit files, each with its SHA-256 in its name
(<code>jaxbandit verify</code> checks them). Made with {escape(where)}.</p>
<p>Differences are tested with a two-sided paired Student test at the horizon, adjusted by Holm over all {pairs} pairs of this
report; a star marks adjusted p below {LEVEL}. A bound is drawn only where it holds for
the delays that were simulated.</p>
<details><summary>all settings of learners, losses and delays</summary><div class="wide"><table><tbody>{"".join(rows)}</tbody></table></div></details></footer>"""


_STYLE = """
.partial{background:#fff3d6;padding:.4rem .7rem;border-radius:4px}input[name=axes]{margin:0 .3rem 0 0}label{margin-right:1.2rem}
.pair{display:grid;grid-template-columns:minmax(0,4fr) minmax(0,5fr);gap:1.2rem;align-items:start}.pair>div{min-width:0}
summary.game{font-size:1.02rem;font-weight:600;color:#1a1a1a;margin:.35rem 0;overflow-wrap:anywhere}ul{max-width:60rem;padding-left:1.2rem}
table.heat{width:auto}table.heat th{overflow-wrap:anywhere;white-space:normal;max-width:26rem}table.heat thead th{overflow-wrap:normal}svg.against{display:block;max-width:100%}.scrolled{max-height:30rem;overflow:auto}.scrolled thead th{position:sticky;top:0;background:#fff}
svg.chart{width:100%;display:block}.chart text{font-size:13px;fill:#333}.grid{stroke:#e6e6e6}.axes{stroke:#333;fill:none}#linear:checked~main svg.log,#log:checked~main svg.linear{display:none}
.swatch{display:inline-block;width:26px;height:3px;margin-right:.45rem;vertical-align:middle}
table{width:100%}th,td{text-align:right}td{white-space:nowrap}th{overflow-wrap:anywhere}.pair th:first-child{min-width:7rem}.pair thead th{overflow-wrap:normal}
th:first-child,footer td{text-align:left}footer td{white-space:normal;overflow-wrap:anywhere}
td small,th small{font-size:.82em;font-weight:400;color:#555;display:block}
.clear{font-weight:600}.open{color:#767676}.small{font-size:.82rem;color:#555;margin:.5rem 0}
summary{cursor:pointer;font-size:.86rem;color:#0b5394}footer{border-top:1px solid #ccc;margin-top:2rem;font-size:.9rem}
@media(max-width:1250px){.pair{grid-template-columns:minmax(0,1fr)}svg.chart{max-width:680px}}
@media(max-width:860px){svg.against{max-width:none;width:1000px}svg.of1{width:430px}svg.of2{width:720px}th:first-child{overflow-wrap:normal;min-width:6.5rem}body{padding:.7rem}.pair{grid-template-columns:minmax(0,1fr)}th,td{padding:.26rem .4rem}table{font-size:.8rem}
thead th{white-space:normal;vertical-align:bottom}tbody th{white-space:normal}td small,th small{display:block}}
@media print{h2,summary{break-after:avoid}.wide,.scrolled{overflow:visible;max-height:none}svg.against{width:auto;max-width:100%;break-inside:avoid}body{max-width:none;font-size:11px;padding:0}input,label{display:none}section{break-inside:avoid}
#linear:checked~main svg.log,#log:checked~main svg.linear,svg.chart{display:inline-block;width:49%}.pair{display:block}.small{font-size:9px}details:not([open])>*{display:none}th,td{white-space:normal}}
"""
