"""Loss and delay models in NumPy float64, one play at a time, from the formulas in the docstrings of the library's classes.

A model is made from the library's object: only its fields are read. Rounds count from 1. ``noise`` is a uniform number in (0, 1)
that decides by inverse transform, except for Beta losses, which JAX draws from a key.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

import jaxbandit as jb
from jaxbandit.extend import pytree_dataclass
from tests.reference.interface import draw

D, L = jb.delays, jb.losses


@pytree_dataclass
class Mixture(D.Delays):
    """A delay model of a user's own: ``first`` with probability ``share``, else ``second``, both on what is left of the noise."""

    share: jax.Array
    first: D.Delays
    second: D.Delays

    @property
    def bound(self) -> int:
        return max(self.first.bound, self.second.bound)

    def draw(self, t, arm, loss, noise):
        first = self.first.draw(t, arm, loss, noise / self.share)
        second = self.second.draw(t, arm, loss, (noise - self.share) / (1 - self.share))
        return jnp.where(noise < self.share, first, second)


def means(model, t: int) -> np.ndarray:
    """The mean losses of round t, [K]."""
    match model:
        case L.Bernoulli() | L.Beta():
            return np.asarray(model.means, float)
        case L.ClippedNormal():
            return clipped_normal_means(np.asarray(model.means, float), np.asarray(model.deviation, float))
        case L.Table():
            return np.asarray(model.losses, float)[t - 1]
        case L.StochasticallyConstrained():
            best = (0.0, 1.0 - float(model.gap))[phase(float(model.growth), t) % 2]
            return best + np.where(np.arange(model.arms) == 0, 0.0, float(model.gap))
        case L.Switching():
            return np.asarray(model.means, float)[max(p for p, start in enumerate(np.asarray(model.starts)) if start <= t)]
        case L.DelayMatchedSwitching():
            best = (t - 1) // (2 * int(model.delay)) % 2
            return np.array([0.9 if arm > 1 else float(arm != best) for arm in range(model.arms)])
        case L.Drifting():
            start, end = np.asarray(model.start, float), np.asarray(model.end, float)
            return start + min((t - 1) / float(model.rounds), 1.0) * (end - start)
        case L.Corrupted():
            return means(model.base, t)[exchange(model, t)]
        case L.ZeroInflated():
            return 1 - conversion_rates(model, t) * np.asarray(model.values, float).mean(1)
        case L.IntermediateStates():
            return np.asarray(model.transitions, float) @ means(model.losses, t)
    raise NotImplementedError(f"means of {type(model).__name__}")


def clipped_normal_means(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """By integration over the quantiles that are inside (0, 1): E[clip(X)] = P(X > 1) + E[X; 0 < X < 1]."""

    def density(z):
        return np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)

    low, high = -mean / deviation, (1 - mean) / deviation
    inside = scipy.special.ndtr(high) - scipy.special.ndtr(low)
    return scipy.special.ndtr(-high) + mean * inside + deviation * (density(low) - density(high))


def conversion_rates(model, t: int) -> np.ndarray:
    """Of the phase that round t is in, [K]."""
    return np.asarray(model.rates, float)[max(p for p, start in enumerate(np.asarray(model.starts)) if start <= t)]


def phase(growth: float, t: int) -> int:
    """The phase, from 0, that round t is in: the first lasts one round, each other ``growth`` times as long as the one before."""
    number, length, end = 0, 1.0, 1.0
    while t - 1 >= end - 1e-9 * end:
        number, length = number + 1, length * growth
        end += length
    return number


def exchange(model, t: int) -> np.ndarray:
    """The arm whose loss each arm receives in round t: best and worst change places while the budget pays for it."""
    clean, order = means(model.base, t), np.arange(model.num_arms)
    best, worst = int(clean.argmin()), int(clean.argmax())
    if int(model.start) <= t < int(model.start) + math.floor(float(model.budget) / (clean[worst] - clean[best])):
        order[[best, worst]] = worst, best
    return order


def state_and_place(model, arm: int, noise: float) -> tuple[int, float]:
    """The state that a play leads to, and where the noise lies within the state's cell."""
    row = np.asarray(model.transitions, float)[arm]
    state = draw(row / row.sum(), noise)
    return state, (noise * row.sum() - row[:state].sum()) / row[state]


