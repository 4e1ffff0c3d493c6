"""The page of constants: what a reader copies is what was tried, and the verdict on it follows from what is stored."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = ROOT / "experiments" / "constants"
PAGE = (ROOT / "docs" / "constants.md").read_text() + (ROOT / "docs" / "appendix" / "tuned_constants.md").read_text()


@pytest.fixture(scope="module")
def modules():
    """``games`` and ``table`` as the script imports them, and no trace of these common names afterwards."""
    sys.path.insert(0, str(HERE))
    try:
        import games
        import table

        yield games, table
    finally:
        sys.path.remove(str(HERE))
        for name in ("games", "table", "surfaces"):
            sys.modules.pop(name, None)


def test_the_pasted_rule_is_the_one_that_was_tried(modules):
    games, _ = modules
    names: dict = {}
    exec(re.search(r"```python\n(.*?)\n\n\ngame = ", PAGE, re.S)[1], names)
    tried = json.loads((HERE / "trial.json").read_text())
    short = dict(zip(games.REGIMES, ("stochastic", "constrained", "switching"), strict=True))
    cells = [cell for cells in games.TRIALS.values() for cell in cells]
    assert len(cells) > 20
    for cell in cells:
        one = names["lighter"](short[cell.game.regime], cell.game.arms, cell.game.delay, cell.rounds)
        constants = [one.linear, one.factor, one.tsallis_scale, one.entropy_scale]
        assert constants == pytest.approx(tried[str(cell)]["constants"]["rule"], rel=6e-3), "kept to three digits"


def test_rows_of_the_page_are_those_of_the_table(modules):
    games, table = modules
    rows = table.table(json.loads((HERE / "surfaces.json").read_text()))
    found = re.findall(r"^\| (\d+) \| (\d+) \| ([\d,]+) \| (.*) \|$", PAGE, re.M)
    assert len(found) == 27
    for arms, delay, rounds, entries in found:
        for regime, entry in zip(games.REGIMES, entries.split("|"), strict=True):
            cell = games.Cell(games.Game(regime, int(arms), int(delay)), int(rounds.replace(",", "")))
            constants, _, regrets = entry.partition("(")
            assert [float(one) for one in constants.split(",") if one.strip()] == list(rows.get(str(cell), []))
            if entry.strip():
                own, paper = (float(one) for one in regrets.strip(" )").split(";"))
                assert 0 < own < paper
                linear, _, *scales = table.copied(cell, rows)
                assert (linear, *scales) == pytest.approx(rows[str(cell)], rel=1e-6), "at a row, the row itself"


def test_the_verdict_counts_what_is_stored(modules):
    games, _ = modules
    tried = json.loads((HERE / "trial.json").read_text())
    cells = [cell for kind in tuple(games.TRIALS)[:2] for cell in games.TRIALS[kind]]
    for who in ("table", "rule"):
        good = sum(tried[str(cell)]["ratio"][who][0] <= 1.02 for cell in cells)
        verdict = "met" if good >= 0.9 * len(cells) else "missed"
        assert re.search(rf"\| {who} \| between .* fresh keys \| {good} of {len(cells)}: \*\*{verdict}\*\*", PAGE)
