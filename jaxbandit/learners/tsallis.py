"""Tsallis-INF, which ignores delays: the learner to beat where losses are stochastic and delays harmless."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from jaxbandit._core.fields import number, pytree_dataclass, static
from jaxbandit.learners.base import Observation, Round, multiplier
from jaxbandit.learners.ftrl import FollowsLeader, FTRLState

SLOW = 0.7  # scale below which the jump tangent was seen to be off by 2 to 30 %: docs/gradients.md
CROSSING = 0.2  # how far from the threshold, in log x, a derivative of the baseline is taken; its square is what that leaves


@pytree_dataclass
class TsallisINF(FollowsLeader):
    """Tsallis-INF: FTRL with the 1/2-Tsallis entropy; feedback counts when it arrives.

    .. math:: x_t = \\arg\\min_x \\langle \\hat L_t, x \\rangle - 2 a_t \\sum_i \\sqrt{x_i}

    ``"iw"``: :math:`a_t = \\sqrt t`, :math:`\\hat\\ell_i = 1\\{I = i\\}\\, \\ell / x_i`.
    ``"rv"``: :math:`a_t = \\sqrt t / 2`, and for **every** arm
    :math:`\\hat\\ell_i = 1\\{I = i\\}(\\ell - B_i)/x_i + B_i` with :math:`B_i = \\tfrac12 1\\{x_i \\ge 16/t\\}`, x and t of the round of the action.
    ``"delay-adapted"``: as ``"iw"``, divided by the larger of :math:`x_i` at the action and at the arrival.

    Args:
      estimator: importance weighted ``"iw"``, reduced variance ``"rv"`` or ``"delay-adapted"`` (static).
      scale: multiplies a_t.
      threshold: the 16 of the reduced-variance estimator.

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.TsallisINF("rv"), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(0), rounds=100, runs=8,
    ...             seed=0).rounds[-1]
    np.int64(100)

    Reference: Zimmert & Seldin, *Tsallis-INF: An Optimal Algorithm for Stochastic and Adversarial Bandits*, JMLR 2021.
    """

    estimator: Literal["iw", "rv", "delay-adapted"] = static(default="iw")
    scale: ArrayLike = multiplier()
    threshold: ArrayLike = number(default=16.0)

    def act(self, state: FTRLState, round: Round) -> tuple[jax.Array, Any, FTRLState]:
        probabilities, _, state = super().act(state, round)
        return probabilities, _packed(self._is_common(round, probabilities)) if self.estimator == "rv" else (), state

    def inverse_rates(self, state: FTRLState, round: Round, num_arms: int) -> tuple[jax.Array, jax.Array]:
        tsallis = jnp.sqrt(round.time) * self.scale
        tsallis = tsallis / 2 if self.estimator == "rv" else tsallis
        return tsallis, jnp.zeros_like(tsallis)

    def jumps_far(self) -> bool:
        return bool(np.min(self.scale) < (2 * SLOW if self.estimator == "rv" else SLOW))

    def baseline(self, round: Round, probabilities: jax.Array) -> jax.Array:
        if self.estimator != "rv":
            return super().baseline(round, probabilities)
        # A step of the value, a ramp of the derivative: the expected regret is smooth, because runs meet the threshold at all places.
        x = jnp.maximum(probabilities, jnp.finfo(probabilities.dtype).tiny)
        ramp = 0.5 * jnp.clip(0.5 + jnp.log(x * round.time / self.threshold) / (2 * CROSSING), 0, 1)
        return 0.5 * self._is_common(round, probabilities).astype(probabilities.dtype) + (ramp - lax.stop_gradient(ramp))

    def _is_common(self, round, probabilities):
        return probabilities >= self.threshold / round.time

    def observe(self, state: FTRLState, observation: Observation) -> FTRLState:
        if self.estimator != "rv":
            return super().observe(state, observation)
        num_arms = state.loss_estimates.shape[0]
        baseline = 0.5 * _unpacked(observation.memo, num_arms).astype(state.loss_estimates.dtype)
        return state.add(observation.loss_estimate(num_arms, baseline=baseline))


def _packed(flags: jax.Array) -> jax.Array:
    """``[K, ...]`` flags as bits ``[⌈K/32⌉, ...]``: the memo of an outstanding observation is gathered for each run, at a cost per word."""
    rows = []
    for first in range(0, flags.shape[0], 32):
        group = flags[first : first + 32].astype(jnp.uint32)
        places = jnp.arange(group.shape[0], dtype=jnp.uint32).reshape(-1, *[1] * (flags.ndim - 1))
        rows.append((group << places).sum(0, dtype=jnp.uint32))
    return jnp.stack(rows)


def _unpacked(words: jax.Array, num_arms: int) -> jax.Array:
    places = jnp.arange(num_arms, dtype=jnp.uint32).reshape(-1, *[1] * (words.ndim - 1))
    return (jnp.repeat(words, 32, axis=0)[:num_arms] >> (places % 32)) & 1 == 1
