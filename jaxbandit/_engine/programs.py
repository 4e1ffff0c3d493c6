"""Compiled programs. On a CPU a program of blocks is compiled as one function with wide vectors, where XLA can.

XLA:CPU otherwise starts some forty small kernels a round and shares each among threads, which takes several times as long as the
kernels themselves. The mark is on one call of one program: no flag or environment variable of the process changes, and neither do the
user's other programs. XLA cannot emit every program as one function, and only compiling it tells; :func:`settled` tries.
"""

import dataclasses
import inspect
import threading
from collections.abc import Callable
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata

from jaxbandit._core.fields import float_dtype
from jaxbandit._engine.player import Player

WIDE = {"xla_cpu_prefer_vector_width": 512}  # bits, where the processor has such vectors: XLA avoids them by itself


class Program:
    """A function of a player and arrays, jitted as the player's execution says; keyword-only parameters are static."""

    def __init__(self, function: Callable[..., Any]):
        names = [one.name for one in inspect.signature(function).parameters.values() if one.kind is one.KEYWORD_ONLY]

        def unmarked(*arguments: Any, **options: Any) -> Any:
            with set_xla_metadata(xla_cpu_small_call=None, inlineable=None):  # calls inside must not carry the mark
                return function(*arguments, **options)

        inner = jax.jit(unmarked, static_argnames=names)

        def marked(*arguments: Any, **options: Any) -> Any:
            with set_xla_metadata(xla_cpu_small_call="true", inlineable="false"):
                return inner(*arguments, **options)

        self.function = function
        self.inner: Any = inner
        self.plain: Any = jax.jit(function, static_argnames=names)
        self.one_function: Any = jax.jit(marked, static_argnames=names, compiler_options=WIDE)
        self.known: dict[Any, bool] = {}  # shape of a program: whether XLA can emit it as one function
        self.trying: dict[Any, threading.Lock] = {}  # by shape: programs of different shapes are compiled at the same time

    def __call__(self, player: Player, *arguments: Any, **options: Any) -> Any:
        return self.jitted(player)(player, *arguments, **options)

    def jitted(self, player: Player) -> Any:
        """The jitted function that plays for this player."""
        return self.one_function if player.execution.one_function else self.plain

    def eval_shape(self, player: Player, *arguments: Any, **options: Any) -> Any:
        """Shapes and dtypes of what a call returns."""
        return self.plain.eval_shape(player, *arguments, **options)

    def lower(self, player: Player, *arguments: Any, **options: Any) -> Any:
        """The program for these arguments, to be compiled."""
        return self.jitted(player).lower(player, *arguments, **options)

    def clear_cache(self) -> None:
        """Forget what was compiled."""
        self.plain.clear_cache()
        self.one_function.clear_cache()
        self.inner.clear_cache()
        self.known.clear()


def settled(program: Program, player: Player, *arguments: Any, **options: Any) -> Player:
    """The player with an execution that compiles, on a CPU as one function if XLA can.

    ``arguments`` play no round, so that this compiles the program and does nothing else.
    """
    if not player.execution.one_function:
        return player
    leaves, structure = jax.tree.flatten((player, arguments))
    shape = structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves), tuple(options.items()), float_dtype()
    plain = not_one_function(player)
    with program.trying.setdefault(shape, threading.Lock()):  # dict.setdefault is atomic
        if shape not in program.known and "stablehlo.scatter" in program.lower(player, *arguments, **options).as_text():
            program.known[shape] = False  # XLA would refuse it, with a warning on stderr
        if shape not in program.known:
            try:
                program(player, *arguments, **options)
                program.known[shape] = True
            except jax.errors.JaxRuntimeError:  # a scatter or a fusion that XLA:CPU does not emit within one function
                program.known[shape] = False
        return player if program.known[shape] else plain


def not_one_function(player: Player) -> Player:
    """The player with programs that are compiled as XLA does by itself."""
    return dataclasses.replace(player, execution=dataclasses.replace(player.execution, one_function=False))
