"""The learner of the paper: Masoudian, Zimmert & Seldin (2022), Algorithm 1."""

from typing import Literal

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbandit._core.fields import PyTree, given, number, pytree_dataclass, static
from jaxbandit.learners.base import Round, multiplier
from jaxbandit.learners.ftrl import FollowsLeader, log_arms, scaled_sqrt


@pytree_dataclass
class BestOfBothWorlds(FollowsLeader):
    """Best of both worlds for delayed feedback: FTRL with a hybrid of Tsallis and negative entropy.

    .. math::
       x_t = \\arg\\min_x \\langle \\hat L^{obs}_t, x \\rangle - 2\\eta_t^{-1} \\sum_i \\sqrt{x_i}
             + \\gamma_t^{-1} \\sum_i x_i(\\log x_i - 1)

       \\eta_t^{-1} = \\sqrt{t + \\eta_0}, \\quad
       \\gamma_t^{-1} = \\sqrt{\\Big(\\sum_{s \\le t} \\sigma_s + \\gamma_0\\Big) / \\log K}

       \\eta_0 = 10\\, d_{max} + d_{max}^2 / (K^{1/3} \\log K)^2, \\quad
       \\gamma_0 = 24^2\\, d_{max}^2 K^{2/3} \\log K

    The constants 10 and 24 serve the proof and cause a burn-in (near-uniform exploration) of about
    :math:`24\\, d_{max} K^{1/3} \\log K/\\Delta` rounds. With ``max_delay=0`` and no delays this is Tsallis-INF.

    Args:
      max_delay: d_max, the longest delay: a required input.
      linear: the 10 of :math:`\\eta_0`.
      factor: the 24 of :math:`\\gamma_0`.
      tsallis_scale: multiplies :math:`\\eta_t^{-1}`.
      entropy_scale: multiplies :math:`\\gamma_t^{-1}`.
      estimator: importance weighted ``"iw"``, or ``"delay-adapted"`` (static).

    >>> import jaxbandit as jb
    >>> result = jb.simulate(jb.BestOfBothWorlds(max_delay=10), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10),
    ...                      rounds=100, runs=8, seed=0)
    >>> result.regret[-1].shape
    (8,)

    Reference: Masoudian, Zimmert & Seldin, *A Best-of-Both-Worlds Algorithm for Bandits with Delayed Feedback*, 2022.
    """

    max_delay: ArrayLike = given("max_delay")
    linear: ArrayLike = number(default=10.0)
    factor: ArrayLike = number(default=24.0)
    tsallis_scale: ArrayLike = multiplier()
    entropy_scale: ArrayLike = multiplier(low=0.0)
    estimator: Literal["iw", "delay-adapted"] = static(default="iw")

    def burn_in(self, num_arms: int, gap: float) -> ArrayLike:
        return self.entropy_scale * self.factor * self.max_delay * num_arms ** (1 / 3) * log_arms(num_arms) / gap

    def inverse_rates(self, state: PyTree, round: Round, num_arms: int) -> tuple[jax.Array, jax.Array]:
        log_k, delay = log_arms(num_arms), self.max_delay
        tsallis_start = self.linear * delay + (delay / (num_arms ** (1 / 3) * log_k)) ** 2
        entropy_start = (self.factor * delay) ** 2 * (num_arms ** (2 / 3) * log_k)
        tsallis = jnp.sqrt(round.time + tsallis_start) * self.tsallis_scale
        return tsallis, scaled_sqrt(round.total_outstanding + entropy_start, self.entropy_scale, 1.0, log_k)
