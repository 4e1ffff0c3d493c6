"""Compiled programs. On a CPU a program of blocks is compiled as one function with wide vectors, where XLA can.

XLA:CPU otherwise starts some forty small kernels a round and divides each among threads. That takes several times as long as the
kernels themselves. The mark is on one call of one program. Flags and environment variables of the process, and the user's other
programs, do not change. XLA cannot emit every program as one function, and only compilation shows it; :func:`settled` tries.

A call within a user's program can be one function too (:meth:`Program.inside`), with vectors as wide as that program's.
"""

import dataclasses
import inspect
import threading
from collections.abc import Callable
from typing import Any

import jax
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata

from jaxbandit._core.fields import float_dtype
from jaxbandit._engine import sharing
from jaxbandit._engine.player import Player

MARK = {"xla_cpu_small_call": "true", "inlineable": "false"}
WIDE = {"xla_cpu_prefer_vector_width": 512}  # bits, where the processor has such vectors: XLA avoids them by default


class Program:
    """A function of a player and arrays, jitted for the player's execution; keyword-only parameters are static."""

    def __init__(self, function: Callable[..., Any]):
        names = [one.name for one in inspect.signature(function).parameters.values() if one.kind is one.KEYWORD_ONLY]

        def unmarked(*arguments: Any, **options: Any) -> Any:
            with set_xla_metadata(xla_cpu_small_call=None, inlineable=None):  # calls inside must not carry the mark
                return function(*arguments, **options)

        inner = jax.jit(unmarked, static_argnames=names)

        def marked(*arguments: Any, **options: Any) -> Any:
            with set_xla_metadata(**MARK):
                return inner(*arguments, **options)

        def all_used(*arguments: Any, **options: Any) -> Any:
            return unmarked(*arguments, **options), arguments

        self.function = function
        self.inner: Any = inner
        self.plain: Any = jax.jit(function, static_argnames=names)
        self.one_function: Any = jax.jit(marked, static_argnames=names, compiler_options=WIDE)
        self.all_used: Any = jax.jit(all_used, static_argnames=names)
        self.known: dict[Any, bool] = {}  # shape of a program: whether XLA can emit it as one function
        self.trying: dict[Any, threading.Lock] = {}  # by shape: programs of different shapes are compiled at the same time

    def __call__(self, player: Player, *arguments: Any, **options: Any) -> Any:
        return sharing.call(self.jitted(player), player, *arguments, **options)

    def jitted(self, player: Player) -> Any:
        """The jitted function for this player."""
        return self.one_function if player.execution.one_function else self.plain

    def eval_shape(self, player: Player, *arguments: Any, **options: Any) -> Any:
        """Shapes and dtypes of the outputs of a call."""
        return self.plain.eval_shape(player, *arguments, **options)

    def lower(self, player: Player, *arguments: Any, **options: Any) -> Any:
        """The lowered program for these arguments."""
        return self.jitted(player).lower(player, *arguments, **options)

    def inside(self, player: Player, *arguments: Any, **options: Any) -> Any:
        """Call the program within a user's program, as one function; only where :meth:`emitted` is True.

        XLA:CPU crashes at a marked call with an unused parameter. Hence the call returns its parameters. Barriers keep JAX from
        dropping these results and XLA from replacing parameters by constants.
        """

        def one_function(*given: Any) -> Any:
            with set_xla_metadata(**MARK):
                made = self.all_used(*lax.optimization_barrier(given), **options)
            return lax.optimization_barrier(made)[0]

        def exported(*given: Any) -> Any:  # exported for another platform than that of this process
            return self.function(*given, **options)

        return lax.platform_dependent(player, *arguments, cpu=one_function, default=exported)

    def emitted(self, player: Player, *arguments: Any, **options: Any) -> bool:
        """Whether XLA can emit a call with arguments of these shapes as one function. Compiles unoptimised, does not run.

        False with several devices: a program that is divided among them exchanges data inside the call.
        """
        if jax.device_count() > 1:
            return False
        leaves, structure = jax.tree.flatten((player, arguments))
        leaves = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
        player, arguments = jax.tree.unflatten(structure, leaves)
        shape = _shape(structure, leaves, options)
        with self.trying.setdefault(shape, threading.Lock()):
            if shape not in self.known:
                lowered = self.lower(player, *arguments, **options)
                try:
                    self.known[shape] = "stablehlo.scatter" not in lowered.as_text()
                    if self.known[shape]:
                        lowered.compile({"xla_backend_optimization_level": 0})
                except jax.errors.JaxRuntimeError:
                    self.known[shape] = False
            return self.known[shape]

    def clear_cache(self) -> None:
        """Drop all compiled programs."""
        self.plain.clear_cache()
        self.one_function.clear_cache()
        self.inner.clear_cache()
        sharing.forget()
        self.all_used.clear_cache()
        self.known.clear()


def settled(program: Program, player: Player, *arguments: Any, **options: Any) -> Player:
    """The player with an execution that compiles, on a CPU as one function if XLA can.

    ``arguments`` request zero rounds, so that this call only compiles the program.
    """
    if not player.execution.one_function:
        return player
    leaves, structure = jax.tree.flatten((player, arguments))
    shape = _shape(structure, leaves, options)
    with program.trying.setdefault(shape, threading.Lock()):  # dict.setdefault is atomic
        if shape not in program.known and "stablehlo.scatter" in program.lower(player, *arguments, **options).as_text():
            program.known[shape] = False  # XLA would reject it, with a warning on stderr
        if shape not in program.known:
            try:
                program(player, *arguments, **options)
                program.known[shape] = True
            except jax.errors.JaxRuntimeError:  # a scatter or a fusion that XLA:CPU does not emit within one function
                program.known[shape] = False
        return player if program.known[shape] else not_one_function(player)


def settled_before(program: Program, player: Player, *arguments: Any, **options: Any) -> Player | None:
    """:func:`settled` of a program that was settled before; None of another. Shapes will do in place of arguments."""
    if not player.execution.one_function:
        return None
    leaves, structure = jax.tree.flatten((player, arguments))
    known = program.known.get(_shape(structure, leaves, options))
    return None if known is None else player if known else not_one_function(player)


def _shape(structure: Any, leaves: Any, options: dict[str, Any]) -> Any:
    """Everything that a program depends on, except the values of its arguments."""
    return structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves), tuple(options.items()), float_dtype()


def not_one_function(player: Player) -> Player:
    """The player with programs that are compiled with XLA's defaults."""
    return dataclasses.replace(player, execution=dataclasses.replace(player.execution, one_function=False))
