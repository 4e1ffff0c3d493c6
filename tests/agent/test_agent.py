"""An agent against `rollout`, ticket by ticket; a fleet against its members; and every wrong call."""

import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._core import randomness
from jaxbandit.agent import players
from jaxbandit.agent.pages import PAGE, Pages
from jaxbandit.learners.base import FullInformation, ReadsDelays, ReadsStages, is_a, signals_read
from tests.agent.environment import Environment, play, play_fleet, waiting
from tests.learners.test_contract import CLASSES, MEANS, VARIANTS, make

KEY = jax.random.key(5)
LOSSES = jb.losses.Bernoulli(jnp.asarray(MEANS, jnp.float32))
LAWS = {
    "random, some lost": jb.delays.Geometric(3.0, bound=8),
    "fixed": jb.delays.Fixed(10),
    "no delay": jb.delays.Fixed(0),
    "lost": jb.delays.PacketLoss(0.7, delay=2),
}
QUICK = "random, some lost"  # the other laws run the same two programs in other order: `make test-slow`
# Learners that read signals are refused: tests/learners/test_late.py.
NAMES = [
    name
    for name in [*CLASSES, *VARIANTS]
    if not signals_read(make(name)) and not any(is_a(make(name), kind) for kind in (FullInformation, ReadsDelays, ReadsStages))
]
KINDS = ("tsallis-inf, rv",)  # with a memo


def rolled_out(learner, delays, rounds, losses=LOSSES, **options):
    every = np.arange(1, rounds + 1)
    return jb.rollout(learner, losses, delays, rounds=rounds, key=KEY, record=every, probabilities=True, **options)


def environment(delays, losses=LOSSES):
    return Environment(losses, delays, KEY, shared=delays.shared)


@pytest.mark.parametrize("law", [pytest.param(law, marks=() if law == QUICK else pytest.mark.slow) for law in LAWS])
@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in KINDS else pytest.mark.thorough) for name in NAMES])
def test_plays_what_rollout_plays(name, law):
    """Every probability of every round has the same bits."""
    rounds = 80 if law == QUICK else 300
    learner = make(name, **({"capacity": rounds} if name == "bold" else {}))  # lost feedback costs BOLD a copy each time
    mine = play(jb.Agent(learner, 3, KEY, first_run=4), environment(LAWS[law]), rounds)
    theirs = rolled_out(learner, LAWS[law], rounds, first_run=4)
    np.testing.assert_array_equal(mine, theirs.probabilities)
    # Phases are longer than this, and robust-bobw skips all plays that wait so long until D_t is larger.
    if name not in ("uniform", "phased-elimination", "delayed-sapo", "odaaf") and (name, law) != ("robust-bobw", "fixed"):
        assert len(np.unique(mine, axis=0)) > 1  # it did learn something on the way


@pytest.mark.thorough
def test_many_arms_and_losses_between_0_and_1():
    table = np.random.default_rng(1).uniform(0, 0.5, (60, 40)) + np.linspace(0, 0.5, 40)
    losses = jb.losses.Table(jnp.asarray(table, jnp.float32))
    delays = jb.delays.UniformRandom(0, 20)
    for learner in (jb.BestOfBothWorlds(20), jb.TsallisINF("rv")):
        mine = play(jb.Agent(learner, 40, KEY), environment(delays, losses), 60)
        np.testing.assert_array_equal(mine, rolled_out(learner, delays, 60, losses).probabilities)


@pytest.mark.thorough
def test_float64(monkeypatch):
    with jax.enable_x64(True):
        agent = jb.Agent(jb.TsallisINF(), 3, KEY)
        for loss in (0.1, 0.2, 0.3):
            agent.observe(agent.act().id, loss)
        losses = jb.losses.Table(np.broadcast_to([[0.1], [0.2], [0.3], [0.0]], (4, 3)))
        theirs = rolled_out(jb.TsallisINF(), jb.delays.Fixed(0), 4, losses)
        agent.act()
        assert agent.probabilities.dtype == np.float64
        np.testing.assert_array_equal(agent.probabilities, theirs.probabilities[-1])


@pytest.mark.thorough
def test_many_arrivals_at_once():
    """More than one inbox holds, between two decisions: in order of origin, whatever the order they are handed in."""
    delays = jb.delays.Bursts(100)
    learner = jb.TsallisINF("rv")
    mine = play(jb.Agent(learner, 3, KEY), environment(delays), 250)
    np.testing.assert_array_equal(mine, rolled_out(learner, delays, 250).probabilities)


