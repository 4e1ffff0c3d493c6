"""Each delay model against its exact distribution."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxbandit as jb
from jaxbandit import delays
from jaxbandit.delays import NEVER
from tests.event_queue import LONGEST, Probe, Staircase
from tests.event_queue import uniform as uniform_noise

DRAWS = 1 << 18


def geometric(mean, bound):
    return [mean**n / (1 + mean) ** (n + 1) for n in range(bound + 1)]


def poisson(mean, bound):
    return [math.exp(-mean + n * math.log(mean) - math.lgamma(n + 1)) for n in range(bound + 1)]


def pareto(alpha, bound):
    return [0.0] + [(n - 1.0) ** -alpha - n**-alpha if n > 1 else 0.0 for n in range(1, bound + 1)]


def uniform(low, high, bound):
    return [(low <= n <= high) / (high - low + 1) for n in range(bound + 1)]


# law, P(d = n) for n = 0 … bound; the rest never arrives
LAWS = {
    "geometric": (delays.Geometric(3.0, bound=63), geometric(3.0, 63)),
    "geometric, cut": (delays.Geometric(100.0, bound=63), geometric(100.0, 63)),
    "geometric, small": (delays.Geometric(0.05, bound=7), geometric(0.05, 7)),
    "poisson": (delays.Poisson(3.0, bound=31), poisson(3.0, 31)),
    "poisson, small": (delays.Poisson(0.1, bound=7), poisson(0.1, 7)),
    "poisson, large": (delays.Poisson(200.0, bound=511), poisson(200.0, 511)),
    "poisson, cut": (delays.Poisson(9.0, bound=7), poisson(9.0, 7)),
    "pareto": (delays.Pareto(1.0, bound=1023), pareto(1.0, 1023)),
    "pareto, heavy": (delays.Pareto(0.3, bound=127), pareto(0.3, 127)),
    "pareto, light": (delays.Pareto(2.5, bound=127), pareto(2.5, 127)),
    "uniform": (delays.UniformRandom(0, 20), uniform(0, 20, 32)),
    "uniform, one value": (delays.UniformRandom(5, 5), uniform(5, 5, 8)),
    "uniform, away from 0": (delays.UniformRandom(3, 99), uniform(3, 99, 128)),
    "packet loss": (delays.PacketLoss(0.7, 4), [0, 0, 0, 0, 0.7]),
    "packet loss, never": (delays.PacketLoss(0.0), [0.0]),
    "packet loss, always": (delays.PacketLoss(1.0), [1.0]),
}


def frequencies(law, noise) -> np.ndarray:
    """How often each of 0 … bound, NEVER was drawn; anything else is an error."""
    arm, loss = jnp.zeros(noise.shape, jnp.int32), jnp.zeros(noise.shape)
    drawn = np.asarray(law.draw(jnp.int32(1), arm, loss, noise))
    assert drawn.dtype == np.int32
    drawn = np.where(drawn == NEVER, law.bound + 1, drawn)
    return np.bincount(drawn, minlength=law.bound + 2)


@pytest.mark.parametrize("name", LAWS)
def test_distribution(name):
    """Chi-square over cells of 10 or more expected draws, at five standard deviations."""
    law, probabilities = LAWS[name]
    law.check(1)
    expected = np.append(probabilities, max(1 - sum(probabilities), 0)) * DRAWS
    words = jax.random.bits(jax.random.key(17), (DRAWS,), jnp.uint32)
    counts = frequencies(law, uniform_noise(np.asarray(words)))
    assert counts.sum() == DRAWS
    assert counts[expected == 0].sum() == 0
    rare = expected < 10
    expected = np.append(expected[~rare], expected[rare].sum())
    counts = np.append(counts[~rare], counts[rare].sum())
    used = expected > 0.5
    freedom = max(used.sum() - 1, 1)
    distance = ((counts - expected)[used] ** 2 / expected[used]).sum()
    assert distance < freedom + 5 * math.sqrt(2 * freedom) + 5


@pytest.mark.parametrize("name", LAWS)
def test_distribution_function(name):
    """Evenly spaced noise gives P(d <= n) without chance, to the spacing and float32."""
    law, probabilities = LAWS[name]
    # Poisson's comes from the incomplete gamma function, which float32 knows less well.
    counts = frequencies(law, jnp.arange(DRAWS, dtype=jnp.float32) / DRAWS)
    np.testing.assert_allclose(
        np.cumsum(counts)[:-1] / DRAWS,
        np.cumsum(probabilities),
        atol=1.5 / DRAWS + (5e-5 if isinstance(law, delays.Poisson) else 1e-6),
    )


def test_means_and_tails():
    words = jax.random.bits(jax.random.key(1), (DRAWS,), jnp.uint32)
    noise = uniform_noise(np.asarray(words))

    def draws(law):
        return np.asarray(law.draw(jnp.int32(1), jnp.zeros(DRAWS, jnp.int32), jnp.zeros(DRAWS), noise)).astype(np.int64)

    for mean in (0.5, 10.0, 500.0):
        drawn = draws(delays.Geometric(mean, bound=1 << 20))
        assert (drawn != NEVER).all()
        assert abs(drawn.mean() - mean) < 5 * math.sqrt(mean * (1 + mean) / DRAWS)
    for mean in (0.5, 10.0, 300.0):
        drawn = draws(delays.Poisson(mean, bound=511))
        assert abs(drawn.mean() - mean) < 5 * math.sqrt(mean / DRAWS)
        assert abs(drawn.var() - mean) < 5 * mean * math.sqrt((2 + 1 / mean) / DRAWS)
    for alpha in (0.3, 0.7, 1.0):
        drawn = draws(delays.Pareto(alpha, bound=1 << 20))
        for n in (2, 10, 100, 1000, 10_000):
            tail = n**-alpha
            assert abs((drawn > n).mean() - tail) < 5 * math.sqrt(tail * (1 - tail) / DRAWS)


@pytest.mark.parametrize("noise", [2.0**-24, 1 - 2.0**-24, 1 - 2.0**-33])
def test_the_ends_of_the_noise(noise):
    """The smallest and the largest number that can be drawn, in both precisions."""
    with jax.enable_x64(noise == 1 - 2.0**-33):
        last = noise > 0.5

        def draw(law):
            return int(law.draw(1, jnp.int32(0), jnp.zeros(()), jnp.asarray(noise)))

        assert draw(delays.UniformRandom(2, 9)) == (9 if last else 2)
        assert draw(delays.UniformRandom(0, 2**20)) == (2**20 if last else 0)
        assert draw(delays.Geometric(1e6, bound=127)) == (NEVER if last else 0)
        assert draw(delays.Geometric(0.0, bound=7)) == 0
        assert draw(delays.Poisson(0.0, bound=7)) == 0
        assert draw(delays.Poisson(50.0, bound=7)) == NEVER or not last
        assert draw(delays.Pareto(0.01, bound=127)) == (NEVER if last else 2)
        assert draw(delays.PacketLoss(1.0, 3)) == 3
        assert draw(delays.PacketLoss(0.0, 3)) == NEVER


@pytest.mark.parametrize(("make", "parameter"), [(delays.Geometric, 6.0), (delays.Poisson, 6.0), (delays.Pareto, 0.5)])
def test_draws_above_the_bound_never_arrive(make, parameter):
    noise, zero = jnp.arange(4096, dtype=jnp.float32) / 4096, jnp.zeros(4096, jnp.int32)
    cut, longer = (np.asarray(make(parameter, bound=bound).draw(1, zero, zero, noise)) for bound in (7, 31))
    assert (longer > 7).sum() > 400
    np.testing.assert_array_equal(cut, np.where(longer > 7, NEVER, longer))


def test_deterministic_laws():
    t = np.arange(1, 101)

    def draws(law):
        return np.array([int(law.draw(s, jnp.int32(0), jnp.zeros(()), jnp.zeros(()))) for s in t])

    np.testing.assert_array_equal(draws(delays.Fixed(13)), 13)
    for every in (1, 2, 7):
        arrival = t + draws(delays.Bursts(every))
        np.testing.assert_array_equal(arrival, -(-t // every) * every)
    np.testing.assert_array_equal(draws(delays.Outlier(10**6, 3, count=4)), np.where(t <= 4, 10**6, 3))
    np.testing.assert_array_equal(draws(delays.Outlier(10**6, count=0)), 0)
    waits = np.append(np.arange(99) * 5 % 17, NEVER)
    np.testing.assert_array_equal(draws(delays.Trace(waits)), waits)


def test_arm_dependent_laws_meet_their_own_arm():
    law = delays.ArmDependent([delays.Fixed(2), delays.UniformRandom(4, 7), delays.PacketLoss(0.5, 1)])
    arm = jnp.array([0, 1, 2, 1, 2, 0], jnp.int32)
    noise = jnp.array([0.9, 0.1, 0.1, 0.99, 0.6, 0.0])
    np.testing.assert_array_equal(law.draw(1, arm, jnp.zeros(6), noise), [2, 4, 1, 7, NEVER, 2])
    many = delays.ArmDependent([delays.Fixed(n) for n in range(40)])  # more arms than one group of a sum
    np.testing.assert_array_equal(many.draw(1, jnp.arange(40), jnp.zeros(40), jnp.zeros(40)), np.arange(40))


def test_default_bounds():
    """The next power of two; 0 for no delay."""
    expected = {0: 0, 1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 16: 16, 17: 32, 1000: 1024}
    for longest, bound in expected.items():
        laws = [
            delays.Fixed(longest),
            delays.UniformRandom(0, longest),
            delays.PacketLoss(0.5, longest),
            delays.Bursts(longest + 1),
            delays.Outlier(10**6, longest),
            delays.ArmDependent([delays.Fixed(longest), delays.Fixed(0)]),
        ]
        assert [law.bound for law in laws] == [bound] * len(laws)
    assert delays.Fixed(3, bound=9).bound == 9


def test_the_64_longest_delays_of_a_trace_wait_aside():
    waits = np.full(1000, 5)
    waits[::20] = 10**6  # 50 outliers
    waits[1::100] = NEVER
    law = delays.Trace(waits)
    assert (law.bound, law.long_waits, law.length) == (8, 64, 1000)
    waits[::10] = 10**6  # 100 outliers: too many to set aside
    assert delays.Trace(waits).bound == 2**20
    assert delays.Trace(np.full(1000, 5)).long_waits == 0


@jax.jit
def arrivals(law, key, first_run):
    """``[LONGEST, runs]`` the round in which each play arrived, 0 if it did not."""
    rounds = jnp.int32(LONGEST)
    log = jb.rollout(
        Probe(), Staircase(), law, rounds=rounds, key=key, runs=4, first_run=first_run, record=rounds[None]
    ).learner_state
    row = jnp.arange(LONGEST)[:, None]
    origin = jnp.where(row < log.count, log.deliveries[:, 1].astype(jnp.int32), 0)
    return jnp.zeros((LONGEST + 1, 4)).at[origin, jnp.arange(4)].set(log.deliveries[:, 0])[1:]


def test_a_shared_sequence_is_the_same_in_all_runs():
    mean = jnp.float32(9.0)
    shared, own = delays.Geometric(mean, bound=31, shared=True), delays.Geometric(mean, bound=31)
    key = jax.random.key(0)
    together = np.asarray(arrivals(shared, key, 0))
    assert (together == together[:, :1]).all()
    np.testing.assert_array_equal(together, arrivals(shared, key, 1000))  # whatever the ids of the runs
    assert (together != np.asarray(arrivals(shared, jax.random.key(1), 0))).mean() > 0.5
    apart, others = np.asarray(arrivals(own, key, 0)), np.asarray(arrivals(own, key, 2))
    np.testing.assert_array_equal(apart[:, 2:], others[:, :2])
    for first in range(4):
        for second in range(first):
            assert (apart[:, first] != apart[:, second]).mean() > 0.5


def test_arm_dependent_delays_cannot_be_shared():
    law = delays.ArmDependent([delays.Fixed(0), delays.Fixed(1), delays.Fixed(2)], shared=True)
    with pytest.raises(ValueError, match="shared"):
        jb.simulate(Probe(), Staircase(), law, rounds=4, runs=1, key=jax.random.key(0))


def test_poisson_with_a_large_mean():
    """Frequencies of the draws against exact sums of the mass function; JAX's incomplete gamma function fails by 2.3 %."""
    mean, bound = 50_000, 65_535
    counts = np.arange(bound + 1)
    log_mass = counts * math.log(mean) - mean - np.array([math.lgamma(n + 1) for n in counts])
    expected = np.cumsum(np.exp(log_mass))
    cumulative = np.asarray(delays.Poisson(mean, bound=bound).prepare().cumulative, float)
    np.testing.assert_allclose(cumulative, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("law", "beyond"),
    [
        *(
            (delays.Geometric(mean), lambda n, mean=mean: scipy.stats.geom.sf(n + 1, 1 / (1 + mean)))
            for mean in (0.1, 1.0, 10.0, 50.0)
        ),
        *((delays.Poisson(mean), lambda n, mean=mean: scipy.stats.poisson.sf(n, mean)) for mean in (0.1, 3.0, 100.0)),
        *((delays.Pareto(alpha), lambda n, alpha=alpha: scipy.stats.pareto.sf(n, alpha)) for alpha in (1.5, 2.0, 5.0)),
    ],
    ids=lambda value: repr(value) if isinstance(value, delays.Delays) else "",
)
def test_own_bounds_cut_off_one_in_a_million_at_most(law, beyond):
    assert beyond(law.bound) <= 1e-6
    assert beyond(law.bound // 2 - 1) > 1e-6, "no longer than needed, up to a power of two"
    assert law.bound & (law.bound - 1) == 0
    law.check(2)


def test_own_bounds_where_there_is_none_to_be_had():
    assert delays.Geometric(0.0).bound == delays.Poisson(0.0).bound == 0
    with pytest.raises(
        ValueError,
        match=r"Pareto\(alpha=1.0\): this tail is too heavy to truncate automatically; pass bound=.*0.00024 of the feedback is lost",
    ):
        delays.Pareto(1.0).check(2)
    assert delays.Geometric(50.0, bound=7).bound == 7
