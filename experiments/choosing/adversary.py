"""An environment made against Thompson sampling and UCB1: evolution over three phases with piecewise constant means.

All arms are equal at first. Then arm 0 is worse than the others for a short time, and better until the end. Two lengths and three
means are searched. The smaller one of the two regrets is maximised.

    python -m experiments.choosing.adversary                                # K = 4, d = 50, T = 320,000: about a minute
    python -m experiments.choosing.adversary --delay 16 --rounds 2000
"""

import argparse

import numpy as np

import jaxbandit as jb

ARMS = 4
TARGETS = {"Thompson sampling": jb.DelayedThompson(), "UCB1": jb.DelayedUCB1()}
CANDIDATES, RUNS, GENERATIONS, KEPT = 64, 4, 8, 8
# Shares of the horizon of the first two phases; the mean of all arms in the first phase; the means of the others in the second and
# third. Arm 0 has mean 1 in the second phase and 0 in the third.
LOW, HIGH = np.array([0.001, 0.001, 0.0, 0.0, 0.0]), np.array([0.3, 0.3, 1.0, 1.0, 1.0])


def environment(candidates: np.ndarray, rounds: int) -> jb.losses.Switching:
    """The environment of one candidate ``[5]``, or of one candidate per run ``[5, runs]``."""
    first, second, equal, better, last = candidates
    zero = np.zeros_like(equal)
    starts = np.array([1 + zero, 2 + np.floor(rounds * first), 3 + np.floor(rounds * first) + np.floor(rounds * second)], int)
    best = (equal, 1 + zero, zero)
    means = [[arm, *[others] * (ARMS - 1)] for arm, others in zip(best, (equal, better, last), strict=True)]
    return jb.losses.Switching(np.array(means), starts)


def regrets(candidates: np.ndarray, delay: int, rounds: int, seed: int) -> np.ndarray:
    """Mean regret ``[target, candidate]`` of candidates ``[5, n]``."""
    losses, runs = environment(np.repeat(candidates, RUNS, 1), rounds), RUNS * candidates.shape[1]
    setting = dict(rounds=rounds, runs=runs, seed=seed, record=[rounds])
    found = [jb.simulate(one, losses, jb.delays.Fixed(delay), **setting).regret[-1] for one in TARGETS.values()]
    return np.asarray(found, float).reshape(len(TARGETS), -1, RUNS).mean(-1)


def search(delay: int, rounds: int, show: bool = False) -> np.ndarray:
    """The candidate ``[5]`` with the largest smaller regret of the two targets."""
    rng = np.random.default_rng(0)
    shares = np.exp(rng.uniform(np.log(LOW[:2]), np.log(HIGH[:2]), (CANDIDATES, 2)))
    candidates = np.hstack([shares, rng.random((CANDIDATES, 3))]).T
    best = candidates
    for generation in range(GENERATIONS):
        found = regrets(candidates, delay, rounds, 1000 + generation)
        order = np.argsort(-found.min(0))[:KEPT]
        best = candidates[:, order]
        if show:
            regret = {name: f"{value:.0f}" for name, value in zip(TARGETS, found[:, order[0]], strict=True)}
            print(f"generation {generation}: {best[:, 0].round(4).tolist()}: regret {regret}")
        parents = np.stack([gene[rng.integers(0, KEPT, CANDIDATES - KEPT)] for gene in best])
        width = 0.3 * 0.8**generation
        parents[:2] *= np.exp(2 * width * rng.normal(size=parents[:2].shape))
        parents[2:] += width * rng.normal(size=parents[2:].shape)
        candidates = np.clip(np.hstack([best, parents]), LOW[:, None], HIGH[:, None])
    return best[:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delay", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=320_000)
    options = parser.parse_args()
    search(options.delay, options.rounds, show=True)


if __name__ == "__main__":
    main()
