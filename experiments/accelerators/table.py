"""What the compilers for GPUs and TPUs make of every learner, loss law and delay law: one table, in Markdown.

    python experiments/accelerators/table.py t4            # all; some minutes each on a slow computer
    python experiments/accelerators/table.py tpu ucb1 fixed  # rows whose names are given

Needs the compilers (``jaxbandit doctor --compile-for t4`` says how to install them), no GPU. Rows are kept in a file beside the
table, so that it can be stopped and begun again.
"""

import json
import sys
from pathlib import Path

import jax
import numpy as np

import jaxbandit as jb
from jaxbandit import compilers
from jaxbandit.cli.doctor import RUNS, compiled_for
from jaxbandit.game import Game
from jaxbandit.learners import REGISTRY

ARMS, ROUNDS = 10, 1000
MEANS = [0.3, *[0.5] * (ARMS - 1)]
D, L = jb.delays, jb.losses
TOLD = {  # what learners must be told, for a delay of 10
    "bobw": (10,),
    "asymmetric-bobw": (10,),
    "arm-dependent": (10,),
    "dew": (ROUNDS, 10 * ROUNDS, 10),
    "skipper": (10, ROUNDS, 10 * ROUNDS),
    "fixed-delay-exp3": (ROUNDS, 10),
    "delayed-ucb": (np.arange(1, 12) / 11,),
    "delayed-kl-ucb": (np.arange(1, 12) / 11,),
    "opse": (ROUNDS,),
    "delayed-sapo": (ROUNDS,),
    "successive-elimination": (ROUNDS,),
    "phased-elimination": (ROUNDS,),
    "qpm-d": (jb.TsallisINF(), 32),
    "bold": (jb.TsallisINF(), 11),
}
LOSSES = {
    "bernoulli": L.Bernoulli(MEANS),
    "beta": L.Beta(MEANS),
    "clipped-normal": L.ClippedNormal(MEANS),
    "table": L.Table(np.tile(MEANS, (ROUNDS, 1))),
    "stochastically-constrained": L.StochasticallyConstrained(0.2, ARMS),
    "switching": L.Switching([MEANS, MEANS[::-1]], [1, 500]),
    "corrupted": L.Corrupted(L.Bernoulli(MEANS), 10.0),
}
DELAYS = {
    "fixed": D.Fixed(10),
    "uniform": D.UniformRandom(0, 20),
    "geometric": D.Geometric(10.0, bound=127),
    "geometric, shared": D.Geometric(10.0, bound=127, shared=True),
    "poisson": D.Poisson(10.0, bound=63),
    "pareto": D.Pareto(1.0, bound=127),
    "packet-loss": D.PacketLoss(0.7, 10),
    "bursts": D.Bursts(10),
    "outlier": D.Outlier(1000),
    "trace": D.Trace(np.arange(ROUNDS) % 20),
    "arm-dependent": D.ArmDependent([D.Fixed(10)] * ARMS),
}


def rows() -> dict[str, tuple]:
    """Name -> learner, losses, delays: one part changes at a time, and learners also meet a delay for each play."""
    learners = {name: cls(*TOLD.get(name, ())) for name, cls in REGISTRY.items()}
    bobw = learners["bobw"]
    made = {
        f"{name}, {law}": (one, LOSSES["bernoulli"], DELAYS[law])
        for name, one in learners.items()
        for law in ("fixed", "geometric")
    }
    made |= {f"bobw, losses {name}": (bobw, one, DELAYS["fixed"]) for name, one in LOSSES.items()}
    return made | {f"bobw, delays {name}": (bobw, LOSSES["bernoulli"], one) for name, one in DELAYS.items()}


def main(target: str, wanted: list[str]) -> None:
    if message := compilers.missing(target):
        sys.exit(message)
    file = Path(__file__).parent / f"{target}.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    print("| game | form | kernels a round | bytes a run-round | loops of unknown length | note |\n|---|---|---|---|---|---|")
    for name, parts in rows().items():
        if wanted and not any(word in name for word in wanted):
            continue
        if name not in found:
            game = Game.set_up(*parts, jax.random.key(0), np.arange(RUNS, dtype=np.uint32))
            found[name] = compiled_for(target, game)
            file.write_text(json.dumps(found, indent=1))
        one = found[name]
        form = one["form"] if one["arrivals"] == "listed" else f"{one['form']}, {one['arrivals']}"
        numbers = f"{one['kernels_per_round']} | {one['bytes_per_run_round']:.0f} | {one['unknown_trip_counts']}"
        print(f"| {name} | {form} | {numbers} | {one['note']} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "t4", sys.argv[2:])
