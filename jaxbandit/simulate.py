"""The host driver: runs in blocks of one size, blocks on devices, stop and go on later.

One compiled block is the only unit of work. XLA rounds differently for different shapes, so the same bits need the same
shape: runs are padded to blocks whose size depends on the number of arms alone, whatever the number of runs, devices or
machines.
"""

import collections
import contextlib
import dataclasses
import functools
import os
import queue
import threading
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.measure import check_measure
from jaxbandit.pytrees import canonical, show
from jaxbandit.result import Result, fingerprint
from jaxbandit.rollout import Game, State, log_spaced
from jaxbandit.validation import check_game, check_key, check_record, check_rounds, check_runs

BLOCK = 256  # runs in a block; within 10 % of the best size on CPU (`jaxbandit bench` shows others)
WHOLE_LOOP = 1 << 26  # bytes; smaller loops are compiled into one function by `use_all_cores`
SEGMENT = 1 << 17  # rounds in one call of the compiled block, so that long work can be watched and interrupted


@jax.jit
def _start(game: Game) -> State:
    return game.start()


@functools.partial(jax.jit, static_argnames="probabilities")
def _advance(game: Game, state: State, done, record, probabilities: bool):
    return game.advance(state, done, record, probabilities)


def block_size(num_arms: int) -> int:
    """How many runs make a block: twice as many for one or two arms, whose kernels are over before they have begun."""
    return 2 * BLOCK if num_arms <= 2 else BLOCK


def use_all_cores() -> int:
    """Make one JAX device of each CPU core, so that blocks of runs share the work; returns how many.

    Must come before JAX starts (before the first array is made), because it tells XLA's CPU compiler how to treat loops and
    threads: for the whole process, through ``XLA_FLAGS`` and ``PJRT_NPROC``. Changes nothing where JAX runs on GPU or TPU.

    >>> import jaxbandit as jb
    >>> jb.use_all_cores()  # doctest: +SKIP
    2
    """
    cores = _cores()
    # XLA's CPU client reads this when it starts. A round is many small kernels: a pool of threads that shares them out costs
    # more than it brings (measured: 11 to 15 against 17 million rounds/s on one core), and steals from the other devices.
    os.environ.setdefault("PJRT_NPROC", "1")
    # Compile the loop over rounds into one function, where XLA can, instead of starting some forty kernels a round: 15 to 35 %
    # faster with the same bits, and devices stop borrowing each other's threads (two cores: from 1.5 to 2 times one).
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_extra_options" not in flags:
        option = f"--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold={WHOLE_LOOP}"
        os.environ["XLA_FLAGS"] = f"{flags} {option}".strip()
    try:
        jax.config.update("jax_num_cpu_devices", cores)
    except RuntimeError as error:
        raise RuntimeError("use_all_cores(): JAX has already started; call it first, before any array is made") from error
    return cores


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _warn_about_idle_cores() -> None:
    if jax.default_backend() == "cpu" and jax.local_device_count() < _cores():
        warnings.warn(
            f"{_cores() - jax.local_device_count()} of {_cores()} cores lie idle: call jb.use_all_cores() before anything else uses JAX",
            stacklevel=3,
        )


