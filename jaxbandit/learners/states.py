"""Intermediate observations: exponential weights with importance weights of states in place of arms."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.arms import one_hot, pick, sums
from jaxbandit._core.fields import Numbers, PyTree, float_dtype, given, number, pytree_dataclass, static
from jaxbandit.learners.base import Observation, ReadsSignals, Round, multiplier
from jaxbandit.learners.exponential import soft_leader
from jaxbandit.learners.ftrl import log_arms
from jaxbandit.losses.states import check_rows


class ByStates(ReadsSignals):
    """What both have in common: a loss of state s adds P(s|a)/q_s times itself to the estimate of every arm a."""

    horizon: Any
    mean_delay: Any
    scale: Any
    adds_only: bool = True

    def rate(self, num_arms: int) -> jax.Array:
        """η, ``[]``."""
        load = self.horizon * (self.num_signals + jnp.asarray(self.mean_delay, float_dtype()))
        return self.scale * jnp.sqrt(2 * log_arms(num_arms) / load)


def weights_of(column: jax.Array, probabilities: jax.Array) -> jax.Array:
    """P(s|a)/q_s of every arm, ``[K, ...]``, for the ``column`` P(s|·) of the state s that was seen and x of the time of the play."""
    chance = sums(probabilities * column)[0]
    return column / jnp.maximum(chance, jnp.finfo(column.dtype).tiny)


def add_by_state(loss_estimates: jax.Array, observation: Observation) -> jax.Array:
    """The estimates ``[K, ...]`` after a loss, whose memo has the weights of its state."""
    return loss_estimates + jnp.where(observation.arrived, observation.memo * observation.weighted_loss, 0)


@pytree_dataclass
class StateExp3(ByStates):
    """State-EXP3: exponential weights for intermediate observations (the state at once, its loss delayed) with known P(s|a).

    .. math::
       x_t \\propto \\exp(-\\eta \\hat L_t), \\quad \\hat\\ell_t(a) = \\frac{P(s_t|a)}{q_t(s_t)}\\,\\ell_t, \\quad
       q_t(s) = \\sum_a x_t(a) P(s|a), \\quad \\eta = \\sqrt{\\frac{2 \\log K}{(S + d) T}}

    A loss updates every arm that may lead to its state: the variance grows with the number S of states, not of arms.

    Two forms are analysed. Without copies the regret bound :func:`jaxbandit.theory.bounds.state_exp3_single` holds for a fixed delay d
    and :math:`\\eta \\le 1/(e(d+1))`. The rate above fulfils this from :math:`T \\ge 2e^2(d+1)^2\\log K/(S+d)` on; below, a warning is given.
    ``BOLD(StateExp3(transitions, T/(d + 1), 0), capacity=d + 1)``, d + 1 copies that take turns, has
    :func:`jaxbandit.theory.bounds.state_exp3`.

    Args:
      transitions: ``[K, S]``, P(s|a); every row sums to 1.
      horizon: T, the number of rounds.
      mean_delay: d.
      scale: multiplies :math:`\\eta`.

    >>> import jaxbandit as jb
    >>> states = [[0.5, 0.5], [0.1, 0.9]]
    >>> jb.simulate(jb.StateExp3(states, horizon=100, mean_delay=10),
    ...             jb.losses.IntermediateStates(states, jb.losses.Bernoulli([0.2, 0.8])), jb.delays.Fixed(10), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Baghi, *Pooling and Drift in Delayed Bandits*, ML x OR workshop 2026 (text, program and numbers were read).
    """

    transitions: Numbers = given("transitions", high=1.0, axes="KS")
    horizon: ArrayLike = given("horizon", low=1)
    mean_delay: ArrayLike = given("mean_delay")
    scale: ArrayLike = multiplier()

    @property
    def num_signals(self) -> int:
        return np.shape(self.transitions)[1]

    def check(self) -> None:
        check_rows("StateExp3(transitions=…)", self.transitions)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> jax.Array:
        return jnp.zeros((num_arms, *runs_shape), float_dtype())

    def act(self, state: jax.Array, round: Round) -> tuple[jax.Array, Any, jax.Array]:
        probabilities, state = soft_leader(state, self.rate(state.shape[0]))
        return probabilities, probabilities, state

    def signalled(self, state: jax.Array, round: Round, arm: jax.Array, signal: jax.Array, memo: PyTree) -> tuple[Any, jax.Array]:
        return weights_of(jax.vmap(pick, (0, None))(jnp.asarray(self.transitions), signal), memo), state

    def observe(self, state: jax.Array, observation: Observation) -> jax.Array:
        return add_by_state(state, observation)


@pytree_dataclass
class CountedState:
    loss_estimates: jax.Array  # [K, ...]
    counts: jax.Array  # [K, S, ...] how often each arm led to each state


@pytree_dataclass
class EstimatedStateExp3(ByStates):
    """State-EXP3 that estimates P(s|a) by counting.

    As :class:`StateExp3` with :math:`\\hat P_t(s|a) = (N_t(a, s) + \\alpha)/(N_t(a) + \\alpha S)` in place of P, N the counts of actions before round
    t, and :math:`x_t` mixed with :math:`\\gamma/K`. The estimates of the losses are no longer unbiased, and no bound is known.

    Args:
      signals: S, how many states there are (static).
      horizon: T, the number of rounds.
      mean_delay: d.
      smoothing: α.
      mixing: :math:`\\gamma`, the share of rounds that are played uniformly.
      scale: multiplies :math:`\\eta`.

    >>> import jaxbandit as jb
    >>> law = jb.losses.IntermediateStates([[0.5, 0.5], [0.1, 0.9]], jb.losses.Bernoulli([0.2, 0.8]))
    >>> jb.simulate(jb.EstimatedStateExp3(signals=2, horizon=100, mean_delay=10), law, jb.delays.Fixed(10), rounds=100, runs=8,
    ...             seed=0).regret[-1].shape
    (8,)

    Reference: the program beside Baghi, *Pooling and Drift in Delayed Bandits*, ML x OR workshop 2026.
    """

    signals: int = static(low=1, fact="signals")
    horizon: ArrayLike = given("horizon", low=1)
    mean_delay: ArrayLike = given("mean_delay")
    smoothing: ArrayLike = number(default=0.01, low=1e-6)
    mixing: ArrayLike = number(default=0.0, high=1.0)
    scale: ArrayLike = multiplier()

    @property
    def num_signals(self) -> int:
        return self.signals

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> CountedState:
        zeros = jnp.zeros((num_arms, *runs_shape), float_dtype())
        return CountedState(zeros, jnp.zeros((num_arms, self.signals, *runs_shape), float_dtype()))

    def act(self, state: CountedState, round: Round) -> tuple[jax.Array, Any, CountedState]:
        num_arms = state.loss_estimates.shape[0]
        weights, losses = soft_leader(state.loss_estimates, self.rate(num_arms))
        mixing = jnp.asarray(self.mixing, weights.dtype)
        probabilities = (1 - mixing) * weights + mixing / num_arms
        return probabilities, probabilities, CountedState(losses, state.counts)

    def signalled(
        self, state: CountedState, round: Round, arm: jax.Array, signal: jax.Array, memo: PyTree
    ) -> tuple[Any, CountedState]:
        num_arms, seen = state.counts.shape[0], one_hot(signal, self.signals)
        counted = jnp.where(seen, state.counts, 0).sum(1), state.counts.sum(1)  # of this state, of all; [K, ...]
        column = (counted[0] + self.smoothing) / (counted[1] + self.smoothing * self.signals)
        counts = state.counts + (one_hot(arm, num_arms)[:, None] & seen).astype(state.counts.dtype)
        return weights_of(column, memo), CountedState(state.loss_estimates, counts)

    def observe(self, state: CountedState, observation: Observation) -> CountedState:
        return CountedState(add_by_state(state.loss_estimates, observation), state.counts)
