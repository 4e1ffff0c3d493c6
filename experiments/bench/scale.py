"""Past one machine: what the sweep's own scheduler and store cost, and what large sweeps would take.

    python experiments/bench/scale.py [--scheduled UNITS ...] [--stored UNITS ...]

Units that compute nothing go through the real scheduler, one by one, and through the real store; what is left is their cost for each
unit. A million units are scheduled without being written (their files would fill some 60 GB); fewer are written, to see that the cost of
each does not depend on how many there are. The table multiplies it out, beside the measured speed of one core. GPUs and clusters are
arithmetic here, not measurements.
"""

import argparse
import contextlib
import dataclasses
import tempfile
import time
from pathlib import Path
from unittest import mock

import jax

import jaxbandit as jb
from jaxbandit._engine.choose import block_size
from jaxbandit.sweeps import run
from jaxbandit.sweeps.writer import StoreWriter

ROUNDS, ARMS, CELLS = 10, 4, 100
WORKER = 4.0  # seconds a worker should be busy with one batch
# An H100 by count, not by measurement: 132 processors start 4 instructions at 1.7 GHz, each for 32 runs, and the compiled round has
# about 2,100 for 32 runs (read from an earlier version's machine code). What waiting for memory costs is not in it.
GPU = 132 * 4 * 1.7e9 * 32 / 2_100


def overhead(units: int, *, stored: bool) -> tuple[float, float]:
    """Seconds for each unit: handed out, taken back and, if asked for, written; and to find nothing left to do when begun again."""
    real, made = run.play_together, {}
    size = block_size(ARMS)

    def nothing(batches, progress=False):
        (batch,) = batches
        if not made:
            (made["block"],) = real([dataclasses.replace(batch, blocks=1)])
        return [dataclasses.replace(made["block"], first_run=(batch.first_block + i) * size) for i in range(batch.blocks)]

    spec = jb.Spec(
        rounds=ROUNDS,
        runs=units // CELLS * size,
        learners=[jb.BestOfBothWorlds(max_delay=CELLS)],
        losses=[jb.losses.Bernoulli([0.3, *[0.5] * (ARMS - 1)])],
        delays=[jb.delays.Fixed(delay, bound=CELLS) for delay in range(CELLS)],
        record=[ROUNDS],
    )
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(run, "play_together", nothing))
        jb.sweep(dataclasses.replace(spec, runs=1), folder + "/warm")
        if not stored:
            stack.enter_context(mock.patch.object(StoreWriter, "write", return_value=Path(folder)))
        start = time.perf_counter()
        jb.sweep(spec, folder + "/out", unit_seconds=1e-9)
        middle = time.perf_counter()
        if stored:
            jb.sweep(spec, folder + "/out")
        return (middle - start) / units, (time.perf_counter() - middle) / units


def speed() -> float:
    """Rounds per second of one core at K = 10, d = 10."""
    game, runs = (jb.BestOfBothWorlds(10), jb.losses.Bernoulli([0.3, *[0.5] * 9]), jb.delays.Fixed(10)), 1024
    best = 0.0
    for _ in range(4):
        start = time.perf_counter()
        jb.simulate(*game, rounds=10_000, runs=runs, key=jax.random.key(0))
        best = max(best, runs * 10_000 / (time.perf_counter() - start))
    return best / jax.local_device_count()


def duration(seconds: float) -> str:
    for unit, size in (("years", 365 * 86_400), ("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheduled", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--stored", type=int, nargs="+", default=[1_000, 10_000])
    options = parser.parse_args()
    print(f"{CELLS} settings, batches of one unit for each of {jax.local_device_count()} devices.\n")
    print(
        "| units | scheduled, ms for each | and written, ms for each | begun again when all is done, ms for each |\n|---|---|---|---|"
    )
    for units in options.scheduled:
        print(f"| {units:,} | {overhead(units, stored=False)[0] * 1e3:.3f} | | |", flush=True)
    write = 0.0
    for units in options.stored:
        write, again = overhead(units, stored=True)
        print(f"| {units:,} | | {write * 1e3:.2f} | {again * 1e3:.2f} |", flush=True)
    core = speed()
    print(f"\nOne core: {core / 1e6:.1f} million rounds/s. A unit of {WORKER:.0f} s is {core * WORKER:.2g} run-rounds.")
    print(f"One scheduler keeps {WORKER / write:,.0f} cores busy with units of {WORKER:.0f} s.\n")
    print(
        "| run-rounds | units | 2 cores | 100 workers of one core | one H100, at the very best | the scheduler alone |\n|---|---|---|---|---|---|"
    )
    for size in (1e9, 1e12, 1e15):
        units = max(size / (core * WORKER), 1)
        least = units * write
        print(
            f"| {size:.0e} | {units:,.0f} | {duration(size / core / 2)} | {duration(max(size / core / 100, least))} | {duration(size / GPU)} | {duration(least)} |"
        )


if __name__ == "__main__":
    main()
