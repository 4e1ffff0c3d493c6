"""``jaxbandit doctor``: what there is to compute on, and what the compilers for GPUs and TPUs make of a game."""

import dataclasses
import shutil
import tempfile
import time
from json import dumps
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import blocks, compilers
from jaxbandit.cli.options import Whole, check_folder
from jaxbandit.cli.run import from_words
from jaxbandit.cli.speaking import CommandError
from jaxbandit.forms import SIZES, Form, check_memory, choose_form, with_runs
from jaxbandit.game import Game
from jaxbandit.sweeps.plan import Plan

RUNS = SIZES[-1]  # how many runs a doctor's game has: a full block
MOST_ARMS = 100_000  # their means are written out and read as a spec
RECORDED = 50
TRIAL = 10.0  # seconds
NVIDIA = Path("/dev/nvidia0")  # there where NVIDIA's driver sees a GPU, on Linux


def doctor(
    *,
    compile_for: Literal["t4", "a100", "h100", "tpu"] | None = None,
    learner: str = "bobw(max_delay=10)",
    arms: Whole = 10,
    delays: str = "fixed(10)",
    runs: Whole = RUNS,
    dump: Path | None = None,
    trial: bool = False,
    json: bool = False,
) -> None:
    """What devices there are, and which form and block a game takes; paste it into an issue.

    Parameters
    ----------
    compile_for
        Compile the game for this device, which need not be there: kernels a round, bytes, an estimate of the speed.
    learner
        Such as "bobw(max_delay=10)", with any of its fields.
    arms
        How many; losses are coins.
    delays
        Such as "fixed(10)" or "geometric(mean=10.0, bound=127)".
    runs
        How many there would be.
    dump
        A folder for the compiler's own texts.
    trial
        Play the game here for ten seconds and measure rounds/s. On a GPU or TPU that is always done, and on a core of the CPU too.
    json
        Print one JSON object.
    """
    if arms > MOST_ARMS:
        raise CommandError(f"--arms {arms}: {MOST_ARMS} at most")
    if arms < 1 or runs < 1:
        raise CommandError(f"--arms {arms} --runs {runs}: both are whole numbers, 1 or more")
    if dump is not None:
        check_folder(dump, "--dump")
    if compile_for is not None and (message := compilers.missing(compile_for)):
        raise CommandError(f"--compile-for {compile_for}: {message}")
    game = game_of(learner, arms, delays, runs)
    report: dict[str, Any] = {"jax": jax.__version__, "devices": [str(one) for one in jax.devices()]}
    if compile_for is None:
        report |= _about(blocks.form_for(game)) | {"advice": _unused_gpu()}
    else:
        it = compilers.TARGETS[compile_for]
        form = choose_form(game, it.platform, it.memory)
        laid_out = with_runs(form.applied(game), form.block)
        try:
            check_memory(laid_out, blocks.start.eval_shape(laid_out), it.memory)
        except ValueError as error:
            raise CommandError(f"--compile-for {compile_for}: {error}") from error
        report |= compiled_for(compile_for, game, dump, form)
    if trial or (compile_for is None and blocks.platform() != "cpu"):
        report |= tried(game)
    _print(report, json)


