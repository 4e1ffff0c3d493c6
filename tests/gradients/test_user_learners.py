"""Gradients of learners as users write them, each compared with paired differences."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._core.projection import hybrid_argmin
from jaxbandit.extend import ImportanceWeighted, Learner, float_dtype, number, pick, pytree_dataclass, static
from jaxbandit.gradients import tuning, verification
from jaxbandit.gradients.gradient import Gradient
from jaxbandit.gradients.numbers import numbers_of
from jaxbandit.gradients.tuned import Outcome, Tuned

LOSSES, DELAYS = jb.losses.Bernoulli([0.3, 0.5, 0.5]), jb.delays.Fixed(10)


@pytree_dataclass
class Exponential(ImportanceWeighted):
    """Exponential weights at rate scale/√(tK)."""

    scale: object = number(default=1.3)

    def init(self, num_arms, runs_shape):
        return jnp.zeros((num_arms, *runs_shape), float_dtype())

    def weights(self, losses, round):
        return jax.nn.softmax(-self.scale / jnp.sqrt(round.time * losses.shape[0]) * (losses - losses.min(0)), 0)

    def act(self, state, round):
        return self.weights(state, round), (), state

    def observe(self, state, observation):
        return state + observation.loss_estimate(state.shape[0])


@pytree_dataclass
class DelayAdapted(Exponential):
    """Divides by the larger of the probabilities at play and at arrival; the floor is [runs], or [K, runs] if wide."""

    wide: bool = static(default=False)

    def init(self, num_arms, runs_shape):
        losses = super().init(num_arms, runs_shape)
        return {"losses": losses, "now": losses}

    def act(self, state, round):
        x = self.weights(state["losses"], round)
        return x, (), {"losses": state["losses"], "now": x}

    def observe(self, state, observation):
        now = state["now"]
        floor = now if self.wide else pick(now, jnp.maximum(observation.arm, 0))
        return {"losses": state["losses"] + observation.loss_estimate(now.shape[0], floor=floor), "now": now}


@pytree_dataclass
class ConstantFloor(Exponential):
    """Implicit exploration with one floor for all arms."""

    floor: object = number(default=0.1)

    def observe(self, state, observation):
        return state + observation.loss_estimate(state.shape[0], floor=self.floor)


@pytree_dataclass
class Hybrid(ImportanceWeighted):
    """FTRL with Tsallis entropy and negative entropy."""

    scale: object = number(default=1.3)
    entropy: object = number(default=2.0)

    def init(self, num_arms, runs_shape):
        return jnp.zeros((num_arms, *runs_shape), float_dtype())

    def act(self, state, round):
        root = jnp.sqrt(round.time)
        return hybrid_argmin(state - state.min(0), self.scale * root, self.entropy * jnp.ones_like(root)), (), state

    def observe(self, state, observation):
        return state + observation.loss_estimate(state.shape[0])


@pytree_dataclass
class Centred(Exponential):
    """A baseline of 1/2 that is only known to ``observe``."""

    def observe(self, state, observation):
        return state + observation.loss_estimate(state.shape[0], baseline=0.5 * jnp.ones_like(state))


@pytree_dataclass
class Wrapped(ImportanceWeighted):
    """A wrapper that hands everything on."""

    base: object

    def init(self, num_arms, runs_shape):
        return self.base.init(num_arms, runs_shape)

    def act(self, state, round):
        return self.base.act(state, round)

    def observe(self, state, observation):
        return self.base.observe(state, observation)


@pytree_dataclass
class ByHand(Exponential):
    """Claims to use loss_estimate and does not."""

    def observe(self, state, observation):
        seen = observation.arrived
        weighted = jnp.where(seen, observation.loss, 0) / jnp.where(seen, observation.probability, 1)
        return state + observation.at_arm(weighted, state.shape[0])


@pytree_dataclass
class Compiled(DelayAdapted):
    """Its floor cannot be read: loss_estimate is called inside jax.jit."""

    def observe(self, state, observation):
        return jax.jit(lambda state, observation: DelayAdapted.observe(self, state, observation))(state, observation)


@pytree_dataclass
class LowerConfidence(Learner):
    """An index policy: no derivative of its path means anything."""

    scale: object = number(default=0.5)

    def init(self, num_arms, runs_shape):
        zeros = jnp.zeros((num_arms, *runs_shape), float_dtype())
        return {"count": zeros, "total": zeros}

    def act(self, state, round):
        count = jnp.maximum(state["count"], 1)
        index = state["total"] / count - self.scale * jnp.sqrt(jnp.log(round.time + 1) / count) - 10 * (state["count"] < 1)
        return jax.nn.one_hot(jnp.argmin(index, 0), count.shape[0], axis=0, dtype=count.dtype), (), state

    def observe(self, state, observation):
        num_arms = state["count"].shape[0]
        return {
            "count": state["count"] + observation.at_arm(jnp.ones_like(observation.loss), num_arms),
            "total": state["total"] + observation.at_arm(observation.loss, num_arms),
        }


@pytest.fixture(autouse=True)
def _forget():
    verification._found.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def gradient(learner, estimator, runs=1024, **options):
    options = {"rounds": 300, "seed": 0, "only": ["scale"], "verify": False, **options}
    found = jb.regret_gradient(learner, LOSSES, DELAYS, runs=runs, estimator=estimator, **options)
    (name,) = options["only"]
    slope, error = (jax.tree.leaves(tree)[0 if name.endswith("scale") else 1] for tree in (found.gradient, found.error))
    return float(slope), float(error), found


def agree(learner, **options):
    """Within five standard errors of paired differences, and these are known to 15%."""
    options = {"rounds": 500, **options}
    slope, error, _ = gradient(learner, "jump", runs=2048, **options)
    truth, spread, _ = gradient(learner, "paired", runs=8192, step=0.1, **options)
    assert spread < 0.15 * abs(truth)
    assert abs(slope - truth) < 5 * np.hypot(error, spread)


FAST = {
    "exponential weights": Exponential(),
}
THOROUGH = {
    "a floor of shape [runs]": DelayAdapted(),
    "a hybrid regulariser": Hybrid(),
    "a high rate": Exponential(4.0),
    "a floor of shape [K, runs]": DelayAdapted(wide=True),
    "a floor of no shape": ConstantFloor(),
}


@pytest.mark.parametrize(
    "learner",
    [*FAST.values(), *(pytest.param(one, marks=pytest.mark.thorough) for one in THOROUGH.values())],
    ids=[*FAST, *THOROUGH],
)
def test_gradient_agrees_with_paired_differences(learner):
    agree(learner)


@pytest.mark.thorough
def test_the_derivative_by_the_floor():
    agree(ConstantFloor(), only=["floor"])


@pytest.mark.thorough
def test_a_wrapper_has_the_gradient_of_its_base():
    wrapped, _, _ = gradient(Wrapped(Exponential()), "jump", runs=64, only=["base.scale"])
    assert wrapped == gradient(Exponential(), "jump", runs=64)[0]


@pytree_dataclass
class WithFormula(Exponential):
    """Exponential weights that define their stiffness, 2/rate."""

    def stiffness(self, state, round, probabilities):
        return jnp.full_like(probabilities, 2 * jnp.sqrt(round.time * probabilities.shape[0]) / self.scale)


@pytest.mark.thorough
def test_exponential_weights_need_no_formula():
    formula, derived = (gradient(one, "jump", runs=64, rounds=60)[0] for one in (WithFormula(), Exponential()))
    assert derived == pytest.approx(formula, rel=1e-4)


@pytest.mark.thorough
def test_derived_stiffness_equals_the_formula():
    """The fit of the rates is exact for the library's regularisers, also at equal probabilities and with two arms."""

    @pytree_dataclass
    class Derived(jb.BestOfBothWorlds):
        def stiffness(self, state, round, probabilities):
            return None

    options = {"rounds": 60, "runs": 64, "seed": 0, "only": ["factor"], "verify": False}
    game = jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(2)
    formula, derived = (jb.regret_gradient(one(5, 0.5, 1.0), *game, **options) for one in (jb.BestOfBothWorlds, Derived))
    assert float(derived.gradient.factor) == pytest.approx(float(formula.gradient.factor), rel=1e-4)


