"""Delays that depend on the arm."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxbandit._core.arms import pick
from jaxbandit._core.fields import named, pytree_dataclass, static
from jaxbandit.delays.base import Composed, Delays


@pytree_dataclass
class ArmDependent(Composed):
    """Arm-dependent delays: arm i has the delay model ``laws[i]``.

    >>> import jaxbandit as jb
    >>> law = jb.delays.ArmDependent([jb.delays.Fixed(0), jb.delays.Fixed(8)])
    >>> law.bound, int(law.draw(t=1, arm=1, loss=0.0, noise=0.0))
    (8, 8)
    """

    laws: tuple[Delays, ...]
    shared: bool = static(default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.laws, list):
            object.__setattr__(self, "laws", tuple(self.laws))

    def parts(self) -> dict[str, Any]:
        return {f"laws[{arm}]": law for arm, law in enumerate(self.laws)}

    @property
    def num_arms(self) -> int | None:
        return len(self.laws) if isinstance(self.laws, tuple) else None

    def check(self, num_arms: int) -> None:
        if not isinstance(self.laws, tuple) or not self.laws or not all(isinstance(law, Delays) for law in self.laws):
            raise ValueError(f"delays.{named(self, 'laws')}: laws must be a list of delay models, one for each arm")
        if self.shared:
            raise ValueError(
                "delays.ArmDependent(shared=True): these delays depend on the arm, and runs choose different arms; leave shared out"
            )
        if len(self.laws) != num_arms:
            raise ValueError(f"delays.ArmDependent: {len(self.laws)} laws for {num_arms} arms; give one law for each arm")
        super().check(num_arms)

    def prepare(self) -> "ArmDependent":
        return ArmDependent(tuple(law.prepare() for law in self.laws))

    def draw(self, t: jax.Array, arm: jax.Array, loss: jax.Array, noise: jax.Array) -> jax.Array:
        shape = jnp.shape(arm)
        each = [jnp.broadcast_to(law.draw(t, arm, loss, noise), shape) for law in self.laws]
        return pick(jnp.stack(each), jnp.asarray(arm))
