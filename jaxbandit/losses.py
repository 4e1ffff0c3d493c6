"""Where losses come from: laws with values in [0, 1], smaller is better.

A law has ``num_arms``, ``expected(t) -> [K]`` (the mean losses of round t, exact, for the regret) and
``sample(t, arm, noise) -> loss [...]``, where ``noise`` is one uniform number in (0, 1) for each run, or one JAX key
for each run if the class says ``needs_key``. Rounds count from 1.
"""

from typing import ClassVar, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jax.typing import ArrayLike

from jaxbandit.arms import pick
from jaxbandit.pytrees import Numbers, as_float, is_concrete, is_numeric, named, pytree_dataclass, show, static, whole


@runtime_checkable
class Losses(Protocol):
    """What the simulator asks of a loss law."""

    @property
    def num_arms(self) -> int: ...
    def expected(self, t: jax.Array) -> jax.Array: ...
    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array: ...


def _check_unit(owner, field: str, what: str, ndim: int | None = None) -> None:
    """One sentence if a concrete field is not an array of numbers in [0, 1] with ``ndim`` axes."""
    value = getattr(owner, field)
    if not is_concrete(value):
        return
    if not is_numeric(value) or np.size(value) == 0:
        raise ValueError(f"losses.{named(owner, field)}: {what} must be numbers between 0 and 1, at least one")
    array = np.asarray(value)
    if ndim is not None and array.ndim != ndim:
        shape = {1: "a list of K numbers, one for each arm", 2: "a table with one row of K numbers for each round or phase"}[ndim]
        raise ValueError(f"losses.{named(owner, field)}: {what} must be {shape}, not an array of shape {array.shape}")
    bad = array[~((array >= 0) & (array <= 1))]
    if bad.size:
        raise ValueError(f"losses.{named(owner, field)}: {what} must lie between 0 and 1; {show(bad.flat[0])} does not")


@pytree_dataclass
class Bernoulli:
    """Losses 1 with probability ``means[arm]``, else 0.

    Args:
      means: ``[K]`` mean losses in [0, 1].

    >>> import jaxbandit as jb
    >>> jb.losses.Bernoulli([0.3, 0.5]).sample(t=1, arm=1, noise=0.4)
    Array(1., dtype=float32)
    """

    means: Numbers  # [K]
    stationary: ClassVar[bool] = True

    def __post_init__(self):
        _arrays(self, "means")

    @property
    def num_arms(self) -> int:
        return np.shape(self.means)[0]

    def check(self) -> None:
        _check_unit(self, "means", "mean losses", 1)

    def expected(self, t):
        return jnp.asarray(self.means)

    def sample(self, t, arm, noise):
        return _coin(self.expected(t), arm, noise)


def _coin(means, arm, noise):
    noise = jnp.asarray(noise)
    return (noise < pick(means, jnp.asarray(arm))).astype(means.dtype)


def _arrays(owner, *fields: str) -> None:
    """Lists of numbers become arrays, so that a field is one leaf; anything else (tracers, labels) is left alone."""
    for field in fields:
        value = getattr(owner, field)
        if isinstance(value, list | tuple) and is_concrete(value) and is_numeric(value):
            object.__setattr__(owner, field, np.asarray(value))


@pytree_dataclass
class Beta:
    """Beta distributed losses with mean ``means[arm]``: Beta(c·m, c·(1 - m)); small c is nearly Bernoulli.

    Args:
      means: ``[K]`` mean losses in [0, 1]; at 0 and 1 the loss is constant.
      concentration: c > 0, a number or ``[K]``.

    >>> import jax, jaxbandit as jb
    >>> law = jb.losses.Beta([0.3, 0.5], concentration=4.0)
    >>> bool(0 < law.sample(t=1, arm=0, noise=jax.random.key(0)) < 1)
    True
    """

    means: Numbers  # [K]
    concentration: ArrayLike = 2.0
    stationary: ClassVar[bool] = True
    needs_key: ClassVar[bool] = True

    def __post_init__(self):
        _arrays(self, "means", "concentration")

    @property
    def num_arms(self) -> int:
        return np.shape(self.means)[0]

    def check(self) -> None:
        _check_unit(self, "means", "mean losses", 1)
        _check_positive(self, "concentration")

    def expected(self, t):
        return jnp.asarray(self.means)

    def sample(self, t, arm, noise):
        means = self.expected(t)
        mean = pick(means, jnp.asarray(arm))
        concentration = pick(jnp.broadcast_to(jnp.asarray(self.concentration, means.dtype), means.shape), jnp.asarray(arm))
        inside = jnp.clip(mean, 1e-6, 1 - 1e-6)

        def one(key, a, b):
            return jax.random.beta(key, a, b, dtype=means.dtype)

        for _ in range(jnp.ndim(arm)):
            one = jax.vmap(one)
        loss = one(noise, concentration * inside, concentration * (1 - inside))
        return jnp.where((mean <= 0) | (mean >= 1), mean, jnp.clip(loss, 0, 1))