def simulate(
    learner,
    losses,
    delays,
    *,
    rounds: int,
    runs: int,
    key: jax.Array,
    record: Any = 50,
    first_run: int = 0,
    resume: Result | None = None,
    probabilities: bool = False,
    measure: Sequence[Any] = (),
    progress: bool = False,
    kernel: bool = False,
) -> Result:
    """Simulate ``runs`` independent runs of a learner against losses with delayed feedback.

    Run i is a pure function of learner, losses, delays, key and i: the same bits for any number of runs, blocks or
    devices, and whether it is played in one go or stopped and resumed. Different learners with the same key meet the
    same losses and delays, run by run, so differences between them are paired.

    Args:
      learner: such as :class:`jaxbandit.BestOfBothWorlds`; any object with ``init``, ``act`` and ``observe``.
      losses: a law of :mod:`jaxbandit.losses`.
      delays: a law of :mod:`jaxbandit.delays`.
      rounds: the horizon T (with ``resume``: the new total).
      runs: how many runs, with ids ``first_run … first_run + runs - 1``.
      key: a typed key, ``jax.random.key(seed)``.
      record: how many rounds to record, log-spaced, or the rounds themselves; the horizon is always the last.
      first_run: id of the first run: simulate 0 … 999 today and 1000 … 1999 tomorrow.
      resume: an earlier :class:`Result` (also loaded from a file) to go on from, with the same learner, losses, delays,
        key and runs; the new Result holds the new records.
      probabilities: also keep x_t at the recorded rounds.
      measure: measurements to make along the way, such as ``jb.ControlVariates()``; see :mod:`jaxbandit.measure`.
      progress: show a progress bar.
      kernel: on a GPU of NVIDIA or a TPU, play all rounds within one kernel of Pallas (``jaxbandit.kernel``) if it plays
        the first rounds as XLA's loop does; a warning says so if it does not. It compiles for both but was never run on
        either, so it must be asked for. Its last digits differ from the loop's.

    Returns:
      A :class:`Result`.

    >>> import jax, jaxbandit as jb
    >>> result = jb.simulate(jb.BestOfBothWorlds(max_delay=10), jb.losses.Bernoulli([0.3, 0.5, 0.5]), jb.delays.Fixed(10),
    ...                      rounds=200, runs=16, key=jax.random.key(0))
    >>> result.regret.shape[1], int(result.rounds[-1])
    (16, 200)
    """
    check_key(key)
    check_rounds(rounds)
    check_runs(runs, first_run)
    check_game(learner, losses, delays, rounds)
    check_measure(measure)
    learner, losses, delays = canonical(learner), canonical(losses), canonical(delays)
    measure = canonical(tuple(measure))
    identity = fingerprint(learner, losses, delays, key, measure)
    done = 0
    if resume is not None:
        done = _check_resume(resume, identity, rounds, runs, first_run)
    if isinstance(record, int | np.integer) and not isinstance(record, bool):
        if record < 1:
            raise ValueError(f"record={show(record)}: record at least 1 round, or give a list of rounds")
        recorded, width = log_spaced(rounds, int(record), done), int(record)
    else:
        recorded = check_record(record, done, rounds)
        width = len(recorded)
    _warn_about_idle_cores()

    block = block_size(losses.num_arms)
    game = Game.set_up(learner, losses, delays, key, jnp.zeros(block, jnp.uint32), measure)
    calls = list(_calls(recorded, width, done))
    advance: Any = _advance
    if kernel:
        advance, game = _with_kernel(game, runs, rounds, len(calls[0].record), probabilities)
        block = game.runs.shape[0]
    # Trace here, once; each device's thread then compiles for its own device, at the same time as the others.
    like = _start.eval_shape(game)
    if advance is _advance:
        _advance.eval_shape(game, like, calls[0].done, calls[0].record, probabilities)

    def play(start: int, free: queue.SimpleQueue) -> list:
        """All calls of the block of runs from ``start`` on, one after the other on a device that is free."""
        device = free.get()
        try:
            return play_on(device, start)
        finally:
            free.put(device)

    def play_on(device, start: int) -> list:
        ids = np.arange(first_run + start, first_run + start + block, dtype=np.int64).astype(np.uint32)
        mine = jax.device_put(dataclasses.replace(game, runs=ids), device)
        # Put, also when it is there already: what jit returns is not bound to a device, and would be compiled for once more.
        state = jax.device_put(_start(mine) if resume is None else resume.block_state(like, start, block), device)
        parts = []
        for call in calls:
            state, records = advance(mine, state, *jax.device_put((call.done, call.record), device), probabilities)
            parts.append(jax.tree.map(lambda leaf, kept=call.kept: np.asarray(leaf)[:kept], records))
            bar.update(1)
        return [parts, jax.tree.map(np.asarray, state)]

    starts = range(0, runs, block)
    # As many threads as devices: JAX does not promise that two CPU devices work at once when one thread drives both. Which device
    # plays a block is left to chance, so that a slow one does not keep the others waiting.
    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(_bar(progress, len(starts) * len(calls), runs, rounds - done))
        devices = stack.enter_context(_idlest_devices(len(starts)))
        free = queue.SimpleQueue()
        for device in devices:
            free.put(device)
        threads = stack.enter_context(ThreadPoolExecutor(len(devices)))
        stack.callback(threads.shutdown, wait=False, cancel_futures=True)  # on an interrupt, what has not begun is dropped
        futures = [threads.submit(play, start, free) for start in starts]
        blocks = [future.result() for future in futures]

    return Result.assemble(recorded, blocks, game=game, runs=runs, first_run=first_run, identity=identity)


