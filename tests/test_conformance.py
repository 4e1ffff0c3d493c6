"""The checks for classes of one's own: each rule rejects a program that breaks it, with a sentence, and lets the library's pass."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import ArrayLike

import jaxbandit as jb
from jaxbandit._engine.player import Player
from jaxbandit.extend import NEVER, Delays, Learner, Losses, float_dtype, one_hot, pick, pytree_dataclass, static

D, L = jb.delays, jb.losses
COINS, THREE = L.Bernoulli([0.3, 0.5]), D.Fixed(3)
clock = itertools.count()  # changes at every trace, as time.time() or numpy.random would


# ------------------------------------------------------------------------------------------------------- programs that are right


@pytree_dataclass
class Coins(Losses):
    """Right; the wrong ones below change one thing."""

    means: ArrayLike = static(default=(0.3, 0.5, 0.6))
    num_arms = 3

    def expected(self, t):
        return jnp.asarray(self.means, float_dtype())

    def sample(self, t, arm, noise):
        mean = pick(self.expected(t), arm)
        return (noise < mean).astype(mean.dtype)


@pytree_dataclass
class Waits(Delays):
    bound: int = static(default=8)

    def draw(self, t, arm, loss, noise):
        return jnp.floor(8 * noise).astype(jnp.int32)


@pytree_dataclass
class Counts(Learner):
    """Plays the arms in proportion to 1 + how often they were seen."""

    def init(self, num_arms, runs_shape):
        return jnp.ones((num_arms, *runs_shape), float_dtype())

    def act(self, state, round):
        return state / state.sum(0), (), state

    def observe(self, state, observation):
        return state + observation.at_arm(jnp.ones_like(observation.loss), state.shape[0])


# ---------------------------------------------------------------------------------------------- programs with one thing wrong


@pytree_dataclass
class WrongMean(Coins):
    def expected(self, t):
        return jnp.asarray([0.3, 0.5, 0.62], float_dtype())

    def sample(self, t, arm, noise):
        return Coins.sample(Coins(), t, arm, noise)


@pytree_dataclass
class MovesBeyond(Coins):
    def expected(self, t):
        return jnp.asarray(self.means, float_dtype()) + 1e-3 * t


@pytree_dataclass
class LossBeyond(Coins):
    def sample(self, t, arm, noise):
        return 2 * noise * pick(self.expected(t), arm) * (1 + (arm == 2))


@pytree_dataclass
class SaysStationary(Coins):
    stationary = True

    def expected(self, t):
        return jnp.asarray(self.means, float_dtype()) / jnp.sqrt(t)


@pytree_dataclass
class FourMeans(Coins):
    def expected(self, t):
        return jnp.full(4, 0.5)


@pytree_dataclass
class ListOfMeans(Coins):
    def expected(self, t):
        return list(self.means)


@pytree_dataclass
class OneLoss(Coins):
    def sample(self, t, arm, noise):
        return jnp.zeros(())


@pytree_dataclass
class MixesRuns(Coins):
    def sample(self, t, arm, noise):
        return Coins.sample(self, t, arm, jnp.roll(noise, 1) if noise.ndim else noise)


@pytree_dataclass
class Clocked(Coins):
    def sample(self, t, arm, noise):
        return Coins.sample(self, t, arm, (noise + 1e-3 * next(clock)) % 1)


@pytree_dataclass
class SecondMoment(Coins, jb.extend.DifferentiableLosses):
    def second_moment(self, t):
        return self.expected(t) ** 2


@pytree_dataclass
class Negative(Waits):
    def draw(self, t, arm, loss, noise):
        return jnp.floor(8 * noise).astype(jnp.int32) - 4


@pytree_dataclass
class NegativeLater(Waits):
    def draw(self, t, arm, loss, noise):
        return jnp.where(t > 500, -1, 2) + jnp.zeros(jnp.shape(noise), jnp.int32)


@pytree_dataclass
class FloatDelay(Waits):
    def draw(self, t, arm, loss, noise):
        return 8 * noise


@pytree_dataclass
class LosesUndeclared(Waits):
    may_lose = False

    def draw(self, t, arm, loss, noise):
        return jnp.where(noise < 0.1, NEVER, 3)


@pytree_dataclass
class TooLate(Waits):
    may_lose = False

    def draw(self, t, arm, loss, noise):
        return jnp.floor(20 * noise).astype(jnp.int32)


@pytree_dataclass
class NotOblivious(Waits):
    oblivious = True

    def draw(self, t, arm, loss, noise):
        return jnp.where(loss > 0.5, 5, 1).astype(jnp.int32)


@pytree_dataclass
class NotQuiet(Waits):
    noisy = False


@pytree_dataclass
class NotFixed(Waits):
    def fixed_age(self):
        return jnp.int32(3)


@pytree_dataclass
class Longer(Waits):
    def longest(self):
        return 4


@pytree_dataclass
class Shifted(Waits):
    def draw(self, t, arm, loss, noise):
        return jnp.floor(8 * (jnp.roll(noise, 1) if noise.ndim else noise)).astype(jnp.int32)


@pytree_dataclass
class SumsToTwo(Counts):
    def act(self, state, round):
        return 2 * state / state.sum(0), (), state


@pytree_dataclass
class SumsToTwoLater(Counts):
    def act(self, state, round):
        return jnp.where(round.t > 100, 2, 1) * state / state.sum(0), (), state


@pytree_dataclass
class BelowZero(Counts):
    def act(self, state, round):
        return jnp.full_like(state, 2 / 3).at[0].set(-1 / 3), (), state


@pytree_dataclass
class NoMemo(Counts):
    def act(self, state, round):
        return state / state.sum(0), state


@pytree_dataclass
class BooleanProbabilities(Counts):
    def act(self, state, round):
        return one_hot(jnp.argmin(state, 0), len(state)), (), state


@pytree_dataclass
class ForgetsRuns(Counts):
    def act(self, state, round):
        return state.mean(tuple(range(1, state.ndim))) / 3, (), state


@pytree_dataclass
class GrowsState(Counts):
    def observe(self, state, observation):
        return (state, observation.loss)


@pytree_dataclass
class OtherType(Counts):
    def observe(self, state, observation):
        return (state + 1).astype(jnp.int32)


@pytree_dataclass
class CountsTheMasked(Counts):
    def observe(self, state, observation):
        return state + 1


@pytree_dataclass
class SumsOverRuns(Counts):
    def act(self, state, round):
        total = state + state.sum(-1, keepdims=True) if state.ndim > 1 else state
        return total / total.sum(0), (), state


@pytree_dataclass
class Watches(Counts):
    def act(self, state, round):
        late = round.is_outstanding(round.t - 1)
        return jnp.where(late, 1 / state.shape[0], state / state.sum(0)), (), state


@pytree_dataclass
class NotAdding(Counts):
    adds_only = True

    def observe(self, state, observation):
        return state * (1 + observation.at_arm(observation.loss, state.shape[0]))


@pytree_dataclass
class ClockedLearner(Counts):
    def act(self, state, round):
        weights = state + next(clock)
        return weights / weights.sum(0), (), state


WRONG = [
    (WrongMean(), r"expected\(1\) is 0.6200 for arm 2, and the mean of 20,000 samples 0.\d+ ± 0.\d+; they must agree"),
    (MovesBeyond(), r"expected\(\d+\) gives a mean of 1.\d+ for arm 2; losses lie between 0 and 1"),
    (LossBeyond(), r"sample\(1, arm, noise\) gives the loss \d.\d+ for arm 2; losses lie between 0 and 1"),
    (SaysStationary(), r"stationary is True, but expected\(t\) moves"),
    (FourMeans(), r"expected\(t\) gives an array of shape \(4,\); \(3,\) is needed, the means of 3 arms"),
    (ListOfMeans(), r"expected\(t\) gives a list; an array of shape \(3,\) is needed"),
    (OneLoss(), r"sample\(t, arm, noise\) gives an array of shape \(\); \(5,\) is needed, one loss for each run"),
    (MixesRuns(), r"lets the loss of one run depend on the others"),
    (Clocked(), r"sample is another program each time it is traced"),
    (SecondMoment(), r"second_moment\(1\) is 0.09.* the mean of their squares of 20,000 samples"),
    (Negative(), r"draw\(1, arm, loss, noise\) gives -4; a delay is 0 or more rounds, or NEVER"),
    (NegativeLater(), r"draw\(\d\d\d+, arm, loss, noise\) gives -1"),
    (FloatDelay(), r"draw\(…\) gives float32; a delay is a whole number of rounds"),
    (LosesUndeclared(), r"gives NEVER, above bound=8, and may_lose is False; raise the bound, or say may_lose = True"),
    (TooLate(), r"gives (9|1\d), above bound=8, and may_lose is False"),
    (NotOblivious(), r"oblivious is True, but draw looks at arm or loss"),
    (NotQuiet(), r"noisy is False, but draw looks at noise"),
    (NotFixed(), r"fixed_age\(\) is 3, but draw gives 0"),
    (Longer(), r"longest\(\) is 4, but draw gives 7"),
    (Shifted(), r"lets the delay of one run depend on the others"),
    (SumsToTwo(), r"act\(state, round\) in round 1 gives probabilities that sum to 2; over the arms, axis 0, they must sum to 1"),
    (SumsToTwoLater(), r"act\(state, round\) under Fixed\(.*\) gives probabilities that sum to 2"),
    (BelowZero(), r"gives the probability -0.33\d*; probabilities are 0 or more"),
    (NoMemo(), r"act\(state, round\) must return three things: probabilities, memo \(or \(\)\) and state"),
    (BooleanProbabilities(), r"act\(state, round\) gives probabilities of dtype bool; they are floats: end with .astype"),
    (ForgetsRuns(), r"act\(state, round\) gives an array of shape \(3,\); \(3, 5\) is needed"),
    (GrowsState(), r"observe\(state, observation\) gives a state of another structure than init"),
    (OtherType(), r"observe\(state, observation\) makes state int32\[3\], and init made it float32\[3\]"),
    (CountsTheMasked(), r"observe changes state where observation.arrived is False"),
    (SumsOverRuns(), r"results depend on which other runs are in the batch; sum over arms \(axis 0\) only"),
    (Watches(), r"act calls round.is_outstanding, so say watches_plays = True in the class"),
    (NotAdding(), r"adds_only is True, but what observe adds to state depends on the state"),
    (ClockedLearner(), r"one of its methods is another program each time it is traced"),
]


def check(one):
    kind = next(kind for kind in (Losses, Delays, Learner) if isinstance(one, kind))
    {Losses: jb.check_losses, Delays: jb.check_delays, Learner: jb.check_learner}[kind](one)


# Those that must be played to be found out compile a game.
PLAYED = (SumsToTwoLater, SumsOverRuns)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [pytest.param(*case, marks=pytest.mark.thorough if isinstance(case[0], PLAYED) else ()) for case in WRONG],
    ids=[type(wrong).__name__ for wrong, _ in WRONG],
)
def test_every_broken_rule_is_told(wrong, message):
    with pytest.raises((ValueError, TypeError), match=rf"^(losses|delays|learner)={type(wrong).__name__}\(…\): .*{message}"):
        check(wrong)


@pytest.mark.parametrize("right", [Coins(), Waits(), pytest.param(Counts(), marks=pytest.mark.thorough)], ids=repr)
def test_what_is_right_passes(right):
    check(right)


MEANS = [0.2, 0.5, 0.9]
LAWS = [
    L.Bernoulli(MEANS),
    L.Beta(MEANS, concentration=3.0),
    L.ClippedNormal(MEANS, deviation=0.3),
    L.Table(np.random.default_rng(0).random((200, 3))),
    L.Switching([MEANS, MEANS[::-1]], starts=[1, 100]),
    L.StochasticallyConstrained(0.3, arms=3),
    L.DelayMatchedSwitching(20, arms=3),
    L.Corrupted(L.Bernoulli(MEANS), budget=50.0),
    L.Drifting(MEANS, MEANS[::-1], rounds=300),
    L.IntermediateStates([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]], L.Bernoulli([0.1, 0.7])),
    L.Funnel([MEANS, [0.9, 0.1, 0.5]], delays=[jb.delays.Geometric(2.0)]),
    L.ZeroInflated([MEANS], [1], [[0.5, 1.0]] * 3),
    L.RepeatedGame([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]], rate=0.3),
    D.Fixed(7),
    D.UniformRandom(2, 9),
    D.UniformRandom(2, 9, shared=True),
    D.Geometric(4.0),
    D.Poisson(4.0),
    D.Pareto(2.0),
    D.PacketLoss(0.3, delay=2),
    D.Bursts(5),
    D.Outlier(first=3, delay=40),
    D.Trace(np.arange(200) % 7),
    D.ArmDependent((D.Fixed(1), D.Geometric(3.0), D.PacketLoss(0.1))),
    D.LossDependent(D.Fixed(1), D.Geometric(3.0)),
    D.Empirical([1, 2, 3, 40]),
    D.EmpiricalByArm([[1, 2], [3, 40], [0, 9]]),
    D.DelayAsPayoff(20),
    D.CompositeFeedback([0.5, 0.2, 0.3]),
    D.KnownAtAction(D.Geometric(4.0)),
]


def test_all_laws_are_here():
    names = {type(law) for law in LAWS}
    assert {*L.REGISTRY.values(), *D.REGISTRY.values()} <= names


@pytest.mark.thorough
@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_the_laws_of_the_library_keep_the_rules(law):
    check(law)


# ------------------------------------------------------------------------------------- what simulate says by itself, uncompiled


@pytree_dataclass
class BoundAsLeaf(Waits):
    bound: int = 8


class NoPytreeLosses(Losses):
    num_arms = 2

    def __init__(self, means):
        self.means = means


@pytree_dataclass
class Inner(Losses):
    means: list
    num_arms = 2

    def expected(self, t):
        return self.means

    def sample(self, t, arm, noise):
        return (noise < pick(self.means, arm)).astype(self.means.dtype)


GIVEN = [
    (
        {"delays": BoundAsLeaf()},
        r"BoundAsLeaf\(bound=…\): bound must be known .*write bound: int = jb.extend.static\(default=8\)",
    ),
    ({"losses": NoPytreeLosses([0.3])}, r"losses=NoPytreeLosses\(…\): make NoPytreeLosses a pytree.*@jb.extend.pytree_dataclass"),
    ({"delays": Negative()}, r"gives -4"),
    ({"delays": D.ArmDependent((THREE, THREE, Negative()))}, r"delays=ArmDependent\(…\): draw\(1, .*gives -4"),
    ({"delays": NegativeLater()}, r"gives -1"),
    ({"losses": MovesBeyond()}, r"a mean of 1.\d+"),
    ({"learner": SumsToTwo()}, r"sum to 2"),
]


@pytest.mark.parametrize(("change", "message"), GIVEN, ids=[str(number) for number in range(len(GIVEN))])
def test_simulate_tells_before_it_compiles(change, message, monkeypatch):
    monkeypatch.setattr(Player, "advance", lambda *_: pytest.fail("something was traced before the input was checked"))
    game = {"learner": jb.TsallisINF(), "losses": L.Bernoulli(MEANS), "delays": THREE, **change}
    with pytest.raises((ValueError, TypeError), match=message):
        jb.simulate(**game, rounds=1000, runs=2, seed=0)


def test_a_list_in_a_field_is_an_array():
    one, two = (jb.simulate(jb.Uniform(), law, THREE, rounds=50, runs=2, seed=0) for law in (Inner([0.3, 0.5]), COINS))
    np.testing.assert_array_equal(one.regret, two.regret)


def test_inside_jit_shapes_are_checked_and_numbers_are_left_alone():
    def regret(means):
        return jb.rollout(jb.Uniform(), Inner(means), THREE, rounds=5, seed=0).regret[-1]

    assert jnp.isfinite(jax.jit(regret)(jnp.array([0.3, 0.5])))
    with pytest.raises(ValueError, match=r"expected\(t\) gives an array of shape \(3,\)"):
        jax.jit(regret)(jnp.array([0.3, 0.5, 0.6]))


def test_a_class_is_traced_once():
    """A sweep over numbers of a law of one's own shall not pay for the trial at every cell."""
    traced = []

    @pytree_dataclass
    class Counted(Coins):
        height: ArrayLike = 0.5

        def expected(self, t):
            traced.append(1)
            return self.height * jnp.ones(3)

    def play(height):
        jb.simulate(jb.Uniform(), Counted(height=height), THREE, rounds=5, runs=1, seed=0)
        return len(traced)

    assert play(0.1) == play(0.2) == play(0.3)