def _check_positive(owner, field: str) -> None:
    value = getattr(owner, field)
    if is_concrete(value) and not (is_numeric(value) and np.all(np.isfinite(value)) and np.all(np.asarray(value) > 0)):
        raise ValueError(f"losses.{named(owner, field)}: {field} must be a number above 0")


@pytree_dataclass
class ClippedNormal:
    """Normal losses clipped to [0, 1].

    The clipping moves the mean: ``expected`` is the mean of the clipped law,
    :math:`1 - \\Phi(\\beta) + m(\\Phi(\\beta) - \\Phi(\\alpha)) - s(\\phi(\\beta) - \\phi(\\alpha))` with
    :math:`\\alpha = -m/s, \\beta = (1 - m)/s`.

    Args:
      means: ``[K]`` means m before clipping.
      deviation: standard deviation s > 0 before clipping, a number or ``[K]``.

    >>> import jaxbandit as jb
    >>> jb.losses.ClippedNormal([0.0, 0.5], deviation=0.1).expected(t=1).round(4)
    Array([0.0399, 0.5   ], dtype=float32)
    """

    means: Numbers  # [K]
    deviation: ArrayLike = 0.1
    stationary: ClassVar[bool] = True

    def __post_init__(self):
        _arrays(self, "means", "deviation")

    @property
    def num_arms(self) -> int:
        return np.shape(self.means)[0]

    def check(self) -> None:
        _check_unit(self, "means", "mean losses", 1)
        _check_positive(self, "deviation")

    def expected(self, t):
        means, deviation = jnp.asarray(self.means), jnp.asarray(self.deviation)
        low, high = -means / deviation, (1 - means) / deviation
        inside = norm.cdf(high) - norm.cdf(low)
        return norm.sf(high) + means * inside - deviation * (norm.pdf(high) - norm.pdf(low))

    def sample(self, t, arm, noise):
        means = jnp.asarray(self.means)
        deviation = jnp.broadcast_to(jnp.asarray(self.deviation, means.dtype), means.shape)
        quantile = jax.scipy.special.ndtri(jnp.asarray(noise, means.dtype))
        return jnp.clip(pick(means, jnp.asarray(arm)) + pick(deviation, jnp.asarray(arm)) * quantile, 0, 1)


@pytree_dataclass
class Table:
    """Deterministic losses, chosen beforehand: an oblivious adversary.

    Args:
      losses: ``[T, K]`` in [0, 1]; round t uses row t - 1.

    >>> import jaxbandit as jb
    >>> jb.losses.Table([[0.0, 1.0], [1.0, 0.0]]).expected(t=2)
    Array([1., 0.], dtype=float32)
    """

    losses: Numbers  # [T, K]

    def __post_init__(self):
        _arrays(self, "losses")

    @property
    def num_arms(self) -> int:
        return np.shape(self.losses)[1]

    @property
    def length(self) -> int:
        return np.shape(self.losses)[0]

    def check(self) -> None:
        _check_unit(self, "losses", "losses", 2)

    def expected(self, t):
        return jnp.asarray(self.losses)[t - 1]

    def sample(self, t, arm, noise):
        return pick(self.expected(t), jnp.asarray(arm))


@pytree_dataclass
class StochasticallyConstrained:
    """The stochastically constrained adversary: means move, gaps do not (environment B of Zimmert & Seldin 2021).

    Bernoulli losses whose means (best arm, all others) alternate between (0, Δ) and (1 - Δ, 1); each phase is ``growth``
    times as long as the one before, the first lasts one round. Arm 0 is the best throughout.

    Args:
      gap: Δ in [0, 1].
      arms: K (static).
      growth: above 1.

    >>> import jaxbandit as jb
    >>> jb.losses.StochasticallyConstrained(0.25, arms=3).expected(t=2)
    Array([0.75, 1.  , 1.  ], dtype=float32)
    """

    gap: ArrayLike
    arms: int = static()
    growth: ArrayLike = 1.6

    @property
    def num_arms(self) -> int:
        return self.arms

    def check(self) -> None:
        if not isinstance(self.arms, int | np.integer) or self.arms < 1:
            raise ValueError(f"losses.{named(self, 'arms')}: arms must be a whole number, 1 or more")
        _check_unit(self, "gap", "the gap", 0)
        if is_concrete(self.growth) and not (
            is_numeric(self.growth) and np.size(self.growth) == 1 and np.all(np.asarray(self.growth) > 1)
        ):
            raise ValueError(f"losses.{named(self, 'growth')}: phases must grow, by a factor above 1")

    def expected(self, t):
        gap = as_float(self.gap)
        growth = jnp.asarray(self.growth, gap.dtype)
        played = (jnp.asarray(t) - 1).astype(gap.dtype)
        # Phase n starts after (growth^n - 1)/(growth - 1) rounds. The logarithm may round across a border: look at both sides.
        phase = jnp.round(jnp.log1p((growth - 1) * played) / jnp.log(growth))
        phase = phase - (played < (growth**phase - 1) / (growth - 1) * (1 - 1e-6))
        phase = phase.astype(jnp.int32)
        best = jnp.where(phase % 2 == 0, jnp.zeros_like(gap), 1 - gap)
        return best + jnp.where(jnp.arange(self.arms) == 0, jnp.zeros_like(gap), gap)

    def sample(self, t, arm, noise):
        return _coin(self.expected(t), arm, noise)


