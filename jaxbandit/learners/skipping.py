"""Learners that need no bound on the delays: Zimmert & Seldin (2020), and Masoudian, Zimmert & Seldin (2024).

Both can skip observations that are outstanding for too long, in O(1) per round. Round s is skipped when its age t - s passes a
threshold that never falls, so the ages that pass are those of the plays 1 … P with P growing by at most one a round: one
play is examined a round, and a play that arrives later was left out exactly if s <= P.
"""

from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbandit._core.fields import PyTree, float_dtype, number, pytree_dataclass, static
from jaxbandit._core.sums import Count
from jaxbandit.learners.base import Observation, Round, multiplier
from jaxbandit.learners.ftrl import FTRL, FollowsLeader, FTRLState, follow_leader, log_arms, scaled_sqrt


@pytree_dataclass
class Waiting:
    """Which plays count as waiting: the outstanding ones that have not been skipped."""

    examined: jax.Array  # [...] int32, P: plays 1 … P have been looked at
    skipped: jax.Array  # [...] int32, plays that were skipped and are still outstanding
    total: Count  # [...] the sum of the counts of all rounds so far

    @classmethod
    def start(cls, runs_shape: tuple[int, ...]) -> "Waiting":
        zero, none = jnp.zeros(runs_shape, jnp.int32), jnp.zeros(runs_shape, jnp.uint32)
        return cls(zero, zero, Count(none, none))

    def count(self, round: Round) -> "Waiting":
        """Add the outstanding observations at the start of this round."""
        return Waiting(self.examined, self.skipped, self.total.add(round.outstanding - self.skipped))

    def skip(self, round: Round, now: jax.Array, threshold: jax.Array) -> "Waiting":
        """Skip the play whose age at round ``now`` has passed the threshold, if its feedback is outstanding."""
        oldest = self.examined + 1
        passed = (now - oldest).astype(threshold.dtype) > threshold
        skipped = passed & round.is_outstanding(oldest)
        return Waiting(self.examined + passed.astype(jnp.int32), self.skipped + skipped.astype(jnp.int32), self.total)

    def arrive(self, observation: Observation) -> tuple[jax.Array, "Waiting"]:
        """Whether the play that arrived had been skipped, and what waits without it."""
        skipped = observation.arrived & (observation.origin <= self.examined)
        return skipped, Waiting(self.examined, self.skipped - skipped.astype(jnp.int32), self.total)


@pytree_dataclass
class SkippingState:
    """Loss estimates, and the outstanding observations."""

    ftrl: FTRLState
    waiting: Waiting


@pytree_dataclass
class ZimmertSeldin(FollowsLeader):
    """FTRL with a hybrid regulariser for arbitrary delays: anytime, needs no knowledge of the delays.

    .. math::
       x_t = \\arg\\min_x \\langle \\hat L^{obs}_t, x \\rangle - 2\\sqrt t \\sum_i \\sqrt{x_i}
             + \\gamma_t^{-1} \\sum_i x_i(\\log x_i - 1)

    Simple tuning: :math:`\\gamma_t^{-1} = \\sqrt{2 D_t / \\log K}` with :math:`D_t = \\sum_{s \\le t} \\sigma_s`, regret at
    most :math:`4\\sqrt{KT} + \\sqrt{8 D \\log K}`.

    Skipping: :math:`\\gamma_t^{-1} = \\sqrt{\\tilde D_t / \\log K}`, where :math:`\\tilde D_t` counts the outstanding observations
    that are active; an observation that has been outstanding for more than :math:`\\gamma_t^{-1}` rounds at round t is no longer active from
    round t + 1 on. Its feedback is still used when it arrives. A few very long delays then cost little.

    Args:
      skipping: the advanced tuning (static).
      tsallis_scale: multiplies :math:`\\sqrt t`.
      entropy_scale: multiplies :math:`\\gamma_t^{-1}`, and with it the longest delay that counts.
      estimator: importance weighted ``"iw"``, or ``"delay-adapted"`` (static).

    >>> import jaxbandit as jb
    >>> result = jb.simulate(jb.ZimmertSeldin(skipping=True), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100,
    ...                      runs=8, seed=0)
    >>> result.regret[-1].shape
    (8,)

    Reference: Zimmert & Seldin, *An Optimal Algorithm for Adversarial Bandits with Arbitrary Delays*, AISTATS 2020.
    """

    skipping: bool = static(default=False)
    tsallis_scale: ArrayLike = multiplier()
    entropy_scale: ArrayLike = multiplier(low=0.0)
    estimator: Literal["iw", "delay-adapted"] = static(default="iw")

    @property
    def watches_plays(self) -> bool:
        return self.skipping

    @property
    def adds_only(self) -> bool:
        return not self.skipping and super().adds_only  # with skipping an arrival is looked up among the plays examined so far

    @property
    def _adds_at_arm(self) -> bool:
        return self.adds_only

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any:
        ftrl = super().init(num_arms, runs_shape)
        return SkippingState(ftrl, Waiting.start(runs_shape)) if self.skipping else ftrl

    def act(self, state: PyTree, round: Round) -> tuple[jax.Array, Any, Any]:
        if not self.skipping:
            return super().act(state, round)
        state = SkippingState(state.ftrl, state.waiting.count(round))
        tsallis, entropy = self.inverse_rates(state, round, state.ftrl.loss_estimates.shape[0])
        probabilities, ftrl = follow_leader(state.ftrl, tsallis, entropy)
        return probabilities, (), SkippingState(ftrl, state.waiting.skip(round, round.t, entropy))

    def inverse_rates(self, state: PyTree, round: Round, num_arms: int) -> tuple[jax.Array, jax.Array]:
        tsallis, log_k = jnp.sqrt(round.time) * self.tsallis_scale, log_arms(num_arms)
        if not self.skipping:
            return tsallis, scaled_sqrt(round.total_outstanding, self.entropy_scale, 2.0, log_k)
        return tsallis, scaled_sqrt(state.waiting.total.as_float(tsallis.dtype), self.entropy_scale, 1.0, log_k)

    def observe(self, state: PyTree, observation: Observation) -> Any:
        if not self.skipping:
            return state.add_weighted(observation)
        _, waiting = state.waiting.arrive(observation)
        return SkippingState(state.ftrl.add_weighted(observation), waiting)


