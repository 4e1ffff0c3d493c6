"""Exponential weights with delays: x_t ∝ exp(-η_t L̂_t), where the learners differ in the rate η_t."""

import dataclasses
import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.arms import constant_min, sums
from jaxbandit._core.fields import MOST_ROUNDS, PyTree, float_dtype, given, number, pytree_dataclass, static
from jaxbandit._core.sums import Count
from jaxbandit.learners.base import ImportanceWeighted, Learner, Observation, ReadsDelays, Round, multiplier
from jaxbandit.learners.ftrl import log_arms
from jaxbandit.learners.ucb import Observed


@pytree_dataclass
class AdaptedState:
    """What delay-adapted estimates need."""

    loss_estimates: jax.Array  # [K, ...]
    probabilities: jax.Array  # [K, ...] x_t of the newest round


class ExponentialWeights(ImportanceWeighted):
    """What they share: the state is the cumulative loss estimates ``[K, ...]``, the smallest near 0; ``rate`` gives η_t."""

    estimator: str = "iw"  # "delay-adapted": losses are divided by max{x at the action, x at the arrival}
    _adds_at_arm: bool = True

    @property
    def adds_only(self) -> bool:
        return self.estimator == "iw"  # the other divides by probabilities of the state

    @property
    def importance_weighted(self) -> bool:
        return self.estimator == "iw"

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any:
        zeros = jnp.zeros((num_arms, *runs_shape), float_dtype())
        return zeros if self.estimator == "iw" else AdaptedState(zeros, zeros)

    def rate(self, round: Round, num_arms: int) -> ArrayLike:
        """η_t, ``[]`` or ``[...]``."""
        raise NotImplementedError

    def act(self, state: PyTree, round: Round) -> tuple[jax.Array, Any, Any]:
        losses = state if self.estimator == "iw" else state.loss_estimates
        probabilities, losses = soft_leader(losses, self.rate(round, losses.shape[0]))
        return probabilities, (), losses if self.estimator == "iw" else AdaptedState(losses, probabilities)

    def stiffness(self, state: PyTree, round: Round, probabilities: jax.Array) -> jax.Array:
        return soft_stiffness(probabilities, self.rate(round, probabilities.shape[0]))

    def observe(self, state: PyTree, observation: Observation) -> Any:
        if self.estimator == "iw":
            return add_weighted(state, observation)
        estimate = observation.loss_estimate(state.loss_estimates.shape[0], floor=state.probabilities)
        return AdaptedState(state.loss_estimates + estimate, state.probabilities)


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
      scale: multiplies :math:`\\eta_t`.
      estimator: importance weighted ``"iw"``, or ``"delay-adapted"`` (static).

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.Exp3(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(0), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Bubeck & Cesa-Bianchi, *Regret Analysis of Stochastic and Nonstochastic Multi-armed Bandit Problems*, 2012,
    Section 3.1 (recalled, not checked against the paper).
    """

    scale: ArrayLike = multiplier()
    estimator: Literal["iw", "delay-adapted"] = static(default="iw")

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
      scale: multiplies :math:`\\eta_t`.
      estimator: importance weighted ``"iw"``, or ``"delay-adapted"`` (static).

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.DelayedExp3(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8,
    ...             seed=0).regret[-1].shape
    (8,)

    Reference: after György & Joulani, *Adapting to Delays and Data in Adversarial Multi-Armed Bandits*, ICML 2021; this form
    of the rate is derived.
    """

    scale: ArrayLike = multiplier()
    estimator: Literal["iw", "delay-adapted"] = static(default="iw")

    def rate(self, round: Round, num_arms: int) -> ArrayLike:
        return self.scale * jnp.sqrt(log_arms(num_arms) / (round.time * (num_arms / 2) + round.total_outstanding))


@pytree_dataclass
class DelayedExponentialWeights(ExponentialWeights):
    """DEW: exponential weights with one rate, tuned to the horizon and the delays.

    .. math:: \\eta = \\min\\Big\\{\\sqrt{\\frac{\\log K}{KTe/2 + D}},\\; \\frac{1}{4e\\,d_{max}}\\Big\\}

    without the second term if :math:`d_{max} = 0`.

    Args:
      horizon: T, the number of rounds.
      total_delay: D, the sum of the delays, each cut off at the horizon, :math:`\\sum_t \\min(d_t, T - t)`.
      max_delay: d_max, the longest delay.
      scale: multiplies :math:`\\eta`.
      estimator: importance weighted ``"iw"``, or ``"delay-adapted"`` (static).

    >>> import jaxbandit as jb
    >>> learner = jb.DelayedExponentialWeights(horizon=100, total_delay=945, max_delay=10)
    >>> jb.simulate(learner, jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Thune, Cesa-Bianchi & Seldin, *Nonstochastic Multiarmed Bandits with Unrestricted Delays*, NeurIPS 2019
    (recalled, not checked against the paper).
    """

    horizon: ArrayLike = given("horizon", low=1)
    total_delay: ArrayLike = given("total_delay", high=float(MOST_ROUNDS) ** 2)
    max_delay: ArrayLike = given("max_delay")
    scale: ArrayLike = multiplier()
    estimator: Literal["iw", "delay-adapted"] = static(default="iw")

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
      scale: multiplies :math:`\\eta`.

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.Skipper(beta=5, horizon=100, total_delay=200), jb.losses.Bernoulli([0.3, 0.5]),
    ...             jb.delays.Geometric(4.0, bound=31), rounds=100, runs=8, seed=0).regret[-1].shape
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
class DoublingState:
    """The weights and the counts of an epoch."""

    loss_estimates: jax.Array  # [K, ...] of the rounds of this epoch
    epoch: jax.Array  # [...] int32, m
    length: jax.Array  # [...] int32, rounds of this epoch
    skipped: jax.Array  # [...] int32, those that are skipped
    delay: Count  # [...] the total delay of the others


