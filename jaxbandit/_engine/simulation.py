"""The host driver: many runs of one game, recorded, stopped and resumed.

Runs are simulated in blocks (:mod:`jaxbandit._engine.blocks`), rounds in segments. A segment is one call of the compiled block:
long compared with the overhead of a call, and short enough for progress bars and interrupts.
"""

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit._checks.inputs import (
    check_key,
    check_outside_transformations,
    check_rounds,
    check_runs,
    check_switch,
    given_key,
    validate_delays,
    validate_losses,
)
from jaxbandit._checks.records import rounds_to_record
from jaxbandit._core import randomness
from jaxbandit._core.fields import arms_first, canonical, float_dtype, show
from jaxbandit._core.ring import with_rows_of
from jaxbandit._engine import sharing
from jaxbandit._engine.assemble import assemble
from jaxbandit._engine.blocks import (
    Block,
    advance,
    execution_for,
    grow,
    join,
    leaves_with_runs,
    play_blocks,
    start,
    start_shapes,
)
from jaxbandit._engine.choose import fitted, ring_rows
from jaxbandit._engine.execution import Execution
from jaxbandit._engine.game import Game, Records, State
from jaxbandit._engine.player import Player
from jaxbandit._engine.programs import settled, settled_before
from jaxbandit._engine.set_up import identified_game
from jaxbandit._engine.trajectories import (
    Chosen,
    assembled,
    choose,
    chosen_of_block,
    recorded_with,
    records_at_once,
    separated,
    with_all_rows,
)
from jaxbandit._engine.until import check_more_runs, check_same_runs, simulate_until
from jaxbandit._io.progress import Progress, showing
from jaxbandit._provenance.identity import check_identity, fingerprint
from jaxbandit.delays import Delays
from jaxbandit.learners.base import LearnerLike
from jaxbandit.losses import Losses
from jaxbandit.results.result import Result
from jaxbandit.results.stopping import Until

SEGMENT = 1 << 25  # rounds x runs x arms of a block's first segment: some tenths of a second on one CPU core
TICK = 0.25  # seconds; segments are lengthened until they take this long


@arms_first
def simulate(
    learner: LearnerLike,
    losses: Losses,
    delays: Delays,
    *,
    rounds: int,
    runs: int,
    key: jax.Array | None = None,
    seed: int | None = None,
    record: int | Sequence[int] | ArrayLike = 50,
    spacing: str = "log",
    first_run: int = 0,
    resume: Result | None = None,
    probabilities: bool = False,
    measure: Sequence[Any] = (),
    until: float | str | None = None,
    progress: bool | Progress = False,
) -> Result:
    """Simulate ``runs`` independent runs of a learner against losses with delayed feedback.

    Run i is a pure function of learner, losses, delays, key and i: bitwise identical for any number of runs, blocks or
    devices, and whether it is run at once or stopped and resumed. Different learners with the same key face the
    same losses and delays, run by run, so that differences between them are paired.

    Args:
      learner: such as :class:`jaxbandit.BestOfBothWorlds`; any object with ``init``, ``act`` and ``observe``. A number in
        learner, losses or delays may have a value for each run, ``[runs]``, and means ``[K, runs]``.
      losses: a loss model of :mod:`jaxbandit.losses`.
      delays: a delay model of :mod:`jaxbandit.delays`.
      rounds: the horizon T (with ``resume``: the new total).
      runs: the number of runs, with ids ``first_run … first_run + runs - 1``.
      key: a typed key, ``jax.random.key(0)``.
      seed: a whole number in place of the key: ``seed=0`` is ``key=jax.random.key(0)``.
      record: the number of rounds to record, or the rounds themselves; the horizon is always the last. With the number of rounds
        of the simulation, every round is recorded.
      spacing: of a number of recorded rounds, ``"log"`` or ``"linear"``.
      first_run: id of the first run: simulate 0 … 999 today and 1000 … 1999 tomorrow.
      resume: an earlier :class:`Result` (also loaded from a file) to resume, with the same learner, losses, delays,
        key and runs; the new Result holds the new records.
      probabilities: also keep x_t at the recorded rounds.
      measure: measurements, such as ``jb.ControlVariates()``; see :mod:`jaxbandit.measure`.
      until: stop when half the 95% interval of the mean regret is this small: a number, ``0.5``, or a share of the mean, ``"2%"``.
        ``runs`` is then the largest number of runs. The interval, ``result.stopping``, is that of a confidence sequence: it holds
        for any distribution of the regret and any stopping rule. With ``resume``, runs are added to those of an
        earlier Result.
      progress: show a progress bar, or move one that is shown already.

    Returns:
      A :class:`Result`.

    >>> import jax, jaxbandit as jb
    >>> result = jb.simulate(jb.BestOfBothWorlds(max_delay=10), jb.losses.Bernoulli([0.3, 0.5, 0.5]), jb.delays.Fixed(10),
    ...                      rounds=200, runs=16, key=jax.random.key(0))
    >>> result.regret.shape[1], int(result.rounds[-1])
    (16, 200)
    """
    check_outside_transformations("simulate", learner, losses, delays, rounds, runs, first_run, key, seed)
    key = given_key(key, seed)
    options: dict[str, Any] = {"rounds": rounds, "key": key, "record": record, "spacing": spacing, "progress": progress}
    options |= {"probabilities": probabilities, "measure": measure}
    if until is None:
        return simulate_runs(learner, losses, delays, runs=runs, first_run=first_run, resume=resume, **options)
    wanted = Until.read(until, decided=False)
    check_runs(runs, first_run)
    check_rounds(rounds)
    check_same_runs(learner, losses, delays)
    validate_losses(losses)
    if resume is not None:
        check_more_runs("resume", resume, fingerprint(learner, losses, delays, key, measure), rounds, runs, first_run)

    def more(first: int, count: int) -> Result:
        return simulate_runs(learner, losses, delays, runs=count, first_run=first, within=(first_run, runs), **options)

    return simulate_until(wanted, losses, int(rounds), int(runs), int(first_run), resume, more)


