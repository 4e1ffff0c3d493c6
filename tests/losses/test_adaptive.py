"""Adaptive adversaries: the engine's losses, means and regret against a program in NumPy that follows the arms of each run."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.extend import AdaptiveLosses, Losses, float_dtype, number, one_hot, pytree_dataclass

D = jb.delays


@pytree_dataclass
class Retaliation(AdaptiveLosses):
    """The arm of the last round has the mean loss ``high``, the others ``low``."""

    low: float = number(default=0.2, high=1.0)
    high: float = number(default=0.9, high=1.0)
    num_arms: ClassVar[int] = 3

    def init(self, runs_shape):
        return jnp.full(runs_shape, -1, jnp.int32)

    def update(self, state, t, arm):
        return arm

    def expected_after(self, state, t):
        return jnp.where(one_hot(state, 3), jnp.asarray(self.high, float_dtype()), jnp.asarray(self.low, float_dtype()))


def followed(trajectory, means_of, start, update):
    """The pseudo-regret ``[runs]`` against the best fixed arm on the realised means, and those means ``[T, K, runs]``."""
    x, arm = np.asarray(trajectory.probabilities, np.float64), np.asarray(trajectory.arm)
    rounds, _, runs = x.shape
    means = np.zeros_like(x)
    for run in range(runs):
        state = start()
        for t in range(rounds):
            means[t, :, run] = means_of(state)
            state = update(state, arm[t, run])
    return (x * means).sum((0, 1)) - means.sum(0).min(0), means


MATRIX = np.array([[0.1, 0.9, 0.4], [0.8, 0.2, 0.5]])


def hedge_columns(gains):
    weights = np.exp(0.3 * (gains - gains.max()))
    return MATRIX @ (weights / weights.sum())


CASES = {
    "retaliation": (Retaliation(), lambda last: np.where(np.arange(3) == last, 0.9, 0.2), lambda: -1, lambda state, arm: arm),
    "game": (
        jb.losses.RepeatedGame(MATRIX, rate=0.3),
        hedge_columns,
        lambda: np.zeros(3),
        lambda gains, arm: gains + MATRIX[arm],
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("delays", [D.Fixed(3), pytest.param(D.Geometric(3.0), marks=pytest.mark.thorough)], ids=str)
def test_the_regret_is_that_of_the_realised_sequence(case, delays):
    """Rejects the state of another run, an update that comes before the loss, and the regret of oblivious means."""
    losses, means_of, start, update = CASES[case]
    with jax.enable_x64(True):
        game = jb.rollout(jb.TsallisINF(), losses, delays, rounds=80, runs=5, seed=1, measure=[jb.measure.Trajectory()])
    regret, means = followed(game.trajectory, means_of, start, update)
    np.testing.assert_allclose(np.asarray(game.regret[-1]), regret, rtol=1e-9, atol=1e-9)
    assert np.ptp(means[-1], axis=-1).max() > 1e-3  # runs differ: the adversary looks at the arms of each
    # Losses are drawn around these means: five standard errors over 400 rounds.
    arm, loss = np.asarray(game.trajectory.arm), np.asarray(game.trajectory.loss)
    own = np.take_along_axis(means, arm[:, None], 1)[:, 0]
    assert abs((loss - own).mean()) < 5 * 0.5 / np.sqrt(arm.size)


def test_simulate_rollout_and_vmap_agree():
    """Rejects a state that is shared by runs or blocks."""
    law = jb.losses.RepeatedGame(MATRIX, rate=0.3)
    options = {"rounds": 60, "record": [60], "seed": 4}
    whole = jb.simulate(jb.Exp3(), law, D.Fixed(2), runs=6, **options).regret[-1]
    later = jb.simulate(jb.Exp3(), law, D.Fixed(2), runs=2, first_run=4, **options).regret[-1]
    np.testing.assert_array_equal(whole[4:], later)
    rolled = jb.rollout(jb.Exp3(), law, D.Fixed(2), runs=6, **options).regret[-1]
    np.testing.assert_allclose(whole, rolled, rtol=1e-4, atol=1e-4)

    def regret(rate, run):
        losses = jb.losses.RepeatedGame(MATRIX, rate=rate)
        return jb.rollout(jb.Exp3(), losses, D.Fixed(2), first_run=run, **options).regret[-1]

    mapped = jax.vmap(regret)(jnp.full(6, 0.3), jnp.arange(6))
    np.testing.assert_allclose(whole, mapped, rtol=1e-3, atol=1e-3)


def test_resumed_runs_keep_the_adversarys_state():
    """Rejects a resumed simulation whose adversary has forgotten the first rounds."""
    law, options = jb.losses.RepeatedGame(MATRIX, rate=0.3), {"runs": 4, "seed": 4}
    first = jb.simulate(jb.Exp3(), law, D.Fixed(2), rounds=30, **options)
    resumed = jb.simulate(jb.Exp3(), law, D.Fixed(2), rounds=60, resume=first, **options)
    np.testing.assert_array_equal(resumed.regret[-1], jb.simulate(jb.Exp3(), law, D.Fixed(2), rounds=60, **options).regret[-1])


@pytest.mark.thorough
def test_values_for_each_run_and_sweeps(tmp_path):
    rates = np.array([0.0, 0.3, 0.3, 1.0])
    many = jb.simulate(jb.Exp3(), jb.losses.RepeatedGame(MATRIX, rate=rates), D.Fixed(2), rounds=60, runs=4, seed=4)
    one = jb.simulate(jb.Exp3(), jb.losses.RepeatedGame(MATRIX, rate=0.3), D.Fixed(2), rounds=60, runs=4, seed=4)
    np.testing.assert_allclose(many.regret[-1, 1:3], one.regret[-1, 1:3], rtol=1e-4, atol=1e-4)
    spec = jb.Spec(
        learners=[jb.Exp3(), jb.DelayedHedge()],
        losses=[jb.losses.RepeatedGame(MATRIX)],
        delays=[D.Fixed(2)],
        rounds=40,
        runs=4,
        seed=0,
    )
    jb.sweep(spec, tmp_path / "swept")
    assert jb.open_sweep(tmp_path / "swept").sizes["learner"] == 2


def test_full_information_against_an_adaptive_adversary():
    """The bound of Hedge holds for adaptive losses as well."""
    game = jb.simulate(jb.DelayedHedge(), Retaliation(), D.Fixed(4), rounds=300, runs=8, seed=0)
    assert game.regret[-1].max() < jb.theory.bounds.delayed_hedge(np.full(300, 4), num_arms=3).total


@pytest.mark.thorough
def test_policy_regret():
    """Against the program in NumPy. Rejects comparators that meet the losses of the run, and a state lost between two calls."""
    options = {"runs": 3, "seed": 2, "measure": [jb.measure.PolicyRegret(), jb.measure.Trajectory()]}
    whole = jb.simulate(jb.TsallisINF(), Retaliation(), D.Fixed(2), rounds=30, record=[20, 30], **options)
    _, means = followed(whole.trajectory, lambda last: np.where(np.arange(3) == last, 0.9, 0.2), lambda: -1, lambda _, arm: arm)
    suffered = (np.asarray(whole.trajectory.probabilities, np.float64) * means).sum((0, 1))
    policy = np.asarray(whole.measured["policy_regret"])
    np.testing.assert_allclose(policy[-1], suffered - (0.2 + 29 * 0.9), atol=1e-4)
    first = jb.simulate(jb.TsallisINF(), Retaliation(), D.Fixed(2), rounds=20, record=[20], **options)
    np.testing.assert_array_equal(first.measured["policy_regret"][-1], policy[0])
    resumed = jb.simulate(jb.TsallisINF(), Retaliation(), D.Fixed(2), rounds=30, record=[30], resume=first, **options)
    np.testing.assert_array_equal(resumed.measured["policy_regret"][-1], policy[-1])


@pytest.mark.thorough
def test_policy_regret_in_a_batch_of_adversaries():
    def end(high):
        measure = [jb.measure.PolicyRegret()]
        return jb.rollout(
            jb.TsallisINF(), Retaliation(high=high), D.Fixed(2), rounds=30, runs=3, seed=2, measure=measure
        ).measured["policy_regret"][-1]

    together, apart = jax.vmap(end)(jnp.array([0.5, 0.9])), [end(0.5), end(0.9)]
    np.testing.assert_allclose(together, apart, atol=1e-4)


def test_measurements():
    """Rejects the smallest mean of all runs in place of each run's own, and a formula with one best arm for all runs."""
    measure = [jb.measure.DynamicRegret(), jb.ControlVariates()]
    with jax.enable_x64(True):
        game = jb.rollout(
            jb.Exp3(), jb.losses.RepeatedGame(MATRIX, rate=0.3), D.Fixed(2), rounds=40, runs=4, seed=0,
            measure=[*measure, jb.measure.Trajectory()],
        )  # fmt: skip
    _, means = followed(game.trajectory, *CASES["game"][1:])
    suffered = (np.asarray(game.trajectory.probabilities) * (means - means.min(1, keepdims=True))).sum((0, 1))
    np.testing.assert_allclose(np.asarray(game.measured["dynamic_regret"][-1]), suffered, rtol=1e-9)
    with pytest.raises(ValueError, match=r"measure=\[BestArm\(…\)\]: it requires mean losses that are the same in all runs"):
        jb.rollout(jb.Exp3(), Retaliation(), D.Fixed(2), rounds=4, seed=0, measure=[jb.measure.BestArm()])


