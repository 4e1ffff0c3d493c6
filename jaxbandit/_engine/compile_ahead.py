"""The programs of several games, compiled at the same time: XLA compiles one program on one core."""

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jaxbandit._engine.blocks import execution_for
from jaxbandit._engine.devices import Threads, count_cores
from jaxbandit._engine.game import Game
from jaxbandit._engine.per_run import of_block
from jaxbandit._engine.simulation import Stretch, play_rounds
from jaxbandit._io.progress import Progress


def compile_ahead(
    games: Iterable[tuple[Game, Sequence[bool]]], *, rounds: int, record: Any = 50, probabilities: bool = False
) -> None:
    """Compile what ``simulate`` will need for these games, as many at a time as there are cores.

    Each is played for one round by one block. An error is left for the simulation to report.

    Args:
      games: pairs of :func:`jaxbandit._engine.set_up.checked_game`: a game with the ids of all its runs, and its flags.
      rounds, record, probabilities: as they will be given to ``simulate``.
    """
    games = list(games)
    width = int(record) if np.ndim(record) == 0 else len(np.unique(np.append(record, rounds)))
    stretch = Stretch(0, np.ones(1, np.int64), width, probabilities)

    def play(game: Game, flags: Sequence[bool]) -> None:
        execution = execution_for(game, flags=flags, rounds=rounds)
        first: Any = of_block(game, execution.per_run, np.asarray(game.runs)[:1], 0)
        with contextlib.suppress(Exception):
            play_rounds(first, execution, stretch, None, Progress(False, 0, ""))

    if len(games) < 2:
        return
    with Threads(min(count_cores(), len(games)), "jaxbandit-compile") as threads:
        for future in [threads.submit(play, *game) for game in games]:
            with contextlib.suppress(Exception):
                future.result()
