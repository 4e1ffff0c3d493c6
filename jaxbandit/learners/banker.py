"""Banker-Tsallis-INF: outstanding observations are debts, arrived ones leave savings for later rounds."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbandit._core.arms import constant_min
from jaxbandit._core.fields import float_dtype, pytree_dataclass
from jaxbandit._core.projection import Warm, hybrid_argmin_warm
from jaxbandit.learners.base import Learner, Observation, Round, multiplier


@pytree_dataclass
class BankerState:
    """What arrived plays have left to spend."""

    savings: jax.Array  # [...] Σ v_s
    losses: jax.Array  # [K, ...] Σ v_s z_s^{-1/2}, up to a constant in each run
    warm: Warm


@pytree_dataclass
class BankerTsallisINF(Learner):
    """Banker online mirror descent with the 1/2-Tsallis entropy.

    The entropy is :math:`\\Psi(x) = -2 \\sum_i \\sqrt{x_i}`.

    .. math::
       c_t = \\Big(\\tfrac{1}{\\sqrt t} + \\sigma_t \\sqrt{\\log(D_t + 1)/D_t}\\Big)^{-1}, \\quad D_t = \\sum_{s \\le t} \\sigma_s

       x_t^{-1/2} = \\frac{1}{c_t} \\Big(r \\sqrt K + \\sum_s \\beta_s z_s^{-1/2}\\Big) + const, \\qquad
       z_s^{-1/2} = x_s^{-1/2} + \\hat\\ell_s / c_s + const

    An action costs its scale :math:`c_t`, paid from the savings :math:`v_s` of arrived actions (:math:`\\beta_s \\le v_s`), the rest r invested in
    the uniform point; when its feedback arrives, its own savings are :math:`c_s`. Without delays this is Tsallis-INF.

    Every saving pays the same fraction :math:`\\min(1, c_t/\\sum_s v_s)`. Two sums are then the whole state, exactly:
    :math:`\\sum v_s` and :math:`\\sum v_s z_s^{-1/2}`. The uniform point is a constant, so :math:`x_t` is the projection of the
    spent part of the second sum, and an arrival puts back the amount that its action had spent plus its :math:`\\hat\\ell_s`. (That any
    greedy order of spending keeps the guarantee is recalled, not checked against the paper.)

    Its feedback enters by importance weighting, but with delay c_t stays so small that one loss moves probabilities by an order of
    magnitude in all rounds: the jump tangent is off by 6 to 35 % (docs/gradients.md), so its gradient is taken by paired differences.

    Args:
      scale: multiplies c_t.
      delay_scale: multiplies the term of :math:`\\sigma_t` in :math:`1/c_t`; 0 ignores the delays.

    >>> import jaxbandit as jb
    >>> result = jb.simulate(jb.BankerTsallisINF(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8,
    ...                      seed=0)
    >>> result.regret[-1].shape
    (8,)

    Reference: Huang, Dai & Huang, *Banker Online Mirror Descent: A Universal Approach for Delayed Online Bandit Learning*,
    ICML 2023.
    """

    scale: ArrayLike = multiplier()
    delay_scale: ArrayLike = multiplier(low=0.0)
    adds_only: ClassVar[bool] = True

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> BankerState:
        dtype = float_dtype()
        warm = Warm.start(num_arms, runs_shape, dtype)
        return BankerState(jnp.zeros(runs_shape, dtype), jnp.zeros((num_arms, *runs_shape), dtype), warm)

    def act(self, state: BankerState, round: Round) -> tuple[jax.Array, Any, BankerState]:
        cost = self.cost(round)
        positive = state.savings > 0
        fraction = jnp.where(positive, jnp.minimum(cost / jnp.where(positive, state.savings, 1), 1), 0)
        losses = state.losses - constant_min(state.losses)
        spent = fraction * losses
        if losses.shape[0] == 1:
            probabilities, warm = jnp.ones_like(losses), state.warm
        else:
            # In units of c_t: the multiplier then hardly moves from round to round, and no entropy means y needs no memory.
            one = jnp.ones_like(cost)
            probabilities, warm = hybrid_argmin_warm(spent / cost, one, jnp.zeros_like(cost), state.warm)
        kept = 1 - fraction
        cost = jnp.broadcast_to(cost, state.savings.shape)
        # Neither product is ever negative. The selection keeps the compiler from rounding a product and a later sum as one
        # operation, which it can where both are in one program: an agent acts and observes in two, and shall get the same bits.
        savings, losses = (jnp.where(product < 0, 0, product) for product in (kept * state.savings, kept * losses))
        return probabilities, (cost, spent), BankerState(savings, losses, warm)

    def cost(self, round: Round) -> Any:
        """The scale c_t."""
        total = jnp.maximum(round.total_outstanding, 1)  # where it is 0, so is σ_t
        waiting = round.outstanding.astype(total.dtype) * jnp.sqrt(jnp.log1p(total) / total)
        return self.scale / (1 / jnp.sqrt(round.time) + self.delay_scale * waiting)

    def observe(self, state: BankerState, observation: Observation) -> BankerState:
        cost, spent = observation.memo
        back = jnp.where(observation.arrived, spent, 0) + observation.loss_estimate(spent.shape[0])
        savings = state.savings + jnp.where(observation.arrived, cost, 0)
        return BankerState(savings, state.losses + back, state.warm)
