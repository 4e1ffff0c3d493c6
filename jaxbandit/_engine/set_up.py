"""From the arguments of a user to a checked game."""

import collections
import dataclasses
import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._checks.inputs import check_game, check_rounds, check_runs
from jaxbandit._checks.per_run import own_leaves, prepared, values_for_each_run
from jaxbandit._checks.warn import is_muted, noted, warned_about
from jaxbandit._core import randomness
from jaxbandit._core.contents import contents
from jaxbandit._core.fields import float_dtype, is_concrete
from jaxbandit._engine.game import Game
from jaxbandit._provenance.identity import fingerprint, with_key
from jaxbandit.losses import AdaptiveLosses
from jaxbandit.measure import BestArm, PolicyRegret, Trajectory, check_measure


def checked_game(
    learner: Any,
    losses: Any,
    delays: Any,
    *,
    rounds: Any,
    key: jax.Array,
    runs: Any,
    first_run: Any,
    measure: Any = (),
    values_per_run: bool = False,
) -> tuple[Game, tuple[bool, ...]]:
    """Check everything that a simulation is made of (``key`` is one of ``given_key``), and build its game.

    Invalid input raises here, before anything is compiled. The game has the ids of all ``runs``, for None the id of one.

    Returns:
      The game, and which leaves of learner, losses and delays have one value per run (only with ``values_per_run``).
    """
    if is_concrete(rounds):
        check_rounds(rounds)
    check_runs(1 if runs is None else runs, first_run)
    check_measure(measure)
    if isinstance(losses, AdaptiveLosses):
        for one in measure:
            # Their formulas have one best arm for all runs.
            if isinstance(one, BestArm) or type(one).__module__.startswith("jaxbandit.theory"):
                raise ValueError(
                    f"measure=[{type(one).__name__}(…)]: it requires mean losses that are the same in all runs, and those of "
                    f"{type(losses).__name__} depend on the arms of each run; leave it out"
                )
    measure = tuple(_with_losses(one, losses) if isinstance(one, PolicyRegret) else one for one in measure)
    # The chosen runs and rounds are not part of the program.
    measure = tuple(Trajectory() if isinstance(one, Trajectory) else one for one in measure)
    own = values_for_each_run(learner, losses, delays, runs) if values_per_run and runs is not None else []
    if own and any(own[1]) and any(isinstance(one, PolicyRegret) for one in measure):
        raise ValueError("measure=[PolicyRegret()]: the losses have values for each run; simulate each of them by itself")
    check_game(learner, losses, delays, rounds, int(runs) if runs is not None and any(map(any, own)) else None)
    first = jnp.uint32(int(first_run)) if is_concrete(first_run) else first_run.astype(jnp.uint32)
    run_ids = first if runs is None else first + jnp.arange(int(runs), dtype=jnp.uint32)
    if not any(map(any, own)):
        return Game.set_up(learner, losses, delays, key, run_ids, measure), ()
    game = Game.set_up(learner, losses, prepared(delays, own[2]), key, run_ids, measure)
    of_delays = [True] * len(jax.tree.leaves(game.delays)) if any(own[2]) else own[2]
    return game, (*own[0], *own_leaves(game.losses), *of_delays)


@dataclasses.dataclass(frozen=True)
class _Checked:
    """A game that passed all checks, without random streams and run ids, with arrays of NumPy."""

    game: Game
    flags: tuple[bool, ...]
    identity: dict[str, str]
    warnings: tuple[tuple, ...]  # what the checks warned about


MOST, MOST_BYTES = 256, 1 << 18  # games that are kept, and how large they may be
_games: collections.OrderedDict[Any, _Checked] = collections.OrderedDict()
_finding = threading.Lock()


def identified_game(
    learner: Any, losses: Any, delays: Any, *, rounds: int, key: jax.Array, runs: int, first_run: int, measure: Any
) -> tuple[Game, tuple[bool, ...], dict[str, str]]:
    """:func:`checked_game` with values per run, and its fingerprint.

    Games of the library's classes are checked once: many small simulations differ only in their key, and checks and fingerprint
    take longer than their rounds.
    """
    check_rounds(rounds)
    check_runs(runs, first_run)
    check_measure(measure)
    parts = contents(learner, losses, delays, tuple(measure))
    about = parts, int(rounds), int(runs), float_dtype()
    with _finding:
        known = _games.get(about) if parts is not None else None
        if known is not None:
            _games.move_to_end(about)
    if known is None or not (is_muted() or warned_about(known.warnings)):
        with noted() as cases:
            game, flags = checked_game(
                learner,
                losses,
                delays,
                rounds=rounds,
                key=key,
                runs=runs,
                first_run=first_run,
                measure=measure,
                values_per_run=True,
            )
        identity = fingerprint(learner, losses, delays, key, measure)
        kept = dataclasses.replace(game, runs=np.zeros(0, np.uint32), streams=())
        if parts is not None and not is_muted() and sum(leaf.nbytes for leaf in jax.tree.leaves(kept)) <= MOST_BYTES:
            with _finding:
                _games[about] = _Checked(jax.tree.map(np.asarray, kept), flags, identity, tuple(cases))
                while len(_games) > MOST:
                    _games.popitem(last=False)
        return game, flags, identity
    ids = np.arange(int(first_run), int(first_run) + int(runs), dtype=np.uint32)
    game = dataclasses.replace(known.game, streams=randomness.streams(key), runs=ids)
    return game, known.flags, with_key(known.identity, key)


def _with_losses(one: PolicyRegret, losses: Any) -> PolicyRegret:
    """The measurement with the adversary that its comparators meet."""
    if not isinstance(losses, AdaptiveLosses):
        raise ValueError(
            f"measure=[PolicyRegret()]: {type(losses).__name__} does not react to arms, so that policy regret is the regret; leave it out"
        )
    return dataclasses.replace(one, losses=losses.prepare())
