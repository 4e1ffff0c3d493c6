"""The pre-registered rule, the learners and the held-out tables of experiments/frontier."""

import numpy as np
import pytest

import jaxbandit as jb
from experiments.frontier.grid import InflatedThompson, cell_name, learners, registered
from experiments.frontier.heldout import held_out
from experiments.frontier.pages import PAGES, cells_of, filled
from experiments.frontier.verdicts import dominates, hypotheses, verdict

RULE = registered()["rule"]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        ((100, 100, 94), True),  # W lower
        ((94, 94, 100), True),  # both S lower
        ((94, 100, 100), False),  # one S only
        ((102, 102, 94), True),  # within 2%
        ((103, 90, 90), False),
        ((90, 90, 103), False),
        ((100, 100, 96), False),  # not by 5%
        ((100, 100, 100), False),
    ],
)
def test_rule(one, expected):
    assert dominates(one, (100, 100, 100), RULE) == expected


def test_verdicts_use_the_larger_search():
    def row(low, high, own, others):
        return {"S 0.1": [low, 0], "S 0.3": [high, 0], "own": [own, 0], "others": {"W": [others, 0]}}

    rows = {"TaperedFTRL 0.5/0.5": row(90, 90, 50, 100), "TaperedFTRL 0.8/0.75": row(300, 300, 90, 90)}
    assert verdict(rows | {"rival": row(100, 100, 10, 100)}, "rival", RULE) == "dominated"
    assert verdict(rows | {"rival": row(100, 100, 10, 95)}, "rival", RULE) == "trade-off"  # the first taper has 100, not 50
    assert verdict(rows | {"rival": row(290, 290, 70, 80)}, "rival", RULE) == "dominates"


def test_hypotheses_count_both_directions():
    """A taper that dominates a rival does not hide that the rival dominates the other taper."""

    def row(*numbers):
        return {"S 0.1": numbers[:1], "S 0.3": numbers[1:2], "own": numbers[2:], "others": {"W": numbers[2:]}}

    rows = {name: row(100, 100, 100) for name in registered()["learners"]}
    rows |= {"TaperedFTRL 0.5/0.5": row(80, 80, 80), "TaperedFTRL 0.8/0.75": row(120, 120, 120)}
    found = hypotheses({"one": rows, "two": rows}, RULE)
    assert found["advantage: a taper dominates a DEW"] == (2, True)
    assert found["constant_rate: a DEW dominates a taper"] == (2, False)
    assert found["any_time: ZS20 0.5 is dominated"] == (2, True)
    assert found["stochastic_end: Thompson is dominated or dominates"] == (2, False)
    assert hypotheses({"one": rows}, RULE)["constant_rate: a DEW dominates a taper"] == (1, True)


def test_pages_have_the_stored_results():
    cells = cells_of(None)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert filled(text, cells) == text, f"{page.name}: python -m experiments.frontier.pages --write"
    assert "<!-- summary -->" in PAGES[0].read_text(encoding="utf-8")


def test_learners_and_names_of_the_file():
    cells = registered()["cells"]
    assert len({cell_name(cell) for cell in cells}) == len(cells)
    for cell in cells:
        assert list(learners(cell)) == list(registered()["learners"])


@pytest.mark.parametrize(("arms", "delay"), [(2, 0), (10, 100)])
def test_held_out_tables(arms, delay):
    found = held_out({"arms": arms, "delay": delay, "rounds": 300})
    assert len(found) > 15
    for name, table in found.items():
        assert table.shape == (300, arms), name
        assert 0 <= table.min() <= table.max() <= 1, name


def test_inflation():
    """A share of 1 is Thompson sampling, bit by bit; a smaller one explores more."""
    losses, delays, options = (
        jb.losses.Bernoulli([0.3, 0.5]),
        jb.delays.Fixed(3),
        {"rounds": 200, "runs": 64, "seed": 0, "record": 1},
    )
    plain, same, wide = (
        jb.simulate(one, losses, delays, **options).regret[-1]
        for one in (jb.DelayedThompson(), InflatedThompson(share=1.0), InflatedThompson(share=0.1))
    )
    np.testing.assert_array_equal(plain, same)
    assert wide.mean() > 1.5 * plain.mean()
