"""Progressive feedback: the loss model by its frequencies, the learner against an event queue with NumPy's inverses in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._core import randomness
from jaxbandit._core.fields import canonical, float_dtype
from jaxbandit.learners.progressive import Seen
from jaxbandit.learners.thompson import normals
from jaxbandit.learners.ucb import Observed
from tests.injected import injected

D, L = jb.delays, jb.losses
CLICKS, PURCHASES = [0.4, 0.2, 0.5], [0.5, 0.9, 0.1]
LAW = L.ClickThenPurchase(CLICKS, PURCHASES)
LEARNER = jb.ProgressiveThompson([0.3, 0.1], [0.2, 0.1], 0.6, [0.45, 0.3], -0.4)


def covariance(deviation, correlation):
    one, two = (float(value) for value in deviation)
    return np.array([[one**2, correlation * one * two], [correlation * one * two, two**2]])


def posterior(learner, pending, done):
    """Mean and variance of the mean reward: a Kalman step for each action, ``pending`` clicks and ``done`` pairs of click and reward."""
    mean = np.asarray(learner.prior_mean, float)
    cover = covariance(learner.prior_deviation, learner.prior_correlation)
    noise = covariance(learner.noise_deviation, learner.noise_correlation)
    for stages, seen in [(1, [click]) for click in pending] + [(2, pair) for pair in done]:
        gain = cover[:, :stages] @ np.linalg.inv((cover + noise)[:stages, :stages])
        mean, cover = mean + gain @ (np.array(seen) - mean[:stages]), cover - gain @ cover[:stages]
    return mean[1], cover[1, 1]


@pytest.mark.parametrize(
    "learner",
    [
        LEARNER,
        jb.ProgressiveThompson(),
        pytest.param(jb.ProgressiveThompson(prior_correlation=0.0, noise_correlation=0.0), marks=pytest.mark.thorough),
    ],
    ids=["given", "default", "clicks not used"],
)
def test_the_learner_is_the_reference(learner):
    """Rejects clicks that count only with their reward or twice, and rewards that arrive for another action."""
    rng, rounds = np.random.default_rng(3), 60
    signals = rng.integers(0, 2, (rounds, 3))
    losses, arms = 1 - signals * rng.random((rounds, 3)), rng.integers(0, 3, rounds)
    waits = rng.integers(0, 12, rounds).astype(float)
    waits[::7] = np.inf
    with jax.enable_x64(True):
        got = injected(learner, arms, losses, waits, signals=signals)
        mine = np.stack(jax.jit(canonical(learner).posterior)(got["state"]))
    stream = randomness.stream(jax.random.key(0), randomness.LEARNER)
    pending: list[list] = [[], [], []]
    done: list[list] = [[], [], []]
    queue: list[tuple] = []
    agreed = 0
    for t in range(1, rounds + 1):
        theirs = np.array([posterior(learner, pending[arm], done[arm]) for arm in range(3)]).T
        with jax.enable_x64(True):
            words = randomness.fold(
                randomness.fold(stream, jnp.int32(t)), jnp.zeros((), jnp.uint32), jnp.arange(1, 4, dtype=jnp.uint32)
            )
            draw = theirs[0] + np.sqrt(theirs[1]) * np.asarray(normals(words, jnp.dtype(jnp.float64))[0])
        agreed += got["probabilities"][t - 1].argmax() == draw.argmax()
        arm = arms[t - 1]
        pending[arm].append(signals[t - 1, arm])
        queue.append((t + waits[t - 1], arm, signals[t - 1, arm], 1 - losses[t - 1, arm]))
        for event in [event for event in queue if event[0] == t]:
            queue.remove(event)
            pending[event[1]].remove(event[2])
            done[event[1]].append(event[2:])
    assert agreed == rounds
    theirs = np.array([posterior(learner, pending[arm], done[arm]) for arm in range(3)]).T
    np.testing.assert_allclose(mine, theirs, rtol=1e-9)
    assert min(map(len, pending)) > 0, "some outcomes are missing"


def test_clicks_inform_about_purchases():
    """More clicks raise the mean reward, also before any purchase; with both correlations 0 they change nothing."""
    none, ten = jnp.zeros(2, jnp.int32), jnp.full(2, 10, jnp.int32)
    state = Seen(Observed.start(2, ()), none, jnp.array([2, 8], jnp.int32), ten)
    mean, variance = jb.ProgressiveThompson().posterior(state)
    assert mean[1] > mean[0] + 0.1
    assert np.all(np.asarray(variance) < 7 / 144)
    mean, variance = jb.ProgressiveThompson(prior_correlation=0.0, noise_correlation=0.0).posterior(state)
    np.testing.assert_allclose(np.stack([mean, variance]), [[1 / 4] * 2, [7 / 144] * 2], rtol=1e-5)


def test_the_defaults_are_the_moments_of_uniform_rates():
    """By quadrature. Rejects moments of the purchase given a click in place of those of the purchase."""
    grid = (np.arange(1000) + 0.5) / 1000
    click, reward = (one.ravel() for one in np.broadcast_arrays(grid[:, None], grid[:, None] * grid))
    learner = jb.ProgressiveThompson()
    np.testing.assert_allclose(learner.prior_mean, [click.mean(), reward.mean()], rtol=1e-4)
    np.testing.assert_allclose(covariance(learner.prior_deviation, learner.prior_correlation), np.cov(click, reward), rtol=1e-4)
    within = [[click - click**2, reward * (1 - click)], [reward * (1 - click), reward - reward**2]]  # a purchase needs a click
    np.testing.assert_allclose(covariance(learner.noise_deviation, learner.noise_correlation), np.mean(within, -1), rtol=1e-4)


def test_float32_with_many_observations():
    """A million actions and numbers at the ends of their ranges: float32 is near float64. Rejects a determinant that cancels."""
    rng, count = np.random.default_rng(0), 200
    plays = rng.integers(1, 10**6, count)
    done = rng.integers(0, plays + 1)
    clicks, final = rng.integers(0, plays + 1), rng.integers(0, done + 1)
    losses = done * rng.random(count)
    for learner in (jb.ProgressiveThompson(), jb.ProgressiveThompson([0, 1], [0.01, 100], 0.999, [0.01, 0.5], -0.999)):
        found = {}
        for x64 in (False, True):
            with jax.enable_x64(x64):
                whole = [jnp.asarray(one, jnp.int32) for one in (done, final, clicks, plays)]
                observed = Observed(whole[0], jnp.asarray(losses, float_dtype()), jnp.zeros(count, float_dtype()))
                found[x64] = [np.asarray(one, float) for one in canonical(learner).posterior(Seen(observed, *whole[1:]))]
        assert np.all(found[False][1] > 0)
        np.testing.assert_allclose(found[False][1], found[True][1], rtol=1e-4)
        assert np.all(np.abs(found[False][0] - found[True][0]) < 0.1 * np.sqrt(found[True][1]) + 1e-5 * np.abs(found[True][0]))


def test_clicks_and_purchases_go_together():
    """Frequencies of clicks, and of purchases given a click. Rejects a purchase without a click, or one drawn apart from it."""
    law, count = canonical(LAW), 1 << 16
    noise = jnp.asarray(np.random.default_rng(2).random(count), float_dtype())
    for arm, (click, purchase) in enumerate(zip(CLICKS, PURCHASES, strict=True)):
        arms = jnp.full(count, arm, jnp.int32)
        signal, loss = np.asarray(law.signal(jnp.int32(1), arms, noise)), np.asarray(law.sample(jnp.int32(1), arms, noise))
        assert np.all(loss[signal == 0] == 1)
        assert abs(signal.mean() - click) < 5 * np.sqrt(click * (1 - click) / count)
        bought = 1 - loss[signal == 1]
        assert abs(bought.mean() - purchase) < 5 * np.sqrt(purchase * (1 - purchase) / bought.size)
    jb.check_losses(LAW)


def test_simulate_rollout_and_vmap_agree():
    game = (LAW, D.Geometric(5.0))
    result = jb.simulate(jb.ProgressiveThompson(), *game, rounds=60, runs=4, seed=1)
    alone = jb.rollout(jb.ProgressiveThompson(), *game, rounds=60, runs=4, seed=1)
    np.testing.assert_allclose(result.regret[-1], alone.regret[-1], rtol=1e-5)
    rates = jnp.array([0.0, float(jb.ProgressiveThompson().prior_correlation)])

    def end(rate):
        return jb.rollout(jb.ProgressiveThompson(prior_correlation=rate), *game, rounds=60, runs=4, seed=1).regret[-1]

    np.testing.assert_allclose(jax.vmap(end)(rates)[1], alone.regret[-1], rtol=1e-5)


def test_sweep(tmp_path):
    spec = jb.Spec(
        learners=[jb.ProgressiveThompson(), jb.ProgressiveThompson(prior_correlation=0)],
        losses=[LAW],
        delays=[D.Fixed(5)],
        rounds=30,
        runs=4,
        seed=0,
    )
    jb.sweep(spec, tmp_path / "swept")
    swept = jb.open_sweep(tmp_path / "swept")
    alone = jb.simulate(jb.ProgressiveThompson(), LAW, D.Fixed(5), rounds=30, runs=4, seed=0)
    np.testing.assert_array_equal(np.asarray(swept.regret)[0, 0, 0, -1], alone.regret[-1])


@pytest.mark.thorough
def test_values_for_each_run():
    many = jb.ProgressiveThompson(prior_mean=[[0.5, 0.1], [0.25, 0.1]], prior_correlation=np.array([0.3, 0.9]))
    law = L.ClickThenPurchase(np.array([CLICKS, CLICKS[::-1]]).T, np.array([PURCHASES, PURCHASES[::-1]]).T)
    together = jb.simulate(many, law, D.Fixed(4), rounds=60, runs=2, seed=1).regret[-1]
    one = jb.ProgressiveThompson([0.1, 0.1], prior_correlation=0.9)
    apart = jb.simulate(one, L.ClickThenPurchase(CLICKS[::-1], PURCHASES[::-1]), D.Fixed(4), rounds=60, runs=2, seed=1).regret[-1]
    np.testing.assert_allclose(together[1], apart[1], rtol=1e-5)


@pytest.mark.thorough
def test_gradient_and_one_arm():
    options = {"rounds": 40, "runs": 64, "seed": 0, "estimator": "paired"}
    gradient = jb.regret_gradient(jb.ProgressiveThompson(), LAW, D.Fixed(3), **options)
    assert np.isfinite(np.asarray(gradient.gradient.prior_correlation)).all()
    assert np.all(jb.simulate(LEARNER, L.ClickThenPurchase([0.3], [0.3]), D.Fixed(2), rounds=20, runs=3, seed=0).regret == 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: jb.simulate(LEARNER, L.Bernoulli([0.3, 0.5]), D.Fixed(1), rounds=5, runs=1, seed=0),
            r"losses=Bernoulli\(…\): plays show no signals, and ProgressiveThompson reads 2",
        ),
        (
            lambda: jb.simulate(jb.ProgressiveThompson([0.1, 0.2, 0.3]), LAW, D.Fixed(1), rounds=5, runs=1, seed=0),
            r"prior_mean=\[0\.1, 0\.2, 0\.3\]\): 3 numbers for 2 stages",
        ),
        (
            lambda: jb.simulate(LEARNER, L.ClickThenPurchase([0.1, 1.2], [0.1, 0.2]), D.Fixed(1), rounds=5, runs=1, seed=0),
            r"losses\.ClickThenPurchase\(clicks=\[0\.1, 1\.2\]\)",
        ),
        (
            lambda: jb.simulate(LEARNER, L.ClickThenPurchase([0.1, 0.2], [0.1]), D.Fixed(1), rounds=5, runs=1, seed=0),
            r"losses\.ClickThenPurchase\(purchases=",
        ),
        (lambda: jb.Agent(LEARNER, 2, seed=0), r"ProgressiveThompson"),
    ],
    ids=["no signals", "three stages", "rate above 1", "lengths", "agent"],
)
def test_errors_name_the_argument(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()
