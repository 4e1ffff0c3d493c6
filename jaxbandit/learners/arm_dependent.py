"""FTRL for delays that depend on the arm: van der Hoeven & Cesa-Bianchi (2022)."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbandit._core.arms import one_hot, sums
from jaxbandit._core.fields import float_dtype, given, pytree_dataclass
from jaxbandit._core.sums import Sum
from jaxbandit.learners.base import Learner, Observation, Round, multiplier
from jaxbandit.learners.ftrl import FTRLState, follow_leader, log_arms, scaled_sqrt


@pytree_dataclass
class ArmDependentState:
    """Loss estimates, and outstanding observations by arm."""

    ftrl: FTRLState
    missing: jax.Array  # [K, ...] Σ 1/q_s over the plays of each arm whose feedback is missing
    weight: Sum  # [...] M_t


@pytree_dataclass
class ArmDependentFTRL(Learner):
    """FTRL with a hybrid regulariser whose rate counts only missing feedback of the arm that was played.

    .. math::
       x_t = \\arg\\min_x \\langle \\hat L_t, x \\rangle - 2\\sqrt t \\sum_i \\sqrt{x_i}
             + \\gamma_t^{-1} \\sum_i x_i(\\log x_i - 1), \\qquad
       \\hat\\ell_s = \\ell_s / q_s, \\quad q_s = x_{s,I_s} + 1/\\sqrt s

       \\gamma_t^{-1} = \\sqrt{(\\rho^* \\sqrt t + M_t)/\\log K}, \\qquad
       M_t = \\sum_{r < t} \\; \\sum_{s < r,\\, I_s = I_r,\\, s + d_s \\ge r} 1/q_s

    The inner sum is over the outstanding observations of the arm of round r at the start of round r. The term of round t
    itself is not known before :math:`I_t` is drawn: :math:`\\rho^* \\sqrt t` pays for it, since :math:`1/q_s \\le \\sqrt t`.

    The rate depends on the arms of outstanding observations, so the learner uses each arm when it is drawn.

    Args:
      max_missing: :math:`\\rho^*`, the largest number of outstanding observations: a required input.
      tsallis_scale: multiplies :math:`\\sqrt t`.
      entropy_scale: multiplies :math:`\\gamma_t^{-1}`.

    >>> import jaxbandit as jb
    >>> delays = jb.delays.ArmDependent([jb.delays.Fixed(0), jb.delays.Fixed(8)])
    >>> result = jb.simulate(jb.ArmDependentFTRL(max_missing=8), jb.losses.Bernoulli([0.3, 0.5]), delays, rounds=100, runs=8,
    ...                      seed=0)
    >>> result.regret[-1].shape
    (8,)

    Reference: van der Hoeven & Cesa-Bianchi, *Nonstochastic Bandits and Experts with Arm-Dependent Delays*, AISTATS 2022.
    """

    max_missing: ArrayLike = given("max_missing")
    tsallis_scale: ArrayLike = multiplier()
    entropy_scale: ArrayLike = multiplier(low=0.0)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> ArmDependentState:
        missing = jnp.zeros((num_arms, *runs_shape), float_dtype())
        return ArmDependentState(FTRLState.start(num_arms, runs_shape), missing, Sum.zero(runs_shape))

    def act(self, state: ArmDependentState, round: Round) -> tuple[jax.Array, Any, ArmDependentState]:
        log_k = log_arms(state.missing.shape[0])
        root_time = jnp.sqrt(round.time)
        weight = jnp.maximum(state.weight.value + state.weight.error, 0)
        entropy = scaled_sqrt(self.max_missing * root_time + weight, self.entropy_scale, 1.0, log_k)
        probabilities, ftrl = follow_leader(state.ftrl, root_time * self.tsallis_scale, entropy)
        return probabilities, (), ArmDependentState(ftrl, state.missing, state.weight)

    def played(self, state: ArmDependentState, round: Round, arm: jax.Array, probability: jax.Array) -> ArmDependentState:
        now = one_hot(arm, state.missing.shape[0])
        weight = state.weight.add(sums(jnp.where(now, state.missing, 0))[0])
        missing = state.missing + jnp.where(now, _inverse(probability, round.t), 0)
        return ArmDependentState(state.ftrl, missing, weight)

    def observe(self, state: ArmDependentState, observation: Observation) -> ArmDependentState:
        inverse = jnp.where(observation.arrived, _inverse(observation.probability, observation.origin), 0)
        num_arms = state.missing.shape[0]
        # What was added is taken away again, but for rounding: never below 0.
        missing = jnp.maximum(state.missing - observation.at_arm(inverse, num_arms), 0)
        estimate = observation.at_arm(observation.weighted_loss * inverse, num_arms)
        return ArmDependentState(state.ftrl.add(estimate), missing, state.weight)


def _inverse(probability, s):
    """1/q_s; a round below 1, which stands for "nothing arrived", is taken as round 1 so that nothing is divided by 0."""
    return 1 / (probability + 1 / jnp.sqrt(jnp.maximum(s, 1).astype(probability.dtype)))
