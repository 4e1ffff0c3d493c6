"""What is declared counts; names that are not declared mean nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import ArrayLike

import jaxbandit as jb
from jaxbandit._core.fields import float_dtype, pytree_dataclass, static
from jaxbandit.learners.base import ImportanceWeighted, Learner, adds_at_arm, adds_only, as_learner

KEY = jax.random.key(0)
LOSSES = jb.losses.Bernoulli([0.3, 0.5])


class Even:
    """Uniform play with nothing but the three methods."""

    def init(self, num_arms, runs_shape):
        return jnp.full((num_arms, *runs_shape), 1 / num_arms, float_dtype())

    def act(self, state, round):
        return state, (), state

    def observe(self, state, observation):
        return state


@pytree_dataclass
class WithBase(Even):
    base: ArrayLike = 2.0


@pytree_dataclass
class WithBaseline(Even):
    baseline: ArrayLike = 2.0


@pytree_dataclass
class Hidden(ImportanceWeighted):
    stiffness: ArrayLike = 2.0


@pytree_dataclass
class Unheard(Even):
    def played(self, state, round, arm, probability):
        return state


@pytree_dataclass
class Forever(Even):
    watches_plays = True


def simulate(learner, delays, **options):
    return jb.simulate(learner, LOSSES, delays, rounds=100, runs=4, key=KEY, **options)


@pytest.mark.parametrize("learner", [WithBase(), WithBaseline()])
def test_a_field_may_have_any_name_in_a_plain_learner(learner):
    plain = simulate(learner, jb.delays.Fixed(3))
    np.testing.assert_array_equal(plain.regret, simulate(jb.Uniform(), jb.delays.Fixed(3)).regret)


@pytest.mark.parametrize(
    ("name", "base"), [("stiffness", "ImportanceWeighted"), ("baseline", "ImportanceWeighted"), ("signalled", "ReadsSignals")]
)
def test_a_method_that_its_base_class_does_not_have_is_not_lost_in_silence(name, base):
    cls = pytree_dataclass(type("Own", (Even, Learner), {name: lambda self, *arguments: None}))
    with pytest.raises(TypeError, match=rf"\.{name} counts only in a class that inherits from jb.extend.{base}"):
        simulate(cls(), jb.delays.Fixed(3))


@pytest.mark.parametrize(("learner", "name"), [(Unheard(), "played"), (Forever(), "watches_plays")])
def test_a_trait_of_a_plain_learner_is_not_lost_in_silence(learner, name):
    with pytest.raises(TypeError, match=rf"\.{name} counts only in a class that inherits from jb.extend.Learner"):
        simulate(learner, jb.delays.Fixed(3))


def test_a_field_does_not_hide_a_method():
    with pytest.raises(TypeError, match=r"Hidden\(stiffness=…\): stiffness is a method of ImportanceWeighted.*rename"):
        simulate(Hidden(), jb.delays.Fixed(3))


@pytree_dataclass
class Aged(jb.delays.Delays):
    """Plays of even rounds wait ``age`` rounds, the others none: a field called age is not a fixed age."""

    age: ArrayLike
    bound: int = static()
    oblivious = True

    def draw(self, t, arm, loss, noise):
        return jnp.where(t % 2 == 0, jnp.asarray(self.age, jnp.int32), 0)


def test_a_field_called_age_is_not_a_fixed_delay():
    rounds, age = 100, 12
    result = jb.simulate(jb.TsallisINF(), LOSSES, Aged(age, bound=16), rounds=rounds, runs=4, key=KEY)
    expected = sum(min(age, rounds - t) for t in range(2, rounds + 1, 2))
    np.testing.assert_array_equal(result.total_delay, expected)


def test_may_lose_has_one_default():
    """A law that does not say so may lose feedback, for every reader."""
    law = Aged(12, bound=16)
    assert law.may_lose
    assert np.isinf(law.longest())
    assert jb.delays.ArmDependent([law, jb.delays.Fixed(1)]).may_lose
    assert not jb.delays.ArmDependent([jb.delays.Fixed(2), jb.delays.Fixed(1)]).may_lose
    assert jb.delays.ArmDependent([jb.delays.Trace([0, jb.delays.NEVER]), jb.delays.Fixed(1)]).may_lose
    with pytest.raises(ValueError, match="may be lost; give the laws bound=100"):
        jb.rollout(jb.RobustBestOfBothWorlds(), LOSSES, jb.delays.ArmDependent([law, jb.delays.Fixed(1)]), rounds=100, key=KEY)


class NoLaw:
    bound = 3
    num_arms = 2

    def draw(self, t, arm, loss, noise):
        return jnp.int32(0)

    def expected(self, t):
        return jnp.zeros(2)

    def sample(self, t, arm, noise):
        return jnp.zeros(arm.shape)


def test_a_law_of_ones_own_inherits():
    with pytest.raises(TypeError, match=r"a class of your own inherits from jb\.delays\.Delays"):
        simulate(jb.Uniform(), NoLaw())
    with pytest.raises(TypeError, match=r"a class of your own inherits from jb\.losses\.Losses"):
        jb.rollout(jb.Uniform(), NoLaw(), jb.delays.Fixed(1), rounds=3, key=KEY)


@pytest.mark.parametrize("skipping", [False, True])
def test_inverse_rates_of_zimmert_seldin(skipping):
    learner = jb.ZimmertSeldin(skipping=skipping)
    result = simulate(learner, jb.delays.Fixed(3), measure=[jb.theory.measurements.InverseRates(learner)])
    right = jb.theory.bounds.zs20_rates([3] * 100, num_arms=2)
    np.testing.assert_allclose(result.measured["tsallis_rate"][-1], right.tsallis[-1], rtol=1e-6)
    entropy = result.measured["entropy_rate"][-1]
    if skipping:  # no play waits longer than the threshold here: D_t in place of 2 D_t
        np.testing.assert_allclose(entropy, right.entropy[-1] / np.sqrt(2), rtol=1e-6)
    else:
        np.testing.assert_allclose(entropy, right.entropy[-1], rtol=1e-6)


@pytest.mark.parametrize("learner", [jb.DelayedUCB1(), jb.AsymmetricBestOfBothWorlds(3), WithBase()])
def test_learners_without_one_rate_say_so(learner):
    with pytest.raises(TypeError, match="this measurement needs a learner with"):
        simulate(learner, jb.delays.Fixed(3), measure=[jb.theory.measurements.InverseRates(learner)])


def test_traits_are_declared_with_a_meaning():
    """Every public name of the bases is a documented method or an annotated value."""
    for base in (Learner, jb.losses.Losses, jb.delays.Delays):
        for name, value in vars(base).items():
            if not name.startswith("_"):
                assert (callable(value) and value.__doc__) or name in base.__annotations__, (base, name)
    assert as_learner(WithBase()).played("state", None, None, None) == "state"  # type: ignore[arg-type]


@pytree_dataclass
class Halved(jb.DelayedExp3):
    """A subclass with an ``observe`` of its own, for which the traits of Exp3 do not hold."""

    def observe(self, state, observation):
        arms = jnp.arange(3.0).reshape(3, *[1] * (state.ndim - 1))
        older = jnp.where(observation.arrived, 0.5 * state, state)
        return older + observation.loss_estimate(3, baseline=jnp.broadcast_to(arms / 4, state.shape))


@pytree_dataclass
class HalvedAndDeclared(Halved):
    adds_only = False


def test_traits_of_observe_are_not_inherited_by_another_observe():
    """Rejects a queue that sums what arrives, row by row, before an ``observe`` that does more than add to the chosen arm."""
    game = jb.losses.Bernoulli([0.2, 0.5, 0.8]), jb.delays.UniformRandom(0, 6)
    inherited, declared = (jb.simulate(one(), *game, rounds=60, runs=4, seed=0) for one in (Halved, HalvedAndDeclared))
    np.testing.assert_array_equal(inherited.regret, declared.regret)
    assert not adds_only(Halved())
    assert not adds_at_arm(Halved())
    assert adds_only(jb.DelayedExp3())
    assert adds_at_arm(jb.Exp3())


@pytree_dataclass
class Contrary(jb.DelayedThompson):
    """Chooses the arm that Thompson sampling does not."""

    def act(self, state, round):
        probabilities, memo, state = super().act(state, round)
        return probabilities[::-1], memo, state


def test_a_propensity_of_another_act_is_not_reported():
    """Rejects the propensities of Thompson sampling for a subclass that draws otherwise."""
    assert np.isnan(jb.Agent(Contrary(), 2, seed=0).act().probability)
    assert jb.Agent(jb.DelayedThompson(), 2, seed=0).act().probability == pytest.approx(0.5, abs=1e-3)
