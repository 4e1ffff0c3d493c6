"""Progressive feedback: outcomes against an event queue, the filter against NumPy's inverses in float64, the funnel by its frequencies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._core import randomness
from jaxbandit._core.fields import canonical, float_dtype
from jaxbandit.extend import ReadsStages, pytree_dataclass, static
from jaxbandit.learners.progressive import uniform_moments
from jaxbandit.learners.thompson import normals
from jaxbandit.learners.ucb import Observed
from tests.injected import injected

D, L = jb.delays, jb.losses
CLICKS, BASKETS, PURCHASES = [0.4, 0.2, 0.5], [0.9, 0.6, 0.7], [0.5, 0.9, 0.1]
TWO = L.Funnel([CLICKS, PURCHASES])
THREE = L.Funnel([CLICKS, BASKETS, PURCHASES], delays=[D.Fixed(1), D.Geometric(3.0)])
MANY = jb.ProgressiveThompson.for_stages(3)


def some_moments(stages, seed, condition=1.0):
    rng = np.random.default_rng(seed)
    factors = [np.linalg.cholesky(np.eye(stages) + condition * np.ones((stages, stages))) for _ in range(2)]
    among, within = (one @ np.diag(rng.uniform(0.5, 1.5, stages)) @ one.T for one in factors)
    turn = np.diag(np.where(np.arange(stages) % 2, -1.0, 1.0))
    return rng.uniform(0, 1, stages), 0.02 * turn @ among @ turn, 0.1 * within


def posterior(learner, seen):
    """Mean and variance of the mean reward: a Kalman step for each action, whose first outcomes are ``seen``."""
    mean, cover, noise = (
        np.asarray(one, float) for one in (learner.prior_mean, learner.prior_covariance, learner.noise_covariance)
    )
    for outcomes in seen:
        count = len(outcomes)
        gain = cover[:, :count] @ np.linalg.inv((cover + noise)[:count, :count])
        mean, cover = mean + gain @ (np.array(outcomes) - mean[:count]), cover - gain @ cover[:count]
    return mean[-1], cover[-1, -1]


@pytest.mark.parametrize(
    "learner",
    [
        jb.ProgressiveThompson(*some_moments(3, 0)),
        pytest.param(jb.ProgressiveThompson(), marks=pytest.mark.thorough),
        pytest.param(jb.ProgressiveThompson(*some_moments(4, 1, 5.0)), marks=pytest.mark.thorough),
    ],
    ids=["three stages", "default", "four stages"],
)
def test_the_learner_is_the_reference(learner):
    """Rejects outcomes that count only with the reward, or twice, or for another action."""
    rng, rounds, before = np.random.default_rng(3), 60, learner.num_stages
    stages, losses, arms = rng.random((rounds, before, 3)), rng.random((rounds, 3)), rng.integers(0, 3, rounds)
    delays = rng.integers(0, 12, rounds).astype(float)
    delays[::7] = np.inf
    own = np.minimum(np.sort(rng.integers(0, 8, (rounds, before)), 1), delays[:, None])
    with jax.enable_x64(True):
        got = injected(learner, arms, losses, delays, stages=stages, stage_delays=own)
        mine = np.stack(jax.jit(canonical(learner).posterior)(got["state"]))
    stream = randomness.stream(jax.random.key(0), randomness.LEARNER)
    due = np.c_[own, delays]

    def reference(t):  # at the start of round t
        known = [[] for _ in range(3)]
        for s in range(1, t):
            outcomes = [*stages[s - 1][:, arms[s - 1]], 1 - losses[s - 1, arms[s - 1]]]
            known[arms[s - 1]].append(outcomes[: int((s + due[s - 1] < t).sum())])
        return np.array([posterior(learner, [one for one in seen if one]) for seen in known]).T

    for t in range(1, rounds + 1):
        mean, variance = reference(t)
        with jax.enable_x64(True):
            words = randomness.fold(
                randomness.fold(stream, jnp.int32(t)), jnp.zeros((), jnp.uint32), jnp.arange(1, 4, dtype=jnp.uint32)
            )
            draw = mean + np.sqrt(variance) * np.asarray(normals(words, jnp.dtype(jnp.float64))[0])
        assert got["probabilities"][t - 1].argmax() == draw.argmax()
    np.testing.assert_allclose(mine, reference(rounds + 1), rtol=1e-9)


@pytree_dataclass
class Clerk(ReadsStages):
    """Adds up a number of every outcome, made of its round, its arrival, its stage and what was known with it."""

    num_stages: int = static(default=2)

    def init(self, num_arms, runs_shape):
        return {"t": jnp.zeros(runs_shape, jnp.int32), "sum": jnp.zeros((self.num_stages + 1, *runs_shape), jnp.uint32)}

    def act(self, state, round):
        x = jnp.full((3, *state["t"].shape), 1 / 3)
        return x, jnp.broadcast_to(round.t, state["t"].shape), {**state, "t": jnp.broadcast_to(round.t, state["t"].shape)}

    def staged(self, state, stage, observation):
        weights = jnp.arange(1, 1 + self.num_stages, dtype=jnp.uint32).reshape(-1, *[1] * state["t"].ndim)
        known = (observation.stages.astype(jnp.uint32) * weights).sum(0) + 7 * observation.loss.astype(jnp.uint32)
        origin, now, arm = (
            jnp.broadcast_to(one, state["t"].shape).astype(jnp.uint32)
            for one in (observation.origin, state["t"], observation.arm)
        )
        number = origin * 977 + now * now * 31 + (arm + 1) * 13 * origin + known * 101
        number = jnp.where(observation.arrived & (observation.memo == observation.origin), number, 0)
        return {**state, "sum": state["sum"].at[stage].add(number)}

    def observe(self, state, observation):
        return self.staged(state, self.num_stages, observation)


LAWS = {
    "fixed": (L.Funnel([CLICKS, BASKETS, PURCHASES], delays=[D.Fixed(1), D.Fixed(6)]), D.Fixed(9), (1, 6)),
    "the loss first": (L.Funnel([CLICKS, BASKETS, PURCHASES], delays=[D.Fixed(5), D.Fixed(2)]), D.Geometric(4.0), (5, 5)),
    "missing": (L.Funnel([CLICKS, BASKETS, PURCHASES]), D.PacketLoss(0.5, 4), (0, 0)),
}


@pytest.mark.parametrize(
    "law", [pytest.param(law, marks=() if law == "the loss first" else pytest.mark.thorough) for law in LAWS]
)
def test_outcomes_arrive_when_they_are_due(law):
    """Rejects outcomes that are a round late, precede an earlier stage or follow the loss, and outcomes known too early."""
    losses, delays, waits = LAWS[law]
    options = {"rounds": 60, "runs": 3, "seed": 1}
    played = jb.rollout(Clerk(), losses, delays, measure=[jb.measure.Trajectory(runs=[0, 1, 2])], **options)
    seen = {name: np.asarray(getattr(played.trajectory, name)).astype(np.int64) for name in ("arm", "loss", "delay")}
    words = randomness.fold(
        randomness.fold(randomness.stream(jax.random.key(1), randomness.PLAY), jnp.arange(1, 61)[:, None]), jnp.arange(3)
    )
    noise = randomness.uniform(words.second, randomness.grain(float_dtype()))
    np.testing.assert_array_equal(losses.sample(1, jnp.asarray(seen["arm"]), noise), seen["loss"])
    stages = np.asarray(losses.stages(1, jnp.asarray(seen["arm"]), noise)).astype(np.int64)
    expected, s = np.zeros((3, 3), np.int64), np.arange(1, 61)[:, None]
    for stage, wait in enumerate([*waits, seen["delay"]]):
        arrival = s + np.minimum(wait, seen["delay"])
        known = sum((j + 1) * stages[j] for j in range(2) if j <= stage) + 7 * seen["loss"] * (stage == 2)
        number = s * 977 + arrival * arrival * 31 + (seen["arm"] + 1) * 13 * s + known * 101
        expected[stage] = np.where(arrival <= 60, number, 0).sum(0)
    np.testing.assert_array_equal(np.asarray(played.learner_state["sum"]), expected)


@pytest.mark.thorough
def test_resumed_in_parts_and_for_each_run():
    """A resumed simulation, one of some runs, and one with a value for each run have the same regret."""
    game = (MANY, THREE, D.Geometric(6.0))
    whole = jb.simulate(*game, rounds=80, runs=6, seed=2, record=[40, 80])
    first = jb.simulate(*game, rounds=40, runs=6, seed=2, record=[40])
    np.testing.assert_array_equal(
        jb.simulate(*game, rounds=80, runs=6, seed=2, record=[80], resume=first).regret[-1], whole.regret[-1]
    )
    some = jb.simulate(*game, rounds=80, runs=2, first_run=3, seed=2, record=[80])
    np.testing.assert_array_equal(some.regret[-1], whole.regret[-1, 3:5])


@pytest.mark.thorough
def test_values_for_each_run():
    both = [uniform_moments(3)[0], np.array([0.9, 0.2, 0.1])]
    many = jb.ProgressiveThompson(np.stack(both, 1), *uniform_moments(3)[1:])
    rates = np.array([THREE.rates, np.asarray(THREE.rates)[:, ::-1]]).transpose(1, 2, 0)
    together = jb.simulate(many, L.Funnel(rates, THREE.delays), D.Fixed(4), rounds=60, runs=2, seed=1).regret[-1]
    one = jb.ProgressiveThompson(both[1], *uniform_moments(3)[1:])
    apart = jb.simulate(one, L.Funnel(rates[..., 1], THREE.delays), D.Fixed(4), rounds=60, runs=2, seed=1).regret[-1]
    np.testing.assert_allclose(together[1], apart[1], rtol=1e-5)


def test_outcomes_inform_about_rewards():
    """More clicks raise the mean reward, also before any purchase; with diagonal covariances they change nothing."""
    start = Observed.start(2, ())
    clicks = Observed(jnp.full(2, 10, jnp.int32), jnp.array([2.0, 8.0]), jnp.zeros(2))
    for stages in (2, 4):
        learner = jb.ProgressiveThompson.for_stages(stages)
        state = (clicks, *[start] * (stages - 1))
        mean, variance = learner.posterior(state)
        prior = float(np.asarray(learner.prior_covariance)[-1, -1])
        assert mean[1] > mean[0]
        assert np.all(np.asarray(variance) < prior)
        alone = [np.diag(np.diag(np.asarray(one))) for one in (learner.prior_covariance, learner.noise_covariance)]
        mean, variance = jb.ProgressiveThompson(learner.prior_mean, *alone).posterior(state)
        np.testing.assert_allclose(np.stack([mean, variance]), [[0.5**stages] * 2, [prior] * 2], rtol=1e-5)


def test_the_defaults_are_the_moments_of_uniform_rates():
    """By simulation of rates, 5 standard errors. Rejects moments of a stage given the one before in place of those of the stage."""
    theta = np.cumprod(np.random.default_rng(0).random((3, 1 << 20)), 0)
    mean, among, within = uniform_moments(3)
    for i in range(3):
        assert abs(theta[i].mean() - mean[i]) < 5 * theta[i].std() / 1024
        for j in range(i + 1):
            shared = (theta[i] - mean[i]) * (theta[j] - mean[j])
            assert abs(shared.mean() - among[i, j]) < 5 * shared.std() / 1024
            one = theta[i] * (1 - theta[j])  # stage i needs stage j
            assert abs(one.mean() - within[i, j]) < 5 * one.std() / 1024
    np.testing.assert_array_equal(np.asarray(jb.ProgressiveThompson().prior_covariance), uniform_moments(2)[1])


def test_float32_with_many_observations():
    """A million actions: float32 is near float64. Rejects a filter that cancels, and one that conditions on means."""
    rng, count = np.random.default_rng(0), 200
    for learner in (
        jb.ProgressiveThompson(),
        jb.ProgressiveThompson.for_stages(4),
        jb.ProgressiveThompson(*some_moments(3, 2, 20.0)),
    ):
        stages = learner.num_stages + 1
        counts = -np.sort(-rng.integers(0, 10 ** rng.integers(1, 7, count), (stages, count)), 0)
        sums = counts * rng.random((stages, count))
        found = {}
        for x64 in (False, True):
            with jax.enable_x64(x64):
                state = tuple(
                    Observed(jnp.asarray(n, jnp.int32), jnp.asarray(y, float_dtype()), jnp.zeros(count, float_dtype()))
                    for n, y in zip(counts, sums, strict=True)
                )
                found[x64] = [np.asarray(one, float) for one in canonical(learner).posterior(state)]
        np.testing.assert_allclose(found[False][1], found[True][1], rtol=2e-3)
        assert np.all(np.abs(found[False][0] - found[True][0]) < 0.1 * np.sqrt(found[True][1]) + 1e-5 * np.abs(found[True][0]))


def test_stages_go_together():
    """Frequencies of each stage given the one before. Rejects a purchase without a click, or one drawn apart from it."""
    law, count = canonical(THREE), 1 << 16
    noise = jnp.asarray(np.random.default_rng(2).random(count), float_dtype())
    for arm, rates in enumerate(zip(CLICKS, BASKETS, PURCHASES, strict=True)):
        arms = jnp.full(count, arm, jnp.int32)
        outcomes = np.asarray([*law.stages(jnp.int32(1), arms, noise), 1 - law.sample(jnp.int32(1), arms, noise)])
        reached = np.ones(count, bool)
        for outcome, rate in zip(outcomes, rates, strict=True):
            assert not outcome[~reached].any()
            assert abs(outcome[reached].mean() - rate) < 5 * np.sqrt(rate * (1 - rate) / reached.sum())
            reached = outcome == 1
    jb.check_losses(THREE)


@pytest.mark.thorough
def test_simulate_rollout_and_vmap_agree():
    game = (TWO, D.Geometric(5.0))
    result = jb.simulate(jb.ProgressiveThompson(), *game, rounds=60, runs=4, seed=1)
    alone = jb.rollout(jb.ProgressiveThompson(), *game, rounds=60, runs=4, seed=1)
    np.testing.assert_allclose(result.regret[-1], alone.regret[-1], rtol=1e-5)

    def end(mean):
        learner = jb.ProgressiveThompson(jnp.stack([mean, jnp.asarray(0.25)]))
        return jb.rollout(learner, *game, rounds=60, runs=4, seed=1).regret[-1]

    np.testing.assert_allclose(jax.vmap(end)(jnp.array([0.1, 0.5]))[1], alone.regret[-1], rtol=1e-5)


@pytest.mark.thorough
def test_a_learner_for_one_run():
    """A single-run class that reads outcomes is the batched one. Rejects outcomes that a mapped learner does not get."""

    @pytree_dataclass
    class Single(ReadsStages):
        batched = False
        num_stages: int = static(default=2)

        def init(self, num_arms):
            return jnp.zeros(num_arms)

        def act(self, state, round):
            return jax.nn.softmax(state), (), state

        def staged(self, state, stage, observation):
            return state.at[observation.arm].add(0.1 * (stage + 1) * observation.stages[stage])

        def observe(self, state, observation):
            return state.at[observation.arm].add(0.3 * (1 - observation.loss))

    @pytree_dataclass
    class Batched(Single):
        batched = True

        def init(self, num_arms, runs_shape):
            return jnp.zeros((num_arms, *runs_shape))

        def act(self, state, round):
            return jax.nn.softmax(state, 0), (), state

        def staged(self, state, stage, observation):
            return state + observation.at_arm(0.1 * (stage + 1) * observation.stages[stage], state.shape[0])

        def observe(self, state, observation):
            return state + observation.at_arm(0.3 * (1 - observation.loss), state.shape[0])

    one, other = (jb.simulate(law, THREE, D.Geometric(4.0), rounds=50, runs=5, seed=0).regret for law in (Single(), Batched()))
    np.testing.assert_allclose(one, other, rtol=1e-5)
    jb.check_learner(Single())
    jb.check_learner(Batched())


@pytest.mark.thorough
def test_sweep(tmp_path):
    spec = jb.Spec(learners=[MANY, jb.Uniform()], losses=[THREE], delays=[D.Fixed(5)], rounds=30, runs=4, seed=0)
    jb.sweep(spec, tmp_path / "swept")
    swept = jb.open_sweep(tmp_path / "swept")
    alone = jb.simulate(MANY, THREE, D.Fixed(5), rounds=30, runs=4, seed=0)
    np.testing.assert_array_equal(np.asarray(swept.regret)[0, 0, 0, -1], alone.regret[-1])


@pytest.mark.thorough
def test_gradient_and_one_arm():
    options = {"rounds": 40, "runs": 64, "seed": 0, "estimator": "paired"}
    gradient = jb.regret_gradient(jb.ProgressiveThompson(), TWO, D.Fixed(3), **options)
    assert np.isfinite(np.asarray(gradient.gradient.prior_mean)).all()
    one = L.Funnel([[0.3], [0.3]])
    assert np.all(jb.simulate(jb.ProgressiveThompson(), one, D.Fixed(2), rounds=20, runs=3, seed=0).regret == 0)


def simulated(learner, losses, delays=None):
    return lambda: jb.simulate(learner, losses, delays or D.Fixed(1), rounds=5, runs=1, seed=0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            simulated(jb.ProgressiveThompson(), L.Bernoulli([0.3, 0.5])),
            r"Bernoulli\(…\): actions have no outcomes before the loss, and",
        ),
        (simulated(jb.ProgressiveThompson(), THREE), r"Funnel\(…\): actions have 2 outcomes before the loss, and .* reads 1"),
        (simulated(jb.ProgressiveThompson([0.1, 0.2, 0.3]), TWO), r"prior_covariance="),
        (
            simulated(jb.ProgressiveThompson([0.1, 0.2], [[1, 0.5], [0.1, 1]]), TWO),
            r"prior_covariance=…\): a covariance is symmetric",
        ),
        (simulated(jb.ProgressiveThompson([0.1, 0.2], [[1, 1], [1, 1]]), TWO), r"prior_covariance=…\): not positive definite"),
        (simulated(jb.Uniform(), L.Funnel([[0.1, 1.2], [0.1, 0.2]])), r"losses\.Funnel\(rates=\[\[0\.1, 1\.2\]"),
        (simulated(jb.Uniform(), L.Funnel([[0.1, 0.2], [0.1, 0.2]], [D.Fixed(1)] * 2)), r"2 delay models for 2 stages; give 1"),
        (simulated(jb.Uniform(), L.Funnel([[0.1, 0.2], [0.1, 0.2]], [3])), r"delays is a list of delay models"),
        (simulated(jb.BOLD(jb.ProgressiveThompson(), 2), TWO), r"ProgressiveThompson requires outcomes before the loss"),
        (lambda: jb.Agent(jb.ProgressiveThompson(), 2, seed=0), r"ProgressiveThompson requires outcomes before the loss"),
    ],
    ids=["none", "three", "lengths", "symmetric", "singular", "rate", "delays", "no delays", "wrapped", "agent"],
)
def test_errors_name_the_argument(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()
