"""A word in time: a note when a learner's burn-in is longer than the game, once for each case."""

import math
import warnings

import pytest

import jaxbandit as jb
from jaxbandit._checks import inputs as validation
from jaxbandit._checks import warn

LOSSES = jb.losses.Bernoulli([0.3, 0.5, 0.5, 0.9])


@pytest.fixture(autouse=True)
def nothing_said_yet(monkeypatch):
    monkeypatch.setattr(warn, "_warned", set())


def notes(learner, losses, rounds, delays=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        validation.check_game(learner, losses, delays or jb.delays.Fixed(10), rounds)
    return [str(one.message) for one in caught]


def test_the_note_has_the_number_the_formula_and_the_remedy():
    expected = 24 * 10 * 4 ** (1 / 3) * math.log(4) / 0.2
    (note,) = notes(jb.BestOfBothWorlds(10), LOSSES, 1000)
    assert f"about {expected:,.0f} rounds" in note
    assert "rounds=1,000" in note
    assert f"divide factor by {10 * expected / 1000:,.0f}" in note
    assert len(notes(jb.BestOfBothWorlds(10, factor=24 / round(10 * expected / 1000)), LOSSES, 1000)) == 0, (
        "the remedy ends the note"
    )
    assert len(note) < 300
    assert notes(jb.BestOfBothWorlds(10), LOSSES, 1000) == [], "once"
    assert len(notes(jb.BestOfBothWorlds(10), LOSSES, 999)) == 1, "another case"
    assert notes(jb.BestOfBothWorlds(10), LOSSES, math.ceil(expected) + 1) == []
    assert len(notes(jb.BestOfBothWorlds(10), LOSSES, math.floor(expected) - 1)) == 1


@pytest.mark.parametrize(
    ("learner", "losses"),
    [
        (jb.BestOfBothWorlds(10, factor=1.0), LOSSES),
        (jb.TsallisINF(), LOSSES),
        (jb.BestOfBothWorlds(10), jb.losses.Bernoulli([0.5, 0.5])),
        (jb.BestOfBothWorlds(10), jb.losses.StochasticallyConstrained(0.2, 4)),
    ],
    ids=["lowered", "another learner", "no gap", "moving means"],
)
def test_no_note_without_need(learner, losses):
    assert notes(learner, losses, 1000) == []


def test_the_remedy_works():
    game = (LOSSES, jb.delays.Fixed(10))
    paper, lowered = (
        jb.simulate(jb.BestOfBothWorlds(10, factor=factor), *game, rounds=1000, runs=64, seed=0).estimate()
        for factor in (24.0, 1.0)
    )
    assert lowered.high[-1] < 0.8 * paper.low[-1]
