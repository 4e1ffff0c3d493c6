"""One decision of a learner: probabilities, a drawn arm, and the learner's state once it knows the arm."""

from typing import NamedTuple

import jax
from jax import lax

from jaxbandit._core import arms
from jaxbandit._core.fields import PyTree
from jaxbandit.learners.base import Learner, Round


class Decision(NamedTuple):
    """The outcome of :func:`decide`; ``...`` is the shape of the runs."""

    probabilities: jax.Array  # [K, ...] x_t
    arm: jax.Array  # [...] int32, drawn from them
    probability: jax.Array  # [...] of that arm
    memo: PyTree  # is stored with the play until its feedback arrives
    acted: PyTree  # the learner's state after `act`
    state: PyTree  # the same once the arm is known


def decide(learner: Learner, state: PyTree, round: Round, uniform: jax.Array) -> Decision:
    """Let ``learner`` act in ``round`` and draw its arm by ``uniform [...]``, a number in (0, 1).

    The simulator, the live agent and the wrappers that query a base learner all decide by this function.
    """
    probabilities, memo, acted = learner.act(state, round)
    arm = lax.stop_gradient(arms.draw(probabilities, uniform))
    probability = arms.pick(probabilities, arm)
    return Decision(probabilities, arm, probability, memo, acted, learner.played(acted, round, arm, probability))
