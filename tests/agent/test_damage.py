"""Files that are damaged, deleted or on a full disk while an agent uses them, and paths that name no file."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.agent import agent as agent_module
from tests.agent.environment import waiting
from tests.agent.test_durable import same_from_here

KEY = jax.random.key(5)
MADE = (jb.DelayedUCB1(), 3, KEY)


def play(agent, rounds):
    for _ in range(rounds):
        ticket = agent.act()
        if ticket.id % 3:
            agent.observe(ticket.id, (ticket.id % 4) / 3)


def change(path, statement, *values):
    with sqlite3.connect(path) as database:
        database.execute(statement, values)
    database.close()


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """A file whose snapshot holds the first 40 of 60 decisions, and an agent in memory that made the same ones."""
    path = tmp_path_factory.mktemp("closed") / "campaign.db"
    with jb.Agent.open(path, *MADE, flush=False) as agent:
        play(agent, 40)
    agent = jb.Agent.open(path, *MADE, flush=False)
    play(agent, 20)
    agent._journal.close()
    return path


def tried(call):
    """The agent, or the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(), None
    except (ValueError, OSError, RuntimeError) as error:
        return None, str(error)


def in_memory(rounds=60):
    agent = jb.Agent(*MADE)
    play(agent, rounds)
    return agent


SNAPSHOTS = {
    "not a zip": lambda whole: b"not a zip file",
    "cut": lambda whole: whole[: len(whole) // 2],
    "a bit": lambda whole: whole[:700] + bytes([whole[700] ^ 1]) + whole[701:],
    "text": lambda whole: "text",
}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_damaged_snapshot_is_replaced_by_the_log(tmp_path, closed, name):
    path = Path(shutil.copy(closed, tmp_path))
    database = sqlite3.connect(path)
    (whole,) = database.execute("SELECT arrays FROM snapshot").fetchone()
    database.close()
    change(path, "UPDATE snapshot SET arrays = ?", SNAPSHOTS[name](whole))
    with pytest.warns(UserWarning, match=r"campaign.db'\): the snapshot is damaged; all 60 decisions are replayed"):
        agent = jb.Agent.open(path, *MADE, flush=False)
    other = in_memory()
    assert waiting(agent) == waiting(other)
    same_from_here(agent, other, 5)
    agent.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jb.Agent.open(path, *MADE, flush=False).close()  # closing has written a good snapshot


CHANGES = {
    "about is not JSON": ("UPDATE about SET content = '{'", "its table about does not describe an agent"),
    "about is a list": ("UPDATE about SET content = '[1]'", "its table about does not describe an agent"),
    "about is empty": ("DELETE FROM about", "its table about does not describe an agent"),
    "a decision is missing": ("DELETE FROM decision WHERE id = 50", "some of its rows cannot be read"),
    "a decision has another id": ("UPDATE decision SET id = 0 WHERE id = 50", "decision 50 is missing"),
    "the last decisions are missing": ("DELETE FROM decision WHERE id > 30", "of 40 decisions 30 are left"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_damage_that_cannot_be_repaired(tmp_path, closed, name):
    path, (statement, message) = Path(shutil.copy(closed, tmp_path)), CHANGES[name]
    change(path, statement)
    with pytest.raises(ValueError, match=rf"campaign.db'\): the file is damaged: {message}.*; restore a copy of it"):
        jb.Agent.open(path, *MADE)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 11))])
