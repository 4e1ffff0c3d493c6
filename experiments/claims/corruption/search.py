"""Search for the most harmful way to spend a budget of corruption on two arms.

The budget is spent in two windows. In each of their rounds the mean of the best arm is raised and that of the other arm lowered; the
larger one of the two changes is paid. Six numbers are searched by evolution: the starts of the windows, the share of the budget spent in
the first, and the changes, which may differ between the windows by a factor.
"""

import numpy as np

import jaxbandit as jb

CANDIDATES, RUNS, GENERATIONS, KEPT = 64, 16, 8, 8
LOW, HIGH = np.array([0.0, 0.0, 0.0, 0.02, 0.0, 0.2]), np.array([1.0, 1.0, 1.0, 1.0, 1.0, 5.0])


def environment(ways, gap, budget, rounds):
    """Bernoulli losses with means 0.5 ∓ gap/2, corrupted in one way ``[6]`` or in one way per run ``[6, runs]``.

    Numbers of a way: log(start)/log(T) of the first window; the same of the pause before the second; the share of the first; the
    changes of the best and of the other arm, in units of their largest possible value; the factor of both in the second window.
    """
    first, pause, share, raised, lowered, factor = ways
    best, other = 0.5 - gap / 2, 0.5 + gap / 2
    changes = [(np.minimum(1, size * raised) * (1 - best), np.minimum(1, size * lowered) * other) for size in (1.0, factor)]
    lengths = [np.floor(part * budget / np.maximum(*pair)) for part, pair in zip((share, 1 - share), changes, strict=True)]
    begin = np.minimum(1 + np.floor(np.exp(first * np.log(rounds / 2))), rounds - 3)
    end = np.minimum(begin + np.maximum(1, lengths[0]), rounds - 2)
    again = np.minimum(end + np.maximum(1, np.floor(np.exp(pause * np.log(rounds / 2)))), rounds - 1)
    starts = np.array([np.ones_like(begin), begin, end, again, np.minimum(again + np.maximum(1, lengths[1]), rounds)], int)
    clean = np.full_like(begin, best), np.full_like(begin, other)
    dirty = [(best + up, other - down) for up, down in changes]
    return jb.losses.Switching(np.array([clean, dirty[0], clean, dirty[1], clean]), starts)


def search(learner, delay, gap, budget, rounds, seed):
    """The way ``[6]`` to spend the budget that costs ``learner`` most."""
    rng = np.random.default_rng(seed)
    ways = rng.uniform(LOW, HIGH, (CANDIDATES, 6)).T
    for generation in range(GENERATIONS):
        setting = dict(rounds=rounds, runs=CANDIDATES * RUNS, seed=seed + generation, record=[rounds])
        losses = environment(np.repeat(ways, RUNS, 1), gap, budget, rounds)
        regret = (
            np.asarray(jb.simulate(learner, losses, jb.delays.Fixed(delay), **setting).regret[-1], float)
            .reshape(-1, RUNS)
            .mean(1)
        )
        best = ways[:, np.argsort(-regret)[:KEPT]]
        children = np.stack([gene[rng.integers(0, KEPT, CANDIDATES - KEPT)] for gene in best])
        children += (
            0.3 * 0.8**generation * (HIGH - LOW)[:, None] * rng.normal(size=children.shape) * (rng.random(children.shape) < 0.6)
        )
        ways = np.clip(np.hstack([best, children]), LOW[:, None], HIGH[:, None])
    return best[:, 0]
