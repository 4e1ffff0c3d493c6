"""Advice as one HTML file that needs no network."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from jaxbandit import plots
from jaxbandit._core.display import interval, number, plus_minus
from jaxbandit._io.files import write_whole
from jaxbandit._io.html import escape, page, svg, table
from jaxbandit._version import __version__
from jaxbandit.advice.candidates import TITLES, UNIFORM
from jaxbandit.delays import Empirical
from jaxbandit.logs.dependence import duration

if TYPE_CHECKING:
    from jaxbandit.advice.result import Advice, Standing
    from jaxbandit.logs import Log

SHOWN = 5  # curves in the figure, and the uniform baseline
TITLE = "Which learner for this log"


def write_report(advice: "Advice", path: str | os.PathLike, title: str = TITLE) -> Path:
    """Write the page, whole or not at all; ``title`` is its heading."""
    sections = [_head(advice, title), _learners(advice), _futures(advice), _log(advice), _method(advice)]
    write_whole(path, page(title, sections, _STYLE))
    return Path(path)


def _head(advice: "Advice", title: str) -> str:
    first, *others = advice.summary()
    return f"""<header><h1>{escape(title)}</h1><p class="summary"><b>{escape(first)}</b></p>
<p class="summary">{escape(" ".join(others))}</p><p>To start:</p><pre>{escape(advice.code())}</pre></header>"""


def _learners(advice: "Advice") -> str:
    ranking = advice.ranking()
    rows = [[advice.name(one.label), *_cells(one)] for one in ranking]
    columns = [
        "learner",
        f"{advice.unit} lost",
        "% of the best arm’s reward",
        "95th percentile of a run",
        "difference to the first, paired",
    ]
    names = [one.label for one in ranking[:SHOWN]]
    names += [] if UNIFORM in names else [UNIFORM]
    figure, (panel,) = plots.figure()
    for style, label in zip(plots.styles_for(map(advice.name, names)), names, strict=True):
        plots.draw_estimate(panel, advice.curve(label), style, advice.name(label))
    panel.set(xlabel="decision", ylabel=f"mean {advice.unit} lost")
    panel.set_xlim(0, advice.rounds)
    panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]))
    plots.place_legend(panel)
    plots.take_literally(figure)
    return f"""<section><h2>If rates and delays stay as logged</h2>
<p>{advice.rounds:,} decisions, {advice.runs} runs. Losses are against the best arm. Square brackets are 95% credible intervals of the expected
loss: they contain the uncertainty of the log about rates and delays. Bands are 95% intervals of the mean over simulations. Arms drawn as
often as in the log would lose {escape(interval(*advice.as_chosen()))}.</p>
<div class="grid"><figure>{svg(figure, "advice curves")}</figure><figure>{_rivals(advice, ranking)}</figure></div>{table(columns, rows)}</section>"""


def _cells(one: "Standing") -> list[str]:
    note = "; screened only" if not one.final else "; not significant" if one.tied else ""
    more = f"{plus_minus(one.difference, one.half)}{note}" if one.difference else "first"
    return [interval(*one.lost), interval(*one.share), interval(*one.quantile_95), more]


def _rivals(advice: "Advice", ranking: list["Standing"]) -> str:
    """The additional loss of each rival against the first learner over the posterior draws."""
    first, *others = [one.label for one in ranking if one.final]
    figure, (panel,) = plots.figure()
    for place, label in enumerate(reversed(others)):
        low, quarter, median, upper, high = np.quantile(advice.differences(label, first), [0.025, 0.25, 0.5, 0.75, 0.975])
        panel.plot([low, high], [place, place], color=plots.COLOURS[0], linewidth=1.4)
        panel.plot([quarter, upper], [place, place], color=plots.COLOURS[0], linewidth=6, solid_capstyle="butt")
        panel.plot([median], [place], "o", color="black", markersize=4)
    panel.axvline(0, color="#666666", linewidth=0.8)
    panel.set_yticks(range(len(others)), [advice.name(label) for label in reversed(others)], fontsize="small")
    for text in panel.get_yticklabels():
        text.set_parse_math(False)
    panel.set(
        xlabel=f"additional {advice.unit} lost (posterior median, 50%, 95%)",
        title=f"Additional loss compared with {advice.name(first)}",
    )
    plots.take_literally(figure)
    return svg(figure, "advice rivals")


def _futures(advice: "Advice") -> str:
    there = [scenario for scenario in advice.scenarios if scenario.name in advice.final]
    if not there:
        return "<section><h2>Other scenarios</h2><p>They have not been simulated yet.</p></section>"
    order = [one.label for one in advice.ranking() if one.final]
    rankings = {
        scenario.name: {one.label: (place, one) for place, one in enumerate(advice.ranking(scenario.name), 1) if one.final}
        for scenario in there
    }
    head = "".join(f"<th>{escape(scenario.name)}</th>" for scenario in there)
    body = ""
    for label in order:
        cells = ""
        for scenario in there:
            place, one = rankings[scenario.name][label]
            mark = ' class="first"' if one.tied else ""
            cells += f"<td{mark}><b>{place}.</b> {escape(interval(*one.lost))}</td>"
        body += f"<tr><th>{escape(advice.name(label))}</th>{cells}</tr>"
    described = "".join(f"<li><b>{escape(one.name)}</b>: {escape(one.about)}</li>" for one in there)
    figures = "".join(f"<figure>{_dots(advice, one.name, order)}</figure>" for one in there)
    return f"""<section><h2>Other scenarios</h2>
