"""Past one machine: what the sweep's own scheduler and store cost, and what large sweeps would take.

    python experiments/bench/scale.py [units ...]

Units that compute nothing go through the real scheduler and the real store; what is left is their cost for each unit. The
table multiplies it out, beside the measured speed of one core. GPUs and clusters are arithmetic here, not measurements.
"""

import dataclasses
import sys
import tempfile
import time

import jax

import jaxbandit as jb
from jaxbandit.simulate import block_size
from jaxbandit.sweep import run

ROUNDS = 10


def overhead(units: int) -> tuple[float, float]:
    """Seconds for each unit: scheduled and written; and listed and checked when a finished sweep is opened again."""
    arms, real, made = 4, run.play, {}

    def nothing(task):
        if not made:
            (made["block"],) = real(dataclasses.replace(task, blocks=1))
        size = block_size(arms)
        return [dataclasses.replace(made["block"], first_run=(task.first_block + i) * size) for i in range(task.blocks)]

    spec = jb.Spec(
        rounds=ROUNDS,
        runs=units * block_size(arms),
        learners=[jb.BestOfBothWorlds(max_delay=10)],
        losses=[jb.losses.Bernoulli([0.3, *[0.5] * (arms - 1)])],
        delays=[jb.delays.Fixed(10)],
        record=[ROUNDS],
    )
    run.play = nothing
    try:
        with tempfile.TemporaryDirectory() as folder:
            jb.sweep(dataclasses.replace(spec, runs=1), folder + "/warm")
            start = time.perf_counter()
            jb.sweep(spec, folder + "/out")
            middle = time.perf_counter()
            jb.sweep(spec, folder + "/out")
            return (middle - start) / units, (time.perf_counter() - middle) / units
    finally:
        run.play = real


def speed() -> float:
    """Rounds per second of one core at K = 10, d = 10."""
    game = jb.BestOfBothWorlds(10), jb.losses.Bernoulli([0.3, *[0.5] * 9]), jb.delays.Fixed(10)
    best = 0.0
    for _ in range(4):
        start = time.perf_counter()
        jb.simulate(*game, rounds=10_000, runs=256, key=jax.random.key(0))
        best = max(best, 256 * 10_000 / (time.perf_counter() - start))
    return best


def duration(seconds: float) -> str:
    for unit, size in (("years", 365 * 86_400), ("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} s"


def main(counts: list[int]) -> None:
    print("| units | scheduled and written, ms for each | opened again, ms for each |\n|---|---|---|")
    for units in counts:
        write, again = overhead(units)
        print(f"| {units:,} | {write * 1e3:.2f} | {again * 1e3:.2f} |", flush=True)
    core, seconds = speed(), 4.0
    print(f"\nOne core: {core / 1e6:.1f} million rounds/s. A unit of {seconds:.0f} s is {core * seconds:.2g} run-rounds.")
    print(f"One scheduler keeps {seconds / write:,.0f} cores busy with units of {seconds:.0f} s.\n")
    print("| run-rounds | units | 2 cores | 100 workers of one core | the scheduler alone |\n|---|---|---|---|---|")
    for size in (1e9, 1e12, 1e15):
        units = max(size / (core * seconds), 1)
        least = units * write
        print(
            f"| {size:.0e} | {units:,.0f} | {duration(size / core / 2)} | {duration(max(size / core / 100, least))} | {duration(least)} |"
        )


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1_000, 10_000])
