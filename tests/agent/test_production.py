"""Propensities, callers' keys, windows, groups, forced and withdrawn arms, readers, copies and files of earlier versions."""

import datetime
import json
import math
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.agent.tables import SCHEMA_1, Decided, Fed
from tests.agent.environment import waiting
from tests.agent.test_durable import same_from_here

KEY = jax.random.key(5)
ARMS = ["a", "b", "c"]
MEANS = np.array([0.7, 0.6, 0.5])


def opened(folder, learner=None, **more):
    return jb.Agent.open(folder / "campaign.db", learner or jb.DelayedThompson(), ARMS, KEY, flush=False, **more)


WEIGHTED = {
    "thompson": jb.DelayedThompson(),
    "tsallis-inf": jb.TsallisINF("rv"),
    "exp3": jb.Exp3(),
    "sliding-window-thompson": jb.SlidingWindowThompson(window=60),
    "discounted-thompson": jb.DiscountedThompson(0.98),
    "censored-thompson": jb.CensoredThompson(window=40),
    "thompson with a prior": jb.DelayedThompson([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]),
}


@pytest.mark.parametrize(
    "name", [name if name == "thompson" else pytest.param(name, marks=pytest.mark.thorough) for name in WEIGHTED]
)
def test_weighted_estimates(tmp_path, name):
    """400 learners, 150 rounds, delay 7: weighted by the propensities, mean losses are within 4 standard errors of the truth.

    Rejects probabilities given the learner's own draws (1 for Thompson sampling), of another round, and of another posterior.
    """
    random, fleet, rounds = np.random.default_rng(1), 400, 150
    delay, waiting = 0 if name == "thompson" else 7, []
    with opened(tmp_path, WEIGHTED[name], fleet=fleet) as agent:
        with agent.group():
            for number in range(rounds + delay):
                if number < rounds:
                    ticket = agent.act()
                    arm = np.searchsorted(ARMS, ticket.arm)
                    waiting.append((ticket.id, (random.uniform(size=fleet) < MEANS[arm]).astype(float)))
                if number >= delay:
                    agent.observe(*waiting[number - delay])
        found, frame = agent.estimate(), agent.export()
    assert (abs(found.mean - MEANS) < 4 * found.error).all(), found
    assert (found.error < 0.05).all()
    assert found.answered.sum() == fleet * rounds
    # The plain weights, run by run: runs are independent.
    for number, arm in enumerate(ARMS):
        weighted = (frame.arm == arm) / frame.probability
        for terms, truth in ((weighted, 1), (weighted * frame.loss, MEANS[number])):
            each = terms.groupby(frame.run).mean()
            assert abs(each.mean() - truth) < 4 * each.std() / math.sqrt(fleet)


@pytest.mark.thorough
def test_which_learners_know_their_propensities():
    for learner, known in ((jb.DelayedThompson(), True), (jb.DelayedUCB1(), True), (jb.QPMD(jb.TsallisINF(), capacity=8), False)):
        agent = jb.Agent(learner, 3, KEY)
        assert math.isnan(agent.act().probability) != known
        if type(learner) is jb.DelayedThompson:
            assert agent.act().probability == pytest.approx(1 / 3, rel=1e-3)
    assert math.isnan(jb.Agent(jb.DelayedThompson(), 3, KEY, propensities=False).act().probability)


def test_estimates_that_the_log_does_not_support(tmp_path):
    """UCB is deterministic: the weights of its arms do not have mean 1."""
    with opened(tmp_path, jb.DelayedUCB1()) as agent:
        for i in range(60):
            agent.observe(agent.act().id, float(i % 3 > 0))
        assert np.isnan(agent.estimate().mean).any()
    with pytest.raises(ValueError, match="this agent is in memory and keeps no log"):
        jb.Agent(jb.DelayedUCB1(), 2, KEY).estimate()


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "in memory"])
def test_a_key_gives_the_same_ticket(tmp_path, durable):
    agent = opened(tmp_path) if durable else jb.Agent(jb.DelayedThompson(), ARMS, KEY)
    first = agent.act(key="request 1")
    assert first.key == "request 1"
    assert first.time > 1e9
    second = agent.act(key="request 2")
    agent.observe(first.id, 0.5)
    assert agent.act(key="request 1") == first
    both = agent.act(key=["request 3", "request 2"])
    assert both.id == [3, 2]
    assert both.key == ["request 3", "request 2"]
    assert agent.outstanding()[0] == second
    if durable:
        agent._journal.close()  # as if the process had died
        agent = opened(tmp_path)
    else:
        agent.save(tmp_path / "agent.npz")
        agent = jb.Agent.load(tmp_path / "agent.npz", jb.DelayedThompson(), ARMS, KEY)
    assert agent.act(key="request 1") == first
    assert agent.outstanding()[0] == second
    assert agent.rounds == 3
    for key in ("", 7, ["x", "x"], ["x", 3]):
        with pytest.raises(ValueError, match=r"act\(key="):
            agent.act(key=key)
    agent.close()


