"""Delayed SAPO: elimination that goes on watching what it dropped, and a learner for adversaries to fall back on."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from jaxbandit._core.arms import constant_min, one_hot, sums
from jaxbandit._core.fields import float_dtype, given, number, pytree_dataclass, show
from jaxbandit._core.sums import compensated_add
from jaxbandit.learners.base import Learner, Observation, Round, as_learner
from jaxbandit.learners.ftrl import log_arms
from jaxbandit.learners.skipping import ZimmertSeldin
from jaxbandit.learners.ucb import Observed

LEVELS = 16  # how often a probability is halved at most; phases double, so that more would take 2^16 first phases


@pytree_dataclass
class Bounds:
    """What is known of the active arms, and of all plays together. Of a dropped arm it stays as it was."""

    observed: Observed  # plain losses
    weighted: jax.Array  # [K, ...] the sum of the importance-weighted losses
    error: jax.Array  # [K, ...] what rounding took from it
    lower: jax.Array  # [K, ...] the highest lower bound so far on the mean
    upper: jax.Array  # [K, ...] the lowest upper bound
    weighted_upper: jax.Array  # [K, ...] the same from the weighted losses
    size: jax.Array  # [...] int32, observed plays
    total: jax.Array  # [...] the losses of all of them
    most_missing: jax.Array  # [...] int32, σ_max so far

    def best_upper(self) -> jax.Array:
        """ucb*, ``[...]``."""
        return jnp.minimum(constant_min(self.upper), constant_min(self.weighted_upper))


@pytree_dataclass
class Watched:
    """The dropped arms, each in a phase of its own; all ``[K, ...]``, the banks ``[K, LEVELS, ...]``."""

    mean: jax.Array  # μ̃, when it was dropped
    gap: jax.Array  # Δ̃ = 8 widths, when it was dropped
    first: jax.Array  # p of the first phase
    length: jax.Array  # N of the first phase
    level: jax.Array  # int32, how often p was halved and N doubled
    errors: jax.Array  # int32, phases in which the arm looked too good
    count: jax.Array  # plays processed in this phase
    loss: jax.Array  # their weighted losses of the arm
    bank_count: jax.Array  # plays with the p of each level, observed and not processed
    bank_loss: jax.Array

    def probability(self) -> jax.Array:
        return jnp.ldexp(self.first, -self.level)

    def process(self, dropped: jax.Array) -> "Watched":
        """Bring the banks of the current levels into their phases, and end phases, until nothing is left to bring in."""
        levels = jnp.arange(LEVELS, dtype=jnp.int32).reshape(1, LEVELS, *[1] * (self.level.ndim - 1))

        def waiting(watched: "Watched") -> jax.Array:
            """The plays in the bank of each arm's level, ``[K, ...]``."""
            here = levels == watched.level[:, None]
            return jnp.where(dropped, jnp.where(here, watched.bank_count, 0).sum(1), 0)

        def one_turn(watched: "Watched") -> "Watched":
            here = (levels == watched.level[:, None]) & dropped[:, None]
            new = waiting(watched)
            count = watched.count + new
            loss = watched.loss + jnp.where(here, watched.bank_loss, 0).sum(1)
            length = jnp.ldexp(watched.length, watched.level)
            wrong = (new > 0) & (count * watched.mean - loss >= watched.gap * length / 4)
            over = (new > 0) & ~wrong & (count >= jnp.floor(length))
            step = over.astype(jnp.int32) - wrong.astype(jnp.int32)
            return dataclasses.replace(
                watched,
                level=jnp.clip(watched.level + step, 0, LEVELS - 1),
                errors=watched.errors + wrong.astype(jnp.int32),
                count=jnp.where(wrong | over, 0, count),
                loss=jnp.where(wrong | over, 0, loss),
                bank_count=jnp.where(here, 0, watched.bank_count),
                bank_loss=jnp.where(here, 0, watched.bank_loss),
            )

        return lax.while_loop(lambda watched: (waiting(watched) > 0).any(), one_turn, self)


