"""The jump tangent: a derivative of the loss estimates whose path derivative is that of the **expected** regret.

Let x be the probabilities of a round, B the learner's baseline (0 for most), q = max(x, floor) the divisor, and f the
future regret as a function of the loss estimates. When x moves by dx, arm i is drawn more often (its jump (ℓ - B)/q happens more
often) and its jump gets smaller: to first order the two cancel. The jump f(L + w) - f(L) is replaced by
w·(α f'(L) + (1 - α) f'(L + w)); what remains is a path derivative at states that a run visits:

.. math::
   d\\hat\\ell_i = \\frac{E[\\alpha_i(\\ell - B_i)]}{q_i}\\,\\rho\\, dx_i
       + 1\\{I = i\\} \\Big((1 - \\alpha_i) \\frac{\\ell - B_i}{x_i q_i} - \\frac{\\ell - B_i}{q_i^2} \\frac{dq_i}{dx_i}\\Big) dx_i

The weight ρ of the action, of mean 1, makes f'(L + jump) a substitute for f'(L): see :func:`play_weight`.

Where losses are 0 or 1 and their probabilities m move by dm, the jump to (1 - B)/q happens more often and that to -B/q less
often. The same quadrature gives

.. math::
   d\\hat\\ell_i = \\big(\\alpha_i(1)(1 - B_i) + \\alpha_i(0) B_i\\big) \\frac{x_i}{q_i}\\,\\rho\\, dm_i
       + 1\\{I = i\\} \\frac{1}{q_i} \\Big(\\ell\\,(1 - \\alpha_i(1)) \\frac{1 - B_i}{m_i}
       + (1 - \\ell)(1 - \\alpha_i(0)) \\frac{B_i}{1 - m_i}\\Big) dm_i

A baseline whose derivative is dB adds (1 - 1{I = i}/x_i) dB_i. ``docs/appendix/gradient_estimators.md`` has the derivation.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandit._core.arms import pick, sums
from jaxbandit._core.fields import PyTree, pytree_dataclass, static
from jaxbandit._engine.game import Game
from jaxbandit._engine.player import Hook
from jaxbandit.gradients.branches import branched
from jaxbandit.gradients.probe import UnreadableFloor, arguments_of, fitted_rates, floor_and_baseline
from jaxbandit.learners.base import ImportanceWeighted, Learner, Observation, Round
from jaxbandit.losses.base import second_moment

RIDGE = 1e-3  # keeps ρ bounded when the losses of an arm are always 0
RAREST = 1e-30  # probability below which an arm with such losses would make ρ NaN in float32


@pytree_dataclass
class JumpTangent(Hook):
    """Feedback whose estimates have the value of the sampled ones and the derivative above."""

    chances: bool = static(default=False)  # the derivative is also in the probabilities of losses 0 and 1
    horizon: jax.Array | None = None  # the last round; without it, rates are taken to stay as they are
    branch: jax.Array | None = None  # the probability that an action is corrected by a branch: see jaxbandit.gradients.branches

    def of_play(
        self, game: Game, state: PyTree, round: Round, probabilities: jax.Array, memo: PyTree, arm: jax.Array, loss: jax.Array
    ) -> "Jump | LateJump":
        learner = as_weighted(game.learner)
        kept = None if self.branch is None else 1 - branched(round, self.branch) / self.branch
        moves = Moves.of(game, state, round, probabilities, memo, self.chances, self.horizon, kept)
        given = arguments_of(learner, state, round, probabilities, memo)
        own_baseline = type(learner).baseline is not ImportanceWeighted.baseline
        if given.baseline is not None and not own_baseline:
            raise UnreadableFloor(
                f"{type(learner).__name__} gives loss_estimate a baseline and has no method baseline; define it"
            )
        if given.floor is not None:
            return LateJump(moves)
        baseline = learner.baseline(round, probabilities)
        drift, own = moves.tangent(arm, loss, lax.stop_gradient(baseline), None)
        if own_baseline:
            # A baseline that moves by dB adds (1 - 1{I = i}/x) dB, of mean 0.
            raised = baseline - lax.stop_gradient(baseline)
            drift, own = drift + raised, own - pick(raised, arm) / pick(moves.x, arm)
        return Jump(drift, own)

    def observe(self, learner: Learner, state: PyTree, observation: Observation) -> Any:
        jump = observation.jump
        if isinstance(jump, LateJump):
            x = jnp.where(observation.arrived, jump.moves.x, 1)
            floor, baseline = floor_and_baseline(learner, state, observation, x)
            observation = observation._replace(jump=dataclasses.replace(jump, floor=floor, baseline=baseline))
        return learner.observe(state, observation)


@pytree_dataclass
class FluidLimit(Hook):
    """Deterministic feedback: the expected losses of all arms, in every round."""

    def of_play(
        self, game: Game, state: PyTree, round: Round, probabilities: jax.Array, memo: PyTree, arm: jax.Array, loss: jax.Array
    ) -> "Expected":
        means = game.losses.expected(round.t)
        baseline = lax.stop_gradient(as_weighted(game.learner).baseline(round, probabilities))
        return Expected(_rows(means, arm) - baseline)


@pytree_dataclass
class Moves:
    """The inputs of the tangent of one action, except its arm, loss, floor and baseline.

    ``change`` and ``likelier`` have the value 0 and the derivatives dx and dm: JAX differentiates along with the value, so that
    a term whose value is 0 adds its derivative and leaves the value as it is. All else is constant.
    """

    x: jax.Array  # [K, ...] probabilities
    change: jax.Array  # [K, ...] 0, with the derivative dx
    means: jax.Array  # [K, ...] of the losses
    squares: jax.Array  # [K, ...] their second moments
    fall: jax.Array  # [K, ...] see `fall`
    share: jax.Array  # [K, ...]
    likelier: jax.Array | None  # [K, ...] 0, with the derivative dm of the probabilities of losses 0 and 1; None: constant
    kept: jax.Array | None  # [...] factor of the approximation of the jump, beside the derivative of the weight 1/q; None: 1

    @classmethod
    def of(
        cls,
        game: Game,
        state: PyTree,
        round: Round,
        probabilities: jax.Array,
        memo: PyTree,
        chances: bool,
        horizon: jax.Array | None,
        kept: jax.Array | None,
    ) -> "Moves":
        """The moves of the actions of a round; ``horizon``: the last round, None if unknown."""
        means, squares = (
            jnp.broadcast_to(_rows(values, probabilities[0]), probabilities.shape)
            for values in (game.losses.expected(round.t), second_moment(game.losses, round.t))
        )
        x = lax.stop_gradient(probabilities)
        constants = lax.stop_gradient(
            (means, squares, *fall(as_weighted(game.learner), state, round, probabilities, memo, horizon))
        )
        likelier = means - lax.stop_gradient(means) if chances else None
        return cls(jnp.maximum(x, jnp.finfo(x.dtype).tiny), probabilities - x, *constants, likelier, kept)

    def tangent(
        self, arm: jax.Array, loss: jax.Array, baseline: jax.Array, floor: jax.Array | None
    ) -> tuple[jax.Array, jax.Array]:
        """Two terms of value 0: ``[K, ...]`` for the estimates of all arms, ``[...]`` in addition for the chosen arm."""
        x, means, squares, loss = self.x, self.means, self.squares, lax.stop_gradient(loss)
        divisor = x if floor is None else jnp.maximum(x, floor)
        ratio = x / divisor
        # α for losses 0 and 1, and linear in between: its products with the loss then have known means.
        alpha_0 = quadrature(-baseline / divisor, self.fall, self.share)
        alpha_1 = quadrature((1 - baseline) / divisor, self.fall, self.share)
        mean = alpha_0 * (means - baseline) + (alpha_1 - alpha_0) * (squares - baseline * means)
        far = 1 - pick(alpha_0, arm) - pick(alpha_1 - alpha_0, arm) * loss  # 1 - α of this action
        above = loss - pick(baseline, arm)
        second = squares - 2 * baseline * means + baseline**2
        own_ratio, own_divisor = pick(ratio, arm), pick(divisor, arm)
        weight = play_weight(x, ratio * (means - baseline), ratio**2 * second, arm, own_ratio * above)
        # change/x first: for an arm whose probability has reached 0, mean/x·weight overflows float32, and times 0 gives NaN.
        drift = ratio * mean * weight * (self.change / x)
        if self.likelier is not None:
            drift = drift + ratio * (alpha_1 * (1 - baseline) + alpha_0 * baseline) * weight * self.likelier
        moved = pick(self.change / x, arm)
        jump = far * above / own_divisor * moved
        if self.likelier is not None:
            # An observed loss has positive probability, up to rounding.
            chance = jnp.maximum(jnp.where(loss > 0, pick(means, arm), 1 - pick(means, arm)), jnp.finfo(x.dtype).eps)
            jump = jump + far * jnp.where(loss > 0, above, -above) / own_divisor * (pick(self.likelier, arm) / chance)
        if self.kept is not None:
            drift, jump = self.kept * drift, self.kept * jump
        # The weight 1/q moves with x unless the floor binds.
        return drift, jump - jnp.where(own_ratio < 1, 0, above / own_divisor * moved)


@pytree_dataclass
class Jump:
    """The tangent of an action, computed in its round."""

    drift: jax.Array  # [K, ...] see Moves.tangent
    own: jax.Array  # [...]

    def estimate(
        self, observation: Observation, weighted: jax.Array, floor: jax.Array | None, baseline: jax.Array | None
    ) -> jax.Array:
        """``weighted`` in the row of the chosen arm, with the jump tangent in every row: the increment of the loss estimates."""
        drift, own = (jnp.where(observation.arrived, part, 0) for part in (self.drift, self.own))
        return drift + observation.at_arm(weighted + own, self.drift.shape[0])


@pytree_dataclass
class LateJump:
    """An action whose floor or baseline is only known when its feedback arrives: the tangent is computed then."""

    moves: Moves
    floor: jax.Array | None = None  # [K, ...] known in `observe` alone
    baseline: jax.Array | None = None  # [K, ...]

    def estimate(
        self, observation: Observation, weighted: jax.Array, floor: jax.Array | None, baseline: jax.Array | None
    ) -> jax.Array:
        assert self.baseline is not None
        x = jnp.where(observation.arrived, self.moves.x, 1)  # 0 in rows of the ring that hold no action
        moves = dataclasses.replace(self.moves, x=x)
        tangent = moves.tangent(jnp.maximum(observation.arm, 0), observation.loss, self.baseline, self.floor)
        return Jump(*tangent).estimate(observation, weighted, None, None)


@pytree_dataclass
class Expected:
    """The data stored with an action in the fluid limit."""

    above: jax.Array  # [K, ...] m - B

    def estimate(
        self, observation: Observation, weighted: jax.Array, floor: jax.Array | None, baseline: jax.Array | None
    ) -> jax.Array:
        """The expected losses of all arms, 0 where nothing arrived."""
        return jnp.where(observation.arrived, self.above, 0)


def _rows(values: jax.Array, run: jax.Array) -> jax.Array:
    """``values [K]`` as ``[K, ...]``, to broadcast with the runs."""
    return values.reshape(-1, *[1] * run.ndim)


def fall(
    learner: ImportanceWeighted, state: PyTree, round: Round, probabilities: jax.Array, memo: PyTree, horizon: jax.Array | None
) -> tuple[jax.Array, jax.Array]:
    """How fast f' falls at the beginning of a jump, and the share of the Tsallis regulariser in the stiffness, each ``[K, ...]``.

    The model: f is the sum of the regrets of the later rounds, x is in them as it is now, and the stiffness grows from h to that of
    the last round as the root of time. Then d log|f''| / du = -2·fall at u = 0, with fall = (1 + share)/(h·mean).
    """
    learner, state, probabilities = lax.stop_gradient((learner, state, probabilities))
    h, share = _stiffness(learner, state, round, probabilities, memo)
    known = jnp.isfinite(h)
    h, mean = jnp.where(known, h, 1), 1.0
    if horizon is not None:
        ahead = horizon / round.time
        last = round._replace(t=horizon.astype(round.t.dtype), total_outstanding=round.total_outstanding * ahead)
        later = _stiffness(learner, state, last, probabilities, memo)[0]
        growth = jnp.maximum(jnp.where(known & jnp.isfinite(later), later / h, 1), 1.001)
        mean = jnp.log(growth) / (1 - 1 / growth)
    return jnp.where(known, (1 + share) / (h * mean), 0), jnp.where(known, share, 0)


def as_weighted(learner: Learner) -> ImportanceWeighted:
    """Cast to :class:`ImportanceWeighted`; estimators that require it reject all other learners beforehand."""
    assert isinstance(learner, ImportanceWeighted)
    return learner


def _stiffness(
    learner: ImportanceWeighted, state: PyTree, round: Round, x: jax.Array, memo: PyTree
) -> tuple[jax.Array, jax.Array]:
    """h = a·x^{-1/2} + 2b ``[K, ...]`` (∞: unknown) and the share of its first part."""
    h = learner.stiffness(state, round, x)
    if h is not None:
        nearer: Any = learner.stiffness(state, round, 4 * x)  # four times the probability leaves half of the first part
        return h, 2 - 2 * nearer / h
    tsallis, entropy = fitted_rates(learner, state, round, x, memo)
    root = jnp.sqrt(jnp.maximum(x, RAREST))
    h = tsallis / root + 2 * entropy
    known = h > 0
    return jnp.where(known, h, jnp.inf), jnp.where(known, tsallis / root / jnp.where(known, h, 1), 0)


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
    """ρ ``[...]``: weights of the actions, of mean 1, under which the mean jump is the same in every arm.

    Adding a constant to all loss estimates changes nothing, so a mean over actions with these weights is equivalent to no action,
    up to second order. Among such weights these have the least variance:
    ρ = λ(1 + (r - m_I)·ℓ/s_I) with r = Σ(x m/s)/Σ(x/s) and λ such that the mean is 1, s the second moments.
    """
    x = jnp.maximum(x, RAREST)
    inverse = x / (squares + RIDGE * x)
    total, weighted = sums(inverse, means * inverse)
    common = weighted / total
    (gain,) = sums((common - means) * means * inverse)
    own = pick((common - means) * inverse / x, arm)
    return (1 + own * loss) / (1 + gain)
