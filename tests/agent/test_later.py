"""Propensities of agents in memory, computed when they are read, against those of durable agents, computed with the decisions."""

import copy
import json
import pickle

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.agent import later as later_module
from jaxbandit.agent.later import Later

KEY, FLEET = jax.random.key(2), 5


def play(agent, rounds=6):
    """Tickets of all kinds: all runs or some, forced arms, two observations of one run at once, a withdrawn arm."""
    random, tickets = np.random.default_rng(0), []
    for number in range(rounds):
        runs = None if number % 3 else [3, 0, 4]
        forced = None if number != 4 else [2] * FLEET
        tickets.append(agent.act(runs, arm=forced))
        if number >= 2:
            for ticket in tickets[number - 2 :: -2][:1]:
                agent.observe(ticket.id, random.uniform(size=len(ticket.id)).round(1))
        if number == 2:
            agent.withdraw(1)
    return tickets


@pytest.mark.thorough
def test_the_same_as_with_the_decisions(tmp_path):
    """Rejects the state after the decision, other arms than the drawn ones, the order of the fleet, and forgotten withdrawals."""
    mine = jb.Agent(jb.DelayedThompson(), 3, KEY, fleet=FLEET)
    tickets = play(mine)
    assert all(isinstance(ticket[2], Later) and not ticket[2].is_read for ticket in tickets)
    with jb.Agent.open(tmp_path / "campaign.db", jb.DelayedThompson(), 3, KEY, fleet=FLEET, flush=False) as durable:
        for one, other in zip(tickets, play(durable), strict=True):
            np.testing.assert_array_equal(one.arm, other.arm)
            np.testing.assert_allclose(one.probability, other.probability, rtol=1e-5)
        assert {True, False} == {bool((one.probability == 1).all()) for one in tickets}
        expected = [ticket.probability for ticket in durable.outstanding()]
    # Nothing was read before outstanding().
    fresh = jb.Agent(jb.DelayedThompson(), 3, KEY, fleet=FLEET)
    play(fresh)
    np.testing.assert_allclose([ticket.probability for ticket in fresh.outstanding()], expected, rtol=1e-5)
    fresh.save(tmp_path / "agent.npz")
    loaded = jb.Agent.load(tmp_path / "agent.npz", jb.DelayedThompson(), 3, KEY, fleet=FLEET)
    np.testing.assert_allclose([ticket.probability for ticket in loaded.outstanding()], expected, rtol=1e-5)
    assert isinstance(loaded.act()[2], Later)


@pytest.mark.thorough
def test_saved_without_being_read(tmp_path):
    agent = jb.Agent(jb.DelayedThompson(), 3, KEY, fleet=FLEET)
    play(agent)
    agent.save(tmp_path / "agent.npz")
    loaded = jb.Agent.load(tmp_path / "agent.npz", jb.DelayedThompson(), 3, KEY, fleet=FLEET)
    assert not np.isnan([ticket.probability for ticket in loaded.outstanding()]).any()


@pytest.mark.parametrize(
    "learner",
    [jb.DelayedUCB1(), jb.TsallisINF("rv"), jb.QPMD(jb.DelayedThompson(), capacity=8)],
    ids=lambda one: type(one).__name__,
)
def test_learners_that_need_no_more_than_the_decision(learner):
    ticket = jb.Agent(learner, 3, KEY, fleet=FLEET).act()
    assert isinstance(ticket[2], np.ndarray)
    assert ticket.probability is ticket[2]


def test_it_is_used_like_an_array():
    agent = jb.Agent(jb.DelayedThompson(), 3, KEY, fleet=FLEET)
    names = ["id", "arm", "probability"]
    ticket, other = agent.act(), agent.act()
    inverse = 1 / other[2]
    assert not ticket[2].is_read
    np.testing.assert_allclose(inverse, 1 / other.probability)
    assert other[2].shape == (FLEET,)
    assert other[2][1] == other.probability[1]
    assert len(list(other[2])) == FLEET
    assert np.isfinite(np.log(ticket[2])).all()
    assert repr(agent.act()).startswith("Ticket(id=array([11, 12, 13, 14, 15])")
    for copied in (copy.deepcopy(agent.act()), pickle.loads(pickle.dumps(agent.act()))):
        assert [type(copied._asdict()[name]) for name in names] == [np.ndarray] * 3


