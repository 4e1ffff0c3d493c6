"""The projection of every FTRL learner here: a fixed-iteration Newton-type loop and its implicit derivative.

.. math:: x = \\arg\\min_{x \\in \\Delta} \\; \\langle L, x\\rangle - 2a \\sum_i \\sqrt{x_i} + \\sum_i b_i x_i(\\log x_i - 1)

With :math:`y_i = x_i^{-1/2}` the optimality conditions are :math:`a y_i + 2 b_i \\log y_i = L_i - \\mu`: linear in y when
b = 0, linear in log y when b dominates, and b = 0 needs no special case. Both solvers alternate a step in y with a step in
the multiplier :math:`\\mu`, whose root is below min L - a (the best arm has x ≤ 1). From above the root
the steps in μ are monotone; **from below they can jump over the pole**, hence the clip at min L - a.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit._core.arms import one_hot, sums
from jaxbandit._core.fast_math import log_from_one
from jaxbandit._core.fields import Numbers, is_concrete, is_numeric, pytree_dataclass, show

COLD_STEPS = 16
WARM_STEPS = {jnp.dtype(jnp.float32): 2, jnp.dtype(jnp.float64): 5}


@pytree_dataclass
class Warm:
    """The warm start of the loop's solver: the last solution, and its residual."""

    y: jax.Array  # [K, ...] x^{-1/2}
    typical: jax.Array  # [...] ȳ, the mean of y weighted by dx/dμ
    level: jax.Array  # [...] μ + a·ȳ + 2b·log ȳ, which changes far less than μ when the rates do
    residual: jax.Array  # [...] the largest |Σx - 1| so far, before x is scaled to sum to one

    @classmethod
    def start(cls, num_arms: int, shape: tuple[int, ...], dtype: Any) -> "Warm":
        """The uniform point, which is the exact solution when all losses are equal."""
        y = jnp.full((num_arms, *shape), num_arms**0.5, dtype)
        return cls(y, y[0], jnp.zeros(shape, dtype), jnp.zeros(shape, dtype))

    def shifted(self, shift: jax.Array) -> "Warm":
        """The same start after ``shift`` was subtracted from all losses."""
        return Warm(self.y, self.typical, self.level - shift, self.residual)


def hybrid_argmin(losses: Numbers, tsallis: Numbers, entropy: Numbers) -> jax.Array:
    """The hybrid-regularised leader, from a cold start: safeguarded, for any finite input.

    .. math:: \\arg\\min_{x \\in \\Delta} \\langle L, x\\rangle - 2a \\sum_i \\sqrt{x_i} + \\sum_i b_i x_i (\\log x_i - 1)

    Args:
      losses: ``[K, ...]`` cumulative loss estimates L; only their differences matter.
      tsallis: ``[...]`` :math:`a = 1/\\eta > 0`.
      entropy: ``[...]`` :math:`b = 1/\\gamma \\ge 0` (0 is legal), or ``[K, ...]``, one for each arm.

    Returns:
      Probabilities ``[K, ...]``. Derivatives of any order, forward and reverse, are implicit: nothing is
      differentiated through the loop.

    >>> import jaxbandit as jb
    >>> jb.hybrid_argmin([0.0, 1.0, 4.0], 1.0, 0.5).round(3)
    Array([0.646, 0.293, 0.061], dtype=float32)

    Reference: Masoudian, Zimmert & Seldin (2022), equations (1) and (2).
    """
    check_regularised(losses, tsallis, entropy)
    return _cold(losses, tsallis, entropy)