@pytest.mark.thorough
def test_floors_of_both_shapes_have_the_same_gradient():
    narrow, wide = (gradient(DelayAdapted(wide=one), "jump", runs=64, rounds=60)[0] for one in (False, True))
    assert narrow == pytest.approx(wide, rel=1e-5)


def test_a_learner_that_does_not_use_loss_estimate_is_found_out():
    """Its jump tangent is the derivative with the arms held fixed."""
    _, _, found = gradient(ByHand(), None, runs=64, verify=True)
    assert found.estimator == "paired"
    assert "disagrees with paired differences on a sample in scale" in found.note
    trusted = gradient(ByHand(), None, runs=64, verify=False)[2]
    assert (trusted.estimator, trusted.note) == ("jump", "")


@pytest.mark.thorough
def test_a_floor_that_cannot_be_read_leads_to_paired_differences():
    _, _, found = gradient(Compiled(), None, runs=64, verify=True)
    assert found.estimator == "paired"
    assert "call it outside" in found.note
    with pytest.raises(TypeError, match=r"Compiled\.observe calls loss_estimate with a floor or baseline inside jax\.jit"):
        gradient(Compiled(), None, runs=64, verify=False)


def test_a_baseline_without_a_method_leads_to_paired_differences():
    _, _, found = gradient(Centred(), None, runs=64, rounds=50, verify=True)
    assert found.estimator == "paired"
    assert "has no method baseline" in found.note


