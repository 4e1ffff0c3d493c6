"""The input and output of a worker: some blocks of one cell over one segment of rounds, without files."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxbandit._checks.inputs import given_key
from jaxbandit._core.fields import arms_first
from jaxbandit._engine.blocks import start
from jaxbandit._engine.packing import Part, play_packed
from jaxbandit._engine.player import Player
from jaxbandit._engine.simulation import Stretch, simulate_runs
from jaxbandit._io.progress import Progress
from jaxbandit._provenance.environment import differences, environment
from jaxbandit._provenance.identity import fingerprint
from jaxbandit._provenance.user_code import code_digest
from jaxbandit.results.result import Result
from jaxbandit.sweeps.plan import Cell, measurements


class NotFiniteError(ArithmeticError):
    """A result has infinite or NaN values."""


class WorkerError(RuntimeError):
    """A worker whose environment or code differs from that of the process that writes the store."""


@dataclasses.dataclass(frozen=True)
class Batch:
    """Consecutive units of one cell and one segment."""

    cell: Cell
    first_block: int
    blocks: int
    start: int  # rounds already simulated
    stop: int
    record: Sequence[int]
    seed: int
    control_variates: bool
    resume: Result | None  # of these blocks, when start > 0
    environment: dict[str, Any] | None  # that a worker must have; None: any
    code: str | None  # the mark of the user's own code in the cell, see jaxbandit._provenance.user_code


def play(batch: Batch, progress: bool | Progress = False) -> list[Result]:
    """The results of a batch, one for each block; bitwise identical for any grouping of blocks."""
    _check_worker(batch)
    result = arms_first(simulate_runs)(
        batch.cell.learner,
        batch.cell.losses,
        batch.cell.delays,
        rounds=batch.stop,
        runs=batch.blocks * batch.cell.block,
        first_run=batch.first_block * batch.cell.block,
        key=given_key(None, batch.seed),
        record=batch.record,
        spacing="log",
        probabilities=False,
        resume=batch.resume,
        measure=measurements(batch.control_variates),
        progress=progress,
        block=batch.cell.block,
    )
    return _by_block(batch, result)


def play_together(batches: Sequence[Batch], progress: bool | Progress = False) -> list[Result]:
    """The results of batches over one segment, in order; several batches are of cells of one shape and run in one launch."""
    execution = batches[0].cell.execution
    if execution is None:
        return [result for batch in batches for result in play(batch, progress)]
    parts = []
    for batch in batches:
        _check_worker(batch)
        cell, key = batch.cell, given_key(None, batch.seed)
        game = cell.game(batch.seed, batch.control_variates, batch.first_block, batch.blocks)
        identity = fingerprint(cell.learner, cell.losses, cell.delays, key, measurements(batch.control_variates))
        parts.append(Part(game, identity, batch.resume))
    first = batches[0]
    stretch = Stretch(first.start, np.asarray(first.record), len(first.record))
    results = play_packed(parts, execution, stretch, progress)
    return [one for batch, result in zip(batches, results, strict=True) for one in _by_block(batch, result)]


def _check_worker(batch: Batch) -> None:
    """Raise if a worker has other settings, or another version of the user's code."""
    other = differences(batch.environment, environment()) if batch.environment is not None else []
    if other:
        raise WorkerError(f"the worker is not like the process that called sweep ({'; '.join(other)})")
    if code_digest((batch.cell.learner, batch.cell.losses, batch.cell.delays)) != batch.code:
        raise WorkerError("the worker has other code of the learner, the losses or the delays than the process that called sweep")


def _by_block(batch: Batch, result: Result) -> list[Result]:
    """Split the result of a batch into those of its blocks; raises if a value is not finite."""
    _check_finite(result)
    block = batch.cell.block
    return [result.take_runs(index * block, (index + 1) * block) for index in range(batch.blocks)]


def _check_finite(result: Result) -> None:
    bad = np.argwhere(~np.isfinite(result.regret))
    if len(bad):
        row, run = bad[0]
        raise NotFiniteError(
            f"the regret of run {result.first_run + run} at round {result.rounds[row]} is {result.regret[row, run]}; "
            "is a hyperparameter or a parameter of the losses too large or too small?"
        )
    for name, values in result.measured.items():
        if not np.isfinite(values).all():
            raise NotFiniteError(f"the measurement {name} is not finite, although the regret is")


def block_state(cell: Cell, control_variates: bool) -> Any:
    """Shapes and dtypes of the state of one block."""
    return start.eval_shape(Player(), cell.game(0, control_variates, 0, 1))


def block_bytes(cell: Cell, control_variates: bool, records: int) -> int:
    """The bytes of the result of one block: its state and its records."""
    state = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(block_state(cell, control_variates)))
    return state + 8 * records * cell.block * (1 + cell.losses.num_arms * control_variates)
