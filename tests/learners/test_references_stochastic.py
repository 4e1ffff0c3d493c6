"""Stochastic learners against independent float64 NumPy references: paths where they are determined, else distributions."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._core import randomness
from jaxbandit.learners.base import Observation
from jaxbandit.learners.elimination import PhasedElimination, SuccessiveElimination
from jaxbandit.learners.thompson import DelayedThompson, Proposal, beta_odds, normals
from jaxbandit.learners.ucb import KLUCB, DelayedUCB1, Observed, lowest_mean_logit, uniform_over_smallest
from tests.learners.test_references import ROUNDS, compare, each_delay
from tests.reference import learners as reference

KINDS = ["bernoulli", "continuous"]


@each_delay
@pytest.mark.parametrize("kind", KINDS)
def test_ucb1(delays, kind):
    compare(DelayedUCB1(), reference.DelayedUCB1(4), delays, kind=kind)
    compare(DelayedUCB1(0.3), reference.DelayedUCB1(20, 0.3), delays, arms=20, kind=kind)


@each_delay
@pytest.mark.parametrize("kind", KINDS)
def test_klucb(delays, kind):
    compare(KLUCB(), reference.KLUCB(6), delays, arms=6, kind=kind)


@pytest.mark.parametrize(("x64", "tolerance"), [(False, 5e-7), pytest.param(True, 1e-11, marks=pytest.mark.thorough)])
def test_lowest_mean_logit(x64, tolerance):
    """To the last digits of log q - log(1 - q), from one observation to ten million, for means next to 0 and 1 as well.

    Rejects an index formed as 1 - q: in float32 it cannot tell means of 1e-8 apart. Rejects five Newton steps from a variance of
    1/4: with many plays of an arm that nearly always loses they end 8e-4 away.
    """
    dtype = np.float64 if x64 else np.float32
    cases = []
    for count in (1, 7, 300, 10**5, 7 * 10**5, 10**7):
        for losses in {
            1e-3,
            0.5,
            1.0,
            0.01 * count,
            0.3 * count,
            0.5 * count,
            0.97 * count,
            0.9997 * count,
            count - 0.4,
            float(count),
        }:
            for time in (2, 100, 10**9):
                if 0 < losses <= count:
                    cases.append(
                        [dtype(losses) / dtype(count), dtype(count - losses) / dtype(count), dtype(np.log(time) / count)]
                    )
    mean, rest, level = np.array(cases, dtype).T
    with jax.enable_x64(x64):
        got = np.asarray(lowest_mean_logit(*map(jnp.asarray, (mean, rest, level))), float)
    expected = np.array([exact_logit(*map(float, case)) for case in zip(mean, rest, level)])
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def exact_logit(mean, rest, level):
    """By bisection in u = log(mean/q) at 40 digits; mean and rest are taken as they were rounded."""
    with mpmath.workdps(40):
        mean, rest, level = map(mpmath.mpf, (mean, rest, level))

        def divergence(u):
            return mean * u - (rest * mpmath.log1p(-mean * mpmath.expm1(-u) / rest) if rest else 0)

        low, high = mpmath.mpf(0), (level - (rest * mpmath.log(rest) if rest else 0)) / mean + 1
        for _ in range(110):
            middle = (low + high) / 2
            low, high = (middle, high) if divergence(middle) <= level else (low, middle)
        return float(mpmath.log(mean) - low - mpmath.log(rest - mean * mpmath.expm1(-low)))


@pytest.mark.thorough
@pytest.mark.parametrize("means", [[0, 1e-3, 1e-3], [1e-4, 2e-3, 2e-3], [0.998, 0.9999, 0.9999]])
def test_klucb_in_float32_is_that_of_float64(means):
    """At extreme means both precisions have the same regret; the index 1 - q had 49 % too much in float32."""
    ends = []
    for x64 in (False, True):
        with jax.enable_x64(x64):

            @jax.jit
            def regret(rounds):
                game = KLUCB(), jb.losses.Bernoulli(means), jb.delays.Fixed(0, bound=0)
                return jb.rollout(*game, rounds=rounds, record=rounds[None], runs=256, key=jax.random.key(0)).regret[-1]

            ends.append(np.asarray(regret(jnp.int32(20_000))))
    assert [end.dtype for end in ends] == [np.float32, np.float64]
    (single, double), errors = np.mean(ends, 1), np.std(ends, 1) / 16
    assert abs(single - double) < 5 * np.hypot(*errors)
    assert np.all(errors < 0.06 * double)  # 5 of both are less than 49 %


@each_delay
@pytest.mark.parametrize("horizon", [ROUNDS, 2])  # a short horizon makes narrow bounds, so that arms go
def test_successive_elimination(delays, horizon):
    compare(SuccessiveElimination(horizon), reference.SuccessiveElimination(4, horizon), delays)
    compare(SuccessiveElimination(horizon), reference.SuccessiveElimination(7, horizon), delays, arms=7, kind="continuous")


@each_delay
@pytest.mark.parametrize(
    ("horizon", "factor"), [(ROUNDS, 16.0), (ROUNDS, 0.2), (2, 0.03)]
)  # one phase, some, several in one round
def test_phased_elimination(delays, horizon, factor):
    compare(PhasedElimination(horizon, factor), reference.PhasedElimination(4, horizon, factor), delays)
    compare(
        PhasedElimination(horizon, factor), reference.PhasedElimination(7, horizon, factor), delays, arms=7, kind="continuous"
    )


def test_ties_break_evenly():
    x = uniform_over_smallest(jnp.array([[1.0, -jnp.inf], [1.0, 0.0], [2.0, -jnp.inf]]))
    np.testing.assert_array_equal(x, [[0.5, 0.5], [0.5, 0.0], [0.0, 0.5]])


def test_sums_grow_past_the_digits_of_float32():
    observed = Observed(jnp.full((1, 2), 2**24), jnp.full((1, 2), 2.0**24), jnp.zeros((1, 2)))
    one = Observation(jnp.array(True), jnp.int32(1), jnp.zeros(2, jnp.int32), jnp.array([1.0, 0.25]), jnp.ones(2), ())
    for _ in range(5):
        observed = observed.add(one)
    exact = np.asarray(observed.losses, float) + np.asarray(observed.error, float)
    np.testing.assert_array_equal(exact, [[2**24 + 5.0, 2**24 + 1.25]])


def run_words(runs, seed=0):
    """The words of round 7, as a learner gets them: a function of the number of the pair."""
    stream = randomness.fold(randomness.stream(jax.random.key(seed), randomness.LEARNER), jnp.int32(7))
    return lambda pair=0: randomness.fold(stream, jnp.arange(runs, dtype=jnp.uint32), pair)


@pytest.mark.thorough
@pytest.mark.parametrize("x64", [False, True])
def test_normals(x64):
    """Moments up to the fourth, independence, and the tail, within five standard errors."""
    runs = 1_000_000
    with jax.enable_x64(x64):
        first, second = (np.asarray(values, float) for values in normals(run_words(runs)(), jnp.zeros(()).dtype))
    for sample in (first, second, (first + second) / np.sqrt(2), (first - second) / np.sqrt(2)):
        for power, (moment, variance) in enumerate([(0, 1), (1, 2), (0, 15), (3, 96)], 1):
            assert abs((sample**power).mean() - moment) < 5 * np.sqrt(variance / runs)
        tail = 0.0026997960632601866
        assert abs((abs(sample) > 3).mean() - tail) < 5 * np.sqrt(tail / runs)
    assert abs((first**2 * second**2).mean() - 1) < 5 * np.sqrt(8 / runs)


@pytest.mark.thorough
@pytest.mark.parametrize("x64", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (1, 8), (2.5, 1), (30, 20), (2000, 3000), (4e6, 6e6)])
def test_beta_odds(x64, alpha, beta):
    """Mean, variance and cumulative distribution of the draws; float32 must bear large counts."""
    scipy = pytest.importorskip("scipy.stats")
    runs = 200_000
    with jax.enable_x64(x64):
        full = jnp.full((2, runs), 1.0)
        odds = np.asarray(beta_odds(run_words(runs), full * alpha, full * beta), float)
    assert (odds >= 0).all()
    sample, law = (odds / (1 + odds)).ravel(), scipy.beta(alpha, beta)
    assert abs(sample.mean() - law.mean()) < 5 * law.std() / np.sqrt(sample.size)
    for probability in (0.001, 0.05, 0.3, 0.5, 0.7, 0.95, 0.999):
        error = np.sqrt(probability * (1 - probability) / sample.size)
        assert abs((sample < law.ppf(probability)).mean() - probability) < 5 * error


@pytest.mark.thorough
def test_many_arms_have_a_law_each():
    """More arms than are looked at together: every arm has its own law and its own numbers."""
    scipy = pytest.importorskip("scipy.stats")
    arms, runs = 70, 20_000
    alpha, beta = np.linspace(1, 40, arms), np.linspace(9, 1, arms)
    sizes = [jnp.broadcast_to(jnp.asarray(a, jnp.float32)[:, None], (arms, runs)) for a in (alpha, beta)]
    odds = np.asarray(beta_odds(run_words(runs), *sizes), float)
    law = scipy.beta(alpha, beta)
    sample = odds / (1 + odds)
    assert (abs(sample.mean(1) - law.mean()) < 5 * law.std() / np.sqrt(runs)).all()
    assert (abs(sample.var(1) / law.var() - 1) < 5 * np.sqrt((law.stats("k") + 2) / runs)).all()
    assert abs(np.corrcoef(law.cdf(sample.T).T) - np.eye(arms)).max() < 5 / np.sqrt(runs)


@pytest.mark.thorough
@pytest.mark.parametrize("x64", [False, True])
def test_the_quick_bound_accepts_nothing_else(x64):
    """What the bound without logarithms accepts, the exact one accepts; both share their first 16 bits of the coin."""
    sizes = np.geomspace(2 / 3, 1e5, 40)
    with jax.enable_x64(x64):
        shape = (40, 40, 2000)
        size, other = (jnp.broadcast_to(jnp.asarray(a), shape) for a in (sizes[:, None, None], sizes[None, :, None]))
        pairs = jnp.arange(1600, dtype=jnp.uint32).reshape(40, 40, 1)
        words = run_words(2000)
        proposal = Proposal.draw(words(2 * pairs), words(2 * pairs + 1), size, other)
        sure, exact = np.asarray(proposal.is_surely_accepted()), np.asarray(proposal.is_accepted())
    assert not (sure & ~exact).any()
    assert sure.mean() > 0.9
    assert (exact & ~sure).any()
    assert (~exact).any()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("counts", "losses"),
    [([0, 0, 0], [0, 0, 0]), ([3, 5, 1], [1, 3, 0]), ([40, 60, 9, 12], [16, 30, 5, 4.5]), ([500, 20], [200.25, 10])],
)
def test_thompson_plays_as_often_as_the_posterior_says(counts, losses):
    runs = 100_000
    expected = reference.smallest_beta_probabilities(1 + np.array(losses, float), 1 + np.array(counts) - np.array(losses, float))
    tile = [jnp.broadcast_to(jnp.asarray(values)[:, None], (len(counts), runs)) for values in (counts, losses)]
    state = Observed(tile[0].astype(jnp.int32), tile[1].astype(float), jnp.zeros(tile[1].shape))
    x, _, after = DelayedThompson().act(state, FakeRound(run_words(runs, seed=3)))
    np.testing.assert_array_equal(x.sum(0), 1)
    assert after is state
    assert (abs(np.asarray(x.mean(1)) - expected) < 5 * np.sqrt(expected * (1 - expected) / runs)).all()


class FakeRound:
    def __init__(self, words):
        self.words, self.restrict = words, lambda values: values


@pytest.mark.thorough
def test_thompson_is_a_function_of_the_run():
    """The same draw whoever is drawn beside it: refused proposals of others do not move it."""
    alpha = jnp.linspace(1, 3, 5)[:, None] * jnp.ones(64)
    together = beta_odds(run_words(64), alpha, alpha)
    alone = beta_odds(
        lambda pair: randomness.Words(*(word[..., 9] for word in run_words(64)(pair[..., None]))), alpha[:, 9], alpha[:, 9]
    )
    np.testing.assert_allclose(together[:, 9], alone, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("delays", "ucb1", "thompson"), [
    (jb.delays.Fixed(0), (291.56, 0.42), (54.56, 0.335)),
    (jb.delays.Fixed(100), (333.42, 0.459), (58.88, 0.209)),
    (jb.delays.PacketLoss(0.7), (392.99, 0.713), (72.45, 0.366)),
])  # fmt: skip
def test_regret_of_an_independent_simulation(delays, ucb1, thompson):
    """K = 5, T = 20000, means and standard errors of a plain event queue in float64."""
    for learner, (mean, error) in ((DelayedUCB1(), ucb1), (DelayedThompson(), thompson)):
        result = jb.simulate(
            learner,
            jb.losses.Bernoulli([0.4, 0.6, 0.6, 0.6, 0.6]),
            delays,
            rounds=20_000,
            runs=1024,
            key=jax.random.key(5),
            record=1,
        )
        mine = result.estimate()
        assert abs(mine.mean[-1] - mean) < 5 * np.hypot(mine.error[-1], error)
