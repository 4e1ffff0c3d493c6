"""Advice as one HTML file that needs no network."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from jaxbandit import plots
from jaxbandit.advice.candidates import EVEN
from jaxbandit.delays import Empirical
from jaxbandit.display import interval, number, plus_minus
from jaxbandit.files import write_whole
from jaxbandit.version import __version__
from jaxbandit.webpage import escape, page, svg, table

if TYPE_CHECKING:
    from jaxbandit.advice.standing import Advice, Standing

SHOWN = 5  # curves in the figure, and the even split
TITLE = "Which learner for this log"


def write_report(advice: "Advice", path: str | os.PathLike, title: str = TITLE) -> Path:
    """Write the page, whole or not at all; ``title`` is its heading."""
    write_whole(
        path, page(title, [_head(advice, title), _learners(advice), _futures(advice), _log(advice), _method(advice)], _STYLE)
    )
    return Path(path)


def _head(advice: "Advice", title: str) -> str:
    sentences = " ".join(advice.summary())
    return f'<header><h1>{escape(title)}</h1><p class="summary">{escape(sentences)}</p></header>'


def _learners(advice: "Advice") -> str:
    ranking = advice.ranking()
    rows = [[advice.name(one.label), *_cells(one)] for one in ranking]
    columns = [
        "learner",
        f"lost {advice.unit}",
        "% of the best arm’s",
        "1 run in 20 loses more than",
        "more than the first, paired",
    ]
    names = [one.label for one in ranking[:SHOWN]]
    names += [] if EVEN in names else [EVEN]
    figure, (panel,) = plots.figure()
    for index, label in enumerate(names):
        plots.draw_estimate(panel, advice.curves[label], index, advice.name(label))
    panel.set(xlabel="decision", ylabel=f"{advice.unit} lost so far, mean")
    panel.set_xlim(0, advice.rounds)
    panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]))
    plots.place_legend(panel)
    plots.take_literally(figure)
    return f"""<section><h2>If all stays as it was logged</h2>
<p>{advice.rounds:,} decisions, {advice.runs} runs. Lost is against the best arm alone. Square brackets and bands are 95 % intervals; they
carry both chance and what the log leaves open about the rates, because every run draws rates of its own. Each arm as often as in the log
would lose {escape(interval(*advice.as_chosen))}.</p>
<figure class="one">{svg(figure, "advice curves")}</figure>{table(columns, rows)}</section>"""


def _cells(one: "Standing") -> list[str]:
    apart = " (not told apart)" if one.tied else ""
    more = f"{plus_minus(one.difference, one.half)}{apart}" if one.difference else "first"
    return [interval(*one.lost), interval(*one.share), interval(*one.unlucky), more]


def _futures(advice: "Advice") -> str:
    order = [one.label for one in advice.ranking()]
    rankings = {
        world.name: {one.label: (place, one) for place, one in enumerate(advice.ranking(world.name), 1)}
        for world in advice.worlds
    }
    head = "".join(f"<th>{escape(world.name)}</th>" for world in advice.worlds)
    body = ""
    for label in order:
        cells = ""
        for world in advice.worlds:
            place, one = rankings[world.name][label]
            mark = ' class="first"' if one.tied else ""
            cells += f"<td{mark}><b>{place}.</b> {escape(interval(*one.lost))}</td>"
        body += f"<tr><th>{escape(advice.name(label))}</th>{cells}</tr>"
    told = "".join(f"<li><b>{escape(world.name)}</b>: {escape(world.about)}</li>" for world in advice.worlds)
    figures = "".join(f"<figure>{_dots(advice, world.name, order)}</figure>" for world in advice.worlds)
    return f"""<section><h2>If it does not</h2>
<p>Place, lost {escape(advice.unit)} and its 95 % interval in each world; what is not told apart from the first is shaded (in print: bold). The constants
are those chosen as logged.</p><ul>{told}</ul>
<div class="wide"><table><thead><tr><th>learner</th>{head}</tr></thead><tbody>{body}</tbody></table></div>
<div class="grid">{figures}</div></section>"""


def _dots(advice: "Advice", world: str, order: list[str]) -> str:
    """What each learner loses in one world: the mean with its interval, and what one run in twenty exceeds."""
    figure, (panel,) = plots.figure()
    figure.set_size_inches(5.6, 0.9 + 0.3 * len(order))
    standings = {one.label: one for one in advice.ranking(world)}
    for place, label in enumerate(reversed(order)):
        one = standings[label]
        colour = plots.COLOURS[0] if one.tied else "#666666"
        panel.plot(one.lost[1:], [place, place], color=colour, linewidth=5, solid_capstyle="butt")
        panel.plot([one.lost[0]], [place], "o", color=colour, markersize=6)
        panel.plot([one.unlucky[0]], [place], "|", color=colour, markersize=9, markeredgewidth=1.6)
    panel.set_yticks(range(len(order)), list(reversed(order)), fontsize="small")
    for text in panel.get_yticklabels():
        text.set_parse_math(False)
    panel.set(xlabel=f"lost {advice.unit}: mean ●, 1 run in 20 loses more than |", title=world)
    panel.set_xlim(left=min(0.0, panel.get_xlim()[0]))
    plots.take_literally(figure)
    return svg(figure, f"advice {world}")


def _log(advice: "Advice") -> str:
    log = advice.log
    rows = [
        [name, f"{count:,}", f"{100 * (1 - mean):.2f} ± {196 * error:.2f} %"]
        for name, count, mean, error in zip(log.arms, log.counts, log.means, log.errors, strict=True)
    ]
    window = "none: every row has feedback" if log.window is None else _length(log.window)
    figure, (panel,) = plots.figure()
    for index, (law, text) in enumerate(((log.delays.law_if_zero, "with a conversion"), (log.delays.law_if_one, "without"))):
        waits = np.sort(np.asarray(cast(Empirical, law).delays))
        colour, style = plots.look(index)
        panel.plot(np.append(waits, waits[-1]), np.linspace(0, 1, len(waits) + 1), color=colour, linestyle=style, label=text)
    panel.set(xlabel="decisions made before the outcome is known", ylabel="share of the plays", ylim=(0, 1.02))
    plots.place_legend(panel)
    return f"""<section><h2>The log</h2>