@pytest.mark.thorough
def test_more_outstanding_than_the_program_was_made_for():
    learner = jb.ZimmertSeldin(skipping=True)
    delays = jb.delays.Outlier(first=240, count=100)
    mine = play(jb.Agent(learner, 3, KEY), environment(delays), 280)
    np.testing.assert_array_equal(mine, rolled_out(learner, delays, 280).probabilities)


def test_arms_are_those_of_the_words():
    """The arm is the cell of the cumulative sum that the promised uniform number falls into."""
    agent = jb.Agent(jb.Uniform(), 4, KEY, first_run=9)
    for t in range(1, 40):
        key = jax.random.fold_in(jax.random.fold_in(jax.random.fold_in(KEY, randomness.PLAY), t), 9)
        uniform = (int(jax.random.key_data(key)[0]) >> 9) / 2**23
        assert agent.act().arm == int(4 * uniform)


FLEETS = {
    "rv": jb.TsallisINF("rv"),
    "thompson": jb.DelayedThompson(),
    "skipping": jb.ZimmertSeldin(skipping=True),
    "skipper": make("skipper"),
    "banker": jb.BankerTsallisINF(),
    "bold": jb.BOLD(jb.TsallisINF(), capacity=60),
    "arm-dependent": make("arm-dependent"),
    "qpm-d": jb.QPMD(jb.TsallisINF(), capacity=64),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", FLEETS)
def test_a_fleet_is_its_members(name):
    """A run is the same whoever decides beside it, to the bit, and what rollout plays, to rounding."""
    delays, learner = LAWS[QUICK], FLEETS[name]
    whole = play_fleet(jb.Agent(learner, 3, KEY, fleet=13, first_run=4), environment(delays), 60)
    parts = play_fleet(jb.Agent(learner, 3, KEY, fleet=13, first_run=4), environment(delays), 60, part=0.4)
    np.testing.assert_array_equal(whole, parts)
    theirs = rolled_out(learner, delays, 60, runs=13, first_run=4).probabilities
    np.testing.assert_allclose(whole, theirs, rtol=1e-4, atol=1e-6)
    assert len(np.unique(whole[-1], axis=-1).T) > 1


@pytest.mark.thorough
def test_a_fleet_in_blocks(monkeypatch, tmp_path):
    """Cut or not, with all or some deciding, saved and loaded in between: who is where, and what arrived for whom, stays right."""
    whole = jb.Agent(jb.DelayedUCB1(), 2, KEY, fleet=7)
    monkeypatch.setattr(players, "MOST_TOGETHER", 3)
    cut = jb.Agent(jb.DelayedUCB1(), 2, KEY, fleet=7)
    random = np.random.default_rng(0)
    for call in range(30):
        if call == 15:
            cut.save(tmp_path / "fleet.npz")
            cut = jb.Agent.load(tmp_path / "fleet.npz", jb.DelayedUCB1(), 2, KEY, fleet=7)
        runs = None if call % 3 == 0 else random.permutation(7)[: random.integers(0, 7)]
        mine, theirs = cut.act(runs), whole.act(runs)
        for one, two in zip(mine[:5], theirs[:5], strict=True):
            np.testing.assert_array_equal(one, two)
        waiting = [ticket.id for ticket in whole.outstanding()]
        answered = random.permutation(waiting)[: random.integers(0, len(waiting) + 1)]
        losses = random.integers(0, 2, len(answered))
        cut.observe(answered, losses)
        whole.observe(answered, losses)
    np.testing.assert_array_equal(cut.probabilities, whole.probabilities)
    assert len(np.unique(whole.probabilities, axis=1).T) > 1


@pytest.mark.thorough
def test_a_fleet_is_the_same_on_two_devices():
    code = """
import sys, numpy as np, jaxbandit as jb, hashlib
import jax
jax.config.update("jax_num_cpu_devices", int(sys.argv[1]))
from jaxbandit.agent import players
players.MOST_TOGETHER = 50
fleet, one = (jb.Agent(jb.TsallisINF("rv"), 4, jax.random.key(0), **more) for more in ({"fleet": 120}, {}))
path = []
for call in range(40):
    ticket, alone = fleet.act(), one.act()
    path.append([*ticket.arm, alone.arm, *fleet.probabilities.ravel(), *one.probabilities])
    fleet.observe(ticket.id, (ticket.arm + ticket.run + call) % 3 / 2)
    one.observe(alone.id, (alone.arm + call) % 3 / 2)
print(jax.local_device_count(), hashlib.sha256(np.array(path, np.float32).tobytes()).hexdigest())
"""
    said = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, count], capture_output=True, text=True, check=True
        ).stdout.split()
        for count in "12"
    ]
    assert [count for count, _ in said] == ["1", "2"]
    assert said[0][1] == said[1][1]