def simulate_runs(
    learner: Any,
    losses: Any,
    delays: Any,
    *,
    rounds: int,
    runs: int,
    key: jax.Array,
    record: Any,
    spacing: str,
    first_run: int,
    probabilities: bool,
    measure: Sequence[Any],
    progress: bool | Progress,
    resume: Result | None = None,
    within: tuple[int, int] | None = None,
    block: int | None = None,
) -> Result:
    """:func:`simulate` with a fixed number of runs.

    ``within``: the first run and number of runs that these are a part of; ``block``: runs in a block of an accelerator.
    """
    check_runs(runs, first_run)
    check_switch("probabilities", probabilities)
    if not isinstance(progress, Progress):
        check_switch("progress", progress)
    game, flags, identity = identified_game(
        learner, losses, delays, rounds=rounds, key=key, runs=runs, first_run=first_run, measure=measure
    )
    rounds, runs, first_run = int(rounds), int(runs), int(first_run)
    done = 0 if resume is None else _check_resume(resume, identity, rounds, runs, first_run)
    recorded = rounds_to_record(record, rounds, done, spacing)
    chosen = choose(measure, game.losses.num_arms, rounds, runs, first_run, done, within)
    execution = before = execution_for(game, flags=flags, rounds=rounds, block=block)
    if resume is not None:
        execution, before = _execution_to_resume(game, resume.program, execution)
    stretch = Stretch(done, recorded, int(record) if np.ndim(record) == 0 else len(recorded), probabilities, chosen)
    with showing(progress, runs * (rounds - done), f"{runs} runs x {rounds - done} rounds") as bar:
        records, state, per_run, execution = play_rounds(
            game, execution, stretch, None if resume is None else resume.block_state, bar, before
        )
    game.learner._check_state(state.learner_state)
    about = {"first_run": first_run, "identity": identity, "program": execution.about()}
    return assemble(
        recorded, records, state, per_run=per_run, **about, trajectory=assembled(chosen, records.trajectory, first_run)
    )


@dataclasses.dataclass(frozen=True)
class Stretch:
    """Rounds to simulate, and which of them to record."""

    done: int  # rounds already simulated
    recorded: np.ndarray  # the rounds to record, ascending; the last is where the stretch ends
    width: int  # capacity for records in one call of the program: a part of its shape
    probabilities: bool = False  # record x_t too
    trajectory: Chosen | None = None  # other rounds to keep