def test_memory_is_bounded(monkeypatch):
    """Tickets that a caller keeps unread hold states: the oldest are computed once there are too many."""
    state = 3 * (4 + 4 + 4) * FLEET  # counts, losses and their rounding errors
    monkeypatch.setattr("jaxbandit.agent.core.BUDGET", 4 * state)
    agent = jb.Agent(jb.DelayedThompson(), 3, KEY, fleet=FLEET)
    with pytest.warns(UserWarning, match="4 calls have outstanding tickets .* give propensities=False"):
        tickets = [agent.act() for _ in range(10)]
    unread = [not ticket[2].is_read for ticket in tickets]
    assert unread == [False] * 6 + [True] * 4
    assert later_module.BUDGET > 2**20
    # Tickets that nobody keeps, and that are answered, hold nothing.
    agent.observe([id for ticket in tickets for id in ticket.id], 0.0)
    for _ in range(20):
        agent.observe(agent.act().id, 0.0)
    assert len(agent._core.book._later) <= 9
    del tickets
    assert sum(one() is not None for one in agent._core._unread._later) <= 9


def test_a_ticket_without_feedback_does_not_keep_the_later_ones():
    """Rejects a queue that is emptied from its oldest end only: it would grow until every call computes propensities."""
    agent = jb.Agent(jb.DelayedThompson(), 3, KEY, fleet=FLEET)
    agent.act()
    for _ in range(50):
        agent.observe(agent.act().id, 0.0)
    assert len(agent._core.book._later) <= 12
    assert len(agent.outstanding()) == FLEET
    assert not np.isnan([ticket.probability for ticket in agent.outstanding()]).any()


def test_a_single_learner(tmp_path):
    """Read later, the propensities are those of a durable agent. Rejects the state after the decision, and another arm."""

    def decisions(agent):
        tickets = []
        for number in range(9):
            tickets.append(agent.act(arm=2 if number == 4 else None, key=f"visitor {number}" if number % 2 else None))
            if number >= 2:
                agent.observe(tickets[number - 2].id, loss=float(number % 2))
            if number == 6:
                agent.withdraw(1)
        return tickets

    agent = jb.Agent(jb.DelayedThompson(), 3, KEY)
    tickets = decisions(agent)
    assert not any(ticket[2].is_read for ticket in tickets)
    agent.save(tmp_path / "agent.npz")
    with jb.Agent.open(tmp_path / "campaign.db", jb.DelayedThompson(), 3, KEY, flush=False) as durable:
        expected = decisions(durable)
        waiting = [ticket.probability for ticket in durable.outstanding()]
    assert [ticket.arm for ticket in tickets] == [ticket.arm for ticket in expected]
    np.testing.assert_allclose([ticket.probability for ticket in tickets], [one.probability for one in expected], rtol=1e-5)
    assert tickets[4].probability == 1
    assert len({round(ticket.probability, 6) for ticket in tickets}) > 4
    loaded = jb.Agent.load(tmp_path / "agent.npz", jb.DelayedThompson(), 3, KEY)
    np.testing.assert_allclose([ticket.probability for ticket in loaded.outstanding()], waiting, rtol=1e-5)
    assert loaded.act(key="visitor 1").probability == pytest.approx(expected[1].probability, rel=1e-5)
    # It is used like a number.
    ticket = agent.act()
    assert isinstance(ticket.probability, float)
    assert f"{ticket[2]:.3f}" == f"{ticket.probability:.3f}"
    assert ticket in {ticket}
    assert json.loads(json.dumps(ticket._asdict()))["probability"] == pickle.loads(pickle.dumps(ticket))[2] == float(ticket[2])
    assert 1 / ticket[2] == 1 / ticket.probability
