"""Running a sweep: which unit next, on what, and what happens when something fails."""

import contextlib
import dataclasses
import time
import warnings
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbandit.pytrees import show
from jaxbandit.result import Result
from jaxbandit.sweep.plan import Cell, Plan, Task, block_bytes, join_runs, play
from jaxbandit.sweep.store import Store, StoreError, Stretch, Unit

ATTEMPTS = 2  # of a single unit
DEVICE_THREAD = "sweep-device"  # the name its threads begin with
COPIES = 5  # of a block's arrays at the same time, at most: on the device (in, out, in between), on the host, being written
PROGRAM_BYTES = 400 << 20  # what JAX and a compilation take beside the arrays


@dataclasses.dataclass(frozen=True)
class Summary:
    """How a sweep ended."""

    out: Path
    units: int  # of the whole sweep
    done: int  # that are in the store now
    computed: int  # by this call
    damaged: int  # files that were found damaged, and recomputed
    failed: dict[str, str]  # unit -> reason
    seconds: float


def sweep(
    spec: Any,
    out: str | Path,
    *,
    rounds: int | None = None,
    runs: int | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    unit_seconds: float = 4.0,
    memory: int | None = None,
    progress: bool = False,
    imports: bool = False,
    mix_environments: bool = False,
) -> Summary:
    """Compute a sweep into a folder; called again, it goes on where it was stopped.

    The product of learners, losses and delays is played for ``runs`` runs each. Files in ``out`` are whole or not there,
    so a kill loses at most the units at hand. The bits do not depend on devices, executor, order or interruptions.

    Args:
      spec: the path of a TOML file, a :class:`Spec`, or a dict of the same form.
      out: the folder; a new one, or one that a sweep with the same spec was begun in.
      rounds, runs: in place of the spec's; may be raised later, and only what is new is computed.
      executor: any ``concurrent.futures.Executor``, such as ``dask.distributed.Client().get_executor(pure=False)``; units are
        sent to it and files written here. By default all local devices work, in this process.
      workers: how many units the executor works on at once, where it does not say.
      unit_seconds: how long the executor's workers should be busy with what they are sent at once: long beside the cost of sending,
        short to lose.
      memory: bytes that the process (with an executor: each worker) may use; limits how much is computed at once.
      progress: show a bar with units, rounds/s and the time left.
      imports: allow names such as ``"my_module:MyLearner"`` in a spec, which run that module's code.
      mix_environments: go on although versions or platform changed since the sweep was begun, and record both.

    Returns:
      A :class:`Summary`; :func:`open_sweep` reads the results.

    >>> import tempfile, jaxbandit as jb
    >>> spec = jb.Spec(rounds=50, runs=8, learners=[jb.Uniform()], losses=[jb.losses.Bernoulli([0.25, 0.75])],
    ...                delays=[jb.delays.Fixed(2)])
    >>> summary = jb.sweep(spec, tempfile.mkdtemp())
    >>> summary.done, summary.failed
    (1, {})
    """
    if executor is not None and not isinstance(executor, Executor):
        raise TypeError(f"executor={show(executor)}: give a concurrent.futures.Executor, or leave it out")
    if memory is not None and (not isinstance(memory, int) or memory <= 0):
        raise ValueError(f"memory={show(memory)}: the memory to use is a number of bytes, such as 4_000_000_000")
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise ValueError(f"workers={show(workers)}: the number of units at once is a whole number, 1 or more")
    if not (isinstance(unit_seconds, int | float) and unit_seconds > 0):
        raise ValueError(f"unit_seconds={show(unit_seconds)}: the time one unit should take is a number of seconds above 0")
    begun = time.perf_counter()
    plan = Plan.make(spec, rounds=rounds, runs=runs, imports=imports)
    for note in plan.notes:
        warnings.warn(note, stacklevel=2)
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(_begin(Path(out), plan, mix_environments))
        damaged = store.damaged() if jax.process_index() == 0 else []
        for file in damaged:
            file.unlink()
        _meet(0)
        if executor is None:
            # Two tasks at a time, each spread over all devices: one is computed while the other begins or ends.
            executor, tasks, spread = stack.enter_context(_threads(2)), 2, jax.local_device_count()
        else:
            tasks, spread = workers or getattr(executor, "_max_workers", None) or jax.local_device_count(), 1
        runner = _Runner(store, plan, executor, tasks, spread, unit_seconds, memory, progress)
        runner.run()
        failed_elsewhere = _meet(len(runner.failed)) - len(runner.failed)
        if failed_elsewhere:
            runner.failed["other processes"] = f"{failed_elsewhere} more units failed there"
        if jax.process_index() == 0:
            store.write_failures(runner.failed)
        files, units = store.files(), store.units()
    done = sum(unit in files for unit in units)
    return Summary(Path(out), len(units), done, runner.computed, len(damaged), runner.failed, time.perf_counter() - begun)


