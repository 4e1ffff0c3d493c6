"""The pages of the claims: Markdown, and HTML that needs no other file but its figure inside it."""

import base64
from pathlib import Path
from typing import Any

from experiments.claims.harness.notation import typeset
from jaxbandit._core.display import number
from jaxbandit._io.files import write_whole
from jaxbandit._io.html import escape, page, table


def _measured(row: dict[str, Any]) -> str:
    if row["low"] == row["high"]:
        return number(row["value"])
    return f"{number(row['value'])} [{number(row['low'])}, {number(row['high'])}]"


def _bound(row: dict[str, Any]) -> str:
    return f"{row['relation']} {number(row['bound'])}" + (f" ± {number(row['resolution'])}" if row["resolution"] else "")


KINDS = {
    "proved": "by the paper with these constants, can be refuted",
    "recomputed": "constants that this project works out from the paper's lemmas, can be refuted",
    "shape": "an exponent or order at finite T; the wrong side only means not shown",
    "open": "an open question",
}

TEXTS = {"Rejection criterion": "fails_if", "Scope and limits": "shows"}
MOST_CHECKS, MOST_CONTROLS = 6, 3  # in the tables of a Markdown page; the HTML page and claim.json have all


def _rows(found: dict[str, Any], short: bool = False) -> list[tuple[str, list[str], list[list[str]]]]:
    """The tables of a page: heading, columns, rows. A short page has the checks that decide and a few negative controls."""
    chosen = _decisive(found["checks"]) if short else found["checks"]
    checks = [
        [
            row["label"],
            _measured(row),
            _bound(row),
            row["outcome"],
            "" if row["slack"] is None else f"{row['slack']:.3g}×",
            row["kind"],
        ]
        for row in chosen
    ]
    tables = [("Checks", ["check", "measured", "bound", "outcome", "slack", "kind"], checks)]
    if found["mutants"]:
        controls = found["mutants"][:MOST_CONTROLS] if short else found["mutants"]
        mutants = [
            [row["wrong"], row["label"], _measured(row), _bound(row), "rejected" if row["rejected"] else "not rejected"]
            for row in controls
        ]
        tables.append(("Negative controls", ["negative control", "check", "measured", "bound", "outcome"], mutants))
    if found["numbers"] and not short:
        numbers = [[row["label"], _measured(row)] for row in found["numbers"]]
        tables.append(("Other numbers", ["quantity", "measured [95 % interval]"], numbers))
    return tables


