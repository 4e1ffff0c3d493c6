"""Exponential weights with delays (section 6)."""

from __future__ import annotations

import math

import numpy as np

from .interface import Reference


class ExponentialWeights(Reference):
    """x_t proportional to exp(-eta_t L_t), L the importance-weighted losses that have arrived; ``rate`` gives eta_t."""

    def __init__(self, arms, scale: float = 1.0):
        super().__init__(arms)
        self.scale = scale  # multiplies eta_t
        self.total = 0  # D_t = sum_{s <= t} sigma_s
        self.loss_estimates = np.zeros(arms)

    def rate(self, t: int) -> float:
        raise NotImplementedError

    def weights(self, t: int) -> np.ndarray:
        weights = np.exp(-self.scale * self.rate(t) * (self.loss_estimates - self.loss_estimates.min()))
        return weights / weights.sum()

    def act(self, t, outstanding):
        self.total += len(outstanding)
        return self.remember(t, self.weights(t))

    def observe(self, t, s, arm, loss):
        self.loss_estimates += self.importance_weighted(s, arm, loss)


class DelayedExponentialWeights(ExponentialWeights):
    """Section 6, DEW (Thune et al. 2019 [M]): eta = min(sqrt(log K/(K T e/2 + D)), 1/(4 e dmax)).

    No cap if dmax = 0. D is the total delay, truncated to the horizon (d_t <= T - t).
    """

    def __init__(self, arms, horizon, total_delay, max_delay, scale: float = 1.0):
        super().__init__(arms, scale)
        self.eta = math.sqrt(self.log_arms / (arms * horizon * math.e / 2 + total_delay))
        if max_delay > 0:
            self.eta = min(self.eta, 1.0 / (4 * math.e * max_delay))

    def rate(self, t):
        return self.eta


class Skipper(DelayedExponentialWeights):
    """Section 6, Skipper(beta): DEW with dmax = beta that uses only feedback with d_s = t - s < beta.

    Reading: ``horizon`` and ``total_delay`` go to DEW unchanged (give the total delay of the plays you want counted).
    """

    def __init__(self, arms, beta, horizon, total_delay, scale: float = 1.0):
        super().__init__(arms, horizon, total_delay, max_delay=beta, scale=scale)
        self.beta = beta

    def observe(self, t, s, arm, loss):
        if t - s < self.beta:
            super().observe(t, s, arm, loss)


class FixedDelayExp3(ExponentialWeights):
    """Section 6, Exp3 with a fixed delay d (Cesa-Bianchi et al. 2016/2019): eta = gamma/(K e (d + 1)), gamma in (0, 1].

    Readings [M]: gamma only sets the rate, nothing is mixed in (x = w/W). Default
    gamma = min(1, K e (d + 1) sqrt(log K/((K + d) T))), i.e. eta = sqrt(log K/((K + d) T)) capped at 1/(K e (d + 1)),
    which gives the published rate sqrt((K + d) T log K).
    """

    def __init__(self, arms, horizon, delay, gamma: float | None = None):
        super().__init__(arms)
        largest = 1.0 / (arms * math.e * (delay + 1))
        if gamma is None:
            gamma = min(1.0, math.sqrt(self.log_arms / ((arms + delay) * horizon)) / largest)
        self.gamma, self.eta = gamma, gamma * largest

    def rate(self, t):
        return self.eta


class DelayedExp3(ExponentialWeights):
    """Section 6, delay-adaptive Exp3: eta_t = sqrt(log K/(K t/2 + D_t)), D_t includes sigma_t."""

    def rate(self, t):
        return math.sqrt(self.log_arms / (self.arms * t / 2 + self.total))


class Exp3(ExponentialWeights):
    """Section 6, Exp3 for losses, anytime: eta_t = sqrt(log K/(t K)); ignores delays [M]."""

    def rate(self, t):
        return math.sqrt(self.log_arms / (t * self.arms))


class Exp3PlusPlus(ExponentialWeights):
    """Section 6, Exp3++ (Seldin & Lugosi 2017; confidence bounds checked against SMPyBandits).

    eta_t = sqrt(log K/(t K))/2, w proportional to exp(-eta_t L_t), x_i = (1 - sum_j eps_j) w_i + eps_i,
    eps_i = min(1/(2K), eta_t, beta log t/(t gap_i^2)) (last term infinite if gap_i = 0),
    gap_i = max(0, LCB_i - min_j UCB_j), UCB_i/LCB_i = m_i +- sqrt(alpha log(t K^{1/alpha})/(2 N_i)) clipped to [0, 1],
    m and N the mean and the number of plain losses observed before round t. L uses l/x with the mixed x.
    Reading: no initial sweep; an unobserved arm has UCB = 1, LCB = 0.
    """

    def __init__(self, arms, alpha: float = 3.0, beta: float = 256.0):
        super().__init__(arms)
        self.alpha, self.beta = alpha, beta
        self.counts, self.sums = np.zeros(arms), np.zeros(arms)

    def rate(self, t):
        return 0.5 * math.sqrt(self.log_arms / (t * self.arms))

    def gaps(self, t):
        lower, upper = np.zeros(self.arms), np.ones(self.arms)
        for i in range(self.arms):
            if self.counts[i]:
                mean = self.sums[i] / self.counts[i]
                radius = math.sqrt(self.alpha * math.log(t * self.arms ** (1 / self.alpha)) / (2 * self.counts[i]))
                lower[i], upper[i] = max(0.0, mean - radius), min(1.0, mean + radius)
        return np.maximum(0.0, lower - upper.min())

    def exploration(self, t):
        largest = min(1 / (2 * self.arms), self.rate(t))
        forced = [math.inf if gap == 0.0 else self.beta * math.log(t) / (t * gap**2) for gap in self.gaps(t)]
        return np.minimum(largest, forced)

    def act(self, t, outstanding):
        epsilon = self.exploration(t)
        return self.remember(t, (1.0 - epsilon.sum()) * self.weights(t) + epsilon)

    def observe(self, t, s, arm, loss):
        super().observe(t, s, arm, loss)
        self.counts[arm] += 1
        self.sums[arm] += loss