@pytest.mark.thorough
def test_a_fleet_with_many_arrivals_of_one_run():
    agent, single = (jb.Agent(jb.TsallisINF(), ["a", "b"], KEY, first_run=7, **more) for more in ({"fleet": 3}, {}))
    tickets = [agent.act() for _ in range(5)]
    mine = [single.act() for _ in range(5)]
    assert [ticket.arm[0] for ticket in tickets] == [ticket.arm for ticket in mine]
    assert [ticket.id.tolist() for ticket in tickets][-1] == [13, 14, 15]
    late = np.array([ticket.id[0] for ticket in tickets])[::-1]
    agent.observe(late, reward=[1.0, 0.5, 0.25, 0.0, 1.0])
    single.observe([ticket.id for ticket in mine][::-1], loss=[0.0, 0.5, 0.75, 1.0, 0.0])
    before = agent.probabilities
    agent.act([0])
    single.act()
    np.testing.assert_allclose(agent.probabilities[:, 0], single.probabilities, rtol=1e-5)
    np.testing.assert_array_equal(agent.probabilities[:, 1:], before[:, 1:])
    assert agent.rounds.tolist() == [6, 5, 5]
    assert agent.act([]).id.tolist() == []


def test_a_seed_in_place_of_the_key():
    by_seed, by_key = jb.Agent(jb.TsallisINF(), 3, seed=7), jb.Agent(jb.TsallisINF(), 3, jax.random.key(7))
    assert [by_seed.act().arm for _ in range(9)] == [by_key.act().arm for _ in range(9)]
    with pytest.raises(TypeError, match="give seed=0 or key="):
        jb.Agent(jb.TsallisINF(), 3)


def test_outstanding_and_names():
    agent = jb.Agent(jb.DelayedUCB1(), ["left", "right"], KEY)
    tickets = [agent.act() for _ in range(4)]
    assert {ticket.arm for ticket in tickets} <= {"left", "right"}
    assert agent.outstanding() == tickets
    agent.observe(tickets[1], 0.5)
    agent.expire(tickets[3].id)
    assert agent.outstanding() == [tickets[0], tickets[2]]
    agent.observe([1, 3], reward=1)
    assert agent.outstanding() == []
    assert agent.rounds == 4


def test_the_book_forgets_what_is_done():
    """Memory goes with what is outstanding, not with what was ever decided."""
    agent = jb.Agent(jb.Uniform(), 2, KEY)
    first = agent.act()
    for _ in range(1000):
        agent.observe(agent.act().id, 0.0)
    assert agent.outstanding() == [first]
    assert agent._core.book.size < 200
    agent.observe(first.id, 1.0)


def test_from_many_threads():
    agent = jb.Agent(jb.DelayedThompson(), 3, KEY)

    def work():
        for _ in range(50):
            agent.observe(agent.act().id, 0.5)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert agent.rounds == 200
    assert agent.outstanding() == []


