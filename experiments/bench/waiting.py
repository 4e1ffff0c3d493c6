"""What it costs that every play has a delay of its own: outstanding observations in lists, or in slots, beside a fixed delay.

    python experiments/bench/waiting.py [--core 0]

On a CPU `jaxbandit._engine.execution` chooses slots by the number of arms and of rows; this is the table it is chosen from. Processor time of
one round of a block, the least of four turns.
"""

import argparse
import dataclasses
import os
import time
import warnings
from typing import Any

import jax

import jaxbandit as jb
from jaxbandit._engine import blocks
from jaxbandit._engine import choose as choosing
from jaxbandit._engine.execution import Execution, QueueKind

ROWS = ((10.0, 127), (100.0, 1023), (100.0, 2047), (1000.0, 16383))  # mean delay, longest
ARMS = (2, 4, 10, 16, 24, 32, 64, 100)
MOST = 1 << 18  # rows times arms that are tried


def microseconds(arms: int, delays: Any, waiting: QueueKind | None = None) -> float:
    """Processor time of one round of a block, with outstanding observations in the given queue, as chosen by default."""
    choose = choosing.choose_execution

    def chosen(*arguments: Any, **options: Any) -> Execution:
        execution = choose(*arguments, **options)
        return execution if waiting is None else dataclasses.replace(execution, queue=waiting)

    rounds, runs = max(300, 20_000 // arms), choosing.block_size(arms)
    game = jb.BestOfBothWorlds(delays.bound), jb.losses.Bernoulli([0.3, *[0.5] * (arms - 1)]), delays
    took = []
    blocks.choose_execution = chosen
    try:
        for _ in range(6):
            begun = time.process_time()
            jb.simulate(*game, rounds=rounds, runs=runs, key=jax.random.key(0))
            took.append(1e6 * (time.process_time() - begun) / rounds)
    finally:
        blocks.choose_execution = choose
    return min(took[2:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", type=int, default=0)
    os.sched_setaffinity(0, {parser.parse_args().core})  # before JAX starts its threads
    warnings.simplefilter("ignore")  # constants of learners do not matter here
    print("| mean delay, longest | arms | fixed delay, µs a round | lists | slots | lists over slots | fixed over the faster |")
    print("|---|---|---|---|---|---|---|")
    for mean, bound in ROWS:
        for arms in ARMS:
            if arms * bound > MOST:
                continue
            law = jb.delays.Geometric(mean, bound=bound)
            fixed = microseconds(arms, jb.delays.Fixed(10))
            lists, slots = (microseconds(arms, law, waiting) for waiting in ("listed", "slots in turn"))
            ratios = f"{lists / slots:.2f} | {fixed / min(lists, slots):.2f}"
            print(f"| {mean:g}, {bound} | {arms} | {fixed:.1f} | {lists:.1f} | {slots:.1f} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
