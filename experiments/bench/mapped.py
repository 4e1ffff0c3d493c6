"""``jax.vmap(jb.rollout)`` beside ``jb.simulate``: million rounds per second of processor time, and the ratio.

Run it as ``taskset -c 0 python -m experiments.bench.mapped``; ``--arms 2 10`` and ``--laws fixed`` choose some rows. The map is over run ids,
as in ``simulate``, or with ``--over keys`` over keys, which takes one more hash for each random word. The forms:

- ``vmap``: ``jax.vmap(rollout)(ids)``;
- ``jit``: ``jax.jit(jax.vmap(rollout))(ids)``;
- ``jit, wide``: the same with ``compiler_options={"xla_cpu_prefer_vector_width": 512}``, which only the caller of ``jit`` can give;
- ``narrow``: ``simulate`` with programs of 256-bit vectors, XLA's default: the most that ``jit`` can reach without the option.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from jaxbandit._engine import programs, simulation

WIDE = {"xla_cpu_prefer_vector_width": 512}
LAWS = {"fixed": jb.delays.Fixed(10), "geometric": jb.delays.Geometric(10.0)}


def forms(arms: int, law: str, runs: int, rounds: int, over: str) -> dict[str, Callable[[], object]]:
    """What is measured: functions that return when all runs are played."""
    game = jb.BestOfBothWorlds(10), jb.losses.Bernoulli([0.3, *[0.5] * (arms - 1)]), LAWS[law]
    key = jax.random.key(0)
    mapped_over = jax.random.split(key, runs) if over == "keys" else jnp.arange(runs)

    def one(value: jax.Array) -> jax.Array:
        who: Any = {"key": value} if over == "keys" else {"key": key, "first_run": value}
        return jb.rollout(*game, rounds=rounds, record=[rounds], **who).regret[-1]

    mapped = {"vmap": jax.vmap(one), "jit": jax.jit(jax.vmap(one)), "jit, wide": jax.jit(jax.vmap(one), compiler_options=WIDE)}
    timed: dict[str, Callable[[], object]] = {name: lambda f=f: np.asarray(f(mapped_over)) for name, f in mapped.items()}
    with mock.patch.object(programs, "WIDE", {}):
        narrow = programs.Program(simulation.advance.function)

    def simulated() -> object:
        return jb.simulate(*game, rounds=rounds, runs=runs, seed=0, record=[rounds])

    def simulated_narrow() -> object:
        with mock.patch.object(simulation, "advance", narrow):
            return simulated()

    return {"simulate": simulated} | timed | {"narrow": simulated_narrow}


def speeds(arms: int, law: str, runs: int, rounds: int, over: str, repeats: int) -> dict[str, float]:
    """Million rounds per second of processor time, the best of ``repeats`` turns in which the forms follow each other."""
    measured = forms(arms, law, runs, rounds, over)
    best = dict.fromkeys(measured, np.inf)
    for function in measured.values():
        function()  # compiles
    for _ in range(repeats):
        for name, function in measured.items():
            begun = time.process_time()
            function()
            best[name] = min(best[name], time.process_time() - begun)
    return {name: runs * rounds / seconds / 1e6 for name, seconds in best.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arms", type=int, nargs="+", default=[2, 10, 100])
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=list(LAWS))
    parser.add_argument("--over", choices=("ids", "keys"), default="ids")
    parser.add_argument("--runs", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # few rounds for so many arms: only the speed matters here
    names = ["simulate", "vmap", "jit", "jit, wide", "narrow"]
    print(f"| delays | K | {' | '.join(names)} | {' | '.join(f'{name} / simulate' for name in names[1:])} |")
    print("|---" * (1 + 2 * len(names)) + "|")
    for law in given.laws:
        for arms in given.arms:
            found = speeds(arms, law, given.runs, given.rounds, given.over, given.repeats)
            rates = " | ".join(f"{rate:.1f}" for rate in found.values())
            ratios = " | ".join(f"{found[name] / found['simulate']:.2f}" for name in names[1:])
            print(f"| {law} | {arms} | {rates} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
