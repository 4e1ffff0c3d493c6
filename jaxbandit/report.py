"""A sweep as one HTML file that needs no network: curves, tables, paired tests, provenance; and PNGs beside it."""

import dataclasses
import html
import itertools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandit import plots, theory
from jaxbandit.delays import NEVER
from jaxbandit.learners import BestOfBothWorlds, DelayedExp3, TsallisINF, ZimmertSeldin
from jaxbandit.result import Result, _student
from jaxbandit.sweep.plan import Cell, Plan, Truth
from jaxbandit.sweep.spec import AXES, SpecError
from jaxbandit.sweep.store import Store, StoreError

LEVEL = 0.05
WIDTH, HEIGHT = 480, 330  # of a figure, in its own units; narrow, so that its letters can be read on a phone
LEFT, RIGHT, TOP, BOTTOM = 54, 24, 10, 40
DASHES = ("", "7 3", "9 3 2 3", "2 3")


def write_report(folder: str | os.PathLike, out: str | os.PathLike | None = None) -> Path:
    """Write ``report.html`` and one PNG for each pair of losses and delays into ``out`` (default: ``folder/report``)."""
    store = Store.open(folder)
    out = Path(folder) / "report" if out is None else Path(out)
    panels = _panels(store)
    if not panels:
        raise StoreError(f"{folder}: no cell has a block of runs yet; run `jaxbandit sweep` first")
    tests = paired_tests(panels)
    out.mkdir(parents=True, exist_ok=True)
    for panel in panels:
        figure, axes = plots.figure(columns=2)
        for axis, log in zip(axes, (False, True), strict=True):
            plots.draw_regret(axis, panel.results, log=log, title=panel.title if not log else "")
        figure.savefig(out / f"{panel.name}.png", dpi=150)
    page = out / "report.html"
    draft = page.with_name(".report.html.part")
    draft.write_text(_page(store, panels, tests), "utf-8")
    os.replace(draft, page)
    return page


@dataclasses.dataclass(frozen=True)
class Panel:
    """All learners against one loss law and one delay law."""

    name: str
    title: str
    results: dict[str, Result]  # label -> result
    bounds: dict[str, tuple[np.ndarray, np.ndarray, str]]  # label -> rounds, bound, its source


def _panels(store: Store) -> list[Panel]:
    files = store.files()
    cells = _rebuilt(store)
    panels = []
    for j, k in itertools.product(*(range(len(store.labels(axis))) for axis in AXES[1:])):
        results, bounds = {}, {}
        for i, label in enumerate(store.labels("learners")):
            result = store.result((i, j, k), files)
            if result is None:
                continue
            results[label] = result
            bound = proved_bound(cells[i, j, k], result.rounds) if (i, j, k) in cells else None
            if bound is not None:
                bounds[label] = (result.rounds, *bound)
        if results:
            title = f"{store.labels('losses')[j]}; {store.labels('delays')[k]}"
            panels.append(Panel(f"losses{j}_delays{k}", title, results, bounds))
    return panels


def _rebuilt(store: Store) -> dict[tuple[int, ...], Cell]:
    """The cells as objects, where the manifest says enough (a learner of the user's own is only a name there)."""
    axes = store.manifest["axes"]
    document = {axis: [{**_given(s["about"]), "label": s["label"]} for s in axes[axis]] for axis in AXES}
    try:
        plan = Plan.make({**document, "rounds": store.rounds, "runs": store.runs, "seed": store.manifest["seed"]})
    except (SpecError, TypeError, ValueError):
        return {}
    return {cell.at: cell for cell in plan.cells}


def _given(about: Any) -> Any:
    if isinstance(about, dict):
        return {name: _given(value) for name, value in about.items() if value is not None}
    return [_given(item) for item in about] if isinstance(about, list) else about


