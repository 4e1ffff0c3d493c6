"""How far can x_{t,i}/x_{s,i}, t - s <= d_max, be driven on the worst path? A search over paths, in plain NumPy float64.

The key lemma (Lemma 4) is about all paths: whatever arms are drawn, whatever the losses, whenever feedback comes within d_max
rounds. A simulation only samples them. Here the arms, the losses (0 or 1) and the arrivals are chosen to make the ratio large:
regular bursts first (feedback of all open plays arrives at once, every u and then every v rounds; the arm changes every w
rounds), and from the best of them a random local search (arms of a stretch exchanged, bursts moved, losses flipped).

What is found is a lower bound of the largest ratio: it can refute a constant, it cannot prove one.

    python experiments/key_lemma_paths/search.py                 # the table in docs/claims.md
    python experiments/key_lemma_paths/search.py --arms 2 --delay 16 --scales 0.015625 0 --generations 50
"""

import argparse
import itertools

import numpy as np

ROUNDS, POPULATION, KEPT = 192, 192, 24


def leader(losses, tsallis, entropy):
    """argmin <L, x> - 2a Σ√x + b Σ x(log x - 1) for ``losses [P, K]``, by Newton's method in the multiplier and in each x_i.

    x_i solves a/√x - b·log x = L_i + λ. Σx is convex and falls in λ, so steps from the left of the root never cross it.
    """
    losses = losses - losses.min(1, keepdims=True)
    multiplier, log_x = np.full((len(losses), 1), tsallis), np.zeros(losses.shape)
    for _ in range(14):
        for _ in range(6):
            value = tsallis * np.exp(-log_x / 2) - entropy * log_x - losses - multiplier
            log_x = log_x + np.clip(value / (tsallis / 2 * np.exp(-log_x / 2) + entropy), -3, 3)
        x = np.exp(log_x)
        slope = (x / (tsallis / 2 * np.exp(-log_x / 2) + entropy)).sum(1, keepdims=True)
        multiplier = multiplier + (x.sum(1, keepdims=True) - 1) / slope
    assert abs(x.sum(1) - 1).max() < 1e-9, abs(x.sum(1) - 1).max()
    return x


def drift(arms, losses, bursts, num_arms, delay, scale):
    """``[P]`` the largest x_{t,i}/x_{s,i} with t - s <= delay on each path; ``arms``, ``losses``, ``bursts`` are ``[P, T]``."""
    paths, rounds = arms.shape
    linear, factor, log_k = 10 * scale, 24 * scale, np.log(num_arms)
    tsallis_start = linear * delay + (delay / (num_arms ** (1 / 3) * log_k)) ** 2
    entropy_start = (factor * delay) ** 2 * num_arms ** (2 / 3) * log_k
    estimates, waiting = np.zeros((paths, num_arms)), np.zeros((paths, num_arms))
    outstanding, total, found, row = np.zeros(paths), np.zeros(paths), np.ones(paths), np.arange(paths)
    history = []
    for t in range(1, rounds + 1):
        total += outstanding
        x = leader(estimates, np.sqrt(t + tsallis_start), np.sqrt((total + entropy_start) / log_k)[:, None])
        history.append(np.log(x))
        least = np.min(history[-delay - 1 :], 0)
        found = np.maximum(found, np.exp((np.log(x) - least).max(1)))
        arm = arms[:, t - 1]
        waiting[row, arm] += losses[:, t - 1] / x[row, arm]
        outstanding += 1
        arrived = bursts[:, t - 1]
        estimates += np.where(arrived[:, None], waiting, 0)
        waiting[arrived], outstanding[arrived] = 0, 0
    return found


def feasible(bursts, delay):
    """The same bursts with more of them where a play would wait longer than ``delay`` rounds."""
    bursts, since = bursts.copy(), np.zeros(len(bursts), int)
    for t in range(bursts.shape[1]):
        bursts[:, t] |= since >= delay
        since = np.where(bursts[:, t], 0, since + 1)
    return bursts


def regular(num_arms, delay):
    """Regular bursts and arms: what one would think of first."""
    lengths = sorted({1, 2, delay // 2 + 1, delay - 1, delay, delay + 1} - {0})
    paths = []
    for u, v, w in itertools.product(
        lengths, lengths, sorted({1, delay // 2 + 1, delay, delay + 1, 2 * delay, 2 * delay + 1, 4 * delay})
    ):
        ends = np.cumsum(np.tile([u, v], ROUNDS))
        burst = np.isin(np.arange(1, ROUNDS + 1), ends)
        paths.append((np.arange(ROUNDS) // w % num_arms, np.ones(ROUNDS), burst))
    arms, losses, bursts = (np.array(column) for column in zip(*paths))
    return arms, losses, feasible(bursts, delay)


def mutated(rng, paths, num_arms, delay):
    """A new population: the given paths, and each with a few changes."""
    count = POPULATION // len(paths[0])
    arms, losses, bursts = (np.repeat(part, count, 0) for part in paths)
    for row in range(len(arms)):
        if row % count == 0:
            continue
        for _ in range(rng.integers(1, 4)):
            first, length = rng.integers(ROUNDS), rng.integers(1, 2 * delay + 2)
            kind = rng.integers(4)
            if kind == 0:
                arms[row, first : first + length] = rng.integers(num_arms)
            elif kind == 1:
                losses[row, first : first + length] = rng.integers(2)
            elif kind == 2:
                bursts[row, first] ^= True
            else:
                bursts[row] = np.roll(bursts[row], rng.integers(-3, 4))
    return arms, losses, feasible(bursts, delay)


def search(num_arms, delay, scale, generations, seed=0):
    """The largest drift of the regular paths, and of the local search from the best of them."""
    rng = np.random.default_rng(seed)
    paths = regular(num_arms, delay)
    values = drift(*paths, num_arms, delay, scale)
    first = values.max()
    for _ in range(generations):
        best = np.argsort(-values)[:KEPT]
        paths = mutated(rng, tuple(part[best] for part in paths), num_arms, delay)
        values = drift(*paths, num_arms, delay, scale)
    return first, values.max()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--delay", type=int, nargs="+", default=[4, 16])
    parser.add_argument("--scales", type=float, nargs="+", default=[1, 1 / 16, 1 / 64, 0])
    parser.add_argument("--generations", type=int, default=30)
    options = parser.parse_args()
    print("| arms | d_max | both constants times | regular bursts | after the search |\n|---|---|---|---|---|")
    for num_arms, delay, scale in itertools.product(options.arms, options.delay, options.scales):
        first, last = search(num_arms, delay, scale, options.generations)
        print(f"| {num_arms} | {delay} | {scale:g} | {first:.3f} | {last:.3f} |", flush=True)


if __name__ == "__main__":
    main()
