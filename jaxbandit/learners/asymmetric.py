"""The open question of Masoudian, Zimmert & Seldin (2022): a rate of its own for each arm."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from jaxbandit._core.arms import constant_min, one_hot, sums
from jaxbandit._core.fields import Numbers, as_float, given, number, pytree_dataclass, static
from jaxbandit._core.projection import Warm, hybrid_argmin, hybrid_argmin_warm
from jaxbandit.learners.base import Observation, Round, multiplier
from jaxbandit.learners.bobw import BestOfBothWorlds
from jaxbandit.learners.ftrl import FTRL, FTRLState, follow_leader, log_arms, patient_argmin_warm, safe_sqrt


@pytree_dataclass
class AsymmetricState:
    """Loss estimates, and the plain losses observed so far where the gaps are estimated."""

    ftrl: FTRLState
    counts: jax.Array | None  # [K, ...] int32
    means: jax.Array | None  # [K, ...]


@pytree_dataclass
class AsymmetricBestOfBothWorlds(FTRL):
    """:class:`BestOfBothWorlds` with a smaller inverse entropy rate for arms with a smaller gap.

    .. math:: \\gamma_{t,i}^{-1} = \\gamma_t^{-1} \\sqrt{\\max\\{\\Delta_i, floor\\}}

    With the true gaps this would remove the :math:`1/\\Delta_i` in front of :math:`\\sigma_{max}` (appendix F of the paper); with estimated gaps that is
    a conjecture. Estimated gaps are :math:`m_i - \\min_j m_j` with m the mean of the plain losses observed so far; an arm
    without observations has gap 1, the symmetric rate.

    The regulariser as written, :math:`\\sum_i b_i x_i (\\log x_i - 1)`, is not least at the uniform point when the :math:`b_i`
    differ: before any feedback the arms with *small* :math:`b_i`, the good ones, get the small probabilities.
    ``centred`` uses :math:`\\sum_i b_i x_i (\\log(K x_i) - 1)` instead, which adds :math:`b_i \\log K` to the loss of
    arm i and starts from uniform exploration.

    Args:
      max_delay: d_max, the longest delay: a required input.
      gaps: ``[K]`` true gaps, or None to estimate them.
      floor: the least gap. 0 with true gaps gives the best arm no entropy at all, outside the stability lemma.
      centred: uniform exploration before any feedback (static).
      linear, factor, tsallis_scale, entropy_scale: as in :class:`BestOfBothWorlds`.

    >>> import jaxbandit as jb
    >>> learner = jb.AsymmetricBestOfBothWorlds(max_delay=10, gaps=[0.0, 0.2], centred=True)
    >>> result = jb.simulate(learner, jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8, seed=0)
    >>> result.regret[-1].shape
    (8,)

    Reference: Masoudian, Zimmert & Seldin, *A Best-of-Both-Worlds Algorithm for Bandits with Delayed Feedback*, 2022.
    """

    max_delay: ArrayLike = given("max_delay")
    gaps: Numbers | None = given("gaps", default=None, high=1.0, axes="K")
    floor: ArrayLike = number(default=0.01)
    centred: bool = static(default=False)
    linear: ArrayLike = number(default=10.0)
    factor: ArrayLike = number(default=24.0)
    tsallis_scale: ArrayLike = multiplier()
    entropy_scale: ArrayLike = multiplier(low=0.0)

    @property
    def importance_weighted(self) -> bool:
        return self.gaps is not None  # estimated gaps are means of plain losses

    @property
    def adds_only(self) -> bool:
        return self.gaps is not None

    @property
    def _adds_at_arm(self) -> bool:
        return self.adds_only

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> AsymmetricState:
        ftrl = FTRLState.start(num_arms, runs_shape)
        zeros = jnp.zeros_like(ftrl.loss_estimates)
        known = self.gaps is not None
        state = AsymmetricState(ftrl, None if known else zeros.astype(jnp.int32), None if known else zeros)
        if num_arms == 1:
            return state
        # Unequal rates: the first probabilities are far from the solver's usual start, so solve round 1 here.
        first = Round(jnp.int32(1), jnp.int32(0), jnp.zeros((), zeros.dtype), None, None)  # type: ignore[arg-type]
        tsallis, entropy = self.inverse_rates(state, first, num_arms)
        entropy = zeros + entropy
        offset = self._offset(entropy)
        ftrl = FTRLState(zeros, _solved(offset, tsallis, entropy, ftrl.warm.residual).shifted(_mean(offset)))
        return AsymmetricState(ftrl, state.counts, state.means)

    def _gaps(self, state: AsymmetricState) -> jax.Array:
        """The true gaps, or those of the losses observed so far; ``[K, ...]``."""
        if self.gaps is not None:
            num_arms, *runs_shape = state.ftrl.loss_estimates.shape
            return as_float(self.gaps).reshape(num_arms, *[1] * len(runs_shape))
        assert state.counts is not None
        assert state.means is not None
        seen = state.counts > 0
        return jnp.where(seen, state.means - constant_min(jnp.where(seen, state.means, 1)), 1)

    def _offset(self, entropy):
        return entropy * log_arms(entropy.shape[0]) if self.centred else jnp.zeros_like(entropy)

    def inverse_rates(self, state: AsymmetricState, round: Round, num_arms: int) -> tuple[jax.Array, jax.Array]:
        symmetric = BestOfBothWorlds(self.max_delay, self.linear, self.factor, self.tsallis_scale, self.entropy_scale)
        weights = safe_sqrt(jnp.maximum(self._gaps(state), self.floor))
        tsallis, entropy = symmetric.inverse_rates(state, round, num_arms)
        return tsallis, entropy * weights

    def act(self, state: AsymmetricState, round: Round) -> tuple[jax.Array, Any, AsymmetricState]:
        tsallis, entropy = self.inverse_rates(state, round, state.ftrl.loss_estimates.shape[0])
        offset = self._offset(entropy)
        shift = constant_min(state.ftrl.loss_estimates)
        losses = state.ftrl.loss_estimates - shift
        # The estimates are kept without the offset, and the solver's start without its mean: both move with the rates.
        tilted = FTRLState(losses + offset, state.ftrl.warm.shifted(shift - _mean(offset)))
        # Estimated rates can jump in one round, too far for the warm solver's few steps.
        solver = hybrid_argmin_warm if self.gaps is not None else patient_argmin_warm
        probabilities, solved = follow_leader(tilted, tsallis, entropy, solver)
        ftrl = FTRLState(losses, solved.warm.shifted(_mean(offset) - constant_min(tilted.loss_estimates)))
        return probabilities, (), AsymmetricState(ftrl, state.counts, state.means)

    def observe(self, state: AsymmetricState, observation: Observation) -> AsymmetricState:
        ftrl = state.ftrl.add_weighted(observation)
        if self.gaps is not None:
            return AsymmetricState(ftrl, None, None)
        assert state.counts is not None
        assert state.means is not None
        played = one_hot(observation.arm, state.counts.shape[0])
        counts = state.counts + played.astype(jnp.int32)
        # A running mean, not a sum: float32 stops adding up at 2²⁴.
        change = (observation.loss - state.means) / jnp.maximum(counts, 1).astype(state.means.dtype)
        return AsymmetricState(ftrl, counts, state.means + jnp.where(played, change, 0))


def _mean(values: jax.Array) -> jax.Array:
    return sums(values)[0] / values.shape[0]


def _solved(losses, tsallis, entropy, residual) -> Warm:
    """A start for the solver that is the solution itself, found from cold; a constant to differentiation."""
    losses, tsallis, entropy = lax.stop_gradient((losses, tsallis, entropy))
    x = hybrid_argmin(losses, tsallis, entropy)
    y = jnp.maximum(x, jnp.finfo(x.dtype).tiny) ** -0.5
    (multiplier,) = sums(x * (losses - tsallis * y - 2 * entropy * jnp.log(y)))
    return Warm(y, jnp.ones_like(multiplier), multiplier + tsallis, residual)