@pytree_dataclass
class DoublingSkipper(ReadsDelays, ImportanceWeighted):
    r"""Skipper with a doubling scheme: requires the delay of each action at action time, and neither :math:`T` nor :math:`D`.

    Epoch :math:`m` has the threshold and the rate

    .. math:: \beta_m = \frac{\sqrt{2^m}}{4e \log K}, \quad \eta_m = \frac{\log K}{\sqrt{2^m}}

    A round with :math:`d_t \ge \beta_m` is skipped when its action is chosen: its feedback is discarded. Let :math:`n` be the rounds of
    the epoch, :math:`S` those that are skipped and :math:`D` the total delay of the others, this round included. If
    :math:`\max\{S^2, (eKn/2 + D) \log K\} > 2^m`, the next epoch starts with this round: the weights are reset, and feedback of
    earlier epochs is discarded. The first epoch has :math:`2^m \ge eK \log K`, so that each epoch has room for its first round.

    Regret at most the sum of :math:`3\sqrt{2^m}` over the epochs: :func:`jaxbandit.theory.bounds.doubling_skipper`.

    Args:
      scale: multiplies :math:`\eta_m`.

    >>> import jaxbandit as jb
    >>> delays = jb.delays.KnownAtAction(jb.delays.Geometric(4.0, bound=31))
    >>> jb.simulate(jb.DoublingSkipper(), jb.losses.Bernoulli([0.3, 0.5]), delays, rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Thune, Cesa-Bianchi & Seldin, *Nonstochastic Multiarmed Bandits with Unrestricted Delays*, NeurIPS 2019. The abstract was
    read; the constants, the test of an epoch and the first epoch are recalled [R].
    """

    scale: ArrayLike = multiplier()

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> DoublingState:
        zero, none = jnp.zeros(runs_shape, jnp.int32), jnp.zeros(runs_shape, jnp.uint32)
        losses = jnp.zeros((num_arms, *runs_shape), float_dtype())
        return DoublingState(losses, zero + first_epoch(num_arms), zero, zero, Count(none, none))

    def act(self, state: DoublingState, round: Round) -> tuple[jax.Array, Any, DoublingState]:
        num_arms, dtype = state.loss_estimates.shape[0], state.loss_estimates.dtype
        delay = jnp.broadcast_to(round.delay, state.epoch.shape)
        counted = _counted(state, delay, num_arms)
        load = (counted.length.astype(dtype) * (np.e * num_arms / 2) + counted.delay.as_float(dtype)) * log_arms(num_arms)
        full = jnp.maximum(counted.skipped.astype(dtype) ** 2, load) > _budget(state)
        zero, none = jnp.zeros_like(state.length), jnp.zeros_like(state.delay.low)
        fresh = DoublingState(jnp.zeros_like(state.loss_estimates), state.epoch + 1, zero, zero, Count(none, none))
        after = jax.tree.map(lambda new, old: jnp.where(full, new, old), _counted(fresh, delay, num_arms), counted)
        probabilities, losses = soft_leader(after.loss_estimates, self.rate(after, num_arms))
        # The epoch whose weights this round's feedback is for; none where it is skipped.
        memo = jnp.where(after.skipped > jnp.where(full, 0, state.skipped), -1, after.epoch)
        return probabilities, memo, dataclasses.replace(after, loss_estimates=losses)

    def rate(self, state: DoublingState, num_arms: int) -> jax.Array:
        """η_m ``[...]``."""
        return jnp.asarray(self.scale * log_arms(num_arms)) / jnp.sqrt(_budget(state))

    def stiffness(self, state: DoublingState, round: Round, probabilities: jax.Array) -> jax.Array:
        return soft_stiffness(probabilities, self.rate(state, probabilities.shape[0]))

    def observe(self, state: DoublingState, observation: Observation) -> DoublingState:
        used = observation._replace(arrived=observation.arrived & (observation.memo == state.epoch))
        return dataclasses.replace(state, loss_estimates=add_weighted(state.loss_estimates, used))


