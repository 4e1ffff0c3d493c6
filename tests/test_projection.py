"""The projection against solvers written from scratch: extended precision for the bulk, mpmath at 50 digits for the proof.

The problem is strictly convex, so a point that meets the optimality conditions at 50 digits is the solution, however it
was found: every 50-digit reference below checks its own conditions.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import jaxbandit as jb
from jaxbandit.arms import sums
from jaxbandit.projection import Warm, hybrid_argmin_warm
from jaxbandit.pytrees import canonical, pytree_dataclass
from jaxbandit.rollout import Game

DIGITS = 50
LONG = np.longdouble
# (smallest probability that counts, largest relative error) of the cold solver.
DEMANDS = {np.float64: (1e-30, 1e-12), np.float32: (1e-6, 2e-6)}

pytestmark = pytest.mark.skipif(np.finfo(LONG).eps > 1e-18, reason="the reference needs 80-bit long doubles")


# ---------------------------------------------------------------- references


def long_solution(losses, tsallis, entropy):
    """x ``[K, n]``, u = -log(x)/2 and μ in 80-bit floats, by Newton in u inside Newton in μ, both from the safe side.

    a·exp(u) + 2b·u is convex and increasing in u and both terms are at most z = L - μ, so min(log(z/a), z/2b) is right
    of the root; log S is convex and increasing in μ and -a is right of its root.
    """
    losses, a = losses.astype(LONG), tsallis.astype(LONG)
    losses, twice = losses - losses.min(0), np.broadcast_to(2 * entropy.astype(LONG), losses.shape)
    positive, mu = np.where(twice > 0, twice, 1), -a

    def log_y(slack):
        u = np.maximum(np.minimum(np.log(slack / a), np.where(twice > 0, slack / positive, np.inf)), 0)
        for _ in range(50):
            exp = a * np.exp(u)
            step = (slack - exp - twice * u) / (exp + twice)
            u = np.maximum(u + step, 0)
            if np.abs(step).max() <= 1e-18 * (1 + u.max()):
                break
        return u

    for _ in range(60):
        u = log_y(losses - mu)
        x = np.exp(-2 * u)
        total, slope = x.sum(0), (2 * x / (a * np.exp(u) + twice)).sum(0)
        move = -total * np.log(total) / slope
        mu = mu + move
        if np.abs(move / mu).max() <= 2e-19:
            break
    assert np.abs(total - 1).max() < 1e-15
    return x / total, u, mu


class Exact:
    """The solution of one problem at 50 digits, by Newton on all conditions at once, polished from ``long_solution``."""

    def __init__(self, losses, tsallis, entropy, start=None):
        with mp.workdps(DIGITS + 10):
            losses = [mpf(v) for v in losses]
            least = min(losses)
            self.losses, self.tsallis = [v - least for v in losses], mpf(tsallis)
            self.entropy = [mpf(b) for b in (entropy if np.ndim(entropy) else [entropy] * len(losses))]
            if start is None:
                numbers = [np.array([float(v) for v in vs])[:, None] for vs in (self.losses, self.entropy)]
                _, u, mu = long_solution(numbers[0], np.array([float(tsallis)]), np.maximum(numbers[1], 0))
                start = [_mpf(v) for v in u[:, 0]], _mpf(mu[0])
            self.u, self.mu = start
            self._polish()

    def _polish(self):
        for _ in range(8):
            exps = [mp.exp(u) for u in self.u]
            self.x = [e**-2 for e in exps]
            slopes = [self.tsallis * e + 2 * b for e, b in zip(exps, self.entropy)]
            gaps = [
                loss - self.mu - self.tsallis * e - 2 * b * u for loss, e, b, u in zip(self.losses, exps, self.entropy, self.u)
            ]
            excess = sum(self.x) - 1
            scale = 1 + max(abs(loss - self.mu) for loss in self.losses)
            if max(map(abs, gaps)) < mpf(10) ** -DIGITS * scale and abs(excess) < mpf(10) ** -DIGITS:
                return
            weights = [2 * x / s for x, s in zip(self.x, slopes)]
            move = (sum(w * g for w, g in zip(weights, gaps)) - excess) / sum(weights)
            self.mu += move
            self.u = [u + (g - move) / s for u, g, s in zip(self.u, gaps, slopes)]
        raise AssertionError("the optimality conditions are not met at 50 digits")

    def near(self, losses, tsallis, entropy):
        """The solution of a problem a hair away."""
        return Exact(losses, tsallis, entropy, (self.u, self.mu))


def _mpf(number):
    high = float(number)
    return mpf(high) + mpf(float(number - LONG(high)))


def relative_error(x, exact):
    """The largest |x_i / exact_i - 1|, at 50 digits, and the smallest exact_i."""
    with mp.workdps(DIGITS):
        return max(float(abs(_mpf(mine) / theirs - 1)) for mine, theirs in zip(x, exact)), float(min(exact))


# ---------------------------------------------------------------- random problems


def problems(rng, num_arms, count, dtype, per_arm):
    """Losses [K, n] of spread 0 to 1e8 (some equal, some repeated, not shifted), a from 1 to 1e5, b/a from 1e-6 to 1e6 or 0."""
    spread = np.where(rng.random(count) < 0.05, 0, 10 ** rng.uniform(-4, 8, count))
    losses = rng.random((num_arms, count)) ** rng.choice([1, 3, 10], count) * spread
    repeated = rng.random(count) < 0.2
    losses[num_arms // 2 :, repeated] = losses[0, repeated]
    losses += np.where(rng.random(count) < 0.1, rng.uniform(-1, 1, count) * spread, 0)
    tsallis = 10 ** rng.uniform(0, 5, count)
    shape = (num_arms, count) if per_arm else (count,)
    # One b for all arms, or b·√gap_i as the asymmetric learners have it, the best arm's 0 included.
    entropy = np.minimum(tsallis * 10 ** rng.uniform(-6, 6, count), 1e6) * (np.sqrt(rng.random(shape)) if per_arm else 1)
    entropy = np.where(rng.random(shape) < 0.1, 0, entropy)
    return losses.astype(dtype), tsallis.astype(dtype), entropy.astype(dtype)


@functools.cache
def cold():
    return jax.jit(jb.hybrid_argmin)


def solve(losses, tsallis, entropy):
    """Our answer, in the dtype of the inputs."""
    with jax.enable_x64(losses.dtype == np.float64):
        x = np.asarray(cold()(losses, tsallis, entropy))
    assert x.dtype == losses.dtype
    return x


def check(rng, num_arms, count, dtype, per_arm, proved):
    """Our answers to ``count`` problems; of the reference, ``proved`` are checked at 50 digits. Returns the worst error."""
    inputs = problems(rng, num_arms, count, dtype, per_arm)
    x, (exact, u, mu) = solve(*inputs), long_solution(*inputs)
    assert np.isfinite(x).all() and (x >= 0).all()
    floor, tolerance = DEMANDS[dtype]
    error = np.where(exact >= floor, np.abs(x / exact - 1), 0).max(0)
    worst = int(error.argmax())
    assert error[worst] <= tolerance, (num_arms, per_arm, float(error[worst]), [v[..., worst] for v in inputs])

    allowed = 4 * math.sqrt(num_arms) * np.finfo(dtype).eps
    excess = [abs(math.fsum(column) - 1) for column in x.T.astype(float)]
    assert max(excess) <= allowed, (num_arms, max(excess) / allowed)

    for i in {worst, *rng.choice(count, min(proved, count), replace=False)}:
        start = [_mpf(v) for v in u[:, i]], _mpf(mu[i])
        proof = Exact(*(v[..., i].astype(float).tolist() for v in inputs), start)
        assert relative_error(exact[:, i], proof.x)[0] < 1e-16
        if proof.x and min(proof.x) >= floor:
            assert relative_error(x[:, i], proof.x)[0] <= tolerance
    return float(error[worst])


PER_ARM = pytest.mark.parametrize("per_arm", [False, True], ids=["scalar", "per-arm"])
PRECISION = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])


@PRECISION
@PER_ARM
@pytest.mark.parametrize(("num_arms", "count"), [(1, 50), (2, 500), (3, 500), (10, 500), (100, 100)])
def test_cold_solver(num_arms, count, per_arm, dtype):
    check(np.random.default_rng(num_arms), num_arms, count, dtype, per_arm, proved=300 // num_arms // 10)


@pytest.mark.slow
@PRECISION
@PER_ARM
@pytest.mark.parametrize(
    ("num_arms", "count", "proved"),
    [(1, 1000, 500), (2, 16_000, 600), (3, 16_000, 600), (10, 16_000, 300), (100, 1600, 20), (10_000, 20, 1)],
)
def test_cold_solver_on_a_hundred_thousand_problems(num_arms, count, proved, per_arm, dtype):
    check(np.random.default_rng([7, num_arms, per_arm]), num_arms, count, dtype, per_arm, proved)


# ---------------------------------------------------------------- the warm solver, along real trajectories


@pytree_dataclass
class Watched:
    """A learner whose state also shows what its solver was given, and this round's residual alone."""

    learner: object

    def init(self, num_arms, runs_shape):
        zero = jnp.zeros(runs_shape)
        return self.learner.init(num_arms, runs_shape), zero, zero, zero

    def act(self, state, round):
        inner, *_ = state
        num_arms = inner.loss_estimates.shape[0]
        tsallis, entropy = self.learner.rates(round, num_arms) if hasattr(self.learner, "rates") else (jnp.sqrt(round.time), 0.0)
        warm = dataclasses.replace(inner.warm, residual=jnp.zeros_like(inner.warm.residual))
        x, memo, inner = self.learner.act(type(inner)(inner.loss_estimates, warm), round)
        shape = inner.warm.residual.shape
        return x, memo, (inner, jnp.broadcast_to(tsallis, shape), jnp.broadcast_to(entropy, shape), inner.warm.residual)

    def observe(self, state, observation):
        return self.learner.observe(state[0], observation), *state[1:]


