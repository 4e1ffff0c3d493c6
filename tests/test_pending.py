"""The ring of pending plays against a plain event queue: who is told what, when, and in which order."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jaxbandit as jb
from jaxbandit import delays
from jaxbandit._checks.inputs import check_game
from jaxbandit._core.fields import canonical, pytree_dataclass, static, whole_number
from jaxbandit._core.sums import Count
from jaxbandit._engine import choose, simulation
from jaxbandit.delays import NEVER
from tests.event_queue import LONGEST, Log, Probe, Staircase, Watcher, check_log, plays, summary

RUNS = 5
TIGHT, WIDE = 7, LONGEST  # bounds: a ring with no row to spare, and one in which nothing is ever overwritten


@pytree_dataclass
class LossDependent(jb.delays.Delays):
    """Large losses come late, and those of arm 1 above ``cut`` never."""

    slope: jax.Array
    cut: jax.Array
    bound: int = static()
    offset: jax.Array = whole_number(default=0)

    def draw(self, t, arm, loss, noise):
        delay = (loss * self.slope).astype(jnp.int32) + jnp.asarray(self.offset, jnp.int32) * (arm == 2)
        return jnp.where((arm == 1) & (loss > self.cut), NEVER, jnp.minimum(delay, self.bound))


def whole_numbers(low, high):
    return st.integers(low, high)


def reals(low, high):
    return st.floats(low, high, width=32)


@st.composite
def uniform(draw, bound):
    low, high = sorted((draw(whole_numbers(0, bound)), draw(whole_numbers(0, bound))))
    return delays.UniformRandom(low, high, bound=bound)


def packet_loss(shared=False):
    return st.builds(
        delays.PacketLoss,
        reals(0, 1) | st.sampled_from([0.0, 1.0]),
        whole_numbers(0, TIGHT),
        bound=st.just(TIGHT),
        shared=st.just(shared),
    )


def unbounded(law, parameter, bound, shared=False):
    return st.builds(law, parameter, bound=st.just(bound), shared=st.just(shared))


@st.composite
def trace(draw):
    """Up to 16 outliers and any number of lost plays among short delays."""
    waits = draw(st.lists(whole_numbers(0, TIGHT) | st.just(int(NEVER)), min_size=LONGEST, max_size=LONGEST))
    for outlier, wait in draw(
        st.dictionaries(whole_numbers(0, LONGEST - 1), whole_numbers(TIGHT + 1, 2 * LONGEST), max_size=16)
    ).items():
        waits[outlier] = wait
    return delays.Trace(waits, bound=TIGHT, long_waits=16)


def arm_dependent(*laws):
    return st.builds(delays.ArmDependent, st.tuples(*laws))


# Each family is one compiled program: within it only leaves change.
FAMILIES = {
    "none": (Watcher(), uniform(0)),  # a ring of one row, with lists
    "fixed": (Watcher(), st.builds(delays.Fixed, whole_numbers(0, WIDE), bound=st.just(WIDE))),
    "uniform": (Watcher(), uniform(TIGHT)),
    "uniform, as long as the game": (Probe(), uniform(WIDE)),
    "geometric": (Watcher(), unbounded(delays.Geometric, reals(0, 20), TIGHT)),
    "poisson, shared": (Watcher(), unbounded(delays.Poisson, reals(0, 12), TIGHT, shared=True)),
    "pareto": (Watcher(), unbounded(delays.Pareto, reals(0.125, 3), TIGHT)),
    "packet loss": (Watcher(), packet_loss()),
    "packet loss, shared": (Watcher(), packet_loss(shared=True)),
    "bursts": (Watcher(), st.builds(delays.Bursts, whole_numbers(1, TIGHT + 1), bound=st.just(TIGHT))),
    "outlier": (
        Watcher(),
        st.builds(delays.Outlier, whole_numbers(0, 2 * LONGEST), whole_numbers(0, TIGHT), count=st.just(5), bound=st.just(TIGHT)),
    ),
    "trace": (Watcher(), trace()),
    "arms": (
        Probe(),
        arm_dependent(unbounded(delays.Geometric, reals(0, 9), 3), packet_loss(), unbounded(delays.Poisson, reals(0, 9), TIGHT)),
    ),
    "losses": (Probe(), st.builds(LossDependent, reals(0, 8), reals(0, 1), st.just(TIGHT), whole_numbers(0, 3))),
}


@functools.partial(jax.jit, static_argnames="runs")
def play(learner, law, key, rounds, runs=RUNS, first_run=0):
    return jb.rollout(learner, Staircase(), law, rounds=rounds, key=key, runs=runs, first_run=first_run, record=rounds[None])


def check_rollout(rollout, law, key, rounds, watched):
    made = plays(law, key, RUNS)
    check_log(jax.tree.map(np.asarray, rollout.learner_state), made, rounds, watched)
    most, total, lost = summary(made, rounds)
    np.testing.assert_array_equal(np.broadcast_to(rollout.outstanding_max, RUNS), most)
    np.testing.assert_array_equal(np.broadcast_to(rollout.total_delay.exact(), RUNS), total)
    np.testing.assert_array_equal(np.broadcast_to(rollout.lost, RUNS), lost)


SLOW = {"pareto", "uniform, as long as the game"}  # the paths of others, once more
QUICK = {"fixed", "geometric", "trace", "arms"}


def marks_of(family):
    return pytest.mark.slow if family in SLOW else () if family in QUICK else pytest.mark.thorough


@pytest.mark.parametrize("family", [pytest.param(name, marks=marks_of(name)) for name in FAMILIES])
def test_every_play_is_delivered_once_and_in_time(family):
    """At least 200 random laws over all families, each with its own key and horizon."""
    learner, laws = FAMILIES[family]

    @settings(max_examples=20, derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(laws, st.integers(0, 2**20), st.sampled_from([1, LONGEST, LONGEST - 3]))
    def check(law, seed, rounds):
        law.check(Staircase().num_arms)
        key = jax.random.key(seed)
        rollout = play(learner, canonical(law), key, jnp.int32(rounds))
        check_rollout(rollout, law, key, rounds, learner.watches_plays)

    check()


def simulated(learner, law, key, rounds, runs=RUNS, first_run=0, **options):
    """A Result, checked against the event queue."""
    result = jb.simulate(learner, Staircase(), law, rounds=rounds, runs=runs, key=key, first_run=first_run, record=1, **options)
    made = plays(law, key, runs, first_run)
    check_log(Log(*result.state[: len(Log._fields)]), made, rounds, learner.watches_plays)
    most, total, lost = summary(made, rounds)
    np.testing.assert_array_equal(result.outstanding_max, most)
    np.testing.assert_array_equal(result.total_delay, total)
    np.testing.assert_array_equal(result.lost, lost)
    return result


WATCHED = {
    "arms, nothing lost": [
        delays.ArmDependent([delays.Fixed(a, bound=TIGHT), delays.UniformRandom(b, 6, bound=TIGHT), delays.Fixed(c, bound=3)])
        for a, b, c in [(3, 0, 0), (0, 6, 3), (6, 2, 1)]
    ],
    "arms, some lost": [
        delays.ArmDependent([delays.Geometric(a, bound=WIDE), delays.PacketLoss(b, c, bound=TIGHT), delays.Fixed(d, bound=WIDE)])
        for a, b, c, d in [(3.0, 0.5, 2, WIDE), (40.0, 0.0, 0, 9), (0.0, 1.0, 7, 0)]
    ],
    "losses": [LossDependent(a, b, WIDE, c) for a, b, c in [(60.0, 0.4, 3), (9.0, 0.0, 50), (5.0, 1.0, 0)]],
}


@pytest.mark.thorough
@pytest.mark.parametrize("family", WATCHED)
def test_plays_of_arm_and_loss_dependent_laws_are_watched(family):
    for seed, law in enumerate(WATCHED[family]):
        simulated(Watcher(), law, jax.random.key(seed), LONGEST - seed)


def test_what_cannot_be_watched_is_refused():
    """The ring forgets a lost play when its row is used again; without losses it forgets nothing that waits."""
    check_game(Watcher(), Staircase(), delays.ArmDependent([delays.Fixed(8), delays.Fixed(0), delays.Fixed(1)]), LONGEST)
    lossy = delays.ArmDependent([delays.Geometric(9.0, bound=3), delays.Fixed(6), delays.Fixed(0)])
    with pytest.raises(ValueError, match="bound=64"):
        check_game(Watcher(), Staircase(), lossy, LONGEST)


SIMULATED = {
    "geometric": delays.Geometric(5.0, bound=TIGHT),
    "trace": delays.Trace([(7 * t * t) % 41 for t in range(LONGEST)]),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["geometric", pytest.param("trace", marks=pytest.mark.slow)])
def test_blocks_segments_and_resuming_change_nothing(name, monkeypatch):
    """More runs than a block, stopped at round 30 while plays wait, and cut into segments of 16 rounds."""
    law, key = SIMULATED[name], jax.random.key(5)
    monkeypatch.setattr(choose, "BLOCK", 4)
    whole_game = simulated(Probe(), law, key, LONGEST, 7, first_run=11)
    num_arms = Staircase().num_arms
    monkeypatch.setattr(simulation, "SEGMENT", 16 * num_arms * choose.block_size(num_arms))
    monkeypatch.setattr(simulation, "TICK", 0)
    part = simulated(Probe(), law, key, 30, 7, first_run=11)
    rest = simulated(Probe(), law, key, LONGEST, 7, first_run=11, resume=part)
    for one, other in zip(whole_game.state, rest.state, strict=True):
        np.testing.assert_array_equal(one, other)


STATIC = {
    "uniform": delays.UniformRandom(1, TIGHT, bound=TIGHT),
    "outlier": delays.Outlier(23, 3, count=5, bound=TIGHT),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", STATIC)
def test_a_static_number_of_rounds_delivers_the_same(name):
    """The scan that reverse mode can walk back, with several plays due at once and with a side list."""
    law, key = STATIC[name], jax.random.key(8)
    rollout = jb.rollout(Probe(), Staircase(), law, rounds=LONGEST, key=key, runs=RUNS, record=[LONGEST])
    check_rollout(rollout, law, key, LONGEST, watched=False)


@pytest.mark.parametrize(
    "law", [delays.PacketLoss(0.7, 4, bound=TIGHT), delays.UniformRandom(1, 6, bound=TIGHT)], ids=["aged", "listed"]
)
def test_a_single_run_without_axis(law):
    key = jax.random.key(2)
    rollout = play(Watcher(), canonical(law), key, jnp.int32(LONGEST), runs=None, first_run=3)
    assert rollout.regret.shape == (1,)
    log = jax.tree.map(lambda leaf: np.asarray(leaf)[..., None], rollout.learner_state)
    check_log(log, plays(law, key, 1, first_run=3), LONGEST, watched=True)


@pytest.mark.thorough
def test_delays_may_be_mapped_over():
    """A vmap over the fixed delays of one ring is the same as one game for each."""
    key, rounds, waits = jax.random.key(4), jnp.int32(LONGEST), np.arange(17, dtype=np.int32)
    together = jax.vmap(lambda wait: play(Probe(), delays.Fixed(wait, bound=16), key, rounds))(waits)
    for index, wait in enumerate(waits):
        law = canonical(delays.Fixed(wait, bound=16))
        apart = play(Probe(), law, key, rounds)
        check_rollout(apart, law, key, LONGEST, watched=False)
        for one, other in zip(jax.tree.leaves(together), jax.tree.leaves(apart), strict=True):
            np.testing.assert_array_equal(one[index], other)


@pytest.mark.slow
def test_random_delays_may_be_mapped_over():
    """Plays due at once in some of the games only: the loop over them goes on for the longest."""
    key, rounds, highs = jax.random.key(4), jnp.int32(LONGEST), np.array([0, 1, 4, 7], np.int32)
    together = jax.vmap(lambda high: play(Probe(), delays.UniformRandom(jnp.int32(0), high, bound=TIGHT), key, rounds))(highs)
    for index, high in enumerate(highs):
        rollout = jax.tree.map(lambda leaf, index=index: leaf[index], together)
        check_rollout(rollout, delays.UniformRandom(0, high, bound=TIGHT), key, LONGEST, watched=False)


@pytest.mark.thorough
def test_traces_may_be_mapped_over():
    key, rounds = jax.random.key(4), jnp.int32(LONGEST)
    waits = np.random.default_rng(0).integers(0, TIGHT + 1, (2, LONGEST)).astype(np.int32)
    together = jax.vmap(lambda waits: play(Probe(), delays.Trace(waits, bound=TIGHT), key, rounds))(waits)
    for index in range(2):
        rollout = jax.tree.map(lambda leaf, index=index: leaf[index], together)
        check_rollout(rollout, delays.Trace(waits[index], bound=TIGHT), key, LONGEST, watched=False)


def test_counts_are_exact_beyond_32_bits():
    """Σσ passes 2³¹ and 2³² without losing one, whatever is added."""
    rng = np.random.default_rng(0)
    terms = np.concatenate([np.full(12, 2**30), rng.integers(0, 2**31, 4000), [2**31 - 1, 0, 1, 1]])
    terms = np.stack([terms, np.ones_like(terms)], 1).astype(np.int32)
    zero = jnp.zeros(2, jnp.uint32)

    def step(count, term):
        count = count.add(term)
        return count, count

    path = jax.jit(lambda terms: jax.lax.scan(step, Count(zero, zero), terms)[1])(terms)
    exact = np.cumsum(terms.astype(np.int64), 0)
    assert exact[2, 0] > 2**31
    assert exact[-1, 0] > 2**41
    np.testing.assert_array_equal(path.exact(), exact)
    np.testing.assert_allclose(path.as_float(jnp.float32), exact, rtol=2e-7)
