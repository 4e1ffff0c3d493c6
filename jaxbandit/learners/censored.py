"""Conversions with a delay curve that is learned: outstanding actions count as failures by how likely they would have converted by now."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.arms import one_hot
from jaxbandit._core.fields import float_dtype, number, pytree_dataclass, static
from jaxbandit._core.ring import read_row, write_own_row
from jaxbandit._core.sums import compensated_add
from jaxbandit.learners.base import Learner, Observation, Round
from jaxbandit.learners.thompson import beta_odds, thompson_propensity
from jaxbandit.learners.ucb import lowest_mean_logit, uniform_over_smallest

BINS = 16  # of ages, narrower for young actions


def age_edges(window: int) -> np.ndarray:
    """The first ages of the bins and, last, the window: ``[B + 1]``.

    >>> age_edges(100)
    array([  0,   1,   2,   4,   6,  10,  14,  19,  25,  32,  39,  47,  56,
            66,  77,  88, 100])
    """
    edges = np.round(window * (np.arange(BINS + 1) / BINS) ** 2).astype(int)
    return np.unique(np.maximum(edges, np.minimum(np.arange(BINS + 1), window)))


@pytree_dataclass
class CensoredState:
    """Outstanding actions by arm and age, the outcomes of the others, and the delays of the conversions of all arms."""

    recent: jax.Array  # [m, ...] int32, row s % m: the arm of the action of round s while it is outstanding, else -1
    open: jax.Array  # [B, K, ...] outstanding actions by bin of age
    closed: jax.Array  # [K, ...] actions that were observed, or are older than the window
    rewards: jax.Array  # [K, ...] the sum of 1 - loss over the observed ones
    error: jax.Array  # [K, ...] its rounding error
    delays: jax.Array  # [B, ...] conversions of all arms by bin of delay
    arrived: jax.Array  # [B, ...] the probability that a conversion has arrived before the middle of a bin
    rates: jax.Array  # [K, ...] conversion rates
    now: jax.Array  # [...] int32, the round


class Censored(Learner):
    """The state and its estimates, which both learners share."""

    window: int

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> CensoredState:
        bins = len(age_edges(self.window)) - 1
        zeros = jnp.zeros((num_arms, *runs_shape), float_dtype())
        none = jnp.zeros((bins, *runs_shape), float_dtype())
        middle = (jnp.arange(bins, dtype=float_dtype()) + 0.5) / bins
        return CensoredState(
            recent=jnp.full((self.window, *runs_shape), -1, jnp.int32),
            open=jnp.zeros((bins, *zeros.shape), float_dtype()),
            closed=zeros,
            rewards=zeros,
            error=zeros,
            delays=none,
            arrived=none + middle.reshape(bins, *[1] * len(runs_shape)),
            rates=zeros + 0.5,
            now=jnp.zeros(runs_shape, jnp.int32),
        )

    def act(self, state: CensoredState, round: Round) -> tuple[jax.Array, Any, CensoredState]:
        state = self._estimated(self._older(state, round))
        return self.choose(round, *self._outcomes(state)), (), state

    def _outcomes(self, state: CensoredState) -> tuple[jax.Array, jax.Array]:
        """Rewards and expected failures ``[K, ...]``."""
        good = jnp.maximum(state.rewards + state.error, 0)
        return good, jnp.maximum(state.closed - good, 0) + self._failed(state).sum(0)

    def choose(self, round: Round, rewards: jax.Array, failures: jax.Array) -> jax.Array:
        """Probabilities ``[K, ...]`` from rewards and expected failures ``[K, ...]``."""
        raise NotImplementedError

    def _older(self, state: CensoredState, round: Round) -> CensoredState:
        """Actions whose age reaches an edge move to the next bin; those as old as the window are closed."""
        edges, num_arms = age_edges(self.window), state.closed.shape[0]
        moved = [
            one_hot(read_row(state.recent, (round.t - int(edge)) % self.window), num_arms).astype(state.closed.dtype)
            for edge in edges[1:]
        ]
        leaving = jnp.stack(moved)  # [B, K, ...]
        entering = jnp.concatenate([jnp.zeros_like(leaving[:1]), leaving[:-1]])
        now = jnp.zeros_like(state.now) + round.t
        return _replace(state, open=state.open + entering - leaving, closed=state.closed + moved[-1], now=now)

    def _estimated(self, state: CensoredState) -> CensoredState:
        """One step of the EM algorithm: rates from the delay curve, then the curve from the rates."""
        good = state.rewards + state.error
        rates = (good + 0.5) / (state.closed + self._failed(state).sum(0) + 1)
        rates = jnp.clip(rates, 0, 1 - 1e-6)
        before = state.arrived[:, None]
        converting = (state.open * rates * (1 - before) / (1 - rates * before)).sum(1)  # [B, ...] expected, not yet observed
        bins = state.delays.shape[0]
        found = state.delays + 1 / bins  # one conversion, evenly spread over the bins, as prior
        at_risk, later = [], jnp.zeros_like(found[0])
        for place in reversed(range(bins)):
            at_risk.append(found[place] + later + converting[place] / 2)
            later = later + found[place] + converting[place]
        hazards = jnp.clip(found / jnp.stack(at_risk[::-1]), 0, 1)
        left, survival = jnp.ones_like(found[0]), []
        for place in range(bins):
            survival.append(left * (1 - hazards[place] / 2))
            left = left * (1 - hazards[place])
        arrived = jnp.clip((1 - jnp.stack(survival)) / jnp.maximum(1 - left, 1e-6), 0, 1)
        return _replace(state, rates=rates, arrived=arrived)

    def _failed(self, state: CensoredState) -> jax.Array:
        """How many failures the outstanding actions of a bin are worth, ``[B, K, ...]``: F(1 - p)/(1 - pF) each."""
        before = state.arrived[:, None]
        return state.open * before * (1 - state.rates) / (1 - state.rates * before)

    def played(self, state: CensoredState, round: Round, arm: jax.Array, probability: jax.Array) -> CensoredState:
        first = state.open[0] + one_hot(arm, state.closed.shape[0]).astype(state.closed.dtype)
        recent = write_own_row(state.recent, arm, round.t % self.window)
        return _replace(state, recent=recent, open=state.open.at[0].set(first))

    def observe(self, state: CensoredState, observation: Observation) -> CensoredState:
        num_arms, dtype = state.closed.shape[0], state.closed.dtype
        edges = age_edges(self.window)
        delay = state.now - observation.origin
        here = jnp.asarray(observation.arrived) & (jnp.zeros_like(state.now) == 0)
        place = jnp.clip((delay[None] >= edges[1:].reshape(-1, *[1] * delay.ndim)).sum(0), 0, len(edges) - 2)
        known = here & (delay < self.window)  # older ones were closed before
        arm = one_hot(observation.arm, num_arms) & here
        bin = one_hot(place, len(edges) - 1)
        leaves = (bin[:, None] & arm[None] & known).astype(dtype)
        converted = (bin & here & (observation.loss < 1)).astype(dtype)
        row = jnp.where(known, observation.origin, state.now) % self.window
        old = read_row(state.recent, row)
        recent = write_own_row(state.recent, jnp.where(known, -1, old), row)
        gain = jnp.where(here, 1 - observation.loss, 0)
        rewards, error = compensated_add(state.rewards, state.error, observation.at_arm(gain, num_arms))
        return _replace(
            state,
            recent=recent,
            open=state.open - leaves,
            closed=state.closed + (arm & known).astype(dtype),
            rewards=rewards,
            error=error,
            delays=state.delays + converted,
        )


def _replace(state: CensoredState, **changes: jax.Array) -> CensoredState:
    return CensoredState(**{**vars(state), **changes})


@pytree_dataclass
class CensoredThompson(Censored):
    """Thompson sampling for delayed conversions, with a delay curve that is learned.

    .. math:: I_t = \\arg\\max_k \\theta_k, \\quad \\theta_k \\sim \\mathrm{Beta}(1 + S_k, 1 + \\tilde F_k)

    with :math:`S_k` the observed rewards of arm k and :math:`\\tilde F_k` its expected failures.

    An outstanding action of age a counts as :math:`F(a)(1 - p)/(1 - p F(a))` failures, with p the conversion rate of its arm and F the
    delay distribution of conversions. Both are estimated from all arms by one step of the EM algorithm in each round: an outstanding
    action converts later with probability :math:`p\\,S(a)/(1 - p(1 - S(a)))`, :math:`S = 1 - F`, and F is the Kaplan–Meier curve with
    these weights, on 16 bins of age. Failures may be observed when the window closes or never.

    Args:
      window: the number of rounds after which an action without a conversion counts as failure (static).

    >>> import jaxbandit as jb
    >>> late = jb.delays.LossDependent(no_conversion=jb.delays.Fixed(100), conversion=jb.delays.Geometric(10.0))
    >>> jb.simulate(jb.CensoredThompson(100), jb.losses.Bernoulli(rewards=[0.1, 0.2]), late, rounds=50, runs=4, seed=0).regret[-1].shape
    (4,)

    Reference: the weights are those of Gigli & Stella, UAI 2024 [R] (recalled, not checked against the paper). The step of one EM
    iteration in each round, the bins and the count of failures are ours; no regret bound is known.
    """

    window: int = static(default=1000, low=1, high=1 << 20)

    def choose(self, round: Round, rewards: jax.Array, failures: jax.Array) -> jax.Array:
        return uniform_over_smallest(round.restrict(beta_odds(round.words, 1 + failures, 1 + rewards)))

    def propensity(self, state: CensoredState, round: Round, arm: jax.Array) -> jax.Array:
        rewards, failures = self._outcomes(self._estimated(self._older(state, round)))
        return thompson_propensity(round, 1 + failures, 1 + rewards, arm)


@pytree_dataclass
class CensoredKLUCB(Censored):
    """KL-UCB for delayed conversions, with a delay curve that is learned.

    .. math:: I_t \\in \\arg\\max_k \\; \\max\\{q : N_k\\, \\mathrm{kl}(S_k/N_k, q) \\le \\alpha \\log t\\}, \\quad N_k = S_k + \\tilde F_k

    with :math:`S_k` the observed rewards of arm k and :math:`\\tilde F_k` its expected failures. Arms with :math:`N_k = 0` are chosen first.

    Outstanding actions, the delay curve and ``window`` are as in :class:`CensoredThompson`.

    Args:
      window: the number of rounds after which an action without a conversion counts as failure (static).
      alpha: multiplies log t.

    >>> import jaxbandit as jb
    >>> late = jb.delays.LossDependent(no_conversion=jb.delays.Fixed(100), conversion=jb.delays.Geometric(10.0))
    >>> jb.simulate(jb.CensoredKLUCB(100), jb.losses.Bernoulli(rewards=[0.1, 0.2]), late, rounds=50, runs=4, seed=0).regret[-1].shape
    (4,)

    Reference: as :class:`CensoredThompson`.
    """

    window: int = static(default=1000, low=1, high=1 << 20)
    alpha: ArrayLike = number(default=1.0)

    def choose(self, round: Round, rewards: jax.Array, failures: jax.Array) -> jax.Array:
        total = rewards + failures
        safe = jnp.where(total > 0, total, 1)
        lowest = lowest_mean_logit(failures / safe, rewards / safe, self.alpha * jnp.log(round.time) / safe)
        return uniform_over_smallest(round.restrict(jnp.where(total > 0, lowest, -jnp.inf)))
