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


def test_a_rate_of_state_exp3_above_its_condition():
    """Rejects a condition with e·d in place of e(d + 1), and one that is applied to copies without delay."""
    states = [[0.5, 0.5], [0.1, 0.9]]
    losses, least = (
        jb.losses.IntermediateStates(states, jb.losses.Bernoulli([0.2, 0.8])),
        2 * math.e**2 * 11**2 * math.log(2) / 12,
    )
    (note,) = notes(jb.StateExp3(states, math.floor(least) - 1, 10), losses, 50)
    assert "1/(e(d + 1)) = 0.03344" in note
    assert notes(jb.StateExp3(states, math.ceil(least) + 1, 10), losses, 50) == []
    assert notes(jb.StateExp3(states, math.floor(least) - 1, 10, scale=0.9), losses, 50) == []
    assert notes(jb.BOLD(jb.StateExp3(states, 2, 0), capacity=11), losses, 50) == []
    assert notes(jb.EstimatedStateExp3(2, 10, 10), losses, 50) == [], "no rate of it is analysed"
