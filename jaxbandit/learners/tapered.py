"""FTRL with the regulariser of MZS22 and inverse rates that fall towards the horizon."""

from collections.abc import Callable
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from jaxbandit._core.fields import PyTree, given, number, pytree_dataclass, static
from jaxbandit.learners.base import Round, multiplier
from jaxbandit.learners.ftrl import FollowsLeader, log_arms, patient_argmin_warm, scaled_sqrt


@pytree_dataclass
class TaperedFTRL(FollowsLeader):
    r"""Tapered FTRL: the hybrid regulariser of MZS22 with inverse rates that fall to 0 at the horizon.

    .. math::
       x_t = \arg\min_x \langle \hat L^{obs}_t, x \rangle - 2\eta_t^{-1} \sum_i \sqrt{x_i}
             + \gamma_t^{-1} \sum_i x_i(\log x_i - 1)

       \eta_t^{-1} = 1.2\, \kappa \sqrt t\, w_t^p, \quad
       \gamma_t^{-1} = \kappa \sqrt{D_t / \log K}\, w_t^p, \quad
       D_t = \sum_{s \le t} \sigma_s, \quad w_t = \frac{T - t + 1}{T}

    Requires the horizon :math:`T` and no knowledge of the delays. :math:`\kappa` is the price paid for robustness: a larger one
    lowers the largest regret under adversarial losses and raises the regret under stochastic losses. Values from
    0.3 to 0.8 were examined.

    After round :math:`T` the horizon is doubled, as often as needed: :math:`w_t = (T' - t + 1)/T'` with :math:`T' = 2^k T \ge t`. The loss
    estimates are kept, so that a horizon that is too short is not ruinous.

    For :math:`p < 1` and a fixed delay d the adversarial regret is :math:`O(\sqrt{KT} + \sqrt{dT \log K})`, with constants in
    ``docs/notes/taper_bound.md``. No stochastic bound is proved. The rates were found by search. A tuned constant rate
    (:class:`DelayedExponentialWeights` with ``scale``) has nearly the same trade-off, see ``docs/frontier.md``.

    Args:
      horizon: :math:`T`, the number of rounds.
      robustness: :math:`\kappa`.
      power: :math:`p`, how fast the inverse rates fall; 0 for no taper.
      tsallis_scale: the 1.2.
      estimator: importance weighted ``"iw"``, or ``"delay-adapted"`` (static).

    >>> import jaxbandit as jb
    >>> result = jb.simulate(jb.TaperedFTRL(horizon=100), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8, seed=0)
    >>> result.regret[-1].shape
    (8,)

    Reference: none; the regulariser is that of Masoudian, Zimmert & Seldin, *A Best-of-Both-Worlds Algorithm for Bandits with Delayed
    Feedback*, 2022.
    """

    horizon: ArrayLike = given("horizon", low=1)
    robustness: ArrayLike = number(default=0.5, low=1e-3, high=1e3)
    power: ArrayLike = number(default=0.5, high=4.0)
    tsallis_scale: ArrayLike = multiplier(default=1.2)
    estimator: Literal["iw", "delay-adapted"] = static(default="iw")
    # Towards the horizon the rates fall quickly, and after it they jump: too far for the warm solver's few steps.
    solver: ClassVar[Callable] = staticmethod(patient_argmin_warm)

    def inverse_rates(self, state: PyTree, round: Round, num_arms: int) -> tuple[jax.Array, jax.Array]:
        scale = self.robustness * remaining(round.time, jnp.asarray(self.horizon)) ** self.power
        tsallis = jnp.sqrt(round.time) * (scale * self.tsallis_scale)
        return tsallis, scaled_sqrt(round.total_outstanding, scale, 1.0, log_arms(num_arms))


def remaining(time: jax.Array, horizon: jax.Array) -> jax.Array:
    """The share of rounds that remain, this one included: (T' - t + 1)/T', with T' the horizon doubled until it is at least t."""
    # The ratio is m·2^e with 1/2 <= m < 1: 2^e is the next power of two, exact where a logarithm would be rounded.
    mantissa, exponent = jnp.frexp(lax.stop_gradient(time / horizon))
    doublings = jnp.maximum(exponent - (mantissa == 0.5), 0)
    horizon = jnp.ldexp(horizon, doublings)
    # At least one round: in float32, rounds and horizons beyond 2**24 are rounded.
    return jnp.maximum(horizon - time + 1, 1) / horizon
