"""Running a sweep: scheduling of units on devices or workers, and handling of failures."""

import contextlib
import multiprocessing
import os
import time
import warnings
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbandit._checks.inputs import check_switch
from jaxbandit._core.fields import show
from jaxbandit._engine import blocks
from jaxbandit._engine.devices import Threads, alike_devices
from jaxbandit._io.files import checked_path
from jaxbandit._io.progress import Progress
from jaxbandit._provenance.environment import environment
from jaxbandit._provenance.user_code import code_digest
from jaxbandit.results.result import Result
from jaxbandit.sweeps.batch import Batch, NotFiniteError, block_bytes, play_together
from jaxbandit.sweeps.ended import Summary
from jaxbandit.sweeps.layout import StoreError, Unit
from jaxbandit.sweeps.part_writer import PartWriter
from jaxbandit.sweeps.parts import SweepPart
from jaxbandit.sweeps.plan import Cell, Plan
from jaxbandit.sweeps.spec import Spec
from jaxbandit.sweeps.states import States
from jaxbandit.sweeps.store import Segment
from jaxbandit.sweeps.undecided import Undecided
from jaxbandit.sweeps.writer import StoreWriter

ATTEMPTS = 2  # of a single unit
DEVICE_THREAD = "sweep-device"  # the name its threads begin with
COPIES = 5  # of a block's arrays at the same time, at most: on the device (in, out, in between), on the host, being written
PROGRAM_BYTES = 400 << 20  # memory of JAX and a compilation beside the arrays

Backlog = deque[tuple[Cell, Segment, deque[int]]]  # queued cells, with their remaining blocks