def test_keys_of_a_fleet(tmp_path):
    with opened(tmp_path, fleet=3) as agent:
        ticket = agent.act([2, 0], key=["x", "y"])
        again = agent.act([2, 1, 0], key=["x", "z", "y"])
        assert again.id.tolist() == [1, 3, 2]
        assert again.run.tolist() == [2, 1, 0]
        np.testing.assert_array_equal(again.arm[[0, 2]], ticket.arm)
        with pytest.raises(ValueError, match="this key belongs to a decision of run 2, not 1"):
            agent.act([1], key=["x"])


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "in memory"])
def test_a_window(tmp_path, durable):
    agent = opened(tmp_path) if durable else jb.Agent(jb.DelayedThompson(), ARMS, KEY)
    other = jb.Agent(jb.DelayedThompson(), ARMS, KEY)
    tickets = [agent.act() for _ in range(4)]
    for _ in range(4):
        other.act()
    now = tickets[-1].time
    agent.observe(2, reward=1.0)
    assert agent.close_window(datetime.timedelta(days=7), now=now) == 0
    assert agent.close_window(datetime.timedelta(days=7), now=now + 8 * 86400) == 3
    other.observe([1, 2, 3, 4], reward=[0, 1, 0, 0])
    agent.observe([3], reward=1.0)  # late: kept, and not learned from
    with pytest.raises(jb.TicketError, match="its feedback is already in"):
        agent.observe(3, reward=1.0)
    with pytest.raises(jb.TicketError, match="its feedback is already in"):
        agent.observe([2, 4], reward=1.0)
    assert not agent.outstanding()
    if durable:
        frame = agent.export()
        assert frame.status.tolist() == ["closed", "answered", "closed", "closed"]
        assert frame.late_loss.isna().tolist() == [True, True, False, True]
        assert frame.time.dt.year.min() >= 2024
        agent._journal.close()
        agent = opened(tmp_path)
    same_from_here(agent, other, 5)
    for wrong in (-1, "7d", None, True):
        with pytest.raises(ValueError, match=r"close_window\(older_than="):
            agent.close_window(wrong)
    assert agent.close_window(0, reward=None, now=now + 10) == 0
    agent.close()


def test_groups_are_kept_as_a_whole(tmp_path):
    agent, other = opened(tmp_path), jb.Agent(jb.DelayedThompson(), ARMS, KEY)
    other.act(count=5)
    with agent.group():
        assert agent.act(count=3).id == [1, 2, 3]
        agent.act(count=2)

    def fail():
        with agent.group():
            agent.act()
            agent.observe(1, 1.0)
            raise KeyError("a fault of the caller's")

    with pytest.raises(KeyError):
        fail()
    assert waiting(agent) == waiting(other)
    assert repr(agent) == repr(other)
    same_from_here(agent, other, 4)
    agent.close()
    with opened(tmp_path) as agent:
        same_from_here(agent, other, 2)


def test_forced_arms(tmp_path):
    agent = opened(tmp_path)
    tickets = [agent.act(arm="b") for _ in range(3)]
    assert [ticket.arm for ticket in tickets] == ["b"] * 3
    assert [ticket.probability for ticket in tickets] == [1.0] * 3
    agent.observe([1, 2, 3], 1.0)
    follows = agent.act()
    agent._journal.close()
    agent = opened(tmp_path)
    assert agent.outstanding() == [follows]
    assert agent.export().forced.tolist() == [True, True, True, False]
    for wrong in ("d", 1, ["a", "b"]):
        with pytest.raises(ValueError, match=r"act\(arm="):
            agent.act(arm=wrong)
    agent.close()


