"""docs/build_claims.py: pages come from stored results, and name what they cannot find."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXTS = tomllib.loads((ROOT / "docs" / "claims" / "statements.toml").read_text())


@pytest.fixture
def build(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("build_claims", ROOT / "docs" / "build_claims.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(module, "STATEMENTS", tmp_path / "statements")
    (tmp_path / "docs" / "claims").mkdir(parents=True)
    parts = ['[pages]\nall = "All"']
    for order, name in enumerate(["three", "one", "two"]):
        (tmp_path / "statements" / name).mkdir(parents=True)
        (tmp_path / "statements" / name / "claim.toml").write_text(f"order = {order}")
        parts.append(
            f'[{name}]\npage = "all"\ntitle = "Number {name}"\nstatement = "a"\nresult = "It is {{1}}, not {{c1}}."\nlimits = "none"\n'
            'checks = [["check", "$|S|$"]]\ncontrols = [["wr", 1, "wrong"]]'
        )
    (tmp_path / "docs" / "claims" / "statements.toml").write_text("\n".join(parts))
    return module


def found(folder, name, verdict, rejected, label="check a|b"):
    (folder / name).mkdir(parents=True)
    (folder / name / "figure.png").write_bytes(b"png")
    row = {"label": label, "value": 1234.5, "low": 1200.0, "high": 1300.0, "relation": "at most", "bound": 2e-5, "resolution": 0}
    one = {"name": name, "verdict": verdict, "checks": [row | {"outcome": "fails", "kind": "open"}]}
    one["mutants"] = [row | {"wrong": "wrong", "rejected": rejected, "value": 0.25, "low": 0.25, "high": 0.25}]
    (folder / name / "claim.json").write_text(json.dumps(one))


def test_statements_that_were_not_run_keep_their_results(build, tmp_path):
    for name in ("three", "one", "two"):
        found(tmp_path / "first", name, "holds", True)
    build.main(tmp_path / "first")
    found(tmp_path / "second", "one", "not shown", False)
    build.main(tmp_path / "second")
    claims = tmp_path / "docs" / "claims"
    verdicts = (claims / "verdicts.txt").read_text()
    assert re.findall(r">([\w ]+)</span>", verdicts) == ["holds", "not shown", "holds"]
    assert "(claims/all.md#number-one)" in verdicts
    assert (claims / "mutants.txt").read_text().count("**not rejected**") == 1
    page = (claims / "all.md").read_text()
    assert "It is 1,234 [1,200, 1,300], not 0.25." in page
    assert "| 1 | $\\|S\\|$ | 1,234 [1,200, 1,300] | ≤ $2.0 \\cdot 10^{-5}$ | fails (open) |" in page
    assert (tmp_path / "statements" / "one" / "figure.png").read_bytes() == b"png"


def test_a_label_that_is_not_there_is_named(build, tmp_path):
    for name in ("three", "one", "two"):
        found(tmp_path / "first", name, "holds", True, label="renamed" if name == "two" else "check")
    with pytest.raises(ValueError, match=r"two: no row of claim.json starts with .*check.*renamed"):
        build.main(tmp_path / "first")


def test_pages_are_those_of_the_stored_results(build, tmp_path, monkeypatch):
    """Also rejects a statement without texts, and texts that no page shows."""
    monkeypatch.setattr(build, "STATEMENTS", ROOT / "experiments" / "claims")
    (tmp_path / "docs" / "claims" / "statements.toml").write_text((ROOT / "docs" / "claims" / "statements.toml").read_text())
    build.main()
    made = {path.name: path.read_text() for path in (tmp_path / "docs" / "claims").iterdir()}
    assert made == {path.name: path.read_text() for path in (ROOT / "docs" / "claims").iterdir()}, (
        "run python docs/build_claims.py"
    )
    assert {path.parent.name for path in build.STATEMENTS.glob("*/claim.toml")} == {*TEXTS} - {"pages"}
    assert {text["page"] for name, text in TEXTS.items() if name != "pages"} == {*TEXTS["pages"]}
