"""Exponential weights with delays: x_t ∝ exp(-η_t L̂_t), where the learners differ in the rate η_t."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.arms import constant_min, sums
from jaxbandit._core.fields import MOST_ROUNDS, float_dtype, given, number, pytree_dataclass
from jaxbandit.learners.base import ImportanceWeighted, Learner, Observation, Round, multiplier
from jaxbandit.learners.ftrl import log_arms
from jaxbandit.learners.ucb import Observed


class ExponentialWeights(ImportanceWeighted):
    """What they share: the state is the cumulative loss estimates ``[K, ...]``, the smallest near 0; ``rate`` gives η_t."""

    adds_only: bool = True
    _adds_at_arm: bool = True

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> jax.Array:
        return jnp.zeros((num_arms, *runs_shape), float_dtype())

    def rate(self, round: Round, num_arms: int) -> ArrayLike:
        """η_t, ``[]`` or ``[...]``."""
        raise NotImplementedError

    def act(self, state: jax.Array, round: Round) -> tuple[jax.Array, Any, jax.Array]:
        probabilities, state = soft_leader(state, self.rate(round, state.shape[0]))
        return probabilities, (), state

    def stiffness(self, state: jax.Array, round: Round, probabilities: jax.Array) -> jax.Array:
        return soft_stiffness(probabilities, self.rate(round, probabilities.shape[0]))

    def observe(self, state: jax.Array, observation: Observation) -> jax.Array:
        return add_weighted(state, observation)


def soft_leader(loss_estimates: jax.Array, rate: ArrayLike) -> tuple[jax.Array, jax.Array]:
    """Probabilities ∝ exp(-rate·L), and L shifted to min L = 0: rates move, so L is kept and not the weights."""
    losses = loss_estimates - constant_min(loss_estimates)
    weights = jnp.exp(-losses * rate)
    return weights / sums(weights)[0], losses


def add_weighted(loss_estimates: jax.Array, observation: Observation) -> jax.Array:
    """The estimates ``[K, ...]`` after adding the importance-weighted loss of the played arm."""
    return loss_estimates + observation.loss_estimate(loss_estimates.shape[0])


def soft_stiffness(probabilities: jax.Array, rate: ArrayLike) -> jax.Array:
    """h = 2/rate ``[K, ...]``, as :meth:`ImportanceWeighted.stiffness` asks for it."""
    return jnp.broadcast_to(2 / jnp.asarray(rate, probabilities.dtype), probabilities.shape)


@pytree_dataclass
class Exp3(ExponentialWeights):
    """Exp3 for losses, anytime; ignores delays, feedback counts when it arrives.

    .. math:: x_t \\propto \\exp(-\\eta_t \\hat L_t), \\quad \\eta_t = \\sqrt{\\log K / (tK)}

    Args:
      scale: multiplies η_t.

    >>> import jax, jaxbandit as jb
    >>> from jaxbandit.learners.exponential import Exp3
    >>> jb.simulate(Exp3(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(0), rounds=100, runs=8,
    ...             key=jax.random.key(0)).regret[-1].shape
    (8,)

    Reference: Bubeck & Cesa-Bianchi, *Regret Analysis of Stochastic and Nonstochastic Multi-armed Bandit Problems*, 2012,
    Section 3.1 (recalled, not checked against the paper).
    """

    scale: ArrayLike = multiplier()

    def rate(self, round: Round, num_arms: int) -> ArrayLike:
        return self.scale * jnp.sqrt(log_arms(num_arms) / (round.time * num_arms))


@pytree_dataclass
class DelayedExp3(ExponentialWeights):
    """Delay-adaptive Exp3: anytime, needs no knowledge of the delays.

    .. math::
       x_t \\propto \\exp(-\\eta_t \\hat L^{obs}_t), \\quad
       \\eta_t = \\sqrt{\\frac{\\log K}{Kt/2 + D_t}}, \\quad D_t = \\sum_{s \\le t} \\sigma_s

    with :math:`\\sigma_s` the outstanding observations at the start of round s. Regret at most
    :math:`3\\sqrt{\\log K\\,(KT/2 + D_T)}`.

    Args:
      scale: multiplies η_t.

    >>> import jax, jaxbandit as jb
    >>> from jaxbandit.learners.exponential import DelayedExp3
    >>> jb.simulate(DelayedExp3(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8,
    ...             key=jax.random.key(0)).regret[-1].shape
    (8,)

    Reference: after György & Joulani, *Adapting to Delays and Data in Adversarial Multi-Armed Bandits*, ICML 2021; this form
    of the rate is derived.
    """

    scale: ArrayLike = multiplier()

    def rate(self, round: Round, num_arms: int) -> ArrayLike:
        return self.scale * jnp.sqrt(log_arms(num_arms) / (round.time * (num_arms / 2) + round.total_outstanding))


@pytree_dataclass
class DelayedExponentialWeights(ExponentialWeights):
    """DEW: exponential weights with one rate, tuned to the horizon and the delays.

    .. math:: \\eta = \\min\\Big\\{\\sqrt{\\frac{\\log K}{KTe/2 + D}},\\; \\frac{1}{4e\\,d_{max}}\\Big\\}

    without the second term if :math:`d_{max} = 0`.

    Args:
      horizon: T, the number of rounds.
      total_delay: D, the sum of the delays, each cut off at the horizon (Σ min(d_t, T - t)).
      max_delay: d_max, the longest delay.
      scale: multiplies η.

    >>> import jax, jaxbandit as jb
    >>> from jaxbandit.learners.exponential import DelayedExponentialWeights
    >>> learner = DelayedExponentialWeights(horizon=100, total_delay=945, max_delay=10)
    >>> jb.simulate(learner, jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8,
    ...             key=jax.random.key(0)).regret[-1].shape
    (8,)

    Reference: Thune, Cesa-Bianchi & Seldin, *Nonstochastic Multiarmed Bandits with Unrestricted Delays*, NeurIPS 2019
    (recalled, not checked against the paper).
    """

    horizon: ArrayLike = given("horizon", low=1)
    total_delay: ArrayLike = given("total_delay", high=float(MOST_ROUNDS) ** 2)
    max_delay: ArrayLike = given("max_delay")
    scale: ArrayLike = multiplier()

    def rate(self, round: Round, num_arms: int) -> ArrayLike:
        return self.scale * dew_rate(num_arms, self.horizon, self.total_delay, self.max_delay)


def dew_rate(num_arms: int, horizon: ArrayLike, total_delay: ArrayLike, max_delay: ArrayLike) -> jax.Array:
    # The larger of the inverses: max_delay = 0 then needs no case of its own.
    return 1 / jnp.maximum(jnp.sqrt((horizon * (num_arms * np.e / 2) + total_delay) / log_arms(num_arms)), 4 * np.e * max_delay)


@pytree_dataclass
class SkipperState:
    loss_estimates: jax.Array  # [K, ...]
    t: jax.Array  # [] int32, the round being played


@pytree_dataclass
class Skipper(ImportanceWeighted):
    """DEW that uses only feedback with a delay below β, and whose :math:`d_{max}` is β.

    .. math:: \\eta = \\min\\Big\\{\\sqrt{\\frac{\\log K}{KTe/2 + D}},\\; \\frac{1}{4e\\beta}\\Big\\}

    Args:
      beta: β; feedback that took ``beta`` rounds or more is thrown away.
      horizon: T, the number of rounds.
      total_delay: D, the total delay of the rounds that are not skipped.
      scale: multiplies η.

    >>> import jax, jaxbandit as jb
    >>> from jaxbandit.learners.exponential import Skipper
    >>> jb.simulate(Skipper(beta=5, horizon=100, total_delay=200), jb.losses.Bernoulli([0.3, 0.5]),
    ...             jb.delays.Geometric(4.0, bound=31), rounds=100, runs=8, key=jax.random.key(0)).regret[-1].shape
    (8,)

    Reference: Thune, Cesa-Bianchi & Seldin, *Nonstochastic Multiarmed Bandits with Unrestricted Delays*, NeurIPS 2019
    (recalled, not checked against the paper).
    """

    beta: ArrayLike = given("beta")
    horizon: ArrayLike = given("horizon", low=1)
    total_delay: ArrayLike = given("total_delay", high=float(MOST_ROUNDS) ** 2)
    scale: ArrayLike = multiplier()

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> SkipperState:
        return SkipperState(jnp.zeros((num_arms, *runs_shape), float_dtype()), jnp.zeros((), jnp.int32))

    def act(self, state: SkipperState, round: Round) -> tuple[jax.Array, Any, SkipperState]:
        probabilities, losses = soft_leader(state.loss_estimates, self.rate(state.loss_estimates.shape[0]))
        return probabilities, (), SkipperState(losses, round.t)

    def rate(self, num_arms: int) -> ArrayLike:
        """η."""
        return self.scale * dew_rate(num_arms, self.horizon, self.total_delay, self.beta)

    def stiffness(self, state: SkipperState, round: Round, probabilities: jax.Array) -> jax.Array:
        return soft_stiffness(probabilities, self.rate(probabilities.shape[0]))

    def observe(self, state: SkipperState, observation: Observation) -> SkipperState:
        delay = (state.t - observation.origin).astype(state.loss_estimates.dtype)
        used = observation._replace(arrived=observation.arrived & (delay < self.beta))
        return SkipperState(add_weighted(state.loss_estimates, used), state.t)


@pytree_dataclass
class FixedDelayExp3(ExponentialWeights):
    """Exp3 for a fixed delay d that is known.

    .. math:: \\eta = \\frac{\\gamma}{Ke(d+1)}

    With ``gamma=None`` the rate is the one that gives regret of order :math:`\\sqrt{(K + d)T\\log K}`:
    :math:`\\eta = \\min\\{\\sqrt{\\log K/((K + d)T)},\\, 1/(Ke(d+1))\\}` (recalled, not checked against the paper, as is that
    nothing is mixed in).

    Args:
      horizon: T, the number of rounds.
      delay: d.
      gamma: γ in (0, 1], or None to have it tuned to the horizon.

    >>> import jax, jaxbandit as jb
    >>> from jaxbandit.learners.exponential import FixedDelayExp3
    >>> jb.simulate(FixedDelayExp3(horizon=100, delay=10), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100,
    ...             runs=8, key=jax.random.key(0)).regret[-1].shape
    (8,)

    Reference: Cesa-Bianchi, Gentile & Mansour, *Delay and Cooperation in Nonstochastic Bandits*, JMLR 2019.
    """

    horizon: ArrayLike = given("horizon", low=1)
    delay: ArrayLike = given("max_delay")
    gamma: ArrayLike | None = number(default=None, high=1.0, open_low=True)

    def rate(self, round: Round, num_arms: int) -> ArrayLike:
        largest = 1 / (num_arms * np.e * (self.delay + 1))
        if self.gamma is not None:
            return self.gamma * largest
        return jnp.minimum(jnp.sqrt(log_arms(num_arms) / ((num_arms + self.delay) * self.horizon)), largest)


@pytree_dataclass
class Exp3PlusPlusState:
    loss_estimates: jax.Array  # [K, ...]
    observed: Observed


@pytree_dataclass
class Exp3PlusPlus(Learner):
    """Exp3++: Exp3 with exploration of each arm by its estimated gap; ignores delays.

    .. math::
       w_t \\propto \\exp(-\\eta_t \\hat L_t), \\quad x_{t,i} = \\Big(1 - \\sum_j \\epsilon_{t,j}\\Big) w_{t,i} + \\epsilon_{t,i},
       \\quad \\eta_t = \\tfrac12 \\sqrt{\\log K / (tK)}

       \\epsilon_{t,i} = \\min\\Big\\{\\frac{1}{2K},\\; \\eta_t,\\; \\frac{\\beta \\log t}{t\\, \\hat\\Delta_{t,i}^2}\\Big\\},
       \\quad \\hat\\Delta_{t,i} = \\max\\{0, \\mathrm{LCB}_i - \\min_j \\mathrm{UCB}_j\\}

    The confidence bounds are those of the mean observed loss, :math:`\\pm\\sqrt{(\\alpha\\log t + \\log K)/(2N_i)}`, cut to
    [0, 1].

    Args:
      alpha: α of the confidence bounds.
      beta: β of the exploration.

    >>> import jax, jaxbandit as jb
    >>> from jaxbandit.learners.exponential import Exp3PlusPlus
    >>> jb.simulate(Exp3PlusPlus(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(0), rounds=100, runs=8,
    ...             key=jax.random.key(0)).regret[-1].shape
    (8,)

    Reference: Seldin & Lugosi, *An Improved Parametrization and Analysis of the EXP3++ Algorithm for Stochastic and Adversarial
    Bandits*, COLT 2017 (recalled, not checked against the paper).
    """

    alpha: ArrayLike = number(default=3.0)
    beta: ArrayLike = number(default=256.0)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Exp3PlusPlusState:
        return Exp3PlusPlusState(jnp.zeros((num_arms, *runs_shape), float_dtype()), Observed.start(num_arms, runs_shape))

    def act(self, state: Exp3PlusPlusState, round: Round) -> tuple[jax.Array, Any, Exp3PlusPlusState]:
        num_arms = state.loss_estimates.shape[0]
        rate = jnp.sqrt(log_arms(num_arms) / (round.time * num_arms)) / 2
        weights, losses = soft_leader(state.loss_estimates, rate)
        gap = self._gaps(state.observed, round)
        forced = self.beta * jnp.log(round.time) / (round.time * jnp.where(gap > 0, gap, 1) ** 2)
        exploration = jnp.minimum(jnp.minimum(rate, 1 / (2 * num_arms)), jnp.where(gap > 0, forced, jnp.inf))
        probabilities = (1 - sums(exploration)[0]) * weights + exploration
        return probabilities, (), Exp3PlusPlusState(losses, state.observed)

    def _gaps(self, observed, round):
        """How far each arm is surely behind the best, ``[K, ...]``."""
        radius = jnp.sqrt((self.alpha * jnp.log(round.time) + math.log(observed.counts.shape[0])) / (2 * observed.number()))
        seen, mean = observed.counts > 0, observed.mean()
        lower = jnp.where(seen, jnp.maximum(mean - radius, 0), 0)
        upper = jnp.where(seen, jnp.minimum(mean + radius, 1), 1)
        return jnp.maximum(lower - constant_min(upper), 0)

    def observe(self, state: Exp3PlusPlusState, observation: Observation) -> Exp3PlusPlusState:
        return Exp3PlusPlusState(add_weighted(state.loss_estimates, observation), state.observed.add(observation))