def sweep(
    spec: Spec | Mapping[str, Any] | str | os.PathLike,
    out: str | Path,
    *,
    rounds: int | None = None,
    runs: int | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    unit_seconds: float = 4.0,
    memory: int | None = None,
    states: bool | None = None,
    progress: bool = False,
    imports: bool = False,
    mix_environments: bool = False,
    part: tuple[int, int] | None = None,
    until: float | str | None = None,
) -> Summary:
    """Compute a sweep into a folder; the same call resumes it after an interruption.

    Every combination of learners, losses and delays is simulated for ``runs`` runs. Files in ``out`` are complete or absent: a
    kill loses at most the current units. Results are bitwise identical for any devices, executor, order and interruptions.

    Args:
      spec: the path of a TOML file, a :class:`Spec`, or a dict of the same form.
      out: the folder; a new one, or one that a sweep with the same spec was begun in.
      rounds, runs: in place of the spec's; may be raised later, and only new units are computed.
      executor: any ``concurrent.futures.Executor``, such as ``dask.distributed.Client().get_executor(pure=False)``; units are
        sent to it and files written here. By default all local devices work, in this process.
      workers: the number of units that the executor runs at once, where it does not report it.
      unit_seconds: the target duration of a batch sent to a worker: long compared with the cost of sending, short enough that
        the loss of one is cheap.
      memory: bytes that the process (with an executor: each worker) may use; limits how much is computed at once.
      states: in place of the spec's: keep the state of each block at the horizon, so that ``rounds`` can be raised later. Where
        it cannot be extended (the learner requires the horizon, or a trace ends there) it is not kept anyway.
      progress: show a bar with units, rounds/s and the time left.
      imports: allow names such as ``"my_module:MyLearner"`` in a spec, which run that module's code.
      mix_environments: resume although versions or platform changed since the sweep was begun, and record both.
      part: ``(3, 16)`` computes the third of sixteen parts, for array jobs: any number of processes and hosts compute parts into one
        shared folder, in any order, without locks. :func:`jaxbandit.sweeps.merge` puts them together.
      until: in place of the spec's: add runs only where they are needed. A number or share (``0.5``, ``"2%"``) adds runs to a cell
        until half the 95% interval of its mean regret is so small. ``"decided"`` adds runs to the learners of an environment until
        every pair is significantly different, corrected for all pairs of the sweep. ``runs`` is then the largest number of runs
        of a cell. The intervals and tests are those of :func:`jaxbandit.compare` with ``until``, which hold however often the runs
        were looked at.

    Returns:
      A :class:`Summary`; :func:`open_sweep` reads the results.

    >>> import tempfile, jaxbandit as jb
    >>> spec = jb.Spec(rounds=50, runs=8, learners=[jb.Uniform()], losses=[jb.losses.Bernoulli([0.25, 0.75])],
    ...                delays=[jb.delays.Fixed(2)])
    >>> summary = jb.sweep(spec, tempfile.mkdtemp())
    >>> summary.done, summary.failed
    (1, {})
    """
    _check_executor(executor)
    folder = checked_path("sweep(out=…)", out)
    check_switch("progress", progress)
    if memory is not None and (not isinstance(memory, int) or memory <= 0):
        raise ValueError(f"memory={show(memory)}: the memory to use is a number of bytes, such as 4_000_000_000")
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise ValueError(f"workers={show(workers)}: the number of units at once is a whole number, 1 or more")
    if not (isinstance(unit_seconds, int | float) and unit_seconds > 0):
        raise ValueError(f"unit_seconds={show(unit_seconds)}: the time one unit should take is a number of seconds above 0")
    if states is not None and not isinstance(states, bool):
        raise ValueError(f"states={show(states)}: whether states are kept is True or False")
    share = None if part is None else SweepPart.checked(part)
    if share and jax.process_count() > 1:
        raise ValueError(f"part={share}: the processes of jax.distributed share out the sweep themselves; leave part= out")
    begun = time.perf_counter()
    plan = Plan.make(spec, rounds=rounds, runs=runs, until=until, imports=imports)
    if plan.until and (share or jax.process_count() > 1):
        raise ValueError(_UNTIL_ALONE.format(plan.until, f"part={share}" if share else "jax.distributed"))
    for note in plan.notes:
        warnings.warn(note, stacklevel=2)
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(_begin(folder, plan, mix_environments, share))
        damaged = store.remove_damaged() if jax.process_index() == 0 else 0
        _meet(0)
        if executor is None:
            # Two batches at a time, each spread over all devices: one is computed while the other begins or ends. On accelerators a
            # batch is one launch, on one device.
            at_once = 2 if blocks.platform() == "cpu" else 1 + len(alike_devices())
            executor, spread, in_process = Threads(at_once, DEVICE_THREAD), jax.local_device_count(), True
            # On an interrupt, batches that have not started are dropped, and running ones are not waited for.
            stack.callback(executor.shutdown, wait=False, cancel_futures=True)
        else:
            at_once = workers or vars(executor).get("_max_workers") or jax.local_device_count()
            spread, in_process = 1, False
        kept = plan.lasting() if (plan.spec.states if states is None else states) else set()
        here = None if mix_environments else environment()
        undecided, looked, computed, failed = 0, None, 0, {}
        if plan.until:
            looked = Undecided(store, plan.until, plan.runs)
        while True:
            runner = _Runner(
                store, plan, executor, at_once, spread, unit_seconds, memory, here, kept, progress, in_process,
                looked.incomplete if looked else (),
            )  # fmt: skip
            runner.run()
            computed += runner.computed
            failed |= runner.failed
            if looked is None:
                break
            undecided, more = looked.look()
            if not more:
                break
            store.add_runs(more)
        runner.computed, runner.failed = computed, failed
        failed_elsewhere = _meet(len(runner.failed)) - len(runner.failed)
        if failed_elsewhere:
            runner.failed["other processes"] = f"{failed_elsewhere} more units failed there"
        store.check_place()
        if jax.process_index() == 0:
            store.write_failures(runner.failed)
        files = store.files()
        units, done = (
            (runner.units, sum(unit in files for unit in runner.mine))
            if share
            else (runner.units, sum(store.done(files).values()))
        )
    if undecided:
        warnings.warn(
            f"until={plan.until}: not reached with runs={plan.runs} in {undecided} of {len(store.cells)} cells; raise runs to resume",
            stacklevel=2,
        )
    return Summary(folder, units, done, computed, damaged, runner.failed, time.perf_counter() - begun, undecided)