@pytree_dataclass
class RobustBestOfBothWorlds(FTRL):
    """Best of both worlds, robust to excessive delays: anytime, needs no knowledge of the delays.

    .. math::
       x_t = \\arg\\min_x \\langle \\hat L_t, x \\rangle - 2\\sqrt t \\sum_i \\sqrt{x_i}
             + \\sqrt{49\\, D_t / \\log K} \\sum_i x_i(\\log x_i - 1)

    :math:`D_t = \\sum_{s \\le t} \\hat\\sigma_s` counts the outstanding observations that have not been skipped. When the feedback of
    such a round s arrives in round t, its estimate is
    :math:`\\ell / \\max\\{x_{s,I_s}, \\lambda\\}` with :math:`\\lambda = \\exp(-D_t/(D_t - D_s))` (0 if :math:`D_t = D_s`).
    After the arrivals of round t, outstanding observations with :math:`t - s > \\sqrt{D_t/(49 K^{2/3} \\log K)}` are skipped: their
    feedback is discarded for good. (The order of these steps is derived; the paper's text leaves room.)

    The 49 serves the proof. Until :math:`D_t` has grown large enough to wait for a fixed delay d, all feedback is skipped and
    exploration is uniform: about :math:`49\\, K^{2/3} \\log K\\, (2(d - 1) - H_{d-1})` rounds.

    Args:
      factor: the 49, in the rate and in the threshold.
      tsallis_scale: multiplies :math:`\\sqrt t`.
      entropy_scale: multiplies the inverse rate of the entropy, not the threshold.

    >>> import jaxbandit as jb
    >>> result = jb.simulate(jb.RobustBestOfBothWorlds(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100,
    ...                      runs=8, seed=0)
    >>> result.regret[-1].shape
    (8,)

    Reference: Masoudian, Zimmert & Seldin, *A Best-of-both-worlds Algorithm for Bandits with Delayed Feedback with
    Robustness to Excessive Delays*, NeurIPS 2024.
    """

    factor: ArrayLike = number(default=49.0, low=1e-3)
    tsallis_scale: ArrayLike = multiplier()
    entropy_scale: ArrayLike = multiplier(low=0.0)
    watches_plays: ClassVar[bool] = True

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> SkippingState:
        return SkippingState(FTRLState.start(num_arms, runs_shape), Waiting.start(runs_shape))

    def act(self, state: SkippingState, round: Round) -> tuple[jax.Array, Any, SkippingState]:
        num_arms, dtype = state.ftrl.loss_estimates.shape[0], float_dtype()
        log_k = log_arms(num_arms)
        # The last step of round t - 1, after its arrivals: what arrived then is not outstanding at the start of round t.
        threshold = jnp.sqrt(state.waiting.total.as_float(dtype) / (self.factor * (num_arms ** (2 / 3) * log_k)))
        waiting = state.waiting.skip(round, round.t - 1, threshold).count(round)
        total = waiting.total.as_float(dtype)
        probabilities, ftrl = follow_leader(state.ftrl, *self._rates(round, num_arms, total))
        # A float is exact enough to wait with the play: rounding matters only where D_t/(D_t - D_s) is so large that λ is 0.
        return probabilities, total, SkippingState(ftrl, waiting)

    def inverse_rates(self, state: SkippingState, round: Round, num_arms: int) -> tuple[jax.Array, jax.Array]:
        return self._rates(round, num_arms, state.waiting.total.as_float(float_dtype()))

    def _rates(self, round, num_arms, total):
        entropy = scaled_sqrt(total, self.entropy_scale, self.factor, log_arms(num_arms))
        return jnp.sqrt(round.time) * self.tsallis_scale, entropy

    def observe(self, state: SkippingState, observation: Observation) -> SkippingState:
        skipped, waiting = state.waiting.arrive(observation)
        total = waiting.total.as_float(observation.loss.dtype)
        since = total - observation.memo
        floor = jnp.where(since > 0, jnp.exp(-total / jnp.where(since > 0, since, 1)), 0)
        used = observation._replace(arrived=observation.arrived & ~skipped)
        estimate = used.loss_estimate(state.ftrl.loss_estimates.shape[0], floor=floor)
        return SkippingState(state.ftrl.add(estimate), waiting)
