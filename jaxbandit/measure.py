"""Measurements made inside the loop over rounds: asked for by ``simulate(..., measure=(...,))``, and free when not.

A measurement is a pytree with three pure methods, like a learner: ``init(num_arms, runs_shape) -> state``,
``update(state, moment) -> state`` after every round, and ``read(state) -> {name: array [..., runs]}`` at every recorded
round. What it reads comes back as ``result.measured[name]``, ``[C, ..., runs]``.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.arms import is_arm, pick
from jaxbandit.learners.base import Round
from jaxbandit.pytrees import float_dtype, pytree_dataclass, show


class Moment(NamedTuple):
    """What a measurement may look at, at the end of round t; ``...`` is the shape of the runs."""

    t: jax.Array  # [] int32
    probabilities: jax.Array  # [K, ...] x_t
    arm: jax.Array  # [...] int32, the arm played
    loss: jax.Array  # [...] its loss
    means: jax.Array  # [K] the expected losses of this round
    outstanding: jax.Array  # [] or [...] int32, σ_t
    arrivals: jax.Array  # [] or [...] int32, how many observations came at the end of the round
    learner: Any  # the learner's state in this round: after ``act``, before what arrived at its end
    informed: Any  # the learner's state after what arrived
    delay: jax.Array  # [] or [...] int32, how long the feedback of this play takes
    round: Round  # what the learner was told at the start of the round


@pytree_dataclass
class ControlVariates:
    """Quantities whose mean is known to be 0 and that move with the regret: they narrow its interval.

    Reads ``control_variates [C, K, runs]``: F_i(t) = Σ_{s<=t} (1{I_s = i}·ℓ_s / x_{s,i} - m_{s,i}), the sum of the
    importance-weighted losses less their means. Each term has mean 0 given the past, whatever the delays and the learner,
    so F has mean 0 exactly (arms of probability 0 are left out of a round). :meth:`jaxbandit.Result.estimate` uses its
    increments between recorded rounds: the estimate is the intercept of a least squares fit of the regret on them.

    >>> import jax, jaxbandit as jb
    >>> result = jb.simulate(jb.BestOfBothWorlds(max_delay=5), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5),
    ...                      rounds=500, runs=256, key=jax.random.key(0), measure=[jb.ControlVariates()])
    >>> bool(result.estimate().error[-1] < result.estimate(control_variates=False).error[-1])
    True
    """

    def init(self, num_arms, runs_shape):
        return jnp.zeros((num_arms, *runs_shape), float_dtype())

    def update(self, state, moment):
        # Constants to differentiation: the loop of a gradient shall not carry their tangents.
        x, loss, means = jax.lax.stop_gradient((moment.probabilities, moment.loss, moment.means))
        played = is_arm(moment.arm, state.shape[0])
        weight = jnp.where(played, loss / pick(x, moment.arm), 0)
        return state + jnp.where(x > 0, weight - means.reshape(-1, *[1] * moment.arm.ndim), 0)

    def read(self, state):
        return {"control_variates": state}


def check_measure(measure: Any) -> None:
    if not isinstance(measure, Sequence) or isinstance(measure, str):
        raise TypeError(f"measure={show(measure)}: give a list of measurements, such as [jb.ControlVariates()]")
    for one in measure:
        missing = [name for name in ("init", "update", "read") if not callable(getattr(one, name, None))]
        if missing or isinstance(one, type):
            raise TypeError(
                f"measure=[{show(one)}]: a measurement, such as jb.ControlVariates(), has the methods init, update and read"
            )
