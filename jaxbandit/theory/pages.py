"""The pages of ``jaxbandit claims``: Markdown, and HTML that needs no other file but its figure inside it."""

import base64
import html
from pathlib import Path
from typing import Any

from jaxbandit.theory.verdict import width

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}td,th{border-bottom:1px solid #ccc;padding:.25em .7em;text-align:left}
td.n{text-align:right;font-variant-numeric:tabular-nums}img{max-width:100%}code{background:#f4f4f4;padding:.1em .3em}
.holds{color:#00664a}.not{color:#8a6d00}.fails{color:#b00020;font-weight:bold}blockquote{border-left:4px solid #ccc;padding-left:1em}"""


def tables(experiment) -> dict[str, Any]:
    """The checks and numbers of an experiment, as they go into claim.json."""
    z = width(experiment.checks)
    checks = [
        {
            "label": check.label,
            "value": check.measured.value,
            "low": check.measured.interval(z)[0],
            "high": check.measured.interval(z)[1],
            "relation": check.relation,
            "bound": check.bound,
            "resolution": check.resolution,
            "kind": check.kind,
            "room": check.room(z),
            "outcome": check.outcome(z),
        }
        for check in experiment.checks
    ]
    numbers = [
        {"label": label, "value": measured.value, "low": measured.interval()[0], "high": measured.interval()[1]}
        for label, measured in experiment.numbers
    ]
    return {"checks": checks, "numbers": numbers, "sentences": experiment.sentences, "interval_width": z}


def tidy(figure) -> None:
    """Logarithmic axes of less than two decades get plain numbers at 1, 2 and 5: matplotlib's own labels overlap."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for panel in figure.axes:
        for axis in (panel.xaxis, panel.yaxis):
            low, high = sorted(axis.get_view_interval())
            if axis.get_scale() == "log" and high < 100 * low:
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                axis.set_minor_formatter(NullFormatter())


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _measured(row: dict[str, Any]) -> str:
    if row["low"] == row["high"]:
        return _number(row["value"])
    return f"{_number(row['value'])} [{_number(row['low'])}, {_number(row['high'])}]"


def _bound(row: dict[str, Any]) -> str:
    return f"{row['relation']} {_number(row['bound'])}" + (f" ± {_number(row['resolution'])}" if row["resolution"] else "")


KINDS = {
    "proved": "explicit constants, can be refuted",
    "shape": "an exponent or order at finite T; the wrong side only means not shown",
    "open": "an open question",
}


def _rows(found: dict[str, Any]) -> list[tuple[str, list[str], list[list[str]]]]:
    """The two tables of a page: heading, columns, rows."""
    checks = [
        [
            row["label"],
            _measured(row),
            _bound(row),
            row["outcome"],
            "" if row["room"] is None else f"{row['room']:.3g}",
            row["kind"],
        ]
        for row in found["checks"]
    ]
    both = [("What decides", ["check", "measured", "bound", "outcome", "room", "kind"], checks)]
    if found["numbers"]:
        numbers = [[row["label"], _measured(row)] for row in found["numbers"]]
        both.append(("Other numbers", ["quantity", "measured [95 % interval]"], numbers))
    return both


def _about(found: dict[str, Any]) -> list[str]:
    settings = ", ".join(f"{name} = {value}" for name, value in found["settings"].items())
    kinds = sorted({row["kind"] for row in found["checks"]})
    kept = found.get("kept_run_rounds", 0)
    earlier = f" ({kept:.3g} of them taken from an earlier call)" if kept else ""
    return [
        f"Intervals: 95 % for all checks of this page together ({found['interval_width']:.2f} standard errors); a single number is "
        "exact or the worst of all paths. " + "; ".join(f"{kind}: {KINDS[kind]}" for kind in kinds) + ".",
        f"Settings: {settings}.",
        f"{found['run_rounds']:.3g} run-rounds{earlier} in {found['seconds']:.0f} s. "
        + ", ".join(f"{name} {version}" for name, version in found["versions"].items())
        + ".",
    ]


def write(found: dict[str, Any], folder: Path) -> None:
    """``index.md`` and ``index.html`` of one statement."""
    figure = folder / "figure.png"
    lines = [f"# {found['title']}", "", f"**{found['verdict']}**", "", f"> {found['claim']}", ">", f"> {found['where']}", ""]
    lines += [line for sentence in found["sentences"] for line in (sentence, "")]
    lines += ["![figure](figure.png)", ""] if figure.exists() else []
    for heading, columns, rows in _rows(found):
        lines += [f"## {heading}", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows] + [""]
    lines += ["## What it does and does not show", "", found["shows"], "", *[part for one in _about(found) for part in (one, "")]]
    lines += [f"Again: `{found['command']}`, key `{found['key']}`.", ""]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")

    e = html.escape
    body = [f"<h1>{e(found['title'])}</h1>", f"<p class={_css(found)}>{e(found['verdict'])}</p>"]
    body += [f"<blockquote><p>{e(found['claim'])}</p><p>{e(found['where'])}</p></blockquote>"]
    body += [f"<p>{e(sentence)}</p>" for sentence in found["sentences"]]
    if figure.exists():
        code = base64.b64encode(figure.read_bytes()).decode()
        body.append(f'<img alt="figure of {e(found["title"])}" src="data:image/png;base64,{code}">')
    body += [f"<h2>{e(heading)}</h2>{_table(columns, rows)}" for heading, columns, rows in _rows(found)]
    body += [
        "<h2>What it does and does not show</h2>",
        f"<p>{e(found['shows'])}</p>",
        *[f"<p>{e(one)}</p>" for one in _about(found)],
    ]
    body += [f"<p>Again: <code>{e(found['command'])}</code>, key <code>{e(found['key'])}</code>.</p>"]
    _write_html(folder / "index.html", found["title"], body)


def write_index(found: list[dict[str, Any]], out: Path) -> None:
    """The page of all statements: one row for each."""
    intro = (
        "Every statement of Masoudian, Zimmert & Seldin (2022), measured. holds with room r: the bound is r times the measured "
        "number (its interval's far end). not shown: the interval has the bound inside, or a finite-T exponent is on the wrong "
        "side. fails: the interval is on the wrong side of the bound."
    )
    rows = [[one["title"], one["verdict"], one["where"], f"{one['seconds']:.0f} s", one["name"]] for one in found]
    lines = ["# The paper's claims, measured", "", intro, "", "| statement | verdict | where | time |", "|---|---|---|---|"]
    for title, *cells, name in rows:
        lines.append("| " + " | ".join(map(_cell, [f"[{title}]({name}/index.md)", *cells])) + " |")
    (out / "index.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    e = html.escape
    table = "".join(
        f'<tr><td><a href="{name}/index.html">{e(title)}</a></td><td class={_css(one)}>{e(verdict)}</td><td>{e(where)}</td>'
        f"<td class=n>{seconds}</td></tr>"
        for (title, verdict, where, seconds, name), one in zip(rows, found, strict=True)
    )
    body = ["<h1>The paper's claims, measured</h1>", f"<p>{e(intro)}</p>"]
    body += [f"<table><tr><th>statement</th><th>verdict</th><th>where</th><th>time</th></tr>{table}</table>"]
    _write_html(out / "index.html", "The paper's claims, measured", body)


def _cell(text: str) -> str:
    """A cell of a Markdown table."""
    return text.replace("|", "\\|")


def _css(found: dict[str, Any]) -> str:
    return found["outcome"].split()[0]


def _table(columns: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _write_html(path: Path, title: str, body: list[str]) -> None:
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>'
    path.write_text("\n".join([head, *body, "</html>", ""]), encoding="utf-8")
