"""Classes written after docs/adding_a_learner.md and docs/adding_a_law.md alone, in every part of the library.

A learner for one run, a batched learner, a loss model, a delay model and a measurement; each in ``simulate``, ``vmap(rollout)``,
a sweep, the gradient and the agent. The two learners are one rule: their regrets are equal, which rejects a wrong mapping over runs.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import ArrayLike

import jaxbandit as jb
from jaxbandit.extend import Delays, Losses, number, one_hot, pick, pytree_dataclass, static, whole_number


@pytree_dataclass
class Softmax:
    """Exponential weights of the losses of each arm, for one run."""

    rate: ArrayLike = 1.0
    batched = False

    def init(self, num_arms):
        return jnp.zeros(num_arms)

    def act(self, state, round):
        return jax.nn.softmax(-self.rate * state), (), state

    def observe(self, state, observation):
        return state + observation.loss * one_hot(observation.arm, state.shape[0])


@pytree_dataclass
class BatchedSoftmax:
    """The same for any number of runs."""

    rate: ArrayLike = 1.0

    def init(self, num_arms, runs_shape):
        return jnp.zeros((num_arms, *runs_shape))

    def act(self, state, round):
        return jax.nn.softmax(-self.rate * state, axis=0), (), state

    def observe(self, state, observation):
        return state + observation.at_arm(observation.loss, state.shape[0])


@pytree_dataclass
class Halves(Losses):
    """Losses 0 and 1/2."""

    chances: ArrayLike = number(high=1.0, axes="K")
    stationary = True

    @property
    def num_arms(self):
        return np.shape(self.chances)[0]

    def expected(self, t):
        return jnp.asarray(self.chances) / 2

    def sample(self, t, arm, noise):
        chance = pick(jnp.asarray(self.chances), arm)
        return jnp.where(noise < chance, 0.5, 0.0).astype(chance.dtype)


@pytree_dataclass
class Alternating(Delays):
    """No delay in even rounds, ``delay`` in the others."""

    delay: ArrayLike = whole_number()
    bound: int = static(default=4)
    oblivious = True
    may_lose = False

    def draw(self, t, arm, loss, noise):
        return jnp.where(t % 2 == 0, 0, self.delay).astype(jnp.int32)


@pytree_dataclass
class Largest:
    """The largest number of outstanding observations."""

    def init(self, num_arms, runs_shape):
        return jnp.zeros(runs_shape, jnp.int32)

    def update(self, state, info):
        return jnp.maximum(state, info.outstanding)

    def read(self, state):
        return {"largest": state}


LOSSES, DELAYS = Halves([0.2, 0.8]), Alternating(3)
LEARNERS = [Softmax(), BatchedSoftmax()]
OPTIONS = {"rounds": 24, "seed": 0}


def test_simulate():
    one, many = (jb.simulate(learner, LOSSES, DELAYS, runs=4, **OPTIONS, measure=[Largest()]) for learner in LEARNERS)
    np.testing.assert_allclose(one.regret, many.regret, rtol=1e-5)
    np.testing.assert_array_equal(one.measured["largest"][-1], one.outstanding_max)
    assert (one.outstanding_max == 2).all()  # of rounds t - 1 and t - 3: each second play waits three rounds


@pytest.mark.parametrize("learner", LEARNERS, ids=["one run", "batched"])
def test_a_batch_of_hyperparameters(learner):
    """A batch over the rate; its first and last row are calls of their own."""

    def regret(rate):
        return jb.rollout(type(learner)(rate), LOSSES, DELAYS, runs=2, record=1, **OPTIONS).regret[-1]

    rates = jnp.array([0.0, 0.5, 2.0])
    found = jax.vmap(regret)(rates)
    np.testing.assert_allclose(found[0], 24 * 0.15, rtol=1e-5)  # uniform play: half of the gap of 0.3 per round
    np.testing.assert_allclose(found[2], regret(rates[2]), rtol=1e-4)


def test_a_sweep(tmp_path):
    spec = jb.Spec(24, 4, {"one": LEARNERS[0], "many": LEARNERS[1]}, [LOSSES], [DELAYS])
    jb.sweep(spec, tmp_path / "out")
    data = jb.open_sweep(tmp_path / "out")
    regret = jb.simulate(LEARNERS[0], LOSSES, DELAYS, runs=4, **OPTIONS).regret
    np.testing.assert_array_equal(data.regret.sel(learner="one").values.squeeze(), regret)


@pytest.mark.parametrize(
    "learner", [LEARNERS[0], pytest.param(LEARNERS[1], marks=pytest.mark.thorough)], ids=["one run", "batched"]
)
def test_the_gradient(learner):
    """Paired differences of 512 runs: a larger rate has less regret."""
    found = jb.regret_gradient(learner, LOSSES, DELAYS, runs=512, **OPTIONS, estimator="paired")
    assert float(found.gradient.rate) + 5 * float(found.error.rate) < 0


@pytest.mark.parametrize("learner", LEARNERS, ids=["one run", "batched"])
def test_an_agent(learner):
    agent = jb.Agent(learner, 2, seed=0)
    first = agent.act()
    assert first.probability == 0.5
    agent.observe(first.id, loss=1.0)
    agent.act()
    np.testing.assert_allclose(agent.probabilities[first.arm], 1 / (1 + np.e), rtol=1e-5)


@pytest.mark.thorough
def test_the_checks_pass():
    for learner in LEARNERS:
        jb.check_learner(learner)
    jb.check_losses(LOSSES)
    jb.check_delays(DELAYS)
