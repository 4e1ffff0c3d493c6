"""Thompson sampling: play the arm that is best in one draw from the posterior."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit import randomness
from jaxbandit.learners.ucb import Observed, uniform_over_smallest
from jaxbandit.pytrees import pytree_dataclass


@pytree_dataclass
class DelayedThompson:
    """Thompson sampling for losses in [0, 1], on the feedback that has arrived.

    .. math:: I_t = \\arg\\min_i \\theta_i, \\quad
       \\theta_i \\sim \\mathrm{Beta}\\Big(1 + \\sum \\ell,\\; 1 + \\sum (1 - \\ell)\\Big)

    with sums over the observed plays of arm i. The draw is part of the learner: the probabilities are one-hot.

    >>> import jax, jaxbandit as jb
    >>> from jaxbandit.learners.thompson import DelayedThompson
    >>> jb.simulate(DelayedThompson(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8,
    ...             key=jax.random.key(0)).regret[-1].shape
    (8,)

    Reference: Thompson, *On the Likelihood that One Unknown Probability Exceeds Another in View of the Evidence of Two Samples*,
    Biometrika 1933.
    """

    def init(self, num_arms, runs_shape):
        return Observed.start(num_arms, runs_shape)

    def act(self, state, round):
        bad = state.losses + state.error
        good = state.counts.astype(bad.dtype) - bad
        odds = beta_odds(round.words(), 1 + bad, 1 + jnp.maximum(good, 0))
        return uniform_over_smallest(odds), (), state

    def observe(self, state, observation):
        return state.add(observation)


def beta_odds(words: randomness.Words, alpha: jax.Array, beta: jax.Array) -> jax.Array:
    """The odds θ/(1 - θ) of one θ ~ Beta(alpha, beta) for each arm and run, alpha, beta >= 1; ``[K, ...]``.

    The odds are a ratio of two gamma variables. Both are proposed by Marsaglia & Tsang (2000), d(1 + N/√(9d))³ with N normal,
    and accepted or refused together. The n-th proposal of an arm is a function of the run's words, the arm and n, so a draw
    does not depend on the runs beside it.
    """
    num_arms = alpha.shape[0]
    arm = jnp.arange(num_arms, dtype=jnp.uint32).reshape(num_arms, *[1] * words.first.ndim)
    size, other = lax.stop_gradient((alpha - 1 / 3, beta - 1 / 3))

    def propose(carry):
        turn, odds = carry
        first, second = normals(randomness.threefry(words, randomness.Words(turn, arm)), odds.dtype)
        step = jnp.maximum(first * lax.rsqrt(9 * size), -1)
        other_step = jnp.maximum(second * lax.rsqrt(9 * other), -1)
        chance = jnp.exp(3 * (size * cubic_rest(step) + other * cubic_rest(other_step)))
        coin = randomness.threefry(words, randomness.Words(turn, arm + np.uint32(num_arms))).first
        accepted = open_uniform(coin, odds.dtype) < chance
        # A step of -1 has chance 0, so what is divided by is never 0 where it counts.
        proposal = size * (1 + step) ** 3 / (other * jnp.where(accepted, 1 + other_step, 1) ** 3)
        return turn + np.uint32(1), jnp.where((odds < 0) & accepted, proposal, odds)

    return lax.while_loop(lambda carry: (carry[1] < 0).any(), propose, (jnp.uint32(0), jnp.full_like(size, -1)))[1]


def cubic_rest(step: jax.Array) -> jax.Array:
    """log(1 + y) - y + y²/2 - y³/3, which is -inf at -1.

    3d times this is the N²/2 + d - dv + d·log v of Marsaglia & Tsang, v = (1 + y)³, without their cancellation at large d.
    """
    return jnp.log1p(step) - step * (1 - step * (0.5 - step / 3))


def normals(words: randomness.Words, dtype) -> tuple[jax.Array, jax.Array]:
    """Two independent standard normal numbers (Box & Muller)."""
    radius = jnp.sqrt(-2 * jnp.log(open_uniform(words.first, dtype)))
    # An angle within π/4 of 0, where short polynomials do, and then a turn by one of four right angles, from the lowest bits.
    angle = (open_uniform(words.second, dtype) - 0.5) * (np.pi / 2)
    cosine, sine = jnp.ones_like(angle), jnp.ones_like(angle)
    for n in range(10 if dtype == jnp.float32 else 18, 0, -2):
        cosine = 1 - cosine * angle**2 / (n * (n - 1))
        sine = 1 - sine * angle**2 / (n * (n + 1))
    sine = sine * angle
    quarter, half = (words.second & np.uint32(1)) != 0, (words.second & np.uint32(2)) != 0
    radius = jnp.where(half, -radius, radius)
    return radius * jnp.where(quarter, -sine, cosine), radius * jnp.where(quarter, cosine, sine)


def open_uniform(word: jax.Array, dtype) -> jax.Array:
    """A uniform number in (0, 1), both ends left out, from the upper 23 bits of a word, or 30 in float64."""
    bits = 23 if dtype == jnp.float32 else 30
    return ((word >> np.uint32(32 - bits)).astype(jnp.int32).astype(dtype) + 0.5) * 2.0**-bits
