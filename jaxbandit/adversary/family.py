"""A structured family of loss tables, as genomes that evolution recombines and mutates.

A table has three phases: before ``onset``, between, and from ``offset`` on. In each phase the best arm leads by a gap that moves in a
straight line (a ramp), around a level. Between onset and offset the arms alternate in blocks: in turn or at random, over a whole block or
a burst at its beginning, with blocks of equal length or of lengths that grow geometrically.
"""

from typing import NamedTuple

import numpy as np


class Gene(NamedTuple):
    """One number of a genome: its range, its mutation step, and whether the step is relative."""

    low: float
    high: float
    step: float
    relative: bool = False


def genes(rounds: int, num_arms: int) -> dict[str, Gene]:
    """Every number of a genome by name, in order."""
    unit, gap = Gene(0.0, 1.0, 0.15), Gene(-1.0, 1.0, 0.1)
    return {
        "block": Gene(1.0, float(rounds), 0.3, True),  # rounds
        "phase": unit,  # of two blocks
        "growth": Gene(1.0, 4.0, 0.2),  # ratio of the lengths of two blocks; below 1.05: all equal
        "amplitude": unit,
        "random": unit,  # the share of blocks whose losses are drawn at random
        "duty": unit,  # the share of a block over which the arms differ
        "cycle": Gene(2.0, float(num_arms), 1.0),  # one arm in so many has the smaller loss
        "onset": Gene(0.0, float(rounds), 0.1 * rounds),
        "offset": Gene(0.0, float(rounds), 0.1 * rounds),
        **{
            f"gap {place}": gap for place in range(6)
        },  # at the beginning and end of each phase; positive: arm 0 has smaller losses
        **{f"level {place}": unit for place in range(3)},
        "pattern": Gene(0.0, 2.0**20, 2.0**20),  # of the random blocks
    }


def drawn(rng: np.random.Generator, count: int, delay: float, rounds: int, num_arms: int) -> np.ndarray:
    """Random genomes ``[count, G]``. Half of the block lengths are near multiples of the delay."""

    def choice(values: list[float], weights: list[float]) -> np.ndarray:
        return rng.choice(values, count, p=weights)

    matched = (delay + 1) * np.exp(rng.uniform(-0.7, 2, count))
    free = np.exp(rng.uniform(0, np.log(max(rounds / 4, 2)), count))
    onset, offset = np.sort(rng.random((2, count)), 0) * rounds
    gaps = rng.choice([0.0, 0.02, 0.05, 0.1, 0.3, 1.0], (6, count)) * rng.choice([-1, 1], (6, count), p=[0.35, 0.65])
    ramps = rng.random((3, count)) < 0.3
    gaps[1::2] = np.where(ramps, gaps[1::2], gaps[::2])
    level = choice([0.5, 0.7, 0.3, 0.9], [0.55, 0.15, 0.15, 0.15])
    levels = np.where(rng.random((3, count)) < 0.8, level, rng.random((3, count)))
    # Half of them alternate fully from the first round to the last, in turn or at random, around one small gap: such tables cost every
    # learner about √((d + 1)T).
    plain = rng.random(count) < 0.5
    small = rng.choice([0.0, 0.01, 0.02, 0.05], count)
    columns = [
        np.where(rng.random(count) < 0.5, matched, free),
        rng.random(count),
        np.where(plain | (rng.random(count) < 0.8), 1.0, rng.uniform(1.1, 3, count)),
        np.where(plain, 1.0, choice([1.0, 0.5, 0.2, 0.0], [0.6, 0.2, 0.1, 0.1])),
        choice([0.0, 1.0, 0.5], [0.4, 0.4, 0.2]),
        np.where(plain, 1.0, choice([1.0, 0.5, 0.2], [0.8, 0.1, 0.1])),
        rng.integers(2, num_arms + 1, count),
        np.where(plain | (rng.random(count) < 0.4), 0, onset),
        np.where(plain | (rng.random(count) < 0.4), rounds, offset),
        *np.where(plain, small, gaps),
        *np.where(plain, 0.5, levels),
        rng.integers(1 << 20, size=count),
    ]
    return _within(np.stack(columns, 1).astype(float), genes(rounds, num_arms))


