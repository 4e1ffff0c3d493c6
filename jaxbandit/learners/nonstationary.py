"""Means that move: UCB1 and Thompson sampling on recent plays alone, or on all with weights that fall with their age.

The age of an observation counts from its action, not from its arrival: delayed feedback describes old means.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from jaxbandit._core.arms import one_hot, sums
from jaxbandit._core.fields import float_dtype, number, pytree_dataclass, static
from jaxbandit._core.ring import read_row, write_own_row
from jaxbandit._core.sums import compensated_add
from jaxbandit.learners.base import Learner, Observation, Round
from jaxbandit.learners.thompson import beta_odds, thompson_propensity
from jaxbandit.learners.ucb import uniform_over_smallest


@jax.custom_jvp
def read_once(values: jax.Array, one: jax.Array) -> jax.Array:
    """``values``, a row of a window that was just read; ``one`` is 1, which XLA does not know.

    On a CPU every kernel that needs the row reads it for itself, some of them when it may have been overwritten, and XLA copies the
    whole window to be safe. Only costly steps are not repeated, and a division of whole numbers is one: the bits are divided by 1.
    """
    whole = jnp.dtype(f"int{8 * values.dtype.itemsize}")
    bits = lax.div(lax.bitcast_convert_type(values, whole), one.astype(whole))
    return lax.bitcast_convert_type(bits, values.dtype)


read_once.defjvp(lambda primals, tangents: (read_once(*primals), tangents[0]))


@pytree_dataclass
class Window:
    """The observed plays of the last W rounds. Row s % W is the play of round s."""

    arms: jax.Array  # [W, ...] int32, -1: not observed
    values: jax.Array  # [W, ...] the losses
    count: jax.Array  # [K, ...] int32, how many there are of each arm
    total: jax.Array  # [K, ...] the sum of their losses
    error: jax.Array  # [K, ...] what rounding took from it
    now: jax.Array  # [...] int32, the round being played

    @classmethod
    def start(cls, size: int, num_arms: int, runs_shape: tuple[int, ...]) -> "Window":
        row, zeros = jnp.zeros((size, *runs_shape), float_dtype()), jnp.zeros((num_arms, *runs_shape), float_dtype())
        now = jnp.zeros(runs_shape, jnp.int32)
        return cls(jnp.full((size, *runs_shape), -1, jnp.int32), row, zeros.astype(jnp.int32), zeros, zeros, now)

    def counts(self) -> jax.Array:
        return self.count.astype(self.total.dtype)

    def losses(self) -> jax.Array:
        return jnp.maximum(self.total + self.error, 0)

    def next(self, round: Round) -> "Window":
        """Drop the play that the next round will not see any more; its row is that of this round's play."""
        size, num_arms = self.arms.shape[0], self.count.shape[0]
        row = round.t % size
        one = jnp.broadcast_to(jnp.minimum(round.t, 1), self.now.shape)
        arm, value = read_once(read_row(self.arms, row), one), read_once(read_row(self.values, row), one)
        gone = one_hot(arm, num_arms)
        total, error = compensated_add(self.total, self.error, jnp.where(gone, -value, 0))
        # The minimum and the maximum change nothing, for arms are -1 or more and rounds 1 or more. They make what is written, here and
        # in `add`, depend on what was read, without which XLA copies the window in every round (see the head of jaxbandit/_engine/queues/listed.py).
        arms = write_own_row(self.arms, jnp.minimum(arm, -1), row)
        now = jnp.broadcast_to(jnp.maximum(round.t, (value < 0).astype(jnp.int32)), self.now.shape)
        return Window(arms, self.values, self.count - gone.astype(jnp.int32), total, error, now)

    def add(self, observation: Observation) -> "Window":
        size, num_arms = self.arms.shape[0], self.count.shape[0]
        used = observation.arrived & (observation.origin > self.now - size)
        row = observation.origin % size
        arms = write_own_row(self.arms, jnp.where(used, observation.arm, read_row(self.arms, row)), row)
        values = write_own_row(self.values, jnp.where(used, observation.loss, read_row(self.values, row)), row)
        came = one_hot(observation.arm, num_arms) & used
        total, error = compensated_add(self.total, self.error, jnp.where(came, observation.loss, 0))
        return Window(arms, values, self.count + came.astype(jnp.int32), total, error, self.now)