def check_regularised(losses: Any, tsallis: Any, entropy: Any) -> None:
    """Raise unless the minimiser exists; only the shape of traced values is checked."""
    for name, value in (("losses", losses), ("tsallis", tsallis), ("entropy", entropy)):
        if not is_concrete(value):
            continue
        if not is_numeric(value) or np.asarray(value).dtype.kind == "b":
            raise TypeError(f"{name}={show(value)}: give numbers")
        array = np.asarray(value)
        if name == "losses":
            good, wanted = np.isfinite(array).all(), "the losses are finite numbers"
        elif name == "tsallis":
            good, wanted = (
                np.all(np.isfinite(array) & (array > 0)),
                "the weight of the Tsallis entropy is a finite number above 0",
            )
        else:
            good, wanted = (
                np.all(np.isfinite(array) & (array >= 0)),
                "the weight of the negative entropy is a finite number, 0 or more",
            )
        if not good:
            raise ValueError(f"{name}={show(value)}: {wanted}")
    shape = losses.shape if isinstance(losses, jax.Array) else np.shape(losses) if is_concrete(losses) else (1,)
    if not shape or not shape[0]:
        raise ValueError(f"losses={show(losses)}: give a list of K numbers, one for each arm, as the first axis")


@jax.custom_jvp
def _cold(losses: jax.Array, tsallis: jax.Array, entropy: jax.Array) -> jax.Array:
    losses, tsallis, twice = _prepare(losses, tsallis, entropy)
    num_arms = losses.shape[0]
    lowest = -tsallis * num_arms**0.5 - jnp.broadcast_to(twice, losses.shape).max(0) * (0.5 * jnp.log(num_arms))

    def highest(slack):
        """The upper end of the bracket of u = log y: neither a·y nor 2b·log y exceeds the slack."""
        by_entropy = jnp.where(twice > 0, slack / jnp.where(twice > 0, twice, 1), jnp.inf)
        return jnp.maximum(jnp.minimum(jnp.log(slack / tsallis), by_entropy), 0)

    def step(_, carry):
        u, mu = carry
        slack = losses - mu
        for _ in range(2):  # Newton in u for a·y + 2b·log y = slack
            linear = tsallis * jnp.exp(u)
            u = jnp.clip(u + (slack - linear - twice * u) / (linear + twice), 0, highest(slack))
        x = jnp.exp(-2 * u)
        best = one_hot(jnp.argmin(u, 0), num_arms)
        # S - 1 without cancellation: where one arm has nearly everything, S itself has lost the digits that fix μ.
        (excess, slope) = sums(jnp.where(best, jnp.expm1(-2 * u), x), 2 * x / (tsallis * jnp.exp(u) + twice))
        # Newton on log S, which is convex and increasing in μ like S itself, but far straighter when b dominates.
        return u, jnp.clip(mu - (1 + excess) * jnp.log1p(excess) / slope, lowest, -tsallis)

    start = (highest(losses + tsallis), jnp.broadcast_to(-tsallis, losses.shape[1:]))
    u, _ = lax.fori_loop(0, COLD_STEPS, step, start)
    x = jnp.exp(-2 * u)
    return x / sums(x)[0]


def _prepare(losses, tsallis, entropy):
    losses, tsallis, entropy = jnp.asarray(losses), jnp.asarray(tsallis), jnp.asarray(entropy)
    dtype = jnp.result_type(losses, tsallis, entropy, jnp.float32)
    losses = losses.astype(dtype)
    return losses - losses.min(0), tsallis.astype(dtype), 2 * entropy.astype(dtype)


@_cold.defjvp
def _cold_jvp(primals, tangents):
    x = _cold(*primals)
    return x, implicit_tangent(x, primals, tangents)


def implicit_tangent(x: jax.Array, primals: Any, tangents: Any) -> jax.Array:
    """dx by the implicit function theorem: a dy + 2b dy/y = dL - dμ - y da - 2 log y db, with Σ dx = 0 fixing dμ."""
    (_, tsallis, entropy), (d_losses, d_tsallis, d_entropy) = primals, tangents
    y = jnp.maximum(x, jnp.finfo(x.dtype).tiny) ** -0.5
    weight = 2 * x / (tsallis * y + 2 * entropy)
    force = d_losses - y * d_tsallis - 2 * jnp.log(y) * d_entropy
    return weight * ((weight * force).sum(0) / weight.sum(0) - force)


