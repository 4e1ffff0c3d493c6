"""What a user gets who prepares nothing: speed, start, small simulations, memory, compilation. Markdown tables.

    python -m experiments.bench.calls            # all of them, one to two minutes
    python -m experiments.bench.calls small      # one of: default, first, small, memory, compiling, loop
    python -m experiments.bench.calls --quick    # small sizes, to see that it works

Every row is measured in a fresh interpreter without environment variables of ours. Times are processor time unless they say wall time.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

HEAD = """
import json, resource, sys, time, warnings
warnings.simplefilter("ignore")  # few rounds: only the cost matters here
used, wall = time.process_time, time.perf_counter
"""
GAME = """
import jaxbandit as jb
game = jb.BestOfBothWorlds(10), jb.losses.Bernoulli([0.3, *[0.5] * (arms - 1)]), delays
"""
TIMED = """
def rate(rounds, runs):
    jb.simulate(*game, rounds=rounds, runs=runs, seed=0)
    best = 0
    for _ in range(3):
        began = wall()
        jb.simulate(*game, rounds=rounds, runs=runs, seed=0)
        best = max(best, rounds * runs / (wall() - began) / 1e6)
    return best
"""


def measured(program: str, *, cores: int | None = None) -> dict[str, Any]:
    """What a program, run by a fresh interpreter, prints last: a JSON object."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XLA_", "JAX_", "JAXBANDIT_"))}
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program],
        env={**kept, "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        preexec_fn=None if cores is None else lambda: os.sched_setaffinity(0, set(range(cores))),
    )
    return json.loads(done.stdout.splitlines()[-1])


