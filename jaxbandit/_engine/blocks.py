"""Blocks of runs on devices: the compiled programs that simulate them, and the threads that call the programs.

A block is a fixed number of runs, simulated by one compiled program on one device. XLA rounds differently for arrays of other
shapes, so bitwise identical results need one shape: runs are filled up to whole blocks. Their size is chosen by
:mod:`jaxbandit._engine.choose` from the number of arms and the platform. It does not depend on the number of runs, devices or
machines. (An accelerator with little memory has smaller blocks.) Simulations and gradients of many runs use :func:`play_blocks`.
"""

import dataclasses
import functools
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import Any, TypeVar

import jax
import numpy as np

from jaxbandit._core.fields import float_dtype
from jaxbandit._engine import per_run
from jaxbandit._engine.choose import MEMORY, block_size, check_memory, choose_execution
from jaxbandit._engine.devices import Threads, idlest_devices, memory, platform
from jaxbandit._engine.execution import Execution
from jaxbandit._engine.game import Game, Records, State
from jaxbandit._engine.player import Player
from jaxbandit._engine.programs import Program, not_one_function
from jaxbandit._io.progress import Progress

T = TypeVar("T")


def _start(player: Player, game: Game) -> State:
    """The state of a block before round 1."""
    return player.start(game)


def _advance(
    player: Player, game: Game, state: State, done: jax.Array, record: jax.Array, *, probabilities: bool
) -> tuple[State, Records]:
    """Advance a block from round ``done`` to the last round of ``record``. Returns its state and the records."""
    return player.advance(game, state, done, record, probabilities)


def _grow(player: Player, game: Game, state: State, done: jax.Array) -> State:
    """The state of a block whose queue ended at round ``done``, with the longer queue of the player."""
    return player.grow(game, state, done)


# At module level, because JAX's caches compare functions by reference.
start, grow, advance = jax.jit(_start), jax.jit(_grow), Program(_advance)


def execution_for(
    game: Game,
    *,
    flags: Sequence[bool] = (),
    block: int | None = None,
    at_once: int = 1,
    differentiable: bool = False,
    rounds: int | None = None,
    resumable: bool = True,
) -> Execution:
    """The execution plan of a game on this machine, with ``at_once`` blocks on a device at a time.

    The other arguments are those of :func:`jaxbandit._engine.choose.choose_execution`.
    """
    where = platform()
    room = None if where == "cpu" else (memory() or MEMORY) // at_once
    return choose_execution(
        game, where, room, block=block, flags=flags, differentiable=differentiable, rounds=rounds, resumable=resumable
    )


def start_shapes(player: Player, game: Game, runs: int) -> State:
    """Shapes and dtypes of the state of ``runs`` runs of the game."""
    leaves, structure = jax.tree.flatten((player, game))
    return _start_shapes(structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves), runs, float_dtype())


# Cached: each evaluation takes a quarter of a millisecond, and a simulation needs many.
@functools.lru_cache(maxsize=256)
def _start_shapes(structure: Any, leaves: tuple[tuple[tuple[int, ...], Any], ...], runs: int, dtype: Any) -> State:
    del dtype  # part of the cache key: the shapes depend on it
    player, game = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*leaf) for leaf in leaves])
    return start.eval_shape(player, per_run.with_runs(game, player.execution.per_run, runs))


def leaves_with_runs(player: Player, game: Game) -> list[bool]:
    """Which leaves of the state have the runs as last axis: those whose shape changes with the number of runs."""
    size = block_size(game.losses.num_arms)
    some, more = (jax.tree.leaves(start_shapes(player, game, count)) for count in (size, size + 1))
    return [one.shape != other.shape for one, other in zip(some, more, strict=True)]


def put(tree: T, device: Any) -> T:
    """Put ``tree`` on a device. On a CPU nothing is: programs take arrays of NumPy, and all threads share the default device.

    A transfer takes 10 µs for each array, some 50 of them in a simulation of one block.
    """
    if platform() == "cpu" and jax.config.jax_default_device is None:  # pyright: ignore[reportAttributeAccessIssue]
        return tree
    return jax.device_put(tree, device)