def proved_bound(cell: Cell, rounds: np.ndarray) -> tuple[np.ndarray, str] | None:
    """An upper bound with proved constants at ``rounds [C]``, for one known sequence of delays; None where there is none."""
    learner, arms, horizon = cell.learner, cell.losses.num_arms, int(rounds[-1])
    delays = Truth(cell.losses, cell.delays, horizon).sequence()
    if delays is None or np.any(delays == NEVER) or arms < 2:
        return None
    if isinstance(learner, BestOfBothWorlds) and learner.tsallis_scale == 1 and learner.entropy_scale == 1:
        told = (float(np.asarray(value)) for value in (learner.max_delay, learner.linear, learner.factor))
        rates = theory.mzs22_rates(delays, arms, *told)
        bound = theory.adversarial(rates, delays, arms)
        return bound.total[rounds - 1], bound.source
    if isinstance(learner, ZimmertSeldin) and not learner.skipping:
        bound = theory.adversarial(theory.zs20_rates(delays, arms), delays, arms)
        return bound.total[rounds - 1], bound.source
    if isinstance(learner, DelayedExp3) and learner.scale == 1:
        each = [theory.delayed_exp3(delays[:t], arms) for t in rounds]
        return np.array([float(bound.total) for bound in each]), each[0].source
    if isinstance(learner, TsallisINF) and not delays.any() and learner.estimator == "iw":
        bound = theory.tsallis_inf_adversarial(arms, rounds, "iw")
        return bound.total, bound.source
    return None


@dataclasses.dataclass(frozen=True)
class Test:
    """Regret of one learner less that of another at the horizon, run by run."""

    difference: float
    half: float  # of the 95 % interval
    p: float  # two-sided, Student
    adjusted: float  # Holm, over all tests of the report


def paired_tests(panels: Sequence[Panel]) -> dict[tuple[str, str, str], Test]:
    """Every pair of learners in every panel; ``(panel, one, other) -> Test`` of one less other, both ways round."""
    found: dict[tuple[str, str, str], tuple[float, float, float]] = {}
    for panel in panels:
        for one, other in itertools.combinations(panel.results, 2):
            runs = min(panel.results[label].regret.shape[1] for label in (one, other))
            last = [panel.results[label].regret[-1, :runs].astype(np.float64) for label in (one, other)]
            found[panel.name, one, other] = _paired(last[0] - last[1])
    adjusted = holm([p for _, _, p in found.values()])
    tests = {}
    for (name, one, other), (mean, half, p), held in zip(found, found.values(), adjusted, strict=True):
        tests[name, one, other] = Test(mean, half, p, held)
        tests[name, other, one] = Test(-mean, half, p, held)
    return tests


def _paired(differences: np.ndarray) -> tuple[float, float, float]:
    runs, mean = len(differences), float(differences.mean())
    if runs < 2:
        return mean, float("nan"), 1.0
    error = float(differences.std(ddof=1)) / np.sqrt(runs)
    if error <= 1e-12 * max(1.0, abs(mean)):  # both played without chance
        return mean, 0.0, float(abs(mean) <= 1e-6)
    return mean, _student(runs - 1) * error, student_p(mean / error, runs - 1)