def play_rounds(
    game: Game,
    execution: Execution,
    stretch: Stretch,
    resumed: Callable[[State, int, int], State] | None,
    progress: Progress,
    before: Execution | None = None,
) -> tuple[Records, State, list[bool], Execution]:
    """Simulate the runs of a game, block by block.

    Args:
      game: the game, with the ids of all runs.
      execution: the execution plan.
      stretch: the rounds.
      resumed: the state to resume from: called with a state of the right shapes, the index of a run and a number of runs.
      progress: the progress bar to update.
      before: the execution plan of the earlier rounds, if it differs: with a queue that ended there.

    Returns:
      The records, the last state, which of its leaves have the runs as last axis, and the execution that was compiled.
    """
    size, done, rounds = execution.block, stretch.done, int(stretch.recorded[-1])
    before = before or execution
    # Queues are stored with the rows that the delay model's bound or the horizon requires, without those that this execution
    # adds.

    def kept_by(execution: Execution) -> State:
        return start_shapes(*(fitted(game, execution) if execution.later else (Player(execution=execution), game)), size)

    kept = kept_by(execution)
    had = kept if before == execution else kept_by(before)
    player, game = fitted(game, execution)
    like = start_shapes(player, game, size)
    options: dict[str, Any] = {"probabilities": stretch.probabilities}
    width = stretch.width
    if stretch.trajectory is not None:
        most = len(recorded_with(stretch.recorded, stretch.trajectory))
        width = max(width, records_at_once(most, game.losses.num_arms, size))

    def settle(block: Block) -> Player:
        """Compile for the first device. Accelerators only trace here, and compile at the first block."""
        none = np.int32(done), np.full(width + 1, done, np.int32)
        known = settled_before(advance, block.player, block.game, like, *none, **options)
        if known is not None:
            return known
        state = block.put(sharing.call(start, block.player, block.game))
        if not block.player.execution.one_function:
            advance.eval_shape(block.player, block.game, state, *block.put(none), **options)
        return settled(advance, block.player, block.game, state, *block.put(none), **options)

    first_segment = max(SEGMENT // (size * game.losses.num_arms), 1)

    def begin(block: Block) -> Any:
        if resumed is None:
            return sharing.call(start, block.player, block.game)
        state = resumed(had, block.first, size)
        if before.later and (before.ring, before.later) != (execution.ring, execution.later):
            return sharing.call(grow, block.player, block.game, *block.put((state, np.int32(done))))
        return with_rows_of(state, like)

    def play(block: Block) -> tuple[Records, State, Execution]:
        player, state = block.player, block.put(begin(block))
        at, length, parts = done, first_segment, []
        wanted = chosen_of_block(stretch.trajectory, block.first, block.runs)
        every = recorded_with(stretch.recorded, wanted)
        while at < rounds:
            begun = time.perf_counter()
            before, record, inside = _segment(every, width, at, length)
            state, records = advance(player, block.game, state, *block.put((before, record)), **options)
            # A copy: a view would keep the whole array alive, of which a short segment uses little.
            new = jax.tree.map(lambda leaf, inside=inside: np.asarray(leaf)[:inside], records)
            if wanted is None:
                parts.append(jax.tree.map(np.copy, new))
            else:
                parts.append(separated(new, record[:inside], stretch.recorded, wanted))
            block.played(int(record[-1]) - at)
            at = int(record[-1])
            if time.perf_counter() - begun < TICK / 2:
                length *= 2
        last = with_rows_of(jax.tree.map(np.asarray, state), kept)
        whole = with_all_rows(jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts), wanted)
        return whole, last, player.execution

    blocks = play_blocks(play, player, game, settle=settle, progress=progress)
    per_run, runs = leaves_with_runs(player, game), game.runs.size
    records = join([records for records, *_ in blocks], runs)
    return records, join([state for _, state, _ in blocks], runs, per_run), per_run, blocks[0][2]


def _segment(recorded: np.ndarray, width: int, done: int, length: int) -> tuple[np.int32, np.ndarray, int]:
    """The next ``length`` rounds after ``done``: ``done``, the rounds to record, and how many of them are requested.

    The rounds to record are padded to a common width by repeating the last round.
    """
    first = int(np.searchsorted(recorded, done, "right"))
    # At most as many records as the capacity.
    end = min(done + length, int(recorded[min(first + width, len(recorded)) - 1]))
    inside = recorded[first : int(np.searchsorted(recorded, end, "right"))]
    filled = np.append(inside, np.full(width + 1 - len(inside), end))
    return np.int32(done), filled.astype(np.int32), len(inside)


