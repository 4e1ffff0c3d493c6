"""The pages of a claims run, for the site and beside the scripts.

    python -m experiments.claims --out FOLDER
    python docs/build_claims.py FOLDER

Copies every statement's page to docs/claims/ and its figure to experiments/claims/, and writes the tables of verdicts and of
negative controls. Statements that are not in FOLDER keep their page and rows.
"""

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path

from experiments.claims.harness.notation import typeset

DOCS = Path(__file__).parent
STATEMENTS = DOCS.parent / "experiments" / "claims"
TABLES = {
    "verdicts.txt": ("statement", "verdict"),
    "mutants.txt": ("statement", "negative control", "check", "outcome"),
}


def main(folder: Path) -> None:
    pages = DOCS / "claims"
    pages.mkdir(exist_ok=True)
    specs = {path.parent.name: tomllib.loads(path.read_text()) for path in STATEMENTS.glob("*/claim.toml")}
    names = sorted(specs, key=lambda name: specs[name]["order"])
    fresh: dict[str, dict[str, list[str]]] = {table: {} for table in TABLES}
    for name in names:
        if not (folder / name / "claim.json").exists():
            continue
        one = json.loads((folder / name / "claim.json").read_text())
        shutil.copyfile(folder / name / "figure.png", STATEMENTS / name / "figure.png")
        page = (folder / name / "index.md").read_text()
        (pages / f"{name}.md").write_text(page.replace("](figure.png)", f"](../../experiments/claims/{name}/figure.png)"))
        title = _cell(typeset(one["title"]))
        fresh["verdicts.txt"][name] = [f"| [{title}](claims/{name}.md) | {one['verdict']} |"]
        fresh["mutants.txt"][name] = [
            f"| [{title}](../claims/{name}.md) | {_cell(row['wrong'])} | {_cell(row['label'])} | {'rejected' if row['rejected'] else '**not rejected**'} |"
            for row in one["mutants"]
        ]
    for table, columns in TABLES.items():
        rows = _rows(pages / table) | fresh[table]
        head = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        (pages / table).write_text("\n".join(head + [row for name in names for row in rows.get(name, [])]) + "\n")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _rows(table: Path) -> dict[str, list[str]]:
    """The rows of a table that is there, by statement."""
    rows: dict[str, list[str]] = {}
    for line in table.read_text().splitlines() if table.exists() else []:
        if found := re.search(r"\]\((?:\.\./)?claims/(\w+)\.md\)", line):
            rows.setdefault(found[1], []).append(line)
    return rows


if __name__ == "__main__":
    main(Path(sys.argv[1]))