@pytest.mark.parametrize(
    "learner",
    [jb.DelayedThompson(), jb.DelayedUCB1(), jb.Exp3(), jb.TsallisINF(), jb.CensoredThompson(20), jb.CensoredKLUCB(20)],
    ids=lambda learner: type(learner).__name__,
)
def test_a_withdrawn_arm_is_never_drawn(tmp_path, learner):
    agent = opened(tmp_path, learner)
    for _ in range(10):
        ticket = agent.act()
        agent.observe(ticket.id, float(ticket.arm != "b"))
    agent.withdraw("b")
    assert {agent.act().arm for _ in range(15)} <= {"a", "c"}
    with pytest.raises(ValueError, match="this arm was withdrawn"):
        agent.act(arm="b")
    with pytest.raises(ValueError, match="this arm is withdrawn already"):
        agent.withdraw("b")
    left = agent.outstanding()
    agent._journal.close()
    agent = opened(tmp_path, learner)
    assert agent.outstanding() == left
    ticket = agent.act()
    assert ticket.arm in ("a", "c")
    assert 0 < ticket.probability <= 1
    agent.withdraw("a")
    assert agent.act().arm == "c"
    with pytest.raises(ValueError, match="this arm is the last one"):
        agent.withdraw("c")
    agent.close()


def test_learners_that_need_every_arm():
    agent = jb.Agent(jb.BOLD(jb.DelayedUCB1(), capacity=8), 3, KEY)
    with pytest.raises(ValueError, match=r"withdraw\(\): BOLD decides by rules that need every arm; start a new agent"):
        agent.withdraw(1)
    agent.act()


def test_a_restart_with_a_new_arm(tmp_path):
    """The sums of the old log are the prior of the new agent; the new arm has none."""
    with opened(tmp_path) as agent:
        for i in range(12):
            agent.observe(agent.act().id, float(i % 3 == 0))
        losses, rewards = agent.counts()
    assert losses.sum() + rewards.sum() == 12
    learner = jb.DelayedThompson(prior_losses=[*losses, 0.0], prior_rewards=[*rewards, 0.0])
    (tmp_path / "new").mkdir()
    with jb.Agent.open(tmp_path / "new" / "campaign.db", learner, [*ARMS, "d"], KEY, flush=False) as new:
        new.observe(new.act(arm="d").id, 0.25)
        again = new.counts()  # a second restart has the counts of both campaigns
    np.testing.assert_allclose(again, [[*losses, 0.25], [*rewards, 0.75]])
    # The draws are those of a learner that has observed the old log: both posteriors are Beta(1 + losses, 1 + rewards).
    fresh, other = (jb.Agent(jb.DelayedThompson(), ARMS, KEY), jb.Agent(jb.DelayedThompson([2.0, 0, 1], [1.0, 0, 3]), ARMS, KEY))
    for arm, loss in (("a", 1.0), ("a", 1.0), ("a", 0.0), ("c", 1.0), *[("c", 0.0)] * 3):
        fresh.observe(fresh.act(arm=arm).id, loss)
    other.act(count=7)
    assert [fresh.act().arm for _ in range(20)] == [other.act().arm for _ in range(20)]
    sure = jb.DelayedThompson(prior_losses=[0.0, 1e4, 1e4], prior_rewards=[1e4, 0.0, 0.0])
    agent = jb.Agent(sure, 3, KEY, propensities=False)
    assert {agent.act().arm for _ in range(9)} == {0}
    with pytest.raises(ValueError, match="2 numbers for 3 arms; give one for each arm"):
        jb.Agent(jb.DelayedThompson(prior_losses=[1.0, 0.0]), 3, KEY)
    with pytest.raises(ValueError, match="prior_losses"):
        jb.Agent(jb.DelayedThompson(prior_losses=[-1.0, 0.0]), 2, KEY)


