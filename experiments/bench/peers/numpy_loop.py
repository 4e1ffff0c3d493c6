"""MZS22 (Algorithm 1) as a researcher would write it in NumPy: arrays over runs, float64, bisection for the projection.

python numpy_loop.py ARMS RUNS ROUNDS DELAY        prints one line of JSON
"""

import json
import sys
import time

import numpy as np


def project(losses, a, b):
    """argmin <L, x> - 2a Σ√x + b Σ x(log x - 1): bisection for μ around Newton's method for each arm."""
    low, high = losses.min(0) - a * np.sqrt(len(losses)) - b * np.log(len(losses)) - 1, losses.min(0) - a
    y = np.full_like(losses, np.sqrt(len(losses)))
    for _ in range(40):
        mu = (low + high) / 2
        for _ in range(4):
            y = np.maximum(y * (losses - mu - 2 * b * (np.log(y) - 1)) / (a * y + 2 * b), 1)
        much = (y**-2).sum(0) > 1
        low, high = np.where(much, low, mu), np.where(much, mu, high)
    x = y**-2
    return x / x.sum(0)


def main() -> None:
    arms, runs, rounds, delay = (int(word) for word in sys.argv[1:5])
    rng, means = np.random.default_rng(0), np.array([0.3] + [0.5] * (arms - 1))
    losses, regret, waiting, outstanding = np.zeros((arms, runs)), np.zeros(runs), {}, 0
    log_k = np.log(arms)
    start = time.perf_counter()
    for t in range(1, rounds + 1):
        outstanding += min(t - 1, delay)
        a = np.sqrt(t + 10 * delay + (delay / (arms ** (1 / 3) * log_k)) ** 2)
        b = np.sqrt((outstanding + 576 * delay**2 * arms ** (2 / 3) * log_k) / log_k)
        x = project(losses, a, b)
        arm = np.minimum((x.cumsum(0) <= rng.random(runs)).sum(0), arms - 1)
        waiting[t] = arm, (rng.random(runs) < means[arm]) / x[arm, np.arange(runs)]
        regret += (means - means.min()) @ x
        if t > delay:
            arm, weight = waiting.pop(t - delay)
            losses[arm, np.arange(runs)] += weight
    print(json.dumps({"rounds_per_second": runs * rounds / (time.perf_counter() - start), "regret": float(regret.mean())}))


if __name__ == "__main__":
    main()
