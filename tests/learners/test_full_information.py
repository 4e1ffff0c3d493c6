"""Full information with delays: what is observed, Hedge against a program in float64, and the lower-bound games in the engine."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit.extend import FullInformation, ReadsSignals, float_dtype, one_hot, pytree_dataclass

D = jb.delays


def played(learner, table, delays):
    """Probabilities ``[T, K]`` and the final regret of one run in float64."""
    rounds = len(table)
    with jax.enable_x64(True):
        game = jb.rollout(
            learner, jb.losses.Table(table), delays, rounds=rounds, seed=2, record=range(1, rounds + 1), probabilities=True
        )
    return np.asarray(game.probabilities), float(game.regret[-1])


def hedge(table, delays):
    """x_t of Hedge with delays, from its formula, with an event queue."""
    rounds, arms = table.shape
    arrival, total, found = np.arange(1, rounds + 1) + delays, 0, []
    for t in range(1, rounds + 1):
        total += int((arrival[: t - 1] >= t).sum())
        seen = table[: t - 1][arrival[: t - 1] < t].sum(0)
        weights = np.exp(-2 * np.sqrt(np.log(arms) / (t + 2 * total)) * (seen - seen.min() if len(seen) else 0))
        found.append(weights / weights.sum())
    return np.array(found)


def test_hedge_is_the_reference_and_keeps_its_bound():
    """Rejects the loss of the chosen arm alone, feedback at once, and a rate that does not count outstanding observations."""
    rng = np.random.default_rng(0)
    table, delays = rng.random((200, 4)) * [1, 1, 1, 0.7], rng.integers(0, 12, 200)
    x, regret = played(jb.DelayedHedge(), table, D.Trace(delays))
    np.testing.assert_allclose(x, hedge(table, delays), rtol=1e-9)
    assert regret == pytest.approx((x * table).sum() - table.sum(0).min())
    assert 0 < regret < theory.bounds.delayed_hedge(delays, num_arms=4).total


@pytest.mark.parametrize("delay", [0, 5, 40])
def test_the_bound_of_hedge_holds_against_its_own_adversary(delay):
    """Losses chosen against each x_t: rejects a bound a tenth as large, and a wrong sign of the rate."""
    rounds, table = 400, np.zeros((400, 2))
    for t in range(rounds):  # x_t depends on rows that have arrived, before row t - delay
        gap = table[: max(t - delay, 0)].sum(0)
        table[t] = [1, 0] if gap[0] <= gap[1] else [0, 1]
    regret = (hedge(table, np.full(rounds, delay)) * table).sum() - table.sum(0).min()
    bound = theory.bounds.delayed_hedge(np.full(rounds, delay), num_arms=2).total
    assert bound / 10 < regret < bound


@pytest.mark.parametrize(
    ("learner", "delays"),
    [
        (jb.BestOfBothWorlds(max_delay=20), np.full(300, 20)),
        (jb.DelayedExp3(), np.full(300, 20)),
        pytest.param(jb.TsallisINF(), np.zeros(300, int), marks=pytest.mark.thorough),
    ],
    ids=["mzs22", "exp3", "tsallis"],
)
def test_a_lower_bound_game_has_the_value_of_the_claim(learner, delays):
    """The games of Theorem 9 and its Corollary run in the engine: rejects other feedback than every arm with probability 1."""
    with jax.enable_x64(True):
        game = theory.games.play_with_delays(learner, delays, num_arms=4)
    x, regret = played(jb.WithFullInformation(learner), game.losses, D.Trace(delays))
    np.testing.assert_allclose(x, game.probabilities, rtol=1e-7)
    assert regret == pytest.approx(game.regret, rel=1e-9)
    assert regret >= game.bound * (1 - 1e-4)


def test_a_baseline_does_not_enter_full_information():
    """Reduced variance: rejects a baseline that is added once for each arm that is observed."""
    table = np.random.default_rng(3).random((60, 3)) * [1, 1, 0.8]
    x, _ = played(jb.WithFullInformation(jb.TsallisINF("rv")), table, D.Fixed(2))
    for t in (20, 60):
        seen = table[: t - 3].sum(0)
        with jax.enable_x64(True):
            expected = jb.hybrid_argmin(jnp.asarray(seen - seen.min()), np.sqrt(t) / 2, 0.0)
        np.testing.assert_allclose(x[t - 1], expected, rtol=1e-7)


def test_hedge_meets_the_lower_bound_in_the_engine():
    """Hedge of the claim on Theorem 9 and DelayedHedge of the same rate are one learner."""
    rate = float(np.sqrt(8 * np.log(4) / 300))
    with jax.enable_x64(True):
        game = theory.games.play_with_ranges(theory.games.Hedge(rate), np.ones(300), num_arms=4)
    x, regret = played(jb.DelayedHedge(learning_rate=rate), game.losses, D.Fixed(0))
    np.testing.assert_allclose(x, game.probabilities, rtol=1e-9)
    assert regret == pytest.approx(game.regret, rel=1e-9)


@pytree_dataclass
class Recorder(FullInformation):
    """Plays uniformly; adds up the losses of all arms, their products with arm 0, and how often the chosen arm's loss is among them."""

    def init(self, num_arms, runs_shape):
        zeros = jnp.zeros((num_arms, *runs_shape), float_dtype())
        return zeros, zeros, zeros[0]

    def act(self, state, round):
        return jnp.full_like(state[0], 1 / state[0].shape[0]), (), state

    def observe(self, state, seen):
        losses = jnp.where(seen.arrived, seen.losses, 0)
        own = (jnp.where(one_hot(seen.arm, losses.shape[0]), losses, 0).sum(0) == seen.loss) & seen.arrived
        return state[0] + losses, state[1] + losses * losses[0], state[2] + own


