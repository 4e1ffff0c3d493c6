"""The pages of a claims run, for the site and beside the scripts.

    jaxbandit claims --out FOLDER
    python docs/build_claims.py FOLDER

Copies every statement's page to docs/claims/ and its figure to experiments/claims/, and writes the table of verdicts.
"""

import json
import shutil
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
STATEMENTS = DOCS.parent / "experiments" / "claims"


def main(folder: Path) -> None:
    pages = DOCS / "claims"
    pages.mkdir(exist_ok=True)
    specs = {path.parent.name: tomllib.loads(path.read_text()) for path in STATEMENTS.glob("*/claim.toml")}
    names = sorted(specs, key=lambda name: specs[name]["order"])
    missing = [name for name in names if not (folder / name / "claim.json").exists()]
    if missing:
        raise SystemExit(f"{folder}: there is no {', '.join(missing)}; finish with `jaxbandit claims --out {folder}`")
    rows = ["| statement | verdict |", "|---|---|"]
    for name in names:
        one = json.loads((folder / name / "claim.json").read_text())
        title = one["title"].replace("|", "\\|")
        shutil.copyfile(folder / name / "figure.png", STATEMENTS / name / "figure.png")
        page = (folder / name / "index.md").read_text()
        (pages / f"{name}.md").write_text(page.replace("](figure.png)", f"](../../experiments/claims/{name}/figure.png)"))
        rows.append(f"| [{title}](claims/{name}.md) | {one['verdict']} |")
    (pages / "verdicts.txt").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
