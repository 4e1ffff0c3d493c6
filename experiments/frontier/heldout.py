"""Families of loss tables that no search uses."""

from typing import Any

import numpy as np


def held_out(cell: dict[str, Any]) -> dict[str, np.ndarray]:
    """Tables ``[T, K]`` by name. Arm 0 is compared with the others, which share their losses unless a family says otherwise."""
    arms, delay, rounds = cell["arms"], cell["delay"], cell["rounds"]
    t = np.arange(rounds)
    rng = np.random.default_rng(0)
    first: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # losses of arm 0, and of the others
    for factor in (2, 4, 8):
        wave = np.sin(2 * np.pi * t / (factor * (delay + 1)))
        for gap in (0.0, 0.05):
            first[f"sine, period {factor}(d + 1), gap {gap}"] = 0.5 + 0.45 * wave - gap / 2, 0.5 - 0.45 * wave + gap / 2
    for share in (0.5, 0.9):
        late = t >= share * rounds
        for gap in (0.1, 1.0):
            side = np.where(late, gap / 2, -gap / 2)
            first[f"switch at {share} T, gap {gap}"] = 0.5 + side, 0.5 - side
    for factor in (3, 10):
        burst = t % (factor * (delay + 1)) < delay + 1
        first[f"bursts, every {factor}(d + 1)"] = np.where(burst, 1.0, 0.4), np.where(burst, 0.0, 0.5)
    for start in (1, 4):
        phase = np.floor(np.log2(t / (start * (delay + 1)) + 1)) % 2
        first[f"doubling phases from {start}(d + 1)"] = phase, 1 - phase
    for end in (0.1, 1.0):
        ramp = np.linspace(-end / 2, end / 2, rounds)
        first[f"ramp to gap {end}"] = 0.5 + ramp, 0.5 - ramp
    tables = {
        name: np.stack([one] + [other] * (arms - 1), 1).astype(np.float32).clip(0, 1) for name, (one, other) in first.items()
    }
    for factor in (0.5, 1, 2):
        size = max(int(factor * (delay + 1)), 1)
        blocks = rng.integers(0, 2, (-(-rounds // size), arms))
        tables[f"random blocks of {size}"] = np.repeat(blocks, size, 0)[:rounds].astype(np.float32)
    for spread in (1, 2):
        turn = t // (spread * (delay + 1)) % arms
        tables[f"each arm best in turn, {spread}(d + 1)"] = (turn[:, None] != np.arange(arms)).astype(np.float32)
    return tables
