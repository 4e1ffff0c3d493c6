"""Blocks of runs on devices: where the programs that play many runs are compiled, and what knows of devices and threads.

A block is a fixed number of runs, played by one compiled program on one device. XLA rounds differently for arrays of other
shapes, so the same bits need the same shape: runs are filled up to whole blocks. Their size is chosen by :mod:`jaxbandit.forms`, on a
CPU by the number of arms alone, whatever the number of runs, devices or machines. Everything that plays many runs, simulations and
gradients alike, goes through :func:`play_blocks`.
"""

import collections
import contextlib
import dataclasses
import functools
import inspect
import os
import queue
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, TypeVar

import jax
import numpy as np

from jaxbandit.forms import MEMORY, Form, block_size, check_memory, choose_form, with_runs
from jaxbandit.game import Game, Records, State
from jaxbandit.progress import Progress
from jaxbandit.pytrees import float_dtype

try:
    from jax import enable_x64
except ImportError:  # before jax 0.8
    from jax.experimental import enable_x64  # type: ignore[no-redef]

T = TypeVar("T")
WHOLE_LOOP = 1 << 26  # bytes; smaller loops are compiled into one function by `use_all_cores`


def compiled(function: Callable[..., Any]) -> Any:
    """``jax.jit``; parameters that can only be given by keyword are static, a part of the program."""
    parameters = inspect.signature(function).parameters.values()
    return jax.jit(function, static_argnames=[one.name for one in parameters if one.kind is one.KEYWORD_ONLY])


def _start(game: Game) -> State:
    """The state of a block before round 1."""
    return game.start()


def _advance(
    game: Game, state: State, done: jax.Array, record: jax.Array, *, probabilities: bool, form: Form | None = None
) -> tuple[State, Records]:
    """The state of a block, of which ``done`` rounds are played, at the last round of ``record``, and what is recorded."""
    if form is None:
        return game.advance(state, done, record, probabilities)
    return form.advance(game, state, done, record, probabilities)


# They live as long as the module: JAX's caches know functions by reference.
start, advance = compiled(_start), compiled(_advance)
tracing = threading.Lock()  # two threads that ask for one program at once would both trace it


def platform() -> str:
    """Where blocks are played: "cpu", "gpu" or "tpu"."""
    return jax.default_backend()


def form_for(game: Game, *, runs: int | None = None, at_once: int = 1) -> Form:
    """How ``runs`` runs of the game (those it has, by default) are played here, with ``at_once`` blocks on a device at a time."""
    if platform() == "cpu":
        return choose_form(game, "cpu")
    return choose_form(game, platform(), (memory() or MEMORY) // at_once, runs)


def memory() -> int | None:
    """Bytes that a device may use, None if it does not say: on a CPU those of the machine."""
    if platform() != "cpu":
        return (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # systems other than Linux and macOS
        return None


def start_shapes(game: Game, runs: int) -> State:
    """Shapes and dtypes of the state of ``runs`` runs of the game."""
    leaves, structure = jax.tree.flatten(with_runs(game, runs))
    return _start_shapes(structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves), float_dtype())


# To ask JAX costs a quarter of a millisecond each time, and a simulation asks often.
@functools.lru_cache(maxsize=256)
def _start_shapes(structure: Any, leaves: tuple[tuple[tuple[int, ...], Any], ...], dtype: Any) -> State:
    del dtype  # what the program makes depends on it
    return start.eval_shape(jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*leaf) for leaf in leaves]))


def leaves_with_runs(game: Game) -> list[bool]:
    """Which leaves of the state have the runs as last axis: those whose shape changes with the number of runs."""
    size = block_size(game.losses.num_arms)
    some, more = (jax.tree.leaves(start_shapes(game, count)) for count in (size, size + 1))
    return [one.shape != other.shape for one, other in zip(some, more, strict=True)]


@dataclasses.dataclass(frozen=True)
class Block:
    """Some runs that are played together on one device."""

    game: Game  # with the ids of these runs, on the device
    first: int  # the place of its first run among all that are wanted
    runs: int  # how many of its runs are wanted; the others fill it up
    device: Any
    _progress: Progress
    _stopped: threading.Event

    def put(self, tree: T) -> T:
        """``tree`` on the device of the block. What a program returns must be put there too: it is bound to no device, and
        the program that takes it would be compiled once more."""
        return jax.device_put(tree, self.device)

    def played(self, rounds: int) -> None:
        """Tell that the runs of the block got ``rounds`` rounds further; ends the block if the caller was interrupted."""
        if self._stopped.is_set():
            raise CancelledError
        self._progress.update(rounds * self.runs)