def _budget(state: DoublingState) -> jax.Array:
    """2^m ``[...]``, exact: XLA's exp2 is rounded."""
    return jnp.ldexp(jnp.ones((), state.loss_estimates.dtype), state.epoch)


def first_epoch(num_arms: int) -> int:
    """The smallest m with 2^m >= eK·log K."""
    return math.ceil(math.log2(np.e * num_arms * log_arms(num_arms)))


def _counted(state: DoublingState, delay: jax.Array, num_arms: int) -> DoublingState:
    """The state with one more round of this ``delay``, skipped from the threshold of the epoch on."""
    threshold = jnp.sqrt(_budget(state)) / (4 * np.e * log_arms(num_arms))
    skips = delay.astype(state.loss_estimates.dtype) >= threshold
    return dataclasses.replace(
        state,
        length=state.length + 1,
        skipped=state.skipped + skips.astype(jnp.int32),
        delay=state.delay.add(jnp.where(skips, 0, delay)),
    )


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
      gamma: :math:`\\gamma` in (0, 1], or None to have it tuned to the horizon.
      estimator: importance weighted ``"iw"``, or ``"delay-adapted"`` (static).

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.FixedDelayExp3(horizon=100, delay=10), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100,
    ...             runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Cesa-Bianchi, Gentile & Mansour, *Delay and Cooperation in Nonstochastic Bandits*, JMLR 2019.
    """

    horizon: ArrayLike = given("horizon", low=1)
    delay: ArrayLike = given("max_delay")
    gamma: ArrayLike | None = number(default=None, high=1.0, open_low=True)
    estimator: Literal["iw", "delay-adapted"] = static(default="iw")

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

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.Exp3PlusPlus(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(0), rounds=100, runs=8,
    ...             seed=0).regret[-1].shape
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
