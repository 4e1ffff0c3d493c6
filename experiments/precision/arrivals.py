"""How far the two warm steps of a round are off, in float32, when many observations arrive at once.

    python experiments/precision/arrivals.py

K arms, max_delay = n − 1; after 200 rounds with prompt feedback n plays of uniformly drawn arms, loss 1, arrive together. Printed:
the largest relative error of a probability of at least 10⁻³, in the round after the arrival and in the one after that, over 256
draws, against Newton's method in float64.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import theory
from jaxbandit._core.projection import Warm, hybrid_argmin_warm

DRAWS = 256
STEPS = jax.jit(hybrid_argmin_warm)


def exact(losses, tsallis, entropy):
    """``[K, R]`` in float64: bisection in the multiplier, Newton's method in log x."""
    low, high = np.full(losses.shape[1], -tsallis * 40 - entropy * 20), np.full(losses.shape[1], -tsallis)
    for _ in range(60):
        mu, log_x = (low + high) / 2, np.zeros_like(losses)
        for _ in range(25):
            value = tsallis * np.exp(-log_x / 2) - entropy * log_x - (losses - mu)
            log_x = np.minimum(log_x + np.clip(value / (tsallis / 2 * np.exp(-log_x / 2) + entropy), -3, 3), 0)
        above = np.exp(log_x).sum(0) > 1
        low, high = np.where(above, low, mu), np.where(above, mu, high)
    return np.exp(log_x)


def errors(arms, count, scale):
    rng = np.random.default_rng(0)
    start = theory.bounds.mzs22_constants(count - 1, arms, 10 * scale, 24 * scale)
    rates = lambda t, waited: (np.sqrt(t + start.tsallis), np.sqrt((waited + start.entropy) / np.log(arms)))  # noqa: E731
    losses, warm = np.zeros((arms, DRAWS)), Warm.start(arms, (DRAWS,), jnp.float32)
    row, waited, found = np.arange(DRAWS), 0.0, []

    def step(t):
        nonlocal warm
        least = losses.min(0)
        losses[:] -= least
        a, b = (jnp.float32(rate) for rate in rates(t, waited))
        x, warm = STEPS(jnp.asarray(losses, jnp.float32), a, b, warm.shifted(jnp.asarray(least, jnp.float32)))
        return np.asarray(x, float), float(a), float(b)

    for t in range(1, 201):
        x, *_ = step(t)
        arm = (x.cumsum(0) < rng.random(DRAWS)).sum(0).clip(max=arms - 1)
        losses[arm, row] += (rng.random(DRAWS) < np.where(arm == 0, 0.3, 0.6)) / x[arm, row]
    x, *_ = step(201)
    for _ in range(count):
        arm = rng.integers(0, arms, DRAWS)
        losses[arm, row] += 1 / x[arm, row]
    waited = count * (count - 1) / 2
    for t in (202, 203):
        x, a, b = step(t)
        right = exact(losses, a, b)
        found.append(float(np.max(np.where(right >= 1e-3, np.abs(x / right - 1), 0))))
    return found


def main():
    print("| arms | both constants times | arrivals at once | error in the next round | one round later |\n|---|---|---|---|---|")
    for arms in (2, 8):
        for scale in (1.0, 1 / 24, 0.0):
            for count in (2, 5, 17, 65, 257):
                now, later = errors(arms, count, scale)
                print(f"| {arms} | {scale:.3g} | {count} | {now:.1e} | {later:.1e} |", flush=True)


if __name__ == "__main__":
    main()
