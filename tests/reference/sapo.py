"""Delayed SAPO (Schlisselberg, Lancewicki, Auer & Mansour 2025, Algorithm 5 and Procedures 6 and 7): one run, float64.

Readings where the paper leaves a choice: arms are dropped once a round, after all of its feedback; the bounds of a dropped arm
stay as they were; if all active arms would go, none goes; the fallback starts fresh and sees its own plays alone. Samples of a
round count for every dropped arm, played or not, with the probability the arm had (the table of notation). As printed, the
interval check fails at once for K >= 4: one play with loss 1 has the weighted mean K, above ucb + width <= 3. The proof takes the
check for trivial while the width is 1, so it is not made until then.
"""

from __future__ import annotations

import math

import numpy as np

from .ftrl import ZimmertSeldin
from .interface import Reference


class Dropped:
    """What EAP keeps of one dropped arm."""

    def __init__(self, mean, width, share, constant):
        self.mean, self.gap, self.first = mean, 8 * width, share
        self.length = constant / (share * self.gap**2)  # N of phase 1
        self.level = self.errors = 0  # p = first 2^-level
        self.bank = {}  # level -> samples that were observed and not yet processed
        self.samples = []

    @property
    def probability(self):
        return self.first * 2.0**-self.level

    def process(self, at_once, most_errors, levels) -> bool:
        """Procedure 6; True if the losses look adversarial."""
        while self.bank.get(self.level):
            queue = self.bank[self.level]
            if at_once:
                self.samples += queue
                queue.clear()
            else:
                self.samples.append(queue.pop(0))
            length = self.length * 2.0**self.level
            if len(self.samples) * self.mean - sum(self.samples) >= self.gap * length / 4:
                self.errors += 1
                self.level, self.samples = max(self.level - 1, 0), []
                if self.errors >= most_errors:
                    return True
            elif len(self.samples) >= math.floor(length):
                self.level, self.samples = min(self.level + 1, levels - 1), []
        return False


class DelayedSAPO(Reference):
    def __init__(self, arms, horizon, separation=9.0, phase=1280.0, limit=272.0, at_once=True, levels=16, base=ZimmertSeldin):
        super().__init__(arms)
        self.horizon, self.separation, self.phase, self.limit = horizon, separation, phase, limit
        self.at_once, self.levels = at_once, levels
        self.log_horizon = math.log(horizon)
        self.active = set(range(arms))
        self.dropped: dict[int, Dropped] = {}
        self.counts, self.sums, self.weighted = np.zeros(arms), np.zeros(arms), np.zeros(arms)
        self.lower, self.upper = np.full(arms, -math.inf), np.full(arms, math.inf)
        self.weighted_upper = np.full(arms, math.inf)
        self.size, self.total, self.most_missing = 0, 0.0, 0
        self.level_at: dict[int, dict[int, int]] = {}  # round -> dropped arm -> level
        self.fallback, self.base, self.start = base, None, None

    def width(self, arm):
        return min(1.0, math.sqrt(2 * self.log_horizon / self.counts[arm])) if self.counts[arm] else 1.0

    def best_upper(self):
        return min(self.upper.min(), self.weighted_upper.min())

    def switch(self, t):
        if self.base is None:
            self.base, self.start = self.fallback(self.arms), t

    def act(self, t, outstanding):
        self.most_missing = max(self.most_missing, len(outstanding))
        if self.base is None:
            best = self.best_upper()
            gone = {i for i in self.active if self.mean(i) - self.separation * self.width(i) > best}
            if gone != self.active:
                self.active -= gone
                for i in gone:
                    share = 1 / (2 * self.arms) + self.counts[i] / (2 * self.horizon)
                    self.dropped[i] = Dropped(self.mean(i), self.width(i), share, self.phase)
            for i in sorted(self.dropped):
                if self.dropped[i].process(self.at_once, 3 * self.log_horizon, self.levels):
                    self.switch(t)
        if self.base is not None:
            own = [s - self.start + 1 for s in outstanding if s >= self.start]
            return self.remember(t, self.base.act(t - self.start + 1, own))
        x = np.zeros(self.arms)
        for i, arm in self.dropped.items():
            x[i] = arm.probability
        for i in self.active:
            x[i] = (1 - sum(arm.probability for arm in self.dropped.values())) / len(self.active)
        self.level_at[t] = {i: arm.level for i, arm in self.dropped.items()}
        return self.remember(t, x)

    def mean(self, arm):
        return self.sums[arm] / self.counts[arm] if self.counts[arm] else 0.0

    def played(self, t, arm):
        super().played(t, arm)
        if self.base is not None:
            self.base.played(t - self.start + 1, arm)

    def observe(self, t, s, arm, loss):
        if self.base is not None:
            if s >= self.start:
                self.base.observe(t - self.start + 1, s - self.start + 1, arm, loss)
            return
        self.size += 1
        self.total += loss
        if arm in self.active:
            self.counts[arm] += 1
            self.sums[arm] += loss
            self.weighted[arm] += loss / self.probabilities[s][arm]
        for i, level in self.level_at[s].items():
            weight = loss / self.probabilities[s][i] if i == arm else 0.0
            self.dropped[i].bank.setdefault(level, []).append(weight)
        wide = min(1.0, math.sqrt(2 * self.arms * self.log_horizon / self.size))
        fine = True
        for i in self.active:
            self.upper[i] = min(self.upper[i], self.mean(i) + self.width(i))
            self.lower[i] = max(self.lower[i], self.mean(i) - self.width(i))
            weighted = self.weighted[i] / self.size
            self.weighted_upper[i] = min(self.weighted_upper[i], weighted + wide)
            fine &= wide == 1 or self.lower[i] - wide <= weighted <= self.upper[i] + wide
        most = self.limit * math.sqrt(self.arms * self.horizon * self.log_horizon) + 10 * self.most_missing * self.log_arms
        if not fine or self.total - self.size * self.best_upper() > most:
            self.switch(t + 1)
