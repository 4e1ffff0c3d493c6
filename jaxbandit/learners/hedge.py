"""Full information: the losses of all arms are observed, with delays."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from jaxbandit._core.arms import one_hot
from jaxbandit._core.fields import PyTree, float_dtype, number, pytree_dataclass
from jaxbandit.learners.base import FullInformation, Learner, Observation, Round, is_importance_weighted, multiplier
from jaxbandit.learners.exponential import soft_leader
from jaxbandit.learners.ftrl import log_arms
from jaxbandit.learners.wrappers import Wrapper


@pytree_dataclass
class DelayedHedge(FullInformation):
    r"""Hedge with delays: exponential weights with full information, anytime, needs no knowledge of the delays.

    .. math:: x_t \propto \exp(-\eta_t L^{obs}_t), \quad \eta_t = 2\sqrt{\frac{\log K}{t + 2 D_t}}, \quad D_t = \sum_{s \le t} \sigma_s

    :math:`L^{obs}_t` is the sum of the loss vectors that have arrived and :math:`\sigma_s` the number of outstanding ones at the start of
    round s. Regret at most :math:`\sqrt{(T + 2 D_T) \log K}`, also for adaptive losses: :func:`jaxbandit.theory.bounds.delayed_hedge`.

    Args:
      learning_rate: a constant rate :math:`\eta` in place of :math:`\eta_t`.
      scale: multiplies the rate.

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.DelayedHedge(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: the rate and the bound are derived, see ``docs/theory.md``. The analysis follows Joulani, György & Szepesvári, *Delay-Tolerant
    Online Convex Optimization*, AAAI 2016 (recalled).
    """

    learning_rate: ArrayLike | None = number(default=None, open_low=True)
    scale: ArrayLike = multiplier()
    adds_only: ClassVar[bool] = True

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> jax.Array:
        return jnp.zeros((num_arms, *runs_shape), float_dtype())

    def act(self, state: jax.Array, round: Round) -> tuple[jax.Array, Any, jax.Array]:
        rate = self.learning_rate
        if rate is None:
            rate = 2 * jnp.sqrt(log_arms(state.shape[0]) / (round.time + 2 * round.total_outstanding))
        probabilities, state = soft_leader(state, self.scale * rate)
        return probabilities, (), state

    def observe(self, state: jax.Array, observation: Observation) -> jax.Array:
        return state + jnp.where(observation.arrived, observation.losses, 0)


@pytree_dataclass
class _OneLoss:
    """The data of an observation whose estimate is the loss itself in the row of its arm, and 0 elsewhere."""

    losses: jax.Array  # [K, ...]

    def estimate(self, observation: Observation, weighted: jax.Array, floor: Any, baseline: jax.Array | None) -> jax.Array:
        loss = jnp.where(one_hot(observation.arm, self.losses.shape[0]), self.losses, 0)
        # The caller adds the baseline to every row, but each row has an observation of its own.
        return jnp.where(observation.arrived, loss if baseline is None else loss - baseline, 0)


@pytree_dataclass
class WithFullInformation(FullInformation, Wrapper):
    r"""Full information for a learner of bandit feedback: it observes every arm, with probability 1, in ascending order of arm.

    Its loss estimates are then the losses themselves, :math:`\hat\ell_t = \ell_t`. The lower bounds of MZS22 (Theorem 9 and its Corollary) are for such learners.

    Args:
      base: a learner whose feedback enters through importance-weighted estimates alone, such as :class:`jaxbandit.TsallisINF`.

    >>> import jaxbandit as jb
    >>> learner = jb.WithFullInformation(jb.BestOfBothWorlds(max_delay=10))
    >>> jb.simulate(learner, jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)
    """

    base: Learner | Any

    def check(self) -> None:
        super().check()
        if not is_importance_weighted(self.inner) or self.inner.watches_plays:
            name = type(self.base).__name__
            raise ValueError(
                f"WithFullInformation(base={name}(…)): {name} reads more of an observation than its loss estimate; "
                "give a learner such as jb.TsallisINF(), or jb.DelayedHedge() without a wrapper"
            )

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any:
        return self.inner.init(num_arms, runs_shape)

    def act(self, state: PyTree, round: Round) -> tuple[jax.Array, Any, Any]:
        return self.inner.act(state, round)

    def played(self, state: PyTree, round: Round, arm: jax.Array, probability: jax.Array) -> Any:
        return self.inner.played(state, round, arm, probability)

    def observe(self, state: PyTree, observation: Observation) -> Any:
        ones = jnp.ones_like(observation.probability)

        def one_arm(arm: jax.Array, state: Any) -> Any:
            loss = lax.dynamic_index_in_dim(observation.losses, arm, 0, keepdims=False)
            seen = jnp.where(observation.arrived, arm, -1)
            seen = jnp.broadcast_to(seen, observation.arm.shape)
            alone = observation._replace(arm=seen, loss=loss, probability=ones, losses=None, jump=_OneLoss(observation.losses))
            return self.inner.observe(state, alone)

        return lax.fori_loop(0, observation.losses.shape[0], one_arm, state)
