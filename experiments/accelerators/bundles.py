"""Instructions that a TPU issues in a round, as its compiler schedules them: flat rounds, and the Pallas kernel of earlier versions.

    python experiments/accelerators/bundles.py                     # flat rounds, ten arms, a fixed delay of 10
    git worktree add ../pallas 18ed9d7                           # the last commit that had the kernel
    python experiments/accelerators/bundles.py --pallas ../pallas
    python experiments/accelerators/bundles.py --blocks          # and the estimate for blocks of fewer runs

A TPU issues one bundle of instructions a cycle at most, so bundles are the cycles that computing takes where no memory is waited for.
The compiler's own ``estimated_cycles`` count memory too, but it gives none for a kernel of Pallas: bundles are what both have. Needs
the compilers (``make compilers``), no TPU.
"""

import argparse
import collections
import dataclasses
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ARMS, DELAY, RUNS, SLICE = 10, 10, 65536, 1024  # the kernel plays slices of 1,024 runs, one after the other
ROUND = 3  # how many loops are around the kernel's round: slices, records, rounds


def scheduled(dump: Path) -> dict[str, collections.Counter]:
    """For each kernel in the compiler's dump, how many bundles there are at each depth of loops."""
    found = {}
    for file in dump.glob("*-final_bundles.txt"):
        name = re.fullmatch(r"\d+-(.*)-\d+-final_bundles\.txt", file.name)
        if name and "schedule-analysis" not in file.name:
            lines = [line for line in file.read_text().splitlines() if re.match(r"\s*(0x[0-9a-f]+|0)\s", line)]
            found[name[1]] = collections.Counter(line.split("{")[0].count(">") for line in lines)
    return found


def bundles_of_a_turn(program: Any, loop: str, bundles: dict[str, collections.Counter]) -> int:
    """All bundles of one turn of a loop of a compiled program."""
    total = 0
    for one in program.computations[loop].values():
        turns = re.search(r'"iteration_bounds":\[(.*?)\]', one.rest)
        count = math.prod(map(int, re.findall(r"\d+", turns[1]))) if turns else 1
        counts = bundles.get(one.name, collections.Counter())
        total += counts[0] + count * (counts.total() - counts[0])
    return total


def flat(dump: Path) -> None:
    """Prints the bundles of one flat round and the compiler's estimate of its cycles."""
    from experiments.accelerators import compilers
    from experiments.accelerators.__main__ import compiled_for
    from jaxbandit.cli.doctor import game_of

    game = game_of(f"bobw(max_delay={DELAY})", ARMS, f"fixed({DELAY})", RUNS)
    report = compiled_for("tpu", game, dump / "texts", count_registers=False)
    program = compilers.Program((dump / "texts" / "compiled.txt").read_text())
    # The rounds of whole chunks and those that are left play the same kernels, which are dumped once: under the names of one loop.
    total = max(bundles_of_a_turn(program, loop.called("body") or "", scheduled(dump)) for loop in program.loops())
    print(f"flat: {total:,} bundles a round of {RUNS:,} runs")
    print(f"flat: {report['estimated_cycles_per_round']:,} estimated cycles, memory included")


def blocks(dump: Path) -> None:
    """Prints the compiler's estimate by the number of runs: small blocks are held in the fast memory of the chip as a whole."""
    from experiments.accelerators.__main__ import compiled_for
    from jaxbandit._engine.choose import choose_execution
    from jaxbandit.cli.doctor import game_of

    del dump
    for learner, law in (
        (f"bobw(max_delay={DELAY})", f"fixed({DELAY})"),
        ("bobw(max_delay=127)", "geometric(mean=10, bound=127)"),
    ):
        game = game_of(learner, ARMS, law, RUNS)
        for runs in (RUNS >> 4, RUNS >> 3, RUNS >> 2, RUNS >> 1, RUNS):
            execution = dataclasses.replace(choose_execution(game, "tpu"), block=runs)
            report = compiled_for("tpu", game, execution=execution, count_registers=False)
            cycles, moved = report["estimated_cycles_per_round"], report["bytes_per_run_round"]
            print(
                f"{law}, {runs:,} runs: {cycles:,} estimated cycles, {report['kernels_per_round']} kernels, {moved} bytes a run",
                flush=True,
            )


def pallas(dump: Path) -> None:
    """Prints the bundles of one round in the kernel of the checkout that is on the path."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import topologies
    from jaxbandit.rollout import Game  # type: ignore[import-not-found]

    import jaxbandit as jb
    from jaxbandit import kernel  # type: ignore[attr-defined]
    from jaxbandit._core.fields import canonical

    losses = jb.losses.Bernoulli([0.3, *[0.5] * (ARMS - 1)])
    parts = map(canonical, (jb.BestOfBothWorlds(DELAY), losses, jb.delays.Fixed(DELAY)))
    game = Game.set_up(*parts, jax.random.key(0), jnp.arange(RUNS, dtype=jnp.uint32))
    device = topologies.get_topology_desc("v5e:2x2", platform="tpu").devices[0]
    sharding = jax.sharding.SingleDeviceSharding(device)
    arguments = game, jax.eval_shape(lambda game: game.start(), game), jnp.int32(0), jnp.zeros(2, jnp.int32)
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), arguments)
    jax.jit(lambda *given: kernel.advance(*given, False, platform="tpu")).lower(*shapes).compile()
    (counts,) = (counts for name, counts in scheduled(dump).items() if name.startswith("play_rounds"))
    print(f"Pallas: {counts[ROUND]} bundles a round of {SLICE:,} runs, {counts[ROUND] * RUNS // SLICE:,} of {RUNS:,} runs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pallas", type=Path, metavar="CHECKOUT", help="also the kernel of this checkout")
    parser.add_argument("--blocks", action="store_true", help="the estimate by the number of runs, instead of bundles")
    given = parser.parse_args()
    here = [os.environ.get("PYTHONPATH", ""), str(Path(__file__).parents[2])]
    for work, path in [
        ("blocks" if given.blocks else "flat", here),
        *([("pallas", [str(given.pallas.resolve())])] if given.pallas else []),
    ]:
        with tempfile.TemporaryDirectory() as dump:
            words = {"SKIP_MDS_QUERY": "1", "ACCELERATOR_TYPE": "v5litepod-4", "WORKER_HOSTNAMES": "localhost"}
            subprocess.run(
                [sys.executable, __file__, work, dump],
                check=True,
                env=os.environ
                | {f"TPU_{name}": value for name, value in words.items()}
                | {
                    "JAX_PLATFORMS": "cpu",
                    "PYTHONPATH": os.pathsep.join(filter(None, path)),
                    "LIBTPU_INIT_ARGS": f"--xla_jf_dump_to={dump} --xla_jf_dump_llo_text=true",
                },
            )


if __name__ == "__main__":
    WORK = {"flat": flat, "blocks": blocks, "pallas": pallas}
    if len(sys.argv) == 3 and sys.argv[1] in WORK:
        WORK[sys.argv[1]](Path(sys.argv[2]))
    else:
        main()
