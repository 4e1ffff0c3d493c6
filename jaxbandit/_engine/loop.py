"""Evaluation of the rounds of a block, and the loop over them."""

from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandit._core.fields import float_dtype


class Rounds(Protocol):
    """An evaluation of rounds: the carry of the loop and its update."""

    def enter(self, state: Any, done: jax.Array) -> Any:
        """The carry of the loop after round ``done``."""
        ...

    def play(self, t: jax.Array, carry: Any) -> Any:
        """The carry after round t."""
        ...

    def leave(self, carry: Any) -> tuple[Any, jax.Array | None]:
        """The state as arrays, and x_t ``[K, ...]`` of the last round if requested."""
        ...


class ArrayRounds:
    """Rounds on arrays ``[K, ...]``, as :meth:`jaxbandit._engine.game.Game.step` is written; the loop carries the state and x_t."""

    def __init__(self, step: Callable, num_arms: int, runs_shape: tuple[int, ...], probabilities: bool):
        self.step, self.shape, self.probabilities = step, (num_arms, *runs_shape), probabilities

    def enter(self, state: Any, done: jax.Array) -> Any:
        return state, jnp.zeros(self.shape, float_dtype()) if self.probabilities else None

    def play(self, t: jax.Array, carry: Any) -> Any:
        state, x = self.step(carry[0], jnp.asarray(t))  # without jit the loop counts in Python
        return state, x if self.probabilities else None

    def leave(self, carry: Any) -> tuple[Any, jax.Array | None]:
        return carry


def play_up_to(last: jax.Array, done: jax.Array, one_round: Callable, carry: Any, chunk: int) -> Any:
    """Rounds ``done + 1 … last``: whole chunks, each a loop of a known number of turns, and then the rest one by one."""
    if not chunk:
        return lax.fori_loop(done + 1, last + 1, one_round, carry)

    def one_chunk(_, carry):
        def next_round(_, carry):
            done, carry = carry
            return done + 1, one_round(done + 1, carry)

        return lax.fori_loop(0, chunk, next_round, carry)

    done, carry = lax.fori_loop(0, (last - done) // chunk, one_chunk, (done, carry))
    return lax.fori_loop(done + 1, last + 1, one_round, carry)
