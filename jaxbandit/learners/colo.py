"""Composite anonymous feedback: a wrapper for any learner without delays."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbandit._core import randomness
from jaxbandit._core.arms import one_hot
from jaxbandit._core.fields import float_dtype, given, pytree_dataclass
from jaxbandit.learners.base import Learner, Observation, Round, TakesSums
from jaxbandit.learners.decision import decide
from jaxbandit.learners.wrappers import Wrapper, base_memo, undelayed


@pytree_dataclass
class CoLoState:
    """The base, its last arm, and the feedback that arrived since."""

    base: Any  # the base's state after the last loss it was fed
    answered: Any  # the same after its last answer; forgotten if that answer is never judged
    memo: Any  # of that answer
    arm: jax.Array  # [...] int32, the arm that was drawn from it
    probability: jax.Array  # [...] of that arm
    clock: jax.Array  # [...] int32, the base's round
    played: jax.Array  # [...] int32, for how many rounds the arm has been played
    total: jax.Array  # [...] arrivals in those of them that concern this arm only


@pytree_dataclass
class CoLo(Wrapper, TakesSums):
    """CoLo: a base learner without delays under composite anonymous feedback, where losses are spread over d + 1 rounds.

    In each round a new arm is drawn from the base with probability 1/(2d + 1); otherwise the last one is played again.
    Once an arm was played 2d + 1 times in a row since it was drawn (2d times without a draw), the base observes the arrivals of the last d + 1 of
    these rounds, which is of no other arm, as the loss of this arm:

    .. math:: \\ell = \\frac{1}{2d + 1} \\sum_{r=t-d}^{t} Z_r

    with :math:`Z_r` the sum of all arrivals in round r. A round of the base is an arm that it observes. With d = 0 it is the base itself.

    That these d + 1 rounds are summed up follows from what must not be mixed in: the text that was read gives the coins, the 2d rounds
    and the divisor, not the window. Round 1 always draws.

    Args:
      base: any learner, such as :class:`jaxbandit.TsallisINF`.
      delay: d, the delay of the last share of a loss.

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.CoLo(jb.TsallisINF(), delay=2), jb.losses.Bernoulli([0.3, 0.5]),
    ...             jb.delays.CompositeFeedback([0.5, 0.25, 0.25]), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: Cesa-Bianchi, Cesari, Colomboni, Gentile & Mansour, *Nonstochastic Bandits with Composite Anonymous Feedback*, JMLR 2022.
    """

    base: Learner | Any
    delay: ArrayLike = given("max_delay")

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> CoLoState:
        zero, base = jnp.zeros(runs_shape, jnp.int32), self.inner.init(num_arms, runs_shape)
        words = randomness.Words(zero.astype(jnp.uint32), zero.astype(jnp.uint32))
        memo = jax.eval_shape(base_memo, self.inner, base, zero, words)
        memo = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), memo)
        ones, none = jnp.ones(runs_shape, float_dtype()), jnp.zeros(runs_shape, float_dtype())
        return CoLoState(base, base, memo, zero, ones, zero + 1, zero, none)

    def _window(self) -> jax.Array:
        """d, a whole number of rounds."""
        return jnp.ceil(jnp.asarray(self.delay, float_dtype()))

    def act(self, state: CoLoState, round: Round) -> tuple[jax.Array, Any, CoLoState]:
        stretch, words, grain = 2 * self._window() + 1, round.words(), randomness.grain(float_dtype())
        fed = state.played == stretch
        loss = state.total / stretch
        due = Observation(fed, state.clock, jnp.where(fed, state.arm, -1), loss, state.probability, state.memo)
        base = _where(fed, self.inner.observe(state.answered, due), state.base)
        clock = state.clock + fed.astype(jnp.int32)

        drawn = (randomness.uniform(words.first, grain) < 1 / stretch) | (state.played == 0)
        own = undelayed(clock, lambda pair=0: round.words(jnp.asarray(pair, jnp.uint32) + 1))
        made = decide(self.inner, base, own, randomness.uniform(words.second, grain))
        answer = made.state, made.memo, made.arm, made.probability
        new = CoLoState(base, *answer, clock, jnp.ones_like(clock), jnp.zeros_like(state.total))
        same = CoLoState(*(base, state.answered, state.memo, state.arm, state.probability, clock, state.played + 1, state.total))
        state = _where(drawn, new, same)
        return one_hot(state.arm, made.probabilities.shape[0]).astype(made.probabilities.dtype), (), state

    def observe(self, state: CoLoState, observation: Observation) -> CoLoState:
        window = self._window()
        counts = observation.arrived & (state.played > window) & (state.played <= 2 * window + 1)
        total = state.total + jnp.where(counts, observation.loss, 0)
        return CoLoState(
            *(state.base, state.answered, state.memo, state.arm, state.probability, state.clock, state.played, total)
        )


def _where(chosen: jax.Array, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda new, old: jnp.where(chosen, new, old), new, old)
