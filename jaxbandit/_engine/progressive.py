"""Progressive feedback: the outcomes of actions that are observed before the loss, a queue for each stage."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandit._core.fields import float_dtype
from jaxbandit._engine.game import Game
from jaxbandit._engine.queues.listed import Loop, Pending, Play
from jaxbandit.delays import Delays
from jaxbandit.learners.base import stages_read


class _UpTo(Delays):
    """Delays of one stage, for the size of its queue."""

    def __init__(self, bound: int):
        self.bound = bound


def bounds(game: Game) -> list[int]:
    """The longest delay of each stage: that of its model, or of an earlier stage, which is observed first."""
    each = [int(law.bound) for law in game.losses_with_stages().stage_delays]
    return [max(each[: stage + 1]) for stage in range(len(each))]


def start(game: Game, play: Play) -> tuple[Pending, ...] | None:
    """Empty queues, None if the learner reads no outcomes before the loss; ``play`` gives the shapes of an entry."""
    if not stages_read(game.learner):
        return None
    return tuple(Pending.start(_UpTo(bound), play, game.runs.shape, False) for bound in bounds(game))


def step(
    game: Game,
    queues: tuple[Pending, ...],
    play: Play,
    learner: Any,
    t: jax.Array,
    noise: jax.Array,
    delay: jax.Array,
    loop: Loop,
) -> tuple[Play, tuple[Pending, ...], Any]:
    """The action of round t with its outcomes, and queues and learner's state after the outcomes that arrive in round t.

    ``delay`` is that of the loss.
    """
    losses, shape, full = game.losses_with_stages(), play.arm.shape, game.learner
    outcomes = jnp.broadcast_to(losses.stages(t, play.arm, noise), (len(queues), *shape)).astype(float_dtype())
    after, longest = jnp.zeros(shape, jnp.int32), bounds(game)
    stage_of = jnp.arange(len(queues)).reshape(-1, *[1] * len(shape))
    for stage, law in enumerate(losses.stage_delays):
        own = law.draw(t, play.arm, 1 - outcomes[stage], game.delay_noise(t, stage))
        after = jnp.minimum(jnp.maximum(after, jnp.minimum(own, longest[stage])), delay)
        # Later outcomes and the loss are not known yet.
        entry = dataclasses.replace(play, loss=jnp.zeros_like(play.loss), stages=jnp.where(stage_of <= stage, outcomes, 0))
        queue = queues[stage].begin(None).add(t, entry, after)
        observe = functools.partial(_observe, full, stage)
        queue, learner = queue.deliver(t, None, observe, learner, loop)
        queues = (*queues[:stage], queue, *queues[stage + 1 :])
    return dataclasses.replace(play, stages=outcomes), queues, learner


def _observe(learner: Any, stage: int, state: Any, observation: Any) -> Any:
    return learner.staged(state, stage, observation)
