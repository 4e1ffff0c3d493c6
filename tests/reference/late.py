"""States that are seen at once, sums of pieces, and room for few: three shapes of late feedback."""

from __future__ import annotations

import math

import numpy as np

from .ftrl import TsallisINF
from .interface import Reference, draw


class StateExp3(Reference):
    """State-EXP3: x ~ exp(-eta L), eta = sqrt(2 log K/(S T + d T)). The loss of a play that led to state s, with x of the play:
    q(s) = sum_a x(a) P(s|a), and L(a) += P(s|a) loss/q(s) for every arm a.

    ``transitions`` None: P(s|a) = (N(a, s) + alpha)/(N(a) + alpha S) of the plays before this one, and x mixed with gamma/K.
    """

    def __init__(self, arms, states, horizon, delay, transitions=None, alpha=0.01, gamma=0.0, scale=1.0):
        super().__init__(arms)
        self.states, self.known, self.alpha, self.gamma = states, transitions, alpha, gamma
        self.eta = scale * math.sqrt(2 * self.log_arms / (states * horizon + delay * horizon))
        self.losses, self.counts = np.zeros(arms), np.zeros((arms, states))
        self.believed, self.state_of = {}, {}

    def act(self, t, outstanding):
        weights = np.exp(-self.eta * (self.losses - self.losses.min()))
        x = (1 - self.gamma) * weights / weights.sum() + self.gamma / self.arms
        smoothed = self.counts + self.alpha
        self.believed[t] = smoothed / smoothed.sum(1, keepdims=True) if self.known is None else np.asarray(self.known)
        return self.remember(t, x)

    def shown(self, t, signal):
        self.state_of[t] = signal
        self.counts[self.played_arm[t], signal] += 1

    def observe(self, t, s, arm, loss):
        p, x, state = self.believed[s], self.probabilities[s], self.state_of[s]
        q = sum(x[a] * p[a, state] for a in range(self.arms))
        for a in range(self.arms):
            self.losses[a] += p[a, state] * loss / q


class CoLo(Reference):
    """Coins B_t of probability 1/(2d + 1), B_1 = 1. B_t = 1: draw I_t from the base; else I_t = I_{t-1}. At the end of a round t with
    B_{t-2d} = 1 and 2d coins 0 since, the base is fed (Z_{t-d} + ... + Z_t)/(2d + 1) as the loss of I_t, Z_r what came in round r.

    ``uniforms(t)`` gives the numbers that decide the coin and the draw of round t.
    """

    def __init__(self, arms, delay, uniforms, base=TsallisINF, **hyperparameters):
        super().__init__(arms)
        self.base, self.delay, self.uniforms = base(arms, **hyperparameters), delay, uniforms
        self.coins, self.came, self.clock = [], [], 1

    def act(self, t, outstanding):
        first, second = self.uniforms(t)
        self.coins.append(t == 1 or first < 1 / (2 * self.delay + 1))
        self.came.append(0.0)
        if self.coins[-1]:
            self.arm = draw(self.base.act(self.clock, []), second)
            self.base.played(self.clock, self.arm)
        return self.remember(t, np.eye(self.arms)[self.arm])

    def observe(self, t, s, arm, loss):
        self.came[-1] += loss

    def end(self, t, outstanding):
        d = self.delay
        if t > 2 * d and self.coins[t - 2 * d - 1] and not any(self.coins[t - 2 * d :]):
            self.base.observe(self.clock, self.clock, self.arm, sum(self.came[t - d - 1 :]) / (2 * d + 1))
            self.base.end(self.clock, [])
            self.clock += 1


class LimitedTracking(Reference):
    """Round t is tracked if fewer than C rounds are, and a coin of p = min(1, C/(8(H + 1))) says so; the loss of a tracked play reaches the
    base 1/p times, that of any other never. ``probability`` replaces p; ``weighted`` False: the base averages and takes no weight 1/p.
    """

    def __init__(self, arms, base, capacity, backlog, uniforms, probability=None, weighted=True, **hyperparameters):
        super().__init__(arms)
        self.base, self.capacity, self.uniforms = base(arms, **hyperparameters), capacity, uniforms
        self.chance = min(1, capacity / (8 * (backlog + 1))) if probability is None else probability
        self.weight, self.tracked, self.most = 1 / self.chance if weighted else 1.0, set(), 0

    def act(self, t, outstanding):
        if len(self.tracked) < self.capacity and self.uniforms(t)[0] < self.chance:
            self.tracked.add(t)
            self.most = max(self.most, len(self.tracked))
        return self.remember(t, self.base.act(t, outstanding))

    def force(self, t, x):
        super().force(t, x)
        self.base.force(t, x)

    def played(self, t, arm):
        super().played(t, arm)
        self.base.played(t, arm)

    def shown(self, t, signal):
        self.base.shown(t, signal)

    def observe(self, t, s, arm, loss):
        if s in self.tracked:
            self.tracked.remove(s)
            self.base.observe(t, s, arm, loss * self.weight)

    def end(self, t, outstanding):
        self.base.end(t, outstanding)