<p>{log.rounds:,} rows, {log.converted:,} with feedback in time, {log.late:,} too late, {log.unknown:,} without feedback whose window was
still open when the log ended. Window: {escape(window)}, in the median {escape(number(log.window_rounds))} decisions. Rates are from the
{int(log.counts.sum()):,} rows whose outcome is known.</p>
<div class="pair"><figure>{svg(figure, "advice delays")}</figure>{table(["arm", "rows", "rate, 95 %"], rows)}</div></section>"""


def _length(nanoseconds: int) -> str:
    """A length of time in words: ``7 days``, ``36 hours``."""
    for name, seconds in (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1)):
        if nanoseconds >= 2 * seconds * 10**9 and nanoseconds % (seconds * 10**9) == 0:
            return f"{nanoseconds // (seconds * 10**9)} {name}"
    return f"{nanoseconds / 10**9:g} seconds"


def _method(advice: "Advice") -> str:
    tried = table(
        ["learner", "constants tried", "chosen"],
        [[label, "; ".join(advice.tried[label]), advice.constants[label] or "its own"] for label in advice.tried],
    )
    left = table(["not tried", "because"], [[name, why] for name, why in advice.left_out.items()])
    caveats = "".join(f"<li>{text}</li>" for text in _caveats(advice))
    return f"""<section><h2>What this cannot tell</h2><ul>{caveats}</ul></section>
<section><h2>How it was done</h2>
<p>Constants were chosen from the short lists below by the mean loss on {advice.runs} runs that nothing else uses, in the world “as logged”:
a longer list or <code>jb.tune</code> may find better ones. What a learner must be told (longest delay, number of decisions, total delay) it was
told from the log. Differences are paired run by run and tested by Student’s t, with Holm’s correction for the number of learners. The
interval of “1 run in 20” is by order statistics.</p>
<details><summary>learners and constants</summary>{tried}{left}</details>
<p class="small">jaxbandit {escape(__version__)}, {advice.rounds:,} rounds, {advice.runs} runs, seed {advice.seed}: the same log and seed give
the same page.</p></section>"""


def _caveats(advice: "Advice") -> list[str]:
    cut = ""
    if advice.rounds < advice.log.rounds:
        cut = f" Only the first {advice.rounds:,} decisions of a campaign were played, where the log has {advice.log.rounds:,} rows: see <code>--rounds</code>."
    return [
        "<b>Who logged it, and how.</b> The rates are those of the people who were shown each arm. If whoever chose the arms looked at the "
        "person, the hour or the price, the arms were not shown to the same people, and their rates do not compare.",
        "<b>Plug-in rates.</b> The worlds are drawn from what the rows say about each arm by itself, from a uniform prior. Days that differ, "
        "people who come back, and arms that take conversions from each other are not in it; nor is an arm that the log does not have.",
        "<b>Delays.</b> A play waits as long as one of the log, by whether it converted, whatever the arm and the hour; "
        f"delays are counted in decisions, so twice the traffic is twice the delay.{cut}",
        "<b>Losses.</b> Outcomes are played as 0 or 1 with the mean of the log, also where the log has values between.",
        "<b>Simulation, not off-policy evaluation.</b> Nothing here is an estimate of what a learner would have earned on these very rows. For that the "
        "log needs the probability with which each arm was chosen: see inverse propensity and doubly robust estimators (Dudík, Langford &amp; Li, "
        "<i>Doubly Robust Policy Evaluation and Learning</i>, ICML 2011), for example in the "
        '<a href="https://github.com/st-tech/zr-obp">Open Bandit Pipeline</a>.',
        "<b>The worlds that are not here.</b> The ways in which things may go wrong were chosen by us; an adversary is free to choose another. Guarantees "
        "against every adversary are those of the learners’ theorems, with their own constants.",
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