<p>Rank, {escape(advice.unit)} lost and 95% credible interval in each scenario. Learners that are not significantly different from the first
are shaded. The constants are those chosen as logged.</p><ul>{described}</ul>
<div class="wide"><table><thead><tr><th>learner</th>{head}</tr></thead><tbody>{body}</tbody></table></div>
<div class="grid">{figures}</div></section>"""


def _dots(advice: "Advice", scenario: str, order: list[str]) -> str:
    """The loss of each learner in one scenario: the mean with its interval, and the 95th percentile."""
    figure, (panel,) = plots.figure()
    figure.set_size_inches(5.6, 0.9 + 0.3 * len(order))
    standings = {one.label: one for one in advice.ranking(scenario)}
    for place, label in enumerate(reversed(order)):
        one = standings[label]
        colour = plots.COLOURS[0] if one.tied else "#666666"
        panel.plot(one.lost[1:], [place, place], color=colour, linewidth=5, solid_capstyle="butt")
        panel.plot([one.lost[0]], [place], "o", color=colour, markersize=6)
        panel.plot([one.quantile_95[0]], [place], "|", color=colour, markersize=9, markeredgewidth=1.6)
    panel.set_yticks(range(len(order)), [advice.name(label) for label in reversed(order)], fontsize="small")
    for text in panel.get_yticklabels():
        text.set_parse_math(False)
    panel.set(xlabel=f"{advice.unit} lost: mean ●, 95th percentile of a run |", title=scenario)
    panel.set_xlim(left=min(0.0, panel.get_xlim()[0]))
    plots.take_literally(figure)
    return svg(figure, f"advice {scenario}")


def _log(advice: "Advice") -> str:
    log = advice.log
    rows = [
        [name, f"{count:,}", f"{100 * (1 - mean):.2f} ± {196 * error:.2f}%", f"{converted:,}", duration(median), duration(late)]
        for name, count, mean, error, converted, median, late in zip(
            log.arms,
            log.counts,
            log.means,
            log.errors,
            log.dependence.conversions,
            log.dependence.medians,
            log.dependence.late,
            strict=True,
        )
    ]
    window = "none: every row has feedback" if log.window is None else _length(log.window)
    figure, (panel,) = plots.figure()
    for index, (text, waits) in enumerate(_curves(log)):
        colour, style = plots.look(index)
        panel.plot(np.append(waits, waits[-1]), np.linspace(0, 1, len(waits) + 1), color=colour, linestyle=style, label=text)
    panel.set(xlabel="delay of the feedback (decisions)", ylabel="share of the actions", ylim=(0, 1.02))
    plots.place_legend(panel)
    plots.take_literally(figure)
    return f"""<section><h2>The log</h2>
<p>{log.rounds:,} rows, {log.converted:,} with feedback in time, {log.late:,} too late, {log.unknown:,} without feedback whose window was
still open when the log ended. Window: {escape(window)}, in the median {escape(number(log.window_rounds))} decisions. Rates are from the
{int(log.counts.sum()):,} rows whose outcome is known.</p>
<div class="pair"><figure>{svg(figure, "advice delays")}</figure>
{table(["arm", "rows", "conversion rate, 95% CI", "conversions", "median delay", "90% within"], rows)}</div></section>"""


def _curves(log: "Log") -> Iterator[tuple[str, np.ndarray]]:
    """The sorted delays without a conversion, and those with one by arm, for ``SHOWN`` arms at most."""
    yield "no conversion", np.sort(np.asarray(cast(Empirical, log.delays.no_conversion).delays), axis=None)
    conversions = np.asarray(cast(Empirical, log.delays.conversion).delays)
    if conversions.ndim == 1 or not log.dependence.differs:
        yield "conversion", np.sort(conversions, axis=None)
        return
    for arm in np.argsort(-log.dependence.conversions)[:SHOWN]:
        yield f"conversion of {log.arms[arm]}", conversions[arm]


def _length(nanoseconds: int) -> str:
    """A length of time in words: ``7 days``, ``36 hours``."""
    for name, seconds in (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1)):
        if nanoseconds >= 2 * seconds * 10**9 and nanoseconds % (seconds * 10**9) == 0:
            return f"{nanoseconds // (seconds * 10**9)} {name}"
    return f"{nanoseconds / 10**9:g} seconds"


def _method(advice: "Advice") -> str:
    tried = table(
        ["learner", "constants tried", "chosen", "burn-in of its theorem’s constants (rounds)"],
        [
            [
                TITLES.get(label, label),
                "; ".join(constants),
                advice.chosen[label][0] or "its own",
                number(advice.burn_ins[label]) if label in advice.burn_ins else "–",
            ]
            for label, constants in advice.tried.items()
        ],
    )
    left = table(["not simulated", "because"], [[TITLES.get(name, name), why] for name, why in advice.left_out.items()])
    caveats = "".join(f"<li>{text}</li>" for text in _caveats(advice))
    return f"""<section><h2>Limits</h2><ul>{caveats}</ul></section>
