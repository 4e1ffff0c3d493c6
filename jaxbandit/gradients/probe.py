"""Read from a learner's own methods how it uses loss estimates: its floor, its baseline and its stiffness.

Each function here calls ``observe``, or ``observe`` and then ``act``, with an observation whose ``jump`` is a :class:`Probe`.
``Observation.loss_estimate`` passes all its arguments to the probe, and the probe returns the estimate.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandit._core.fields import PyTree, pytree_dataclass, static
from jaxbandit.learners.base import Learner, Observation, Round

RARE = 1e-3  # arms below this probability count less in the fit of the rates: their logarithmic derivatives are less accurate
MOVE = 1.4  # log 4: how far the second point of the fit moves a log-probability
COLLINEAR = 1e-4  # relative determinant below which the two rates cannot be separated


class UnreadableFloor(TypeError):
    """The floor or baseline of a learner cannot be read."""


class Arguments:
    """The arguments of the last call of ``loss_estimate``; compared by identity, so that no cached trace is reused."""

    floor: Any = None
    baseline: Any = None


@pytree_dataclass
class Probe:
    """Stands in for the feedback of one action: keeps the arguments of ``loss_estimate`` and returns ``moved``."""

    moved: jax.Array  # [K, ...] the estimate
    arguments: Arguments = static()

    def estimate(
        self, observation: Observation, weighted: jax.Array, floor: jax.Array | None, baseline: jax.Array | None
    ) -> jax.Array:
        self.arguments.floor, self.arguments.baseline = floor, baseline
        return self.moved


def arguments_of(learner: Learner, state: PyTree, round: Round, probabilities: jax.Array, memo: PyTree) -> Arguments:
    """The arguments that ``observe`` gives to ``loss_estimate``, from a trace: only whether they are None may be read."""
    found = Arguments()

    def observe(probabilities):
        return learner.observe(state, _observation(round, probabilities, memo, Probe(jnp.zeros_like(probabilities), found)))

    jax.eval_shape(observe, probabilities)
    return found


def floor_and_baseline(
    learner: Learner, state: PyTree, observation: Observation, probabilities: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Floor and baseline ``[K, ...]`` as constants, each row as if that arm had been chosen with these probabilities.

    A floor of shape ``[...]`` may belong to the chosen arm alone; its shape does not show it.
    """
    num_arms = probabilities.shape[0]

    def of_arm(arm, probability):
        found = Arguments()
        probe = Probe(jnp.zeros_like(probabilities), found)
        arm_seen = jnp.where(observation.arrived, arm, -1).astype(observation.arm.dtype)
        arm_seen = jnp.broadcast_to(arm_seen, observation.arm.shape)
        learner.observe(state, observation._replace(arm=arm_seen, probability=probability, jump=probe))
        return _row(found.floor, arm, probability), _row(found.baseline, arm, probability)

    return lax.stop_gradient(jax.vmap(of_arm)(jnp.arange(num_arms), probabilities))


@contextlib.contextmanager
def readable(learner: Learner) -> Iterator[None]:
    """Raise UnreadableFloor where a floor or baseline was traced inside another transformation than ``observe`` itself."""
    try:
        yield
    except jax.errors.UnexpectedTracerError:
        raise UnreadableFloor(
            f"{type(learner).__name__}.observe calls loss_estimate with a floor or baseline inside jax.jit, lax.cond or a loop; "
            "call it outside"
        ) from None


def _row(value: Any, arm: jax.Array, like: jax.Array) -> jax.Array:
    """Row ``arm`` of a value ``[K, ...]``, or the value itself if it has no axis of arms; 0 for None."""
    value = jnp.asarray(0 if value is None else value, like.dtype)
    return jnp.broadcast_to(value[arm] if value.ndim > like.ndim else value, like.shape)


def _observation(round: Round, probabilities: jax.Array, memo: PyTree, probe: Probe) -> Observation:
    """A loss of 0 of arm 0, chosen in this round, whose estimate is that of the probe."""
    zero = jnp.zeros(probabilities.shape[1:], probabilities.dtype)
    arm = zero.astype(jnp.int32)
    return Observation(arm == 0, jnp.broadcast_to(round.t, arm.shape), arm, zero, probabilities[0], memo, probe)


def fitted_rates(
    learner: Learner, state: PyTree, round: Round, probabilities: jax.Array, memo: PyTree
) -> tuple[jax.Array, jax.Array]:
    """The inverse rates a and b ``[...]`` of the hybrid regulariser that answers to loss estimates as ``act`` does; 0, 0: unknown.

    With the regulariser of a and b, moving the estimates along u moves log-probabilities by d, where
    d_i (a x_i^{-1/2} + 2b)/2 = ν - u_i with one ν for all arms. That is linear in a and b. It is fitted at the present estimates and
    at others that are c·u away: at equal probabilities, or with two arms, one point does not separate a from b.
    """
    num_arms, shape = probabilities.shape[0], probabilities.shape
    direction = jnp.broadcast_to(
        jnp.linspace(1, -1, num_arms, dtype=probabilities.dtype).reshape(-1, *[1] * len(shape[1:])), shape
    )

    def act(distance):
        probe = Probe(distance * direction, Arguments())
        return learner.act(learner.observe(state, _observation(round, probabilities, memo, probe)), round)[0]

    def point(distance):
        x, change = jax.jvp(act, (distance,), (jnp.ones_like(distance),))
        x = jnp.maximum(x, jnp.finfo(x.dtype).tiny)
        return x, change / x

    here = point(jnp.zeros(shape[1:], probabilities.dtype))
    fastest = jnp.abs(here[1]).max(0)
    answers = jnp.isfinite(fastest) & (fastest > 0)
    there = point(jnp.where(answers, MOVE / jnp.where(answers, fastest, 1), 0))
    pp, qq, pq, pr, qr = (one + other for one, other in zip(_moments(*here, direction), _moments(*there, direction), strict=True))
    determinant = pp * qq - pq * pq
    both = determinant > COLLINEAR * pp * qq
    tsallis, entropy = (
        jnp.where(both, part / jnp.where(both, determinant, 1), 0) for part in (qq * pr - pq * qr, pp * qr - pq * pr)
    )
    only_entropy, only_tsallis = (
        jnp.where(own > 0, along / jnp.where(own > 0, own, 1), 0) for along, own in ((qr, qq), (pr, pp))
    )
    alone = ~both | (tsallis < 0)
    tsallis, entropy = jnp.where(alone, 0, tsallis), jnp.where(alone, only_entropy, entropy)
    tsallis, entropy = jnp.where(entropy < 0, only_tsallis, tsallis), jnp.maximum(entropy, 0)
    known = answers & jnp.isfinite(tsallis + entropy)
    return jnp.where(known, 2 * jnp.maximum(tsallis, 0), 0), jnp.where(known, entropy, 0)


def _moments(x: jax.Array, change: jax.Array, direction: jax.Array) -> tuple[jax.Array, ...]:
    """Weighted second moments over arms of p = d·x^{-1/2}, q = d and r = -u, each less its mean: pp, qq, pq, pr, qr."""
    weight = x / (x + RARE)
    total = weight.sum(0)
    p, q, r = (part - (weight * part).sum(0) / total for part in (change / jnp.sqrt(x), change, -direction))
    return tuple((weight * one * other).sum(0) for one, other in ((p, p), (q, q), (p, q), (p, r), (q, r)))
