"""FTRL for delays that depend on the arm: van der Hoeven & Cesa-Bianchi (2022)."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbandit import arms, randomness
from jaxbandit.counting import Sum
from jaxbandit.learners.ftrl import FTRLState, follow_leader, log_arms, root
from jaxbandit.pytrees import float_dtype, pytree_dataclass


@pytree_dataclass
class ArmDependentState:
    """Loss estimates, and what is missing."""

    ftrl: FTRLState
    missing: jax.Array  # [K, ...] Σ 1/q_s over the plays of each arm whose feedback is missing
    weight: Sum  # [...] M_t


@pytree_dataclass
class ArmDependentFTRL:
    """FTRL with a hybrid regulariser whose rate counts only missing feedback of the arm that was played.

    .. math::
       x_t = \\arg\\min_x \\langle \\hat L_t, x \\rangle - 2\\sqrt t \\sum_i \\sqrt{x_i}
             + \\gamma_t^{-1} \\sum_i x_i(\\log x_i - 1), \\qquad
       \\hat\\ell_s = \\ell_s / q_s, \\quad q_s = x_{s,I_s} + 1/\\sqrt s

       \\gamma_t^{-1} = \\sqrt{(\\rho^* \\sqrt t + M_t)/\\log K}, \\qquad
       M_t = \\sum_{r < t} \\; \\sum_{s < r,\\, I_s = I_r,\\, s + d_s \\ge r} 1/q_s

    The inner sum is over the plays of the arm of round r that are missing at the start of round r. The term of round t
    itself is not known before I_t is drawn: :math:`\\rho^* \\sqrt t` pays for it, since :math:`1/q_s \\le \\sqrt t`.

    The rate depends on the arms of plays that may never be heard of again, so this learner draws its arm by itself: the
    probabilities it hands out are one-hot, and the recorded regret is that of the arms played, not of x_t.

    Args:
      max_missing: ρ*, the largest number of outstanding plays, which the learner must be told.
      tsallis_scale: multiplies √t.
      entropy_scale: multiplies 1/γ_t.

    >>> import jax, jaxbandit as jb
    >>> from jaxbandit.learners.arm_dependent import ArmDependentFTRL
    >>> delays = jb.delays.ArmDependent([jb.delays.Fixed(0), jb.delays.Fixed(8)])
    >>> result = jb.simulate(ArmDependentFTRL(max_missing=8), jb.losses.Bernoulli([0.3, 0.5]), delays,
    ...                      rounds=100, runs=8, key=jax.random.key(0))
    >>> result.regret[-1].shape
    (8,)

    Reference: van der Hoeven & Cesa-Bianchi, *Nonstochastic Bandits and Experts with Arm-Dependent Delays*, AISTATS 2022.
    """

    max_missing: ArrayLike
    tsallis_scale: ArrayLike = 1.0
    entropy_scale: ArrayLike = 1.0

    def init(self, num_arms, runs_shape):
        missing = jnp.zeros((num_arms, *runs_shape), float_dtype())
        return ArmDependentState(FTRLState.start(num_arms, runs_shape), missing, Sum.zero(runs_shape))

    def leader(self, state, round):
        """x_t ``[K, ...]``, from which the arm is drawn, and the solver's next state."""
        log_k = log_arms(state.missing.shape[0])
        root_time = jnp.sqrt(round.time)
        weight = jnp.maximum(state.weight.value + state.weight.error, 0)
        entropy = root((self.max_missing * root_time + weight) * (self.entropy_scale**2 / log_k))
        return follow_leader(state.ftrl, root_time * self.tsallis_scale, entropy)

    def act(self, state, round):
        probabilities, ftrl = self.leader(state, round)
        uniform = randomness.uniform(round.words().first, randomness.grain(probabilities.dtype))
        played = arms.is_arm(jax.lax.stop_gradient(arms.draw(probabilities, uniform)), probabilities.shape[0])
        probability, missing = arms.sums(jnp.where(played, probabilities, 0), jnp.where(played, state.missing, 0))
        inverse = 1 / (probability + 1 / jnp.sqrt(round.time))
        state = ArmDependentState(ftrl, state.missing + jnp.where(played, inverse, 0), state.weight.add(missing))
        return played.astype(probabilities.dtype), inverse, state

    def observe(self, state, observation):
        inverse = jnp.where(observation.arrived, observation.memo, 0)
        num_arms = state.missing.shape[0]
        # What was added is taken away again, but for rounding: never below 0.
        missing = jnp.maximum(state.missing - observation.at_arm(inverse, num_arms), 0)
        estimate = observation.at_arm(observation.loss * inverse, num_arms)
        return ArmDependentState(state.ftrl.add(estimate), missing, state.weight)
