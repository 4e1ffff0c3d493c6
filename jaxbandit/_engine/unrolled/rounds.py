"""The rounds of a game, unrolled: see :mod:`jaxbandit._engine.unrolled.evaluator`."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr

from jaxbandit._core.fields import float_dtype
from jaxbandit._engine.game import Game, State
from jaxbandit._engine.per_run import single_run
from jaxbandit._engine.unrolled.evaluator import Evaluator
from jaxbandit._engine.unrolled.vectors import UNROLLED, Number, Rows, array_of, shared_vector

# Arms are unrolled, and the compile time grows with the numbers that one run computes in a round: see
# docs/appendix/accelerators.md.
FEW_ARMS, MOST_ARMS = 16, 32  # always; and if a round has no more than so many numbers:
MOST_NUMBERS = 11_000
TABLE = 128  # numbers; a larger table of a learner's state, such as a window over the last actions, stays in memory


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One leaf of the game or its state: as it is for a single run, and whether each run has its own."""

    shape: tuple[int, ...]
    per_run: bool
    in_memory: bool


class UnrolledRounds:
    """Rounds as in :class:`jaxbandit._engine.loop.ArrayRounds`, with a vector of runs for every number of one run's program."""

    def __init__(self, player: Any, game: Game, flags: Sequence[bool], state: State, probabilities: bool):
        """``player`` simulates one run; ``flags`` mark the leaves of the game that have a value for each run."""
        (self.runs,), self.arms, self.probabilities = game.runs.shape, game.losses.num_arms, probabilities
        self.evaluator = Evaluator(self.runs)
        one = single_run(game, flags)
        kind = type(player)
        like = jax.eval_shape(kind.start, player, one)
        self.program = jax.make_jaxpr(kind.step)(player, one, like, jax.ShapeDtypeStruct((), np.int32))
        self.tree = jax.tree.structure(state)
        self.leaves = [
            Leaf(leaf.shape, np.shape(block) != leaf.shape, leaf.ndim > 0 and (_is_ring(path) or leaf.size > TABLE))
            for (path, leaf), block in zip(jax.tree_util.tree_leaves_with_path(like), jax.tree.leaves(state), strict=True)
        ]
        like_player = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), player)
        self.game = list(zip(jax.tree.leaves((like_player, one)), jax.tree.leaves((player, game)), strict=True))

    def _given(self, leaf: jax.ShapeDtypeStruct, value: jax.Array) -> Any:
        """A leaf of the game, constant over the rounds."""
        per_run = np.shape(value) != leaf.shape
        if leaf.size > UNROLLED:
            return Rows(jnp.asarray(value), per_run)
        if per_run:
            return self.evaluator.split(value)
        flat = jnp.reshape(value, -1)
        return array_of([self.evaluator.once(lambda index=index: flat[index]) for index in range(leaf.size)], leaf.shape)

    def enter(self, state: State, done: jax.Array) -> Any:
        """The carry of the loop after round ``done``: the round and every number as vectors, memory, and x_t as vectors."""

        def one(leaf: Leaf, value: jax.Array):
            if leaf.in_memory:
                return value
            size = int(np.prod(leaf.shape))
            flat = value.reshape(size, -1) if leaf.per_run else jnp.broadcast_to(value.reshape(-1, 1), (size, self.runs))
            return [flat[index] for index in range(size)]

        now = jnp.broadcast_to(jnp.asarray(done, jnp.int32), (self.runs,))
        values = [one(leaf, value) for leaf, value in zip(self.leaves, jax.tree.leaves(state), strict=True)]
        none = jnp.zeros(self.runs, float_dtype())
        carry = now, values, [none] * self.arms if self.probabilities else None
        self.play(done, carry)  # computes the numbers that are the same in every round; XLA drops the rest
        self.evaluator.pack()
        return carry

    def play(self, t: jax.Array, carry: Any) -> Any:
        now, values, _ = carry
        now = now + 1  # t as a vector too: a scalar that is computed in every round is a separate kernel
        inputs = [self._carried(leaf, value) for leaf, value in zip(self.leaves, values, strict=True)]
        self.evaluator.next_fixed = 0
        game = [self._given(*leaf) for leaf in self.game]
        *state, x = self.evaluator.run(self.program, [*game, *inputs, array_of([Number(now, lambda: t)], ())])
        values = [self._kept(*each) for each in zip(self.leaves, state, values, strict=True)]
        return now, values, [self.evaluator.vector(number) for number in x.flat] if self.probabilities else None

    def _carried(self, leaf: Leaf, value: Any) -> Any:
        if leaf.in_memory:
            return Rows(value, leaf.per_run)
        return array_of([Number(one) if leaf.per_run else shared_vector(one) for one in value], leaf.shape)

    def _kept(self, leaf: Leaf, new: Any, old: Any) -> Any:
        if leaf.in_memory:
            return self.evaluator.settled(new)
        return [self.evaluator.vector(number).astype(one.dtype) for number, one in zip(new.flat, old, strict=True)]

    def leave(self, carry: Any) -> tuple[State, jax.Array | None]:
        def one(leaf: Leaf, value: Any):
            if leaf.in_memory:
                return value
            if leaf.per_run:
                return jnp.stack(value).reshape(*leaf.shape, self.runs)
            return jnp.stack([vector[0] for vector in value]).reshape(leaf.shape)

        _, values, x = carry
        state = jax.tree.unflatten(self.tree, [one(leaf, value) for leaf, value in zip(self.leaves, values, strict=True)])
        return state, None if x is None else jnp.stack(x)


def count_numbers(program: ClosedJaxpr | Jaxpr) -> int:
    """The number of numbers that a program computes; the body of a loop counts once."""
    total = 0
    for step in (program.jaxpr if isinstance(program, ClosedJaxpr) else program).eqns:
        values = [one for value in step.params.values() for one in (value if isinstance(value, tuple | list) else [value])]
        inner = [count_numbers(one) for one in values if isinstance(one, ClosedJaxpr | Jaxpr)]
        made: list[Any] = [out.aval for out in step.outvars]
        total += sum(inner) if inner else sum(int(np.prod(one.shape)) for one in made)
    return total


def _is_ring(path: tuple) -> bool:
    return jax.tree_util.keystr(path).startswith(".pending")
