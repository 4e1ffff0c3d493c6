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
SHORT = {"MZS22 without constants 0.45": "MZS22\\* 0.45"}
Cells = dict[str, dict[str, Any]]


def cells_of(out: Path | None) -> Cells:
    """The cells of grid.json and of a folder, in the order of the plan."""
    found = json.loads(STORED.read_text()) | (gathered(out) if out else {})
    return {name: found[name] for name in map(cell_name, registered()["cells"]) if name in found}


def title(cell: dict[str, Any]) -> str:
    kind = "geometric delays with mean" if "delays" in cell else "$d$ ="
    return f"$K$ = {cell['arms']}, {kind} {cell['delay']}, $T$ = {cell['rounds']:,}"


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def settings(cells: Cells) -> str:
    plan = registered()["cells"]
    left = [title(cell) for cell in plan if cell_name(cell) not in cells]
    return f"{len(cells)} of the {len(plan)} planned settings were run." + (f" Not run: {'; '.join(left)}." if left else "")


def lead(cells: Cells) -> str:
    rule = registered()["rule"]
    found = {name.split(": ")[1]: number for name, (number, _) in hypotheses(cells, rule).items()}
    pairs = [(rows[taper], rows[dew]) for rows in cells.values() for taper in TAPERS for dew in CONSTANT]
    margins = [1 - point(one)[2] / point(other)[2] for one, other in pairs if dominates(point(one), point(other), rule)]
    return (
        f"In {len(cells)} settings fixed in advance, some `TaperedFTRL` dominates ZS20 in {found['ZS20 0.5 is dominated']}, "
        f"MZS22 without its constants in {found['MZS22 without constants 0.45 is dominated']}, Delayed Exp3 in "
        f"{found['Delayed Exp3 2 is dominated']}, and a constant rate (DEW) in {found['a taper dominates a DEW']}. Over DEW the margins in $W$ are "
        f"{max(min(margins), 0):.0%} to {max(margins):.0%}. A DEW dominates a taper in {found['a DEW dominates a taper']}."
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
    return table(["setting", *(SHORT.get(name, name) for name in names)], lines)


def regrets(cells: Cells) -> str:
    """S at both gaps / W of every learner."""
    lines = []
    for name in registered()["learners"]:
        points = (point(rows[name]) for rows in cells.values())
        lines.append([SHORT.get(name, name), *(f"{low:.0f}, {high:.0f} / {worst:,.0f}" for low, high, worst in points)])
    return table(["learner", *(title(next(iter(rows.values()))["cell"]) for rows in cells.values())], lines)


def outcomes(cells: Cells) -> str:
    """Each hypothesis, with its count, and with W of both tapers raised by the error of the search."""
    rule, total = registered()["rule"], len(cells)
    found, moved = hypotheses(cells, rule), hypotheses(raised(cells, 1.05), rule)
    limits = {
        "any_time": "holds if in 3/4 or more",
        "constant_rate": "holds if in fewer than 2",
        "advantage": "holds if in more than half",
        "stochastic_end": "holds if in fewer than 2",
    }
    lines = []
    for name, (number, holds) in found.items():
        group, statement = name.split(": ")
        for long, short in SHORT.items():
            statement = statement.replace(long, short)
        verdicts = ["holds" if one else "**rejected**" for one in (holds, moved[name][1])]
        lines.append(
            [statement, f"{number} of {total}; {limits[group]}", verdicts[0], f"{moved[name][0]} of {total}: {verdicts[1]}"]
        )
    return table(["event", "settings", "hypothesis", "with 5% more $W$ for both tapers"], lines)


def search(cells: Cells) -> str:
    every = [(cell, name, row) for cell, rows in cells.items() for name, row in rows.items()]
    added = {(cell, name): point(row)[2] / row["own"][0] - 1 for cell, name, row in every}
    held = [row["held out"]["W"][0] / point(row)[2] for *_, row in every]
    few, much = sum(one < 0.03 for one in added.values()), sorted({cell for (cell, _), one in added.items() if one > 0.1})
    where = "; ".join(title(next(iter(cells[cell].values()))["cell"]) for cell in much)
    return (
        f"- **Tables of others** added less than 3% to $W$ in {few} of {len(added)} cases, and at most {max(added.values()):.0%}. "
        f"More than 10%: {where or 'none'}.\n"
        f"- **Held-out families** (sine drift, late switches, bursts, doubling phases, ramps, random blocks): "
        f"at most {max(held):.2f} $W$; above $W$ in {sum(one > 1 for one in held)} of {len(held)} cases."
    )


def seconds(cells: Cells) -> str:
    """The time of the searches; that of the tables of others and of the measurements comes on top."""
    total = sum(row["seconds"] for rows in cells.values() for row in rows.values())
    return f"The searches of these {len(cells)} settings took {total / 60:.0f} minutes of processor time."


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