_UNTIL_ALONE = (
    "until={}: {} cannot look at the runs of the other processes; compute a first number of runs without until (runs=, --runs), merge "
    "the parts, and call sweep with until and a larger runs in the same folder: it adds runs where they are needed"
)


def _check_executor(executor: Any) -> None:
    if executor is not None and not isinstance(executor, Executor):
        raise TypeError(f"executor={show(executor)}: give a concurrent.futures.Executor, or leave it out")
    if isinstance(executor, ProcessPoolExecutor):
        context = vars(executor).get("_mp_context") or multiprocessing
        if context.get_start_method() == "fork":
            raise ValueError(
                "executor=ProcessPoolExecutor(...): a forked process hangs once JAX has started; make the executor with "
                "mp_context=multiprocessing.get_context('spawn')"
            )


@contextlib.contextmanager
def _begin(out: Path, plan: Plan, mix_environments: bool, part: SweepPart | None) -> Iterator[StoreWriter]:
    """The store, held by this process; with ``jax.distributed`` by the first one, for all."""
    if jax.process_index() > 0:
        if _meet(0):
            raise StoreError(f"{out}: the first process could not begin; its message says why")
        yield StoreWriter.open(out)
        return
    with contextlib.ExitStack() as stack:
        try:
            if part:
                store = stack.enter_context(PartWriter.begin_part(out, plan, part, mix_environments=mix_environments))
            else:
                store = stack.enter_context(StoreWriter.begin(out, plan, mix_environments=mix_environments))
        except BaseException:
            _meet(1)
            raise
        _meet(0)
        if store.started_anew:
            warnings.warn(
                f"{len(store.started_anew)} of {len(store.manifest['cells'])} cells start over at {store.rounds} rounds: an input of their learner or delay model "
                f"depends on the horizon ({', '.join(sorted({store.labels('learners')[cell['at'][0]] for cell in store.started_anew}))})",
                stacklevel=4,
            )
        yield store


def _meet(number: int) -> int:
    """Wait for all processes of ``jax.distributed``; returns the sum of their numbers."""
    if jax.process_count() == 1:
        return number
    from jax.experimental import multihost_utils

    return int(np.sum(multihost_utils.process_allgather(np.asarray(number, np.int32))))


def _mine(store: StoreWriter) -> set[tuple[str, int]]:
    """The cells and blocks that this process computes: its part, or those dealt out in turn to the devices of all processes."""
    if store.part:
        return store.part.share(store.units())
    owners = [device.process_index for device in jax.devices()]
    blocks = dict.fromkeys((unit.cell, unit.block) for unit in store.units())
    return {block for number, block in enumerate(blocks) if owners[number % len(owners)] == jax.process_index()}


def _timed(batches: Sequence[Batch], progress: bool | Progress = False) -> tuple[float, list[Result]]:
    begun = time.perf_counter()
    results = play_together(batches, progress)
    return time.perf_counter() - begun, results


def _consecutive(blocks: deque[int], most: int) -> tuple[int, int]:
    """Take some of these blocks that follow each other: the first, and how many."""
    first, taken = blocks.popleft(), 1
    while blocks and taken < most and blocks[0] == first + taken:
        blocks.popleft()
        taken += 1
    return first, taken


