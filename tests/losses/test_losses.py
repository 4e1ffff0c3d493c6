"""Each loss model against its exact means, and the regret against a float64 sum."""

import math
from fractions import Fraction
from typing import ClassVar

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import losses
from jaxbandit._core import randomness
from jaxbandit._core.fields import canonical, float_dtype, pytree_dataclass
from tests.event_queue import LONGEST, Probe, uniform, words

DRAWS = 1 << 17


def clipped_mean(mean, deviation):
    """The integral of P(X > x) over [0, 1], X normal: the mean of X clipped to [0, 1]."""
    x = np.linspace(0, 1, 20_001)
    tail = np.array([math.erfc((y - mean) / (deviation * math.sqrt(2))) / 2 for y in x])
    return float(np.sum(tail[1:] + tail[:-1]) / 2 * (x[1] - x[0]))


MEANS, DEVIATIONS = [0.0, 0.05, 0.3, 0.5, 0.97, 1.0], [0.05, 0.1, 0.01, 0.2, 0.5, 2.0]
SAMPLED = {
    "bernoulli": (losses.Bernoulli(MEANS), MEANS),
    "beta": (losses.Beta(MEANS, 3.0), MEANS),
    "beta, almost a coin": (losses.Beta(MEANS, 0.02), MEANS),
    "clipped normal": (losses.ClippedNormal(MEANS, 0.3), [clipped_mean(m, 0.3) for m in MEANS]),
    "clipped normal, each its own": (
        losses.ClippedNormal(MEANS, DEVIATIONS),
        [clipped_mean(m, d) for m, d in zip(MEANS, DEVIATIONS)],
    ),
    "table": (losses.Table([MEANS]), MEANS),
    "constrained": (losses.StochasticallyConstrained(0.3, arms=6), [0.0] + [0.3] * 5),
    "switching": (losses.Switching([MEANS, MEANS[::-1]], [1, 50]), MEANS),
    "delay-matched switching": (losses.DelayMatchedSwitching(5, arms=4), [0.0, 1.0, 0.9, 0.9]),
    "corrupted": (losses.Corrupted(losses.Bernoulli(MEANS), 7.0), [1.0, *MEANS[1:5], 0.0]),
    "corrupted beta": (losses.Corrupted(losses.Beta(MEANS[1:5], 3.0), 7.0), [0.97, 0.3, 0.5, 0.05]),
}

sample = jax.jit(lambda law, t, arm, noise: law.sample(t, arm, noise))


