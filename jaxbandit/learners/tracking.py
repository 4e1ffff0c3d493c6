"""Limited tracking: a bounded number of outstanding observations is tracked."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbandit._core import randomness
from jaxbandit._core.fields import MOST_ROUNDS, PyTree, float_dtype, given, number, pytree_dataclass
from jaxbandit.learners.base import Learner, Observation, Round, is_importance_weighted, signalled
from jaxbandit.learners.wrappers import Wrapper


@pytree_dataclass
class TrackingState:
    base: Any  # the base's state
    tracked: jax.Array  # [...] int32, how many plays are waited for


@pytree_dataclass
class LimitedTracking(Wrapper):
    """Limited tracking capacity: a base learner with at most C outstanding observations; all other feedback is missing.

    A round is tracked with probability p if fewer than C observations are tracked already:

    .. math:: p = \\min\\Big\\{1, \\frac{C}{8(H + 1)}\\Big\\}

    H bounds the number of outstanding observations, so that capacity is nearly always available. The loss of a tracked round counts 1/p
    times in the loss estimates of the base (:meth:`Observation.loss_estimate`); a base that averages what it sees, such as UCB1, needs no
    such weight and takes none. The base is given the number of outstanding observations, tracked or not: the arrival of an
    observation is known even where its loss is not tracked.

    Read for convex losses; that the same coins serve arms is not proved there.

    Args:
      base: a learner for delayed feedback, such as :class:`jaxbandit.DelayedExp3`.
      capacity: C, the largest number of tracked observations.
      backlog: H.
      probability: p, if not the one above; 1 tracks whenever there is room.

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.LimitedTracking(jb.DelayedExp3(), capacity=4, backlog=10), jb.losses.Bernoulli([0.3, 0.5]),
    ...             jb.delays.Fixed(10), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: the scheduler of Ryabchenko, Attias & Roy, *Capacity-Constrained Online Convex Optimization with Delayed Feedback*, 2026, as a
    later paper restates it.
    """

    base: Learner | Any
    capacity: ArrayLike = number(low=1, high=MOST_ROUNDS)
    backlog: ArrayLike = given("max_delay")
    probability: ArrayLike | None = number(default=None, low=1e-6, high=1.0)
    hands_on_signals: ClassVar[bool] = True

    @property
    def watches_plays(self) -> bool:
        return self.inner.watches_plays

    def chance(self) -> jax.Array:
        """p, ``[]``."""
        if self.probability is not None:
            return jnp.asarray(self.probability, float_dtype())
        return jnp.minimum(1, self.capacity / (8 * (jnp.asarray(self.backlog, float_dtype()) + 1)))

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> TrackingState:
        return TrackingState(self.inner.init(num_arms, runs_shape), jnp.zeros(runs_shape, jnp.int32))

    def act(self, state: TrackingState, round: Round) -> tuple[jax.Array, Any, TrackingState]:
        coin = randomness.uniform(round.words().first, randomness.grain(float_dtype()))
        tracks = (coin < self.chance()) & (state.tracked < self.capacity)
        probabilities, memo, base = self.inner.act(state.base, _with_own_words(round))
        return probabilities, (tracks, memo), TrackingState(base, state.tracked + tracks.astype(jnp.int32))

    def played(self, state: TrackingState, round: Round, arm: jax.Array, probability: jax.Array) -> TrackingState:
        return TrackingState(self.inner.played(state.base, _with_own_words(round), arm, probability), state.tracked)

    def signalled(
        self, state: TrackingState, round: Round, arm: jax.Array, signal: jax.Array, memo: PyTree
    ) -> tuple[Any, TrackingState]:
        waiting, base = signalled(self.inner, state.base, _with_own_words(round), arm, signal, memo[1])
        return (memo[0], waiting), TrackingState(base, state.tracked)

    def observe(self, state: TrackingState, observation: Observation) -> TrackingState:
        tracked, memo = observation.memo
        seen = observation.arrived & tracked
        # ZimmertSeldin(skipping=True) and RobustBestOfBothWorlds count the outstanding plays that they skipped: they must see each
        # play arrive. A play that is not tracked has weight 0, which is enough where feedback enters through loss estimates alone.
        shown = observation.arrived if is_importance_weighted(self.inner) else seen
        weight = jnp.where(tracked, 1 / self.chance(), 0)
        mine = observation._replace(arrived=shown, arm=jnp.where(shown, observation.arm, -1), memo=memo, weight=weight)
        return TrackingState(self.inner.observe(state.base, mine), state.tracked - seen.astype(jnp.int32))


def _with_own_words(round: Round) -> Round:
    """The base's round: the coin took the first pair of words."""
    return round._replace(words=lambda pair=0: round.words(jnp.asarray(pair, jnp.uint32) + 1))