@contextlib.contextmanager
def _begin(out: Path, plan: Plan, mix_environments: bool) -> Iterator[Store]:
    """The store, held by this process; with ``jax.distributed`` by the first one, for all."""
    if jax.process_index() > 0:
        if _meet(0):
            raise StoreError(f"{out}: the first process could not begin; its message says why")
        yield Store.open(out)
        return
    with contextlib.ExitStack() as stack:
        try:
            store = stack.enter_context(Store.begin(out, plan, mix_environments=mix_environments))
        except BaseException:
            _meet(1)
            raise
        _meet(0)
        if store.anew:
            warnings.warn(
                f"{len(store.anew)} of {len(store.manifest['cells'])} cells start anew at {store.rounds} rounds: what their learner or delay law "
                f"is told depends on the horizon ({', '.join(sorted({store.labels('learners')[cell['at'][0]] for cell in store.anew}))})",
                stacklevel=4,
            )
        yield store


def _meet(number: int) -> int:
    """Wait for all processes of ``jax.distributed``; returns the sum of what they bring."""
    if jax.process_count() == 1:
        return number
    from jax.experimental import multihost_utils

    return int(np.sum(multihost_utils.process_allgather(np.asarray(number, np.int32))))


def _mine(store: Store) -> set[tuple[str, int]]:
    """The cells and blocks that this process computes. Blocks of runs lie along one mesh axis over all processes."""
    mesh = jax.sharding.Mesh(np.asarray(jax.devices()), ("runs",))
    owners = [device.process_index for device in mesh.devices.flat]
    lanes = dict.fromkeys((unit.cell, unit.block) for unit in store.units())
    return {lane for number, lane in enumerate(lanes) if owners[number % len(owners)] == jax.process_index()}


@contextlib.contextmanager
def _threads(count: int) -> Iterator[Executor]:
    pool = ThreadPoolExecutor(count, DEVICE_THREAD)
    try:
        yield pool
    finally:  # on an interrupt, what has not begun is dropped, and what has is not waited for
        pool.shutdown(wait=False, cancel_futures=True)


def _timed(task: Task) -> tuple[float, list[Result]]:
    begun = time.perf_counter()
    results = play(task)
    return time.perf_counter() - begun, results


