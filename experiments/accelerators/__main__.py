"""Compile a block of runs for a GPU or TPU that need not be present, and report kernels, bytes and estimated speed.

python -m experiments.accelerators t4 --arms 10 --delays 'fixed(10)'
"""

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp

from experiments.accelerators.compilers import TARGETS, compile_for, missing, read_registers, read_round
from jaxbandit._engine import blocks
from jaxbandit._engine.choose import check_memory, choose_execution, shapes_of
from jaxbandit._engine.execution import Execution
from jaxbandit._engine.game import Game
from jaxbandit.cli import main_of
from jaxbandit.cli.app import ALL_OR_NOTHING
from jaxbandit.cli.doctor import RUNS, about, game_of, print_report
from jaxbandit.cli.errors import CommandError
from jaxbandit.cli.options import Whole, check_folder

RECORDED = 50  # rounds at which the compiled program records the regret
NAME = "python -m experiments.accelerators"


def read_compiled(
    target: Literal["t4", "a100", "h100", "tpu"],
    /,
    *,
    learner: str = "bobw(max_delay=10)",
    arms: Whole = 10,
    delays: str = "fixed(10)",
    runs: Whole = RUNS,
    dump: Path | None = None,
    json: bool = False,
) -> None:
    """Compile a block of runs for a device that need not be present: kernels per round, bytes, estimated speed.

    The estimate is good to a factor of two. It was never compared with hardware.

    Parameters
    ----------
    target
        The device to compile for.
    learner
        Such as "bobw(max_delay=10)", with any of its fields.
    arms
        Number of arms (Bernoulli losses).
    delays
        Such as "fixed(10)" or "geometric(mean=10.0, bound=127)".
    runs
        Number of runs of the simulation.
    dump
        Folder for the compiler's output.
    json
        Print one JSON object.
    """
    if dump is not None:
        check_folder(dump, "--dump")
    if message := missing(target):
        raise CommandError(f"{target}: {message}")
    game = game_of(learner, arms, delays, runs)
    it = TARGETS[target]
    execution = choose_execution(game, it.platform, it.memory)
    try:
        check_memory(*shapes_of(game, execution, execution.block)[1:], it.memory)
    except ValueError as error:
        raise CommandError(f"{target}: {error}") from error
    print_report({"jax": jax.__version__, **compiled_for(target, game, dump, execution)}, json)


def compiled_for(
    target: str, game: Game, dump: Path | None = None, execution: Execution | None = None, count_registers: bool = True
) -> dict[str, Any]:
    """Kernels, memory traffic, registers and estimated speed of a block, compiled for ``target``.

    Args:
      target: a name in :data:`experiments.accelerators.compilers.TARGETS`.
      game: what is simulated.
      dump: folder for the compiler's output.
      execution: if not the one that ``simulate`` would choose on this device.
      count_registers: run NVIDIA's assembler, which takes seconds.
    """
    it = TARGETS[target]
    execution = execution or choose_execution(game, it.platform, it.memory)
    player, game, state = shapes_of(game, execution, execution.block)
    numbers = (jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((RECORDED + 1,), jnp.int32))
    with tempfile.TemporaryDirectory() as scratch:  # not ``dump``, which may hold kernels of another program
        begun = time.perf_counter()
        try:
            text = compile_for(target, blocks.advance.plain, (player, game, state, *numbers), scratch, probabilities=False)
        finally:
            if dump is not None:
                shutil.copytree(scratch, dump, dirs_exist_ok=True)
        seconds = time.perf_counter() - begun
        registers = read_registers(scratch) if count_registers else None
    if dump is not None:
        (dump / "compiled.txt").write_text(text)
    cost = read_round(text, target, execution.chunk, execution.block)
    return {"compiled_for": it.name, **about(execution)} | {
        "kernels_per_round": cost.kernels,
        "bytes_per_run_round": round(cost.bytes / execution.block, 1),
        "unknown_trip_counts": cost.unknown_loops,
        "ring_copies": cost.copies,
        "registers": registers and registers.most,
        "spilled_bytes": registers and registers.spilled,
        "estimated_cycles_per_round": cost.cycles,
        "estimated_rounds_per_second": round(execution.block / cost.seconds),
        "compile_seconds": round(seconds, 1),
    }


if __name__ == "__main__":
    main_of(read_compiled, NAME, ALL_OR_NOTHING)
