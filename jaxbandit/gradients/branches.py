"""Branches: the same run without the feedback of one action, which measures the effect of that action's jump.

``estimator="unbiased"`` starts from the jump tangent. At randomly drawn actions it replaces the tangent's approximation of the
jump by the jump itself: the regret of the run minus that of the branch, in which the action has no feedback. Losses, delays and
random numbers are the same. ``docs/appendix/gradient_estimators.md`` proves that the result is unbiased.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandit._core.arms import pick
from jaxbandit._core.fields import PyTree, float_dtype, pytree_dataclass, static
from jaxbandit._core.randomness import uniform_of_bits
from jaxbandit._core.ring import write_own_row
from jaxbandit._engine.game import Game
from jaxbandit._engine.player import Hook
from jaxbandit.learners.base import ImportanceWeighted, Observation, Round
from jaxbandit.measure import RoundInfo

PAIR = 2**32 - 1  # of the random numbers for the learner: a pair that no learner uses
GRAINS = 2**23  # of the numbers that `branched` compares with; probabilities are multiples of 1/GRAINS, and so exact


def exact_chance(chance: float) -> float:
    """The nearest positive probability that :func:`branched` can represent exactly."""
    return min(max(round(chance * GRAINS), 1), GRAINS) / GRAINS


def branched(round: Round, chance: jax.Array) -> jax.Array:
    """Whether the action of a round gets a branch, ``[...]``."""
    return uniform_of_bits(round.words(PAIR).first, chance.dtype) < chance


@pytree_dataclass
class Branches:
    """A measurement: which actions of a run get a branch, and a term whose derivative is their weight. Read from its last state.

    Actions whose loss equals the baseline are left out: they have no jump, and their branch would equal the run.
    """

    learner: ImportanceWeighted
    chance: jax.Array  # probability that an action gets a branch
    slots: int = static()
    coins: bool = static(default=False)  # losses are 0 or 1, and their probabilities vary too

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> dict[str, jax.Array]:
        rows = (self.slots + 1, *runs_shape)  # the last row takes the writes of all other rounds, and of too many branches
        return {
            "count": jnp.zeros(runs_shape, jnp.int32),
            "rounds": jnp.zeros(rows, jnp.int32),
            "weights": jnp.zeros(rows, float_dtype()),  # 0, with the derivative d log p(arm, loss)/chance
        }

    def update(self, state: dict[str, jax.Array], info: RoundInfo) -> dict[str, jax.Array]:
        seen = jnp.log(pick(info.probabilities, info.arm))
        if self.coins:
            mean = pick(info.means, info.arm)
            seen = seen + jnp.log(jnp.where(info.loss > 0, mean, 1 - mean))
        baseline = self.learner.baseline(info.round, info.probabilities)
        listed = branched(info.round, self.chance) & (info.loss != pick(baseline, info.arm))
        row = jnp.where(listed, jnp.minimum(state["count"], self.slots), self.slots)
        return {
            "count": state["count"] + listed.astype(jnp.int32),
            "rounds": write_own_row(state["rounds"], jnp.broadcast_to(info.t, row.shape), row),
            "weights": write_own_row(state["weights"], (seen - lax.stop_gradient(seen)) / self.chance, row),
        }

    def read(self, state: dict[str, jax.Array]) -> dict[str, jax.Array]:
        return {}


@pytree_dataclass
class Without(Hook):
    """Feedback of a branch: every action except one in each run has its loss as feedback."""

    round: jax.Array  # [...] of that action

    def of_play(
        self, game: Game, state: PyTree, round: Round, probabilities: jax.Array, memo: PyTree, arm: jax.Array, loss: jax.Array
    ) -> "Silent":
        return Silent(jnp.broadcast_to(round.t == self.round, arm.shape), probabilities.shape[0])


@pytree_dataclass
class Silent:
    """The data stored with an action of a branch."""

    silent: jax.Array  # [...] whether it is the action without feedback
    num_arms: int = static()

    def estimate(
        self, observation: Observation, weighted: jax.Array, floor: jax.Array | None, baseline: jax.Array | None
    ) -> jax.Array:
        """``weighted`` in the row of the chosen arm, or 0."""
        return observation.at_arm(jnp.where(self.silent, 0, weighted), self.num_arms)
