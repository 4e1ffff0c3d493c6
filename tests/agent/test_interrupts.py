"""Exceptions at any moment of a call: the agent, its memory and its file stay consistent."""

import shutil
import signal
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import agent as agent_package
from tests.agent.environment import waiting
from tests.agent.test_durable import same_from_here

KEY = jax.random.key(5)
FOLDER = str(Path(agent_package.__file__).parent)
MOMENTS = 400  # more lines than a call executes


def interrupted(call, moment):
    """Call, with a KeyboardInterrupt before the given line of the agent's code; the exception, or None if there is no such line."""
    left = moment

    def trace(frame, event, argument):
        nonlocal left
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        if event == "line":
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.settrace(before)
    return None


def opened(path, learner, **more):
    return jb.Agent(learner, 3, KEY, **more) if path is None else jb.Agent.open(path, learner, 3, KEY, flush=False, **more)


LEARNERS = {
    "rv": (jb.TsallisINF("rv"), {}),
    "skipping": (jb.ZimmertSeldin(skipping=True), {}),
    "fleet": (jb.TsallisINF(), {"fleet": 3}),
}


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "in memory"])
@pytest.mark.parametrize("name", [name if name == "rv" else pytest.param(name, marks=pytest.mark.thorough) for name in LEARNERS])
def test_a_decision_interrupted_before_each_line(tmp_path, name, durable):
    """Either it was made, and is outstanding, or it was not made; both agents decide alike afterwards."""
    learner, more = LEARNERS[name]
    path = tmp_path / "campaign.db" if durable else None
    agent, other = opened(path, learner, **more), jb.Agent(learner, 3, KEY, **more)
    made = []
    for moment in range(MOMENTS):
        stopped = interrupted(agent.act, moment)
        made.append(int(np.max(agent.rounds)) - int(np.max(other.rounds)))
        if made[-1]:
            other.act()
        assert repr(agent) == repr(other)
        assert waiting(agent) == waiting(other)
        for one in (agent, other):
            one.act()
            one.observe([ticket.id for ticket in one.outstanding()][1::2], 0.25 * (moment % 5))
        np.testing.assert_array_equal(agent.probabilities, other.probabilities)
        if not stopped:
            break
    assert len(made) > 60
    assert made[0] == 0
    assert made[-1] == 1
    assert sum(made) > 5  # many moments lie between the commit and the return
    if durable:
        agent._journal.close()  # as if the process had died
        agent = opened(path, learner, **more)
        assert waiting(agent) == waiting(other)
    if not more:
        same_from_here(agent, other, 5)
    agent.close()


@pytest.mark.parametrize("method", ["observe", "expire"])
@pytest.mark.parametrize("durable", [True, False], ids=["durable", "in memory"])
def test_feedback_interrupted_before_each_line(tmp_path, method, durable):
    path = tmp_path / "campaign.db" if durable else None
    agent, other = opened(path, jb.TsallisINF("rv")), jb.Agent(jb.TsallisINF("rv"), 3, KEY)
    for moment in range(MOMENTS):
        for one in (agent, other):
            one.act()
            one.act()
        ids = [ticket.id for ticket in agent.outstanding()][-2:]
        values = ([0.5, 1.0],) if method == "observe" else ()
        stopped = interrupted(lambda ids=ids, values=values: getattr(agent, method)(ids, *values), moment)
        left = [ticket.id for ticket in agent.outstanding() if ticket.id in ids]
        assert left in ([], ids)
        if not left:
            getattr(other, method)(ids, *values)
        else:
            assert stopped
            for one in (agent, other):
                one.observe(ids, 0.75)
        if not stopped:
            break
    assert moment > 20
    assert waiting(agent) == waiting(other)
    if durable:
        agent._journal.close()
        agent = opened(path, jb.TsallisINF("rv"))
    same_from_here(agent, other, 5)
    agent.close()


def test_opening_closing_and_saving_interrupted(tmp_path):
    """The file is released, nothing is lost, no draft is left; the exception may still be referenced, as it is in a notebook."""
    learner, path = jb.TsallisINF("rv"), tmp_path / "campaign.db"
    agent, other = opened(path, learner), jb.Agent(learner, 3, KEY)
    for one in (agent, other):
        for _ in range(4):
            one.act()
        one.observe([1, 3], 0.5)
    moments = np.random.default_rng(0).permutation(250)[:30].tolist()
    for moment in [*range(12), MOMENTS]:
        interrupted(agent.close, moment)
        agent.close()
        agent = opened(path, learner)
    for moment in [*range(12), MOMENTS]:
        stopped = interrupted(lambda: agent.save(tmp_path / "agent.npz"), moment)
        assert {file.name for file in tmp_path.iterdir()} - {"agent.npz"} == {
            "campaign.db",
            "campaign.db-wal",
            "campaign.db-shm",
            "campaign.db-lock",
        }
    assert not stopped
    agent.close()
    opened_ones = []
    errors = [interrupted(lambda: opened_ones.append(opened(path, learner)), moment) for moment in moments]
    assert None not in errors
    assert not opened_ones
    agent = opened(path, learner)
    assert waiting(agent) == waiting(other)
    same_from_here(agent, other, 5)
    agent.close()
    same_from_here(jb.Agent.load(tmp_path / "agent.npz", learner, 3, KEY), restarted(learner), 3)


def restarted(learner):
    agent = jb.Agent(learner, 3, KEY)
    for _ in range(4):
        agent.act()
    agent.observe([1, 3], 0.5)
    return agent


def test_signals_at_random_moments(tmp_path):
    """Real signals, 80 of them, while the agent decides and observes."""
    agent, other = opened(tmp_path / "campaign.db", jb.TsallisINF("rv")), jb.Agent(jb.TsallisINF("rv"), 3, KEY)
    agent.act()
    other.act()

    def stop(*_):
        raise KeyboardInterrupt

    random, before = np.random.default_rng(0), signal.signal(signal.SIGALRM, stop)
    try:
        for _ in range(80):
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0002, 0.004))
                for _ in range(1000):
                    agent.observe(agent.act().id, 0.5)
            except KeyboardInterrupt:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    left = {ticket.id for ticket in agent.outstanding()}
    for id in range(2, agent.rounds + 1):
        other.act()
        if id not in left:
            other.observe(id, 0.5)
    for one in (agent, other):
        one.expire(sorted(left))
    copy = tmp_path / "copy.db"
    agent._journal.close()
    shutil.copy(tmp_path / "campaign.db", copy)
    reopened = opened(copy, jb.TsallisINF("rv"))
    assert waiting(reopened) == waiting(other)
    same_from_here(reopened, other, 5)
    reopened.close()
