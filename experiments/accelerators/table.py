"""What the compilers for GPUs and TPUs make of every learner, loss model and delay model: one table, in Markdown.

    python experiments/accelerators/table.py                    # all games, for a T4 and a TPU: some ten minutes on an idle computer
    python experiments/accelerators/table.py --only ucb1 fixed   # rows whose names have one of these words
    python experiments/accelerators/table.py --arms             # flat rounds beside rounds on arrays, from 2 to 100 arms

Needs the compilers (``make compilers``), no GPU. Rows are kept in a file beside this one, so that it can be stopped and begun
again; it starts over when the package or JAX has changed.
"""

import argparse
import dataclasses
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxbandit as jb
from experiments.accelerators import compilers
from experiments.accelerators.__main__ import compiled_for
from jaxbandit._engine.choose import choose_execution
from jaxbandit._engine.game import Game
from jaxbandit._io.files import write_whole
from jaxbandit.cli.doctor import RUNS
from jaxbandit.learners import REGISTRY
from jaxbandit.learners.base import signals_read, stages_read
from jaxbandit.testing import delays_to_play

ARMS, ROUNDS = 4, 1000  # ten take the compiler several times as long
D, L = jb.delays, jb.losses
GIVEN = {  # required inputs of learners, for a delay of 10
    "bobw": (10,),
    "asymmetric-bobw": (10,),
    "arm-dependent": (10,),
    "dew": (ROUNDS, 10 * ROUNDS, 10),
    "skipper": (10, ROUNDS, 10 * ROUNDS),
    "fixed-delay-exp3": (ROUNDS, 10),
    "delayed-ucb": (np.arange(1, 12) / 11,),
    "delayed-kl-ucb": (np.arange(1, 12) / 11,),
    "odaaf": (ROUNDS, 10),
    "opse": (ROUNDS,),
    "delayed-sapo": (ROUNDS,),
    "tapered-ftrl": (ROUNDS,),
    "successive-elimination": (ROUNDS,),
    "phased-elimination": (ROUNDS,),
    "qpm-d": (jb.TsallisINF(), 32),
    "bold": (jb.TsallisINF(), 11),
    "colo": (jb.TsallisINF(), 10),
    "full-information": (jb.TsallisINF(),),
    "limited-tracking": (jb.DelayedExp3(), 8, 10),
    "state-exp3": (np.eye(ARMS), ROUNDS, 10),
    "estimated-state-exp3": (ARMS, ROUNDS, 10),
}


def means(arms: int = ARMS) -> list[float]:
    return [0.3, *[0.5] * (arms - 1)]


LOSSES = {
    "bernoulli": L.Bernoulli(means()),
    "beta": L.Beta(means()),
    "clipped-normal": L.ClippedNormal(means()),
    "table": L.Table(np.tile(means(), (ROUNDS, 1))),
    "stochastically-constrained": L.StochasticallyConstrained(0.2, ARMS),
    "switching": L.Switching([means(), means()[::-1]], [1, 500]),
    "corrupted": L.Corrupted(L.Bernoulli(means()), 10.0),
    "delay-matched switching": L.DelayMatchedSwitching(10, ARMS),
    "drifting": L.Drifting(means(), means()[::-1], ROUNDS),
    "funnel": L.Funnel([1 - np.array(means()), [0.9] * ARMS]),
    "intermediate-states": L.IntermediateStates(np.eye(ARMS), L.Bernoulli(means())),
}
DELAYS = {
    "fixed": D.Fixed(10),
    "uniform-random": D.UniformRandom(0, 20),
    "geometric": D.Geometric(10.0, bound=127),
    "geometric, shared": D.Geometric(10.0, bound=127, shared=True),
    "poisson": D.Poisson(10.0, bound=63),
    "pareto": D.Pareto(1.0, bound=127),
    "packet-loss": D.PacketLoss(0.7, 10),
    "bursts": D.Bursts(10),
    "outlier": D.Outlier(1000),
    "trace": D.Trace(np.arange(ROUNDS) % 20),
    "arm-dependent": D.ArmDependent([D.Fixed(10)] * ARMS),
    "loss-dependent": D.LossDependent(D.Fixed(20), D.Fixed(3)),
    "empirical": D.Empirical(np.arange(20)),
}
Row = tuple[Any, Any, Any, dict[str, Any] | None]  # learner, losses, delays; what is changed in the form that would be chosen