def _decisive(checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The checks that decide, in their order: first those that do not hold, then exponents and open questions, then the least slack."""
    rank = {"fails": 0, "not shown": 1, "holds": 2}

    def weight(row: dict[str, Any]) -> tuple[int, float]:
        return rank[row["outcome"]], 0.0 if row["slack"] is None else row["slack"]

    kept = sorted(range(len(checks)), key=lambda at: weight(checks[at]))[:MOST_CHECKS]
    return [checks[at] for at in sorted(kept)]


def _rest(found: dict[str, Any]) -> str:
    """A sentence on the rows that a short page leaves out; empty if there are none."""
    left = {
        "checks": max(len(found["checks"]) - MOST_CHECKS, 0),
        "negative controls": max(len(found["mutants"]) - MOST_CONTROLS, 0),
        "other numbers": len(found["numbers"]),
    }
    named = [f"{count} {what}" for what, count in left.items() if count]
    return f"The run also writes {', '.join(named)}: see `claim.json`." if named else ""


def _about(found: dict[str, Any]) -> list[str]:
    settings = ", ".join(f"{name} = {value}" for name, value in found["settings"].items())
    kinds = sorted({row["kind"] for row in found["checks"]})
    kept = found.get("kept_run_rounds", 0)
    earlier = f" ({kept:.3g} of them taken from an earlier call)" if kept else ""
    busy = f" ({found['processor_seconds']:.0f} s of processor time)" if "processor_seconds" in found else ""
    return [
        f"Intervals: 95 % for all checks of this page together ({found['interval_width']:.2f} standard errors); a single number is "
        "exact or the worst of all paths. " + "; ".join(f"{kind}: {KINDS[kind]}" for kind in kinds) + ".",
        f"Settings: {settings}.",
        f"{found['run_rounds']:.3g} run-rounds{earlier} in {found['seconds']:.0f} s{busy}. "
        + ", ".join(f"{name} {version}" for name, version in found["versions"].items())
        + ".",
    ]


def write(found: dict[str, Any], folder: Path) -> None:
    """``index.md`` and ``index.html`` of one statement."""
    figure = folder / "figure.png"
    lines = [f"# {typeset(found['title'])}", "", f"**{found['verdict']}**", ""]
    lines += [typeset(line) for sentence in found["sentences"] for line in (sentence, "")]
    lines += [f"> {typeset(found['claim'])}", ">", f"> {found['where']}", ""]
    lines += ["[![figure; click to enlarge](figure.png)](figure.png)", ""] if figure.exists() else []
    for heading, columns, rows in _rows(found, short=True):
        lines += [f"## {heading}", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        lines += ["| " + " | ".join(_cell(typeset(cell)) for cell in row) + " |" for row in rows] + [""]
    lines += [rest, ""] if (rest := _rest(found)) else []
    for heading, field in TEXTS.items():
        lines += [f"## {heading}", "", typeset(found[field]), ""]
    lines += [part for one in _about(found) for part in (one, "")]
    lines += [f"Reproduce: `{found['command']}`, key `{found['key']}`.", ""]
    write_whole(folder / "index.md", "\n".join(lines))

    def text(words: str) -> str:
        return typeset(escape(words))

    body = [f"<h1>{text(found['title'])}</h1>", f"<p class={_css(found)}>{escape(found['verdict'])}</p>"]
    body += [f"<p>{text(sentence)}</p>" for sentence in found["sentences"]]
    body += [f"<blockquote><p>{text(found['claim'])}</p><p>{escape(found['where'])}</p></blockquote>"]
    if figure.exists():
        code = base64.b64encode(figure.read_bytes()).decode()
        body.append(f'<img alt="figure of {escape(found["title"])}" src="data:image/png;base64,{code}">')
    body += [f"<h2>{escape(heading)}</h2>{typeset(table(columns, rows))}" for heading, columns, rows in _rows(found)]
    body += [f"<h2>{heading}</h2><p>{text(found[field])}</p>" for heading, field in TEXTS.items()]
    body += [f"<p>{escape(one)}</p>" for one in _about(found)]
    body += [f"<p>Reproduce: <code>{escape(found['command'])}</code>, key <code>{escape(found['key'])}</code>.</p>"]
    write_whole(folder / "index.html", page(found["title"], body))


def write_index(found: list[dict[str, Any]], out: Path) -> None:
    """The page of all statements: one row for each."""
    intro = (
        "Statements of Masoudian, Zimmert & Seldin (2022), measured. holds, slack r×: the bound is r times the measured "
        "number (the far end of its interval). not shown: the interval contains the bound, or a finite-T exponent is on the wrong "
        "side. hypothesis rejected: an open question, answered in the negative. fails: the interval is on the wrong side of a proved bound."
    )
    rows = [[one["title"], one["verdict"], one["where"], f"{one['seconds']:.0f} s", one["name"]] for one in found]
    lines = ["# The paper's claims, measured", "", intro, "", "| statement | verdict | where | time |", "|---|---|---|---|"]
    for title, *others, name in rows:
        lines.append("| " + " | ".join(map(_cell, [f"[{typeset(title)}]({name}/index.md)", *others])) + " |")
    write_whole(out / "index.md", "\n".join([*lines, ""]))
    cells = "".join(
        f'<tr><td><a href="{name}/index.html">{typeset(escape(title))}</a></td><td class={_css(one)}>{escape(verdict)}</td><td>{escape(where)}</td>'
        f"<td>{seconds}</td></tr>"
        for (title, verdict, where, seconds, name), one in zip(rows, found, strict=True)
    )
    body = ["<h1>The paper's claims, measured</h1>", f"<p>{escape(intro)}</p>"]
    head = "<thead><tr><th>statement</th><th>verdict</th><th>where</th><th>time</th></tr></thead>"
    body += [f'<div class="wide"><table>{head}<tbody>{cells}</tbody></table></div>']
    write_whole(out / "index.html", page("The paper's claims, measured", body))


def _cell(text: str) -> str:
    """A cell of a Markdown table."""
    return text.replace("|", "\\|")


def _css(found: dict[str, Any]) -> str:
    return found["outcome"].split()[0]
