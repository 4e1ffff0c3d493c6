"""Learners written for one run, ``batched = False``, against the same rule written for arrays of runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.extend import ReadsSignals, number, one_hot, pytree_dataclass, static

ENVIRONMENT = jb.losses.Bernoulli([0.3, 0.5, 0.6]), jb.delays.Geometric(4.0, bound=31)


@pytree_dataclass
class SingleGreedy:
    """Epsilon-greedy for one run."""

    epsilon: float = number(default=0.1, high=1.0)
    batched = False

    def init(self, num_arms):
        return jnp.zeros(num_arms), jnp.zeros(num_arms)

    def act(self, state, round):
        counts, losses = state
        best = jnp.argmin(losses / jnp.maximum(counts, 1))
        return jnp.full(counts.shape, self.epsilon / len(counts)).at[best].add(1 - self.epsilon), (), state

    def observe(self, state, observation):
        counts, losses = state
        return counts.at[observation.arm].add(1), losses.at[observation.arm].add(observation.loss)


@pytree_dataclass
class Greedy:
    """Epsilon-greedy for arrays of runs."""

    epsilon: float = number(default=0.1, high=1.0)

    def init(self, num_arms, runs_shape):
        zero = jnp.zeros((num_arms, *runs_shape))
        return zero, zero

    def act(self, state, round):
        counts, losses = state
        best = one_hot(jnp.argmin(losses / jnp.maximum(counts, 1), 0), len(counts))
        return self.epsilon / len(counts) + (1 - self.epsilon) * best, (), state

    def observe(self, state, seen):
        counts, losses = state
        one = jnp.where(seen.arrived, 1.0, 0.0)
        return counts + seen.at_arm(one, len(counts)), losses + seen.at_arm(one * seen.loss, len(counts))


def test_a_learner_for_one_run_plays_like_its_batched_form():
    """Rejects observations that count although nothing has arrived, and states that runs share."""
    one, many = (jb.simulate(rule(), *ENVIRONMENT, rounds=200, runs=16, seed=0) for rule in (SingleGreedy, Greedy))
    np.testing.assert_allclose(one.regret, many.regret, rtol=1e-5)
    assert one.regret[-1].std() > 0


def test_it_works_in_a_mapped_rollout_with_values_per_run_and_in_an_agent():
    def regret(learner, run):
        return jb.rollout(learner, *ENVIRONMENT, rounds=60, seed=0, first_run=run, record=[60]).regret[-1]

    epsilons = jnp.array([0.1, 0.5, 0.9])
    mapped = jax.vmap(lambda epsilon, run: regret(SingleGreedy(epsilon), run))(epsilons, jnp.arange(3))
    mixed = jb.simulate(SingleGreedy(np.asarray(epsilons)), *ENVIRONMENT, rounds=60, runs=3, seed=0, record=[60])
    np.testing.assert_allclose(mapped, mixed.regret[-1], rtol=1e-5)
    agent = jb.Agent(SingleGreedy(), 3, seed=0)
    ticket = agent.act()
    agent.observe(ticket.id, loss=1.0)
    assert agent.act().round == 2


@pytest.mark.thorough
def test_it_keeps_the_rules_and_has_a_gradient():
    jb.check_learner(SingleGreedy())
    with pytest.warns(UserWarning, match="'paired' is used"):
        found = jb.regret_gradient(SingleGreedy(0.3), *ENVIRONMENT, rounds=50, runs=256, seed=0)
    assert found.gradient.epsilon > 0


@pytree_dataclass
class SingleCounter(ReadsSignals):
    """Counts its actions in ``played``, clicks in ``signalled``, outstanding ones in ``act``; adds up four random words."""

    batched = False
    watches_plays = True
    num_signals = 2

    def init(self, num_arms):
        return jnp.zeros(num_arms), jnp.zeros(num_arms), jnp.zeros(()), jnp.zeros(4, jnp.uint32)

    def act(self, state, round):
        actions, clicks, waiting, total = state
        late = round.is_outstanding(round.t - 1)
        return jnp.ones(2) / 2, (), (actions, clicks, waiting + late, total + round.words(jnp.arange(4, dtype=jnp.uint32)).first)

    def played(self, state, round, arm, probability):
        return state[0].at[arm].add(2 * probability), *state[1:]

    def signalled(self, state, round, arm, signal, memo):
        return memo, (state[0], state[1].at[arm].add(signal), *state[2:])

    def observe(self, state, observation):
        return state


def test_optional_methods_of_a_learner_for_one_run_are_called():
    """Rejects ``played`` and ``signalled`` that are skipped, and words that are taken from another run or another axis."""
    delays = jb.delays.LossDependent(no_conversion=jb.delays.Fixed(0), conversion=jb.delays.Fixed(3))
    losses = jb.losses.IntermediateStates([[0.0, 1.0], [1.0, 0.0]], jb.losses.Bernoulli([0.5, 0.5]))
    many = jb.rollout(SingleCounter(), losses, delays, rounds=30, runs=4, seed=0)
    actions, clicks, waiting, _ = many.learner_state
    np.testing.assert_array_equal(actions.sum(0), 30)
    np.testing.assert_array_equal(clicks[0], actions[0])  # arm 0 always leads to state 1, arm 1 never
    np.testing.assert_array_equal(clicks[1], 0)
    assert 0 < waiting.min() < waiting.max() < 30
    for run in range(2):
        alone = jb.rollout(SingleCounter(), losses, delays, rounds=30, first_run=run, seed=0)
        jax.tree.map(
            lambda one, all, run=run: np.testing.assert_array_equal(all[..., run], one), alone.learner_state, many.learner_state
        )


@pytree_dataclass
class Batched(ReadsSignals):
    """Prefers arms that were chosen seldom and whose states were seen seldom: reads what is known before the loss."""

    num_signals: int = static(default=2)

    def init(self, num_arms, runs_shape):
        return jnp.zeros((num_arms, *runs_shape)), jnp.zeros((self.num_signals, *runs_shape))

    def act(self, state, round):
        return jax.nn.softmax(-0.1 * state[0] * (1 + state[1][0]), 0), (), state

    def played(self, state, round, arm, probability):
        return state[0] + one_hot(arm, 3) * probability * round.t, state[1]

    def signalled(self, state, round, arm, signal, memo):
        return signal, (state[0], state[1] + one_hot(signal, 2) * 0.1)

    def observe(self, state, observation):
        return state[0] + observation.at_arm(observation.loss * observation.memo, 3), state[1]


@pytree_dataclass
class Single(Batched):
    batched = False

    def init(self, num_arms):
        return jnp.zeros(num_arms), jnp.zeros(self.num_signals)

    def check(self):
        if self.num_signals > 2:
            raise ValueError("Single(num_signals=3): two are read")


@pytest.mark.thorough
def test_optional_methods_of_a_learner_for_one_run_count():
    """Rejects signals, drawn arms and checks that only a batched learner gets."""
    losses = jb.losses.IntermediateStates([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]], jb.losses.Bernoulli([0.2, 0.8]))
    one, other = (jb.simulate(law, losses, jb.delays.Fixed(3), rounds=50, runs=5, seed=0).regret for law in (Single(), Batched()))
    np.testing.assert_allclose(one, other, rtol=1e-4)
    assert np.std(one[-1]) > 0
    with pytest.raises(ValueError, match="two are read"):
        jb.simulate(Single(3), losses, jb.delays.Fixed(3), rounds=5, runs=1, seed=0)
    with pytest.raises(ValueError, match="uses intermediate observations, which an agent does not support"):
        jb.Agent(Single(), 3, seed=0)