<section><h2>Method</h2>
<p>Every learner was screened with its own constants. The better half was screened with the other constants below; a longer list or
<code>jb.tune</code> may find better ones. The best learners were simulated again on new draws of rates, rewards and delays. Required inputs
(largest delay, horizon, total delay) are those of the log. Differences are paired by posterior draw and tested by Student’s t with Holm’s
correction. A learner with the constants of its theorem explores almost uniformly during its burn-in at the estimated gap: it begins to pay at
longer horizons.</p>
<details><summary>learners and constants</summary>{tried}{left}</details>
<p class="small">jaxbandit {escape(__version__)}, {advice.rounds:,} rounds, {advice.runs} runs, seed {advice.seed}: the same log and seed give
the same page.</p></section>"""


def _caveats(advice: "Advice") -> list[str]:
    cut = ""
    if advice.rounds < advice.log.rounds:
        cut = f" {advice.rounds:,} decisions were simulated, and the log has {advice.log.rounds:,} rows: see <code>rounds=</code> (<code>--rounds</code>)."
    return [
        "<b>Selection.</b> The rates are those of the visitors who were shown each arm. If arms were chosen by visitor, hour or price, rates are not "
        "comparable, unless the log has the probabilities of the choices (<code>propensity=</code>, <code>--propensity</code>).",
        "<b>Rates.</b> Draws are from a hierarchical Beta–binomial posterior: arms with few rows are pulled towards the others. Days that differ, "
        "returning visitors and arms that compete for the same conversions are not modelled.",
        "<b>Delays.</b> The delay of a conversion is drawn from the conversions of its arm; an arm with few of them borrows those of all arms. "
        f"Delays are counted in decisions, so twice the traffic is twice the delay.{cut}",
        "<b>Rewards.</b> Rewards of conversions are drawn from those recorded for the arm, partially pooled. A heavy tail that the log has not shown "
        "is not simulated.",
        "<b>Simulation, not off-policy evaluation.</b> The report does not estimate what a learner would have earned on these rows. For that see inverse "
        "propensity and doubly robust estimators (Dudík, Langford &amp; Li, <i>Doubly Robust Policy Evaluation and Learning</i>, ICML 2011), for "
        'example in the <a href="https://github.com/st-tech/zr-obp">Open Bandit Pipeline</a>.',
        "<b>Other scenarios.</b> The scenarios above are examples. Guarantees against every adversary are those of the learners’ theorems, with their "
        "constants.",
    ]


_STYLE = """
.summary{font-size:1.12rem;max-width:56rem}.small{font-size:.82rem;color:#555}figure{margin:0}.one{max-width:44rem}
.pair{display:grid;grid-template-columns:minmax(0,5fr) minmax(0,7fr);gap:1.2rem;align-items:start}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,25rem),1fr));gap:1rem;margin-top:1rem}
svg{width:100%}td{white-space:nowrap}.first{background:#e3f1fa}li{max-width:56rem;margin:.3rem 0}section>p{max-width:56rem}
@media(max-width:860px){body{padding:.7rem}.pair{grid-template-columns:minmax(0,1fr)}th,td{padding:.26rem .4rem}table{font-size:.8rem}td:first-child{white-space:normal;min-width:7rem}}
@media print{body{max-width:none;font-size:11px;padding:0}.pair{display:block}.pair figure{width:60%}.grid{grid-template-columns:1fr 1fr}
figure,tr{break-inside:avoid}h2{break-after:avoid}table{font-size:9px}th,td{padding:.15rem .35rem}.one{width:62%}.first{background:none;font-weight:600}details:not([open]){display:none}}
"""
