"""MZS22 (Algorithm 1) as a Numba loop over runs and rounds, for timing beside the engine: float32, warm Newton steps.

python numba_loop.py ARMS RUNS ROUNDS DELAY        prints one line of JSON
"""

import json
import math
import sys
import time

import numpy as np
from numba import njit


@njit(fastmath=True)
def play(arms, rounds, delay, means, seed):
    np.random.seed(seed)  # noqa: NPY002 - Numba compiles only the old interface well
    log_k = math.log(arms)
    tsallis_start = 10 * delay + (delay / (arms ** (1 / 3) * log_k)) ** 2
    entropy_start = 576 * delay * delay * arms ** (2 / 3) * log_k
    losses, y, x = np.zeros(arms, np.float32), np.full(arms, arms**0.5, np.float32), np.zeros(arms, np.float32)
    waiting, where = np.zeros(delay + 1, np.float32), np.zeros(delay + 1, np.int32)
    mu, outstanding, regret, best = np.float32(-1e30), 0, 0.0, means.min()
    for t in range(1, rounds + 1):
        outstanding += min(t - 1, delay)
        a = np.float32(math.sqrt(t + tsallis_start))
        b = np.float32(2 * math.sqrt((outstanding + entropy_start) / log_k))
        mu = min(-a if t > 1 else -a * y[0] - b * math.log(y[0]), mu if t > 1 else np.float32(1e30))
        total = np.float32(0)
        for step in range(4):
            total = slope_sum = np.float32(0)
            for k in range(arms):
                z = y[k]
                z = max(z * (losses[k] - mu - b * (math.log(z) - 1)) / (a * z + b), np.float32(1))
                y[k], x[k] = z, 1 / (z * z)
                total += x[k]
                slope_sum += x[k] / (a * z + b)
            if step < 3:
                mu = min(mu + total * (1 - math.sqrt(total)) / slope_sum, -a)
        target, below, arm = np.random.random() * total, np.float32(0), arms - 1  # noqa: NPY002
        for k in range(arms):
            regret += x[k] / total * (means[k] - best)
            below += x[k]
            if target < below and arm == arms - 1:
                arm = k
                target = np.float32(2) * total
        loss = np.random.random() < means[arm]  # noqa: NPY002
        waiting[t % (delay + 1)], where[t % (delay + 1)] = total / x[arm] if loss else 0, arm
        if t > delay:
            losses[where[(t + 1) % (delay + 1)]] += waiting[(t + 1) % (delay + 1)]
        low = losses.min()
        losses -= low
        mu -= low
    return regret


def main() -> None:
    arms, runs, rounds, delay = (int(word) for word in sys.argv[1:5])
    means = np.array([0.3] + [0.5] * (arms - 1), np.float32)
    play(arms, 2, delay, means, 0)
    start = time.perf_counter()
    regret = np.mean([play(arms, rounds, delay, means, run) for run in range(runs)])
    print(json.dumps({"rounds_per_second": runs * rounds / (time.perf_counter() - start), "regret": float(regret)}))


if __name__ == "__main__":
    main()