@pytree_dataclass
class Neighbours(Recorder):
    """Semi-bandit feedback: the chosen arm and the next one."""

    def revealed(self, arm, num_arms):
        return one_hot(arm, num_arms) | one_hot((arm + 1) % num_arms, num_arms)


@pytest.mark.parametrize(
    "losses", [jb.losses.Bernoulli([0.2, 0.5, 0.7]), jb.losses.Beta([0.2, 0.5, 0.7], 4.0)], ids=lambda one: type(one).__name__
)
def test_losses_of_all_arms_are_independent(losses):
    """Rejects one random number for all arms, and a chosen arm whose loss is another than the one shown."""
    game = jb.rollout(Recorder(), losses, D.Fixed(0), rounds=500, runs=32, seed=0)
    total, product, own = (np.asarray(leaf) / 500 for leaf in game.learner_state)
    np.testing.assert_array_equal(own, 1)
    error = 0.5 / np.sqrt(500 * 32)
    np.testing.assert_allclose(total.mean(-1), [0.2, 0.5, 0.7], atol=5 * error)
    np.testing.assert_allclose(product.mean(-1)[1:], [0.1, 0.14], atol=5 * error)


def test_semi_bandit_feedback_hides_the_other_arms():
    """Rejects a mask that is not applied: of three arms each is seen in two rounds of three."""
    game = jb.rollout(Neighbours(), jb.losses.Bernoulli([1.0, 1.0, 1.0]), D.Fixed(0), rounds=600, runs=16, seed=0)
    share = np.asarray(game.learner_state[0]) / 600
    assert np.abs(share.mean() - 2 / 3) < 1e-6  # two of three arms in every round
    assert np.abs(share.mean(-1) - 2 / 3).max() < 5 * np.sqrt(2 / 9 / 9600)


def test_rollout_simulate_vmap_and_grad():
    """Arms do not move a learner with full information: the derivative of a rollout is that of the expected regret."""
    table = np.random.default_rng(1).random((60, 3))
    game = jb.losses.Table(table), D.Fixed(4)

    def regret(scale, seed):
        return jb.rollout(jb.DelayedHedge(scale=scale), *game, rounds=60, seed=seed).regret[-1]

    with jax.enable_x64(True):
        slope = jax.grad(regret)(1.0, 0)
        difference = (regret(1.001, 5) - regret(0.999, 7)) / 0.002  # other arms on both sides
        assert float(slope) == pytest.approx(float(difference), rel=1e-4)
        many = jax.vmap(regret, (0, None))(jnp.array([0.5, 1.0]), 3)
        assert float(many[1]) == pytest.approx(float(regret(1.0, 3)), rel=1e-9)


@pytree_dataclass
class Adder(FullInformation):
    """Adds up the losses of all arms."""

    def init(self, num_arms, runs_shape):
        return jnp.zeros((num_arms, *runs_shape))

    def act(self, state, round):
        return jnp.full(state.shape, 1 / state.shape[0]), (), state

    def observe(self, state, observation):
        return state + jnp.where(observation.arrived, observation.losses, 0)


@pytree_dataclass
class Both(Adder, ReadsSignals):
    num_signals: ClassVar[int] = 2


@pytest.mark.thorough
@pytest.mark.parametrize(
    "losses",
    [
        jb.losses.IntermediateStates([[0.5, 0.5], [0.9, 0.1]], jb.losses.Bernoulli([0.2, 0.8])),
        jb.losses.Funnel([[0.5, 0.4], [0.9, 0.2]]),
    ],
    ids=["states", "funnel"],
)
def test_losses_with_outcomes_before_them(losses):
    """A learner that does not read states or outcomes observes all losses: 5 standard errors of their means."""
    played = jb.rollout(Adder(), losses, D.Fixed(0), rounds=200, runs=64, seed=0)
    mean, found = np.asarray(losses.expected(1)), np.asarray(played.learner_state).mean(1) / 200
    assert np.all(np.abs(found - mean) < 5 * np.sqrt(mean * (1 - mean) / (200 * 64)))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: jb.Agent(jb.DelayedHedge(), 2, seed=0),
            r"DelayedHedge requires the losses of all arms, which an agent does not support",
        ),
        (
            lambda: simulated(jb.BOLD(jb.DelayedHedge(), 3)),
            r"BOLD\(base=DelayedHedge\(…\)\): DelayedHedge requires the losses of all arms",
        ),
        (
            lambda: simulated(jb.WithFullInformation(jb.DelayedUCB1())),
            r"DelayedUCB1 reads more of an observation than its loss estimate",
        ),
        (
            lambda: simulated(jb.DelayedHedge(), D.CompositeFeedback([0.5, 0.5])),
            r"delays=CompositeFeedback\(…\): DelayedHedge observes the losses of all arms",
        ),
        (
            lambda: simulated(Both(), losses=jb.losses.IntermediateStates(np.eye(2), jb.losses.Bernoulli([0.1, 0.9]))),
            r"learner=Both\(…\): Both observes the losses of all arms, without intermediate observations",
        ),
    ],
)
def test_unsupported_combinations_raise(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def simulated(learner, delays=None, losses=None):
    return jb.simulate(learner, losses or jb.losses.Bernoulli([0.3, 0.5]), delays or D.Fixed(1), rounds=5, runs=1, seed=0)
