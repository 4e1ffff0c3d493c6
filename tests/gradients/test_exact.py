"""Gradient estimators against the exact gradient: every path of small games, in float64, no sampling."""

import jax
import jax.numpy as jnp
import pytest

import jaxbandit as jb
from jaxbandit._core.fields import pytree_dataclass
from jaxbandit.learners import tsallis
from jaxbandit.learners.base import ImportanceWeighted
from jaxbandit.learners.ftrl import FTRLState, follow_leader, hybrid_stiffness
from tests import enumeration

COINS = [[0.0, 1.0], [0.0, 1.0]]
GAMES = {  # two values of the loss for each arm, and the chance of the second
    "coins": (COINS, [0.3, 0.7]),
    "coins, high means": (COINS, [0.6, 0.8]),
    "half coins": ([[0.0, 0.5], [0.0, 0.5]], [0.3, 0.7]),
    "other values": ([[0.2, 0.9], [0.1, 1.0]], [0.3, 0.7]),
    "constant": ([[0.3, 0.3], [0.6, 0.6]], [0.5, 0.5]),
    "an arm without loss": ([[0.0, 0.0], [0.6, 0.6]], [0.5, 0.5]),
}


@pytree_dataclass
class Floored(ImportanceWeighted):
    """Tsallis-INF that divides by max(x, floor): implicit exploration."""

    scale: float
    floor: float

    def init(self, num_arms, runs_shape):
        return FTRLState.start(num_arms, runs_shape)

    def act(self, state, round):
        rate = self.scale * jnp.sqrt(round.time)
        probabilities, state = follow_leader(state, rate, jnp.zeros_like(rate))
        return probabilities, (), state

    def stiffness(self, state, round, probabilities):
        return hybrid_stiffness(probabilities, self.scale * jnp.sqrt(round.time), 0.0)

    def observe(self, state, observation):
        return state.add(observation.loss_estimate(2, floor=self.floor))


LEARNERS = {
    "MZS22, linear": (jb.BestOfBothWorlds(1, 1.0, 1.0), enumeration.MZS22(1, 1.0, 1.0), "linear"),
    "MZS22, factor": (jb.BestOfBothWorlds(1, 1.0, 1.0), enumeration.MZS22(1, 1.0, 1.0), "factor"),
    "tapered, power": (
        jb.TaperedFTRL(4, robustness=1.5, power=0.3),
        enumeration.Tapered(4, 1.5, 0.3),
        "power",
    ),  # 5 rounds: doubled
    "Tsallis-INF": (jb.TsallisINF(scale=1.5), enumeration.Tsallis(1.5), "scale"),
    "reduced variance": (jb.TsallisINF("rv", scale=3.0, threshold=0.7), enumeration.ReducedVariance(3.0, 0.7), "scale"),
    "exponential weights": (jb.DelayedExp3(scale=0.3), enumeration.Hedge(0.3), "scale"),
    "exponential weights, fast": (jb.DelayedExp3(scale=0.7), enumeration.Hedge(0.7), "scale"),
    "implicit exploration": (Floored(1.5, 0.3), enumeration.Floored(1.5, 0.3), "scale"),
}


def bias(name, game, rounds, delay, estimator, monkeypatch):
    """Relative error of the estimator's mean; the expected regrets must agree to rounding."""
    mine, rule, field = LEARNERS[name]
    values, chances = GAMES[game]
    # On finitely many paths hardly any meets the threshold of reduced variance: the truth is the slope between two steps.
    monkeypatch.setattr(tsallis, "CROSSING", 1e9)
    with jax.enable_x64(True):
        gradient, regret = enumeration.expected_estimate(
            mine, values, chances, rounds, jb.delays.Fixed(delay, bound=3), estimator, monkeypatch
        )
    truth = enumeration.true_gradient(rule, field, values, chances, rounds, delay)
    assert regret == pytest.approx(enumeration.expected_regret(rule, values, chances, rounds, delay), rel=1e-10)
    return getattr(gradient, field) / truth - 1


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in ("MZS22, linear", "exponential weights, fast")])
def test_jump_is_nearly_unbiased(name, monkeypatch):
    assert abs(bias(name, "other values", 5, 1, "jump", monkeypatch)) < 0.01


def test_jump_of_exponential_weights_without_delay(monkeypatch):
    """With the stiffness of the probabilities, 2/rate, it would be 1.8 %."""
    assert abs(bias("exponential weights, fast", "coins, high means", 5, 0, "jump", monkeypatch)) < 0.012


@pytest.mark.slow
def test_score_is_exact_with_a_baseline(monkeypatch):
    assert abs(bias("reduced variance", "coins", 6, 0, "score", monkeypatch)) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 1, 2])
@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("name", LEARNERS)
def test_jump_is_nearly_unbiased_everywhere(name, game, delay, monkeypatch):
    rounds = 5 if name == "exponential weights, fast" else 7  # over 6 rounds rare arms leave the expected regrets 6e-10 apart
    assert abs(bias(name, game, rounds, delay, "jump", monkeypatch)) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 1, 2])
def test_jump_over_nine_rounds(delay, monkeypatch):
    assert abs(bias("MZS22, factor", "coins", 9, delay, "jump", monkeypatch)) < 0.01


@pytest.mark.thorough
def test_score_is_exact(monkeypatch):
    # Its baseline takes the mean over the other paths of the block: right but for one part in 4^6.
    assert abs(bias("MZS22, factor", "coins", 6, 1, "score", monkeypatch)) < 1e-3


@pytest.mark.thorough
def test_holding_the_arms_fixed_is_another_derivative(monkeypatch):
    """What differentiating a rollout gives: off by more than a tenth even over six rounds."""
    assert abs(bias("MZS22, factor", "coins", 6, 0, "fixed arms", monkeypatch)) > 0.1


@pytest.mark.slow
def test_fluid_is_biased(monkeypatch):
    mine, rule, field = LEARNERS["MZS22, factor"]
    with jax.enable_x64(True):
        fluid, _ = enumeration.expected_estimate(mine, *GAMES["coins"], 6, jb.delays.Fixed(0), "fluid", monkeypatch)
    truth = enumeration.true_gradient(rule, field, *GAMES["coins"], 6, 0)
    assert 0.02 < abs(getattr(fluid, field) / truth - 1) < 1
