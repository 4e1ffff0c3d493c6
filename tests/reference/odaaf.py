"""ODAAF (Pike-Burke, Agrawal, Szepesvári & Grünewälder 2018): only the sum of the rewards that come in each round is seen."""

from __future__ import annotations

import math

import numpy as np

from .interface import Reference


class ODAAF(Reference):
    """Phases m = 1, 2, … with Δ = 2^-m. Each active arm in turn is played until it has n_m plays in all phases, and what comes in
    these rounds, from whatever play, is counted as its own. Then arm j goes if mean_j + Δ/2 < max mean - Δ/2, and an arm that is
    left (the one of best mean) is played n_m - n_{m-1} more rounds, of which nothing is used.

    n_m = Δ^-2 (sqrt(2L) + sqrt(2L + 8ΔL/3 + 6Δ(m + 1)E))², L = log(TΔ²), E the mean delay. Readings: m + 1 in place of the
    formula's m, as their figure has it; L is at least 0 and n_m at least n_{m-1} + 1.
    """

    def __init__(self, arms, horizon, mean_delay):
        super().__init__(arms)
        self.horizon, self.mean_delay = horizon, mean_delay
        self.active, self.done, self.sums = set(range(arms)), np.zeros(arms), np.zeros(arms)
        self.phase, self.length, self.before, self.bridge = 1, self.needed(1, 0), 0, 0
        self.counted = None  # the arm that this round's rewards go to

    def needed(self, m, before):
        gap = 2.0**-m
        log = max(math.log(self.horizon * gap**2), 0)
        root = math.sqrt(2 * log) + math.sqrt(2 * log + 8 * gap * log / 3 + 6 * gap * (m + 1) * self.mean_delay)
        return max(math.ceil((root / gap) ** 2), before + 1)

    def act(self, t, outstanding):
        if self.bridge == 0 and all(self.done[i] >= self.length for i in self.active):
            means, gap = self.sums / np.maximum(self.done, 1), 2.0**-self.phase
            best = max(means[i] for i in self.active)
            self.active = {i for i in self.active if not means[i] + gap / 2 < best - gap / 2}
            before = self.length
            self.phase += 1
            self.length = self.needed(self.phase, before)
            self.bridge, self.before = before - self.before, before
        if self.bridge:
            means = self.sums / np.maximum(self.done, 1)
            self.bridge, self.counted, arm = self.bridge - 1, None, max(self.active, key=lambda i: (means[i], -i))
        else:
            arm = self.counted = min(i for i in self.active if self.done[i] < self.length)
            self.done[arm] += 1
        return self.remember(t, np.eye(self.arms)[arm])

    def observe(self, t, s, arm, loss):
        if self.counted is not None:
            self.sums[self.counted] += 1 - loss
