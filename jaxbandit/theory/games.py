"""The games of the lower bounds: full information, an adversary that knows the learner's probabilities.

Theorem 9 of MZS22 has losses in [0, L_t]; its Corollary gets them from delays, by playing equal losses while no feedback can
come. With full information x_t is a deterministic function of the past losses, so the adversary may use it, as the proof
does. A learner observes every arm, with probability 1, in ascending order of arm; losses are shifted to [0, L_t].
"""

import dataclasses
import functools
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from jaxbandit._checks.inputs import validate_learner
from jaxbandit._core.fields import canonical, float_dtype, pytree_dataclass
from jaxbandit.learners.base import LearnerLike, Observation, Round
from jaxbandit.learners.exponential import ExponentialWeights
from jaxbandit.theory.bounds.base import Bound
from jaxbandit.theory.bounds.lower import buckets, full_information_lower
from jaxbandit.theory.optimal_skipping import check_sequence, outstanding

__all__ = ["Halving", "Hedge", "Played", "Spread", "hard_direction", "play_with_delays", "play_with_ranges"]

SURE = 2 / 3  # the adversary stops once one arm has a larger probability


@pytree_dataclass
class Hedge(ExponentialWeights):
    """Exponential weights with one rate: :math:`x_t \\propto \\exp(-\\eta L_t)`.

    Args:
      learning_rate: :math:`\\eta`.

    >>> from jaxbandit import theory
    >>> round(theory.games.play_with_ranges(theory.games.Hedge(0.1), np.ones(500), num_arms=8).ratio, 3)
    1.0
    """

    learning_rate: ArrayLike

    def rate(self, round: Round, num_arms: int) -> ArrayLike:
        return self.learning_rate


@dataclasses.dataclass(frozen=True, eq=False)
class Played:
    """How a game went."""

    regret: float  # Σ<x_t, ℓ_t> - min_i Σ ℓ_{t,i}
    bound: float  # no learner can promise less
    adversary: Literal["halving", "spread"]
    probabilities: np.ndarray  # [T, K] x_t
    losses: np.ndarray  # [T, K] in [0, L_t]

    @property
    def ratio(self) -> float:
        """Regret over the lower bound: at least 1, up to rounding, if the theorem is right."""
        return self.regret / self.bound


def hard_direction(x: jax.Array) -> jax.Array:
    """Algorithm 2: losses in :math:`[-1, 1]^K` with :math:`\\langle x, \\ell \\rangle = 0` and :math:`\\sum_i x_i \\ell_i^2 \\ge 1/2`, for :math:`\\max_i x_i \\le 2/3`.

    The largest arm is joined by the smallest others for as long as their sum stays within 2/3; they lose what the rest wins.

    >>> from jaxbandit import theory
    >>> theory.games.hard_direction(jnp.array([0.5, 0.25, 0.25]))
    Array([ 1., -1., -1.], dtype=float32)
    """
    num_arms = x.shape[0]
    largest = jnp.arange(num_arms) == jnp.argmax(x)
    order = jnp.argsort(jnp.where(largest, -jnp.inf, x))  # the largest first, then ascending
    joined = jnp.cumsum(x[order]) <= SURE + 4 * jnp.finfo(x.dtype).eps
    inside = jnp.zeros(num_arms, bool).at[order].set(joined) | largest
    p = jnp.sum(jnp.where(inside, x, 0))
    rest = jnp.sum(jnp.where(inside, 0, x))
    return jnp.where(inside, jnp.minimum(1, rest / p), jnp.maximum(-1, -p / jnp.where(rest > 0, rest, 1)))


@pytree_dataclass
class Spread:
    """Algorithm 3: losses that exponential weights cannot distinguish from no losses, turned against :math:`x_t`.

    With :math:`z_t \\propto \\exp(-\\eta \\sum_s \\ell_s)`, the losses are 0 in the :math:`\\lfloor \\log_2 K \\rfloor` rounds of the largest ranges and once
    :math:`\\max_i z_{t,i} > 2/3`. Otherwise they are those of Algorithm 2 at :math:`z_t`, with the sign that makes
    :math:`\\langle x_t, \\ell_t \\rangle \\ge 0` (sign 0 counts as +), times :math:`L_t/2`.

    >>> from jaxbandit import theory
    >>> adversary = theory.games.Spread(jnp.float32(0.1))
    >>> adversary.choose(adversary.start(2), x=jnp.array([0.7, 0.3]), size=1.0, large=False)[0]
    Array([ 0.5, -0.5], dtype=float32)
    """

    rate: jax.Array  # [] η

    def start(self, num_arms: int) -> jax.Array:
        return jnp.zeros(num_arms, float_dtype())

    def choose(self, total: jax.Array, x: jax.Array, size: ArrayLike, large: ArrayLike) -> tuple[jax.Array, jax.Array]:
        z = jax.nn.softmax(-self.rate * total)
        direction = hard_direction(z)
        sign = jnp.where(jnp.dot(x, direction) >= 0, 1, -1)
        loss = jnp.where(large | (z.max() > SURE), 0, sign * size / 2 * direction)
        return loss, total + loss


