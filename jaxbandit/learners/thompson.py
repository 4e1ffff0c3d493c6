"""Thompson sampling: play the arm that is best in one draw from the posterior."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit._core import randomness
from jaxbandit._core.arms import constant_min, one_hot, pick
from jaxbandit._core.fields import Numbers, number, pytree_dataclass
from jaxbandit.learners.base import Learner, Observation, Round
from jaxbandit.learners.propensity import smallest_of_betas
from jaxbandit.learners.ucb import Observed, uniform_over_smallest

MOST_ROWS = 32  # arms of which one at a time is looked at again


@pytree_dataclass
class DelayedThompson(Learner):
    """Thompson sampling for losses in [0, 1], on the feedback that has arrived.

    .. math:: I_t = \\arg\\min_i \\theta_i, \\quad
       \\theta_i \\sim \\mathrm{Beta}\\Big(1 + \\sum \\ell,\\; 1 + \\sum (1 - \\ell)\\Big)

    with sums over the observations of arm i. The draw is part of the learner: the probabilities are one-hot.

    Args:
      prior_losses: earlier losses that count as observed, one number for each arm ``[K]``; None: none, a uniform prior.
      prior_rewards: earlier rewards (1 - loss) that count as observed.

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.DelayedThompson(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8,
    ...             seed=0).regret[-1].shape
    (8,)

    Reference: Thompson, *On the Likelihood that One Unknown Probability Exceeds Another in View of the Evidence of Two Samples*,
    Biometrika 1933.
    """

    prior_losses: Numbers | None = number(default=None, high=1e6, axes="K")
    prior_rewards: Numbers | None = number(default=None, high=1e6, axes="K")

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Observed:
        return Observed.start(num_arms, runs_shape)

    def act(self, state: Observed, round: Round) -> tuple[jax.Array, Any, Observed]:
        return uniform_over_smallest(round.restrict(beta_odds(round.words, *self._posterior(state)))), (), state

    def propensity(self, state: Observed, round: Round, arm: jax.Array) -> jax.Array:
        return thompson_propensity(round, *self._posterior(state), arm)

    def _posterior(self, state: Observed) -> tuple[jax.Array, jax.Array]:
        bad = state.losses + state.error
        good = state.counts.astype(bad.dtype) - bad
        losses, rewards = (_per_arm(prior, bad) for prior in (self.prior_losses, self.prior_rewards))
        return 1 + losses + bad, 1 + rewards + jnp.maximum(good, 0)

    def observe(self, state: Observed, observation: Observation) -> Observed:
        return state.add(observation)


def _per_arm(prior: Numbers | None, like: jax.Array) -> jax.Array:
    """``[K]`` or ``[K, runs]`` numbers with the axes of ``like [K, ...]``."""
    if prior is None:
        return jnp.zeros((), like.dtype)
    prior = jnp.asarray(prior, like.dtype)
    return prior.reshape(*prior.shape, *[1] * (like.ndim - prior.ndim))


def thompson_propensity(round: Round, alpha: jax.Array, beta: jax.Array, arm: jax.Array) -> jax.Array:
    """The probability ``[...]`` that ``arm`` has the smallest draw from Beta(alpha, beta), among the arms not withdrawn."""
    withdrawn = jnp.isinf(round.restrict(jnp.zeros_like(alpha)))
    return smallest_of_betas(jnp.where(withdrawn, 1e6, alpha), jnp.where(withdrawn, 1, beta), arm)


def beta_odds(words: Callable[[jax.Array], randomness.Words], alpha: jax.Array, beta: jax.Array) -> jax.Array:
    """The odds θ/(1 - θ) of one θ ~ Beta(alpha, beta) for each arm and run, alpha, beta >= 1; ``[K, ...]``.

    ``words(n)`` is the n-th pair of random words of each run. The odds are a ratio of two gamma variables, proposed and accepted or
    refused together (:class:`Proposal`). Every proposal of an arm has words of its own, so a draw does not depend on the runs
    beside it. Nearly all first proposals are accepted by a bound that needs no logarithm; what is left is decided arm by arm,
    in all runs at once.
    """
    num_arms, tail = alpha.shape[0], alpha.shape[1:]
    sizes = lax.stop_gradient((alpha - 1 / 3, beta - 1 / 3))

    def propose(arm, turn, size, other_size):
        number = 2 * (turn * np.uint32(num_arms) + arm.astype(jnp.uint32))
        return Proposal.draw(words(number + np.uint32(1)), words(number + np.uint32(2)), size, other_size)

    def numbers(count):
        return jnp.arange(count, dtype=jnp.int32).reshape(count, *[1] * len(tail))

    first = propose(numbers(num_arms), np.uint32(0), *sizes)
    odds = first.odds(first.is_surely_accepted())

    # With many arms, groups of at most MOST_ROWS go on beside each other: arm i · groups + g is row i of group g.
    groups = -(-num_arms // MOST_ROWS)
    group = jnp.int32(0)
    if groups > 1:
        padding = [(0, -num_arms % groups)] + [(0, 0)] * len(tail)
        odds, *sizes = (jnp.pad(a, padding, constant_values=1).reshape(-1, groups, *tail) for a in (odds, *sizes))
        group = numbers(groups)
    rows = odds.shape[0]

    def first_open(odds):
        """The first row that is not decided; ``rows`` if there is none."""
        index = jnp.arange(rows, dtype=odds.dtype).reshape(rows, *[1] * (odds.ndim - 1))
        return constant_min(jnp.where(odds < 0, index, rows)).astype(jnp.int32)

    def decide(carry):
        row, turn, odds = carry
        some_row = jnp.minimum(row, rows - 1)
        proposal = propose(some_row * groups + group, turn, *(pick(size, some_row) for size in sizes))
        decided = proposal.odds(proposal.is_accepted())
        odds = jnp.where(one_hot(row, rows), decided, odds)
        return first_open(odds), jnp.where(decided < 0, turn + np.uint32(1), np.uint32(0)), odds

    start = first_open(odds), jnp.zeros(odds.shape[1:], jnp.uint32), odds
    odds = lax.while_loop(lambda carry: (carry[0] < rows).any(), decide, start)[2]
    return odds.reshape(-1, *tail)[:num_arms] if groups > 1 else odds


class Proposal(NamedTuple):
    """Two gamma variables d(1 + y)³, y = N/√(9d), with N normal, and a coin to accept them (Marsaglia & Tsang 2000)."""

    size: jax.Array  # d
    step: jax.Array  # y
    other_size: jax.Array
    other_step: jax.Array
    coin: jax.Array  # 0 … 2¹⁶ - 1, as a float: the coin's first 16 bits
    more: jax.Array  # uint32: the bits that follow

    @classmethod
    def draw(cls, words: randomness.Words, more: randomness.Words, size: jax.Array, other_size: jax.Array) -> "Proposal":
        first, second = normals(words, size.dtype)
        # In float32 the normal numbers leave 9 and 7 bits of their words; in float64 none.
        left = ((words.first & np.uint32(511)) << np.uint32(7)) | ((words.second >> np.uint32(2)) & np.uint32(127))
        coin = left if size.dtype == jnp.float32 else more.second >> np.uint32(16)
        steps = (n * jnp.sqrt((1 / 9) / d) for n, d in ((first, size), (second, other_size)))
        return cls(size, next(steps), other_size, next(steps), coin.astype(jnp.int32).astype(size.dtype), more.first)

    def odds(self, accepted: jax.Array) -> jax.Array:
        """The ratio of the two, or -1 where it is not accepted.

        A division comes last because XLA does not repeat it: what leads to it is computed once and not for every use.
        """
        divisor = jnp.where(accepted, self.other_size * (1 + self.other_step) ** 3, 1)
        return jnp.where(accepted, self.size * (1 + self.step) ** 3, -1) / divisor

    def is_accepted(self) -> jax.Array:
        """Whether the coin falls below exp(3d(log(1 + y) - y + y²/2 - y³/3)), the product over both."""
        exponent = 3 * (self.size * cubic_rest(self.step) + self.other_size * cubic_rest(self.other_step))
        return (self.coin + randomness.uniform_of_bits(self.more, self.coin.dtype)) * 2.0**-16 < jnp.exp(exponent)

    def is_surely_accepted(self) -> jax.Array:
        """Whether the coin's first bits are enough to accept; cheap.

        For y >= -1/2, log(1 + y) - y + y²/2 - y³/3 >= -(y⁴/4)(1 + 1.6 |y|), by its series; and exp(z) >= 1 + z.
        """

        def loss(size, step):
            return size * step**4 * (1 + 1.6 * abs(step))

        room = 1 - 0.75 * (loss(self.size, self.step) + loss(self.other_size, self.other_step))
        return ((self.coin + 1) * 2.0**-16 <= room) & (jnp.minimum(self.step, self.other_step) >= -0.5)


def cubic_rest(step: jax.Array) -> jax.Array:
    """log(1 + y) - y + y²/2 - y³/3, -inf for y <= -1; by its series where the terms would cancel."""
    series = jnp.zeros_like(step)
    for n in range(10, 3, -1):
        series = (-1) ** (n + 1) / n + step * series
    direct = jnp.log1p(jnp.maximum(step, -1)) - step * (1 - step * (0.5 - step / 3))
    return jnp.where(abs(step) < 1 / 16, step**4 * series, direct)


def normals(words: randomness.Words, dtype: jnp.dtype) -> tuple[jax.Array, jax.Array]:
    """Two independent standard normal numbers (Box & Muller)."""
    radius = jnp.sqrt(-2 * jnp.log(randomness.uniform_of_bits(words.first, dtype)))
    # An angle within π/4 of 0, where short polynomials do, and then a turn by one of four right angles, from the lowest bits.
    angle = (randomness.uniform_of_bits(words.second, dtype) - 0.5) * (np.pi / 2)
    cosine, sine = jnp.ones_like(angle), jnp.ones_like(angle)
    for n in range(10 if dtype == jnp.float32 else 18, 0, -2):
        cosine = 1 - cosine * angle**2 / (n * (n - 1))
        sine = 1 - sine * angle**2 / (n * (n + 1))
    sine = sine * angle
    quarter, half = (words.second & np.uint32(1)) != 0, (words.second & np.uint32(2)) != 0
    radius = jnp.where(half, -radius, radius)
    return radius * jnp.where(quarter, -sine, cosine), radius * jnp.where(quarter, cosine, sine)