def table(title: str, columns: list[str], rows: list[list[Any]]) -> str:
    """Markdown."""
    lines = [title, "", f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    lines += [f"| {' | '.join(one if isinstance(one, str) else f'{one:.3g}' for one in row)} |" for row in rows]
    return "\n".join(lines)


def default(quick: bool) -> str:
    """The speed of simulate in a fresh interpreter, and after JAX has started; the speed of matrix products before and after."""
    runs, rounds = (512, 200) if quick else (4096, 2000)
    matmul = """
import jax, jax.numpy as jnp
product, matrix = jax.jit(lambda a: a @ a), jnp.ones((1024, 1024))
def products():
    product(matrix).block_until_ready()
    best = 1e9
    for _ in range(5):
        began = wall()
        for _ in range(4): product(matrix).block_until_ready()
        best = min(best, wall() - began)
    return 4 * 2 * 1024**3 / best / 1e9
"""
    rows = []
    for law, delays in (("fixed", "jb.delays.Fixed(10)"), ("geometric", "jb.delays.Geometric(10.0)")):
        for arms in (10,) if quick else (2, 10, 100):
            setting = f"arms = {arms}" + GAME.replace("delays\n", f"{delays}\n") + TIMED
            length = max(rounds * 10 // max(arms, 10), 100)
            fresh = measured(setting + f"print(json.dumps({{'rate': rate({length}, {runs})}}))")
            later = measured(
                matmul
                + "first, devices = products(), jax.devices()\n"
                + setting
                + f"found = rate({length}, {runs})\n"
                + "print(json.dumps({'rate': found, 'products': products() / first, 'same': devices == jax.devices()}))"
            )
            same = "yes" if later["same"] else "no"
            rows.append([law, str(arms), fresh["rate"], later["rate"], later["products"], same])
    columns = ["delays", "K", "fresh interpreter", "JAX started before", "matrix products after / before", "same jax.devices()"]
    return table(f"`simulate` without preparation, {runs} runs, all cores, million rounds per second of wall time", columns, rows)


def first(_quick: bool) -> str:
    """The first simulation of a process, from the start of Python on."""
    call = "jb.simulate(*game, rounds=1000, runs=256, seed=0)"
    setting = "arms = 10" + GAME.replace("delays\n", "jb.delays.Fixed(10)\n")
    cached = "import jaxbandit\njaxbandit.cache_programs({!r})\n"
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        imports = measured("import jaxbandit\nprint(json.dumps({'seconds': used()}))")
        rows.append(["import jaxbandit", imports["seconds"]])
        for name, before in (
            ("first simulation", ""),
            ("", cached.format(folder)),
            ("first simulation, program on disk", cached.format(folder)),
        ):
            found = measured(f"{before}{setting}{call}\nprint(json.dumps({{'seconds': used()}}))")
            rows += [[name, found["seconds"]]] if name else []  # the second one fills the folder
    return table("From the start of Python (K = 10, 256 runs x 1,000 rounds), seconds of processor time", ["", "seconds"], rows)


def small(quick: bool) -> str:
    """Many small simulations: what their rounds, the filling of a block and a call cost."""
    cells = 10 if quick else 100
    program = (
        "arms = 10"
        + GAME.replace("delays\n", "jb.delays.Fixed(10)\n")
        + f"""
cells = {cells}
def cost(calls, runs, rounds=1000):
    jb.simulate(*game, rounds=rounds, runs=runs, seed=0)
    best = 1e9
    for _ in range(3):
        begun = used()
        for seed in range(calls): jb.simulate(*game, rounds=rounds, runs=runs, seed=seed)
        best = min(best, used() - begun)
    return best * 1e3
found = dict(cell=cost(cells, 64) / cells, full=cost(cells // 4, 256) / (cells // 4), call=cost(cells, 64, 1) / cells, together=cost(1, 64 * cells) / cells)
print(json.dumps(found))
"""
    )
    found = measured(program, cores=1)
    rows = [
        ["one of them", found["cell"]],
        ["of which the call (measured with one round)", found["call"]],
        ["of which its rounds (measured in one call of all runs)", found["together"]],
        ["of which runs that fill up the block", found["cell"] - found["call"] - found["together"]],
        ["a full block, 256 runs", found["full"]],
    ]
    return table(f"{cells} simulations of 64 runs x 1,000 rounds, K = 10, milliseconds of processor time", ["", "ms"], rows)


def memory(quick: bool) -> str:
    """Time and memory of delays longer than the horizon."""
    rows = []
    for delay in (10, 10**5) if quick else (10, 10**3, 10**5, 10**6):
        setting = "arms = 10" + GAME.replace("delays\n", f"jb.delays.Fixed({delay})\n")
        call = "jb.simulate(*game, rounds=2000, runs=256, seed=0)"
        program = f"{setting}import jax; jax.devices()\nbefore, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, used()\n{call}\n"
        peak = "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss"
        found = measured(
            program
            + f"first = used() - begun\nbegun = used()\n{call}\n"
            + f"print(json.dumps({{'first': first, 'then': used() - begun, 'more': ({peak} - before) / 1024, 'peak': {peak} / 1024}}))"
        )
        rows.append([f"{delay:,}", found["first"], found["then"], found["peak"], found["more"]])
    columns = ["fixed delay", "first call, s", "second call, s", "peak memory, MB", "of which the simulation, MB"]
    return table("Delays longer than the horizon: K = 10, T = 2,000, 256 runs, processor time", columns, rows)


def compiling(quick: bool) -> str:
    """Many pairs of learner and delay model: a loop over simulate, and compare, which compiles several at a time."""
    names = ["DelayedExp3", "TsallisINF", "DelayedUCB1", "Exp3", "KLUCB"][: 2 if quick else 5]
    program = f"""
import jaxbandit as jb
learners = {{name: getattr(jb, name)() for name in {names}}}
losses, delays = jb.losses.Bernoulli([0.3, 0.5, 0.5]), {{"fixed": jb.delays.Fixed(10), "random": jb.delays.Geometric(10.0)}}
import jax; jax.devices()
begun, began = used(), wall()
"""
    loop = "[jb.simulate(one, losses, law, rounds=100, runs=256, seed=0) for one in learners.values() for law in delays.values()]"
    rows = []
    for name, call in (
        ("a loop over `simulate`", loop),
        ("`jb.compare`", "jb.compare(learners, losses, delays, rounds=100, runs=256, seed=0)"),
    ):
        found = measured(f"{program}{call}\nprint(json.dumps({{'wall': wall() - began, 'used': used() - begun}}))")
        rows.append([name, found["wall"], found["used"]])
    title = f"{2 * len(names)} pairs of learner and delay model, {os.cpu_count()} cores, no program on disk"
    return table(title, ["", "wall time, s", "processor time, s"], rows)


def loop(quick: bool) -> str:
    """A loop over many small simulations: without programs on disk, and with those of an earlier process."""
    program = f"""
learners = [getattr(jb, name)() for name in ("DelayedExp3", "TsallisINF", "DelayedUCB1", "Exp3", "KLUCB", "ZimmertSeldin")]
losses = [jb.losses.Bernoulli([0.3] + [0.5] * more) for more in (1, 2, 4)]
delays = [jb.delays.Fixed(5), jb.delays.Fixed(50), jb.delays.Geometric(5.0), jb.delays.Geometric(50.0)]
delays += [jb.delays.UniformRandom(0, 10), jb.delays.UniformRandom(0, 100)]
games = [(one, law, delay) for one in learners for law in losses for delay in delays][:{6 if quick else None}]
for game in games: jb.simulate(*game, rounds=200, runs=64, seed=0)
print(json.dumps({{'seconds': used(), 'count': len(games)}}))
"""
    with tempfile.TemporaryDirectory() as folder:
        cached = f"import jaxbandit as jb\njb.cache_programs({folder!r})\n"
        found = [measured(before + program) for before in ("import jaxbandit as jb\n", cached, cached)]
    names = ["without `jb.cache_programs()`", "with it, the first process", "with it, a later process"]
    rows = [[name, one["seconds"]] for name, one in zip(names, found, strict=True)]
    count = found[0]["count"]
    return table(
        f"A loop of {count} simulations of 64 runs x 200 rounds, seconds of processor time, imports included",
        ["", "seconds"],
        rows,
    )


TABLES: dict[str, Callable[[bool], str]] = {one.__name__: one for one in (default, first, small, memory, compiling, loop)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tables", nargs="*", metavar="|".join(TABLES), help="which tables; all by default")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    unknown = [name for name in given.tables if name not in TABLES]
    if unknown:
        parser.error(f"{unknown[0]}: no such table; choose from {', '.join(TABLES)}")
    for name in given.tables or TABLES:
        print(f"\n{TABLES[name](given.quick)}", flush=True)


if __name__ == "__main__":
    main()
