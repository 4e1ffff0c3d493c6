"""``jaxbandit doctor``: what there is to compute on, and what the compilers for GPUs and TPUs make of a game."""

import dataclasses
import json as text
import time
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import blocks, compilers
from jaxbandit.cli.options import Whole, check_folder
from jaxbandit.cli.run import from_words
from jaxbandit.cli.speaking import CommandError
from jaxbandit.forms import SIZES, Form, choose_form, with_runs
from jaxbandit.game import Game
from jaxbandit.pytrees import canonical
from jaxbandit.sweeps.plan import Plan

RUNS = SIZES[-1]  # how many runs a doctor's game has: a full block
RECORDED = 50
TRIAL = 10.0  # seconds


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
        Play the game here for ten seconds and measure rounds/s.
    json
        Print one JSON object.
    """
    if arms < 1 or runs < 1:
        raise CommandError(f"--arms {arms} --runs {runs}: both are whole numbers, 1 or more")
    if dump is not None:
        check_folder(dump, "--dump")
    if compile_for is not None and (message := compilers.missing(compile_for)):
        raise CommandError(f"--compile-for {compile_for}: {message}")
    game = game_of(learner, arms, delays, runs)
    report: dict[str, Any] = {"jax": jax.__version__, "devices": [str(one) for one in jax.devices()]}
    if compile_for is None:
        report |= _about(blocks.form_for(game))
    else:
        report |= compiled_for(compile_for, game, dump)
    if trial:
        report["measured_rounds_per_second"] = _measured(game)
    _print(report, json)


def compiled_for(target: str, game: Game, dump: Path | None = None) -> dict[str, Any]:
    """What the compiler for ``target`` makes of a block of the game."""
    it = compilers.TARGETS[target]
    form = choose_form(game, it.platform, it.memory)
    game = with_runs(form.applied(game), form.block)
    state = blocks.start.eval_shape(game)
    numbers = (jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((RECORDED + 1,), jnp.int32))
    if dump is not None:
        dump.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    text = compilers.compile_for(
        target, blocks.advance, (game, state, *numbers), dump and str(dump), probabilities=False, form=form
    )
    seconds = time.perf_counter() - begun
    if dump is not None:
        (dump / "compiled.txt").write_text(text)
    cost = compilers.read_round(text, target, form.chunk, form.block)
    return {"compiled_for": it.name, **_about(form)} | {
        "kernels_per_round": cost.kernels,
        "bytes_per_run_round": round(cost.bytes / form.block, 1),
        "unknown_trip_counts": cost.unknown_loops,
        "ring_copies": cost.copies,
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
    return Game.set_up(canonical(cell.learner), canonical(cell.losses), canonical(cell.delays), jax.random.key(0), ids)


def _measured(game: Game) -> int:
    """Rounds/s of one block on the first device, measured for some seconds after the program is compiled."""
    form = blocks.form_for(game)
    device, ids = jax.devices()[0], np.arange(form.block, dtype=np.uint32)
    game = jax.device_put(dataclasses.replace(form.applied(game), runs=ids), device)
    state, done, length, played, spent = blocks.start(game), 0, 64, 0, 0.0
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
    return round(played * form.block / spent)


def _print(report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(text.dumps(report))
        return
    for name, value in report.items():
        print(f"{name.replace('_', ' '):28} {value}")
    if "compiled_for" in report:
        print("an estimate is good to a factor of two: it was never run on hardware")