@dataclasses.dataclass(frozen=True)
class Block:
    """Runs that are simulated together on one device."""

    player: Player  # on the device
    game: Game  # with the ids of these runs, on the device
    first: int  # index of its first run among all requested runs
    runs: int  # number of requested runs in it; the others are padding
    device: Any
    _progress: Progress
    _stopped: threading.Event

    def put(self, tree: T) -> T:
        """Put ``tree`` on the device of the block.

        Outputs of a program must be put there too: they are not committed to a device, and would recompile the next program.
        """
        return put(tree, self.device)

    def played(self, rounds: int) -> None:
        """Report that the block has advanced by ``rounds`` rounds; raises if the caller was interrupted."""
        if self._stopped.is_set():
            raise CancelledError
        self._progress.update(rounds * self.runs)


def play_blocks(
    play: Callable[[Block], T],
    player: Player,
    game: Game,
    *,
    settle: Callable[[Block], Player] | None = None,
    size: int | None = None,
    progress: Progress | None = None,
) -> list[T]:
    """Call ``play(block)`` for all blocks of ``game``, each on a free device. Results are in the order of the runs.

    Args:
      play: calls a :class:`~jaxbandit._engine.programs.Program` with ``block.player`` and ``block.game`` and brings its results to the
        host; runs in a thread.
      player: the player, with its execution plan.
      game: the game; the last block is padded with the run ids that follow the last one.
      settle: is called with the first block and returns the player of all blocks, with an execution that compiles
        (:func:`jaxbandit._engine.programs.settled`). By default no program is one function.
      size: runs in a block; by default that of the execution.
      progress: the bar that ``block.played`` moves.

    On an interrupt or an error, blocks that have not started are dropped, and others end at their next ``block.played``.
    """
    flags = player.execution.per_run
    size = size or player.execution.block
    check_memory(per_run.with_runs(game, flags, size), start_shapes(player, game, size), memory())
    wanted, progress, stopped = game.runs.size, progress or Progress(False, 0, ""), threading.Event()
    ids = np.asarray(game.runs)
    ids = np.append(ids, (int(ids[-1]) + 1 + np.arange(-wanted % size)).astype(np.uint32))
    starts = range(0, wanted, size)

    def block(first: int, player: Player, device: Any) -> Block:
        part = per_run.of_block(game, flags, ids[first : first + size], first)
        runs = min(size, wanted - first)
        return Block(put(player, device), put(part, device), first, runs, device, progress, stopped)

    free: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def play_one(first: int, player: Player) -> T:
        device = free.get()
        try:
            return play(block(first, player, device))
        finally:
            free.put(device)

    with idlest_devices(len(starts)) as devices:
        for device in devices:
            free.put(device)
        player = not_one_function(player) if settle is None else settle(block(0, player, devices[0]))
        if len(starts) == 1:
            return [play_one(0, player)]
        # As many threads as devices, or as cores of a CPU: JAX does not guarantee that two calls of one thread run at once.
        # Blocks are not assigned to threads in advance, so that a slow thread does not delay the others.
        threads = Threads(len(devices), "jaxbandit-block")
        try:
            futures = [threads.submit(play_one, first, player) for first in starts]
            return [future.result() for future in futures]
        finally:
            stopped.set()
            threads.shutdown(wait=False, cancel_futures=True)


def join(blocks: Sequence[T], runs: int, has_runs: Sequence[bool] | None = None) -> T:
    """Concatenate trees of arrays of consecutive blocks, without the padding of the last block.

    Every leaf has the runs as last axis, or those that ``has_runs`` marks; others are taken from the first block.
    """
    leaves, structures = zip(*(jax.tree.flatten(block) for block in blocks), strict=True)
    marks = has_runs or [True] * len(leaves[0])
    joined = [np.concatenate(parts, -1)[..., :runs] if has else parts[0] for has, *parts in zip(marks, *leaves, strict=True)]
    return jax.tree.unflatten(structures[0], joined)
