"""Many settings in one launch: runs of several games side by side in one block, on a GPU or TPU.

Games can be packed if their programs have the same shape: they differ in numbers only. Every number of learner, losses and delays
then has a value for each run (:mod:`jaxbandit._engine.per_run`), also where all values are equal. The block has one size. The
program therefore does not depend on the other games of a pack, and results are bitwise identical.
"""

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxbandit._engine.assemble import assemble
from jaxbandit._engine.blocks import execution_for
from jaxbandit._engine.choose import SIZES, ring_rows
from jaxbandit._engine.execution import Execution
from jaxbandit._engine.game import Game, State
from jaxbandit._engine.simulation import Stretch, play_rounds
from jaxbandit._engine.unrolled.vectors import UNROLLED
from jaxbandit._io.progress import Progress, showing
from jaxbandit.results.result import Result

AT_ONCE = 2  # launches on a device at the same time: one ends while the other begins


@dataclasses.dataclass(frozen=True)
class Part:
    """Some runs of one setting."""

    game: Game  # with their ids, in ascending order
    identity: dict[str, str]  # see jaxbandit._provenance.identity.fingerprint
    resume: Result | None  # the Result to resume from


def shape_of(game: Game) -> str:
    """A key that is equal for games that can be packed together: all but their numbers. Long tables must be the same."""
    leaves, structure = jax.tree.flatten(_numbers_of(game))
    digest = hashlib.sha256(str(structure).encode())
    for leaf in leaves:
        digest.update(f"{leaf.dtype}{leaf.shape}".encode() + (b"" if leaf.size <= UNROLLED else np.asarray(leaf).tobytes()))
    return digest.hexdigest()[:16]


def execution_of_packed(game: Game) -> Execution | None:
    """The execution plan of packed games of this shape; None if they cannot be packed."""
    if game.losses.num_arms < 2:
        return None
    packed, flags = pack([game])
    execution = execution_for(packed, flags=flags, block=SIZES[-1], at_once=AT_ONCE)
    return execution if execution.evaluation == "unrolled" else None


def pack(games: Sequence[Game]) -> tuple[Game, tuple[bool, ...]]:
    """Games of one shape as one, with the runs of all of them side by side, and which leaves have one value per run."""
    each = [jax.tree.leaves(_numbers_of(game)) for game in games]
    counts = [game.runs.size for game in games]
    own = tuple(leaf.size <= UNROLLED for leaf in each[0])

    def beside(leaves: Sequence[Any]) -> np.ndarray:
        return np.concatenate(
            [np.repeat(np.asarray(leaf)[..., None], count, -1) for leaf, count in zip(leaves, counts, strict=True)], -1
        )

    leaves = [beside(column) if mine else column[0] for mine, *column in zip(own, *each, strict=True)]
    learner, losses, delays = jax.tree.unflatten(jax.tree.structure(_numbers_of(games[0])), leaves)
    runs: Any = np.concatenate([np.asarray(game.runs) for game in games])
    return dataclasses.replace(games[0], learner=learner, losses=losses, delays=delays, runs=runs), own


def _numbers_of(game: Game) -> tuple[Any, Any, Any]:
    """Learner, losses and delays; delay models that may share a ring get the same bound."""
    delays: Any = game.delays
    if delays._roomy:
        delays = dataclasses.replace(delays, bound=ring_rows(delays, game.losses.num_arms) - 1)
    return game.learner, game.losses, delays


def play_packed(parts: Sequence[Part], execution: Execution, stretch: Stretch, progress: bool | Progress = False) -> list[Result]:
    """Simulate all parts together in blocks of ``execution``. Returns a Result for each part."""
    game, _ = pack([part.game for part in parts])
    counts = [part.game.runs.size for part in parts]

    def resumed(like: State, first: int, block: int) -> State:
        leaves, structure = jax.tree.flatten(like)
        states = [part.resume.state for part in parts if part.resume is not None]
        columns = np.minimum(np.arange(first, first + block), sum(counts) - 1)
        mine = [np.concatenate(column, -1)[..., columns] for column in zip(*states, strict=True)]
        if [(leaf.shape, leaf.dtype) for leaf in mine] != [(leaf.shape, leaf.dtype) for leaf in leaves]:
            raise ValueError("resume: the saved state has other shapes than this version of the learner or the delay model makes")
        return jax.tree.unflatten(structure, mine)

    total = sum(counts) * (int(stretch.recorded[-1]) - stretch.done)
    with showing(progress, total, f"{len(parts)} settings, {sum(counts)} runs") as bar:
        records, state, per_run, execution = play_rounds(game, execution, stretch, resumed if stretch.done else None, bar)
    ends = np.cumsum(counts)
    results = []
    for part, first, end in zip(parts, ends - counts, ends, strict=True):
        mine = jax.tree.map(lambda leaf, first=first, end=end: np.ascontiguousarray(leaf[..., first:end]), (records, state))
        part.game.learner._check_state(mine[1].learner_state)
        about: dict[str, Any] = {
            "first_run": int(part.game.runs[0]),
            "identity": part.identity,
            "program": execution.about() | {"packed": True},
        }
        results.append(assemble(stretch.recorded, *mine, per_run=per_run, **about))
    return results