@pytree_dataclass
class Switching:
    """Bernoulli losses with piecewise constant means.

    Args:
      means: ``[P, K]`` mean losses of each phase.
      starts: ``[P]`` first round of each phase, ascending from 1.

    >>> import jaxbandit as jb
    >>> jb.losses.Switching([[0.2, 0.8], [0.8, 0.2]], starts=[1, 100]).expected(t=100)
    Array([0.8, 0.2], dtype=float32)
    """

    means: Numbers  # [P, K]
    starts: Numbers = whole()  # [P]

    def __post_init__(self):
        _arrays(self, "means", "starts")

    @property
    def num_arms(self) -> int:
        return np.shape(self.means)[1]

    def check(self) -> None:
        _check_unit(self, "means", "mean losses", 2)
        if not is_concrete(self.starts):
            return
        starts, phases = np.asarray(self.starts), np.shape(self.means)[0]
        if starts.shape != (phases,) or starts[0] != 1 or np.any(np.diff(starts) <= 0) or np.any(starts != np.floor(starts)):
            raise ValueError(
                f"losses.{named(self, 'starts')}: starts must be the first rounds of the {phases} phases in means, "
                "whole numbers ascending from 1"
            )

    def expected(self, t):
        phase = (jnp.asarray(self.starts) <= t).sum() - 1
        return jnp.asarray(self.means)[phase]

    def sample(self, t, arm, noise):
        return _coin(self.expected(t), arm, noise)


@pytree_dataclass
class Corrupted:
    """A stochastic law with an adversary who spends a budget of corruption early on.

    From round ``start`` on the adversary exchanges the best and the worst arm. A corrupted round costs the largest change
    of a mean, :math:`\\max_i m_i - \\min_i m_i`; it goes on for as many rounds as ``budget`` pays for. The regret counts
    the corrupted losses, which is what the learner suffers.

    Args:
      base: a law with constant means (Bernoulli, Beta, ClippedNormal).
      budget: C ≥ 0, the total of the changes.
      start: first corrupted round.

    >>> import jaxbandit as jb
    >>> law = jb.losses.Corrupted(jb.losses.Bernoulli([0.25, 0.5, 0.75]), budget=10.0)
    >>> law.expected(t=20), law.expected(t=21)
    (Array([0.75, 0.5 , 0.25], dtype=float32), Array([0.25, 0.5 , 0.75], dtype=float32))
    """

    base: Losses
    budget: ArrayLike
    start: ArrayLike = whole(default=1)

    @property
    def num_arms(self) -> int:
        return self.base.num_arms

    @property
    def needs_key(self) -> bool:
        return getattr(self.base, "needs_key", False)

    def check(self) -> None:
        if not getattr(self.base, "stationary", False):
            raise ValueError(
                f"losses.Corrupted(base={type(self.base).__name__}(...)): the base must have constant means "
                "(Bernoulli, Beta or ClippedNormal), so that the budget is spent exactly"
            )
        self.base.check()  # type: ignore[attr-defined]
        budget = np.asarray(self.budget) if is_concrete(self.budget) else np.zeros(())
        if not (is_numeric(budget) and budget.size == 1 and np.all(budget >= 0) and np.all(budget < np.inf)):
            raise ValueError(f"losses.{named(self, 'budget')}: the budget is the total corruption, a finite number, 0 or more")
        start = np.asarray(self.start) if is_concrete(self.start) else np.ones(())
        if not (is_numeric(start) and start.size == 1 and np.all(start >= 1)):
            raise ValueError(f"losses.{named(self, 'start')}: the first corrupted round is a whole number, 1 or more")

    def _exchange(self, t):
        """The arm whose loss each arm receives in round t, ``[K]``."""
        means = self.base.expected(t)
        best, worst, arms = jnp.argmin(means), jnp.argmax(means), jnp.arange(self.num_arms)
        spread = jnp.maximum(means[worst] - means[best], jnp.finfo(means.dtype).tiny)
        # Rounds paid for; a spread or a quotient that was rounded the wrong way shall not cost one.
        paid = jnp.floor(self.budget / spread * (1 + 2 * jnp.finfo(means.dtype).eps) + 1e-3)
        corrupted = (t >= self.start) & (t - self.start < paid)
        exchanged = jnp.where(arms == best, worst, jnp.where(arms == worst, best, arms))
        return jnp.where(corrupted, exchanged, arms)

    def expected(self, t):
        return self.base.expected(t)[self._exchange(t)]

    def sample(self, t, arm, noise):
        return self.base.sample(t, self._exchange(t)[arm], noise)