class _Runner:
    """Submits batches of units, writes their results, and retries failed units."""

    def __init__(
        self,
        store: StoreWriter,
        plan: Plan,
        executor: Executor,
        workers: int,
        spread: int,
        unit_seconds: float,
        memory: int | None,
        here: dict[str, Any] | None,
        kept: set[str],
        progress: bool,
        in_process: bool,
        skipped: Collection[str],
    ):
        self.in_process = in_process  # simulations move the bar themselves; otherwise units do when they are written
        self.plan, self.executor, self.here = plan, executor, here
        self.workers, self.spread, self.unit_seconds, self.memory = workers, spread, unit_seconds, memory
        self.at_once = 2 * workers  # submitted batches: one running and one waiting for each worker
        self.pace: dict[str, float] = {}  # shape -> seconds for one block and round, the least seen (the first one compiles)
        self.size: dict[str, int] = {}  # shape -> bytes of one block
        self.failed: dict[str, str] = {}
        self.computed = 0
        self.files = store.files()
        self.states = States(store, self.files, kept)
        self.cells = {cell.id: cell for cell in plan.cells}
        mine = _mine(store)
        self.mine = [unit for unit in store.units() if (unit.cell, unit.block) in mine]
        self.missing = [
            unit for unit in self.mine if unit.cell not in skipped and (unit not in self.files or not self.states.lead_on(unit))
        ]
        self.units = len(self.mine) if store.part else sum(store.unit_counts().values())
        self.bar = Progress(progress, sum(map(self._work, self.missing)), self._done())

    def run(self) -> None:
        """One pass for each segment of rounds, which resumes from the states of the previous segment."""
        for unit in self.mine:
            self.states.drop(unit)
        missing: dict[tuple[str, int], list[Unit]] = {}
        for unit in self.missing:
            missing.setdefault((unit.cell, unit.start), []).append(unit)
        with self.bar:
            for index in range(max(map(len, self.states.segments.values()))):
                waiting: Backlog = deque()
                for name, segments in self.states.segments.items():
                    units = missing.get((name, segments[index].start), []) if index < len(segments) else []
                    left = deque(unit.block for unit in units if self._ready(unit))
                    if left:
                        waiting.append((self.cells[name], segments[index], left))
                self._pass(waiting)

    def _ready(self, unit: Unit) -> bool:
        return unit.start == 0 or self.states.before(unit) in self.files

    def _pass(self, waiting: Backlog) -> None:
        running: dict[Future, tuple[list[Batch], int]] = {}  # and how often these were tried before
        again: deque[tuple[list[Batch], int]] = deque()  # single units that failed, and how often
        try:
            while waiting or again or running:
                while (waiting or again) and len(running) < self.at_once:
                    batches, attempt = again.popleft() if again else (self._next(waiting), 0)
                    future = self.executor.submit(_timed, batches, *([self.bar] if self.in_process else []))
                    running[future] = batches, attempt
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    self._finish(future, *running.pop(future), again)
        except BaseException:
            for future, (batches, _) in running.items():
                if not future.cancel() and future.done() and future.exception() is None:
                    with contextlib.suppress(StoreError):
                        self._write(batches, future.result()[1])
            raise

    def _next(self, waiting: Backlog) -> list[Batch]:
        """The next batches: some blocks of the first queued cell or, where cells are packed, of all cells of its shape."""
        cell, segment, _ = waiting[0]
        if cell.execution is None:
            return [self._next_of(waiting)]
        room, batches = min(cell.execution.block // cell.block, self._fitting(cell, segment)), []
        alike = [one for one in waiting if one[0].shape == cell.shape and one[1] == segment]
        for other, _, left in alike:
            while left and room:
                first, taken = _consecutive(left, room)
                batches.append(self._batch(other, segment, first, taken))
                room -= taken
        for one in alike:
            if not one[2]:
                waiting.remove(one)
        return batches

    def _next_of(self, waiting: Backlog) -> Batch:
        """Some blocks of the first queued cell: as many as take ``unit_seconds``, fit the memory and are consecutive."""
        cell, segment, left_of_cell = waiting[0]
        pace = self.pace.get(cell.shape, max(self.pace.values(), default=np.inf))  # a new shape: as slow as the slowest so far
        count = max(self.spread, int(self.unit_seconds / (pace * (segment.stop - segment.start))))
        if blocks.platform() != "cpu":
            count = 1  # a fixed number of runs at once: on an accelerator the rounding depends on it
        left = sum(len(others) for _, _, others in waiting)
        count = min(count, self._fitting(cell, segment), max(self.spread, -(-left // self.workers)))
        first, taken = _consecutive(left_of_cell, count)
        if not left_of_cell:
            waiting.popleft()
        return self._batch(cell, segment, first, taken)

    def _batch(self, cell: Cell, segment: Segment, first: int, count: int) -> Batch:
        resume = None
        if segment.start:
            units = [Unit(cell.id, first + i, segment.start, segment.stop) for i in range(count)]
            resume = Result.concat_runs([self.states.resume(unit) for unit in units])
        spec = self.plan.spec
        return Batch(
            cell=cell,
            first_block=first,
            blocks=count,
            start=segment.start,
            stop=segment.stop,
            record=segment.record,
            seed=spec.seed,
            control_variates=spec.control_variates,
            resume=resume,
            environment=self.here,
            code=code_digest((cell.learner, cell.losses, cell.delays)),
        )

    def _fitting(self, cell: Cell, segment: Segment) -> int:
        """How many blocks of this cell one batch may hold."""
        if self.memory is None:
            return 1 << 20
        if cell.shape not in self.size:
            self.size[cell.shape] = block_bytes(cell, self.plan.spec.control_variates, len(segment.record))
        need = COPIES * self.size[cell.shape]
        room = (self.memory - PROGRAM_BYTES) // need  # blocks at once
        if room < 1:
            raise StoreError(
                f"memory={self.memory}: a single block of {type(cell.learner).__name__} with {type(cell.delays).__name__} delays needs about "
                f"{(PROGRAM_BYTES + need) / 1e6:.0f} MB; give more memory, or the delay model a smaller bound"
            )
        self.at_once = min(self.at_once, room)
        return room // self.at_once

    def _finish(self, future: Future, batches: list[Batch], attempt: int, again: deque[tuple[list[Batch], int]]) -> None:
        error, batch, units = future.exception(), batches[0], sum(batch.blocks for batch in batches)
        if error is None:
            seconds, results = future.result()
            pace = seconds / (units * (batch.stop - batch.start))
            self.pace[batch.cell.shape] = min(pace, self.pace.get(batch.cell.shape, np.inf))
            self._write(batches, results)
        elif isinstance(error, BrokenExecutor):
            raise StoreError(f"the executor broke ({error}); computed units are safe; run the same command to resume") from error
        elif units > 1:
            segment = Segment(batch.start, batch.stop, list(batch.record))
            singles = ((one.cell, one.first_block + i) for one in batches for i in range(one.blocks))
            again.extend(([self._batch(cell, segment, block, 1)], 0) for cell, block in singles)
        elif attempt + 1 < ATTEMPTS and not isinstance(error, NotFiniteError):
            again.append((batches, attempt + 1))
        else:
            runs = batch.cell.block
            at = ", ".join(points[index].label for points, index in zip(self.plan.axes.values(), batch.cell.at, strict=True))
            name = f"{at}; runs {batch.first_block * runs}-{(batch.first_block + 1) * runs - 1}, rounds {batch.start + 1}-{batch.stop}"
            self.failed[name] = str(error) if isinstance(error, NotFiniteError) else f"{type(error).__name__}: {error}"

    def _work(self, unit: Unit) -> int:
        return self.cells[unit.cell].block * (unit.stop - unit.start)

    def _write(self, batches: list[Batch], results: list[Result]) -> None:
        units = [Unit(one.cell.id, one.first_block + i, one.start, one.stop) for one in batches for i in range(one.blocks)]
        for unit, result in zip(units, results, strict=True):
            self.states.write(unit, result)
            self.computed += 1
            self.bar.update(0 if self.in_process else self._work(unit), self._done())

    def _done(self) -> str:
        return f"units {self.units - len(self.missing) + self.computed}/{self.units}"
