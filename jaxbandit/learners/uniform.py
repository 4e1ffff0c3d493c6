"""Uniform play: the yardstick that learns nothing."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxbandit._core.fields import float_dtype, pytree_dataclass
from jaxbandit.learners.base import Learner, Observation, Round


@pytree_dataclass
class Uniform(Learner):
    """Chooses every arm with probability 1/K; its regret is T times the mean gap.

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.25, 0.75]), jb.delays.Fixed(0), rounds=8, runs=2, seed=0).regret[-1]
    array([2., 2.], dtype=float32)
    """

    adds_only: ClassVar[bool] = True

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> jax.Array:
        return jnp.full((num_arms, *runs_shape), 1 / num_arms, float_dtype())

    def act(self, state: jax.Array, round: Round) -> tuple[jax.Array, Any, jax.Array]:
        return state, (), state

    def observe(self, state: jax.Array, observation: Observation) -> jax.Array:
        return state
