"""The texts use the terms of the field: phrases that the glossary replaces do not come back."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Phrase → the term to use. Regular expressions, without regard to case.
REPLACED = {
    r"(?:nobody|somebody) means harm|means? (?:no )?harm": "stochastic losses; adversarial losses",
    r"who plays whom": "algorithms and environments",
    r"in step with": "delay-matched switching",
    r"moving together": "stochastically constrained adversary",
    r"gone on with": "resumed",
    r"\banew\b": "again; recompiles",
    r"told apart": "distinguished; significantly different",
    r"must be told|told the truth|told nothing": "requires; oracle-tuned; needs no knowledge of the delays",
    r"lies? idle": "is not used",
    r"(?:kinds?|shapes?) of late\b": "feedback model",
    r"sums without names": "aggregated anonymous feedback",
    r"\bwhoever\b": "a noun",
    r"\bin (?:a|one) sentence": "raises an error that names the argument",
    r"plays that wait|waiting plays": "outstanding observations",
    r"the paper's learner": "MZS22",
    r"wrong on purpose": "negative control",
    r"nobody \(": "uniform baseline",
    r"sleep well|how the house is built|measuring sticks": "plain words",
    r"not told apart": "not significantly different",
    r"endless delays?": "missing feedback (infinite delay)",
    r"rounds late\b|seen late": "delayed by d rounds",
    r"\bwho wins\b": "lowest regret",
    r"(?:loss|delay) laws?\b": "loss model, delay model",
    r"silence is a yes": "returns None if all checks pass",
    r"plays? waiting|first nowhere|game by game": "outstanding observations; lowest in no environment; by environment",
    r"what is computed is safe|tells no more apart|cannot tell, with": "a noun as subject",
    r"@[A-Z]{3,}@": "the text that this placeholder stands for",
}
PATTERNS = {re.compile(pattern, re.IGNORECASE): term for pattern, term in REPLACED.items()}
KINDS = {
    "README.md": [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"],
    "docs": [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.txt"), *(ROOT / "docs").glob("*.py")],
    "notebooks": [*(ROOT / "docs" / "notebooks" / "ipynb").glob("*.ipynb")],
    "playground": [path for path in (ROOT / "docs" / "playground").rglob("*.*") if path.suffix in (".html", ".js", ".css")],
    "package": [*(ROOT / "jaxbandit").rglob("*.py")],
    "experiments": [*(ROOT / "experiments").rglob("*.py"), *(ROOT / "experiments").rglob("*.toml")],
}


def hits(text: str) -> list[str]:
    """Each replaced phrase with its line and the term to use; phrases may break across lines."""
    joined = re.sub(r"\n[ #>*]*", " ", text)
    return [
        f"{joined[max(found.start() - 40, 0) : found.end() + 20]!r}: {term}"
        for one, term in PATTERNS.items()
        for found in one.finditer(joined)
    ]


def text_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":  # outputs of text and tables, not pictures
        cells = json.loads(text)["cells"]
        parts = ["".join(cell["source"]) for cell in cells]
        for cell in cells:
            for output in cell.get("outputs", []):
                parts.append("".join(output.get("text", "")))
                parts.append("".join(output.get("data", {}).get("text/plain", "")))
        return "\n\n".join(parts)
    return text


@pytest.mark.parametrize("kind", KINDS)
def test_texts_use_the_terms_of_the_field(kind):
    files = [path for path in KINDS[kind] if "_build" not in path.parts]
    assert files
    found = {str(path.relative_to(ROOT)): hits(text_of(path)) for path in files}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "text", ["When nobody means harm, go.", "a file of nobody\n    means harm", "It COMPILES ANEW.", "before\n@COVER@\nafter"]
)
def test_a_replaced_phrase_is_found(text):
    assert hits(text)