@pytree_dataclass
class SAPOState:
    bounds: Bounds
    watched: Watched
    active: jax.Array  # [K, ...] bool
    fallen: jax.Array  # [...] bool, whether the base plays from now on
    began: jax.Array  # [...] int32, the round before the base's first, -1 before it is known
    waiting: jax.Array  # [...] int32, plays of the base that are outstanding
    total_waiting: jax.Array  # [...] their sum over its rounds
    base: Any


@pytree_dataclass
class DelayedSAPO(Learner):
    """Delayed SAPO: treats losses as stochastic until a test rejects it, then switches to the base. The successor of MZS22.

    Active arms share what the others leave. Arm i is dropped when, with T rounds and :math:`n_i` observations,

    .. math::
       \\hat\\mu_i - 9\\,\\mathrm{width}_i > \\mathrm{ucb}^*, \\quad \\mathrm{width}_i = \\min\\{1, \\sqrt{2 \\log T / n_i}\\},

    ucb* being the smallest upper bound so far on a mean, by plain means or by importance-weighted ones. A dropped arm is still
    played, with :math:`p_i = 1/(2K) + n_i/(2T)` at first, in phases of :math:`N = 1280/(p_i \\tilde\\Delta_i^2)` observations,
    :math:`\\tilde\\Delta_i = 8\\,\\mathrm{width}_i` when it was dropped. A phase that ends halves :math:`p_i`; one in which the arm
    looks better than before by :math:`\\tilde\\Delta_i N/4` in sum doubles it. The base takes over for good after
    :math:`3 \\log T` of these, if the weighted mean of an active arm leaves its interval, or if
    :math:`\\sum (\\ell - \\mathrm{ucb}^*) > 272 \\sqrt{KT \\log T} + 10\\, \\sigma_{max} \\log K`.

    Stochastic regret of order :math:`\\sum \\log T/\\Delta_i + (\\sigma_{max}/K) \\sum \\Delta_i \\log K`, adversarial
    :math:`\\sqrt{KT \\log T} + \\sqrt{D}`. The paper has no experiments, and its constants want long games: an arm with gap Δ goes
    after about :math:`200 \\log T/\\Delta^2` observations of it, so until then exploration is uniform.

    Where the paper leaves a choice: arms are dropped once a round; bounds of dropped arms stay as they were; if all active arms would
    go, none does; observations kept in a bank enter their phase at once, not one by one; p is halved at most 16 times. The
    intervals are checked once the weighted width :math:`\\sqrt{2K\\log T/n}` is below 1: as printed, a first loss of 1 is outside
    for K ≥ 4, and the proof calls the check trivial until then.

    Args:
      horizon: T, the number of rounds.
      base: the learner to fall back on.
      separation: the 9.
      phase: the 1280.
      limit: the 272.

    >>> import jaxbandit as jb
    >>> jb.simulate(jb.DelayedSAPO(horizon=100), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), rounds=100, runs=8,
    ...             seed=0).regret[-1].shape
    (8,)

    Reference: Schlisselberg, Lancewicki, Auer & Mansour, *Improved Best-of-Both-Worlds Regret for Bandits with Delayed Feedback*,
    2025, Algorithm 5 with Procedures 6 and 7.
    """

    horizon: ArrayLike = given("horizon", low=1)
    base: Learner | Any = ZimmertSeldin()
    separation: ArrayLike = number(default=9.0)
    phase: ArrayLike = number(default=1280.0, open_low=True)
    limit: ArrayLike = number(default=272.0)

    @property
    def watches_plays(self) -> bool:
        return as_learner(self.base).watches_plays

    def check(self) -> None:
        try:
            as_learner(self.base)
        except TypeError:
            raise TypeError(f"DelayedSAPO(base={show(self.base)}): the base is a learner, such as jb.ZimmertSeldin()") from None

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> SAPOState:
        zeros, zero = jnp.zeros((num_arms, *runs_shape), float_dtype()), jnp.zeros(runs_shape, jnp.int32)
        none, bank = zeros.astype(jnp.int32), jnp.zeros((num_arms, LEVELS, *runs_shape), float_dtype())
        far = jnp.full_like(zeros, jnp.inf)
        observed = Observed.start(num_arms, runs_shape)
        bounds = Bounds(observed, zeros, zeros, -far, far, far, zero, zero.astype(zeros.dtype), zero)
        watched = Watched(zeros, zeros, zeros, zeros + 1, none, none, zeros, zeros, bank, bank)
        base = as_learner(self.base).init(num_arms, runs_shape)
        base = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, runs_shape) if leaf.ndim == 0 else leaf, base)
        return SAPOState(bounds, watched, zeros == 0, zero > 0, zero - 1, zero, zero.astype(zeros.dtype), base)

    def act(self, state: SAPOState, round: Round) -> tuple[jax.Array, Any, SAPOState]:
        # Nothing of the elimination is differentiable, and reverse mode cannot enter its loop: the base alone has a gradient.
        bounds, watched, active, fallen = DelayedSAPO._elimination(*lax.stop_gradient((self, state)), round)
        began = jnp.where(fallen & (state.began < 0), round.t - 1, state.began)
        state = SAPOState(bounds, watched, active, fallen, began, state.waiting, state.total_waiting, state.base)
        total = state.total_waiting + state.waiting.astype(state.total_waiting.dtype)
        chosen, memo, base = as_learner(self.base).act(state.base, self._round_of_base(state, round, total))
        base = jax.tree.map(lambda new, old: jnp.where(fallen, new, old), base, state.base)

        dropped = jnp.where(active, 0, watched.probability())
        shared = (1 - sums(dropped)[0]) / sums(active.astype(dropped.dtype))[0]
        probabilities = jnp.where(fallen, chosen, jnp.where(active, shared, dropped))
        level, waiting = jnp.where(active, -1, watched.level), state.waiting + fallen.astype(jnp.int32)
        return probabilities, (fallen, level, memo), SAPOState(bounds, watched, active, fallen, began, waiting, total, base)

    def _round_of_base(self, state: SAPOState, round: Round, total: jax.Array) -> Round:
        """What the base knows: its rounds count from its first, and only its own plays are outstanding."""
        clock = jnp.where(state.fallen, round.t - state.began, 1)
        return Round(clock, state.waiting, total, round.words, lambda s: round.is_outstanding(s + state.began) & (s >= 1))

    def _elimination(self, state: SAPOState, round: Round):
        """Bounds, dropped arms, active arms and whether the base plays, at the start of this round."""
        bounds, watched, num_arms = state.bounds, state.watched, state.active.shape[0]
        observed = bounds.observed
        width = self._width(observed)
        gone = state.active & (observed.mean() - self.separation * width > bounds.best_upper()) & ~state.fallen
        left = sums((state.active & ~gone).astype(width.dtype))[0] > 0
        gone = gone & left
        counts = observed.counts.astype(width.dtype)
        share = 1 / (2 * num_arms) + counts / (2 * self.horizon)
        gap = 8 * width
        watched = dataclasses.replace(
            watched,
            mean=jnp.where(gone, observed.mean(), watched.mean),
            gap=jnp.where(gone, gap, watched.gap),
            first=jnp.where(gone, share, watched.first),
            length=jnp.where(gone, self.phase / (share * gap**2), watched.length),
        )
        active = state.active & ~gone
        watched = watched.process(~active & ~state.fallen)
        errors = watched.errors.astype(width.dtype)
        wrong = -constant_min(-errors) >= 3 * jnp.log(self.horizon)
        missing = jnp.maximum(bounds.most_missing, round.outstanding)
        return dataclasses.replace(bounds, most_missing=missing), watched, active, state.fallen | wrong

    def _width(self, observed: Observed) -> jax.Array:
        return jnp.minimum(jnp.sqrt(2 * jnp.log(self.horizon) / observed.number()), 1)

    def played(self, state: SAPOState, round: Round, arm: jax.Array, probability: jax.Array) -> SAPOState:
        base = as_learner(self.base)
        if type(base).played is Learner.played:
            return state
        own = self._round_of_base(state, round, state.total_waiting)._replace(outstanding=state.waiting - 1)
        new = base.played(state.base, own, arm, probability)
        new = jax.tree.map(lambda new, old: jnp.where(state.fallen, new, old), new, state.base)
        return dataclasses.replace(state, base=new)

    def observe(self, state: SAPOState, observation: Observation) -> SAPOState:
        of_base, level, memo = observation.memo
        own = observation.arrived & of_base
        origin, arm = observation.origin - state.began, jnp.where(own, observation.arm, -1)
        base = as_learner(self.base).observe(state.base, observation._replace(arrived=own, origin=origin, arm=arm, memo=memo))
        before = observation.arrived & ~state.fallen  # once fallen, nothing else is learnt
        mine = observation._replace(arrived=before, arm=jnp.where(before, observation.arm, -1))
        bounds, wrong = self._learn(state, mine)
        return dataclasses.replace(
            state,
            bounds=bounds,
            watched=_put_by(state.watched, mine, level),
            fallen=state.fallen | wrong,
            waiting=state.waiting - own.astype(jnp.int32),
            base=base,
        )

    def _learn(self, state: SAPOState, observation: Observation) -> tuple[Bounds, jax.Array]:
        """The bounds after one more play, and whether they say that the losses are not stochastic."""
        bounds, active, num_arms, arrived = state.bounds, state.active, state.active.shape[0], observation.arrived
        use = arrived & (one_hot(observation.arm, num_arms) & active).any(0)
        of_active = observation._replace(arrived=use, arm=jnp.where(use, observation.arm, -1))
        observed = bounds.observed.add(of_active)
        weighted, error = compensated_add(bounds.weighted, bounds.error, of_active.loss_estimate(num_arms))
        size = bounds.size + arrived.astype(jnp.int32)
        total = bounds.total + jnp.where(arrived, observation.loss, 0)
        plays, log = jnp.maximum(size, 1).astype(total.dtype), jnp.log(self.horizon)
        wide = jnp.minimum(jnp.sqrt(2 * num_arms * log / plays), 1)
        width, mean, weighted_mean = self._width(observed), observed.mean(), (weighted + error) / plays
        moves = active & arrived
        lower = jnp.where(moves, jnp.maximum(bounds.lower, mean - width), bounds.lower)
        upper = jnp.where(moves, jnp.minimum(bounds.upper, mean + width), bounds.upper)
        weighted_upper = jnp.where(moves, jnp.minimum(bounds.weighted_upper, weighted_mean + wide), bounds.weighted_upper)
        new = Bounds(observed, weighted, error, lower, upper, weighted_upper, size, total, bounds.most_missing)
        outside = active & (wide < 1) & ((weighted_mean < lower - wide) | (weighted_mean > upper + wide))
        most = self.limit * jnp.sqrt(num_arms * self.horizon * log)
        most = most + 10 * bounds.most_missing.astype(total.dtype) * log_arms(num_arms)
        suspicious = sums(outside.astype(total.dtype))[0] + (total - plays * new.best_upper() > most) > 0
        return new, arrived & suspicious


def _put_by(watched: Watched, observation: Observation, level: jax.Array) -> Watched:
    """Put a play into the bank of every arm that was dropped when it was made, at the arm's level of that time."""
    num_arms = level.shape[0]
    levels = jnp.arange(LEVELS, dtype=jnp.int32).reshape(1, LEVELS, *[1] * (level.ndim - 1))
    here = (levels == level[:, None]) & observation.arrived
    return dataclasses.replace(
        watched,
        bank_count=watched.bank_count + here.astype(watched.bank_count.dtype),
        bank_loss=watched.bank_loss + jnp.where(here, observation.loss_estimate(num_arms)[:, None], 0),
    )
