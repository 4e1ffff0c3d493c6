"""Agents on disk: killed at any moment and opened again, saved and loaded, two on one file, files that are something else."""

import json
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
from jaxbandit.agent import agent as agent_module
from tests.agent import campaign
from tests.agent.environment import Environment, play_fleet, waiting

KEY = jax.random.key(5)
LOSSES, DELAYS = jb.losses.Bernoulli(np.array([0.3, 0.5, 0.6], np.float32)), jb.delays.Geometric(3.0, bound=8)


def run_and_kill(folder, rounds, kills, random):
    """Start the campaign, kill it after some answers, and so on; returns all lines it answered."""
    answers = folder / "answers"
    answers.touch()
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "tests.agent.campaign",
        str(folder / "campaign.db"),
        str(answers),
        str(rounds),
    ]
    killed = 0
    while True:
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2])
        if killed < kills:
            # Some way into the work, at no particular moment of it; sometimes before the file is open again.
            wanted = answers.read_bytes().count(b"\n") + random.integers(0, max(2 * rounds // kills, 2))
            while answers.read_bytes().count(b"\n") < wanted and process.poll() is None:
                time.sleep(0.001)
            time.sleep(random.uniform(0, 0.003))
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
        else:
            assert process.wait(300) == 0
            return answers.read_text().splitlines()


@pytest.mark.parametrize(
    ("kills", "rounds"), [pytest.param(2, 100, marks=pytest.mark.thorough), pytest.param(50, 3000, marks=pytest.mark.slow)]
)
def test_killed_at_any_moment(tmp_path, kills, rounds):
    lines = run_and_kill(tmp_path, rounds, kills, np.random.default_rng(0))
    answered = [line.split() for line in lines]
    assert lines[-1] == "done"

    database = sqlite3.connect(tmp_path / "campaign.db")
    decisions = database.execute("SELECT id, arm, probability FROM decision ORDER BY id").fetchall()
    feedback = dict(database.execute("SELECT ticket, loss FROM feedback").fetchall())
    database.close()

    # Nothing answered is lost.
    on_disk = {(str(i), campaign.ARMS[arm], float(probability).hex()) for i, arm, probability in decisions}
    assert {tuple(line[1:]) for line in answered if line[0] == "decided"} <= on_disk
    assert {int(line[1]) for line in answered if line[0] == "observed"} <= {i for i, loss in feedback.items() if loss is not None}
    assert {int(line[1]) for line in answered if line[0] == "expired"} <= {i for i, loss in feedback.items() if loss is None}

    # And the path is that of an agent that nobody killed.
    whole, path = jb.Agent(campaign.LEARNER, campaign.ARMS, campaign.KEY), {}
    campaign.go_on(whole, rounds, lambda what, number, *drawn: path.setdefault(number, drawn) if what == "decided" else None)
    assert [(i, (campaign.ARMS[arm], float(p).hex())) for i, arm, p in decisions] == sorted(path.items())


def same_from_here(one, two, rounds=20):
    for _ in range(rounds):
        mine, theirs = one.act(), two.act()
        # A durable agent computes a propensity with the decision, another one when it is read: two programs, which may round differently.
        assert (mine.id, mine.arm, mine.round, mine.run) == (theirs.id, theirs.arm, theirs.round, theirs.run)
        assert mine.probability == pytest.approx(theirs.probability, rel=1e-6, nan_ok=True)
        for agent in (one, two):
            agent.observe(mine.id, 0.25 * (mine.id % 5 == 0))
    np.testing.assert_array_equal(one.probabilities, two.probabilities)


@pytest.mark.parametrize(
    "learner",
    [jb.TsallisINF("rv"), jb.DelayedThompson(), jb.ZimmertSeldin(skipping=True), jb.BOLD(jb.TsallisINF(), capacity=40)],
    ids=["rv", "thompson", "skipping", "bold"],
)
def test_saved_and_loaded(tmp_path, learner):
    agent = jb.Agent(learner, 3, KEY)
    for _ in range(10):
        agent.act()
    agent.observe([2, 5, 9], [0.1, 0.9, 1.0])
    agent.act()
    agent.observe([1, 6], reward=[0.0, 0.5])
    agent.expire(3)
    agent.save(tmp_path / "agent.npz")
    loaded = jb.Agent.load(tmp_path / "agent.npz", learner, 3, KEY)
    assert waiting(loaded) == waiting(agent)
    np.testing.assert_array_equal(loaded.probabilities, agent.probabilities)
    with pytest.raises(jb.TicketError, match="has expired"):
        loaded.observe(3, 0.5)
    same_from_here(agent, loaded)


@pytest.mark.parametrize("every", [1, 7, 1000])
def test_opened_again_wherever_the_snapshot_was(tmp_path, monkeypatch, every):
    """Without closing: from the last snapshot, whenever that was, with feedback before and after it."""
    monkeypatch.setattr(agent_module.Agent, "_snapshot_due", lambda self: every)
    path, learner = tmp_path / "campaign.db", jb.ZimmertSeldin(skipping=True)
    agent, other = jb.Agent.open(path, learner, 3, KEY, flush=False), jb.Agent(learner, 3, KEY)
    random = np.random.default_rng(1)
    for _ in range(6):
        for one in (agent, other):
            for _ in range(5):
                one.act()
        ids = [ticket.id for ticket in agent.outstanding()]
        late, gone, *_ = random.permutation(ids).tolist()
        for one in (agent, other):
            one.observe(late, 0.5)
            one.expire(gone)
        agent._journal.close()  # as if the process had died: no last snapshot
        agent = jb.Agent.open(path, learner, 3, KEY, flush=False)
        assert waiting(agent) == waiting(other)
    same_from_here(agent, other)
    agent.close()


@pytest.mark.thorough
def test_a_durable_fleet(tmp_path):
    environment, path = Environment(LOSSES, DELAYS, KEY), tmp_path / "fleet.db"

    def opened():
        return jb.Agent.open(path, jb.TsallisINF("rv"), 3, KEY, fleet=5, flush=False)

    agent, whole = opened(), jb.Agent(jb.TsallisINF("rv"), 3, KEY, fleet=5)
    play_fleet(agent, environment, 15, np.random.default_rng(2), part=0.6)
    play_fleet(whole, environment, 15, np.random.default_rng(2), part=0.6)
    agent._journal.close()
    agent = opened()
    assert waiting(agent) == waiting(whole)
    mine, theirs = agent.act([4, 0]), whole.act([4, 0])
    for one, two in zip(mine[:5], theirs[:5], strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(agent.probabilities, whole.probabilities)
    agent.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE feedback SET loss = 0.0 WHERE ticket = 2", "feedback of ticket 2 is not what was written"),
        ("UPDATE feedback SET after = 2 WHERE ticket = 2", "feedback of ticket 2 is not what was written"),
        ("UPDATE decision SET arm = 1 - arm WHERE id = 3", "decision 3 is not what was written"),
        ("UPDATE decision SET round = 'one' WHERE id = 1", "decision 1 is not what was written"),
        ("UPDATE decision SET checksum = NULL WHERE id = 1", "decision 1 is not what was written"),
    ],
)
def test_a_changed_row_is_found(tmp_path, change, message):
    made = (jb.TsallisINF(), 2, KEY)
    agent = jb.Agent.open(tmp_path / "campaign.db", *made, flush=False)
    for _ in range(4):
        agent.act()
    agent.observe([1, 2], [0, 1])
    agent._journal.close()  # as if the process had died: all of it is played again
    with jb.Agent.open(tmp_path / "campaign.db", *made, flush=False) as agent:
        assert agent.rounds == 4
        agent._journal._connection.execute("DELETE FROM snapshot")
        agent._journal.close()
        agent._journal = None
    with sqlite3.connect(tmp_path / "campaign.db") as database:
        assert database.execute(change).rowcount == 1
    database.close()
    with pytest.raises(ValueError, match=f"the file is damaged: {message}"):
        jb.Agent.open(tmp_path / "campaign.db", *made)


def test_a_second_process_gets_a_sentence(tmp_path):
    path = tmp_path / "campaign.db"
    code = f"import jax, jaxbandit as jb; jb.Agent.open({str(path)!r}, jb.Uniform(), 2, jax.random.key(5))"
    with jb.Agent.open(path, jb.Uniform(), 2, KEY, flush=False) as agent:
        agent.act()
        second = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
        assert "another agent has this file open; one at a time can decide" in second.stderr.splitlines()[-1]
        with pytest.raises(RuntimeError, match="another agent has this file open"):
            jb.Agent.open(path, jb.Uniform(), 2, KEY)
        assert agent.act().id == 2
    with pytest.raises(ValueError, match="this agent is closed"):
        agent.act()
    with jb.Agent.open(path, jb.Uniform(), 2, KEY, flush=False) as agent:
        assert agent.rounds == 2


def test_a_full_disk_changes_nothing(tmp_path, monkeypatch):
    agent = jb.Agent.open(tmp_path / "campaign.db", jb.TsallisINF(), 2, KEY, flush=False)
    other = jb.Agent(jb.TsallisINF(), 2, KEY)
    agent.act()
    other.act()
    pages = agent._journal._connection.execute("PRAGMA page_count").fetchone()[0]
    agent._journal._connection.execute(f"PRAGMA max_page_count = {pages}")

    def fill():
        for _ in range(2000):
            agent.act()
            other.act()

    with pytest.raises(OSError, match="no room on the disk, nothing of this call was kept; make room and call again"):
        fill()
    agent._journal._connection.execute("PRAGMA max_page_count = 100000")
    assert agent.rounds == other.rounds
    same_from_here(agent, other, 3)
    agent.close()


OTHERS = {
    "learner": dict(learner=jb.TsallisINF("rv")),
    "hyperparameter": dict(learner=jb.TsallisINF(scale=2.0)),
    "arms": dict(arms=["x", "z"]),
    "key": dict(key=jax.random.key(6)),
    "fleet": dict(fleet=2),
    "first_run": dict(first_run=1),
}


@pytest.mark.parametrize("what", OTHERS)
def test_another_agent_on_the_file(tmp_path, what):
    made = dict(learner=jb.TsallisINF(), arms=["x", "y"], key=KEY)
    with jb.Agent.open(tmp_path / "campaign.db", **made, flush=False) as agent:
        agent.act()
        agent.save(tmp_path / "agent.npz")
    before = (tmp_path / "campaign.db").read_bytes()
    name = "learner" if what == "hyperparameter" else what
    for load, file in ((jb.Agent.open, "campaign.db"), (jb.Agent.load, "agent.npz")):
        with pytest.raises(ValueError, match=f"{file}'.: the file was made with another {name}"):
            load(tmp_path / file, **{**made, **OTHERS[what]})
    assert (tmp_path / "campaign.db").read_bytes() == before


def test_files_that_are_something_else(tmp_path):
    (tmp_path / "notes.txt").write_text("not a database, but long enough to be read as the header of one " * 20)
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE things (name TEXT)")
    other.commit()
    other.close()
    made = (jb.Uniform(), 2, KEY)
    with pytest.raises(ValueError, match=r"this is not a file written by Agent.open"):
        jb.Agent.open(tmp_path / "notes.txt", *made)
    with pytest.raises(ValueError, match=r"this database is not one written by Agent.open"):
        jb.Agent.open(tmp_path / "other.db", *made)
    jb.Agent.open(tmp_path / "changed.db", *made, flush=False).close()
    changed = sqlite3.connect(tmp_path / "changed.db")
    changed.execute("ALTER TABLE decision RENAME COLUMN probability TO chance")
    changed.close()
    with pytest.raises(ValueError, match=r"the file is damaged, or was not written by Agent.open"):
        jb.Agent.open(tmp_path / "changed.db", *made)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        jb.Agent.open(tmp_path / "nowhere" / "campaign.db", *made)
    with pytest.raises(OSError, match="cannot be opened"):
        jb.Agent.open(tmp_path, *made)
    with pytest.raises(ValueError, match=r"not a file written by Agent.save"):
        jb.Agent.load(tmp_path / "notes.txt", *made)
    with pytest.raises(FileNotFoundError):
        jb.Agent.load(tmp_path / "missing.npz", *made)
    assert "not a database" in (tmp_path / "notes.txt").read_text()

    jb.Agent(*made).save(tmp_path / "agent.npz")
    with np.load(tmp_path / "agent.npz") as file:
        arrays = dict(file)
    arrays["about"] = np.array(json.dumps({**json.loads(str(arrays["about"])), "format": 99}))
    np.savez(tmp_path / "newer.npz", **arrays)
    with pytest.raises(ValueError, match="format 99 is not known here; this version reads format 1"):
        jb.Agent.load(tmp_path / "newer.npz", *made)


def test_what_cannot_be_opened_or_held(tmp_path):
    with pytest.raises(TypeError, match=r"Agent.open\(None\): path is the name of a file"):
        jb.Agent.open(None, jb.DelayedUCB1(), 3, KEY)
    with pytest.raises(ValueError, match=r"arms=8000000: 1000000 learners with so many arms need [\d,]+ GB of memory"):
        jb.Agent(jb.DelayedUCB1(), 8 * 10**6, KEY, fleet=10**6)
