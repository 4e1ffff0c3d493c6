"""``jb.rollout``: a game as a pure function, for jit, vmap and differentiation."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit._checks.derivatives import warn_of_derivatives
from jaxbandit._checks.inputs import MOST_ROUNDS, check_switch, given_key
from jaxbandit._checks.records import check_record, rounds_to_record
from jaxbandit._core.fields import arms_first, is_concrete, pytree_dataclass, show
from jaxbandit._core.sums import Count
from jaxbandit._engine.mapping import How, play
from jaxbandit._engine.set_up import checked_game
from jaxbandit._engine.trajectories import PREFIX, of_rollout, split_rollout, trajectory_of
from jaxbandit.delays import Delays
from jaxbandit.learners.base import LearnerLike
from jaxbandit.losses import Losses
from jaxbandit.results.trajectory import Trajectories


@pytree_dataclass
class Rollout:
    """The result of :func:`rollout`; ``...`` is the shape of the runs."""

    rounds: jax.Array  # [C] the recorded rounds
    regret: jax.Array  # [C, ...] pseudo-regret up to them
    probabilities: jax.Array | None  # [C, K, ...] x_t at them, if requested
    measured: dict[str, jax.Array]  # name -> [C, ..., runs], the measurements of ``measure``
    learner_state: Any  # the learner's after the last round
    outstanding: jax.Array  # [...] int32, observations outstanding at the end
    outstanding_max: jax.Array  # [...] int32, the largest number of outstanding observations
    total_delay: Count  # [...] Σ min(d_s, T - s), exact, as two words
    lost: jax.Array  # [...] int32, actions with missing feedback
    trajectory: Trajectories | None = None  # of ``measure=[jb.measure.Trajectory(...)]``


@arms_first
def rollout(
    learner: LearnerLike,
    losses: Losses,
    delays: Delays,
    *,
    rounds: int | jax.Array,
    key: jax.Array | None = None,
    seed: int | jax.Array | None = None,
    runs: int | None = None,
    first_run: int | jax.Array = 0,
    record: int | Sequence[int] | ArrayLike = 50,
    spacing: str = "log",
    probabilities: bool = False,
    measure: Sequence[Any] = (),
) -> Rollout:
    """Simulate ``rounds`` rounds as a pure function, for jit, vmap, jvp and grad.

    A derivative holds the sampled arms, losses and delays fixed. For the gradient of the expected regret use
    :func:`jaxbandit.regret_gradient`.

    Run i uses the same random numbers as run i of :func:`simulate`, which is faster but cannot be transformed.

    Args:
      learner, losses, delays: as in :func:`simulate`; their leaves may be traced (then give ``bound=`` to the delays).
      rounds: a Python int for a ``lax.scan`` (reverse mode works, memory grows with rounds), or a JAX array, also a
        traced one, for a loop of constant memory (forward mode only).
      key: a typed key, ``jax.random.key(0)``.
      seed: a whole number in place of the key; may be traced.
      runs: the number of runs, on the last axis; None for a single run of shape ``()``.
      first_run: id of the first run, a number (may be traced).
      record: the number of rounds to record, or the rounds themselves, ascending; the last is the horizon. With traced ``rounds``
        only the latter. Records after ``rounds`` repeat the last one.
      spacing: of a number of recorded rounds, ``"log"`` or ``"linear"``.
      probabilities: also record x_t.
      measure: measurements of :mod:`jaxbandit.measure`.

    >>> import jax, jaxbandit as jb
    >>> def regret(key):
    ...     return jb.rollout(jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5), rounds=50, key=key).regret[-1]
    >>> jax.vmap(regret)(jax.random.split(jax.random.key(0), 3)).shape
    (3,)
    """
    key = given_key(key, seed)
    check_switch("probabilities", probabilities)
    losses, delays = warn_of_derivatives((losses, delays))
    game, _ = checked_game(learner, losses, delays, rounds=rounds, key=key, runs=runs, first_run=first_run, measure=measure)
    game = jax.tree.map(jnp.asarray, game)
    if isinstance(rounds, jax.Array):
        known = is_concrete(rounds)
        recorded = rounds_to_record(record, int(rounds), 0, spacing) if known else _traced_record(record, rounds)
    else:
        recorded = rounds_to_record(record, rounds, 0, spacing)
    chosen, places = of_rollout(trajectory_of(measure), game, rounds, runs, first_run)
    played = recorded if chosen is None else _with_chosen(recorded, chosen, rounds)
    if isinstance(rounds, jax.Array):
        how = How(None, (), probabilities)
    else:
        how = How(int(rounds), tuple(map(int, played)), probabilities)
    recorded, played = jnp.asarray(recorded, jnp.int32), jnp.asarray(played, jnp.int32)
    outcome = vars(play(how, game, played))
    if chosen is None:
        return Rollout(recorded, **outcome)
    chosen = jnp.minimum(jnp.asarray(chosen, jnp.int32), jnp.asarray(rounds, jnp.int32))
    found = {name: array for name, array in outcome["measured"].items() if name.startswith(PREFIX)}
    at, trajectory = split_rollout(recorded, chosen, played, found, places, game.runs)
    others = {name: array for name, array in outcome.pop("measured").items() if name not in found}
    kept = {"regret": outcome.pop("regret"), "probabilities": outcome.pop("probabilities"), "measured": others}
    return Rollout(recorded, **jax.tree.map(lambda leaf: leaf[at], kept), **outcome, trajectory=trajectory)


def _with_chosen(recorded: Any, chosen: np.ndarray, rounds: Any) -> Any:
    """The rounds to record, and those of a trajectory; ascending, where they are traced with repetitions."""
    if is_concrete((recorded, rounds)):
        return np.union1d(np.asarray(recorded), chosen)
    return jnp.sort(jnp.concatenate([recorded, jnp.minimum(jnp.asarray(chosen, jnp.int32), jnp.asarray(rounds, jnp.int32))]))


def _traced_record(record: Any, rounds: jax.Array) -> jax.Array:
    """The rounds to record where the horizon is traced: checked where their values are known, and clipped to the horizon."""
    if is_concrete(record):
        if np.ndim(record) == 0:
            raise ValueError(
                f"record={show(record)}: where rounds is traced, give the rounds to record themselves, such as [10, 100]"
            )
        record = check_record(record, 0, MOST_ROUNDS)[: np.size(record)]
    return jnp.minimum(jnp.asarray(record, jnp.int32), jnp.asarray(rounds, jnp.int32))