def test_checks():
    jb.check_losses(Retaliation())
    jb.check_losses(jb.losses.RepeatedGame(MATRIX))


@pytree_dataclass
class Wrong(Retaliation):
    def update(self, state, t, arm):
        return arm.astype(jnp.float32)


@pytree_dataclass
class TooLarge(Retaliation):
    def expected_after(self, state, t):
        return super().expected_after(state, t) * 2


@pytree_dataclass
class Leaking(Retaliation):
    def update(self, state, t, arm):
        return jnp.broadcast_to(arm.max() if arm.ndim else arm, arm.shape)


class Undeclared(Losses):
    num_arms = 2

    def expected_after(self, state, t):
        return jnp.zeros(2)


def game(losses):
    return jb.simulate(jb.Exp3(), losses, D.Fixed(1), rounds=5, runs=2, seed=0)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: game(Wrong()), TypeError, r"losses=Wrong\(…\): update\(state, t, arm\)"),
        (lambda: game(TooLarge()), ValueError, r"losses=TooLarge\(…\).*losses lie between 0 and 1"),
        (lambda: jb.check_losses(Leaking()), ValueError, r"update lets the losses of one run depend on the arms of the others"),
        (lambda: game(pytree_dataclass(Undeclared)()), TypeError, r"expected_after counts only in .* jb\.extend\.AdaptiveLosses"),
        (
            lambda: jb.regret_gradient(jb.Exp3(), Retaliation(), D.Fixed(1), rounds=5, runs=2, seed=0),
            TypeError,
            r"losses=Retaliation\(…\): the losses depend on the arms of the run, and no estimator of the gradient",
        ),
        (
            lambda: jb.simulate(
                jb.Exp3(),
                jb.losses.Bernoulli([0.1, 0.2]),
                D.Fixed(1),
                rounds=5,
                runs=2,
                seed=0,
                measure=[jb.measure.PolicyRegret()],
            ),
            ValueError,
            r"PolicyRegret\(\)\]: Bernoulli does not react to arms",
        ),
        (lambda: jb.losses.RepeatedGame(MATRIX).expected(1), TypeError, r"mean losses depend on past arms"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()