WRONG_CALLS = {
    "unknown ticket": (lambda a: a.observe(99, 0.5), "ticket 99: no such ticket was given out; the ids so far are 1 to 4"),
    "ticket 0": (lambda a: a.observe(0, 0.5), "ticket 0: no such ticket"),
    "answered ticket": (lambda a: a.observe(1, 0.5), "ticket 1: its feedback is already in"),
    "answered and delivered": (lambda a: a.observe(2, 0.5), "ticket 2: its feedback is already in"),
    "expired ticket": (lambda a: a.observe(3, 0.5), "ticket 3: it has expired"),
    "expired twice": (lambda a: a.expire(3), "ticket 3: it has expired"),
    "expired after its feedback": (lambda a: a.expire(1), "ticket 1: its feedback is already in"),
    "one of a batch": (lambda a: a.observe([4, 1], [0.1, 0.2]), "ticket 1: its feedback is already in"),
    "twice in a batch": (lambda a: a.observe([4, 4], [0.1, 0.2]), "ticket 4: it is in this batch twice"),
    "not a number": (lambda a: a.observe("four", 0.5), "ticket 'four': a ticket is the whole number"),
    "half a ticket": (lambda a: a.observe(4.5, 0.5), "ticket 4.5: a ticket is the whole number"),
    "no ticket": (lambda a: a.observe(None, 0.5), "ticket None: a ticket is the whole number"),
    "loss above 1": (lambda a: a.observe(4, 1.5), r"observe\(loss=1.5\): a loss is a number between 0 and 1"),
    "negative loss": (lambda a: a.observe(4, -0.1), "a loss is a number between 0 and 1"),
    "NaN": (lambda a: a.observe(4, float("nan")), "a loss is a number between 0 and 1"),
    "infinite": (lambda a: a.observe(4, float("inf")), "a loss is a number between 0 and 1"),
    "text": (lambda a: a.observe(4, "bad"), "a loss is a number between 0 and 1"),
    "reward above 1": (lambda a: a.observe(4, reward=2), r"observe\(reward=2\): a reward is a number between 0 and 1"),
    "neither": (lambda a: a.observe(4), "neither loss nor reward is given"),
    "both": (lambda a: a.observe(4, 0.5, reward=0.5), "both loss and reward are given"),
    "too few losses": (lambda a: a.observe([4], [0.5, 0.5]), "2 losses for 1 tickets"),
    "runs of a single agent": (lambda a: a.act([0]), "this agent is a single learner"),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_a_wrong_call_is_one_sentence_and_changes_nothing(name):
    call, message = WRONG_CALLS[name]

    def started():
        agent = jb.Agent(jb.TsallisINF(), 2, KEY)
        for _ in range(3):
            agent.act()
        agent.observe(2, 0.7)
        agent.act()
        agent.observe(1, 0.2)
        agent.expire(3)
        return agent

    agent, other = started(), started()
    with pytest.raises(ValueError, match=message) as error:
        call(agent)
    assert "\n" not in str(error.value)
    assert waiting(agent) == waiting(other)
    assert agent.act()[:5] == other.act()[:5]
    np.testing.assert_array_equal(agent.probabilities, other.probabilities)


@pytest.mark.parametrize(
    ("make_it", "message"),
    [
        (lambda: jb.Agent(jb.Uniform(), 0, KEY), "arms=0: give how many arms"),
        (lambda: jb.Agent(jb.Uniform(), "ab", KEY), "arms='ab': give how many arms"),
        (lambda: jb.Agent(jb.Uniform(), ["a", "a"], KEY), "each once"),
        (lambda: jb.Agent(jb.Uniform(), 2.5, KEY), "arms=2.5"),
        (lambda: jb.Agent(jb.Uniform(), 2, 0), "key=0: the key must be a typed JAX key"),
        (lambda: jb.Agent(jb.Uniform, 2, KEY), "give a learner, not its class"),
        (lambda: jb.Agent(jb.Uniform(), 2, KEY, fleet=0), "fleet=0: a fleet is a number of learners"),
        (lambda: jb.Agent(jb.Uniform(), 2, KEY, first_run=-1), "first_run=-1"),
        (lambda: jb.Agent(jb.Uniform(), 2, KEY, fleet=3).act([3]), "different whole numbers from 0 to 2"),
        (lambda: jb.Agent(jb.Uniform(), 2, KEY, fleet=3).act([1, 1]), "different whole numbers from 0 to 2"),
        (lambda: jb.Agent(jb.Uniform(), 2, KEY, fleet=3).act("all"), "different whole numbers from 0 to 2"),
    ],
)
def test_wrong_agents(make_it, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make_it()


def test_a_wrapper_without_room_says_so_and_keeps_what_it_had():
    agent = jb.Agent(jb.BOLD(jb.TsallisINF(), capacity=3), 2, KEY)
    tickets = [agent.act() for _ in range(3)]
    for _ in range(2):
        with pytest.raises(RuntimeError, match="use capacity=4"):
            agent.act()
    assert agent.outstanding() == tickets
    agent.observe(2, 0.5)
    assert agent.act().round == 4


def test_pages():
    """Every bit of every leaf comes back, on few pages and on none that is too large, from NumPy and from a compiled program."""
    random = np.random.default_rng(0)
    tree = {
        "few": [random.normal(size=10).astype(np.float32) for _ in range(20)],
        "many": random.normal(size=(10, 16)).astype(np.float32),
        "flags": random.uniform(size=(3, 2)) < 0.5,
        "odd": np.array([np.nan, -0.0, np.inf, 1e-45], np.float32),
        "numbers": (np.array(7, np.int32), np.array([2**32 - 1], np.uint32), np.array([-(2**31)], np.int32)),
        "bytes": np.arange(5, dtype=np.int8),
    }
    pages = Pages.of(tree)
    blank, places = pages.blank()
    for place, leaf in zip(jax.tree.leaves(places), jax.tree.leaves(tree), strict=True):
        place[...] = leaf
    through = jax.jit(lambda written: pages.write(pages.read(written)))(blank)
    assert len(blank) == len(through) == 4  # two of words, "many" and "bytes"
    assert sorted(page.size <= PAGE for page in blank) == [False, True, True, True]
    for written in (blank, [np.asarray(page) for page in through]):
        for mine, theirs in zip(jax.tree.leaves(pages.read(written)), jax.tree.leaves(tree), strict=True):
            assert (mine.dtype, mine.shape, mine.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())