def loss(model, t: int, arm: int, noise) -> float:
    """The loss of ``arm`` in round t; ``noise`` is a uniform number, or the two numbers of a key where the model needs one."""
    match model:
        case L.Beta():
            return beta_loss(model, arm, noise)
        case L.ClippedNormal():
            deviation = np.broadcast_to(np.asarray(model.deviation, float), (model.num_arms,))[arm]
            return min(max(float(np.asarray(model.means)[arm] + deviation * scipy.special.ndtri(noise)), 0.0), 1.0)
        case L.Table():
            return float(means(model, t)[arm])
        case L.ZeroInflated():
            rate, values = conversion_rates(model, t)[arm], np.asarray(model.values, float)[arm]
            return 1 - values[min(int(noise / rate * len(values)), len(values) - 1)] if noise < rate else 1.0
        case L.Corrupted():
            return loss(model.base, t, int(exchange(model, t)[arm]), noise)
        case L.IntermediateStates():
            return loss(model.losses, t, *state_and_place(model, arm, noise))
    return float(noise < means(model, t)[arm])  # all others are Bernoulli


@jax.jit
def _beta(key, a, b):
    return jax.random.beta(jax.random.wrap_key_data(key, impl="threefry2x32"), a, b)


def beta_loss(model, arm: int, key) -> float:
    """The draw of ``jax.random.beta`` from the key of this play."""
    mean = float(np.asarray(model.means)[arm])
    if not 0 < mean < 1:
        return mean
    concentration = float(np.broadcast_to(np.asarray(model.concentration, float), (model.num_arms,))[arm])
    with jax.enable_x64(True):
        return float(_beta(np.array(key, np.uint32), concentration * mean, concentration * (1 - mean)))


def delay(model, t: int, arm: int, loss: float, noise: float) -> float:
    """The delay of the play of round t, ``math.inf`` if its feedback never arrives."""
    match model:
        case D.ArmDependent():
            return delay(model.laws[arm], t, arm, loss, noise)
        case D.LossDependent():
            return delay(model.no_conversion if loss >= float(model.threshold) else model.conversion, t, arm, loss, noise)
        case Mixture():
            share = float(model.share)
            if noise < share:
                return delay(model.first, t, arm, loss, noise / share)
            return delay(model.second, t, arm, loss, (noise - share) / (1 - share))
        case D.Fixed():
            return int(model.delay)
        case D.CompositeFeedback():
            return len(np.asarray(model.shares)) - 1
        case D.PacketLoss():
            return int(model.delay) if noise < float(model.probability) else math.inf
        case D.UniformRandom():
            low, high = int(model.low), int(model.high)
            return low + math.floor(noise * (high - low + 1))
        case D.Geometric():
            return within(model, geometric(float(model.mean), noise))
        case D.Poisson():
            return within(model, poisson(float(model.mean), noise, model.bound))
        case D.Pareto():  # P(d > n) = n^-alpha
            return within(model, max(math.ceil((1 - noise) ** (-1 / float(model.alpha))), 1))
        case D.Bursts():
            return -t % int(model.every)
        case D.Outlier():
            return int(model.first if t <= int(model.count) else model.delay)
        case D.Trace():
            return recorded(np.asarray(model.delays)[t - 1])
        case D.EmpiricalByArm():
            row = np.asarray(model.delays)[arm]
            return recorded(row[math.floor(noise * len(row))])
        case D.Empirical():
            delays = np.asarray(model.delays)
            return recorded(delays[math.floor(noise * len(delays))])
        case D.DelayAsPayoff():
            return round(int(model.scale) * loss)
    raise NotImplementedError(f"delays of {type(model).__name__}")


def geometric(mean: float, noise: float) -> int:
    """The n with P(d < n) <= noise < P(d <= n), P(d >= n) = (m/(1 + m))^n."""
    ratio, n = mean / (1 + mean), 0
    while n < 10_000 and 1 - noise <= ratio ** (n + 1):
        n += 1
    return n


def poisson(mean: float, noise: float, bound: int) -> float:
    """The n with P(d < n) <= noise < P(d <= n), by adding up the probabilities of 0, 1, …"""
    below = 0.0
    for n in range(bound + 1):
        below += math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) if mean > 0 else float(n == 0)
        if noise < below:
            return n
    return math.inf


def within(model, drawn: float) -> float:
    return drawn if drawn <= model.bound else math.inf


def recorded(value) -> float:
    return math.inf if value == D.NEVER else int(value)