def play_blocks(play: Callable[[Block], T], game: Game, *, size: int | None = None, progress: Progress | None = None) -> list[T]:
    """``play(block)`` for all runs of ``game``, block by block, each on a device that is free; in the order of the runs.

    Args:
      play: calls programs made by :func:`compiled` on ``block.game`` and brings their results to the host; runs in a thread.
      game: what is played; the last block is filled up with the run ids that follow the last one.
      size: runs in a block; by default :func:`block_size`.
      progress: the bar that ``block.played`` moves.

    On an interrupt or an error, blocks that have not begun are dropped, and others end at their next ``block.played``.
    """
    size = size or block_size(game.losses.num_arms)
    check_memory(with_runs(game, size), start_shapes(game, size), memory())
    wanted, progress, stopped = game.runs.size, progress or Progress(False, 0, ""), threading.Event()
    ids = np.asarray(game.runs)
    ids = np.append(ids, (int(ids[-1]) + 1 + np.arange(-wanted % size)).astype(np.uint32))
    starts = range(0, wanted, size)
    if len(starts) > 1:
        _warn_about_idle_cores()
    free: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def play_one(first: int) -> T:
        device = free.get()
        try:
            mine = jax.device_put(_of_block(game, ids, first, size), device)
            return play(Block(mine, first, min(size, wanted - first), device, progress, stopped))
        finally:
            free.put(device)

    with _idlest_devices(len(starts)) as devices:
        for device in devices:
            free.put(device)
        # As many threads as devices: JAX does not promise that two CPU devices work at once when one thread drives both. Which
        # device plays a block is left to chance, so that a slow one does not keep the others waiting.
        threads = Threads(len(devices), "jaxbandit-block")
        try:
            futures = [threads.submit(play_one, first) for first in starts]
            return [future.result() for future in futures]
        finally:
            stopped.set()
            threads.shutdown(wait=False, cancel_futures=True)


class Threads(ThreadPoolExecutor):
    """Threads that work in the precision of whoever hands them their work.

    ``with jax.enable_x64(True):`` holds in the thread that says it and in no other: in plain threads a simulation inside it
    would check its numbers in float64 and play in float32.
    """

    def submit(self, function: Callable[..., T], /, *arguments: Any, **options: Any) -> Future[T]:
        x64 = float_dtype() == np.float64

        def work() -> T:
            with enable_x64(x64):
                return function(*arguments, **options)

        return super().submit(work)


def _of_block(game: Game, ids: np.ndarray, first: int, size: int) -> Game:
    """The game with the ids of a block of runs, and with the values of its runs where runs have values of their own."""
    leaves, structure = jax.tree.flatten(game)
    columns = np.minimum(np.arange(first, first + size), game.runs.size - 1)
    for place, own in enumerate(game.own):
        if own:
            leaves[place] = np.asarray(leaves[place])[..., columns]
    return dataclasses.replace(jax.tree.unflatten(structure, leaves), runs=ids[first : first + size])


def join(blocks: Sequence[T], runs: int, has_runs: Sequence[bool] | None = None) -> T:
    """Trees of arrays of consecutive blocks as one, without what only filled up the last block.

    Every leaf has the runs as last axis, or those that ``has_runs`` marks; others are taken of the first block.
    """
    leaves, structures = zip(*(jax.tree.flatten(block) for block in blocks), strict=True)
    marks = has_runs or [True] * len(leaves[0])
    joined = [np.concatenate(parts, -1)[..., :runs] if has else parts[0] for has, *parts in zip(marks, *leaves, strict=True)]
    return jax.tree.unflatten(structures[0], joined)


_in_use: collections.Counter = collections.Counter()  # device -> calls of play_blocks at work on it
_counting = threading.Lock()


@contextlib.contextmanager
def _idlest_devices(most: int) -> Iterator[list[Any]]:
    """At most ``most`` of the local devices, those with the least to do first: several simulations may run at once."""
    with _counting:
        devices = sorted(jax.local_devices(), key=_in_use.__getitem__)[:most]  # stable: a lone simulation begins with the first
        _in_use.update(devices)
    try:
        yield devices
    finally:
        with _counting:
            _in_use.subtract(devices)


def use_all_cores() -> int:
    """Make one JAX device of each CPU core, so that blocks of runs share the work; returns how many.

    Must come before JAX starts (before the first array is made), because it tells XLA's CPU compiler how to treat loops, vectors
    and threads: for the whole process, through ``XLA_FLAGS`` and ``PJRT_NPROC``. It does nothing for a GPU or TPU: there, one device
    plays large blocks.

    >>> import jaxbandit as jb
    >>> jb.use_all_cores()  # doctest: +SKIP
    2
    """
    cores = count_cores()
    # XLA's CPU client reads this when it starts. A round is many small kernels: a pool of threads that shares them out costs
    # more than it brings (measured: 11 to 15 against 17 million rounds/s on one core), and steals from the other devices.
    os.environ.setdefault("PJRT_NPROC", "1")
    # Compile the loop over rounds into one function, where XLA can, instead of starting some forty kernels a round: 15 to 35 %
    # faster with the same bits, and devices stop borrowing each other's threads (two cores: from 1.5 to 2 times one).
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_extra_options" not in flags:
        option = f"--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold={WHOLE_LOOP}"
        flags = f"{flags} {option}".strip()
    # Vectors of 512 bits where the processor has them, which XLA avoids by itself: 5 to 30 % faster with the same bits.
    if "xla_cpu_prefer_vector_width" not in flags:
        flags = f"{flags} --xla_cpu_prefer_vector_width=512"
    os.environ["XLA_FLAGS"] = flags
    try:
        jax.config.update("jax_num_cpu_devices", cores)
    except RuntimeError as error:
        raise RuntimeError("use_all_cores(): JAX has already started; call it first, before any array is made") from error
    # Each thread computes itself what it asks for: handing a short program to another thread takes longer than running it.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    return cores


def count_cores() -> int:
    """How many CPU cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux says which cores a process is bound to
        return os.cpu_count() or 1


@functools.cache
def _warn_about_idle_cores() -> None:
    if jax.default_backend() == "cpu" and jax.local_device_count() < count_cores():
        warnings.warn(
            f"{count_cores() - jax.local_device_count()} of {count_cores()} cores lie idle: call jb.use_all_cores() before anything else uses JAX",
            stacklevel=5,
        )