def bred(rng: np.random.Generator, elite: np.ndarray, count: int, rounds: int, num_arms: int) -> np.ndarray:
    """Children ``[count, G]``: each number is of one of two parents, and about a third of them are mutated."""
    known = genes(rounds, num_arms)
    parents = elite[rng.integers(len(elite), size=(2, count))]
    child = np.where(rng.random((count, len(known))) < 0.6, *parents)
    step = rng.normal(size=child.shape) * rng.choice([1.0, 0.3], (count, 1)) * [gene.step for gene in known.values()]
    relative = np.array([gene.relative for gene in known.values()])
    moved = np.where(relative, child * np.exp(np.where(relative, step, 0)), child + step)
    moved[:, -1] = rng.integers(1 << 20, size=count)
    return _within(np.where(rng.random(child.shape) < 0.35, moved, child), known)


def _within(genomes: np.ndarray, known: dict[str, Gene]) -> np.ndarray:
    return np.clip(genomes, [gene.low for gene in known.values()], [gene.high for gene in known.values()])


def rendered(genomes: np.ndarray, rounds: int, num_arms: int) -> np.ndarray:
    """The tables ``[T, N, K]`` of genomes ``[N, G]``."""
    named = dict(zip(genes(rounds, num_arms), np.asarray(genomes).T, strict=True))
    t = np.arange(rounds)[:, None]
    on, off = named["onset"], np.maximum(named["onset"], named["offset"])
    inside = (t >= on) & (t < off)
    place = np.where(t < on, 0, np.where(t < off, 1, 2))
    each = np.arange(len(genomes))
    # The progress of a phase, from 0 to 1.
    begin, end = np.stack([0 * on, on, off]), np.stack([on, off, 0 * off + rounds])
    share = (t - begin[place, each]) / np.maximum(end[place, each] - begin[place, each], 1)
    ends = np.stack([named[f"gap {n}"] for n in range(6)])
    gap = (1 - share) * ends[2 * place, each] + share * ends[2 * place + 1, each]
    level = np.stack([named[f"level {n}"] for n in range(3)])[place, each]
    block, since = _block(np.maximum(t - on, 0), named)
    differs = inside & (since <= named["duty"])
    coin = _hashed(block, num_arms, named["pattern"]) / 2.0**32 < named["random"]
    tables = np.empty((rounds, len(genomes), num_arms), np.float32)
    for arm in range(num_arms):
        in_turn = (block + arm) % np.floor(named["cycle"]).astype(np.int64) != 0
        up = np.where(coin, _hashed(block, arm, named["pattern"]) & 1, in_turn)
        swing = np.where(differs, named["amplitude"] * (up - 0.5), 0)
        tables[..., arm] = np.clip(level + swing + gap * (-0.5 if arm == 0 else 0.5), 0, 1)
    return tables


def _block(since_onset: np.ndarray, named: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The number of the block of each round, and its progress, from 0 to 1."""
    at = since_onset / named["block"]
    growing = named["growth"] >= 1.05
    rate = np.log(np.where(growing, named["growth"], 2))
    at = np.where(growing, np.log1p(at * np.expm1(rate)) / rate, at) + 2 * named["phase"]
    block = np.floor(at)
    return block.astype(np.int64), at - block


def _hashed(block: np.ndarray, arm: int, pattern: np.ndarray) -> np.ndarray:
    """32 well mixed bits of a block, an arm and a pattern; the same on every machine."""
    bits = block.astype(np.uint32) * np.uint32(0x9E3779B1) + np.uint32(arm * 0x85EBCA77 % 2**32)
    bits = bits + pattern.astype(np.uint32) * np.uint32(0xC2B2AE3D)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        bits = (bits ^ (bits >> np.uint32(shift))) * np.uint32(factor)
    return bits ^ (bits >> np.uint32(16))
