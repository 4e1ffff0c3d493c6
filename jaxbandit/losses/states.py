"""Delayed losses with states that are observed at once (intermediate observations)."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._core.arms import draw, pick
from jaxbandit._core.fields import Numbers, is_concrete, number, pytree_dataclass, show
from jaxbandit.losses.base import DifferentiableLosses, Losses, ShowsSignals, second_moment

WITHIN = 1e-4  # how far the sum of a row may be from 1


@pytree_dataclass
class IntermediateStates(ShowsSignals, DifferentiableLosses):
    """Intermediate observations: an action leads to a state, which is observed at once; the delayed loss is that of the state.

    The state of an action on arm a is s with probability P(s|a). Its loss is drawn from a loss model whose "arms" are the states. So
    the mean loss of arm a is :math:`\\sum_s P(s|a)\\,\\theta_t(s)`.

    State and loss are drawn from one uniform number: the state is the cell it falls into, the loss its place within the cell.

    Args:
      transitions: ``[K, S]``, P(s|a); every row sums to 1.
      losses: the loss model of the S states; one that draws from a uniform number, such as Bernoulli.

    >>> import jaxbandit as jb
    >>> law = jb.losses.IntermediateStates([[0.5, 0.5], [1.0, 0.0]], jb.losses.Bernoulli([0.0, 1.0]))
    >>> law.expected(t=1), law.signal(t=1, arm=0, noise=0.75)
    (Array([0.5, 0. ], dtype=float32), Array(1, dtype=int32))

    Reference: the setting is that of Vernade, György & Mann, *Non-Stationary Delayed Bandits with Intermediate Observations*, ICML 2020,
    and Esposito, Masoudian, Qiu, van der Hoeven, Cesa-Bianchi & Seldin, *Delayed Bandits: When Do Intermediate Observations Help?*, ICML 2023
    (recalled).
    """

    transitions: Numbers = number(high=1.0, axes="KS")
    losses: Losses

    @property
    def num_arms(self) -> int:
        return np.shape(self.transitions)[0]

    @property
    def num_signals(self) -> int:
        return np.shape(self.transitions)[1]

    @property
    def stationary(self) -> bool:
        return self.losses.stationary

    @property
    def length(self) -> int | None:
        return self.losses.length

    def check(self) -> None:
        inner, name = self.losses, "losses.IntermediateStates"
        if not isinstance(inner, Losses) or inner.needs_key or isinstance(inner, ShowsSignals):
            raise ValueError(
                f"{name}(losses={type(inner).__name__}(…)): give the law of the states' losses, one that draws from a uniform number: "
                "Bernoulli, Switching, Drifting, StochasticallyConstrained or Table"
            )
        if inner.num_arms != self.num_signals:
            raise ValueError(
                f"{name}: transitions lead to {self.num_signals} states, and losses has {inner.num_arms}; give one for each"
            )
        check_rows(f"{name}(transitions=…)", self.transitions)

    def prepare(self) -> "IntermediateStates":
        return IntermediateStates(self.transitions, self.losses.prepare())

    def expected(self, t: jax.Array) -> jax.Array:
        return jnp.asarray(self.transitions) @ self.losses.expected(t)

    def second_moment(self, t: jax.Array) -> jax.Array:
        return jnp.asarray(self.transitions) @ second_moment(self.losses, t)

    def signal(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return self._drawn(arm, noise)[0]

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return self.losses.sample(t, *self._drawn(arm, noise))

    def _drawn(self, arm: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The state of an action, and where in the state's cell the noise is, in (0, 1)."""
        arm, noise = jnp.asarray(arm), jnp.asarray(noise)
        weights = jax.vmap(pick, (1, None))(jnp.asarray(self.transitions), arm)  # [S, ...]
        state, below = draw(weights, noise), jnp.cumsum(weights, 0)
        weight = pick(weights, state)
        place = (noise * below[-1] - (pick(below, state) - weight)) / weight
        edge = jnp.finfo(weights.dtype).eps
        return state, jnp.clip(place, edge, 1 - edge)


def check_rows(name: str, transitions: Numbers) -> None:
    """Raise if a row of P(s|a), ``[K, S]`` or ``[K, S, runs]``, does not sum to 1."""
    if not is_concrete(transitions):
        return
    sums = np.asarray(transitions, np.float64).sum(1)
    wrong = np.argwhere(np.abs(sums - 1) > WITHIN)
    if len(wrong):
        row, *run = wrong[0]
        whose = f" of run {run[0]}" if run else ""
        raise ValueError(
            f"{name}: row {row} of transitions{whose} sums to {show(float(sums[tuple(wrong[0])]))}; "
            "the probabilities of an arm's states sum to 1"
        )
