"""Bitwise comparisons on the device at hand: the same simulation, called in other ways, must give the same bits.

``JAX_PLATFORMS=cuda python -m experiments.bench.bits`` prints one JSON object; ``--runs 600 --rounds 200`` makes it short. The benchmark
writes the same into ``bench.json``. Each entry is the share of runs that are bitwise identical with one call on all devices, which must
be 1, apart from two entries that inform: another block size, and regrets of a CPU that agree to 0.1%.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import numpy as np

import jaxbandit as jb
from jaxbandit._engine import choose, devices, sharing, simulation

GAMES = {
    "fixed": (jb.BestOfBothWorlds(10), jb.losses.Bernoulli([0.3, *[0.5] * 9]), jb.delays.Fixed(10)),
    "geometric": (jb.BestOfBothWorlds(127), jb.losses.Bernoulli([0.3, *[0.5] * 9]), jb.delays.Geometric(10.0, bound=127)),
}
INFORM = ("in blocks of half the size", "within 0.1% of a CPU")
EXTRA = 100  # runs beyond two whole blocks, so that one is filled up


def ways(law: str, runs: int, rounds: int) -> dict[str, Callable[[], np.ndarray]]:
    """Calls that give the final regret of the same runs."""
    game, half = GAMES[law], rounds // 2

    def simulated(**options: Any) -> np.ndarray:
        given: dict[str, Any] = {"rounds": rounds, "runs": runs, "seed": 0, "record": [rounds]} | options
        return jb.simulate(*game, **given).regret[-1]

    def on_one_device() -> np.ndarray:
        with mock.patch.object(devices, "alike_devices", return_value=jax.local_devices()[:1]):
            return simulated()

    def in_parts() -> np.ndarray:
        first = runs // 3
        return np.concatenate([simulated(runs=first), simulated(runs=runs - first, first_run=first)])

    def resumed() -> np.ndarray:
        begun = jb.simulate(*game, rounds=half, runs=runs, seed=0, record=[half])
        return simulated(resume=begun)

    def in_half_blocks() -> np.ndarray:
        own = simulation.execution_for

        def smaller(*given: Any, **options: Any) -> Any:
            return own(*given, **(options | {"block": choose.block_size(10, devices.platform()) // 2}))

        with mock.patch.object(simulation, "execution_for", smaller):
            return simulated()

    found = {
        "in one call": simulated,
        "called again": simulated,
        "on one device": on_one_device,
        "in two parts of runs": in_parts,
        "resumed halfway": resumed,
    }
    return found if devices.platform() == "cpu" else found | {INFORM[0]: in_half_blocks}


def compare(law: str, runs: int, rounds: int) -> tuple[dict[str, Any], np.ndarray]:
    """The shares of bitwise identical runs, and the regret."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        regrets = {name: call() for name, call in ways(law, runs, rounds).items()}
    one, *others = regrets.items()
    shares = {name: float(np.mean(regret.view(np.uint32) == one[1].view(np.uint32))) for name, regret in others}
    said = sorted({str(warning.message) for warning in caught if sharing.NOT_LOADED in str(warning.message)})
    digest = hashlib.sha256(one[1].tobytes()).hexdigest()
    return {"runs": runs, "rounds": rounds, "sha256": digest, "identical": shares, "warnings": said}, one[1]


def compare_on(platform: str, short: bool = False) -> dict[str, Any]:
    """The comparisons of a platform, each in processes of its own, and how many runs agree with a CPU."""
    options = ["--rounds", "200"] if short else []
    with tempfile.TemporaryDirectory() as scratch:
        told = [_called(place, [*options, "--keep", str(Path(scratch) / place)]) for place in dict.fromkeys((platform, "cpu"))]
        for law in GAMES:
            here, there = (np.load(Path(scratch) / place / f"{law}.npy") for place in (platform, "cpu"))
            runs = min(here.size, there.size)
            near = np.abs(here[:runs] - there[:runs]) < 1e-3 * (1 + np.abs(there[:runs]))
            told[0][law]["identical"][INFORM[1]] = float(near.mean())
    return told[0]


def _called(platform: str, options: list[str]) -> dict[str, Any]:
    program = [sys.executable, "-m", "experiments.bench.bits", *options]
    environment = {**os.environ, "JAX_PLATFORMS": platform}
    done = subprocess.run(program, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the bitwise comparison on {platform} failed: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def lines(found: dict[str, Any]) -> list[str]:
    """A table for people."""
    table = ["", "| the same runs (K=10) | delays | runs that are bitwise identical |", "|---|---|---|"]
    for law, one in found.items():
        for name, share in one["identical"].items():
            wrong = " **wrong: must be 100%**" if share < 1 and name not in INFORM else ""
            table.append(f"| {name} | {law} | {share:.4%}{wrong} |")
        table += [f"| a program could not be loaded: {text} | {law} | |" for text in one["warnings"]]
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    runs = given.runs or 2 * choose.block_size(10, devices.platform()) + EXTRA
    told = {}
    for law in GAMES:
        told[law], regret = compare(law, runs, given.rounds)
        if given.keep:
            given.keep.mkdir(exist_ok=True)
            np.save(given.keep / f"{law}.npy", regret)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
