"""The jump tangent: a derivative of the loss estimates whose path derivative is that of the **expected** regret.

Let x be the probabilities of a round, B the learner's baseline (0 for most), q = max(x, floor) what it divides by, and f the
regret to go as a function of the loss estimates. When x moves by dx, arm i is drawn more often (its jump (ℓ - B)/q happens more
often) and its jump gets smaller: to first order the two cancel. The jump f(L + w) - f(L) is replaced by
w·(α f'(L) + (1 - α) f'(L + w)); what remains is a path derivative at states that a run visits:

.. math::
   d\\hat\\ell_i = \\frac{E[\\alpha_i(\\ell - B_i)]}{q_i}\\,\\rho\\, dx_i
       + 1\\{I = i\\} \\Big((1 - \\alpha_i) \\frac{\\ell - B_i}{x_i q_i} - \\frac{\\ell - B_i}{q_i^2} \\frac{dq_i}{dx_i}\\Big) dx_i

The weight ρ of the play, of mean 1, makes f'(L + jump) stand for f'(L): see :func:`stand_in`. ``docs/gradients.md`` derives all.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.stats import norm

from jaxbandit.arms import pick, sums
from jaxbandit.learners.base import Observation
from jaxbandit.losses import Beta, ClippedNormal, Corrupted, Table
from jaxbandit.pytrees import pytree_dataclass

RIDGE = 1e-3  # keeps ρ bounded when the losses of an arm are always 0


@pytree_dataclass
class Jump:
    """What waits with a play: carriers, whose value is 0 and whose tangent is the point, and what a floor needs."""

    drift: jax.Array  # [K, ...] carrier, E[α(ℓ - B)]/x·ρ·dx
    slip: jax.Array  # [...] carrier, (ℓ - B)/x²·dx of the played arm
    share: jax.Array  # [...] α of the played arm
    probabilities: jax.Array | None  # [K, ...] a constant; kept for learners with a floor

    @classmethod
    def of(cls, learner: Any, state: Any, round: Any, probabilities, arm, loss, means, squares) -> "Jump":
        """The jump of a play of ``arm`` with ``loss``, where the losses have ``means [K]`` and second moments ``squares [K]``."""
        x = jnp.maximum(lax.stop_gradient(probabilities), jnp.finfo(probabilities.dtype).tiny)
        change = probabilities - lax.stop_gradient(probabilities)
        means, squares, loss = lax.stop_gradient((_rows(means, arm), _rows(squares, arm), loss))
        baseline, stiffness = lax.stop_gradient(
            (learner.baseline(round, probabilities), learner.stiffness(state, round, probabilities))
        )
        # α for losses 0 and 1, and linear in between: its products with the loss then have known means.
        least, most = quadrature(-baseline / x, stiffness), quadrature((1 - baseline) / x, stiffness)
        mean = least * (means - baseline) + (most - least) * (squares - baseline * means)
        share = pick(least, arm) + pick(most - least, arm) * loss
        above = loss - pick(baseline, arm)
        weight = stand_in(x, means - baseline, squares - 2 * baseline * means + baseline**2, arm, above)
        played = pick(x, arm)
        return cls(
            mean / x * weight * change,
            above / played * (pick(change, arm) / played),
            share,
            x if learner.has_floor else None,
        )

    def estimate(self, observation: Observation, weighted: jax.Array, floor: jax.Array | None) -> jax.Array:
        """``weighted`` in the row of the played arm, with the jump tangent in every row, divided by max(x, floor)."""
        arrived, num_arms = observation.arrived, self.drift.shape[0]
        drift, slip = jnp.where(arrived, self.drift, 0), jnp.where(arrived, self.slip, 0)
        if floor is None:
            return drift + observation.at_arm(weighted - self.share * slip, num_arms)
        assert self.probabilities is not None
        x = jnp.where(arrived, self.probabilities, 1)
        ratio = x / jnp.maximum(x, floor)
        own = pick(ratio, jnp.maximum(observation.arm, 0))
        slip = slip * ((1 - self.share) * own - jnp.where(own < 1, 0, 1))
        return drift * ratio + observation.at_arm(weighted + slip, num_arms)


@pytree_dataclass
class Expected:
    """The fluid limit: every play brings the expected losses of all arms."""

    above: jax.Array  # [K, ...] m - B

    @classmethod
    def of(cls, learner: Any, round: Any, probabilities: jax.Array, means: jax.Array) -> "Expected":
        return cls(means.reshape(-1, *[1] * (probabilities.ndim - 1)) - learner.baseline(round, probabilities))

    def estimate(self, observation: Observation, weighted: jax.Array, floor: jax.Array | None) -> jax.Array:
        return jnp.where(observation.arrived, self.above, 0)


def _rows(values: jax.Array, arm: jax.Array) -> jax.Array:
    """``values [K]`` as ``[K, ...]``, to broadcast with the runs."""
    return values.reshape(-1, *[1] * arm.ndim)


def quadrature(jump: jax.Array, stiffness: jax.Array) -> jax.Array:
    """α = 1/(2 + w/h), the weight of the near end of a jump w: exact for a derivative that falls like (1 + u/h)^{-2}.

    The stiffness h of an arm is 2/|d log x/dL|, a·x^{-1/2} + 2b for a hybrid regulariser; h = ∞ gives the trapezoid, 1/2.
    """
    return 1 / (2 + jnp.maximum(jump / stiffness, -0.75))


def stand_in(x: jax.Array, means: jax.Array, squares: jax.Array, arm: jax.Array, loss: jax.Array) -> jax.Array:
    """ρ ``[...]``: weights of the plays, of mean 1, under which the mean jump is the same in every arm.

    Adding one number to all loss estimates changes nothing, so a mean over plays with these weights stands for no play at
    all, up to second order. Among such weights these have the least variance:
    ρ = λ(1 + (r - m_I)·ℓ/s_I) with r = Σ(x m/s)/Σ(x/s) and λ such that the mean is 1, s the second moments.
    """
    inverse = x / (squares + RIDGE * x)
    total, weighted = sums(inverse, means * inverse)
    common = weighted / total
    (gain,) = sums((common - means) * means * inverse)
    own = pick((common - means) * inverse / x, arm)
    return (1 + own * loss) / (1 + gain)


def second_moment(losses: Any, t: jax.Array) -> jax.Array:
    """E[ℓ²] of each arm ``[K]``, for coins E[ℓ]; a law of a user's own may say ``second_moment(t)``, else it is taken for a coin."""
    means = losses.expected(t)
    if hasattr(losses, "second_moment"):
        return losses.second_moment(t)
    match losses:
        case Table():
            return means**2
        case Beta():
            return means**2 + means * (1 - means) / (1 + jnp.asarray(losses.concentration, means.dtype))
        case ClippedNormal():
            centre, deviation = jnp.asarray(losses.means), jnp.asarray(losses.deviation)
            low, high = -centre / deviation, (1 - centre) / deviation
            inside = (centre**2 + deviation**2) * (norm.cdf(high) - norm.cdf(low))
            return norm.sf(high) + inside + deviation * (centre * norm.pdf(low) - (1 + centre) * norm.pdf(high))
        case Corrupted():
            return second_moment(losses.base, t)[losses._exchange(t)]
        case _:
            return means