def test_random_damage(tmp_path, closed, seed):
    """Bytes changed anywhere, or the end cut off: the same agent, or an error that names the file. Never another agent."""
    random, whole, other = np.random.default_rng(seed), closed.read_bytes(), in_memory()
    open_ones, following, refused = waiting(other), other.act(), 0
    for number in range(20):
        content = bytearray(whole)
        if number % 5 == 0:
            del content[random.integers(len(content)) :]
        else:
            for place in random.integers(0, len(content), random.integers(1, 30)).tolist():
                content[place] = random.integers(256)
        path = tmp_path / f"campaign{number}.db"
        path.write_bytes(content)
        agent, error = tried(lambda path=path: jb.Agent.open(path, *MADE, flush=False))
        if agent is None:
            assert path.name in error
            assert "\n" not in error
            refused += 1
            continue
        if len(content) == 0:
            assert agent.rounds == 0  # an empty file is a new one
        else:
            assert waiting(agent) == open_ones
            assert agent.act()[:5] == following[:5]
            np.testing.assert_array_equal(agent.probabilities, other.probabilities)
        agent.close()
    assert refused


def test_a_damaged_saved_agent(tmp_path):
    play(agent := jb.Agent(*MADE), 30)
    agent.save(tmp_path / "agent.npz")
    whole, random = (tmp_path / "agent.npz").read_bytes(), np.random.default_rng(0)
    for number in range(12):
        content = bytearray(whole)
        for place in random.integers(0, len(content), 3).tolist():
            content[place] = random.integers(256)
        path = tmp_path / f"agent{number}.npz"
        path.write_bytes(content[: random.integers(len(content))] if number % 5 == 0 else content)
        loaded, error = tried(lambda path=path: jb.Agent.load(path, *MADE))
        if loaded is None:
            assert path.name in error
        else:
            assert waiting(loaded) == waiting(agent)
    for content in ("[1]", "null", "{", "7"):
        arrays = dict(np.load(tmp_path / "agent.npz")) | {"about": np.array(content)}
        np.savez(tmp_path / "other.npz", **arrays)
        with pytest.raises(ValueError, match=r"other.npz'\): this is not a file written by Agent.save"):
            jb.Agent.load(tmp_path / "other.npz", *MADE)


def test_a_deleted_write_ahead_log(tmp_path):
    """It is written again: the files on disk hold every decision that was answered after it was deleted."""
    path, other = tmp_path / "campaign.db", in_memory(10)
    agent = jb.Agent.open(path, *MADE, flush=False)
    play(agent, 10)
    for number in range(3):
        os.unlink(f"{path}-wal")
        if number == 1:
            Path(f"{path}-wal").write_bytes(b"something else")
        play(agent, 7)
        play(other, 7)
        (tmp_path / "copy").mkdir()
        for file in tmp_path.glob("campaign.db*"):
            shutil.copy(file, tmp_path / "copy")
        copy = jb.Agent.open(tmp_path / "copy" / "campaign.db", *MADE, flush=False)  # as if the process had died
        assert waiting(copy) == waiting(other)
        copy.close()
        shutil.rmtree(tmp_path / "copy")
    same_from_here(agent, other, 5)
    agent.close()


def test_a_file_moved_away(tmp_path):
    agent, other = jb.Agent.open(tmp_path / "campaign.db", *MADE, flush=False), in_memory(3)
    play(agent, 3)
    (tmp_path / "campaign.db").rename(tmp_path / "moved.db")
    for call in (agent.act, lambda: agent.observe(3, 0.5), lambda: agent.expire(3)):
        with pytest.raises(OSError, match=r"campaign.db'\): the file was removed or replaced .* nothing of this call was kept"):
            call()
    agent.save(tmp_path / "agent.npz")
    same_from_here(jb.Agent.load(tmp_path / "agent.npz", *MADE), in_memory(3), 3)
    (tmp_path / "moved.db").rename(tmp_path / "campaign.db")
    same_from_here(agent, other, 3)
    agent.close()