def trajectory(learner, num_arms, delays, rounds, runs, seed=0, gap=0.2):
    """``x [T, K, n]`` of the warm solver, the solution in float64 for the same inputs, and the residuals ``[T, n]``."""
    means = np.full(num_arms, 0.5)
    means[0] -= gap
    game = [canonical(part) for part in (Watched(learner), jb.losses.Bernoulli(means), delays)]
    game = Game.set_up(*game, jax.random.key(seed), jnp.arange(runs, dtype=jnp.uint32))

    @jax.jit
    def play():
        def one_round(state, t):
            after, x = game.step(state, t)
            # What the solver was given is the estimates before this round's arrivals.
            losses = state.learner[0].loss_estimates
            return after, (losses - losses.min(0), x, *after.learner[1:])

        return jax.lax.scan(one_round, game.start(), jnp.arange(1, rounds + 1, dtype=jnp.int32))[1]

    losses, x, tsallis, entropy, residual = map(np.asarray, play())
    with jax.enable_x64(True):
        columns = [np.asarray(v, np.float64) for v in (np.moveaxis(losses, 1, 0), tsallis, entropy)]
        exact = np.moveaxis(np.asarray(cold()(*columns)), 0, 1)
    return x, exact, residual


def warm_error(x, exact):
    """The relative error of each round and run, over probabilities that count."""
    return np.where(exact >= 1e-6, np.abs(x / exact - 1), 0).max(1)
