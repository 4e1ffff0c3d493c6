"""What one core could do at best, and how far the engine is from it: prints a page in Markdown.

    python experiments/bench/roofline.py [K] [d]

Operations and bytes of one round come from the compiled program, the throughput of the costly operations from loops that do
nothing else on arrays of the same shape, and the share of each kernel from a profile of a run, for which the loop is
compiled as separate kernels (a simulation compiles them as one function).
"""

import collections
import glob
import os
import sys
import tempfile
import time

os.environ["PJRT_NPROC"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_prefer_vector_width=512"  # as simulations are compiled
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {0})

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxbandit as jb
from jaxbandit._core import randomness
from jaxbandit._core.fields import canonical
from jaxbandit._engine.choose import block_size
from jaxbandit._engine.game import Game
from jaxbandit._engine.player import Player

ROUNDS = 3_000


def nanoseconds(operation, *arrays, chained: int = 1, repeats: int = 3_000) -> float:
    """Time of one operation on one element; ``chained`` in one kernel, where they are so cheap that its start would count."""

    def chain(_, arrays):
        for _ in range(chained):
            arrays = operation(*arrays)
        return arrays

    @jax.jit
    def many(arrays):
        return lax.fori_loop(0, repeats, chain, arrays)

    jax.block_until_ready(many(arrays))
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        jax.block_until_ready(many(arrays))
        best = min(best, time.perf_counter() - start)
    return best / repeats / chained / arrays[0].size * 1e9


def throughput(num_arms: int, runs: int) -> dict[str, tuple[float, int]]:
    """For each costly operation: nanoseconds for one element, and how many elements a round needs for each run."""
    shape = jnp.full((num_arms, runs), 1.5, jnp.float32)
    words = jnp.arange(runs, dtype=jnp.uint32)

    def threefry(first, second):
        return tuple(randomness.threefry(randomness.Words(first[0], second[0]), randomness.Words(first, second)))

    # Two warm steps: a logarithm and two divisions each; a division and a logarithm for the rest; one block of threefry.
    return {
        "log": (nanoseconds(lambda x: (jnp.log(x) + 1.2,), shape), 2 * num_arms + 1),
        "division": (nanoseconds(lambda x: (2.1 / (x + 0.3),), shape, chained=4), 6 * num_arms + 6),
        "square root": (nanoseconds(lambda x: (jnp.sqrt(x) + 0.3,), shape, chained=4), 3),
        "multiply and add": (nanoseconds(lambda x: (x * 0.7 + 0.3,), shape, chained=12), 0),
        "threefry": (nanoseconds(threefry, words, words), 1),
    }


def kernels(play) -> list[tuple[str, float]]:
    """Name and microseconds for each round of every kernel of the loop body, from a profile."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            play(ROUNDS)
        (path,) = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
        time_of, count = collections.Counter(), collections.Counter()
        for plane in jax.profiler.ProfileData.from_file(path).planes:
            for line in plane.lines:
                for event in line.events:
                    time_of[event.name] += event.duration_ns
                    count[event.name] += 1
    return [
        (name, time_of[name] / ROUNDS / 1e3)
        for name, times in count.items()
        if times >= ROUNDS and not name.startswith(("end: ", "$", "ThunkExecutor", "while"))
    ]


def main(num_arms: int, delay: int) -> None:
    runs = block_size(num_arms)
    learner, delays = jb.BestOfBothWorlds(max_delay=delay), jb.delays.Fixed(delay)
    losses = jb.losses.Bernoulli([0.3, *[0.5] * (num_arms - 1)])

    def play(rounds):
        start = time.perf_counter()
        jb.simulate(learner, losses, delays, rounds=rounds, runs=runs, key=jax.random.key(0), record=[rounds])
        return time.perf_counter() - start

    play(10)
    seconds = min(play(10 * ROUNDS) for _ in range(3)) / (10 * ROUNDS)
    game = Game.set_up(
        canonical(learner), canonical(losses), canonical(delays), jax.random.key(0), jnp.arange(runs, dtype=jnp.uint32)
    )
    step = jax.jit(Player().step).lower(game, Player().start(game), jnp.int32(5)).compile()
    cost = step.cost_analysis()
    print(f"# One round of MZS22, K = {num_arms}, d = {delay}, {runs} runs on one core\n")
    print(f"Measured: {seconds * 1e6:.1f} µs a round, {runs / seconds / 1e6:.1f} million rounds/s.\n")
    print("| of one round, by the compiled program | in all | for each run |\n|---|---|---|")
    for name, label in (("flops", "operations"), ("transcendentals", "logarithms and such"), ("bytes accessed", "bytes")):
        print(f"| {label} | {cost[name]:,.0f} | {cost[name] / runs:,.0f} |")
    print("\n| costly operation | ns for one | needed for each run | µs a round |\n|---|---|---|---|")
    least = 0.0
    for name, (each, needed) in throughput(num_arms, runs).items():
        needed = needed or cost["flops"] / runs / 2  # the rest of the arithmetic, two to an instruction
        least += each * needed * runs / 1e3
        print(f"| {name} | {each:.3f} | {needed:.0f} | {each * needed * runs / 1e3:.2f} |")
    print(f"\nIn sum {least:.1f} µs, were nothing else to be done: the engine is at {least / seconds / 1e6:.0%} of that.\n")
    found = sorted(kernels(play), key=lambda pair: -pair[1])
    total = sum(duration for _, duration in found)
    print(f"{len(found)} kernels in the loop body (times with the profiler on, {total:.1f} µs in sum):\n")
    print("| kernel | µs | share |\n|---|---|---|")
    for name, duration in found:
        print(f"| {name} | {duration:.2f} | {duration / total:.1%} |")


if __name__ == "__main__":
    main(*(int(word) for word in (sys.argv[1:] + ["10", "10"][len(sys.argv) - 1 :])))