@pytree_dataclass
class Discounted:
    """All observations, each with the weight γ^age, as of the round being played."""

    count: jax.Array  # [K, ...]
    total: jax.Array  # [K, ...]
    now: jax.Array  # [...] int32, the round being played

    @classmethod
    def start(cls, num_arms: int, runs_shape: tuple[int, ...]) -> "Discounted":
        zeros = jnp.zeros((num_arms, *runs_shape), float_dtype())
        return cls(zeros, zeros, jnp.zeros(runs_shape, jnp.int32))

    def next(self, round: Round, discount: ArrayLike) -> "Discounted":
        return Discounted(self.count * discount, self.total * discount, jnp.broadcast_to(round.t, self.now.shape))

    def add(self, observation: Observation, discount: ArrayLike) -> "Discounted":
        num_arms, age = self.count.shape[0], jnp.maximum(self.now - observation.origin, 0)
        weight = jnp.asarray(discount, self.count.dtype) ** age.astype(self.count.dtype)
        came = one_hot(observation.arm, num_arms) & observation.arrived
        return Discounted(
            self.count + jnp.where(came, weight, 0), self.total + jnp.where(came, weight * observation.loss, 0), self.now
        )


def optimistic(round: Round, counts: jax.Array, losses: jax.Array, budget: ArrayLike) -> jax.Array:
    """The probabilities of UCB1: the smallest mean loss less √(budget/count), unobserved arms first, ties at random."""
    seen = counts > 0
    divisor = jnp.where(seen, counts, 1)
    return uniform_over_smallest(round.restrict(jnp.where(seen, losses / divisor - jnp.sqrt(budget / divisor), -jnp.inf)))


def sampled(round: Round, counts: jax.Array, losses: jax.Array) -> jax.Array:
    """The arm with the smallest of the draws from Beta(1 + losses, 1 + counts - losses), as one-hot probabilities."""
    return uniform_over_smallest(round.restrict(beta_odds(round.words, *posterior(counts, losses))))