def _check_resume(resume: Any, identity: dict[str, str], rounds: int, runs: int, first_run: int) -> int:
    if not isinstance(resume, Result):
        raise TypeError(f"resume={show(resume)}: go on from a Result, as simulate returned it or Result.load read it")
    if resume.regret.dtype != float_dtype():
        raise ValueError(
            f"resume: this Result was made in {resume.regret.dtype} and this simulation is in {float_dtype()}; set jax_enable_x64 as it was then"
        )
    check_identity("resume: this Result", resume.identity, identity)
    if not resume.state:
        raise ValueError("resume: this Result has no state to go on from: it was read from a sweep, or its state was dropped")
    if (runs, first_run) != (resume.regret.shape[1], resume.first_run):
        raise ValueError(
            f"runs={runs}, first_run={first_run}: the Result to go on from has runs={resume.regret.shape[1]}, "
            f"first_run={resume.first_run}; use the same"
        )
    done = int(resume.rounds[-1])
    if rounds <= done:
        raise ValueError(f"rounds={rounds}: with resume, rounds is the new total and must be above the {done} already played")
    return done


def _execution_to_resume(game: Game, before: dict[str, Any], execution: Execution) -> tuple[Execution, Execution]:
    """``execution`` adapted to resume runs of the plan ``before``, and that plan: outstanding observations must be stored alike.

    Lists can be resumed on any CPU, and were always used there before version 0.2. A queue that ended at the horizon is replaced by a
    longer one. Earlier versions kept queues that hold every delay. Blocks stay as large as they were, and are evaluated in the same way.
    """
    if before.get("packed"):
        raise ValueError(
            "resume: this Result is a unit of a sweep that was played together with other settings; resume its sweep"
        )
    queue = before.get("queue", before.get("arrivals", "listed"))  # "arrivals" before version 0.3
    if queue == "listed" and execution.platform == "cpu":
        execution = dataclasses.replace(execution, queue="listed")
    if queue != execution.queue:
        raise ValueError(
            f"resume: this Result was made on {before.get('platform')}, where outstanding observations are kept as {queue}, and this "
            f"simulation is on {execution.platform}, where they are kept as {execution.queue}; resume it where it was made"
        )
    if execution.platform != "cpu" and before.get("block"):  # earlier versions chose it by the number of runs
        execution = dataclasses.replace(execution, block=before["block"])
        if before.get("evaluation") == "arrays":  # for 17 to 32 arms, which are now evaluated differently
            execution = dataclasses.replace(execution, evaluation="arrays")
    if not before.get("later"):
        execution = dataclasses.replace(execution, ring=ring_rows(game.delays, game.losses.num_arms), later="")
        return execution, execution
    return execution, dataclasses.replace(execution, ring=before["ring"], later=before["later"])


def delays_of_run_0(delays: Any, rounds: int | None = None, key: jax.Array | None = None) -> np.ndarray:
    """The delays ``[rounds]`` of run 0 of a simulation with this key, for any learner.

    ``rounds`` is optional for a trace, which has a length; the default key is ``jax.random.key(0)``.
    """
    validate_delays(delays, 1)
    if not delays.oblivious:
        raise ValueError(f"delays={show(delays)}: only laws that look at neither arm nor loss can be drawn without a learner")
    rounds = delays.length if rounds is None else rounds
    if rounds is None:
        raise ValueError(f"rounds=None: {type(delays).__name__} has no finite length; pass rounds=")
    check_rounds(rounds)
    key = jax.random.key(0) if key is None else key
    check_key(key)
    law = canonical(delays).prepare()
    stream, grain = randomness.stream(key, randomness.DELAY), randomness.grain(float_dtype())

    def draw(t):
        words = randomness.fold(randomness.fold(stream, t), jnp.zeros((), jnp.uint32))
        return law.draw(t, jnp.int32(0), jnp.zeros((), float_dtype()), randomness.uniform(words.first, grain))

    return np.asarray(jax.vmap(draw)(jnp.arange(1, rounds + 1, dtype=jnp.int32)))