@pytree_dataclass
class Halving:
    """In the :math:`\\lfloor \\log_2 K \\rfloor` rounds of the largest ranges, half of the arms that are left lose L/2, the others win it.

    The proof draws the half at random. As x_t is known, the half that the learner trusts more is taken, which does no worse.
    If an odd number of arms is left, the one in the middle gets 0.

    >>> from jaxbandit import theory
    >>> adversary = theory.games.Halving()
    >>> adversary.choose(adversary.start(4), x=jnp.array([0.1, 0.4, 0.3, 0.2]), size=1.0, large=True)
    (Array([-0.5,  0.5,  0.5, -0.5], dtype=float32), Array([ True, False, False,  True], dtype=bool))
    """

    def start(self, num_arms: int) -> jax.Array:
        return jnp.ones(num_arms, bool)

    def choose(self, left: jax.Array, x: jax.Array, size: ArrayLike, large: ArrayLike) -> tuple[jax.Array, jax.Array]:
        count = left.sum()
        trusted_first = jnp.argsort(jnp.where(left, -x, jnp.inf))
        place = jnp.zeros_like(count, shape=x.shape).at[trusted_first].set(jnp.arange(x.shape[0], dtype=count.dtype))
        loses, wins = left & (place < count // 2), left & (place >= count - count // 2)
        loss = jnp.where(large, size / 2 * (loses.astype(x.dtype) - wins.astype(x.dtype)), 0)
        return loss, jnp.where(large, wins, left)


def _adversary(ranges: np.ndarray, num_arms: int) -> tuple[Any, np.ndarray, Bound]:
    """The stronger of the two for these ranges, which rounds are among the largest, and the lower bound."""
    bound = full_information_lower(ranges, num_arms)
    top = int(np.log2(num_arms))
    large = np.zeros(len(ranges), bool)
    large[np.argsort(-ranges, kind="stable")[:top]] = True
    if bound["halving"] >= bound["spread"]:
        return Halving(), large, bound
    rate = np.sqrt(np.log(num_arms) / (ranges[~large] ** 2).sum())
    return Spread(jnp.asarray(rate, float_dtype())), large, bound


def play_with_ranges(learner: LearnerLike, ranges: ArrayLike, num_arms: int) -> Played:
    """Play the full-information game with losses in :math:`[0, L_t]` against the adversary of Theorem 9.

    Args:
      learner: of the FTRL or exponential-weights family, or :class:`Hedge`: one whose state follows from the losses alone.
      ranges: ``[T]`` :math:`L_t`, in any order.
      num_arms: K.

    >>> import jaxbandit as jb
    >>> game = jb.theory.games.play_with_ranges(jb.TsallisINF(), np.ones(500), num_arms=4)
    >>> game.ratio > 1, game.adversary
    (True, 'halving')
    """
    full_information_lower(ranges, num_arms)  # its checks
    ranges = np.asarray(ranges, float)
    return _play(learner, np.zeros(len(ranges), np.int64), np.arange(len(ranges)), ranges, num_arms)


def play_with_delays(learner: LearnerLike, delays: ArrayLike, num_arms: int) -> Played:
    """Play the delayed full-information game with losses in [0, 1] against the adversary of the Corollary.

    The rounds are cut into buckets whose feedback arrives after their last round (:func:`jaxbandit.theory.bounds.buckets`). All
    losses of a bucket are equal, chosen against the mean of the x_t in it.

    >>> import jaxbandit as jb
    >>> jb.theory.games.play_with_delays(jb.BestOfBothWorlds(max_delay=20), np.full(500, 20), num_arms=4).ratio > 1
    True
    """
    delays = check_sequence(delays)
    starts = buckets(delays)
    sizes = np.diff(np.append(starts, len(delays) + 1))
    bucket = np.repeat(np.arange(len(starts)), sizes)
    return _play(learner, delays, bucket, sizes.astype(float), num_arms)


def _play(learner, delays: np.ndarray, bucket: np.ndarray, ranges: np.ndarray, num_arms: int) -> Played:
    """Rounds t with delays ``[T]``, each in a bucket ``[T]``; ``ranges [M]`` bound the summed losses of the buckets."""
    validate_learner(learner)
    adversary, large, bound = _adversary(ranges, num_arms)
    rounds = len(delays)
    due = np.arange(rounds) + delays
    inside = np.flatnonzero(due < rounds)
    order = inside[np.argsort(due[inside], kind="stable")]  # by arrival, then by origin
    table = {
        "t": np.arange(1, rounds + 1),
        "bucket": bucket,
        "last": np.append(np.diff(bucket) > 0, True),
        "waiting": outstanding(delays),
        "until": np.searchsorted(due[order], np.arange(rounds), side="right"),
    }
    # Filled up to one length: games of as many rounds then share one program.
    spare = rounds - len(ranges)
    plan = {
        "order": np.append(order, np.zeros(rounds - len(order), int)),
        "bucket": bucket,
        "size": np.append(np.bincount(bucket), np.ones(spare, int)),
        "range": np.append(ranges, np.zeros(spare)),
        "large": np.append(large, np.zeros(spare, bool)),
    }
    table, plan = jax.tree.map(_narrow, (table, plan))
    probabilities, losses = _scan(canonical(learner), adversary, table, plan, num_arms)
    probabilities, losses = np.asarray(probabilities, np.float64), np.asarray(losses, np.float64)[bucket]
    regret = float((probabilities * losses).sum() - losses.sum(0).min())
    kind: Literal["halving", "spread"] = "halving" if isinstance(adversary, Halving) else "spread"
    return Played(regret, float(bound.total), kind, probabilities, losses)


def _narrow(array: np.ndarray) -> jax.Array:
    kinds = {"i": jnp.int32, "f": float_dtype(), "b": jnp.bool_}
    return jnp.asarray(array, kinds[array.dtype.kind])


@functools.partial(jax.jit, static_argnames="num_arms")
def _scan(learner, adversary, table, plan, num_arms: int):
    """``[T, K]`` x_t and ``[M, K]`` the losses of each bucket's rounds."""
    dtype = float_dtype()

    def given_round(t, waiting, total):
        return Round(t, waiting, total, _no_words, _never)

    def one_round(carry, row):
        state, memos, played, sum_x, hidden, losses, total, next_arrival = carry
        total = total + row["waiting"].astype(dtype)
        x, memo, state = learner.act(state, given_round(row["t"], row["waiting"], total))
        memos = jax.tree.map(lambda all, one: all.at[row["t"] - 1].set(one), memos, memo)
        played, sum_x, m = played.at[row["t"] - 1].set(x), sum_x + x, row["bucket"]
        size = plan["size"][m].astype(dtype)
        choice, moved = adversary.choose(hidden, sum_x / size, plan["range"][m], plan["large"][m])
        hidden = jnp.where(row["last"], moved, hidden)
        # In [0, range]/size each round: shifting all arms alike does not change the regret.
        losses = losses.at[m].set(jnp.where(row["last"], (choice + plan["range"][m] / 2) / size, losses[m]))
        sum_x = jnp.where(row["last"], 0, sum_x)

        def deliver(index, state):
            origin = plan["order"][index]
            loss = losses[plan["bucket"][origin]]

            def tell(arm, state):
                memo = jax.tree.map(lambda all: all[origin], memos)
                return learner.observe(
                    state, Observation(jnp.asarray(True), origin + 1, arm, loss[arm], jnp.ones((), dtype), memo)
                )

            return lax.fori_loop(0, num_arms, tell, state)

        state = lax.fori_loop(next_arrival, row["until"], deliver, state)
        return (state, memos, played, sum_x, hidden, losses, total, row["until"]), None

    zero = jnp.zeros((), jnp.int32)
    state = learner.init(num_arms, ())
    memo = jax.eval_shape(lambda state: learner.act(state, given_round(zero + 1, zero, jnp.zeros((), dtype)))[1], state)
    rounds = table["t"].shape[0]
    memos = jax.tree.map(lambda leaf: jnp.zeros((rounds, *leaf.shape), leaf.dtype), memo)
    carry = (
        state,
        memos,
        jnp.zeros((rounds, num_arms), dtype),
        jnp.zeros(num_arms, dtype),
        adversary.start(num_arms),
        jnp.zeros((plan["size"].shape[0], num_arms), dtype),
        jnp.zeros((), dtype),
        zero,
    )
    (_, _, played, _, _, losses, _, _), _ = lax.scan(one_round, carry, table)
    return played, losses


def _no_words(_=0):
    raise TypeError("a learner that draws random numbers is not supported here")


def _never(_):
    raise TypeError("a learner that reads which observations are outstanding is not supported here")
