"""Where the time of a delay for each play goes: passes over the runs, and what one costs.

    python experiments/bench/passes.py

Plays that are due are handed to the learner one for each run at a time: a round makes as many passes as the run with the most
arrivals needs. Counted by NumPy; the cost by playing with the number of passes nailed down (which is then another game).
"""

import os
import statistics
import time
import warnings

import jax
import numpy as np
from jax import lax

import jaxbandit as jb
from jaxbandit import blocks, pending

RUNS, ROUNDS, MEAN = 256, 2_000, 10.0


def count() -> None:
    """How many passes a round makes, and for how many runs each pass has something."""
    draw = np.random.default_rng(0)
    delays = np.floor(-np.log1p(-draw.random((ROUNDS, RUNS))) / np.log1p(1 / MEAN)).astype(int)
    arrivals = np.zeros((ROUNDS + delays.max() + 1, RUNS), int)
    for t in range(ROUNDS):
        np.add.at(arrivals, (t + delays[t], np.arange(RUNS)), 1)
    settled = arrivals[200:ROUNDS]
    shares = ", ".join(f"{(settled > n).mean():.1%}" for n in range(5))
    print(f"{settled.max(1).mean():.2f} passes a round; runs with something to do in pass 1, 2, …: {shares}")


def microseconds(delays: jb.delays.Delays) -> float:
    """Processor time of one round of 256 runs, the better half of ten turns."""
    game = jb.BestOfBothWorlds(127), jb.losses.Bernoulli([0.3, *[0.5] * 9]), delays
    took = []
    for _ in range(12):
        begun = time.process_time()
        jb.simulate(*game, rounds=ROUNDS, runs=RUNS, key=jax.random.key(0))
        took.append(1e6 * (time.process_time() - begun) / ROUNDS)
    return statistics.fmean(sorted(took[2:])[:5])


def main() -> None:
    os.sched_setaffinity(0, {0})  # before JAX starts its threads
    warnings.simplefilter("ignore")
    jb.use_all_cores()
    count()
    law = jb.delays.Geometric(MEAN, bound=127)
    print(f"fixed delay: {microseconds(jb.delays.Fixed(10)):.1f} us a round; a delay for each play: {microseconds(law):.1f}")
    for passes in (0, 1, 3, 6):
        pending._repeat = lambda proceed, body, carry, *_, passes=passes: lax.fori_loop(0, passes, lambda _, c: body(c), carry)
        blocks.advance.clear_cache()
        print(f"{passes} passes in every round: {microseconds(law):.1f}")


if __name__ == "__main__":
    main()