def test_a_snapshot_without_room(tmp_path, monkeypatch):
    """The decision is returned and kept; close() releases the file."""
    monkeypatch.setattr(agent_module.Agent, "_snapshot_due", lambda self: 1)
    path, learner = tmp_path / "campaign.db", jb.DelayedUCB1()
    agent = jb.Agent.open(path, learner, 50, KEY, fleet=200, flush=False)
    pages = agent._journal._connection.execute("PRAGMA page_count").fetchone()[0]
    agent._journal._connection.execute(f"PRAGMA max_page_count = {pages + 6}")
    ticket = agent.act()
    assert ticket.id.tolist() == list(range(1, 201))
    agent.observe(ticket.id[:3], 0.5)
    agent.close()
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(*) FROM snapshot").fetchone() == (0,)
    database.close()
    with jb.Agent.open(path, learner, 50, KEY, fleet=200, flush=False) as agent:
        assert len(agent.outstanding()) == 197


PATHS = {
    "empty": ("", "the path is empty"),
    "memory": (":memory:", "this is not the name of a file on disk"),
    "URI": ("file:x.db?mode=memory", "this is not the name of a file on disk"),
    "NUL": ("a\0b", "the path contains a NUL byte"),
}


@pytest.mark.parametrize("name", PATHS)
def test_paths_that_name_no_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    path, message = PATHS[name]
    with pytest.raises(ValueError, match=message):
        jb.Agent.open(path, *MADE)
    if name in ("empty", "NUL"):
        with pytest.raises(ValueError, match=rf"Agent.save.*: {message}; give the name of a file, such as 'agent.npz'"):
            jb.Agent(*MADE).save(path)
        with pytest.raises(ValueError, match=rf"Agent.load.*: {message}"):
            jb.Agent.load(path, *MADE)
    assert not list(tmp_path.iterdir())


def test_paths_that_are_no_text(tmp_path):
    agent = jb.Agent(*MADE)
    for path in (None, 3, b"agent.npz"):
        with pytest.raises(TypeError, match=r"Agent.save\(.*\): path is the name of a file, such as 'agent.npz'"):
            agent.save(path)
        with pytest.raises(TypeError, match=r"Agent.load\(.*\): path is the name of a file"):
            jb.Agent.load(path, *MADE)
        with pytest.raises(TypeError, match=r"Agent.open\(.*\): path is the name of a file"):
            jb.Agent.open(path, *MADE)
    with pytest.raises(FileNotFoundError, match=r"missing.npz'\): there is no such file"):
        jb.Agent.load(tmp_path / "missing.npz", *MADE)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        jb.Agent.load(tmp_path, *MADE)


def test_too_many_arms():
    """Refused at once: most of them could never be drawn."""
    with pytest.raises(ValueError, match=r"arms=100000000: an agent has at most 2\*\*23 arms"):
        jb.Agent(jb.DelayedUCB1(), 10**8, KEY)


@pytest.mark.parametrize("value", [True, np.True_, [False]])
def test_truth_values_are_not_losses(value):
    agent = jb.Agent(*MADE)
    agent.act()
    for name in ("loss", "reward"):
        with pytest.raises(ValueError, match=rf"observe\({name}=.*: a {name} is a number between 0 and 1, not True or False"):
            agent.observe([1], **{name: value})
    assert len(agent.outstanding()) == 1


KILLED = """
import os, signal, sys, jax, jaxbandit as jb
left = int(sys.argv[1])
def around(function):
    def wrapped(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return wrapped
agent = jb.Agent.load(sys.argv[2], jb.DelayedUCB1(), 3, jax.random.key(5))
agent.act()
os.fsync, os.replace = around(os.fsync), around(os.replace)
agent.save(sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 2, 3])
def test_killed_while_saving(tmp_path, step):
    """Before the bytes are on disk, before the rename, and between the rename and the fsync of the folder."""
    path = tmp_path / "agent.npz"
    in_memory(5).save(path)
    line = [sys.executable, "-W", "ignore", "-c", KILLED, str(step), str(path)]
    killed = subprocess.run(line, capture_output=True, text=True, check=False, timeout=300, cwd=Path(__file__).parents[2])
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert jb.Agent.load(path, *MADE).rounds == (6 if step == 3 else 5)
