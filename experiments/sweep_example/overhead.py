"""What a sweep costs beside bare ``jb.simulate``: 12 learner settings x 3 losses x 4 delays x 1024 runs x 20 000 rounds.

Both do the same work in turns, one delay model after the other, after everything is compiled. Prints rounds/s of both, their
ratio, and how many programs were compiled for how many shapes.

    python experiments/sweep_example/overhead.py [--rounds N] [--runs N] [--only INDEX]
"""

import argparse
import tempfile
import time
import warnings

import jax

import jaxbandit as jb
from jaxbandit._engine.blocks import advance
from jaxbandit.sweeps.plan import Plan, measurements

LEARNERS = [
    jb.Entry("bobw", {"max_delay": 16}, grid={"factor": [24.0, 4.0, 1.0], "linear": [10.0, 1.0]}),
    jb.Entry("delayed-exp3", grid={"scale": [0.5, 1.0, 2.0]}),
    jb.Entry("tsallis-inf", grid={"scale": [0.5, 1.0, 2.0]}),
]
LOSSES = [
    jb.losses.Bernoulli([0.3, 0.5, 0.5, 0.5]),
    jb.losses.Bernoulli([0.4, 0.5, 0.5, 0.6]),
    jb.losses.StochasticallyConstrained(0.2, arms=4),
]
DELAYS = [jb.delays.Fixed(10), jb.delays.Fixed(16), jb.delays.UniformRandom(0, 16), jb.delays.Geometric(4.0, bound=32)]


def bare(plan: Plan) -> None:
    for cell in plan.cells:
        jb.simulate(
            cell.learner,
            cell.losses,
            cell.delays,
            rounds=plan.rounds,
            runs=plan.runs,
            key=jax.random.key(0),
            record=plan.record(),
            measure=measurements(False),
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=1024)
    parser.add_argument("--only", type=int, choices=range(4), help="one of the four delay models")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    totals, busy, shapes = {"simulate": 0.0, "sweep": 0.0}, {"simulate": 0.0, "sweep": 0.0}, set()
    work = 0
    for law in DELAYS if given.only is None else [DELAYS[given.only]]:
        spec = jb.Spec(given.rounds, given.runs, LEARNERS, LOSSES, [law])
        plan = Plan.make(spec)
        shapes |= {cell.shape for cell in plan.cells}
        work += given.rounds * given.runs * len(plan.cells)
        short = jb.Spec(60, given.runs, LEARNERS, LOSSES, [law], record=list(range(61 - len(plan.record()), 61)))
        bare(Plan.make(short))  # compiles
        for name, function in (("simulate", bare), ("sweep", lambda _, spec=spec: jb.sweep(spec, tempfile.mkdtemp()))):
            begun, cpu = time.perf_counter(), time.process_time()
            function(plan)
            seconds = time.perf_counter() - begun
            totals[name] += seconds
            busy[name] += time.process_time() - cpu
            print(
                f"{type(law).__name__:16}{name:10}{given.rounds * given.runs * len(plan.cells) / seconds / 1e6:8.2f} M rounds/s",
                flush=True,
            )
    ratio = totals["simulate"] / totals["sweep"]
    print(
        f"in all: simulate {work / totals['simulate'] / 1e6:.2f}, sweep {work / totals['sweep'] / 1e6:.2f} M rounds/s, ratio {ratio:.3f}"
    )
    print(
        f"processor time {busy['simulate']:.0f} and {busy['sweep']:.0f} s, ratio {busy['simulate'] / busy['sweep']:.3f} (steadier on a busy machine)"
    )
    print(f"{len(shapes)} shapes, {advance._cache_size()} programs on {jax.local_device_count()} devices")


if __name__ == "__main__":
    main()
