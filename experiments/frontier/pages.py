"""Verdicts and regrets of the pre-registered settings as Markdown, filled into the pages between their marks.

    python -m experiments.frontier.pages [--out FOLDER] [--write]

Cells of grid.json, and those that are finished in FOLDER. ``--write``: store all of them in grid.json, fill docs/frontier.md and
docs/notes/frontier.md, and draw docs/frontier_grid.png. Without it the parts are printed.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from experiments.frontier.grid import cell_name, registered
from experiments.frontier.verdicts import CONSTANT, TAPERS, dominates, draw, gathered, hypotheses, point, raised, verdict
from jaxbandit._io.files import write_whole

ROOT = Path(__file__).parents[2]
STORED = Path(__file__).parent / "grid.json"
PAGES = (ROOT / "docs" / "frontier.md", ROOT / "docs" / "notes" / "frontier.md")
SHORT = {
    "MZS22 without constants 0.45": "MZS22\\* 0.45",
    "TaperedFTRL 0.5/0.5": "taper 0.5",
    "TaperedFTRL 0.8/0.75": "taper 0.8",
    "Delayed Exp3 2": "Exp3 2",
}
Cells = dict[str, dict[str, Any]]


def cells_of(out: Path | None) -> Cells:
    """The cells of grid.json and of a folder, in the order of the plan."""
    found = json.loads(STORED.read_text()) | (gathered(out) if out else {})
    return {name: found[name] for name in map(cell_name, registered()["cells"]) if name in found}


def title(cell: dict[str, Any]) -> str:
    """K, d and T."""
    return f"{cell['arms']}, {cell['delay']}, {cell['rounds']:,}" + (" (geometric)" if "delays" in cell else "")


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def settings(cells: Cells) -> str:
    left = [title(cell) for cell in registered()["cells"] if cell_name(cell) not in cells]
    named = f" Planned, not run, ($K$, $d$, $T$) = {'; '.join(f'({one})' for one in left)}." if left else ""
    return f"{len(cells)} of {len(cells) + len(left)} planned settings were run.{named}"


def lead(cells: Cells) -> str:
    rule = registered()["rule"]
    found = {name.split(": ")[1]: number for name, (number, _) in hypotheses(cells, rule).items()}
    pairs = [(rows[taper], rows[dew]) for rows in cells.values() for taper in TAPERS for dew in CONSTANT]
    margins = [1 - point(one)[2] / point(other)[2] for one, other in pairs if dominates(point(one), point(other), rule)]
    return (
        f"Of {len(cells)} settings, some taper dominates ZS20 in {found['ZS20 0.5 is dominated']}, MZS22\\* in "
        f"{found['MZS22 without constants 0.45 is dominated']}, Delayed Exp3 in {found['Delayed Exp3 2 is dominated']} and a DEW in "
        f"{found['a taper dominates a DEW']}, there with $W$ lower by {max(min(margins), 0):.0%} to {max(margins):.0%}. "
        f"A DEW dominates a taper in {found['a DEW dominates a taper'] or 'none'}."
    )


def summary(cells: Cells) -> str:
    """One row for each setting: S at gap 0.1 / W. Bold: dominated by a taper. Italic: dominates one."""
    names = [name for name in registered()["learners"] if "Thompson" not in name]
    mark = {"dominated": "**", "dominates": "*", "trade-off": ""}
    lines = []
    for rows in cells.values():
        line = [title(next(iter(rows.values()))["cell"])]
        for name in names:
            around = "" if name in TAPERS else mark[verdict(rows, name, registered()["rule"])]
            low, _, worst = point(rows[name])
            line.append(f"{around}{low:.0f} / {worst:,.0f}{around}")
        lines.append(line)
    return table(["$K$, $d$, $T$", *(SHORT.get(name, name) for name in names)], lines)


def regrets(cells: Cells) -> str:
    """S at both gaps / W of every learner."""
    lines = []
    for name in registered()["learners"]:
        points = (point(rows[name]) for rows in cells.values())
        lines.append([SHORT.get(name, name), *(f"{low:.0f}, {high:.0f} / {worst:,.0f}" for low, high, worst in points)])
    return table(["learner; $K$, $d$, $T$:", *(title(next(iter(rows.values()))["cell"]) for rows in cells.values())], lines)


def outcomes(cells: Cells) -> str:
    """Each hypothesis with its count."""
    limits = {
        "any_time": "3/4 or more",
        "constant_rate": "fewer than 2",
        "advantage": "more than half",
        "stochastic_end": "fewer than 2",
    }
    lines = []
    for name, (number, holds) in hypotheses(cells, registered()["rule"]).items():
        group, statement = name.split(": ")
        for long, short in SHORT.items():
            statement = statement.replace(long, short)
        lines.append([statement, limits[group], f"{number} of {len(cells)}", "holds" if holds else "**rejected**"])
    return table(["event", "expected", "found", "outcome"], lines)


def search(cells: Cells) -> str:
    rule, every = registered()["rule"], [(cell, row) for cell, rows in cells.items() for row in rows.values()]
    added = [(point(row)[2] / row["own"][0] - 1, cell) for cell, row in every]
    held = [row["held out"]["W"][0] / point(row)[2] for _, row in every]
    few, much = sum(one < 0.03 for one, _ in added), {cell: None for one, cell in added if one > 0.1}
    where = "; ".join(f"({title(next(iter(cells[cell].values()))['cell'])})" for cell in much)
    before, after = hypotheses(cells, rule), hypotheses(raised(cells, 1.05), rule)
    changed = sum(before[name][1] != after[name][1] for name in before)
    return (
        f"- Tables found for others added less than 3% to $W$ in {few} of {len(added)} cases, and at most {max(added)[0]:.0%}. "
        f"More than 10%: {where or 'none'}.\n"
        f"- Held-out families (sine, switches, bursts, doubling, ramps, random blocks) have at most {max(held):.2f} $W$.\n"
        f"- With $W$ of both tapers raised by 5%, {changed or 'no'} outcome{'s change' if changed > 1 else ' changes'}."
    )


def seconds(cells: Cells) -> str:
    """The time of the searches; that of the tables of others and of the measurements comes on top."""
    total = sum(row["seconds"] for rows in cells.values() for row in rows.values())
    return f"Processor time of the searches of {len(cells)} settings: {total / 60:.0f} minutes."


PARTS = {
    "lead": lead,
    "settings": settings,
    "summary": summary,
    "regrets": regrets,
    "hypotheses": outcomes,
    "search": search,
    "seconds": seconds,
}


def filled(page: str, cells: Cells) -> str:
    """A page with each part between its marks, <!-- name --> and <!-- end -->."""
    return re.sub(
        r"<!-- (\w+) -->\n.*?<!-- end -->",
        lambda mark: f"<!-- {mark[1]} -->\n\n{PARTS[mark[1]](cells)}\n\n<!-- end -->",
        page,
        flags=re.DOTALL,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    cells = cells_of(arguments.out)
    for name, part in PARTS.items():
        print(f"{name}\n\n{part(cells)}\n")
    if arguments.write:
        write_whole(STORED, json.dumps(cells, indent=1).encode())
        draw(cells, ROOT / "docs" / "frontier_grid.png")
        for page in PAGES:
            write_whole(page, filled(page.read_text(encoding="utf-8"), cells).encode())


if __name__ == "__main__":
    main()
