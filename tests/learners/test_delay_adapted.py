"""Delay-adapted estimates, loss/max{x at the action, x at the arrival}: every family against a program in float64."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from tests.learners.test_references import compare
from tests.reference import learners as reference


class Adapted:
    """Any reference whose estimates divide by the larger of the two probabilities."""

    def importance_weighted(self, s, arm, loss):
        estimate, now = np.zeros(self.arms), max(self.probabilities)
        estimate[arm] = loss / max(self.probabilities[s][arm], self.probabilities[now][arm])
        return estimate


def adapted(cls, *arguments, **fields):
    return type("Adapted" + cls.__name__, (Adapted, cls), {})(*arguments, **fields)


CASES = {
    "delayed-exp3": (jb.DelayedExp3(4.0, estimator="delay-adapted"), lambda: adapted(reference.DelayedExp3, 4, scale=4.0)),
    "dew": (
        jb.DelayedExponentialWeights(40, 80, 1, estimator="delay-adapted"),
        lambda: adapted(reference.DelayedExponentialWeights, 4, horizon=40, total_delay=80, max_delay=1),
    ),
    "tsallis-inf": (jb.TsallisINF("delay-adapted"), lambda: adapted(reference.TsallisINF, 4)),
    "bobw": (
        jb.BestOfBothWorlds(2, 1.0, 1.0, estimator="delay-adapted"),
        lambda: adapted(reference.BestOfBothWorlds, 4, max_delay=2, linear=1.0, factor=1.0),
    ),
    "zimmert-seldin": (jb.ZimmertSeldin(estimator="delay-adapted"), lambda: adapted(reference.ZimmertSeldin, 4)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ("dew", "bobw") else pytest.mark.thorough) for name in CASES]
)
def test_the_reference(name):
    """Rejects the probability at the action alone, at the arrival alone, and that of the next round."""
    mine, theirs = CASES[name]
    compare(mine, theirs(), "random")


@pytest.mark.parametrize("learner", [jb.Exp3, jb.TsallisINF])
def test_without_delay_both_estimators_have_the_same_bits(learner):
    """An estimate at the end of its own round divides by one probability: rejects that of another round."""
    games = [
        jb.simulate(learner(estimator=one), jb.losses.Bernoulli([0.3, 0.5, 0.6]), jb.delays.Fixed(0), rounds=300, runs=4, seed=3)
        for one in ("iw", "delay-adapted")
    ]
    np.testing.assert_array_equal(games[0].regret, games[1].regret)


def test_estimates_are_smaller_with_delays():
    """Rejects a field that changes nothing."""
    games = [
        jb.simulate(jb.Exp3(estimator=one), jb.losses.Bernoulli([0.1, 0.9]), jb.delays.Fixed(20), rounds=200, runs=4, seed=3)
        for one in ("iw", "delay-adapted")
    ]
    assert np.abs(games[0].regret[-1] - games[1].regret[-1]).max() > 1e-3


def test_gradients_use_paired_differences():
    """The divisor depends on what arrived in between, for which the jump tangent is not derived."""
    learner, losses = jb.Exp3(estimator="delay-adapted"), jb.losses.Bernoulli([0.2, 0.8])
    with pytest.warns(UserWarning, match=r"Exp3\(estimator='delay-adapted'\) does more.*'paired' is used"):
        found = jb.regret_gradient(learner, losses, jb.delays.Fixed(3), rounds=60, runs=256, seed=0)
    assert found.estimator == "paired"
    up, down = (
        jb.simulate(jb.Exp3(scale, "delay-adapted"), losses, jb.delays.Fixed(3), rounds=60, runs=4096, seed=1).regret[-1].mean()
        for scale in (1.2, 0.8)
    )
    assert abs(float(found.gradient.scale) - (up - down) / 0.4) < 5 * float(found.error.scale)
    assert float(found.gradient.scale) < -5 * float(found.error.scale)  # rejects a derivative of 0


def test_a_wrong_estimator_is_named():
    with pytest.raises(ValueError, match=r"BestOfBothWorlds\(estimator='adapted'\): the estimator is 'iw' or 'delay-adapted'"):
        jb.simulate(
            jb.BestOfBothWorlds(1, estimator="adapted"),
            jb.losses.Bernoulli([0.3, 0.5]),
            jb.delays.Fixed(1),
            rounds=3,
            runs=1,
            seed=0,
        )


def test_an_agent_makes_the_decisions_of_a_rollout():
    """Rejects an agent whose probabilities at arrival are of another round: feedback arrives two rounds after its action."""
    learner, table = jb.Exp3(3.0, "delay-adapted"), np.random.default_rng(0).random((12, 2))
    game = jb.rollout(
        learner, jb.losses.Table(table), jb.delays.Fixed(2), rounds=12, seed=5, record=range(1, 13), probabilities=True
    )
    agent, tickets = jb.Agent(learner, 2, seed=5), []
    for t in range(12):
        tickets.append(agent.act())
        np.testing.assert_allclose(agent.probabilities, np.asarray(game.probabilities)[t], rtol=1e-6)
        if t >= 2:
            due = tickets[t - 2]
            agent.observe(due.id, loss=float(table[t - 2, due.arm]))


def test_single_arm_and_x64():
    with jax.enable_x64(True):
        result = jb.simulate(
            jb.TsallisINF("delay-adapted"), jb.losses.Bernoulli([0.5]), jb.delays.Fixed(2), rounds=20, runs=2, seed=0
        )
    assert result.regret.dtype == np.float64
    assert not result.regret.any()