def games() -> dict[str, Row]:
    """One part changes at a time, and learners also meet a delay for each play."""
    learners = {name: cls(*GIVEN.get(name, ())) for name, cls in REGISTRY.items()}
    coins, fixed = LOSSES["bernoulli"], DELAYS["fixed"]
    by_signals = {0: coins, ARMS: LOSSES["intermediate-states"]}
    coins_of = {name: LOSSES["funnel"] if stages_read(one) else by_signals[signals_read(one)] for name, one in learners.items()}
    delays_of = {
        name: {law: delays_to_play(one, DELAYS[law]) for law in ("fixed", "geometric")} for name, one in learners.items()
    }
    made: dict[str, Row] = {
        f"{name}, fixed": (one, coins_of[name], delays_of[name]["fixed"], None) for name, one in learners.items()
    }
    made["colo, pieces"] = (learners["colo"], coins, D.CompositeFeedback(np.full(11, 1 / 11)), None)
    made |= {f"bobw, losses {name}": (learners["bobw"], one, fixed, None) for name, one in LOSSES.items() if name != "bernoulli"}
    made |= {f"bobw, delays {name}": (learners["bobw"], coins, one, None) for name, one in DELAYS.items() if name != "fixed"}
    return made | {
        f"{name}, geometric": (one, coins_of[name], delays_of[name]["geometric"], None)
        for name, one in learners.items()
        if name != "bobw"
    }


def arms() -> dict[str, Row]:
    """Both forms of a round in blocks of one size, whichever would be chosen, and the form before there were any: arrays and lists."""
    learner, made, same = jb.BestOfBothWorlds(10), {}, {"block": RUNS, "note": ""}
    for count in (10, 2, 4, 16, 17, 24, 32, 64, 100):
        for law in ("fixed", "geometric"):
            parts = learner, L.Bernoulli(means(count)), DELAYS[law]
            if count <= 32:  # there the compiler takes half a minute of processor time
                made[f"{count} arms, {law}, flat"] = (*parts, {"evaluation": "unrolled", **same})
            made[f"{count} arms, {law}, arrays"] = (*parts, {"evaluation": "arrays", **same})
            if law == "geometric" and count == 10:
                made[f"{count} arms, {law}, arrays and lists"] = (
                    *parts,
                    {"evaluation": "arrays", "queue": "listed", **same},
                )
    return made


def compiled(target: str, row: Row) -> dict[str, Any]:
    """The report of ``python -m experiments.accelerators``, or the reason if compiling fails."""
    *parts, changes = row
    game, it = Game.set_up(*parts, jax.random.key(0), np.arange(RUNS, dtype=np.uint32)), compilers.TARGETS[target]
    try:
        execution = dataclasses.replace(choose_execution(game, it.platform, it.memory), **(changes or {}))
        return compiled_for(target, game, execution=execution, count_registers=False)
    except Exception as error:  # a table with a gap is worth more than none
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}


def fingerprint() -> str:
    """Changes with the package, this script and JAX."""
    sources = [Path(__file__), *sorted(Path(jb.__file__).parent.rglob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sources) + jax.__version__.encode()).hexdigest()


class Kept:
    """Rows that are done, in a file."""

    def __init__(self, file: Path):
        self.file, self.rows = file, {}
        kept = json.loads(file.read_text()) if file.exists() else {}
        if kept.get("fingerprint") == fingerprint():
            self.rows = kept["rows"]

    def get(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if name not in self.rows:
            self.rows[name] = make()
            write_whole(self.file, json.dumps({"fingerprint": fingerprint(), "rows": self.rows}, indent=1))
        return self.rows[name]


def cells(found: dict[str, Any]) -> list[str]:
    """Form, kernels, bytes, million rounds/s."""
    if "error" in found:
        return ["failed", "", "", ""]
    form = found["evaluation"] if found["queue"] == "listed" else f"{found['evaluation']}, {found['queue']}"
    loops = f" + {found['unknown_trip_counts']} loops" if found["unknown_trip_counts"] else ""
    speed = float(f"{found['estimated_rounds_per_second'] / 1e6:.3g}")
    return [form, f"{found['kernels_per_round']}{loops}", f"{found['bytes_per_run_round']:,.0f}", f"{speed:,g}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", choices=list(compilers.TARGETS), default=["t4", "tpu"])
    parser.add_argument("--only", nargs="+", metavar="WORD", default=[])
    parser.add_argument("--arms", action="store_true")
    given = parser.parse_args()
    for target in given.targets:
        if message := compilers.missing(target):
            sys.exit(message)
    rows = {
        name: row
        for name, row in (arms() if given.arms else games()).items()
        if not given.only or any(word in name for word in given.only)
    }
    kept = Kept(Path(__file__).with_name("arms.json" if given.arms else "games.json"))
    for target in given.targets:
        for name, row in rows.items():
            print(
                target,
                name,
                kept.get(f"{target}: {name}", lambda row=row, target=target: compiled(target, row)),
                file=sys.stderr,
                flush=True,
            )
    heads = [
        f"{compilers.TARGETS[target].name}: form | kernels a round | bytes a run-round | million rounds/s, estimated"
        for target in given.targets
    ]
    print(f"| game | {' | '.join(heads)} | note |\n|---{'|---' * (4 * len(heads) + 1)}|")
    for name in rows:
        found = [kept.rows[f"{target}: {name}"] for target in given.targets]
        notes = dict.fromkeys(one.get("note", "") or one.get("error", "") for one in found)
        print(f"| {name} | {' | '.join(cell for one in found for cell in cells(one))} | {' '.join(filter(None, notes))} |")


if __name__ == "__main__":
    main()
