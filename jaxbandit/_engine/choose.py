"""Choice of the :class:`~jaxbandit._engine.execution.Execution` of a game on a platform.

On a CPU rounds are evaluated on arrays, in blocks of a few hundred runs that stay in its caches. A GPU or TPU needs tens of
thousands of runs at once, loops of known length, and rounds of few kernels.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxbandit._core.fields import MOST_ROUNDS
from jaxbandit._engine import per_run
from jaxbandit._engine.execution import Execution, QueueKind
from jaxbandit._engine.game import Game, State
from jaxbandit._engine.per_run import with_runs
from jaxbandit._engine.player import Player
from jaxbandit._engine.queues.listed import Pending, ring_size
from jaxbandit._engine.unrolled import rounds as unrolled
from jaxbandit.delays import Delays
from jaxbandit.learners.base import adds_at_arm, adds_only, stages_read

BLOCK = 256  # runs in a block on a CPU; within 10 % of the best size (experiments/bench shows others)
# Up to how many arms, runs in a block on an accelerator: see docs/appendix/accelerators.md. From 11 to 32 arms the compiler for GPUs
# makes a round of smaller blocks of 39 kernels, not of 7.
ACCELERATOR_BLOCKS = ((2, 32768), (10, 16384), (32, 65536), (MOST_ROUNDS, 16384))
SIZES = (1024, 8192, 65536)  # other sizes: for small memories, and for launches that many settings share
RINGS = (64, 256, 2048)  # rows of a queue; few, so that games that differ in a fixed delay share a program
SMALL_RING = 2048  # rows; a queue that holds every delay in so few rows is not shortened to the horizon
LARGEST_RING = 1 << 18  # rows times arms; above, queues are not rounded up to a common size
FEW_ARMS, SLOT_ARMS, SLOT_NUMBERS = 4, 20, 1 << 14  # on a CPU: up to how many arms, rows times arms, slots are used
CHUNK = 64  # rounds in a loop of known length
MEMORY = 12 << 30  # bytes, for accelerators that do not report their memory


def block_size(num_arms: int, platform: str = "cpu") -> int:
    """The number of runs in a block; independent of the number of runs and devices.

    On a CPU twice as many for one or two arms, where starting a kernel takes longer than its work.
    """
    if platform != "cpu":
        return next(size for most, size in ACCELERATOR_BLOCKS if num_arms <= most)
    return 2 * BLOCK if num_arms <= 2 else BLOCK


def ring_rows(delays: Delays, num_arms: int) -> int:
    """The number of rows of a queue: the bound of the delay model requires it; rounded up to one of a few sizes where allowed."""
    rows = ring_size(delays.bound)
    sizes = [size for size in RINGS if size >= rows and size * num_arms <= LARGEST_RING] if delays._roomy else []
    return sizes[0] if sizes else rows


def horizon_rows(game: Game, queue: QueueKind, rounds: int | None) -> int:
    """The number of rows of a queue that ends at the horizon, used where a queue for every delay would be large; 0: not used.

    Sums over all rows (dense queues, pieces of losses) and side lists keep the rows that the delay model requires.
    """
    delays, num_arms = game.delays, game.losses.num_arms
    rows = ring_size(delays.bound)
    if rounds is None or queue == "dense" or delays._long_waits or delays._shares() is not None:
        return 0
    if rows <= SMALL_RING and rows * num_arms <= LARGEST_RING:
        return 0
    short = next((size for size in RINGS if size > rounds), ring_size(rounds))
    return short if short < rows else 0


def fitted(game: Game, execution: Execution, hook: Any = None) -> tuple[Player, Game]:
    """The player of an execution, and the game with a queue of the length that the execution specifies."""
    delays: Any = game.delays
    if delays._roomy and execution.later:
        # The bound is then not part of the program: models that differ only in it share one.
        return Player(hook=hook, execution=execution), dataclasses.replace(
            game, delays=dataclasses.replace(delays, bound=MOST_ROUNDS - 1)
        )
    if not delays._roomy or execution.ring not in RINGS:
        return Player(hook=hook, execution=execution), game
    used: Any = np.uint32(ring_size(delays.bound) - 1)
    game = dataclasses.replace(game, delays=dataclasses.replace(delays, bound=execution.ring - 1))
    return Player(hook=hook, mask=used, execution=execution), game


def choose_execution(
    game: Game,
    platform: str,
    memory: int | None = None,
    *,
    block: int | None = None,
    flags: Sequence[bool] = (),
    differentiable: bool = False,
    rounds: int | None = None,
    resumable: bool = True,
) -> Execution:
    """The execution of a game, for any number of runs and devices.

    Args:
      game: the game.
      platform: "cpu", "gpu" or "tpu".
      memory: bytes of the device.
      block: runs in a block of an accelerator, if they fit its memory; by default :func:`block_size`.
      flags: the leaves of learner, losses and delays that have one value per run.
      differentiable: require arrays, and a queue that supports hooks and automatic differentiation.
      rounds: the horizon; None: unknown.
      resumable: observations that arrive after the horizon are kept.
    """
    num_arms, flags = game.losses.num_arms, tuple(flags) if any(flags) else ()
    on_cpu = platform == "cpu"
    queue: QueueKind = "listed" if differentiable else _queue(game, platform, flags)
    short = horizon_rows(game, queue, rounds)
    execution = Execution(
        platform,
        block_size(num_arms) if on_cpu else SIZES[0],
        queue=queue,
        chunk=0 if on_cpu else CHUNK,
        ring=short or ring_rows(game.delays, num_arms),
        later="" if not short else "kept" if resumable else "dropped",
        per_run=flags,
        one_function=on_cpu,
    )
    if not on_cpu:
        wanted = block or block_size(num_arms, platform)
        execution = dataclasses.replace(execution, block=_fitting_block(game, execution, memory or MEMORY, wanted))
        note = "gradients: rounds are evaluated on arrays" if differentiable else _why_not_unrolled(game, execution)
        if not note:
            return dataclasses.replace(execution, evaluation="unrolled")
        execution = dataclasses.replace(execution, note=note)
    if flags and not _broadcasts(game, execution):
        return dataclasses.replace(execution, evaluation="mapped", queue="listed", note="one value per run: runs are mapped")
    return execution


def shapes_of(game: Game, execution: Execution, runs: int) -> tuple[Player, Game, State]:
    """Player, game and state with ``runs`` runs, as shapes."""
    player, game = fitted(game, execution)
    game = with_runs(game, execution.per_run, runs)
    return player, game, jax.eval_shape(Player.start, player, game)


def _fitting_block(game: Game, execution: Execution, memory: int, wanted: int) -> int:
    """``wanted`` runs, or the next smaller size whose state fits the memory three times."""
    state = (
        shapes_of(game, execution, SIZES[0])[2] if not execution.per_run else shapes_of(game, _unrolled(execution), SIZES[0])[2]
    )
    per_run = _bytes(state) / SIZES[0]
    sizes = sorted({size for size in SIZES if size < wanted} | {wanted})
    return max((size for size in sizes if 3 * size * per_run <= memory), default=sizes[0])


def _unrolled(execution: Execution) -> Execution:
    return dataclasses.replace(execution, evaluation="unrolled")


def _broadcasts(game: Game, execution: Execution) -> bool:
    """Whether per-run values broadcast correctly on arrays of runs: the library's classes, where all shapes fit."""
    if not per_run.of_library((game.learner, game.losses, game.delays)):
        return False
    if per_run.of_losses(game, execution.per_run) and not per_run.of_library(game.measure):
        return False
    try:
        # A number of runs that differs from all other axes, so that equal lengths cannot hide a wrong shape.
        runs = next(count for count in (509, 521) if count != game.losses.num_arms)
        player, shapes, state = shapes_of(game, execution, runs)
        after, x = jax.eval_shape(Player.step, player, shapes, state, jax.ShapeDtypeStruct((), np.int32))
    except (TypeError, ValueError, IndexError):  # shapes that do not broadcast
        return False
    expected = (game.losses.num_arms, runs)
    same = [leaf.shape for leaf in jax.tree.leaves(after)] == [leaf.shape for leaf in jax.tree.leaves(state)]
    return same and x.shape == expected


