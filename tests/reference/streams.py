"""The random numbers of a simulation, in NumPy: Threefry-2x32 (Salmon et al., SC 2011) of purpose, round and run.

Written from the definition of the streams: the key of a purpose is ``fold_in(key, purpose)``, the pair of a round and run is
``fold_in(fold_in(key of the purpose, round), run)``.
"""

from __future__ import annotations

import numpy as np

PLAY, DELAY, LEARNER, LOSS = range(4)
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
Pair = tuple[np.ndarray, np.ndarray]  # two arrays of 32-bit numbers


def threefry(key: Pair, count: Pair) -> Pair:
    """Threefry-2x32 with 20 rounds, in 64-bit integers that are cut to 32 bits after each step."""
    mask = np.uint64(2**32 - 1)
    first, second = (np.asarray(word).astype(np.uint64) for word in key)
    schedule = (first, second, first ^ second ^ np.uint64(0x1BD11BDA))
    x, y = ((np.asarray(word).astype(np.uint64) + part) & mask for word, part in zip(count, schedule))
    for group in range(5):
        for turn in ROTATIONS[group % 2]:
            x = (x + y) & mask
            y = x ^ (((y << np.uint64(turn)) | (y >> np.uint64(32 - turn))) & mask)
        x = (x + schedule[(group + 1) % 3]) & mask
        y = (y + schedule[(group + 2) % 3] + np.uint64(group + 1)) & mask
    return x.astype(np.uint32), y.astype(np.uint32)


def fold_in(key: Pair, number, pair=0) -> Pair:
    """``jax.random.fold_in(key, number)``; ``pair`` is the upper half of the counter, 0 there. Shapes broadcast."""
    return threefry(key, (np.asarray(pair), np.asarray(number)))


def key(seed: int) -> Pair:
    """``jax.random.key(seed)``, for seeds below 2³²."""
    return np.asarray(0), np.asarray(seed)


def numbers(key: Pair, purpose: int, rounds, runs) -> Pair:
    """The two 32-bit numbers of each round and run; shapes broadcast."""
    return fold_in(fold_in(fold_in(key, purpose), rounds), runs)


def uniform(number) -> np.ndarray:
    """A uniform number in (0, 1), in float64: the middle of one of 2³² cells."""
    return (np.asarray(number).astype(float) + 0.5) / 2.0**32
