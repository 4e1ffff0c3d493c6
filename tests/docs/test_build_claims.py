"""docs/build_claims.py: pages of some statements are put beside those that are there."""

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_statements_that_were_not_run_keep_their_rows(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("build_claims", ROOT / "docs" / "build_claims.py")
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    monkeypatch.setattr(build, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(build, "STATEMENTS", tmp_path / "statements")
    (tmp_path / "docs").mkdir()
    for order, name in enumerate(["one", "two", "three"]):
        (tmp_path / "statements" / name).mkdir(parents=True)
        (tmp_path / "statements" / name / "claim.toml").write_text(f"order = {order}")

    def found(folder, name, verdict, rejected):
        (folder / name).mkdir(parents=True)
        (folder / name / "figure.png").write_bytes(b"png")
        (folder / name / "index.md").write_text("![](figure.png)")
        mutants = [{"wrong": "a|b", "label": "check", "rejected": rejected}]
        (folder / name / "claim.json").write_text(json.dumps({"title": name, "verdict": verdict, "mutants": mutants}))

    for name in ("three", "one"):
        found(tmp_path / "first", name, "holds", True)
    build.main(tmp_path / "first")
    found(tmp_path / "second", "one", "fails", False)
    found(tmp_path / "second", "two", "not shown", True)
    build.main(tmp_path / "second")

    verdicts, mutants = ((tmp_path / "docs" / "claims" / file).read_text().splitlines()[2:] for file in build.TABLES)
    assert [row.split(" | ")[-1] for row in verdicts] == ["fails |", "not shown |", "holds |"]
    assert mutants == [
        f"| [{name}](../claims/{name}.md) | a\\|b | check | {outcome} |"
        for name, outcome in [("one", "**not rejected**"), ("two", "rejected"), ("three", "rejected")]
    ]
    page = (tmp_path / "docs" / "claims" / "three.md").read_text()
    assert page == "![](../../experiments/claims/three/figure.png)"