def _queue(game: Game, platform: str, flags: Sequence[bool]) -> QueueKind:
    one_by_one = not adds_only(game.learner) or game.learner.watches_plays or stages_read(game.learner)
    if one_by_one or game.delays.fixed_age() is not None or game.delays._long_waits:
        return "listed"
    if platform == "cpu":
        shared = game.delays.shared or per_run.of_delays(game, flags)
        fit = not shared and adds_at_arm(game.learner) and _slots_fit_caches(game)
        return "slots in turn" if fit else "listed"
    return "dense" if platform == "tpu" else "slots"


def _slots_fit_caches(game: Game) -> bool:
    """Whether slots are faster than lists on a CPU, whose caches must hold a number for each row and arm.

    See docs/appendix/engineering_notes.md.
    """
    num_arms = game.losses.num_arms
    return num_arms <= FEW_ARMS or (num_arms <= SLOT_ARMS and ring_size(game.delays.bound) * (num_arms + 1) <= SLOT_NUMBERS)


def _bytes(state: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def _why_not_unrolled(game: Game, execution: Execution) -> str:
    """Why the game cannot be unrolled, or is not worth it; empty if it can."""
    num_arms = game.losses.num_arms
    if num_arms > unrolled.MOST_ARMS:
        return f"{num_arms} arms: rounds are evaluated on arrays above {unrolled.MOST_ARMS}"
    if num_arms > unrolled.FEW_ARMS:
        player, fit = fitted(game, _unrolled(execution))
        alone, one = player.alone(), per_run.single_run(fit, execution.per_run)
        like, t = jax.eval_shape(Player.start, alone, one), jax.ShapeDtypeStruct((), np.int32)
        numbers = unrolled.count_numbers(jax.make_jaxpr(Player.step)(alone, one, like, t))
        if numbers > unrolled.MOST_NUMBERS:
            return (
                f"{num_arms} arms, {numbers:,} numbers in a round: rounds are evaluated on arrays above {unrolled.MOST_NUMBERS:,}"
            )
    player, game, state = shapes_of(game, _unrolled(execution), SIZES[0])

    def one_round(player: Player, game: Game, state: State):
        return player.advance(game, state, jax.numpy.int32(0), jax.numpy.ones(1, np.int32))[0]

    try:
        jax.eval_shape(one_round, player, game, state)
    except Exception as error:  # Unsupported, or any error caused by jaxprs of another version of JAX: arrays always work
        return f"rounds are evaluated on arrays: {type(error).__name__}: {error}".splitlines()[0][:200]
    return ""


def check_memory(game: Game, state: State, available: int | None) -> None:
    """Raise if a block with a ``state`` of these shapes cannot fit into ``available`` bytes; None: unknown.

    A block needs its state twice, before and after the rounds of one call.
    """
    need = 2 * _bytes(state)
    if available is None or need <= available:
        return
    arms, bound = game.losses.num_arms, min(game.delays.bound, _rows(state.pending))
    text = f"a block of {game.runs.size} runs needs {need / 1e9:,.0f} GB of memory and there are {available / 1e9:,.0f} GB"
    if game.delays._long_waits > max(arms, bound):
        raise ValueError(
            f"delays={type(game.delays).__name__}(…): for {game.delays._long_waits} observations outstanding longer than bound={bound} {text}; "
            "take fewer of them, or raise bound= to their delay"
        )
    if arms > bound:
        # A prepared model is a subclass of the one that was given.
        given = next(cls.__name__ for cls in type(game.losses).__mro__ if cls.__name__ != "Tabulated")
        raise ValueError(f"losses={given}(…): with {arms} arms {text}; take fewer arms")
    if _bytes(state.learner_state) > _bytes(state.pending):
        raise ValueError(f"learner={type(game.learner).__name__}(…): {text}; give it a smaller capacity, or take fewer arms")
    raise ValueError(
        f"delays={type(game.delays).__name__}(…): for delays of up to {bound} rounds {text}; use shorter delays or fewer rounds, "
        "or give bound= where longer ones may be lost"
    )


def _rows(pending: Any) -> int:
    return pending.plays.arm.shape[0] if isinstance(pending, Pending) else pending.size()