def tried(game: Game) -> dict[str, Any]:
    """Rounds/s measured here; on a GPU or TPU also those of the CPU beside it, and which of the two is faster for these runs."""
    form = blocks.form_for(game)
    measured = _measured(game, form, jax.devices()[0])
    try:
        cores = jax.devices("cpu")
    except RuntimeError:  # JAX_PLATFORMS leaves it out
        cores = []
    if form.platform == "cpu" or not cores:
        return {"measured_rounds_per_second": round(measured)}
    own = choose_form(game, "cpu")
    on_cpu = _measured(game, own, cores[0])
    speeds = {
        form.platform: measured * filled(game.runs.size, form.block),
        "cpu": on_cpu * filled(game.runs.size, own.block) * min(len(cores), -(-game.runs.size // own.block)),
    }
    return {
        "measured_rounds_per_second": round(measured),
        "measured_rounds_per_second_of_one_core": round(on_cpu),
        "advice": advice(game.runs.size, speeds),
    }


def filled(runs: int, block: int) -> float:
    """The part of the blocks that is filled with runs that are wanted."""
    return runs / (block * -(-runs // block))


def advice(runs: int, speeds: dict[str, float]) -> str:
    """One sentence: where this many runs are played faster. ``speeds`` are rounds/s of wanted runs; the first is where they are now."""
    (here, now), (other, then) = speeds.items()
    said = f"{now / 1e6:.3g} million rounds/s on the {here.upper()}, {then / 1e6:.3g} on all cores of the {other.upper()}"
    if then > now:
        return f"{runs} runs are faster on the {other.upper()} ({said}): set JAX_PLATFORMS={other}"
    return f"{runs} runs are faster on the {here.upper()} ({said})"


def _unused_gpu() -> str:
    """One sentence if there is a GPU that JAX does not use; else empty."""
    if blocks.platform() == "cpu" and NVIDIA.exists():
        return "there is an NVIDIA GPU here that JAX does not use: pip install 'jax[cuda12]', and do not set JAX_PLATFORMS=cpu"
    return ""


def compiled_for(
    target: str, game: Game, dump: Path | None = None, form: Form | None = None, count_registers: bool = True
) -> dict[str, Any]:
    """What the compiler for ``target`` makes of a block of the game, in the form that is chosen there or in the one given."""
    it = compilers.TARGETS[target]
    form = form or choose_form(game, it.platform, it.memory)
    game = with_runs(form.applied(game), form.block)
    state = blocks.start.eval_shape(game)
    numbers = (jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((RECORDED + 1,), jnp.int32))
    with tempfile.TemporaryDirectory() as scratch:  # and not in ``dump``, where kernels of another program may be
        begun = time.perf_counter()
        try:
            text = compilers.compile_for(target, blocks.advance, (game, state, *numbers), scratch, probabilities=False, form=form)
        finally:
            if dump is not None:
                shutil.copytree(scratch, dump, dirs_exist_ok=True)
        seconds = time.perf_counter() - begun
        registers = compilers.read_registers(scratch) if count_registers else None
    if dump is not None:
        (dump / "compiled.txt").write_text(text)
    cost = compilers.read_round(text, target, form.chunk, form.block)
    return {"compiled_for": it.name, **_about(form)} | {
        "kernels_per_round": cost.kernels,
        "bytes_per_run_round": round(cost.bytes / form.block, 1),
        "unknown_trip_counts": cost.unknown_loops,
        "ring_copies": cost.copies,
        "registers": registers and registers.most,
        "spilled_bytes": registers and registers.spilled,
        "estimated_cycles_per_round": cost.cycles,
        "estimated_rounds_per_second": round(form.block / cost.seconds),
        "compile_seconds": round(seconds, 1),
    }


def _about(form: Form) -> dict[str, Any]:
    return {"platform": form.platform, "form": form.evaluation, "block": form.block, "arrivals": form.arrivals, "note": form.note}


def game_of(learner: str, arms: int, delays: str, runs: int) -> Game:
    """A game of coins, as the options name it."""
    means = [0.3, *[0.5] * (arms - 1)]
    words = {"learners": learner, "losses": f"bernoulli(means={means})", "delays": delays}
    plan = Plan.make(from_words(words) | {"rounds": 10_000, "runs": 1, "seed": 0})
    (cell,) = plan.cells
    ids = np.arange(runs, dtype=np.uint32)
    return Game.set_up(cell.learner, cell.losses, cell.delays, jax.random.key(0), ids)


def _measured(game: Game, form: Form, device: Any) -> float:
    """Rounds/s of one block on a device, measured for some seconds after the program is compiled."""
    game = jax.device_put(dataclasses.replace(form.applied(game), runs=np.arange(form.block, dtype=np.uint32)), device)
    state, done, length, played, spent = jax.device_put(blocks.start(game), device), 0, 64, 0, 0.0
    while spent < TRIAL:
        record = np.full(RECORDED + 1, done + length, np.int32)
        begun = time.perf_counter()
        state, records = blocks.advance(game, state, np.int32(done), record, probabilities=False, form=form)
        records.regret.block_until_ready()
        seconds = time.perf_counter() - begun
        if done:  # the first call compiles
            spent, played = spent + seconds, played + length
        done += length
        length *= 2 if seconds < 1 else 1
    return played * form.block / spent


def _print(report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(dumps(report))
        return
    for name, value in report.items():
        print(f"{name.replace('_', ' '):28} {value}")
    if "compiled_for" in report:
        print("an estimate is good to a factor of two: it was never run on hardware")
