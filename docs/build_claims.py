"""The pages on the paper's statements, from stored results.

    python -m experiments.claims --out FOLDER
    python docs/build_claims.py FOLDER
    python docs/build_claims.py          # the pages alone, after a change of a text

Copies claim.json and the figure of every statement in FOLDER to its folder in experiments/claims/, and writes the pages in docs/claims/
and the tables of verdicts and negative controls. Texts are in docs/claims/statements.toml. Statements that are not in FOLDER keep their results.
"""

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from experiments.claims.harness.notation import typeset

DOCS = Path(__file__).parent
STATEMENTS = DOCS.parent / "experiments" / "claims"
FIGURES = "../../experiments/claims"
MOST_CHECKS, MOST_CONTROLS = 6, 3


def main(folder: Path | None = None) -> None:
    for file in folder.glob("*/claim.json") if folder else ():
        if (STATEMENTS / file.parent.name).is_dir():
            shutil.copyfile(file, STATEMENTS / file.parent.name / "claim.json")
            shutil.copyfile(file.with_name("figure.png"), STATEMENTS / file.parent.name / "figure.png")
    texts = tomllib.loads((DOCS / "claims" / "statements.toml").read_text())
    titles = texts.pop("pages")
    found = {name: json.loads((STATEMENTS / name / "claim.json").read_text()) for name in texts}
    orders = {name: tomllib.loads((STATEMENTS / name / "claim.toml").read_text())["order"] for name in texts}
    for page, title in titles.items():
        parts = [_part(found[name], text) for name, text in texts.items() if text["page"] == page]
        (DOCS / "claims" / f"{page}.md").write_text("\n".join([f"# {title}", "", INTRODUCTION, "", *parts]))
    verdicts = ["| statement | verdict |", "|---|---|"]
    controls = ["| statement | negative control | check | outcome |", "|---|---|---|---|"]
    for name in sorted(texts, key=lambda name: orders[name]):
        link = f"[{texts[name]['title']}]({{}}claims/{texts[name]['page']}.md#{slug(texts[name]['title'])})"
        verdicts.append(f"| {link.format('')} | {_badge(found[name]['verdict'])} |")
        for row in found[name]["mutants"]:
            outcome = "rejected" if row["rejected"] else "**not rejected**"
            controls.append(
                f"| {link.format('../')} | {_bars(typeset(row['wrong']))} | {_bars(typeset(row['label']))} | {outcome} |"
            )
    (DOCS / "claims" / "verdicts.txt").write_text("\n".join([*verdicts, ""]))
    (DOCS / "claims" / "mutants.txt").write_text("\n".join([*controls, ""]))


INTRODUCTION = (
    "Part of [reproducing MZS22](../claims.md), which explains verdicts and kinds of checks. Measured values have 95% intervals that hold together for "
    "the checks of a statement; a value without one is exact, or the largest over all paths. `claim.json` beside each script has all numbers and settings."
)


def slug(heading: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _part(found: dict[str, Any], text: dict[str, Any]) -> str:
    """One statement: a heading, a sentence, a figure, two tables, limits and the command."""
    name = found["name"]
    if len(text["checks"]) > MOST_CHECKS or len(text["controls"]) > MOST_CONTROLS:
        raise ValueError(f"statements.toml, {name}: at most {MOST_CHECKS} checks and {MOST_CONTROLS} controls")
    checks = [_find(found["checks"], name, label=start) for start, _ in text["checks"]]
    controls = [_find(found["mutants"], name, wrong=start, label=checks[at - 1]["label"]) for start, at, _ in text["controls"]]
    result = re.sub(r"\{(c?)(\d)\}", lambda at: _measured((controls if at[1] else checks)[int(at[2]) - 1]), text["result"])
    lines = [f"## {text['title']}", "", f"> {text['statement']}", "", f"{_badge(found['verdict'])} {result}", ""]
    lines += [f"[![{text['title']}; click to enlarge]({FIGURES}/{name}/figure.png)]({FIGURES}/{name}/figure.png)", ""]
    lines += ["| | check | measured | bound | outcome |", "|---|---|---|---|---|"]
    lines += [
        f"| {at} | {_bars(label)} | {_measured(row)} | {_bound(row)} | {row['outcome']} ({row['kind']}) |"
        for at, (row, (_, label)) in enumerate(zip(checks, text["checks"], strict=True), 1)
    ]
    if controls:
        lines += ["", "| negative control | check | measured | outcome |", "|---|---|---|---|"]
        lines += [
            f"| {_bars(label)} | {at} | {_measured(row)} | {'rejected' if row['rejected'] else '**not rejected**'} |"
            for row, (_, at, label) in zip(controls, text["controls"], strict=True)
        ]
    lines += ["", f"*Limits.* {text['limits']}", "", f"`python -m experiments.claims --only {name} --out DIR`", ""]
    return "\n".join(lines)


def _find(rows: list[dict[str, Any]], name: str, **starts: str) -> dict[str, Any]:
    """The first row whose fields start so, braces of exponents and indices left out."""

    def plain(text: str) -> str:
        return text.replace("{", "").replace("}", "")

    for row in rows:
        if all(plain(row[field]).startswith(plain(start)) for field, start in starts.items()):
            return row
    known = "; ".join(row[next(iter(starts))] for row in rows)
    raise ValueError(f"statements.toml, {name}: no row of claim.json starts with {starts}; there are: {known}")


def _measured(row: dict[str, Any]) -> str:
    if row["low"] == row["high"]:
        return _number(row["value"], digits=4)
    return f"{_number(row['value'])} [{_number(row['low'])}, {_number(row['high'])}]"


def _bound(row: dict[str, Any]) -> str:
    sign = {"at most": "≤", "at least": "≥", "equals": "="}[row["relation"]]
    return f"{sign} {_number(row['bound'], digits=4)}" + (f" ± {_number(row['resolution'])}" if row["resolution"] else "")


def _number(value: float, digits: int = 3) -> str:
    """Thousands with commas, powers of ten in TeX."""
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace("-", "−")
    if value and abs(value) < 1e-3:
        mantissa, power = f"{value:.1e}".split("e")
        return f"${mantissa} \\cdot 10^{{{int(power)}}}$"
    return f"{value:.{digits}g}".replace("-", "−")


def _badge(verdict: str) -> str:
    return f'<span class="verdict {verdict.split()[0].strip(",")}">{verdict}</span>'


def _bars(text: str) -> str:
    """Bars inside a cell of a table, escaped."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