def draws(law, arm: int) -> np.ndarray:
    """Losses of round 1; fewer for laws that need a key, which are slow."""
    key = jax.random.key(arm)
    if getattr(law, "needs_key", False):
        noise = jax.random.split(key, DRAWS // 16)
    else:
        noise = jnp.asarray(uniform(np.asarray(jax.random.bits(key, (DRAWS,), jnp.uint32))))
    return np.asarray(sample(canonical(law), jnp.int32(1), jnp.full(noise.shape, arm, jnp.int32), noise), np.float64)


@pytest.mark.parametrize("name", SAMPLED)
def test_samples_have_the_expected_means(name):
    law, means = SAMPLED[name]
    law.check()
    np.testing.assert_allclose(canonical(law).expected(jnp.int32(1)), means, atol=1e-6)
    assert law.num_arms == len(means)
    for arm, mean in enumerate(means):
        drawn = draws(law, arm)
        assert drawn.min() >= 0
        assert drawn.max() <= 1
        assert abs(drawn.mean() - mean) <= 5 * drawn.std() / math.sqrt(drawn.size) + 1e-6
        if mean in (0, 1):
            assert (drawn == mean).all()


@pytest.mark.parametrize("concentration", [0.5, 3.0, 30.0])
def test_beta_has_the_right_variance(concentration):
    for arm, mean in enumerate(MEANS):
        square = (draws(losses.Beta(MEANS, concentration), arm) - mean) ** 2
        assert abs(square.mean() - mean * (1 - mean) / (1 + concentration)) <= 5 * square.std() / math.sqrt(square.size)


def test_coins_and_clipped_normals_have_their_mass_at_the_ends():
    assert set(np.unique(draws(losses.Bernoulli([0.2, 0.5]), 1))) == {0, 1}
    drawn = draws(losses.ClippedNormal([0.1], 0.2), 0)
    for end, mass in ((0, math.erfc(0.5 / math.sqrt(2)) / 2), (1, math.erfc(4.5 / math.sqrt(2)) / 2)):
        assert abs((drawn == end).mean() - mass) < 5 * math.sqrt(mass * (1 - mass) / DRAWS)


@pytree_dataclass
class Keyed(losses.Losses):
    """A law that needs a key."""

    num_arms: ClassVar[int] = 3
    stationary: ClassVar[bool] = True
    needs_key: ClassVar[bool] = True

    def expected(self, t):
        return jnp.full(3, 0.5)

    def sample(self, t, arm, noise):
        return jax.vmap(jax.random.uniform)(noise.reshape(-1)).reshape(noise.shape)


@pytest.mark.thorough
def test_laws_with_keys_get_one_for_each_run_and_round():
    """The key of a loss is its own stream, by the public API."""
    key = jax.random.key(3)
    told = jb.rollout(
        Probe(), Keyed(), jb.delays.Fixed(0), rounds=LONGEST, key=key, runs=4, record=[LONGEST]
    ).learner_state.deliveries[:, 3]
    keys = jax.random.wrap_key_data(jnp.asarray(words(key, randomness.LOSS, 4)))
    np.testing.assert_array_equal(told, jax.vmap(jax.vmap(jax.random.uniform))(keys))
    assert len(np.unique(told)) == told.size


def path(law, rounds: int) -> np.ndarray:
    """``[T, K]`` the means of rounds 1 … T."""
    return np.asarray(jax.jit(jax.vmap(canonical(law).expected))(jnp.arange(1, rounds + 1)))


def phases(growth: Fraction, rounds: int) -> np.ndarray:
    """The phase of each round, exactly: phase n starts when 1 + g + … + g^(n-1) rounds are over."""
    starts, total, length = [], Fraction(0), Fraction(1)
    while total < rounds:
        starts.append(math.ceil(total))
        total, length = total + length, length * growth
    return np.searchsorted(starts, np.arange(rounds), side="right") - 1


@pytest.mark.parametrize("growth", [Fraction(8, 5), Fraction(2), Fraction(3), Fraction(5, 4)], ids=str)
def test_constrained_phases(growth):
    rounds = 100_000
    means = path(losses.StochasticallyConstrained(0.25, arms=3, growth=float(growth)), rounds)
    odd = phases(growth, rounds) % 2 == 1
    expected = np.where(odd[:, None], [0.75, 1.0, 1.0], [0.0, 0.25, 0.25])
    assert np.flatnonzero((means != expected).any(1)).tolist() == []


def phase_borders(growth: float, last: int) -> np.ndarray:
    """Rounds before each phase up to ``last``, by the closed form (g^n - 1)/(g - 1) with 120 decimals."""
    with mpmath.workdps(120):
        g, found = mpmath.mpf(growth), [0, 1]
        while found[-1] <= last:
            found.append(int(mpmath.ceil((g ** len(found) - 1) / (g - 1))))
    return np.array(found[:-1])


GROWTHS = (1.001, 1.01, 1.1, 1.5)  # all but the last are rounded in float32: growth is what JAX makes of it


@pytest.mark.parametrize("growth", GROWTHS)
def test_constrained_phases_are_exact(growth):
    """All of 300,000 rounds, and both sides of every border up to 2**30."""
    borders = phase_borders(float(np.float32(growth)), 2**30)
    law = losses.StochasticallyConstrained(0.25, arms=2, growth=growth)
    rounds = np.concatenate([np.arange(300_000), borders[borders > 0] - 1, borders[borders < 2**30]])
    means = np.asarray(jax.jit(jax.vmap(law.expected))(jnp.asarray(rounds + 1, jnp.int32)))[:, 0]
    odd = (np.searchsorted(borders, rounds, side="right") - 1) % 2 == 1
    assert np.flatnonzero((means > 0) != odd).size == 0


def test_constrained_phases_are_exact_in_float64():
    borders = phase_borders(1.001, 2**30)
    rounds = np.concatenate([borders[borders > 0] - 1, borders])
    with jax.enable_x64(True):
        law = losses.StochasticallyConstrained(0.25, arms=2, growth=1.001)
        means = np.asarray(jax.vmap(law.expected)(jnp.asarray(rounds + 1, jnp.int32)))[:, 0]
    np.testing.assert_array_equal(means > 0, (np.searchsorted(borders, rounds, side="right") - 1) % 2 == 1)


@pytree_dataclass
class OddRounds:
    """A measurement: how many rounds so far had means above 0."""

    def init(self, num_arms, runs_shape):
        return jnp.zeros(runs_shape, jnp.int32)

    def update(self, state, info):
        return state + (info.means[0] > 0)

    def read(self, state):
        return {"odd": state}


def test_a_simulation_has_the_exact_phases():
    """Also inside losses.IntermediateStates, and with a growth for each run."""
    borders = phase_borders(float(np.float32(1.001)), 60_000)
    odd = ((np.searchsorted(borders, np.arange(60_000), side="right") - 1) % 2 == 1).sum()
    law = losses.StochasticallyConstrained(0.25, arms=2, growth=1.001)
    states = losses.IntermediateStates(np.eye(2), law)
    options = dict(delays=jb.delays.Fixed(0), rounds=60_000, runs=2, seed=0, record=[60_000], measure=[OddRounds()])
    for one in (law, states):
        assert jb.simulate(jb.Uniform(), one, **options).measured["odd"].tolist() == [[odd, odd]]
    each = losses.StochasticallyConstrained(0.25, arms=2, growth=np.array([1.6, 1.1]))
    found = jb.simulate(jb.Uniform(), each, **options | {"rounds": 3_000, "record": [3_000]}).measured["odd"][0]
    expected = [(phases(Fraction(float(np.float32(g))), 3_000) % 2 == 1).sum() for g in (1.6, 1.1)]
    assert found.tolist() == expected


def test_switching_borders():
    table = np.array([[0.1, 0.9], [0.9, 0.1], [0.5, 0.4], [0.0, 1.0]], np.float32)
    starts = [1, 2, 70_000, 70_001]
    means = path(losses.Switching(table, starts), 70_010)
    np.testing.assert_array_equal(means, table[np.searchsorted(starts, np.arange(1, 70_011), side="right") - 1])
    far = canonical(losses.Switching(table[:2], [1, 2**24 + 1]))  # not a float32
    np.testing.assert_array_equal([far.expected(jnp.int32(2**24)), far.expected(jnp.int32(2**24 + 1))], table[:2])


def test_a_table_is_what_it_says():
    table = np.random.default_rng(0).random((500, 4)).astype(np.float32)
    law = losses.Table(table)
    assert (law.length, law.num_arms) == (500, 4)
    np.testing.assert_array_equal(path(law, 500), table)
    arm = jnp.asarray(np.random.default_rng(1).integers(0, 4, 500), jnp.int32)
    drawn = jax.vmap(law.sample)(jnp.arange(1, 501), arm, jnp.zeros(500))
    np.testing.assert_array_equal(drawn, table[np.arange(500), arm])


CORRUPTED = [
    ([0.25, 0.5, 0.75], 10.0, 1),
    ([0.1, 0.2], 3.0, 1),
    ([0.3, 0.9, 0.6], 100.0, 7),
    ([0.4, 0.6], 0.19, 1),
    ([0.4, 0.6], 0.2, 1),
    ([0.0, 1.0], 1000.5, 500),
    ([0.5, 0.5], 5.0, 1),
    ([0.2, 0.7], 0.0, 1),
    ([0.1, 0.8], 0.7 * 12_345, 3),
    ([0.45, 0.55], 1000.0, 1),
]


@pytest.mark.parametrize(("means", "budget", "start"), CORRUPTED)
def test_a_budget_is_spent_and_never_exceeded(means, budget, start):
    rounds = 20_000
    changed = np.abs(path(losses.Corrupted(losses.Bernoulli(means), budget, start), rounds) - np.float32(means)).max(1)
    spread = Fraction(str(max(means))) - Fraction(str(min(means)))
    affordable = 0 if spread == 0 else math.floor(Fraction(str(budget)).limit_denominator(10**6) / spread)
    corrupted = np.flatnonzero(changed) + 1
    np.testing.assert_array_equal(corrupted, np.arange(start, start + affordable))
    assert changed.sum(dtype=np.float64) <= budget * (1 + 1e-6)


def test_a_large_budget_is_spent_to_float32():
    """Four million corrupted rounds; the last one is known to a part in a million."""
    law = canonical(losses.Corrupted(losses.Bernoulli([0.25, 0.5]), 2.0**20))
    assert law.expected(jnp.int32(2**22)).tolist() == [0.5, 0.25]
    assert law.expected(jnp.int32(2**22 + 8)).tolist() == [0.25, 0.5]


@pytree_dataclass
class Clockwork:
    """Probabilities that depend on the round alone, sixteenths, never uniform."""

    def init(self, num_arms, runs_shape):
        return jnp.zeros((num_arms, *runs_shape), float_dtype())

    def act(self, state, round):
        x = jnp.stack([jnp.broadcast_to(weight, state.shape[1:]) for weight in shares(round.t)]).astype(state.dtype) / 16
        return x, (), state

    def observe(self, state, observation):
        return state


def shares(t):
    first, second = 1 + (3 * t) % 7, 1 + (t // 5) % 4
    return first, second, 16 - first - second


def exact_regret(means: np.ndarray) -> np.ndarray:
    """Σ<x, m> - min_i Σ m_i after each round, float64."""
    x = np.stack(shares(np.arange(1, len(means) + 1)), 1) / 16
    return np.cumsum((x * means).sum(1)) - np.cumsum(means, 0).min(1)


def regret_cases(rounds: int):
    rng = np.random.default_rng(7)
    t = np.arange(1, rounds + 1)
    table = rng.random((rounds, 3)) * [1.0, 0.8, 0.9]
    switching, starts = np.array([[16, 44, 26], [56, 20, 36], [8, 20, 50]]) / 64, [1, rounds // 4, 3 * rounds // 4 + 7]
    odd = phases(Fraction(8, 5), rounds) % 2 == 1
    base, budget, start = np.array([0.15, 0.55, 0.4]), 0.4 * (rounds // 4), rounds // 8
    corrupted = (t >= start) & (t < start + rounds // 4)
    return {
        "table": (losses.Table(table), table),
        "switching": (losses.Switching(switching, starts), switching[np.searchsorted(starts, t, side="right") - 1]),
        "constrained": (losses.StochasticallyConstrained(0.3, arms=3), np.where(odd[:, None], [0.7, 1.0, 1.0], [0.0, 0.3, 0.3])),
        "corrupted": (
            losses.Corrupted(losses.Bernoulli(base), budget, start),
            np.where(corrupted[:, None], base[[1, 0, 2]], base),
        ),
        "bernoulli": (losses.Bernoulli(base), np.broadcast_to(base, (rounds, 3))),
    }


@jax.jit
def recorded(law, record):
    return jb.rollout(Clockwork(), law, jb.delays.Fixed(3), rounds=record[-1], key=jax.random.key(0), record=record).regret


@pytest.mark.parametrize("name", ["table", "switching", "constrained", "corrupted", "bernoulli"])
def test_regret_is_the_exact_sum(name):
    """Every one of the first rounds, then 100 000 of them: float32 sums stay honest."""
    rounds = 100_000
    law, means = regret_cases(rounds)[name]
    record = np.append(np.arange(1, 200), np.arange(1000, rounds + 1, 1000)).astype(np.int32)
    regret = np.asarray(recorded(canonical(law), record))
    np.testing.assert_allclose(regret, exact_regret(means)[record - 1], rtol=1e-6, atol=1e-6)


def test_regret_of_the_driver_is_the_same():
    """Blocks of runs, every round recorded, the best arm in hindsight changing on the way."""
    law, means = regret_cases(300)["switching"]
    result = jb.simulate(
        Clockwork(), law, jb.delays.Fixed(3), rounds=300, runs=3, key=jax.random.key(0), record=np.arange(1, 301)
    )
    expected = exact_regret(means)
    assert len(np.unique(np.cumsum(means, 0).argmin(1))) > 1
    np.testing.assert_allclose(result.regret, np.stack([expected] * 3, 1), rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize("law", [losses.Bernoulli, losses.Beta, losses.ClippedNormal])
def test_rewards_are_one_less_the_losses(law):
    by_reward, by_loss = law(rewards=[0.75, 0.5, 0.0]), law([0.25, 0.5, 1.0])
    np.testing.assert_array_equal(by_reward.expected(1), by_loss.expected(1))
    assert jax.tree.structure(by_reward) == jax.tree.structure(by_loss)
    again = jax.tree.map(lambda leaf: leaf, by_reward)
    np.testing.assert_array_equal(again.means, by_reward.means)
    assert jax.vmap(lambda rewards: law(rewards=rewards).expected(1))(jnp.ones((4, 3)) / 2).shape == (4, 3)
    with pytest.raises(ValueError, match=r"means and rewards are both given; give one of the two"):
        law([0.3, 0.5], rewards=[0.7, 0.5])
    with pytest.raises(ValueError, match=r"give means=.*or rewards="):
        law().check()
    with pytest.raises(ValueError, match=r"rewards='a'"):
        law(rewards="a")


def test_rewards_in_a_spec():
    from jaxbandit.sweeps.reader import SpecReader

    reader = SpecReader({"rounds": 9, "runs": 1, "losses": [{"name": "bernoulli", "rewards": [0.75, 0.5]}]})
    (point,) = reader.points("losses")
    reader.finish()
    np.testing.assert_array_equal(point.object.means, [0.25, 0.5])


@pytest.mark.parametrize("delay", [1, 7])
def test_delay_matched_switching_equals_switching(delay):
    """Bitwise: the same losses and the same regret as the table of phases that the formula stands for."""
    phases = np.arange(-(-200 // (2 * delay)))
    means = np.full((len(phases), 4), 0.9)
    means[phases, phases % 2], means[phases, (phases + 1) % 2] = 0.0, 1.0
    results = [
        jb.simulate(jb.TsallisINF(), law, jb.delays.Fixed(delay), rounds=200, runs=8, seed=0)
        for law in (losses.Switching(means, 1 + 2 * delay * phases), losses.DelayMatchedSwitching(delay, arms=4))
    ]
    np.testing.assert_array_equal(*(result.regret for result in results))


def test_delay_matched_switching_checks_its_fields():
    for delay, arms, said in ((0, 4, "delay=0"), (1, 1, "arms=1")):
        with pytest.raises(ValueError, match=said):
            jb.simulate(jb.Uniform(), losses.DelayMatchedSwitching(delay, arms), jb.delays.Fixed(1), rounds=2, runs=1, seed=0)
