"""The gradient of the expected regret: shapes, modes, agreement between estimators, and what is said when one cannot be used."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxbandit as jb
from jaxbandit._core.arms import pick
from jaxbandit._core.fields import Limits, canonical, number, pytree_dataclass
from jaxbandit.gradients import estimators as gradients
from jaxbandit.gradients.jump import play_weight
from jaxbandit.gradients.numbers import Parameter, numbers_of
from jaxbandit.learners.arm_dependent import ArmDependentFTRL
from jaxbandit.learners.asymmetric import AsymmetricBestOfBothWorlds
from jaxbandit.learners.ftrl import scaled_sqrt
from jaxbandit.learners.skipping import RobustBestOfBothWorlds, ZimmertSeldin

KEY = jax.random.key(0)
LAW, DELAYS = jb.losses.Bernoulli([0.3, 0.5, 0.5]), jb.delays.Fixed(3)


def obstacle(learner, delays):
    """Why the jump tangent cannot be used for a number of the learner."""
    number = numbers_of("learner", canonical(jb.TsallisINF()))[0]
    return gradients._obstacle(number, learner, LAW, delays, "jump", False)


GAME = {"rounds": 60, "runs": 512, "key": KEY}


@pytest.mark.thorough
def test_shaped_like_the_learner():
    learner = jb.BestOfBothWorlds(3, 1.0, 1.0)
    found = jb.regret_gradient(learner, LAW, DELAYS, only=["linear", "factor"], **GAME)
    assert found.estimator == "jump"
    assert found.gradient.factor > 5 * found.error.factor > 0
    assert found.gradient.max_delay == found.error.max_delay == 0
    better = optax.apply_updates(learner, jax.tree.map(lambda slope: -0.1 * slope, found.gradient))
    assert better.factor < 1  # type: ignore[union-attr]
    plain = jb.simulate(learner, LAW, DELAYS, record=1, **GAME).estimate()
    assert abs(found.value - plain.mean[-1]) < 5 * plain.error[-1]
    assert found.value_error < plain.error[-1]


@pytest.mark.thorough
def test_forward_and_reverse_are_the_same_derivative():
    """Also with delays that differ by run, and through the last, shorter segment of rounds."""
    options = {"rounds": 39, "runs": 256, "key": KEY, "control_variates": False, "only": ["factor", "tsallis_scale"]}
    learner, delays = jb.BestOfBothWorlds(3, 1.0, 1.0), jb.delays.UniformRandom(0, 3)
    forward, back = (jb.regret_gradient(learner, LAW, delays, reverse=reverse, **options) for reverse in (False, True))
    for name in options["only"]:
        assert getattr(back.gradient, name) == pytest.approx(getattr(forward.gradient, name), rel=1e-3)
    assert back.value == pytest.approx(forward.value, rel=1e-5)


@pytest.mark.slow
def test_any_number_of_runs_is_a_part_of_the_same_runs():
    options = {"rounds": 30, "key": KEY, "control_variates": False, "only": ["factor"]}
    learner = jb.BestOfBothWorlds(3)
    first, rest = (
        jb.regret_gradient(learner, LAW, DELAYS, runs=300, first_run=start, **options).gradient.factor for start in (0, 300)
    )
    both = jb.regret_gradient(learner, LAW, DELAYS, runs=600, **options).gradient.factor
    assert both == pytest.approx((first + rest) / 2, rel=1e-5)


@pytest.mark.parametrize(
    ("learner", "delays"),
    [
        (jb.DelayedUCB1(), DELAYS),
        (jb.DelayedThompson(), DELAYS),
        (jb.Exp3PlusPlus(), DELAYS),
        (ArmDependentFTRL(3), DELAYS),
        (AsymmetricBestOfBothWorlds(3), DELAYS),
        (jb.BOLD(jb.TsallisINF(), 4), DELAYS),
        (jb.QPMD(jb.TsallisINF(), 4), DELAYS),
        (jb.BankerTsallisINF(), DELAYS),  # its jumps are long, and its jump tangent off by 6 to 35 %
        (jb.TsallisINF(), jb.delays.ArmDependent([jb.delays.Fixed(0)] * 3)),
    ],
)
def test_where_jump_does_not_apply(learner, delays):
    assert "'paired' is used" in obstacle(learner, delays)


@pytest.mark.parametrize(
    "learner",
    [jb.BestOfBothWorlds(3), ZimmertSeldin(skipping=True), RobustBestOfBothWorlds(), jb.TsallisINF("rv"), jb.Exp3(),
     AsymmetricBestOfBothWorlds(3, gaps=[0.0, 0.2, 0.2]), jb.Skipper(3, 100, 300)],
)  # fmt: skip
def test_where_jump_applies(learner):
    assert obstacle(learner, DELAYS) == ""


def test_paired_is_chosen_and_said():
    gradients._say_once.cache_clear()
    with pytest.warns(UserWarning, match="'paired' is used"):
        found = jb.regret_gradient(jb.DelayedUCB1(), LAW, DELAYS, rounds=10, runs=4, key=KEY)
    assert found.estimator == "paired"
    assert "'paired' is used" in found.note


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "magic"}, "estimator='magic': the estimators are"),
        ({"step": 0}, "step=0"),
        ({"only": ["facto"]}, r"only=\['facto'\]: BestOfBothWorlds has the hyperparameters"),
        ({"only": []}, r"only=\[\]: give a list of hyperparameters"),
        ({"rounds": 0}, "rounds=0"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        jb.regret_gradient(jb.BestOfBothWorlds(3), LAW, DELAYS, **(GAME | options))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "estimator", ["jump", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("paired", "score", "fluid"))]
)
def test_one_run_tells_no_error(estimator):
    """Only the fluid limit of shared delays leaves nothing to chance."""
    one = {"rounds": 20, "runs": 1, "key": KEY, "only": ["factor"]}
    found = jb.regret_gradient(jb.BestOfBothWorlds(3), LAW, DELAYS, estimator=estimator, **one)
    assert np.isfinite([found.value, found.gradient.factor]).all()
    errors = [found.value_error, found.error.factor]
    assert errors == [0, 0] if estimator == "fluid" else np.isnan(errors).all()


def test_a_learner_without_numbers():
    with pytest.raises(ValueError, match="no hyperparameter"):
        jb.regret_gradient(jb.Uniform(), LAW, DELAYS, **GAME)


CASES = {
    "MZS22": (jb.BestOfBothWorlds(3, 1.0, 1.0), "factor", LAW, DELAYS),
    "ZS20": (ZimmertSeldin(), "entropy_scale", LAW, DELAYS),
    "Tsallis-INF, no delay": (jb.TsallisINF(), "scale", LAW, jb.delays.Fixed(0)),
    "reduced variance": (jb.TsallisINF("rv"), "scale", LAW, DELAYS),
    "delayed Exp3": (jb.DelayedExp3(), "scale", LAW, DELAYS),
    "delayed Exp3, no delay": (jb.DelayedExp3(0.64), "scale", jb.losses.Bernoulli([0.13, 0.24, 0.68]), jb.delays.Fixed(0)),
    "MZS24": (RobustBestOfBothWorlds(1.0), "tsallis_scale", LAW, DELAYS),
    "beta losses": (jb.TsallisINF(), "scale", jb.losses.Beta([0.3, 0.5, 0.5]), DELAYS),
    "clipped normal losses": (jb.TsallisINF(), "scale", jb.losses.ClippedNormal([0.3, 0.5, 0.5], 0.3), DELAYS),
    "a table": (jb.TsallisINF(), "scale", jb.losses.Table(np.tile([[0.2, 0.6, 0.5]], (300, 1))), DELAYS),
    "random delays": (jb.BestOfBothWorlds(3, 1.0, 1.0), "factor", LAW, jb.delays.UniformRandom(0, 3)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_jump_agrees_with_paired_differences(case):
    """Paired differences at two steps, extrapolated to step 0."""
    learner, name, law, delays = CASES[case]

    def slope(**options):
        found = jb.regret_gradient(learner, law, delays, rounds=300, runs=16384, key=KEY, only=[name], **options)
        return float(getattr(found.gradient, name)), float(getattr(found.error, name))

    (wide, _), (narrow, error) = slope(estimator="paired", step=0.4), slope(estimator="paired", step=0.2)
    truth = (4 * narrow - wide) / 3
    found, own = slope()
    assert abs(found - truth) < 5 * np.hypot(own, 4 / 3 * error) + 0.02 * abs(truth)


@pytest.mark.slow
def test_the_threshold_of_reduced_variance_is_seen():
    """Holding the baseline fixed makes the derivative in the threshold 0, and that in the scale 3 to 5 % too large."""
    options = {"rounds": 100, "runs": 16384, "key": KEY, "only": ["threshold"]}
    game = jb.TsallisINF("rv", 2.0, 8.0), jb.losses.Bernoulli([0.2, 0.5, 0.6]), jb.delays.Fixed(2)
    jump, paired = (jb.regret_gradient(*game, estimator=one, **options) for one in ("jump", "paired"))
    assert jump.estimator == "jump"
    error = float(np.hypot(jump.error.threshold, paired.error.threshold))
    assert abs(jump.gradient.threshold - paired.gradient.threshold) < 5 * error < 0.6 * paired.gradient.threshold


@pytest.mark.slow
def test_score_agrees_with_jump():
    options = {"rounds": 100, "runs": 8192, "key": KEY, "only": ["factor"]}
    learner = jb.BestOfBothWorlds(3)
    jump, score = (jb.regret_gradient(learner, LAW, DELAYS, estimator=one, **options) for one in ("jump", "score"))
    error = float(np.hypot(jump.error.factor, score.error.factor))
    assert abs(jump.gradient.factor - score.gradient.factor) < 4 * error < 0.2 * jump.gradient.factor


def differences(make, value, step, learner, **options):
    """d regret / d value by brute force: another simulation on either side, each with runs of its own."""
    sides = []
    for sign, first_run in ((1, 0), (-1, 10**6)):
        law, delays = make(value + sign * step)
        ends = jb.simulate(learner, law, delays, record=1, first_run=first_run, **options).regret[-1].astype(float)
        sides.append((ends.mean(), ends.std() / np.sqrt(len(ends))))
    (up, up_error), (down, down_error) = sides
    return (up - down) / (2 * step), np.hypot(up_error, down_error) / (2 * step)


LAWS = {  # part, field, game at a value of the field, the value, a step for brute force
    "gap": ("losses", "gap", lambda gap: (jb.losses.StochasticallyConstrained(gap, 3), DELAYS), 0.3, 0.06),
    "mean delay": ("delays", "mean", lambda mean: (LAW, jb.delays.Geometric(mean, bound=63)), 4.0, 1.0),
    "feedback that comes": ("delays", "probability", lambda p: (LAW, jb.delays.PacketLoss(p, 2)), 0.6, 0.1),
    "one more round of delay": ("delays", "delay", lambda d: (LAW, jb.delays.Fixed(int(d))), 4, 1),
}
PLAYERS = {
    "bobw": jb.BestOfBothWorlds(8, 1.0, 1.0),
    "Tsallis-INF": jb.TsallisINF(),
    "delayed Exp3": jb.DelayedExp3(),
    "UCB1": jb.DelayedUCB1(),
    "Thompson": jb.DelayedThompson(),
}


@pytest.mark.slow
@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("case", LAWS)
def test_numbers_of_laws_against_brute_force(case, player):
    """Rejects the derivative of a rollout, which is 0 in the numbers of delays and has another sign in the gap."""
    part, field, make, value, step = LAWS[case]
    learner, options = PLAYERS[player], {"rounds": 200, "runs": 2**16, "key": KEY}
    truth, error = differences(make, value, step, learner, **options)
    found = jb.regret_gradient(learner, *make(value), wrt=part, only=[field], **options)
    own = float(vars(found.error)[field])
    assert abs(float(vars(found.gradient)[field]) - truth) < 4 * np.hypot(own, error) + 0.02 * abs(truth)
    # Brute force at the narrow step of the extrapolation, .025 in place of .06 and times 4/3, would have 3.2 times the error.
    assert own < 3 * error


@pytest.mark.thorough
def test_the_jump_tangent_in_chances():
    """d/d means against the score function, which has no bias, and the right estimator is chosen for each number."""
    game = jb.BestOfBothWorlds(1, 1.0, 1.0), jb.losses.Bernoulli([0.3, 0.6]), jb.delays.Fixed(1)
    options = {"rounds": 6, "runs": 2**15, "key": KEY, "wrt": "losses"}
    jump, score = (jb.regret_gradient(*game, estimator=one, **options) for one in ("jump", "score"))
    assert (jump.estimator, score.estimator) == ("jump", "score")
    error = np.hypot(jump.error.means, score.error.means)
    assert np.all(np.abs(jump.gradient.means - score.gradient.means) < 5 * error)
    assert np.all(5 * error < 0.05 * np.abs(jump.gradient.means))  # and it would see an error of 5 %


@pytest.mark.thorough
def test_several_parts():
    found = jb.regret_gradient(jb.TsallisINF(), LAW, DELAYS, rounds=20, runs=256, key=KEY, wrt=["learner", "losses", "delays"])
    assert set(found.gradient) == set(found.error) == {"learner", "losses", "delays"}
    assert found.estimator == "jump and paired"
    assert "the regret jumps with the numbers of delays.Fixed" in found.note
    alone = jb.regret_gradient(jb.TsallisINF(), LAW, DELAYS, rounds=20, runs=256, key=KEY, wrt="delays")
    assert alone.gradient.delay == found.gradient["delays"].delay
    assert "delays.delay" in repr(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wrt": "loss"}, "wrt='loss': give one or several of 'learner', 'losses', 'delays'"),
        ({"wrt": []}, r"wrt=\[\]: give one or several"),
        ({"wrt": ["losses", "losses"]}, "give one or several"),
        ({"wrt": 3}, "wrt=3: give one or several"),
        ({"wrt": "losses", "only": ["gap"]}, r"only=\['gap'\]: Bernoulli has the hyperparameters means"),
        ({"wrt": ["losses", "delays"], "only": ["delay"]}, "the game has the hyperparameters losses.means, delays.delay"),
    ],
)
def test_wrong_parts(options, message):
    with pytest.raises(ValueError, match=message):
        jb.regret_gradient(jb.BestOfBothWorlds(3), LAW, DELAYS, **(GAME | options))


@pytree_dataclass
class Wavy(jb.extend.DifferentiableLosses):
    """Two arms without chance, whose gap is 0.3 + 0.2·sin(20·phase)."""

    phase: Any = number(low=0.0, high=1.0)
    num_arms = 2
    stationary = True

    def expected(self, t):
        return jnp.stack([jnp.zeros(()), 0.3 + 0.2 * jnp.sin(20 * self.phase)])

    def second_moment(self, t):
        return self.expected(t) ** 2

    def sample(self, t, arm, noise):
        return pick(self.expected(t), arm)


@pytest.mark.parametrize(("phase", "tolerance"), [(0.3, 0.003), (0.03, 0.045)])
def test_differences_in_means_are_extrapolated(phase, tolerance):
    """Uniform plays have the regret T·gap/2. One step of 0.05 is off by 16 %; at 0.03 from the end of the range, one of 0.03 by 6 %."""
    found = jb.regret_gradient(jb.Uniform(), Wavy(phase), jb.delays.Fixed(0), rounds=10, runs=2, key=KEY, wrt="losses")
    assert found.estimator == "paired"
    assert found.gradient.phase == pytest.approx(10 / 2 * 0.2 * 20 * np.cos(20 * phase), rel=tolerance)


def test_an_arm_without_losses_whose_probability_came_to_zero():
    """Dividing by its second moment and probability, both 0, makes the weight of every play of the round no number."""
    x, means = jnp.array([jnp.finfo(jnp.float32).tiny, 0.5, 0.5]), jnp.array([0.0, 0.3, 0.3])
    weights = [play_weight(x[:, None], means[:, None], means[:, None], jnp.array([1]), jnp.array([loss])) for loss in (0.0, 1.0)]
    # Its mean jump is 0, so that the others' is to be 0 as well: plays of loss 0 alone count, with 1/p₀, up to the ridge.
    none, one = np.ravel(weights)
    assert none == pytest.approx(1 / 0.7, rel=5e-3)
    assert 0.7 * none + 0.3 * one == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize(
    ("learner", "far"),
    [
        *(pytest.param(one, True, marks=pytest.mark.thorough) for one in (jb.TsallisINF(scale=0.5), jb.TsallisINF("rv"))),
        pytest.param(jb.TsallisINF(), False, marks=pytest.mark.thorough),
    ],
)
def test_long_jumps_are_told(learner, far):
    """Below a scale of 0.7 the jump tangent is off by 2 to 30 %: the Gradient says so, and what to compare with."""
    game = learner, jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        notes = [jb.regret_gradient(*game, rounds=20, runs=16, seed=0, estimator=one).note for one in (None, "paired")]
    assert ("compare with estimator='paired'" in notes[0]) is far
    assert not notes[1]


@pytest.mark.thorough
def test_sides_that_have_hardly_parted_are_not_compared():
    """With the control variates of both sides, which had few runs to make their mean 0, this was 10 standard errors off."""
    game = jb.BestOfBothWorlds(5), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5)
    options = {"rounds": 50, "runs": 256, "seed": 0, "only": ["linear"]}
    jump, paired = (jb.regret_gradient(*game, estimator=one, **options) for one in ("jump", "paired"))
    error = float(np.hypot(jump.error.linear, paired.error.linear))
    assert abs(jump.gradient.linear - paired.gradient.linear) < 4 * error < 0.4 * jump.gradient.linear


@pytest.mark.thorough
def test_sides_that_are_nearly_the_same_leave_a_fit_that_can_be_solved():
    law = jb.losses.Drifting([0.3, 0.5], [0.5, 0.35], 50)
    options = {"rounds": 50, "runs": 256, "seed": 0, "wrt": "losses", "only": ["end"], "estimator": "paired"}
    with_them, without = (
        jb.regret_gradient(jb.TsallisINF(), law, jb.delays.Fixed(2), control_variates=one, **options) for one in (True, False)
    )
    assert np.all(with_them.error.end < 1.1 * without.error.end)  # it was a thousand times larger


@pytest.mark.parametrize("means", [[0.0, 0.5], [0.3, 1.0]])
def test_chances_of_0_and_1_move_by_paired_differences(means):
    """Of a loss that never comes nothing can be sampled: the jump tangent and the score function had another sign."""
    options = {"rounds": 5, "runs": 8, "seed": 0, "wrt": "losses"}
    gradients._say_once.cache_clear()
    with pytest.warns(UserWarning, match="losses with mean 0 or 1"):
        found = jb.regret_gradient(jb.TsallisINF(), jb.losses.Bernoulli(means), DELAYS, estimator="jump", **options)
    assert (found.estimator, "losses with mean 0 or 1 have no derivative" in found.note) == ("paired", True)


def test_a_scale_of_0_has_a_derivative():
    """1/γ is proportional to the scale; the derivative of √(scale²…) was taken to be 0 there."""
    value = jnp.asarray([0.0, 3.0])
    result, slope = jax.jvp(lambda scale: scaled_sqrt(value, scale, 2.0, 0.7), (0.0,), (1.0,))
    np.testing.assert_allclose(result, 0)
    np.testing.assert_allclose(slope, [0, np.sqrt(3 * 2 / 0.7)], rtol=1e-6)
    for scale in (0.5, 2.0):
        _, slope = jax.jvp(lambda value, scale=scale: scaled_sqrt(value, scale, 2.0, 0.7), (value,), (jnp.ones(2),))
        np.testing.assert_allclose(slope, [0, scale * np.sqrt(2 / 0.7 / 3) / 2], rtol=1e-6)


def test_moved_laws_and_numbers_of_either_sign():
    """A law may not be moved to low above high; a number that may be negative has no logarithm."""
    delays = jb.delays.UniformRandom(3, 3, bound=8)
    low, high = numbers_of("delays", delays)[:2]
    given = {"delays": delays}
    kept = [gradients._kept_legal(given, one, 2, (*one.moves(0.1)[0], 1.0))[:3] for one in (low, high)]
    assert [tuple(float(value) for value in one) for one in kept] == [(3, 2, 1), (4, 3, 1)]
    either = Parameter("learner", "shift", 0, np.asarray(1e-6), Limits(-5.0, 5.0), False)
    ((up, down, width),) = either.moves(0.3)
    np.testing.assert_allclose([up, down, width], [0.3, -0.3, 0.6], rtol=1e-4)
