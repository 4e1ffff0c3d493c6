"""Tsallis-INF, which ignores delays: the rival to beat when nobody means harm."""

from typing import Literal

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbandit.learners.ftrl import FTRLState, follow_leader
from jaxbandit.pytrees import pytree_dataclass, static


@pytree_dataclass
class TsallisINF:
    """Tsallis-INF: FTRL with the 1/2-Tsallis entropy; feedback counts when it arrives.

    .. math:: x_t = \\arg\\min_x \\langle \\hat L_t, x \\rangle - 2 a_t \\sum_i \\sqrt{x_i}

    ``"iw"``: :math:`a_t = \\sqrt t`, :math:`\\hat\\ell_i = 1\\{I = i\\}\\, \\ell / x_i`.
    ``"rv"``: :math:`a_t = \\sqrt t / 2`, and for **every** arm
    :math:`\\hat\\ell_i = 1\\{I = i\\}(\\ell - B_i)/x_i + B_i` with :math:`B_i = \\tfrac12 1\\{x_i \\ge 16/t\\}`, x and t of the play.

    Args:
      estimator: importance weighted ``"iw"`` or reduced variance ``"rv"`` (static).
      scale: multiplies a_t.
      threshold: the 16 of the reduced-variance estimator.

    >>> import jax, jaxbandit as jb
    >>> jb.simulate(jb.TsallisINF("rv"), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(0), rounds=100, runs=8,
    ...             key=jax.random.key(0)).rounds[-1]
    np.int64(100)

    Reference: Zimmert & Seldin, *Tsallis-INF: An Optimal Algorithm for Stochastic and Adversarial Bandits*, JMLR 2021.
    """

    estimator: Literal["iw", "rv"] = static(default="iw")
    scale: ArrayLike = 1.0
    threshold: ArrayLike = 16.0

    def check(self) -> None:
        if self.estimator not in ("iw", "rv"):
            raise ValueError(f"TsallisINF(estimator={self.estimator!r}): the estimator is 'iw' or 'rv'")

    def init(self, num_arms, runs_shape):
        return FTRLState.start(num_arms, runs_shape)

    def act(self, state, round):
        inverse_rate = self.scale * jnp.sqrt(round.time)
        if self.estimator == "iw":
            probabilities, state = follow_leader(state, inverse_rate, jnp.zeros_like(inverse_rate))
            return probabilities, (), state
        probabilities, state = follow_leader(state, inverse_rate / 2, jnp.zeros_like(inverse_rate))
        baseline = 0.5 * (probabilities >= self.threshold / round.time).astype(probabilities.dtype)
        return probabilities, baseline, state

    def observe(self, state, observation):
        if self.estimator == "iw":
            return state.add_weighted(observation)
        baseline = jnp.where(observation.arrived, observation.memo, 0)  # [K, ...]
        # (ℓ - B)/x on the played arm only: its own baseline, so take the row's.
        excess = jnp.where(observation.arrived, observation.loss - baseline, 0)
        excess = excess / jnp.where(observation.arrived, observation.probability, 1)
        return state.add(baseline + observation.at_arm(excess, baseline.shape[0]))
