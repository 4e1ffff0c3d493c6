"""Progressive feedback: outcomes that are observed one after another before the loss."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._core.arms import pick
from jaxbandit._core.fields import Numbers, float_dtype, number, pytree_dataclass, show
from jaxbandit.delays.base import Delays
from jaxbandit.delays.fixed import Fixed
from jaxbandit.losses.base import ShowsStages


@pytree_dataclass
class Funnel(ShowsStages):
    r"""Progressive feedback in stages, such as click, basket, purchase: each stage may follow only where the one before occurred.

    An action on arm i reaches stage j with probability :math:`r_{j,i}`, given that it reached stage j - 1. The outcome of a stage is 1 if it
    is reached, else 0. The outcome of stage j < J is observed after its own delay, and the last after the delay of the game.
    The loss is 0 if the last stage is reached, else 1, with mean :math:`1 - \prod_j r_{j,i}`.

    Args:
      rates: ``[J, K]``, :math:`r_{j,i}`, the last row for the stage that decides the loss.
      delays: J - 1 delay models, counted from the action; by default all outcomes before the loss are observed at once. An
        outcome is observed neither before an earlier one nor after the loss.

    >>> import jaxbandit as jb
    >>> law = jb.losses.Funnel([[0.5, 0.25], [0.5, 1.0]])
    >>> law.expected(t=1), law.stages(t=1, arm=0, noise=0.4), law.sample(t=1, arm=0, noise=0.4)
    (Array([0.75, 0.75], dtype=float32), Array([1.], dtype=float32), Array(1., dtype=float32))
    """

    rates: Numbers = number(high=1.0, axes="JK")
    delays: tuple[Delays, ...] = ()
    stationary = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.delays, list):
            object.__setattr__(self, "delays", tuple(self.delays))

    @property
    def num_arms(self) -> int:
        return np.shape(self.rates)[1]

    @property
    def stage_delays(self) -> tuple[Delays, ...]:
        return self.delays or (Fixed(0),) * (np.shape(self.rates)[0] - 1)

    def check(self) -> None:
        stages = np.shape(self.rates)[0]
        if not isinstance(self.delays, tuple) or not all(isinstance(law, Delays) for law in self.delays):
            raise ValueError(
                f"losses.Funnel(delays={show(self.delays)}): delays is a list of delay models, such as [jb.delays.Fixed(3)]"
            )
        if len(self.stage_delays) != stages - 1:
            raise ValueError(
                f"losses.Funnel: {len(self.delays)} delay models for {stages} stages; give {stages - 1}, the last stage has the delay of the game"
            )

    def prepare(self) -> "Funnel":
        return Funnel(self.rates, tuple(law.prepare() for law in self.delays))

    def expected(self, t: jax.Array) -> jax.Array:
        return 1 - self._reached()[-1]

    def stages(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return self._outcomes(arm, noise)[:-1]

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return 1 - self._outcomes(arm, noise)[-1]

    def _reached(self) -> jax.Array:
        """The probability that an action reaches each stage, ``[J, K]``."""
        return jnp.cumprod(jnp.asarray(self.rates, float_dtype()), 0)

    def _outcomes(self, arm: jax.Array, noise: jax.Array) -> jax.Array:
        # One uniform number decides how far the action gets.
        reached = jax.vmap(pick, (0, None))(self._reached(), jnp.asarray(arm))
        return (jnp.asarray(noise) < reached).astype(reached.dtype)
