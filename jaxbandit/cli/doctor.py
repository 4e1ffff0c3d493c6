"""``jaxbandit doctor``: the devices of this machine and the execution plan chosen for a simulation."""

import dataclasses
import time
from json import dumps
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbandit._engine import blocks
from jaxbandit._engine.choose import SIZES, choose_execution, fitted
from jaxbandit._engine.devices import alike_devices, count_cores
from jaxbandit._engine.execution import Execution
from jaxbandit._engine.game import Game
from jaxbandit._engine.player import Player
from jaxbandit._engine.programs import settled
from jaxbandit._provenance.package_code import own_versions
from jaxbandit.cli.errors import CommandError
from jaxbandit.cli.options import Flag, Whole
from jaxbandit.cli.words import from_words
from jaxbandit.sweeps.plan import Plan

RUNS = SIZES[-1]  # default number of runs: several blocks on an accelerator
MOST_ARMS = 100_000  # the mean of each arm is written into a spec
RECORDED = 50
TRIAL = 10.0  # seconds
NVIDIA = Path("/dev/nvidia0")  # exists on Linux if NVIDIA's driver sees a GPU


def doctor(
    *,
    learner: str = "bobw(max_delay=10)",
    arms: Whole = 10,
    delays: str = "fixed(10)",
    runs: Whole = RUNS,
    trial: Flag = False,
    json: Flag = False,
) -> None:
    """List the devices and the execution plan chosen for a simulation; paste the output into an issue.

    Example: jaxbandit doctor --learner "tsallis-inf" --arms 4 --trial

    Parameters
    ----------
    learner
        Learner with any of its fields, such as "bobw(max_delay=10)".
    arms
        Number of arms (Bernoulli losses).
    delays
        Delay model, such as "fixed(10)" or "geometric(mean=10.0, bound=127)".
    runs
        Number of runs of the simulation.
    trial
        Simulate for ten seconds and report rounds per second. A GPU or TPU is always measured, together with one CPU core.
    json
        Print one JSON object in place of a table.
    """
    game = game_of(learner, arms, delays, runs)
    report: dict[str, Any] = {**own_versions(), "jax": jax.__version__, "devices": [str(one) for one in jax.devices()]}
    execution = compiled(game, blocks.execution_for(game), jax.devices()[0])[0].execution
    report |= about(execution) | {"advice": _unused_gpu()}
    if trial or blocks.platform() != "cpu":
        report |= tried(game)
    print_report(report, json)


def tried(game: Game) -> dict[str, Any]:
    """Rounds/s measured here; on a GPU or TPU also those of the CPU, and which of the two is faster for these runs."""
    execution = blocks.execution_for(game)
    measured = _measured(game, execution, jax.devices()[0])
    try:
        cores = jax.devices("cpu")
    except RuntimeError:  # JAX_PLATFORMS leaves it out
        cores = []
    if execution.platform == "cpu" or not cores:
        return {"measured_rounds_per_second": round(measured)}
    own = choose_execution(game, "cpu")
    on_cpu = _measured(game, own, cores[0])
    speeds = {
        execution.platform: measured
        * filled(game.runs.size, execution.block)
        * min(len(alike_devices()), -(-game.runs.size // execution.block)),
        "cpu": on_cpu * filled(game.runs.size, own.block) * min(count_cores(), -(-game.runs.size // own.block)),
    }
    return {
        "measured_rounds_per_second": round(measured),
        "measured_rounds_per_second_of_one_core": round(on_cpu),
        "advice": advice(game.runs.size, speeds),
    }


def filled(runs: int, block: int) -> float:
    """The fraction of the runs of all blocks that are requested."""
    return runs / (block * -(-runs // block))


def advice(runs: int, speeds: dict[str, float]) -> str:
    """On which device this many runs are faster. ``speeds`` are rounds/s of requested runs; the first is of the current device."""
    (here, now), (other, then) = speeds.items()
    said = f"{now / 1e6:.3g} million rounds/s on the {here.upper()}, {then / 1e6:.3g} on all cores of the {other.upper()}"
    if then > now:
        return f"{runs} runs are faster on the {other.upper()} ({said}): set JAX_PLATFORMS={other}"
    return f"{runs} runs are faster on the {here.upper()} ({said})"


def _unused_gpu() -> str:
    """How to use a GPU that JAX does not use; empty if there is none."""
    if blocks.platform() == "cpu" and NVIDIA.exists():
        return "there is an NVIDIA GPU here that JAX does not use: pip install 'jax[cuda12]', and do not set JAX_PLATFORMS=cpu"
    return ""


def about(execution: Execution) -> dict[str, Any]:
    """The execution, for a report."""
    shown = ("platform", "evaluation", "block", "queue", "one_function", "note")
    return {name: vars(execution)[name] for name in shown} | {"cores": count_cores()}


def game_of(learner: str, arms: int, delays: str, runs: int) -> Game:
    """The simulation that the options name, with Bernoulli losses."""
    if arms > MOST_ARMS:
        raise CommandError(f"--arms {arms}: {MOST_ARMS} at most")
    if arms < 1 or runs < 1:
        raise CommandError(f"--arms {arms} --runs {runs}: both are whole numbers, 1 or more")
    means = [0.3, *[0.5] * (arms - 1)]
    words = {"learners": learner, "losses": f"bernoulli(means={means})", "delays": delays}
    plan = Plan.make(from_words(words) | {"rounds": 10_000, "runs": 1, "seed": 0})
    (cell,) = plan.cells
    ids = np.arange(runs, dtype=np.uint32)
    return Game.set_up(cell.learner, cell.losses, cell.delays, jax.random.key(0), ids)


def compiled(game: Game, execution: Execution, device: Any) -> tuple[Player, Game, Any]:
    """The player whose program compiles, the game of one block, and its state."""
    player, game = fitted(game, execution)
    block = dataclasses.replace(game, runs=np.arange(execution.block, dtype=np.uint32))
    player, block = jax.device_put((player, block), device)
    state = jax.device_put(blocks.start(player, block), device)
    none = jax.device_put((np.int32(0), np.zeros(RECORDED + 1, np.int32)), device)
    return settled(blocks.advance, player, block, state, *none, probabilities=False), block, state


def _measured(game: Game, execution: Execution, device: Any) -> float:
    """Rounds/s of one block on a device, measured for some seconds after the program is compiled."""
    player, game, state = compiled(game, execution, device)
    done, length, played, spent = 0, 64, 0, 0.0
    while spent < TRIAL:
        record = np.full(RECORDED + 1, done + length, np.int32)
        begun = time.perf_counter()
        state, records = blocks.advance(player, game, state, np.int32(done), record, probabilities=False)
        records.regret.block_until_ready()
        seconds = time.perf_counter() - begun
        if done:  # the first call compiles
            spent, played = spent + seconds, played + length
        done += length
        length *= 2 if seconds < 1 else 1
    return played * execution.block / spent


def print_report(report: dict[str, Any], as_json: bool) -> None:
    """Print a report as a table or as one JSON object."""
    if as_json:
        print(dumps(report))
        return
    for name, value in report.items():
        print(f"{name.replace('_', ' '):28} {value}")