class _Runner:
    """Hands out tasks, writes what comes back, and tries again what failed."""

    def __init__(
        self,
        store: Store,
        plan: Plan,
        executor: Executor,
        workers: int,
        spread: int,
        unit_seconds: float,
        memory: int | None,
        progress: bool,
    ):
        self.store, self.plan, self.executor = store, plan, executor
        self.workers, self.spread, self.unit_seconds, self.memory = workers, spread, unit_seconds, memory
        self.at_once = 2 * workers  # tasks handed out: one being computed and one waiting for each worker
        self.pace: dict[str, float] = {}  # shape -> seconds for one block and round, the least seen (the first one compiles)
        self.size: dict[str, int] = {}  # shape -> bytes of one block
        self.failed: dict[str, str] = {}
        self.computed = 0
        self.files = store.files()
        self.cells = {cell.id: cell for cell in plan.cells}
        self.stretches = {cell["id"]: store.stretches(cell) for cell in store.manifest["cells"]}
        mine = _mine(store)
        self.missing = [unit for unit in store.units() if unit not in self.files and (unit.cell, unit.block) in mine]
        self.bar = _bar(sum(map(self._work, self.missing)), len(self.missing), len(store.units()), progress)

    def run(self) -> None:
        """One pass for each stretch of rounds: a later one goes on from the states of the earlier."""
        missing: dict[tuple[str, int], list[Unit]] = {}
        for unit in self.missing:
            missing.setdefault((unit.cell, unit.start), []).append(unit)
        with self.bar:
            for index in range(max(map(len, self.stretches.values()))):
                waiting: deque[tuple[Cell, Stretch, deque[int]]] = deque()
                for name, stretches in self.stretches.items():
                    units = missing.get((name, stretches[index].start), []) if index < len(stretches) else []
                    blocks = deque(unit.block for unit in units if self._ready(unit))
                    if blocks:
                        waiting.append((self.cells[name], stretches[index], blocks))
                self._pass(waiting)

    def _ready(self, unit: Unit) -> bool:
        return unit.start == 0 or self._before(unit) in self.files

    def _before(self, unit: Unit) -> Unit:
        stretch = next(part for part in self.stretches[unit.cell] if part.stop == unit.start)
        return Unit(unit.cell, unit.block, stretch.start, stretch.stop)

    def _pass(self, waiting: deque[tuple[Cell, Stretch, deque[int]]]) -> None:
        running: dict[Future, Task] = {}
        again: deque[tuple[Task, int]] = deque()  # single units that failed, and how often
        tries: dict[Future, int] = {}
        try:
            while waiting or again or running:
                while (waiting or again) and len(running) < self.at_once:
                    task, attempt = again.popleft() if again else (self._next(waiting), 0)
                    future = self.executor.submit(_timed, task)
                    running[future], tries[future] = task, attempt
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    self._finish(future, running.pop(future), tries.pop(future), again)
        except BaseException:
            for future, task in running.items():
                if not future.cancel() and future.done() and future.exception() is None:
                    with contextlib.suppress(StoreError):
                        self._write(task, future.result()[1])
            raise

    def _next(self, waiting: deque[tuple[Cell, Stretch, deque[int]]]) -> Task:
        """Some blocks of the first cell in line: as many as take ``unit_seconds``, fit the memory and are consecutive."""
        cell, stretch, blocks = waiting[0]
        pace = self.pace.get(cell.shape, max(self.pace.values(), default=np.inf))  # a new shape: as slow as the slowest so far
        count = max(self.spread, int(self.unit_seconds / (pace * (stretch.stop - stretch.start))))
        left = sum(len(others) for _, _, others in waiting)
        count = min(count, self._fitting(cell, stretch), max(self.spread, -(-left // self.workers)))
        first, taken = blocks.popleft(), 1
        while blocks and taken < count and blocks[0] == first + taken:
            blocks.popleft()
            taken += 1
        if not blocks:
            waiting.popleft()
        return self._task(cell, stretch, first, taken)

    def _task(self, cell: Cell, stretch: Stretch, first: int, count: int) -> Task:
        resume = None
        if stretch.start:
            units = [Unit(cell.id, first + i, stretch.start, stretch.stop) for i in range(count)]
            resume = join_runs([self.store.read(self.files[self._before(unit)]) for unit in units])
        spec = self.plan.spec
        return Task(cell, first, count, stretch.start, stretch.stop, stretch.record, spec.seed, spec.control_variates, resume)

    def _fitting(self, cell: Cell, stretch: Stretch) -> int:
        """How many blocks of this cell one task may hold."""
        if self.memory is None:
            return 1 << 20
        if cell.shape not in self.size:
            self.size[cell.shape] = block_bytes(cell, self.plan.spec.control_variates, len(stretch.record))
        need = COPIES * self.size[cell.shape]
        room = (self.memory - PROGRAM_BYTES) // need  # blocks at once
        if room < 1:
            raise StoreError(
                f"memory={self.memory}: a single block of {type(cell.learner).__name__} with {type(cell.delays).__name__} delays needs about "
                f"{(PROGRAM_BYTES + need) / 1e6:.0f} MB; give more memory, or the delay law a smaller bound"
            )
        self.at_once = min(self.at_once, room)
        return room // self.at_once

    def _finish(self, future: Future, task: Task, attempt: int, again: deque[tuple[Task, int]]) -> None:
        error = future.exception()
        if error is None:
            seconds, results = future.result()
            pace = seconds / (task.blocks * (task.stop - task.start))
            self.pace[task.cell.shape] = min(pace, self.pace.get(task.cell.shape, np.inf))
            self._write(task, results)
        elif isinstance(error, BrokenExecutor):
            raise StoreError(f"the executor broke ({error}); what is computed is safe, run the same command to go on") from error
        elif task.blocks > 1:
            stretch = Stretch(task.start, task.stop, list(task.record))
            again.extend((self._task(task.cell, stretch, task.first_block + i, 1), 0) for i in range(task.blocks))
        elif attempt + 1 < ATTEMPTS:
            again.append((task, attempt + 1))
        else:
            runs = task.cell.block
            at = ", ".join(setting.label for setting in self._settings(task.cell))
            name = (
                f"{at}; runs {task.first_block * runs}-{(task.first_block + 1) * runs - 1}, rounds {task.start + 1}-{task.stop}"
            )
            self.failed[name] = f"{type(error).__name__}: {error}"

    def _work(self, unit: Unit) -> int:
        return self.cells[unit.cell].block * (unit.stop - unit.start)

    def _settings(self, cell: Cell) -> list[Any]:
        return [settings[index] for settings, index in zip(self.plan.axes.values(), cell.at, strict=True)]

    def _write(self, task: Task, results: list[Result]) -> None:
        for index, result in enumerate(results):
            unit = Unit(task.cell.id, task.first_block + index, task.start, task.stop)
            self.files[unit] = self.store.write(unit, result)
            self.computed += 1
            self.bar.update(self._work(unit))


class _Silent(contextlib.nullcontext):
    def update(self, _: int) -> None: ...


def _bar(rounds: int, missing: int, total: int, progress: bool) -> Any:
    """Units done, rounds per second and the time left."""
    if not progress:
        return _Silent()
    from tqdm import tqdm

    class Bar(tqdm):
        units = total - missing

        def update(self, n: float | None = 1) -> bool | None:
            self.units += 1
            self.set_description_str(f"units {self.units}/{total}", refresh=False)
            return super().update(n)

    line = "{desc} {percentage:3.0f}% {bar} {rate_fmt} {elapsed}<{remaining}"
    return Bar(total=rounds, desc=f"units {Bar.units}/{total}", unit=" rounds", unit_scale=True, bar_format=line, smoothing=0.1)