def student_p(t: float, freedom: int) -> float:
    """Two-sided p-value of Student's t by its finite series (Abramowitz & Stegun 26.7.3-4); about 1e-13 at the least.

    >>> round(student_p(2.228, 10), 4)
    0.05
    """
    angle = np.arctan(abs(t) / np.sqrt(freedom))
    square, odd = np.cos(angle) ** 2, freedom % 2
    k = np.arange(1, max(freedom // 2, 1))
    ratios = np.cumprod(np.concatenate([[1.0], square * (2 * k - 1 + odd) / (2 * k + odd)]))
    inside = np.sin(angle) * ratios.sum()
    if odd:
        inside = 2 / np.pi * (angle + (inside * np.cos(angle) if freedom > 1 else 0))
    return float(np.clip(1 - inside, 1e-13, 1))


def holm(values: Sequence[float]) -> np.ndarray:
    """Holm's step-down adjustment: the chance of one or more false claims among all stays below the level.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(values, float)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p)))) if len(p) else p
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1)
    return adjusted


# The page.


def _page(store: Store, panels: Sequence[Panel], tests: dict[tuple[str, str, str], Test]) -> str:
    labels = store.labels("learners")
    counts = " × ".join(f"{len(store.labels(axis))} {axis}" for axis in AXES)
    least = min(result.regret.shape[1] for panel in panels for result in panel.results.values())
    partial = "" if least == store.runs and len(panels[0].results) == len(labels) else _PARTIAL
    body = "".join(_section(panel, tests, labels) for panel in panels)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>jaxbandit sweep</title><style>{_STYLE}</style></head><body>
<header><h1>Sweep report</h1>
<p>{counts}; {store.runs:,} runs × {store.rounds:,} rounds, seed {store.manifest["seed"]}. Regret is pseudo-regret against the
best arm in hindsight; bands and brackets are 95 % intervals over runs. Learners met the same losses and delays run by run, so
differences are paired.</p>{partial}</header>
<input type="radio" name="axes" id="linear" checked><label for="linear">linear axes</label>
<input type="radio" name="axes" id="log"><label for="log">logarithmic axes</label>
<main>{body}</main>
{_provenance(store, len(tests) // 2)}
</body></html>
"""


_PARTIAL = '<p class="partial">The sweep is not finished: this shows the runs that are there.</p>'


def _section(panel: Panel, tests: dict[tuple[str, str, str], Test], labels: Sequence[str]) -> str:
    looks = {label: (plots.COLOURS[i % len(plots.COLOURS)], DASHES[i % len(DASHES)]) for i, label in enumerate(labels)}
    ranked = sorted(panel.results, key=lambda label: panel.results[label].regret[-1].mean())
    figures = "".join(_figure(panel, looks, log) for log in (False, True))
    return f"""<section><h2>{html.escape(panel.title)}</h2>
<div class="pair"><div>{figures}{_bound_note(panel)}</div>
<div><div class="wide">{_table(panel, tests, ranked, looks)}</div>{_delay_line(panel)}{_matrix(panel, tests, ranked)}</div></div></section>
"""


def _swatch(look: tuple[str, str]) -> str:
    return (
        f'<svg class="swatch" viewBox="0 0 26 8" aria-hidden="true"><path d="M0 4H26" stroke="{look[0]}" '
        f'stroke-dasharray="{look[1]}" stroke-width="2.5"/></svg>'
    )


def _table(panel: Panel, tests, ranked: Sequence[str], looks) -> str:
    best = ranked[0]
    rows = []
    for label in ranked:
        estimate = panel.results[label].estimate()
        interval = f"<small>{_number(estimate.low[-1])} … {_number(estimate.high[-1])}</small>"
        cells = f"<th>{_swatch(looks[label])}{html.escape(label)}</th><td>{_number(estimate.mean[-1])} {interval}</td>"
        if label != best:
            test = tests[panel.name, label, best]
            look, star = ("clear", " *") if test.adjusted < LEVEL else ("open", "")
            told = f"<small>p {_p(test.adjusted)}{star}</small>"
            cells += f'<td class="{look}">{_signed(test.difference)} ± {_number(test.half)} {told}</td>'
        elif len(ranked) > 1:
            cells += "<td>best</td>"
        rows.append(f"<tr>{cells}</tr>")
    more = "<th>paired difference to the best</th>" if len(ranked) > 1 else ""
    head = f"<tr><th>learner</th><th>regret <small>95 % interval</small></th>{more}</tr>"
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _matrix(panel: Panel, tests, ranked: Sequence[str]) -> str:
    """All pairs, row less column; a star where the difference is significant after correction."""
    if len(ranked) < 3:
        return ""
    rows = []
    for number, one in enumerate(ranked, 1):
        cells = []
        for other in ranked:
            test = tests.get((panel.name, one, other))
            star = "&nbsp;*" if test and test.adjusted < LEVEL else ""
            cells.append(
                f'<td class="{"clear" if star else "open"}">{_signed(test.difference)}{star}</td>' if test else "<td>·</td>"
            )
        rows.append(f"<tr><th>{number}. {html.escape(one)}</th>{''.join(cells)}</tr>")
    head = "".join(f"<th>{number}</th>" for number in range(1, len(ranked) + 1))
    return (
        f'<details><summary>all pairs: row less column</summary><div class="wide"><table><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _delay_line(panel: Panel) -> str:
    """Delays are the same for all learners unless they depend on the arm: the range over learners says so."""

    def span(values):
        low, high = min(values), max(values)
        return _number(low) if low == high else f"{_number(low)} to {_number(high)}"

    results = panel.results.values()
    return (
        f"<p class=small>Delays: total D {span([r.total_delay.mean() for r in results])} on average, at most "
        f"{span([r.outstanding_max.max() for r in results])} outstanding at once, "
        f"{span([r.lost.mean() for r in results])} lost per run.</p>"
    )


def _bound_note(panel: Panel) -> str:
    if not panel.bounds:
        return ""
    sources: dict[str, list[str]] = {}
    for label, (_, _, source) in panel.bounds.items():
        sources.setdefault(source, []).append(label)
    told = "; ".join(f"{html.escape(source)}: {html.escape(', '.join(names))}" for source, names in sources.items())
    return f"<p class=small>Thin dotted lines: upper bounds with proved constants, where they fit in ({told}).</p>"


def _figure(panel: Panel, looks, log: bool) -> str:
    """Mean regret with bands as SVG."""
    estimates = {label: result.estimate() for label, result in panel.results.items()}
    highs = [np.nanmax(np.fmax(estimate.high, estimate.mean)) for estimate in estimates.values()]
    first = min(estimate.rounds[0] for estimate in estimates.values())
    last = max(estimate.rounds[-1] for estimate in estimates.values())
    top = max(max(highs), 1e-9) * (1 if log else 1.04)
    if log:
        top = max([top, *(values[-1] for _, values, _ in panel.bounds.values())]) * 1.3
        positive = [e.mean[e.mean > 1e-6 * top] for e in estimates.values()]
        low = min([top / 10, *(float(values.min()) for values in positive if len(values))])
        scale = _Scale(max(first, 1), max(last, first * 10), max(low, top * 1e-6), top, log)
    else:
        low = min(0.0, min(float(np.nanmin(np.fmin(e.low, e.mean))) for e in estimates.values()))
        scale = _Scale(0, last, low, top, log)
    marks = []
    for label, estimate in estimates.items():
        colour, dash = looks[label]
        if np.all(np.isfinite(estimate.low)):
            x = np.concatenate([estimate.rounds, estimate.rounds[::-1]])
            marks.append(
                f'<path d="{scale.path(x, np.concatenate([estimate.high, estimate.low[::-1]]))}Z" fill="{colour}" opacity=".18"/>'
            )
        marks.append(_line(scale, estimate.rounds, estimate.mean, colour, dash, 1.8, label))
    for label, (rounds, values, _) in panel.bounds.items():
        marks.append(_line(scale, rounds, values, looks[label][0], "1 3", 1.1, f"bound of {label}"))
    clip = f"{panel.name}{'log' if log else 'linear'}"
    return (
        f'<svg class="{"log" if log else "linear"}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="regret curves">'
        f'<clipPath id="{clip}"><rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM}"/></clipPath>'
        f'{scale.axes()}<g clip-path="url(#{clip})">{"".join(marks)}</g></svg>'
    )


def _line(scale: "_Scale", rounds, values, colour: str, dash: str, width: float, label: str) -> str:
    return (
        f'<path d="{scale.path(rounds, values)}" fill="none" stroke="{colour}" stroke-dasharray="{dash}" stroke-width="{width}">'
        f"<title>{html.escape(label)}</title></path>"
    )


@dataclasses.dataclass(frozen=True)
class _Scale:
    """From rounds and regret to places in the figure."""

    left: float
    right: float
    low: float
    high: float
    log: bool

    def _share(self, value, start, end):
        if self.log:
            value, start, end = np.log(np.maximum(value, start * 1e-3)), np.log(start), np.log(end)
        return (value - start) / (end - start if end > start else 1)

    def x(self, rounds):
        return LEFT + (WIDTH - LEFT - RIGHT) * self._share(np.asarray(rounds, float), self.left, self.right)

    def y(self, values):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self._share(np.asarray(values, float), self.low, self.high)

    def path(self, rounds, values) -> str:
        # Far outside is as good as infinitely far, and shorter to write.
        ys = np.clip(self.y(values), -HEIGHT, 2 * HEIGHT)
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(self.x(rounds), ys, strict=True))

    def axes(self) -> str:
        parts = []
        for value in self._ticks(self.left, self.right):
            x = float(self.x(value))
            parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{_number(value)}</text>')
        for value in self._ticks(self.low, self.high):
            y = float(self.y(value))
            parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_number(value)}</text>')
        middle = (TOP + HEIGHT - BOTTOM) / 2
        parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 5}" text-anchor="middle">round</text>')
        parts.append(f'<text transform="translate(13 {middle}) rotate(-90)" text-anchor="middle">mean regret</text>')
        return "".join(parts)

    def _ticks(self, start: float, end: float) -> list[float]:
        if self.log:
            decades = [10.0**e for e in range(int(np.ceil(np.log10(start) - 1e-9)), int(np.floor(np.log10(end) + 1e-9)) + 1)]
            return decades[:: max(1, -(-len(decades) // 6))]
        size = 10.0 ** np.floor(np.log10((end - start) / 4))
        step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if (end - start) / (size * factor) <= 5.5)
        return [float(step * n) for n in range(int(np.ceil(start / step)), int(np.floor(end / step)) + 1)]


def _number(value: float) -> str:
    """Three or so digits, thousands as k and M."""
    value = float(value)
    if not np.isfinite(value):
        return "–"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            unit = 1e3 if letter == "k" else size
            return f"{value / unit:.3g}{letter}" if abs(value) / unit < 1000 else f"{value / unit:.0f}{letter}"
    return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def _signed(value: float) -> str:
    return ("+" if value > 0 else "−" if value < 0 else "") + _number(abs(value))


def _p(value: float) -> str:
    return "&lt; 0.0001" if value < 1e-4 else f"= {value:.2g}" if value < 1 else "= 1"


def _provenance(store: Store, tests: int) -> str:
    rows = []
    for axis in AXES:
        for setting in store.manifest["axes"][axis]:
            fields = {name: value for name, value in setting["about"].items() if value is not None}
            text = html.escape(json.dumps(fields, ensure_ascii=False))
            rows.append(
                f"<tr><th>{html.escape(setting['label'])}</th><td>{text if len(text) < 600 else text[:600] + '…'}</td></tr>"
            )
    where = "; ".join(", ".join(f"{name} {value}" for name, value in known.items()) for known in store.manifest["environments"])
    stages = ", ".join(f"{stage['rounds']:,}" for stage in store.manifest["stages"])
    return f"""<footer><h2>Where this comes from</h2>
<p>Horizons played: {stages} rounds. {len(store.files())} unit files, each with its SHA-256 in its name
(<code>jaxbandit verify</code> checks them). Made with {html.escape(where)}.</p>
<p>Differences are tested with a two-sided paired Student test at the horizon, adjusted by Holm over all {tests} pairs of this
report; a star marks adjusted p below {LEVEL}. Without delays or with a law that draws them, no bound is drawn unless it holds for
the sequence that was played.</p>
<details><summary>all settings</summary><div class="wide"><table><tbody>{"".join(rows)}</tbody></table></div></details></footer>"""


_STYLE = """
:root{color-scheme:light}*{box-sizing:border-box}
body{font:16px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:#1a1a1a;background:#fff;margin:0 auto;padding:1rem;max-width:1240px}
h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.1rem;margin:1.8rem 0 .5rem;overflow-wrap:anywhere}
header p{max-width:46rem}.partial{background:#fff3d6;padding:.4rem .7rem;border-radius:4px}
input[name=axes]{margin:0 .3rem 0 0}label{margin-right:1.2rem}
.pair{display:grid;grid-template-columns:minmax(0,5fr) minmax(0,6fr);gap:1.2rem;align-items:start}
svg.linear,svg.log{width:100%;height:auto;display:block}svg text{font-size:13px;fill:#333}.grid{stroke:#e3e3e3;stroke-width:1}
#linear:checked~main svg.log,#log:checked~main svg.linear{display:none}
.swatch{width:26px;height:8px;margin-right:.45rem;vertical-align:middle;fill:none}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.86rem;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.28rem .55rem;text-align:right;border-bottom:1px solid #e3e3e3;white-space:nowrap}
th:first-child,footer td{text-align:left}tbody th{font-weight:500}thead th{color:#555;font-weight:600}footer td{white-space:normal;overflow-wrap:anywhere}
td small,th small{font-size:.82em;font-weight:400;color:#555;display:inline-block;min-width:7.2em}.clear{font-weight:600}.open{color:#767676}.small{font-size:.82rem;color:#555;margin:.5rem 0}summary{cursor:pointer;font-size:.86rem;color:#0b5394}
footer{border-top:1px solid #ccc;margin-top:2rem;font-size:.9rem}
@media(max-width:860px){body{padding:.7rem}.pair{grid-template-columns:minmax(0,1fr)}th,td{padding:.26rem .4rem}table{font-size:.8rem}
thead th{white-space:normal;vertical-align:bottom}tbody th{white-space:normal}td small,th small{display:block}}
@media print{body{max-width:none;font-size:11px;padding:0}input,label{display:none}section{break-inside:avoid}
#linear:checked~main svg.log,#log:checked~main svg.linear,svg.linear,svg.log{display:inline-block;width:49%}.pair{display:block}.small{font-size:9px}details:not([open]){display:none}th,td{white-space:normal}}
"""