def posterior(counts: jax.Array, losses: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The parameters of the Beta distributions, each of at least 1."""
    return 1 + losses, 1 + jnp.maximum(counts - losses, 0)


@pytree_dataclass
class SlidingWindowUCB(Learner):
    """UCB1 on the observations of the last W rounds.

    .. math:: I_t \\in \\arg\\max_i \\; 1 - \\bar\\ell_i + \\sqrt{\\alpha \\log \\min(t, W) / S_i}

    with :math:`S_i` the plays of arm i in rounds t - W … t - 1 whose feedback has arrived, and :math:`\\bar\\ell_i` their mean loss.
    Arms without one are chosen first; ties break at random. Under delays, W must be well above the longest.

    Args:
      window: W (static).
      alpha: the width of the bonus.

    >>> import jaxbandit as jb
    >>> turns = jb.losses.Switching([[0.3, 0.5], [0.5, 0.3]], starts=[1, 51])
    >>> jb.simulate(jb.SlidingWindowUCB(window=40), turns, jb.delays.Fixed(10), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Garivier & Moulines, *On Upper-Confidence Bound Policies for Switching Bandit Problems*, ALT 2011 (recalled, not
    checked against the paper; that ages count from the action is ours).
    """

    window: int = static(default=1000, low=1, high=1 << 20)
    alpha: ArrayLike = number(default=2.0)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Window:
        return Window.start(self.window, num_arms, runs_shape)

    def act(self, state: Window, round: Round) -> tuple[jax.Array, Any, Window]:
        budget = self.alpha * jnp.log(jnp.minimum(round.time, self.window))
        return optimistic(round, state.counts(), state.losses(), budget), (), state.next(round)

    def observe(self, state: Window, observation: Observation) -> Window:
        return state.add(observation)


@pytree_dataclass
class SlidingWindowThompson(Learner):
    """Thompson sampling on the observations of the last W rounds.

    .. math:: I_t = \\arg\\min_i \\theta_i, \\quad \\theta_i \\sim \\mathrm{Beta}\\Big(1 + \\sum \\ell,\\; 1 + \\sum (1 - \\ell)\\Big)

    with sums over the actions on arm i in rounds t - W … t - 1 whose feedback has arrived.

    Args:
      window: W (static).

    >>> import jaxbandit as jb
    >>> turns = jb.losses.Switching([[0.3, 0.5], [0.5, 0.3]], starts=[1, 51])
    >>> jb.simulate(jb.SlidingWindowThompson(window=40), turns, jb.delays.Fixed(10), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Trovò, Paladino, Restelli & Gatti, *Sliding-Window Thompson Sampling for Non-Stationary Settings*, JAIR 2020
    (recalled, not checked against the paper; that ages count from the action is ours).
    """

    window: int = static(default=1000, low=1, high=1 << 20)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Window:
        return Window.start(self.window, num_arms, runs_shape)

    def act(self, state: Window, round: Round) -> tuple[jax.Array, Any, Window]:
        return sampled(round, state.counts(), state.losses()), (), state.next(round)

    def propensity(self, state: Window, round: Round, arm: jax.Array) -> jax.Array:
        return thompson_propensity(round, *posterior(state.counts(), state.losses()), arm)

    def observe(self, state: Window, observation: Observation) -> Window:
        return state.add(observation)


@pytree_dataclass
class DiscountedUCB(Learner):
    """UCB1 with observations discounted by their age.

    An observation of age a has weight :math:`\\gamma^a`.

    .. math::
       I_t \\in \\arg\\max_i \\; 1 - \\bar\\ell_i + \\sqrt{\\alpha \\log \\max\\{1, \\textstyle\\sum_j S_j\\} / S_i}, \\quad
       S_i = \\sum_s \\gamma^{t - s}, \\quad \\bar\\ell_i = \\frac{1}{S_i} \\sum_s \\gamma^{t - s} \\ell_s

    with sums over the arrived observations of arm i. About :math:`1/(1 - \\gamma)` rounds are remembered.

    Args:
      discount: :math:`\\gamma`.
      alpha: the width of the bonus.

    >>> import jaxbandit as jb
    >>> turns = jb.losses.Switching([[0.3, 0.5], [0.5, 0.3]], starts=[1, 51])
    >>> jb.simulate(jb.DiscountedUCB(0.95), turns, jb.delays.Fixed(10), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Garivier & Moulines, *On Upper-Confidence Bound Policies for Switching Bandit Problems*, ALT 2011 (recalled, not
    checked against the paper; that ages count from the action is ours).
    """

    discount: ArrayLike = number(default=0.999, high=1.0)
    alpha: ArrayLike = number(default=2.0)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Discounted:
        return Discounted.start(num_arms, runs_shape)

    def act(self, state: Discounted, round: Round) -> tuple[jax.Array, Any, Discounted]:
        state = state.next(round, self.discount)
        budget = self.alpha * jnp.log(jnp.maximum(sums(state.count)[0], 1))
        return optimistic(round, state.count, state.total, budget), (), state

    def observe(self, state: Discounted, observation: Observation) -> Discounted:
        return state.add(observation, self.discount)


@pytree_dataclass
class DiscountedThompson(Learner):
    """Thompson sampling with observations discounted by their age.

    An observation of age a has weight :math:`\\gamma^a`.

    .. math::
       I_t = \\arg\\min_i \\theta_i, \\quad
       \\theta_i \\sim \\mathrm{Beta}\\Big(1 + \\sum \\gamma^{t-s} \\ell_s,\\; 1 + \\sum \\gamma^{t-s} (1 - \\ell_s)\\Big)

    with sums over the arrived observations of arm i. About :math:`1/(1 - \\gamma)` rounds are remembered.

    Args:
      discount: :math:`\\gamma`.

    >>> import jaxbandit as jb
    >>> turns = jb.losses.Switching([[0.3, 0.5], [0.5, 0.3]], starts=[1, 51])
    >>> jb.simulate(jb.DiscountedThompson(0.95), turns, jb.delays.Fixed(10), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Raj & Kalyani, *Taming Non-stationary Bandits: A Bayesian Approach*, 2017 (recalled, not checked against the
    paper; that ages count from the action is ours).
    """

    discount: ArrayLike = number(default=0.999, high=1.0)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Discounted:
        return Discounted.start(num_arms, runs_shape)

    def act(self, state: Discounted, round: Round) -> tuple[jax.Array, Any, Discounted]:
        state = state.next(round, self.discount)
        return sampled(round, state.count, state.total), (), state

    def propensity(self, state: Discounted, round: Round, arm: jax.Array) -> jax.Array:
        state = state.next(round, self.discount)
        return thompson_propensity(round, *posterior(state.count, state.total), arm)

    def observe(self, state: Discounted, observation: Observation) -> Discounted:
        return state.add(observation, self.discount)
