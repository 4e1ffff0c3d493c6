"""The jump tangent: a derivative of the loss estimates whose path derivative is that of the **expected** regret.

Let x be the probabilities of a round, B the learner's baseline (0 for most), q = max(x, floor) what it divides by, and f the
regret still to come as a function of the loss estimates. When x moves by dx, arm i is drawn more often (its jump (ℓ - B)/q happens more
often) and its jump gets smaller: to first order the two cancel. The jump f(L + w) - f(L) is replaced by
w·(α f'(L) + (1 - α) f'(L + w)); what remains is a path derivative at states that a run visits:

.. math::
   d\\hat\\ell_i = \\frac{E[\\alpha_i(\\ell - B_i)]}{q_i}\\,\\rho\\, dx_i
       + 1\\{I = i\\} \\Big((1 - \\alpha_i) \\frac{\\ell - B_i}{x_i q_i} - \\frac{\\ell - B_i}{q_i^2} \\frac{dq_i}{dx_i}\\Big) dx_i

The weight ρ of the play, of mean 1, makes f'(L + jump) stand for f'(L): see :func:`play_weight`.

Where losses are 0 or 1 and their chances m move by dm, the jump to (1 - B)/q happens more often and that to -B/q less often. The same
quadrature gives

.. math::
   d\\hat\\ell_i = \\big(\\alpha_i(1)(1 - B_i) + \\alpha_i(0) B_i\\big) \\frac{x_i}{q_i}\\,\\rho\\, dm_i
       + 1\\{I = i\\} \\frac{1}{q_i} \\Big(\\ell\\,(1 - \\alpha_i(1)) \\frac{1 - B_i}{m_i}
       + (1 - \\ell)(1 - \\alpha_i(0)) \\frac{B_i}{1 - m_i}\\Big) dm_i

A baseline whose derivative is dB adds (1 - 1{I = i}/x_i) dB_i. ``docs/gradients.md`` derives all.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandit.arms import pick, sums
from jaxbandit.game import Game
from jaxbandit.gradients.branches import branched
from jaxbandit.learners.base import Learner, Observation, Round
from jaxbandit.pytrees import pytree_dataclass, static

RIDGE = 1e-3  # keeps ρ bounded when the losses of an arm are always 0
RAREST = 1e-30  # probability below which an arm of such losses would make ρ no number in float32


@pytree_dataclass
class JumpTangent:
    """Feedback whose estimates have the value of the sampled ones and the derivative above."""

    chances: bool = static(default=False)  # the derivative is also in the chances of losses 0 and 1
    horizon: jax.Array | None = None  # the last round; without it, rates are taken to stay as they are
    branch: jax.Array | None = None  # the chance that a play is corrected by a branch: see jaxbandit.gradients.branches

    def of_play(self, game: Game, state: Any, round: Round, probabilities: jax.Array, arm: jax.Array, loss: jax.Array) -> "Jump":
        means, squares = game.losses.expected(round.t), game.losses.second_moment(round.t)
        kept = None if self.branch is None else 1 - branched(round, self.branch) / self.branch
        return Jump.of(game.learner, state, round, probabilities, arm, loss, means, squares, self.chances, self.horizon, kept)


@pytree_dataclass
class FluidLimit:
    """Feedback without chance: every play brings the expected losses of all arms."""

    def of_play(
        self, game: Game, state: Any, round: Round, probabilities: jax.Array, arm: jax.Array, loss: jax.Array
    ) -> "Expected":
        means = game.losses.expected(round.t)
        baseline = lax.stop_gradient(game.learner.baseline(round, probabilities))
        return Expected(means.reshape(-1, *[1] * arm.ndim) - baseline)


@pytree_dataclass
class Jump:
    """What waits with a play. ``drift``, ``slip`` and ``gain`` are always 0: they only carry derivatives to the estimate.

    JAX differentiates along with the value, so that a term whose value is 0 and whose derivative is the one wanted adds the
    derivative and leaves the value as it is.
    """

    drift: jax.Array  # [K, ...] 0, with the derivative E[α(ℓ - B)]/x·ρ·dx, that with dm, and dB
    slip: jax.Array  # [...] 0, with the derivative (ℓ - B)/x²·dx of the played arm
    gain: jax.Array | None  # [...] 0, with the derivative of the played arm with dm, for q = x, and -dB/x; None: there is none
    share: jax.Array  # [...] α of the played arm (1 less what is kept of 1 - α)
    probabilities: jax.Array | None  # [K, ...] x as a constant; None for learners without a floor

    @classmethod
    def of(
        cls,
        learner: Any,
        state: Any,
        round: Round,
        probabilities: jax.Array,
        arm: jax.Array,
        loss: jax.Array,
        means: jax.Array,
        squares: jax.Array,
        coins: bool,
        horizon: jax.Array | None,
        kept: jax.Array | None,
    ) -> "Jump":
        """The jump of a play of ``arm`` with ``loss``, where the losses have ``means [K]`` and second moments ``squares [K]``.

        ``coins``: losses are 0 or 1, so that a derivative of the means is one of their chances. ``horizon``: the last round,
        None if it is not known. ``kept [...]``: how much is kept of what stands for the jump, beside the derivative of the
        weight 1/q; None: all.
        """
        x = jnp.maximum(lax.stop_gradient(probabilities), jnp.finfo(probabilities.dtype).tiny)
        change = probabilities - lax.stop_gradient(probabilities)
        likelier = _rows(means - lax.stop_gradient(means), arm)
        means, squares, loss = lax.stop_gradient((_rows(means, arm), _rows(squares, arm), loss))
        baseline = learner.baseline(round, probabilities)
        raised = baseline - lax.stop_gradient(baseline)
        baseline, falls = lax.stop_gradient((baseline, fall(learner, state, round, probabilities, horizon)))
        # α for losses 0 and 1, and linear in between: its products with the loss then have known means.
        alpha_0, alpha_1 = quadrature(-baseline / x, *falls), quadrature((1 - baseline) / x, *falls)
        mean = alpha_0 * (means - baseline) + (alpha_1 - alpha_0) * (squares - baseline * means)
        share = pick(alpha_0, arm) + pick(alpha_1 - alpha_0, arm) * loss
        above = loss - pick(baseline, arm)
        weight = play_weight(x, means - baseline, squares - 2 * baseline * means + baseline**2, arm, above)
        played = pick(x, arm)
        # change/x first: of an arm whose probability has come to 0, mean/x·weight is beyond float32, and times 0 no number.
        drift, gain = mean * weight * (change / x), None
        if coins:
            drift = drift + (alpha_1 * (1 - baseline) + alpha_0 * baseline) * weight * likelier
            # A loss that came has a chance above 0, up to rounding.
            chance = jnp.maximum(jnp.where(loss > 0, pick(means, arm), 1 - pick(means, arm)), jnp.finfo(x.dtype).eps)
            gain = (1 - share) * jnp.where(loss > 0, above, -above) / played * (pick(likelier, arm) / chance)
        if kept is not None:
            drift, share, gain = kept * drift, 1 - kept * (1 - share), None if gain is None else kept * gain
        # A baseline that moves by dB adds (1 - 1{I = i}/x) dB, of mean 0; a learner with a floor has none.
        if not learner.has_floor:
            drift = drift + raised
            gain = -pick(raised, arm) / played + (0 if gain is None else gain)
        return cls(
            drift,
            above / played * (pick(change, arm) / played),
            gain,
            share,
            x if learner.has_floor else None,
        )

    def estimate(self, observation: Observation, weighted: jax.Array, floor: jax.Array | None) -> jax.Array:
        """``weighted`` in the row of the played arm, with the jump tangent in every row: what a learner adds to its estimates.

        ``floor``: what the learner's divisor max(x, floor) is kept above, or None.
        """
        arrived, num_arms = observation.arrived, self.drift.shape[0]
        drift, slip = jnp.where(arrived, self.drift, 0), jnp.where(arrived, self.slip, 0)
        gain = jnp.zeros_like(slip) if self.gain is None else jnp.where(arrived, self.gain, 0)
        if floor is None:
            return drift + observation.at_arm(weighted - self.share * slip + gain, num_arms)
        assert self.probabilities is not None
        x = jnp.where(arrived, self.probabilities, 1)
        ratio = x / jnp.maximum(x, floor)
        own = pick(ratio, jnp.maximum(observation.arm, 0))
        slip = slip * ((1 - self.share) * own - jnp.where(own < 1, 0, 1))
        return drift * ratio + observation.at_arm(weighted + slip + gain * own, num_arms)


@pytree_dataclass
class Expected:
    """What waits with a play in the fluid limit."""

    above: jax.Array  # [K, ...] m - B

    def estimate(self, observation: Observation, weighted: jax.Array, floor: jax.Array | None) -> jax.Array:
        """The expected losses of all arms, 0 where nothing arrived."""
        return jnp.where(observation.arrived, self.above, 0)


def _rows(values: jax.Array, arm: jax.Array) -> jax.Array:
    """``values [K]`` as ``[K, ...]``, to broadcast with the runs."""
    return values.reshape(-1, *[1] * arm.ndim)


def fall(
    learner: Learner, state: Any, round: Round, probabilities: jax.Array, horizon: jax.Array | None
) -> tuple[jax.Array, jax.Array]:
    """How fast f' falls at the beginning of a jump, and the share of the Tsallis regulariser in the stiffness, each ``[K, ...]``.

    The model: f is the sum of the regrets of the later rounds, x is in them as it is now, and the stiffness grows from h to that of
    the last round as the root of time. Then d log|f''| / du = -2·fall at u = 0, with fall = (1 + share)/(h·mean).
    """
    h = learner.stiffness(state, round, probabilities)
    known = jnp.isfinite(h)
    h = jnp.where(known, h, 1)
    # h = a·x^{-1/2} + 2b, so that four times the probability leaves half of the first part.
    share = jnp.where(known, 2 - 2 * learner.stiffness(state, round, 4 * probabilities) / h, 0)
    mean = 1.0
    if horizon is not None:
        ahead = horizon / round.time
        last = round._replace(t=horizon.astype(round.t.dtype), total_outstanding=round.total_outstanding * ahead)
        growth = jnp.maximum(jnp.where(known, learner.stiffness(state, last, probabilities) / h, 1), 1.001)
        mean = jnp.log(growth) / (1 - 1 / growth)
    return jnp.where(known, (1 + share) / (h * mean), 0), share


def quadrature(jump: jax.Array, fall: jax.Array, share: jax.Array) -> jax.Array:
    """α, the weight of the near end of a jump w: 1/2 - w·fall/6 for short ones.

    Longer ones: exact for f' ∝ (1 + u/c)^{-2} as far as the Tsallis regulariser answers to a jump, and (1 + u/c)^{-3/2} for the
    entropy, each with the c that falls so at the beginning.
    """
    tsallis = 1 / (2 + jnp.clip(jump * fall / 1.5, -0.75, 1e9))
    root = jnp.sqrt(1 + jnp.clip(0.8 * jump * fall, -0.75, 1e9))
    entropy = (2 * root + 1) / ((root + 1) * (root * root + root + 1))
    return share * tsallis + (1 - share) * entropy


def play_weight(x: jax.Array, means: jax.Array, squares: jax.Array, arm: jax.Array, loss: jax.Array) -> jax.Array:
    """ρ ``[...]``: weights of the plays, of mean 1, under which the mean jump is the same in every arm.

    Adding one number to all loss estimates changes nothing, so a mean over plays with these weights stands for no play at
    all, up to second order. Among such weights these have the least variance:
    ρ = λ(1 + (r - m_I)·ℓ/s_I) with r = Σ(x m/s)/Σ(x/s) and λ such that the mean is 1, s the second moments.
    """
    x = jnp.maximum(x, RAREST)
    inverse = x / (squares + RIDGE * x)
    total, weighted = sums(inverse, means * inverse)
    common = weighted / total
    (gain,) = sums((common - means) * means * inverse)
    own = pick((common - means) * inverse / x, arm)
    return (1 + own * loss) / (1 + gain)
