"""Delays known at action time: what a learner is given, and Skipper with the doubling scheme against a program in float64."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit.extend import Delays, Learner, ReadsDelays, ShowsDelays, float_dtype, pytree_dataclass

D, COINS = jb.delays, jb.losses.Bernoulli([0.3, 0.5, 0.6])


def played(learner, losses, delays, rounds, **options):
    """Probabilities ``[T, K]``, arms and delays ``[T]`` of one run in float64."""
    with jax.enable_x64(True):
        game = jb.rollout(learner, losses, delays, rounds=rounds, seed=2, measure=[jb.measure.Trajectory()], **options)
    one = game.trajectory
    return np.asarray(one.probabilities), np.asarray(one.arm), np.asarray(one.delay)


@pytree_dataclass
class Notebook(ReadsDelays, Learner):
    """Plays uniformly and adds up what it was given: Σ t·d_t."""

    def init(self, num_arms, runs_shape):
        return jnp.zeros((num_arms, *runs_shape), float_dtype())

    def act(self, state, round):
        delay = jnp.where(round.delay == D.NEVER, 1000, round.delay)
        return jnp.full_like(state, 1 / state.shape[0]), (), state + round.time * delay

    def observe(self, state, observation):
        return state


@pytree_dataclass
class OneRun(Notebook):
    batched = False

    def init(self, num_arms):
        return jnp.zeros(num_arms, float_dtype())


@pytest.mark.parametrize(
    "law", [D.Geometric(4.0), D.Geometric(4.0, shared=True), D.PacketLoss(0.5, delay=3), D.Outlier(first=40, delay=2)], ids=str
)
@pytest.mark.parametrize(
    "learner", [Notebook(), pytest.param(OneRun(), marks=pytest.mark.thorough)], ids=lambda one: type(one).__name__
)
def test_the_delay_that_is_given_is_the_one_that_comes(learner, law):
    """Rejects the delay of another round or run, and a draw of its own."""
    game = jb.rollout(learner, COINS, D.KnownAtAction(law), rounds=30, runs=4, seed=0, measure=[jb.measure.Trajectory()])
    delays = np.asarray(game.trajectory.delay)
    given = np.where(delays == D.NEVER, 1000, delays) * np.arange(1, 31)[:, None]
    np.testing.assert_array_equal(np.asarray(game.learner_state)[0], given.sum(0))


def test_other_learners_have_the_same_bits():
    """Rejects a wrapper that moves the random numbers of the delays."""
    law = D.Geometric(4.0)
    games = [jb.simulate(jb.TsallisINF(), COINS, one, rounds=60, runs=4, seed=0) for one in (law, D.KnownAtAction(law))]
    np.testing.assert_array_equal(games[0].regret, games[1].regret)


def doubling(arms, losses, delays, num_arms):
    """Probabilities of the doubling scheme, from its description, with an event queue."""
    log_k, m = math.log(num_arms), math.ceil(math.log2(math.e * num_arms * math.log(num_arms)))
    estimates, n, skipped, total = np.zeros(num_arms), 0, 0, 0
    due, found, epochs = {}, [], {m}
    for t, (arm, delay) in enumerate(zip(arms, delays, strict=True), 1):
        for restart in (False, True):
            if restart:
                m, estimates, n, skipped, total = m + 1, np.zeros(num_arms), 0, 0, 0
            skips = delay >= math.sqrt(2**m) / (4 * math.e * log_k)
            counts = n + 1, skipped + skips, total + (0 if skips else delay)
            if max(counts[1] ** 2, (math.e * num_arms * counts[0] / 2 + counts[2]) * log_k) <= 2**m:
                break
        n, skipped, total = counts
        epochs.add(m)
        weights = np.exp(-log_k / math.sqrt(2**m) * (estimates - estimates.min()))
        found.append(weights / weights.sum())
        if not skips:
            due.setdefault(t + delay, []).append((m, arm, losses[t - 1][arm] / found[-1][arm]))
        for epoch, arm_then, weighted in due.pop(t, []):
            if epoch == m:
                estimates[arm_then] += weighted
    return np.array(found), sorted(epochs)


@pytest.mark.parametrize("longest", [6, pytest.param(200, marks=pytest.mark.thorough)])
def test_doubling_skipper_is_the_reference(longest):
    """Rejects weights that outlive an epoch, a threshold of the last epoch, and counts that lack this round."""
    rng = np.random.default_rng(longest)
    losses, delays = rng.random((600, 3)) * [0.4, 1, 1], rng.integers(0, longest + 1, 600)
    delays[rng.random(600) < 0.7] = 0
    x, arms, drawn = played(jb.DoublingSkipper(), jb.losses.Table(losses), D.KnownAtAction(D.Trace(delays)), 600)
    np.testing.assert_array_equal(drawn, delays)
    expected, epochs = doubling(arms, losses, delays.tolist(), 3)
    np.testing.assert_allclose(x, expected, rtol=1e-9)
    assert len(epochs) >= 4
    bound = theory.bounds.doubling_skipper(delays, num_arms=3)
    assert bound.total == pytest.approx(3 * sum(math.sqrt(2**m) for m in epochs))


def test_doubling_skipper_and_skipper():
    """A few excessive delays: DEW tuned to d_max learns nothing, and both forms of Skipper learn; rejects feedback that is not skipped."""
    rounds, law = 2000, D.Outlier(first=2000, count=30)
    longest, total = 2000, sum(min(2000, rounds - t) for t in range(1, 31))
    learners = {
        "dew": jb.DelayedExponentialWeights(rounds, total, longest),
        "skipper": jb.Skipper(beta=5, horizon=rounds, total_delay=0),
        "doubling": jb.DoublingSkipper(),
    }
    games = {
        name: jb.simulate(one, COINS, D.KnownAtAction(law), rounds=rounds, runs=64, seed=0) for name, one in learners.items()
    }
    mean = {name: game.regret[-1].mean() for name, game in games.items()}
    assert mean["skipper"] < mean["dew"] / 2
    assert mean["skipper"] < mean["doubling"] < mean["dew"]  # not knowing T and D has a price
    sequence = np.where(np.arange(rounds) < 30, 2000, 0)
    assert mean["doubling"] < theory.bounds.doubling_skipper(sequence, num_arms=3).total


@pytree_dataclass
class Shown(ShowsDelays):
    bound = 4

    def draw(self, t, arm, loss, noise):
        return arm.astype(jnp.int32)


@pytree_dataclass
class Mine(ShowsDelays):
    """A delay model of a user."""

    bound, oblivious, may_lose = 4, True, False

    def draw(self, t, arm, loss, noise):
        return (t % 3).astype(jnp.int32)


@pytest.mark.thorough
def test_a_delay_model_of_ones_own():
    game = jb.rollout(Notebook(), COINS, Mine(), rounds=30, runs=2, seed=0)
    assert float(game.learner_state[0, 0]) == sum(t * (t % 3) for t in range(1, 31))
    jb.check_learner(Notebook(), delays=[Mine()])
    jb.check_delays(D.KnownAtAction(D.Geometric(4.0)))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: jb.simulate(jb.DoublingSkipper(), COINS, D.Geometric(4.0), rounds=5, runs=1, seed=0),
            r"delays=Geometric\(…\): DoublingSkipper requires the delay of an action at action time.*KnownAtAction\(Geometric",
        ),
        (
            lambda: jb.simulate(jb.Uniform(), COINS, D.KnownAtAction(D.ArmDependent([D.Fixed(1)] * 3)), rounds=5, runs=1, seed=0),
            r"KnownAtAction\(base=ArmDependent\(…\)\): its delays may depend on the arm or the loss",
        ),
        (
            lambda: jb.simulate(jb.Uniform(), COINS, D.KnownAtAction(3), rounds=5, runs=1, seed=0),  # type: ignore[arg-type]
            r"KnownAtAction\(base=3\): the base must be a delay model",
        ),
        (
            lambda: jb.simulate(jb.Uniform(), COINS, Shown(), rounds=5, runs=1, seed=0),
            r"delays=Shown\(…\): delays that are known at action time must be oblivious",
        ),
        (
            lambda: jb.simulate(jb.BOLD(jb.DoublingSkipper(), 3), COINS, D.Fixed(1), rounds=5, runs=1, seed=0),
            r"BOLD\(base=DoublingSkipper\(…\)\): DoublingSkipper requires the delay of an action",
        ),
        (lambda: jb.Agent(jb.DoublingSkipper(), 2, seed=0), r"requires the delay of an action when it is chosen, which an agent"),
    ],
)
def test_errors_name_both_sides(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_delays_without_the_declaration_are_no_known_delays():
    assert not issubclass(Delays, ShowsDelays)
    assert not isinstance(D.Fixed(3), ShowsDelays)