def test_an_index_policy_has_paired_differences():
    _, _, found = gradient(LowerConfidence(), None, runs=64, verify=True)
    assert found.estimator == "paired"
    assert "does more than add importance-weighted losses" in found.note


def test_classes_are_compared_once(monkeypatch):
    calls = []

    def fake(estimator, numbers):
        calls.append(estimator)
        slope = 1.0 if estimator == "jump" else 1.2
        return Gradient(1.0, 0.1, Exponential(slope), Exponential(0.01), estimator)

    def found(learner):
        numbers = numbers_of("learner", learner)
        return verification.disagreements((learner, LOSSES, DELAYS), numbers, "jump", fake)

    for scale in (1.0, 1.1):
        (clause,) = found(Exponential(scale)).values()
        assert clause == "disagrees with paired differences on a sample in scale: 1.00 ± 0.01 and 1.20 ± 0.01"
    assert calls == ["jump", "paired"]
    assert found(jb.DelayedExp3()) == {}
    assert len(calls) == 2
    found(Wrapped(Exponential()))  # another class
    assert len(calls) == 4
    monkeypatch.setattr(Exponential, "observe", ByHand.observe)  # other code
    found(Exponential())
    assert len(calls) == 6


@pytest.mark.parametrize("learner", [jb.DelayedExp3(scale=np.ones(16)), Exponential(np.ones(16))])
def test_values_for_each_run_are_refused(learner):
    game = learner, LOSSES, DELAYS
    with pytest.raises(ValueError, match=r"scale of shape \(16,\): a gradient needs one value for all runs"):
        jb.regret_gradient(*game, rounds=50, runs=16, seed=0)
    with pytest.raises(ValueError, match=r"scale of shape \(16,\): a gradient needs one value for all runs"):
        jb.tune(*game, rounds=50, runs=16, seed=0)


def test_means_for_each_run_are_refused():
    losses = jb.losses.Bernoulli(np.full((3, 16), 0.5))
    with pytest.raises(ValueError, match=r"means of shape \(3, 16\): a gradient needs one value for all runs"):
        jb.regret_gradient(jb.DelayedExp3(), losses, DELAYS, rounds=50, runs=16, seed=0, wrt="losses")


def test_tuning_that_follows_a_wrong_gradient_is_reported():
    """The audit looks at the start of the path as well, and a regret that grew is a warning by itself."""
    options = {"rounds": 200, "runs": 64, "steps": 3, "fresh_runs": 1024, "seed": 0, "only": ["scale"]}
    verification._found[((ByHand, verification._code(ByHand)),), "jump"] = {("learner", "scale"): ""}  # compared already
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tuned = jb.tune(ByHand(), LOSSES, DELAYS, **options)
    assert tuned.audit.points["start"].agrees is False
    assert list(tuned.audit.points) == ["start", "middle", "end"]
    assert tuned.audit.agrees is False
    assert "DISAGREES (start" in str(tuned)
    assert any("disagrees with paired differences at the start" in str(one.message) for one in caught)


@pytest.mark.thorough
def test_a_regret_that_grew_is_a_warning(monkeypatch):
    outcomes = iter([Outcome(10.0, 0.1, np.ones(1), np.ones(1)), Outcome(11.0, 0.1, np.ones(1), np.ones(1))])
    monkeypatch.setattr(tuning, "_outcome", lambda *_: next(outcomes))
    with pytest.warns(UserWarning, match=r"regret after tuning, 11 ± 0\.1, is significantly higher than before, 10 ± 0\.1"):
        tuned = jb.tune(jb.DelayedExp3(), LOSSES, DELAYS, rounds=20, runs=8, steps=1, seed=0, audit=False)
    assert tuned.worse
    assert "WARNING: the regret after tuning is significantly higher" in str(tuned)
    assert "WORSE" in repr(tuned)
    better = Tuned(tuned.learner, tuned.path, tuned.after, tuned.before, None)
    assert not better.worse
    assert "WARNING" not in str(better)