def test_readers_and_copies(tmp_path):
    """While the agent works, any program can read the file, and a copy of the agent can be opened."""
    agent = opened(tmp_path)
    agent.act(count=20)
    reader = sqlite3.connect(f"file:{tmp_path / 'campaign.db'}?mode=ro", uri=True)
    assert reader.execute("SELECT count(*) FROM decision").fetchone() == (20,)
    agent.act()
    assert reader.execute("SELECT count(*) FROM decision").fetchone() == (21,)
    agent.backup(tmp_path / "copy.db")
    with pytest.raises(FileExistsError, match=r"copy.db'\): the file exists; give another name"):
        agent.backup(tmp_path / "copy.db")
    reader.close()
    with jb.Agent.open(tmp_path / "copy.db", jb.DelayedThompson(), ARMS, KEY, flush=False) as copy:
        assert copy.outstanding() == agent.outstanding()
        same_from_here(agent, copy, 3)
    agent.close()
    assert not [file for file in tmp_path.iterdir() if "draft" in file.name]


def test_a_file_of_the_first_format(tmp_path):
    """It is brought to the present format in place: tables as version 0.1 wrote them, in the middle of a campaign."""
    path, made = tmp_path / "campaign.db", (jb.DelayedThompson(), ARMS, KEY)
    other = jb.Agent(*made)
    drawn = [other.act() for _ in range(8)]
    other.observe([2, 5], [1.0, 0.0])
    other.expire(3)
    with jb.Agent.open(path, *made, flush=False) as agent:
        about = agent._about | {"learner": "d12aa298c5e969d5"}
    path.unlink()
    old = sqlite3.connect(path)
    old.executescript(SCHEMA_1)
    old.execute("INSERT INTO about VALUES (?)", (json.dumps(about),))
    for ticket in drawn:
        row = Decided(ticket.id, 0, ticket.round, ARMS.index(ticket.arm), 1.0, 1.7e9, None, None, None)
        old.execute("INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?, ?)", (*row[:6], row.checksum()))
    for row in (Fed(2, 1.0, 8, 1.7e9), Fed(5, 0.0, 8, 1.7e9), Fed(3, None, 8, 1.7e9)):
        old.execute("INSERT INTO feedback VALUES (?, ?, ?, ?, ?)", (*row[:4], row.checksum()))
    old.commit()
    old.close()
    agent = jb.Agent.open(path, *made, flush=False)
    assert [ticket[:2] for ticket in agent.outstanding()] == [ticket[:2] for ticket in other.outstanding()]
    same_from_here(agent, other, 5)
    assert agent.act(key="new").key == "new"
    agent.close()
    reopened = jb.Agent.open(path, *made, flush=False)
    assert reopened.rounds == 14
    reopened.close()


@pytest.mark.parametrize(
    ("kills", "calls"), [pytest.param(2, 60, marks=pytest.mark.thorough), pytest.param(100, 4000, marks=pytest.mark.slow)]
)
def test_callers_with_keys_while_the_agent_is_killed(tmp_path, kills, calls):
    """Every decision has a caller, none has two, and the agent itself recovers the write-ahead log of its predecessor."""
    answers, random = tmp_path / "answers", np.random.default_rng(0)
    answers.touch()
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "tests.agent.callers",
        str(tmp_path / "campaign.db"),
        str(answers),
        str(calls),
    ]
    killed = hot = 0
    log = tmp_path / "campaign.db-wal"
    while not answers.read_bytes().endswith(b"done\n"):
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2])
        if killed < kills:
            wanted = answers.read_bytes().count(b"\n") + random.integers(1, 2 * calls // (3 * kills))
            while answers.read_bytes().count(b"\n") < wanted and process.poll() is None:
                time.sleep(0.0005)
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
            hot += log.exists() and log.stat().st_size > 0
        else:
            assert process.wait(300) == 0
    assert killed >= kills
    assert hot >= kills  # each kill left a write-ahead log, which the next agent recovered
    told = dict(line.split()[:2] for line in answers.read_text().splitlines()[:-1])
    database = sqlite3.connect(tmp_path / "campaign.db")
    decided = database.execute("SELECT key, id FROM decision").fetchall()
    database.close()
    assert {key: int(id) for key, id in told.items()} == dict(decided)
    assert len(decided) == len(told) == calls