def _with_kernel(game: Game, runs: int, rounds: int, width: int, probabilities: bool) -> tuple[Any, Game]:
    """What plays a block and the game with such a block: the kernel where it can be trusted, else all as it was."""
    from jaxbandit import kernel

    larger = dataclasses.replace(game, runs=jnp.arange(kernel.block_size(runs), dtype=jnp.uint32))
    play = kernel.trusted(larger, _advance, rounds, width, probabilities)
    return (_advance, game) if play is None else (play, larger)


_in_use: collections.Counter = collections.Counter()  # device -> simulations at work on it
_counting = threading.Lock()


@contextlib.contextmanager
def _idlest_devices(most: int) -> Iterator[list]:
    """At most ``most`` of the local devices, those with the least to do first: several simulations may run at once."""
    with _counting:
        devices = sorted(jax.local_devices(), key=_in_use.__getitem__)[:most]  # stable: a lone simulation begins with the first
        _in_use.update(devices)
    try:
        yield devices
    finally:
        with _counting:
            _in_use.subtract(devices)


class _Call:
    """One stretch of rounds: where it starts, and which of its rounds are recorded."""

    def __init__(self, done: int, record: np.ndarray, kept: int):
        self.done, self.record, self.kept = np.int32(done), record.astype(np.int32), kept


def _calls(recorded: np.ndarray, width: int, done: int) -> Iterator[_Call]:
    """Cut the rounds into segments; each call's records are filled up to one width by repeating its last round."""
    rounds = int(recorded[-1])
    while done < rounds:
        end = min(done + SEGMENT, rounds)
        inside = recorded[(recorded > done) & (recorded <= end)]
        yield _Call(done, np.append(inside, np.full(width + 1 - len(inside), end)), len(inside))
        done = end


class _NoBar:
    def update(self, _): ...
    def __enter__(self):
        return self

    def __exit__(self, *_): ...


def _bar(progress: bool, total: int, runs: int, rounds: int):
    if not progress:
        return _NoBar()
    from tqdm import tqdm

    return tqdm(
        total=total,
        desc=f"{runs} runs x {rounds} rounds",
        leave=False,
        bar_format="{desc} {percentage:3.0f}% {bar} {elapsed}<{remaining}",
    )


def _check_resume(resume: Any, identity: dict[str, str], rounds: int, runs: int, first_run: int) -> int:
    if not isinstance(resume, Result):
        raise TypeError(f"resume={show(resume)}: go on from a Result, as simulate returned it or Result.load read it")
    for part, mark in identity.items():
        if resume.identity.get(part) != mark:
            raise ValueError(
                f"resume: this Result was made with another {part}; going on needs the same learner, losses, delays, key and measure"
            )
    if (runs, first_run) != (resume.regret.shape[1], resume.first_run):
        raise ValueError(
            f"runs={runs}, first_run={first_run}: the Result to go on from has runs={resume.regret.shape[1]}, "
            f"first_run={resume.first_run}; use the same"
        )
    done = int(resume.rounds[-1])
    if rounds <= done:
        raise ValueError(f"rounds={rounds}: with resume, rounds is the new total and must be above the {done} already played")
    return done
