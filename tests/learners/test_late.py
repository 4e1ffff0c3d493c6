"""States that are seen at once, losses in pieces, room for few: learners and engine against independent float64 programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._checks.dry_run import a_round
from jaxbandit._core import randomness
from jaxbandit._core.fields import canonical
from jaxbandit.extend import Learner, ShowsSignals, TakesSums, float_dtype, pytree_dataclass, static
from jaxbandit.learners.base import Observation
from jaxbandit.sweeps.oracle import Oracle
from tests.injected import injected
from tests.learners.test_references import DELAYS, ROUNDS, compare, each_delay
from tests.reference import learners as reference

D, L = jb.delays, jb.losses
RNG = np.random.default_rng(7)
STATES = RNG.dirichlet(np.full(3, 0.7), 5)  # P(s|a): 5 arms, 3 states

STATE_EXP3, PIECES = jb.StateExp3(STATES, 9, 1), D.CompositeFeedback([0.5, 0.5])
FIVE = L.Bernoulli(np.linspace(0.1, 0.9, 5))


@jax.jit
def pair_of_words(t):
    """The first pair of words that a learner has in round t of ``tests.injected``."""
    stream = randomness.stream(jax.random.key(0), randomness.LEARNER)
    return randomness.fold(randomness.fold(stream, t), jnp.uint32(0))


def uniforms(t):
    return [(float(word) + 0.5) / 2**32 for word in pair_of_words(t)]


# ------------------------------------------------------------------------------------------------------------------ signals


def compare_with_signals(mine, theirs, delays: str) -> None:
    rng = np.random.default_rng(0)
    losses, waits = rng.random((ROUNDS, 5)), DELAYS[delays](rng)
    signals = np.stack([rng.choice(3, ROUNDS, p=row) for row in STATES], 1)
    expected = reference.play(theirs, None, losses, list(waits), rng=rng, signals=signals)
    with jax.enable_x64(True):
        got = injected(canonical(mine), expected["arms"], losses, waits, signals=signals)
    np.testing.assert_allclose(got["probabilities"], expected["probabilities"], rtol=1e-9)
    assert np.ptp(expected["probabilities"][-1]) > 0.05  # it has learnt something


@each_delay
def test_state_exp3_is_the_reference(delays):
    """Rejects q of the time of arrival, the weight of the played arm alone, and K in place of S in the rate."""
    theirs = reference.StateExp3(5, 3, horizon=50, delay=2, transitions=STATES)
    compare_with_signals(jb.StateExp3(STATES, horizon=50, mean_delay=2), theirs, delays)


@each_delay
@pytest.mark.thorough
def test_estimated_state_exp3_is_the_reference(delays):
    """Rejects counts that know the play itself, or come with the loss."""
    theirs = reference.StateExp3(5, 3, horizon=50, delay=2, alpha=0.3, gamma=0.1)
    compare_with_signals(jb.EstimatedStateExp3(3, 50, 2, smoothing=0.3, mixing=0.1), theirs, delays)


@pytest.mark.thorough
def test_copies_of_state_exp3():
    """BOLD hands the signals on: d + 1 copies that take turns, each as if it were alone and without delay."""
    rng, d, rounds = np.random.default_rng(1), 3, 80
    losses, signals = rng.random((rounds, 5)), np.stack([rng.choice(3, rounds, p=row) for row in STATES], 1)
    arms = rng.integers(0, 5, rounds)
    mine = jb.BOLD(jb.StateExp3(STATES, 20, 0), capacity=d + 1)
    with jax.enable_x64(True):
        together = injected(canonical(mine), arms, losses, np.full(rounds, d), signals=signals)["probabilities"]
    for copy in range(d + 1):
        turn = slice(copy, None, d + 1)
        alone = reference.StateExp3(5, 3, horizon=20, delay=0, transitions=STATES)
        alone = reference.play(alone, arms[turn], losses[turn], np.zeros(rounds // 4), signals=signals[turn])
        np.testing.assert_allclose(together[turn], alone["probabilities"], rtol=1e-9)


def test_states_and_losses_go_together():
    """The state of a play has the law P(·|a), its loss the mean of the state. Rejects a loss that is drawn from the same part of the
    noise as the state: its mean would be off by far more than the 1 % that would be seen here."""
    means = np.array([0.1, 0.5, 0.95])
    law, count = canonical(L.IntermediateStates(STATES, L.Bernoulli(means))), 1 << 17
    noise = jnp.asarray(np.random.default_rng(2).random(count), float_dtype())
    drawn = jax.jit(lambda arm: (law.signal(jnp.int32(1), arm, noise), law.sample(jnp.int32(1), arm, noise)))
    for arm, row in enumerate(STATES):
        state, loss = map(np.asarray, drawn(jnp.full(count, arm, jnp.int32)))
        shares = np.bincount(state, minlength=3) / count
        assert np.all(np.abs(shares - row) < 5 * np.sqrt(row * (1 - row) / count) + 1e-6)
        for one, mean in enumerate(means):
            seen = loss[state == one]
            assert abs(seen.mean() - mean) < 5 * np.sqrt(mean * (1 - mean) / seen.size)


@pytest.mark.thorough
def test_a_state_of_probability_0_is_never_seen():
    law = L.IntermediateStates([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], L.Bernoulli([0.5, 0.5, 0.5]))
    noise = jnp.asarray([2.0**-24, 0.5, 1 - 2.0**-24], jnp.float32)
    assert np.all(np.asarray(law.signal(1, jnp.zeros(3, jnp.int32), noise)) == 1)
    assert np.all(np.asarray(law.signal(1, jnp.ones(3, jnp.int32), noise)) == 0)


def test_drifting_means():
    law = L.Drifting([0.2, 0.8], [0.6, 0.8], rounds=40)
    for t, mean in ((1, 0.2), (11, 0.3), (41, 0.6), (1000, 0.6)):
        np.testing.assert_allclose(law.expected(jnp.int32(t)), [mean, 0.8], rtol=1e-6)


# ------------------------------------------------------------------------------------------------------------ losses in pieces


@pytree_dataclass
class Diary(TakesSums):
    """Plays arm t mod K in round t and writes down what comes in each round."""

    rounds: int = static()

    def init(self, num_arms, runs_shape):
        return jnp.zeros((self.rounds + 1, *runs_shape), float_dtype()), jnp.zeros((num_arms, *runs_shape)), jnp.int32(0)

    def act(self, state, round):
        x = jnp.zeros_like(state[1]).at[round.t % state[1].shape[0]].set(1)
        return x, (), (state[0], state[1], round.t)

    def observe(self, state, observation):
        return state[0].at[state[2]].add(jnp.where(observation.arrived, observation.loss, 0)), state[1], state[2]


@pytest.mark.parametrize("shares", [pytest.param([1.0], marks=pytest.mark.thorough), [0.5, 0.0, 0.3, 0.2]])
def test_the_sum_of_a_round(shares):
    """Rejects shares that are turned around, and a play whose first piece comes a round late."""
    rounds = 23
    table = np.random.default_rng(0).random((rounds, 3))
    with jax.enable_x64(True):
        rollout = jb.rollout(Diary(rounds), L.Table(table), D.CompositeFeedback(shares), rounds=rounds, seed=0, runs=2)
        seen = np.asarray(rollout.learner_state[0])
    losses = table[np.arange(rounds), np.arange(1, rounds + 1) % 3]
    np.testing.assert_allclose(seen[1:, 0], np.convolve(losses, shares)[:rounds], rtol=1e-12)
    np.testing.assert_array_equal(rollout.outstanding, len(shares) - 1)


@each_delay
def test_colo_is_the_reference(delays):
    """Rejects a window of all 2d + 1 rounds, one that begins a round early, and a base that is asked when no coin says so."""
    delay = 2
    theirs = reference.CoLo(4, delay, uniforms)
    compare(jb.CoLo(jb.TsallisINF(), delay), theirs, delays, kind="continuous")
    assert theirs.clock > 15  # it was fed


@pytree_dataclass
class Judge(Learner):
    """Plays uniformly; keeps how often it was fed and how far a loss was from ``slope`` times the number of its arm."""

    slope: float = static()

    def init(self, num_arms, runs_shape):
        return jnp.full((num_arms, *runs_shape), 1 / num_arms, float_dtype()), *[jnp.zeros(runs_shape, float_dtype())] * 2

    def act(self, state, round):
        return state[0], (), state

    def observe(self, state, observation):
        off = jnp.where(observation.arrived, jnp.abs(observation.loss - self.slope * observation.arm), 0)
        return state[0], state[1] + observation.arrived, jnp.maximum(state[2], off)


@pytest.mark.thorough
def test_colo_feeds_nothing_of_other_arms():
    """Losses of arm i are always i/8, so that a fed loss says which arms it is of. Rejects a window one round longer or shifted."""
    delay, rounds = 3, 400
    losses = L.Table(np.tile(np.arange(4) / 8, (rounds, 1)))
    learner = jb.CoLo(Judge((delay + 1) / (2 * delay + 1) / 8), delay)
    for law in (D.CompositeFeedback([0.1, 0.2, 0.3, 0.4]), D.Fixed(3)):
        state = jb.rollout(learner, losses, law, rounds=rounds, runs=16, seed=0).learner_state
        assert np.all(np.asarray(state.base[1]) > 5)
        np.testing.assert_allclose(np.asarray(state.base[2]), 0, atol=1e-6)


@pytest.mark.thorough
def test_colo_draws_in_round_1():
    """However rare its coins are. Rejects arm 0 until the first coin."""
    learner = jb.CoLo(jb.Uniform(), 1000)
    arms = np.asarray(learner.act(learner.init(3, (64,)), a_round((64,)))[0]).argmax(0)
    assert set(arms) == {0, 1, 2}


@pytest.mark.thorough
def test_colo_without_delay_is_its_base():
    game = L.Bernoulli([0.3, 0.5]), D.Fixed(0)
    one, two = (
        jb.simulate(x, *game, rounds=200, runs=512, seed=1).estimate() for x in (jb.CoLo(jb.TsallisINF(), 0), jb.TsallisINF())
    )
    assert abs(one.mean[-1] - two.mean[-1]) < 5 * np.hypot(one.error[-1], two.error[-1])


# ------------------------------------------------------------------------------------------------------------ limited tracking


@each_delay
def test_limited_tracking_is_the_reference(delays):
    """Rejects one place too many, places that are never free again, and losses without their weight."""
    theirs = reference.LimitedTracking(4, reference.DelayedExp3, capacity=2, backlog=0.5, uniforms=uniforms)
    compare(jb.LimitedTracking(jb.DelayedExp3(), capacity=2, backlog=0.5), theirs, delays, kind="continuous")
    assert theirs.most == (1 if delays == "none" else 2)


@pytest.mark.parametrize("base", ["zimmert-seldin", "robust-bobw"])
def test_limited_tracking_of_a_base_that_skips(base):
    """Rejects a base that never sees untracked plays arrive: it counted those that it had skipped as outstanding for ever."""
    mine, theirs, numbers = {
        "zimmert-seldin": (jb.ZimmertSeldin, reference.ZimmertSeldin, {"skipping": True, "entropy_scale": 0.5}),
        "robust-bobw": (jb.RobustBestOfBothWorlds, reference.RobustBestOfBothWorlds, {"factor": 2.0}),
    }[base]
    tracked = reference.LimitedTracking(4, theirs, capacity=3, backlog=0.5, uniforms=uniforms, **numbers)
    compare(jb.LimitedTracking(mine(**numbers), capacity=3, backlog=0.5), tracked, "random", kind="continuous")
    assert tracked.base.inactive if base == "zimmert-seldin" else tracked.base.skipped


def test_limited_tracking_weighs_losses_of_states():
    """Rejects estimates of StateExp3 without the weight 1/p."""
    theirs = {"states": 3, "horizon": 50, "delay": 2, "transitions": STATES}
    tracked = reference.LimitedTracking(5, reference.StateExp3, capacity=3, backlog=0.5, uniforms=uniforms, **theirs)
    mine = jb.LimitedTracking(jb.StateExp3(STATES, horizon=50, mean_delay=2), capacity=3, backlog=0.5)
    compare_with_signals(mine, tracked, "lost")


def test_the_weight_of_an_estimate():
    """All of it, also the baseline."""
    one = jnp.ones(())
    seen = Observation(jnp.asarray(True), jnp.int32(1), jnp.int32(1), 0.75 * one, 0.5 * one, ())
    plain = seen.loss_estimate(3, baseline=0.5 * jnp.ones(3))
    np.testing.assert_allclose(plain, [0.5, 1.0, 0.5])
    np.testing.assert_allclose(seen._replace(weight=4.0).loss_estimate(3, baseline=0.5 * jnp.ones(3)), 4 * plain)


# ---------------------------------------------------------------------------------------------------------------- what is told


def test_a_sweep_tells_the_truth():
    """Also inside a wrapper; and where plays lead to no states it says so."""
    law = L.IntermediateStates(STATES, L.Bernoulli([0.1, 0.5, 0.9]))
    asked = jb.BOLD(jb.StateExp3("oracle", "oracle", "oracle"), capacity="oracle")  # type: ignore[arg-type]
    told = Oracle(law, D.Fixed(4), 90).tell(asked)
    np.testing.assert_array_equal(told.base.transitions, STATES)
    assert (told.base.horizon, told.base.mean_delay, told.capacity) == (90, 4, 5)
    assert Oracle(law, D.Fixed(4), 90).tell(jb.EstimatedStateExp3("oracle", 9, 1)).signals == 3  # type: ignore[arg-type]
    assert Oracle(FIVE, D.CompositeFeedback([0.5, 0.3, 0.2]), 90).tell(jb.CoLo(jb.TsallisINF(), "oracle")).delay == 2
    with pytest.raises(ValueError, match="transitions = 'oracle': under Bernoulli there are no intermediate states"):
        Oracle(FIVE, D.Fixed(4), 90).tell(asked)


# ------------------------------------------------------------------------------------------------------------- what is refused


@pytree_dataclass
class Silent(ShowsSignals):
    """Says that plays show signals, which are out of range."""

    num_arms, num_signals = 2, 2

    def expected(self, t):
        return jnp.asarray([0.5, 0.5])

    def sample(self, t, arm, noise):
        return (noise < 0.5).astype(jnp.float32)

    def signal(self, t, arm, noise):
        return jnp.asarray(arm, jnp.int32) + 1


@pytree_dataclass
class LooksAtTheArm(Diary):
    def observe(self, state, observation):
        return state[0].at[observation.arm].add(jnp.where(observation.arrived, observation.loss, 0)), state[1], state[2]


def simulate(learner, losses=FIVE, delays=D.Fixed(1)):  # noqa: B008
    return jb.simulate(learner, losses, delays, rounds=5, runs=2, seed=0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: simulate(STATE_EXP3),
            r"plays show no signals, and StateExp3 reads 3; give losses.IntermediateStates with 3 states",
        ),
        (
            lambda: simulate(jb.EstimatedStateExp3(2, 9, 1), L.IntermediateStates(STATES, L.Bernoulli([0.1, 0.2, 0.3]))),
            r"show 3 signals",
        ),
        (lambda: simulate(jb.StateExp3(STATES * 0.9, 9, 1)), r"row 0 of transitions sums to 0\.9"),
        (lambda: simulate(jb.QPMD(STATE_EXP3, 9)), r"QPMD\(base=StateExp3\(…\)\): the base would see no signals"),
        (lambda: simulate(jb.Uniform(), L.IntermediateStates(STATES, L.Beta([0.1, 0.2, 0.3]))), r"draws from a uniform number"),
        (
            lambda: simulate(jb.Uniform(), L.IntermediateStates(STATES, L.Bernoulli([0.1, 0.2]))),
            r"lead to 3 states, and losses has 2",
        ),
        (lambda: jb.Agent(STATE_EXP3, 5, jax.random.key(0)), r"StateExp3 uses intermediate observations"),
        pytest.param(
            lambda: jb.check_losses(Silent()),
            r"signal\(1000, arm, noise\) gives int32\[128\] from 1 to 2; one int32 from 0 to 1",
            marks=pytest.mark.thorough,
        ),
        (
            lambda: simulate(jb.TsallisINF(), delays=PIECES),
            r"observed as sums only, and TsallisINF .* give jb.CoLo\(TsallisINF\(…\), delay=1\)",
        ),
        (lambda: simulate(jb.CoLo(jb.TsallisINF(), 1), delays=D.CompositeFeedback([0.5, 0.6])), r"sum to 1, and these to 1\.1"),
        (
            lambda: simulate(jb.Uniform(), delays=D.ArmDependent([PIECES] * 5)),
            r"composite feedback applies to all rounds or none",
        ),
        (
            lambda: jb.check_learner(LooksAtTheArm(400)),
            r"it inherits from TakesSums, but observe makes something else of state\[0\]",
        ),
    ],
)
def test_it_says_what_is_wrong(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
