"""``jax.vmap(jb.rollout)`` beside ``jb.simulate`` on GPUs, by the compiler's counts: kernels per round and bytes per run and round.

python -m experiments.accelerators.mapped --targets t4 h100 --arms 2 10

No device is needed. The map is over run ids, as in ``simulate``, or with ``--over keys`` over keys, or with ``--over means`` over the means
of the losses, one row of arms for each run. Rows that miss the target, within 1 kernel and 10% of the bytes, are marked.
"""

import argparse
import sys
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from experiments.accelerators import compilers
from experiments.accelerators.__main__ import compiled_for
from jaxbandit._engine import mapping
from jaxbandit._engine.choose import CHUNK, choose_execution
from jaxbandit._engine.set_up import checked_game

LAWS = {"fixed": jb.delays.Fixed(10), "geometric": jb.delays.Geometric(10.0, bound=127)}
ROUNDS = 10_000
MORE_KERNELS, MORE_BYTES = 1, 1.1  # than simulate has


def mapped_round(target: str, arms: int, law: str, runs: int, over: str = "ids") -> compilers.Round:
    """The cost of a round of ``jax.jit(jax.vmap(rollout))``, compiled for ``target``."""
    learner, means, key = jb.BestOfBothWorlds(10), [0.3, *[0.5] * (arms - 1)], jax.random.key(0)

    def one(value: jax.Array) -> jax.Array:
        losses = jb.losses.Bernoulli(value if over == "means" else means)
        who = {"key": value if over == "keys" else key} | ({"first_run": value} if over == "ids" else {})
        return jb.rollout(learner, losses, LAWS[law], rounds=ROUNDS, record=[ROUNDS], **who).regret[-1]

    shapes = {
        "ids": jax.ShapeDtypeStruct((runs,), jnp.uint32),
        "keys": jax.ShapeDtypeStruct((runs,), key.dtype),
        "means": jax.ShapeDtypeStruct((runs, arms), jnp.float32),
    }
    with mock.patch.object(mapping, "platform", return_value=compilers.TARGETS[target].platform):
        text = compilers.compile_for(target, jax.jit(jax.vmap(one)), (shapes[over],))
    return compilers.read_round(text, target, CHUNK, runs)


def simulated_round(target: str, arms: int, law: str, runs: int, over: str = "ids") -> dict[str, Any]:
    """The report of a block of ``runs`` runs of ``simulate``, with one row of means per run if the map is over means."""
    means = np.array([0.3, *[0.5] * (arms - 1)])
    losses = jb.losses.Bernoulli(np.repeat(means[:, None], runs, 1) if over == "means" else means)
    given: dict[str, Any] = {"rounds": ROUNDS, "key": jax.random.key(0), "runs": runs, "first_run": 0, "values_per_run": True}
    game, flags = checked_game(jb.BestOfBothWorlds(10), losses, LAWS[law], **given)
    it = compilers.TARGETS[target]
    execution = choose_execution(game, it.platform, it.memory, block=runs, flags=flags)
    return compiled_for(target, game, execution=execution, count_registers=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--targets", nargs="+", choices=[name for name in compilers.TARGETS if name != "tpu"], default=["t4", "a100", "h100"]
    )
    parser.add_argument("--arms", type=int, nargs="+", default=[2, 10])
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=list(LAWS))
    parser.add_argument("--over", choices=("ids", "keys", "means"), default="ids")
    parser.add_argument("--runs", type=int, default=65536)
    given = parser.parse_args()
    for target in given.targets:
        if message := compilers.missing(target):
            sys.exit(message)
    print(
        "| target | delays | K | simulate: kernels | bytes | vmap(rollout): kernels | bytes | million rounds/s, estimates | note |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for target in given.targets:
        for law in given.laws:
            for arms in given.arms:
                there = simulated_round(target, arms, law, given.runs, given.over)
                here = mapped_round(target, arms, law, given.runs, given.over)
                traffic, had = here.bytes / given.runs, there["bytes_per_run_round"]
                missed = here.kernels > there["kernels_per_round"] + MORE_KERNELS or traffic > MORE_BYTES * had
                notes = [f"{here.unknown_loops} loops of unknown length"] * bool(here.unknown_loops) + [
                    "misses the target"
                ] * missed
                speeds = f"{there['estimated_rounds_per_second'] / 1e6:,.0f} and {given.runs / here.seconds / 1e6:,.0f}"
                counts = f"{there['kernels_per_round']} | {had:.0f} | {here.kernels} | {traffic:.0f}"
                print(f"| {target} | {law} | {arms} | {counts} | {speeds} | {'; '.join(notes)} |", flush=True)


if __name__ == "__main__":
    main()