@jax.custom_jvp
def hybrid_argmin_warm(losses: jax.Array, tsallis: jax.Array, entropy: jax.Array, warm: Warm) -> tuple[jax.Array, Warm]:
    """:func:`hybrid_argmin` for the loop: a few steps of Halley's method from the previous round's solution.

    The steps are cubic in μ, and in y but for the last, after which y follows μ to first order. Two are enough for float32
    where arrivals move the probabilities little, as with the paper's constants: errors below 2e-4, and 1e-6 a round later. With
    constants near 0 they are not: 17 arrivals at once leave up to 2 % in the next round and 1e-4 in the one after, 257 up to
    11 % and 0.4 % (experiments/precision/arrivals.py). float64 takes five.

    Args:
      losses: ``[K, ...]`` with ``losses.min(0) == 0`` (learners subtract the minimum anyway, to keep float32 accurate).
      tsallis: ``[...]``; entropy: ``[...]`` or ``[K, ...]``; warm: the previous round's, or :meth:`Warm.start`.

    Returns:
      Probabilities ``[K, ...]`` and the next warm start.
    """
    x, warm, _ = warm_steps(losses, tsallis, entropy, warm)
    return x, warm


def warm_steps(losses: jax.Array, tsallis: jax.Array, entropy: jax.Array, warm: Warm) -> tuple[jax.Array, Warm, jax.Array]:
    """The steps of :func:`hybrid_argmin_warm`, and the size of the last step in y: Σ_i (δy_i/y_i)² ``[...]``.

    A small residual does not imply that every arm has converged: errors of several arms can cancel in Σx.
    """
    twice, y = 2 * entropy, warm.y
    common = twice if twice.ndim < losses.ndim else twice.mean(0)
    mu = jnp.minimum(warm.level - tsallis * warm.typical - common * jnp.log(warm.typical), -tsallis)
    first = typical = move = last = jnp.zeros_like(mu)
    steps = WARM_STEPS[losses.dtype]
    for step in range(steps):
        # Towards a·y + 2b·log y = L - μ: Halley's steps, the last one Newton's; exact when b = 0. The division is last, here
        # and below: XLA stores the result of a division and recomputes anything cheaper wherever it is used.
        slope = tsallis * y + twice
        missing = losses - mu - tsallis * y - twice * log_from_one(y)
        if step < steps - 1:
            square = slope * slope
            bottom = jnp.maximum(square - 0.5 * twice * missing, 0.25 * square)
            y = jnp.maximum(y * (bottom + missing * slope), bottom) / bottom
        else:
            y = jnp.maximum(y * (slope + missing), slope) / slope
        slope = tsallis * y + twice
        inverse = 1 / (y * slope)  # one division serves x = y⁻² and 1/(a·y + 2b)
        x, flat = (inverse * slope) ** 2, inverse * y
        weight = x * flat
        # Towards S = Σx = 1: Halley's step for S^{-1/2}, which is linear in μ for one arm and b = 0. Up to factors of 2 the
        # sums are S, its first and second derivatives in μ, and the mean of y. XLA drops the last one where it is not used.
        total, first, second, typical, last = sums(
            x, weight, weight * flat * (2 + tsallis * y * flat), weight * y, (missing * flat) ** 2
        )
        gap = 1 - jnp.sqrt(total)
        bend = jnp.clip(gap * (1.5 - 0.5 * total * second / (first * first)), -1, 0.5)
        move = jnp.minimum(mu + total * gap / (first * (1 - bend)), -tsallis) - mu
        mu = mu + move
    slope = tsallis * y + twice
    y = jnp.maximum(y * (slope - move), slope) / slope
    x = 1 / (y * y)
    (total,) = sums(x)
    typical = typical / first
    level = mu + tsallis * typical + common * jnp.log(typical)
    return x * (1 / total), Warm(y, typical, level, jnp.maximum(warm.residual, jnp.abs(total - 1))), last


@hybrid_argmin_warm.defjvp
def _hybrid_argmin_warm_jvp(primals, tangents):
    x, warm = hybrid_argmin_warm(*primals)
    return (x, warm), (implicit_tangent(x, primals[:3], tangents[:3]), jax.tree.map(jnp.zeros_like, warm))
