"""From the arguments of a user to a checked game."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxbandit._checks.inputs import check_game, check_rounds, check_runs
from jaxbandit._checks.per_run import own_leaves, prepared, values_for_each_run
from jaxbandit._core.fields import is_concrete
from jaxbandit._engine.game import Game
from jaxbandit.losses import AdaptiveLosses
from jaxbandit.measure import BestArm, Trajectory, check_measure


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
    # The chosen runs and rounds are not part of the program.
    measure = tuple(Trajectory() if isinstance(one, Trajectory) else one for one in measure)
    own = values_for_each_run(learner, losses, delays, runs) if values_per_run and runs is not None else []
    check_game(learner, losses, delays, rounds, int(runs) if runs is not None and any(map(any, own)) else None)
    first = jnp.uint32(int(first_run)) if is_concrete(first_run) else first_run.astype(jnp.uint32)
    run_ids = first if runs is None else first + jnp.arange(int(runs), dtype=jnp.uint32)
    if not any(map(any, own)):
        return Game.set_up(learner, losses, delays, key, run_ids, measure), ()
    game = Game.set_up(learner, losses, prepared(delays, own[2]), key, run_ids, measure)
    of_delays = [True] * len(jax.tree.leaves(game.delays)) if any(own[2]) else own[2]
    return game, (*own[0], *own_leaves(game.losses), *of_delays)
