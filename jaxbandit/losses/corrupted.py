"""Adversarial corruption of a loss model."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbandit._core.fields import MOST_ROUNDS, number, pytree_dataclass, whole_number
from jaxbandit.losses.base import DifferentiableLosses, Losses, ShowsSignals, second_moment


@pytree_dataclass
class Corrupted(DifferentiableLosses):
    """Adversarial corruption of a stochastic loss model, with a budget that is spent early.

    From round ``start`` on the adversary exchanges the best and the worst arm. A corrupted round costs the largest change
    of a mean, :math:`\\max_i m_i - \\min_i m_i`; it lasts for as many rounds as ``budget`` allows. The regret counts
    the corrupted losses, which is what the learner suffers.

    Args:
      base: a loss model with constant means (Bernoulli, Beta, ClippedNormal).
      budget: C ≥ 0, the total of the changes.
      start: first corrupted round.

    >>> import jaxbandit as jb
    >>> law = jb.losses.Corrupted(jb.losses.Bernoulli([0.25, 0.5, 0.75]), budget=10.0)
    >>> law.expected(t=20), law.expected(t=21)
    (Array([0.75, 0.5 , 0.25], dtype=float32), Array([0.25, 0.5 , 0.75], dtype=float32))
    """

    base: Losses
    budget: ArrayLike = number(high=MOST_ROUNDS)
    start: ArrayLike = whole_number(default=1, low=1, high=MOST_ROUNDS)

    @property
    def num_arms(self) -> int:
        return self.base.num_arms

    @property
    def needs_key(self) -> bool:
        return self.base.needs_key

    def check(self) -> None:
        if not isinstance(self.base, Losses) or not self.base.stationary or isinstance(self.base, ShowsSignals):
            raise ValueError(
                f"losses.Corrupted(base={type(self.base).__name__}(...)): the base must have constant means "
                "(Bernoulli, Beta or ClippedNormal), so that the budget is spent exactly"
            )

    def exchange(self, t: jax.Array) -> jax.Array:
        """The arm whose loss each arm receives in round t, ``[K]``."""
        means = self.base.expected(t)
        best, worst, arms = jnp.argmin(means), jnp.argmax(means), jnp.arange(self.num_arms)
        spread = jnp.maximum(means[worst] - means[best], jnp.finfo(means.dtype).tiny)
        # Rounds paid for; a spread or a quotient that was rounded the wrong way shall not cost one.
        paid = jnp.floor(self.budget / spread * (1 + 2 * jnp.finfo(means.dtype).eps) + 1e-3)
        corrupted = (t >= self.start) & (t - self.start < paid)
        exchanged = jnp.where(arms == best, worst, jnp.where(arms == worst, best, arms))
        return jnp.where(corrupted, exchanged, arms)

    def expected(self, t: jax.Array) -> jax.Array:
        return self.base.expected(t)[self.exchange(t)]

    def second_moment(self, t: jax.Array) -> jax.Array:
        return second_moment(self.base, t)[self.exchange(t)]

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return self.base.sample(t, self.exchange(t)[arm], noise)
