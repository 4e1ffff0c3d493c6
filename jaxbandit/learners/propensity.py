"""The probability that one of several independent Beta variables is the smallest: the propensity of Thompson sampling."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandit._core.arms import pick

TABLE = 64  # points at which each survival function is tabulated
NODES = 56  # of the outer integral
CUT = 16.0  # tails are cut off where the density is exp(-16) of its maximum
NEAR = 0.05  # below it, differences of logarithms are computed by their series


def smallest_of_betas(alpha: jax.Array, beta: jax.Array, arm: jax.Array) -> jax.Array:
    """P(θ_arm < θ_j for all other j), θ_j ~ Beta(alpha_j, beta_j) with parameters ``[K, ...]`` of at least 1; ``[...]``.

    .. math:: P_i = \\int f_i(z) \\prod_{j \\ne i} S_j(z) \\, dz, \\quad z = \\log\\frac{\\theta}{1 - \\theta}

    In log odds each density is log-concave with exponential tails. The survival functions S_j are tabulated and interpolated.
    Fine structure of the integrand lies near its upper end h alone, where the first survival function reaches 0. The nodes are
    therefore spaced geometrically towards h, and the trapezoidal rule in log(h - z) converges exponentially. Relative error
    in float32: typically 1e-4, at most 1e-2 down to probabilities of 1e-6.
    """
    survival = Survival.of(alpha, beta)
    upper = (survival.start + (TABLE - 1) * survival.step).min(0)
    mode = pick(jnp.log(alpha / beta), arm)
    reach = jnp.maximum(upper - pick(survival.start, arm), 0)
    finest = 0.5 * jnp.sqrt(1 / alpha + 1 / beta).min(0)
    span = jnp.log(jnp.maximum(reach / finest, 2))
    distance = reach * jnp.exp(-span * _along(jnp.linspace(0, 1, NODES, dtype=alpha.dtype), arm.ndim))  # [M, ...]
    z = upper - distance
    logs = survival.log_at(z)  # [M, K, ...]
    others = jnp.where(jnp.arange(len(alpha)).reshape(-1, *[1] * arm.ndim) == arm, 0, logs).sum(1)
    density = jnp.exp(_log_density(pick(alpha, arm), pick(beta, arm), z - mode)[0] + others)
    integral = (density * distance).sum(0) * span / (NODES - 1)
    return jnp.clip(integral / pick(survival.total, arm), 0, 1)


class Survival(NamedTuple):
    """log P(Z > z) of the log odds Z of Beta variables, tabulated at equidistant points of each arm."""

    start: jax.Array  # [K, ...]
    step: jax.Array  # [K, ...]
    total: jax.Array  # [K, ...] the integral of the density, which is 1 at its mode
    log: jax.Array  # [T, K, ...]
    slope: jax.Array  # [T, K, ...] of ``log``, times the step

    @classmethod
    def of(cls, alpha: jax.Array, beta: jax.Array) -> "Survival":
        left, right = _cuts(alpha, beta)
        step = (left + right) / (TABLE - 1)
        points = _along(jnp.arange(TABLE, dtype=alpha.dtype), alpha.ndim)
        log_density, change = _log_density(alpha, beta, points * step - left)
        density = jnp.exp(log_density)
        slope = density * change
        # The trapezoidal rule with its correction by the derivatives at both ends.
        cells = step / 2 * (density[:-1] + density[1:]) + step**2 / 12 * (slope[:-1] - slope[1:])
        beyond = density[-1:] / jnp.maximum(-change[-1:], 1e-30)  # an exponential tail
        mass = _sums_from_the_end(jnp.concatenate([jnp.maximum(cells, 0), beyond]))
        return cls(jnp.log(alpha / beta) - left, step, mass[0], jnp.log(mass / mass[0]), -density / mass * step)

    def log_at(self, z: jax.Array) -> jax.Array:
        """At points ``z [M, ...]``, by cubic interpolation; ``[M, K, ...]``."""
        place = jnp.clip((z[:, None] - self.start) / self.step, 0, TABLE - 1)
        cell = jnp.minimum(place.astype(jnp.int32), TABLE - 2)
        u = place - cell.astype(place.dtype)
        low, high = (jnp.take_along_axis(self.log, cell + i, 0) for i in (0, 1))
        rise, after = (jnp.take_along_axis(self.slope, cell + i, 0) for i in (0, 1))
        difference = high - low
        return low + u * (rise + u * (3 * difference - 2 * rise - after + u * (rise + after - 2 * difference)))


def _cuts(alpha: jax.Array, beta: jax.Array) -> tuple[jax.Array, jax.Array]:
    """How far below and above the mode the log density falls to -CUT, ``[K, ...]`` each.

    Newton's method from beyond the solution, from where it converges without overshooting: the log density is concave. Both sides
    are computed together, because a small program costs by its number of operations and not by their size.
    """
    sides = _along(jnp.array([-1, 1], alpha.dtype), alpha.ndim)
    d = sides * (6 * jnp.sqrt(1 / alpha + 1 / beta) + 12 / jnp.stack([alpha, beta]))

    def improve(_: Any, d: jax.Array) -> jax.Array:
        value, change = _log_density(alpha, beta, d)
        return d - jnp.minimum(value + CUT, 0) / change

    left, right = lax.fori_loop(0, 6, improve, d)
    return -left, right


def _log_density(alpha: jax.Array, beta: jax.Array, d: jax.Array) -> tuple[jax.Array, Any]:
    """The log density of the log odds at distance ``d`` from their mode, less that at the mode, and its derivative.

    Its value is (alpha + beta)(p d - log(1 + p(exp(d) - 1))) with p = alpha/(alpha + beta). Near the mode it is computed from the
    cumulants of a Bernoulli variable, because the difference would cancel.
    """
    size = alpha + beta
    p, q = alpha / size, beta / size
    near = jnp.where(abs(d) < NEAR, d, 0)
    series = (
        -p
        * q
        * near**2
        * (1 / 2 + near * ((q - p) / 6 + near * ((1 - 6 * p * q) / 24 + near * (q - p) * (1 - 12 * p * q) / 120)))
    )
    shrunk = jnp.expm1(-abs(d))
    direct = p * d - jnp.where(d > 0, d + jnp.log1p(q * shrunk), jnp.log1p(p * shrunk))
    decay = 1 + shrunk
    # alpha - size · p exp(d)/(p exp(d) + q), without cancellation and without overflow.
    change = size * jnp.where(d > 0, p * q * shrunk / (p + q * decay), -p * q * shrunk / (p * decay + q))
    return size * jnp.where(abs(d) < NEAR, series, direct), change


def _sums_from_the_end(values: jax.Array) -> jax.Array:
    """``values[i:].sum(0)`` for each i; for many runs as a matrix product, which takes a third of the time of a scan."""
    if values.ndim == 2:
        return jnp.cumsum(values[::-1], 0)[::-1]
    size = len(values)
    return jnp.tensordot(jnp.triu(jnp.ones((size, size), values.dtype)), values, 1)


def _along(values: jax.Array, axes: int) -> jax.Array:
    """``values [n]`` with ``axes`` more axes behind."""
    return values.reshape(-1, *[1] * axes)
