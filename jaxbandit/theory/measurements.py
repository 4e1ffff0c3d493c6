"""The quantities of the analysis of MZS22, measured inside the loop over rounds.

Each is a measurement in the sense of :mod:`jaxbandit.measure`: give it to ``simulate(..., measure=[...])`` and read
``result.measured``. Where the paper has everything revealed at the end of the game, play against delays cut off at the
horizon (:func:`jaxbandit.theory.optimal_skipping.truncated`): what has not arrived at a recorded round is not counted there.

L… are lines of the paper's source; a = 1/η_t, b = 1/γ_t, f_t(x) = -2a√x + b·x(log x - 1), i* the best arm (unique, gaps constant).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit._core.arms import constant_min, inner, sums
from jaxbandit._core.fields import PyTree, float_dtype, pytree_dataclass, show, static
from jaxbandit._core.projection import hybrid_argmin
from jaxbandit._core.sums import Count, Sum
from jaxbandit.learners.base import LearnerLike
from jaxbandit.learners.ftrl import FTRL
from jaxbandit.measure import RoundInfo

__all__ = ["Arrivals", "Drift", "DriftedRegret", "InverseRates", "SelfBounding", "StabilityAndPenalty"]


@pytree_dataclass
class Drift:
    """The largest :math:`x_{t,i}/x_{s,i}` over all arms and :math:`t - \\mathrm{window} \\le s \\le t`; at most 2 by the key lemma.

    Reads ``drift [C, runs]``. The smallest x of a window is found by doubling: the minimum over the last :math:`2^j` rounds is
    the smaller of two minima over :math:`2^{j-1}` rounds, so a round costs O(log window).

    Args:
      window: d_max (static).

    >>> import jax, jaxbandit as jb
    >>> result = jb.simulate(jb.BestOfBothWorlds(max_delay=5), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5),
    ...                      rounds=300, runs=4, key=jax.random.key(0), measure=[jb.theory.measurements.Drift(5)])
    >>> bool((1 <= result.measured["drift"]).all() and (result.measured["drift"] <= 2).all())
    True
    """

    window: int = static()

    def _lags(self) -> list[int]:
        """How far back each level looks: 1, 2, 4, … and what is missing to ``window + 1`` rounds."""
        if not isinstance(self.window, int | np.integer) or self.window < 0:
            raise ValueError(f"Drift(window={show(self.window)}): the window is a whole number of rounds, 0 or more")
        covered, lags = 1, []
        while covered < self.window + 1:
            lags.append(min(covered, self.window + 1 - covered))
            covered += lags[-1]
        return lags

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any:
        rings = [jnp.full((lag, num_arms, *runs_shape), jnp.inf, float_dtype()) for lag in self._lags()]
        return rings, jnp.ones(runs_shape, float_dtype())

    def update(self, state: PyTree, info: RoundInfo) -> Any:
        rings, worst = state
        lowest, new = info.probabilities, []
        for ring in rings:
            slot = info.t % ring.shape[0]
            before = lax.dynamic_index_in_dim(ring, slot, 0, keepdims=False)
            new.append(lax.dynamic_update_index_in_dim(ring, lowest, slot, 0))
            lowest = jnp.minimum(lowest, before)
        ratio = jnp.where(info.probabilities > 0, info.probabilities / lowest, 0)
        return new, jnp.maximum(worst, -constant_min(-ratio))

    def read(self, state: PyTree) -> dict[str, jax.Array]:
        return {"drift": state[1]}


@pytree_dataclass
class Arrivals:
    """The number of observations that arrive in one round, and Lemma 12 in every round.

    .. math:: \\sum_{s \\le t} \\sigma_s \\ge \\sum_{s \\le t} \\frac{a_s(a_s - 1)}{2}

    Reads ``[C, runs]``: ``arrivals_max``, ``outstanding_sum`` (left side), ``arrival_pairs`` (right side) and
    ``arrival_violations``, the number of rounds in which the lemma failed. All sums are exact.

    >>> import jax, jaxbandit as jb
    >>> result = jb.simulate(jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5),
    ...                      rounds=300, runs=4, key=jax.random.key(0), measure=[jb.theory.measurements.Arrivals()])
    >>> result.measured["arrivals_max"][-1], result.measured["arrival_violations"][-1]
    (array([1, 1, 1, 1], dtype=int32), array([0, 0, 0, 0], dtype=int32))
    """

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any:
        none = jnp.zeros(runs_shape, jnp.uint32)
        zero = jnp.zeros(runs_shape, jnp.int32)
        return {"most": zero, "outstanding": Count(none, none), "pairs": Count(none, none), "violations": zero}

    def update(self, state: PyTree, info: RoundInfo) -> Any:
        arrivals = info.arrivals
        outstanding = state["outstanding"].add(info.outstanding)
        pairs = state["pairs"].add(arrivals * (arrivals - 1) // 2)
        short = (outstanding.high < pairs.high) | ((outstanding.high == pairs.high) & (outstanding.low < pairs.low))
        return {
            "most": jnp.maximum(state["most"], arrivals),
            "outstanding": outstanding,
            "pairs": pairs,
            "violations": state["violations"] + short.astype(jnp.int32),
        }

    def read(self, state: PyTree) -> dict[str, jax.Array]:
        return {
            "arrivals_max": state["most"],
            "outstanding_sum": state["outstanding"].as_float(float_dtype()),
            "arrival_pairs": state["pairs"].as_float(float_dtype()),
            "arrival_violations": state["violations"],
        }


@pytree_dataclass
class DriftedRegret:
    """The drifted regret, with the probabilities of the round of arrival (L258-272).

    .. math:: \\sum_t a_t \\langle x_t, \\Delta \\rangle = \\sum_t \\langle x_{t+d_t}, \\Delta \\rangle

    Reads ``drifted_regret [C, runs]``. With delays cut off at the horizon, :math:`\\mathrm{Reg} \\le 2\\,\\mathrm{drifted} + d_{max}` on every path on which the
    key lemma holds.

    >>> import jax, jaxbandit as jb
    >>> delays = jb.delays.Trace(jb.theory.optimal_skipping.truncated([5] * 300))
    >>> result = jb.simulate(jb.BestOfBothWorlds(max_delay=5), jb.losses.Bernoulli([0.3, 0.5]), delays,
    ...                      rounds=300, runs=4, key=jax.random.key(0), measure=[jb.theory.measurements.DriftedRegret()])
    >>> bool((result.regret[-1] <= 2 * result.measured["drifted_regret"][-1] + 5).all())
    True
    """

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any:
        return Sum.zero(runs_shape)

    def update(self, state: PyTree, info: RoundInfo) -> Any:
        return state.add(info.arrivals.astype(float_dtype()) * _suffered(info))

    def read(self, state: PyTree) -> dict[str, jax.Array]:
        return {"drifted_regret": state.value + state.error}


@pytree_dataclass
class InverseRates:
    """The inverse rates in use: ``tsallis_rate`` (:math:`\\eta_t^{-1}`) and ``entropy_rate`` (:math:`\\gamma_t^{-1}`), ``[C, runs]``.

    Args:
      learner: as given to ``simulate``; must have ``inverse_rates``, as :class:`jaxbandit.BestOfBothWorlds` has.

    >>> import jax, jaxbandit as jb
    >>> learner = jb.BestOfBothWorlds(max_delay=5)
    >>> result = jb.simulate(learner, jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5),
    ...                      rounds=300, runs=4, key=jax.random.key(0), measure=[jb.theory.measurements.InverseRates(learner)])
    >>> rates = jb.theory.bounds.mzs22_rates([5] * 300, num_arms=2)
    >>> np.allclose(result.measured["tsallis_rate"][-1], rates.tsallis[-1])
    True
    """

    learner: Any

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any:
        check_rates(self.learner)
        zero = jnp.zeros(runs_shape, float_dtype())
        return zero, zero

    def update(self, state: PyTree, info: RoundInfo) -> Any:
        return _rates(self.learner, info)

    def read(self, state: PyTree) -> dict[str, jax.Array]:
        return {"tsallis_rate": state[0], "entropy_rate": state[1]}


@pytree_dataclass
class StabilityAndPenalty:
    """Stability and penalty, the two parts of the drifted regret of FTRL, with their bounds in the paper (L274-299, L560-680).

    Reads, all ``[C, runs]``:

    - ``stability`` :math:`\\sum_t \\langle x_t, \\hat\\ell_t \\rangle + \\bar F_t^*(-L_{t+1}) - \\bar F_t^*(-L_t)`, with :math:`\\hat\\ell_t` the sum of the
      estimates that arrive in round t. It is the Bregman divergence :math:`D_{F_t}(x_t, \\tilde x_t)`, with :math:`\\tilde x_t` the leader at
      :math:`L_{t+1}` with the rates of round t. No term is negative, so float32 is accurate.
    - ``stability_limit`` :math:`\\sum_t \\sum_i 2(\\hat\\ell_{t,i} - \\alpha_t)^2/f''(x_{t,i})` with the :math:`\\alpha_t` of L282, and
      ``stability_ratio``, the largest quotient of the two in one round.
    - ``stability_tsallis`` :math:`\\sum_t \\sum_{s \\in A_t} \\sum_i \\eta_t x_{t,i}^{3/2}(1/x_{s,i} - 1)` and ``stability_entropy``
      :math:`\\sum_t \\gamma_t a_t(a_t - 1) \\langle x_t, \\Delta \\rangle`. In expectation the stability is at most 4 times their sum (L284 has 2).
    - ``shift_ratio``: the largest :math:`\\alpha_t \\gamma_t`, which must not exceed 1, and ``aux1_ratio``: the largest
      :math:`\\alpha_t/(a_t (K - 1)^{1/3})`, at most 4 by Lemma aux1.
    - ``estimated_drift`` :math:`\\sum_t \\langle x_t, \\hat\\ell_t \\rangle - \\hat\\ell_{t,i^*}`; its mean is the drifted regret, because importance
      weighting is unbiased.
    - ``penalty``: ``estimated_drift`` - ``stability``, and its bound on every path, ``penalty_limit``
      :math:`\\sum_{t \\ge 2} (F_{t-1}(x_t) - F_t(x_t)) + F_T(e_{i^*}) - F_1(x_1)`.

    Args:
      learner: as given to ``simulate``, with ``inverse_rates`` and a state with ``loss_estimates``.
      window: the longest delay (static).

    >>> import jax, jaxbandit as jb
    >>> learner = jb.BestOfBothWorlds(max_delay=5)
    >>> result = jb.simulate(learner, jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5),
    ...                      rounds=300, runs=4, key=jax.random.key(0), measure=[jb.theory.measurements.StabilityAndPenalty(learner, 5)])
    >>> bool((result.measured["stability"] <= result.measured["stability_limit"]).all())
    True
    """

    learner: Any
    window: int = static()

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any:
        check_rates(self.learner)
        zero, one = Sum.zero(runs_shape), jnp.zeros(runs_shape, float_dtype())
        names = ("stability", "limit", "tsallis", "entropy", "drift", "penalty_limit")
        return {
            "sums": dict.fromkeys(names, zero),
            "worst": dict.fromkeys(("stability_ratio", "shift_ratio", "aux1_ratio"), one),
            "rates": (one, one),
            "delivery": Delivery.start((num_arms, *runs_shape), self.window),
        }

    def update(self, state: PyTree, info: RoundInfo) -> Any:
        x, num_arms = info.probabilities, info.probabilities.shape[0]
        a, b = _rates(self.learner, info)
        observed = info.informed_state.loss_estimates - info.learner_state.loss_estimates
        moved = hybrid_argmin(info.informed_state.loss_estimates, a, b)
        stability = sums(_divergence(x, moved, a, b))[0]

        curved = 1 / (0.5 * a * x**-1.5 + b / x)  # 1/f''(x)
        curved_sum, weighted = sums(curved, curved * observed)
        shift = weighted / curved_sum
        limit = sums(2 * curved * (observed - shift) ** 2)[0]
        arrivals = info.arrivals.astype(x.dtype)
        delivery, arrived = state["delivery"].step(info, 1 / x - 1)
        slack = jnp.where(b > 0, b, 1)

        best = jnp.argmin(info.means)
        came = sums(x * observed)[0] - lax.dynamic_index_in_dim(observed, best, 0, keepdims=False)
        terms = {
            "stability": stability,
            "limit": limit,
            "tsallis": sums(x**1.5 * arrived)[0] / a,
            "entropy": jnp.where(b > 0, arrivals * (arrivals - 1) * _suffered(info) / slack, 0),
            "drift": came,
            "penalty_limit": _penalty_limit(info.t, x, (a, b), state["rates"]),
        }
        worst = {
            # Where next to nothing arrived both are rounding.
            "stability_ratio": jnp.where(limit > 1e-9, stability / jnp.where(limit > 1e-9, limit, 1), 0),
            "shift_ratio": jnp.where(b > 0, shift / slack, 0),
            "aux1_ratio": shift / (jnp.maximum(arrivals, 1) * (num_arms - 1) ** (1 / 3)),
        }
        return {
            "sums": {name: state["sums"][name].add(term) for name, term in terms.items()},
            "worst": {name: jnp.maximum(state["worst"][name], new) for name, new in worst.items()},
            "rates": (a, b),
            "delivery": delivery,
        }

    def read(self, state: PyTree) -> dict[str, jax.Array]:
        total = {name: part.value + part.error for name, part in state["sums"].items()}
        return {
            "stability": total["stability"],
            "stability_limit": total["limit"],
            "stability_tsallis": total["tsallis"],
            "stability_entropy": total["entropy"],
            "estimated_drift": total["drift"],
            "penalty": total["drift"] - total["stability"],
            "penalty_limit": total["penalty_limit"],
            **state["worst"],
        }


@pytree_dataclass
class SelfBounding:
    """The sums of equation (10), without the constants a, b, c: ``self_bounding [C, 3, runs]``.

    .. math::
        A = \\sum_t \\sum_{i \\ne i^*} \\eta_t \\sqrt{x_{t,i}}, \\qquad
        B = \\sum_t \\gamma_{t+d_t}(a_{t+d_t} - 1) \\langle x_t, \\Delta \\rangle, \\qquad
        C = \\sum_{t \\ge 2} \\frac{\\sigma_t \\gamma_t H(x_t)}{\\log K}

    with H the entropy.

    Args:
      learner: as given to ``simulate``, with ``inverse_rates``.
      window: the longest delay (static).

    >>> import jax, jaxbandit as jb
    >>> learner = jb.BestOfBothWorlds(max_delay=5)
    >>> result = jb.simulate(learner, jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5),
    ...                      rounds=300, runs=4, key=jax.random.key(0), measure=[jb.theory.measurements.SelfBounding(learner, 5)])
    >>> bool((result.measured["self_bounding"][-1, 1] == 0).all())  # B: a fixed delay brings one observation at a time
    True
    """

    learner: Any
    window: int = static()

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any:
        check_rates(self.learner)
        return [Sum.zero(runs_shape) for _ in range(3)], Delivery.start(runs_shape, self.window)

    def update(self, state: PyTree, info: RoundInfo) -> Any:
        totals, delivery = state
        x, num_arms = info.probabilities, info.probabilities.shape[0]
        a, b = _rates(self.learner, info)
        suffered = _suffered(info)
        roots, entropy = sums(jnp.sqrt(x), _entropy(x))
        best = jnp.sqrt(lax.dynamic_index_in_dim(x, jnp.argmin(info.means), 0, keepdims=False))
        delivery, arrived = delivery.step(info, suffered)
        rate = jnp.where(b > 0, 1 / jnp.where(b > 0, b, 1), 0)
        terms = (
            (roots - best) / a,
            rate * (info.arrivals.astype(x.dtype) - 1) * arrived,
            rate * info.outstanding.astype(x.dtype) * entropy / np.log(num_arms),
        )
        return [total.add(term) for total, term in zip(totals, terms, strict=True)], delivery

    def read(self, state: PyTree) -> dict[str, jax.Array]:
        return {"self_bounding": jnp.stack([total.value + total.error for total in state[0]])}


@pytree_dataclass
class Delivery:
    """Values stored with outstanding observations; their sum is returned in the round of arrival."""

    ring: jax.Array  # [W, ...] row A % W: the sum that arrives in round A

    @classmethod
    def start(cls, shape: tuple[int, ...], window: int) -> "Delivery":
        return cls(jnp.zeros((window + 1, *shape), float_dtype()))

    def step(self, info: RoundInfo, value: jax.Array) -> tuple["Delivery", jax.Array]:
        """Store ``value`` of this round and return the sum that arrives; delays longer than the window are dropped."""
        size = self.ring.shape[0]
        fits, due = info.delay < size, (info.t + info.delay) % size
        if jnp.ndim(due) == 0:  # one sequence for all runs: one row
            row = lax.dynamic_index_in_dim(self.ring, due, 0, keepdims=False) + jnp.where(fits, value, 0)
            ring = lax.dynamic_update_index_in_dim(self.ring, row, due, 0)
        else:
            rows = jnp.arange(size).reshape(size, *[1] * due.ndim) == due
            rows = (rows & fits).reshape(size, *[1] * (value.ndim - due.ndim), *due.shape)
            ring = self.ring + jnp.where(rows, value, 0)
        now = info.t % size
        came = lax.dynamic_index_in_dim(ring, now, 0, keepdims=False)
        return Delivery(lax.dynamic_update_index_in_dim(ring, jnp.zeros_like(came), now, 0)), came


def check_rates(learner: LearnerLike) -> None:
    if not isinstance(learner, FTRL):
        raise TypeError(
            f"learner={show(learner)}: this measurement needs a learner with inverse_rates (a jb.extend.FTRL), such as "
            "jb.BestOfBothWorlds or jb.ZimmertSeldin"
        )


def _rates(learner: FTRL, info: RoundInfo) -> tuple[jax.Array, jax.Array]:
    """1/η_t and 1/γ_t of this round, each ``[...]``."""
    num_arms, *runs_shape = info.probabilities.shape
    rates = learner.inverse_rates(info.learner_state, info.round, num_arms)
    if jnp.ndim(rates[1]) > len(runs_shape):
        raise TypeError(f"learner={show(learner)}: this measurement needs a learner with one rate for all arms")
    return jnp.broadcast_to(rates[0], runs_shape), jnp.broadcast_to(rates[1], runs_shape)


def _suffered(info: RoundInfo) -> jax.Array:
    """<x_t, Δ>, ``[...]``."""
    gaps = info.means - info.means.min()
    return inner(info.probabilities, gaps)


def _entropy(x: jax.Array) -> jax.Array:
    """x·log(1/x), 0 at 0."""
    return -x * jnp.log(jnp.where(x > 0, x, 1))


def _divergence(x: jax.Array, y: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    """f(x) - f(y) - f'(y)(x - y) for each arm: a(√x - √y)²/√y + b(x log(x/y) - x + y), nowhere negative."""
    y = jnp.maximum(y, jnp.finfo(y.dtype).tiny)
    change = x / y - 1
    # (1 + u)log(1 + u) - u; its series where the terms would cancel.
    series = change**2 * (0.5 - change * (1 / 6 - change / 12))
    direct = (1 + change) * jnp.log1p(jnp.maximum(change, -1 + 1e-30)) - change
    relative = jnp.where(jnp.abs(change) < 0.02, series, direct)
    return a * (jnp.sqrt(x) - jnp.sqrt(y)) ** 2 / jnp.sqrt(y) + b * y * relative


def _penalty_limit(t, x, rates, last) -> jax.Array:
    """This round's share of the limit: telescoped, 2(a_t - a_{t-1})(Σ√x - 1) + (b_t - b_{t-1})H(x), with a_0 = b_0 = 0.

    Round 1, at the uniform point, is 2a_1(√K - 1) + b_1 log K = F_1(e_{i*}) - F_1(x_1).
    """
    roots, entropy = sums(jnp.sqrt(x), _entropy(x))
    (a, b), (a_last, b_last) = rates, last
    # One difference of two rounded rates may be off by a large part of itself. Summed over rounds it is not: the rounding of a_t
    # enters with round t and leaves with round t + 1; the rest is its product with the change of Σ√x and H between the two.
    return 2 * (a - a_last) * (roots - 1) + (b - b_last) * entropy
