"""Stochastic learners with delays (section 7)."""

from __future__ import annotations

import math

import numpy as np

from .interface import Reference


class Observed(Reference):
    """Counts and sums of the plain losses that have arrived."""

    def __init__(self, arms):
        super().__init__(arms)
        self.counts, self.sums = np.zeros(arms), np.zeros(arms)

    def observe(self, t, s, arm, loss):
        self.counts[arm] += 1
        self.sums[arm] += loss


class IndexLearner(Observed):
    """Plays uniformly among the arms with the largest index; an unobserved arm has index +inf."""

    def index(self, t: int, arm: int) -> float:
        raise NotImplementedError

    def act(self, t, outstanding):
        self.indices = np.array([self.index(t, i) if self.counts[i] else math.inf for i in range(self.arms)])
        best = self.indices == self.indices.max()
        return self.remember(t, best / best.sum())


class DelayedUCB1(IndexLearner):
    """Section 7 (Joulani et al. 2013): mean reward + sqrt(alpha log t/S_i), S_i observed plays, t the current round."""

    def __init__(self, arms, alpha: float = 2.0):
        super().__init__(arms)
        self.alpha = alpha

    def index(self, t, arm):
        return (1.0 - self.sums[arm] / self.counts[arm]) + math.sqrt(self.alpha * math.log(t) / self.counts[arm])


def bernoulli_divergence(p: float, q: float) -> float:
    total = 0.0
    for mass, other in ((p, q), (1.0 - p, 1.0 - q)):
        if mass > 0.0:
            total += math.inf if other <= 0.0 else mass * math.log(mass / other)
    return total


class KLUCB(IndexLearner):
    """Section 7: the largest q in [m, 1] with S_i kl(m, q) <= log t, m the mean of the rewards 1 - loss (bisection)."""

    def __init__(self, arms, alpha: float = 1.0):
        super().__init__(arms)
        self.alpha = alpha  # multiplies log t

    def index(self, t, arm):
        mean = min(max(1.0 - self.sums[arm] / self.counts[arm], 0.0), 1.0)
        low, high = mean, 1.0
        for _ in range(100):
            middle = 0.5 * (low + high)
            if self.counts[arm] * bernoulli_divergence(mean, middle) <= self.alpha * math.log(t):
                low = middle
            else:
                high = middle
        return low


class DelayedThompson(Observed):
    """Section 7: Thompson sampling on losses, posterior Beta(1 + sum l, 1 + sum (1 - l)), arm with the smallest sample.

    ``act`` returns P(sample of arm i is the smallest) = int f_i prod_{j != i} (1 - F_j), by Gauss-Legendre panels.
    ``posterior`` = (alpha [K], beta [K]). Reading: losses inside (0, 1) update both parameters fractionally.
    """

    panels, order = 400, 10

    def act(self, t, outstanding):
        self.posterior = (1.0 + self.sums, 1.0 + self.counts - self.sums)
        return self.remember(t, smallest_beta_probabilities(*self.posterior, self.panels, self.order))


def smallest_beta_probabilities(alpha, beta, panels: int = 400, order: int = 10) -> np.ndarray:
    """P(X_i = min_j X_j) for independent X_j ~ Beta(alpha_j, beta_j), all parameters >= 1."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    # running[n, m]: integral from -1 to node n of the Lagrange polynomial of node m
    legendre = np.polynomial.legendre.legvander(nodes, order - 1)
    antiderivatives = [np.polynomial.legendre.legint(row, lbnd=-1) for row in np.eye(order)]
    integrals = np.stack([np.polynomial.legendre.legval(nodes, row) for row in antiderivatives], axis=1)
    running = integrals @ np.linalg.inv(legendre)
    half = 0.5 / panels
    x = (np.arange(panels)[:, None] + 0.5) / panels + half * nodes  # [panels, order]
    densities, survivals = [], []
    for a, b in zip(alpha, beta):
        constant = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        density = np.exp(constant + (a - 1) * np.log(x) + (b - 1) * np.log1p(-x))
        masses = half * density @ weights
        before = np.concatenate([[0.0], np.cumsum(masses)[:-1]])
        distribution = before[:, None] + half * density @ running.T
        densities.append(density)
        survivals.append(np.clip(1.0 - distribution, 0.0, 1.0))
    result = []
    for i in range(len(densities)):
        others = [survivals[j] for j in range(len(densities)) if j != i]
        result.append(float((half * np.prod([densities[i], *others], axis=0) @ weights).sum()))
    result = np.array(result)
    assert abs(result.sum() - 1.0) < 1e-6, result.sum()
    return result / result.sum()


class Elimination(Observed):
    """Active set, radius sqrt(2 log T/n_obs) (infinite without observations), one-hot probabilities, cyclic order.

    Arm i goes when its lower bound on the loss exceeds the smallest upper bound: m_i - r_i > min_j (m_j + r_j),
    j active (on rewards: UCB_i < max LCB_j).
    """

    def __init__(self, arms, horizon):
        super().__init__(arms)
        self.horizon = horizon
        self.active = set(range(arms))
        self.last = -1  # arm played last

    def eliminate(self):
        lower, upper = {}, {}
        for i in self.active:
            observed = self.counts[i] > 0
            mean = self.sums[i] / self.counts[i] if observed else 0.0
            radius = math.sqrt(2 * math.log(self.horizon) / self.counts[i]) if observed else math.inf
            lower[i], upper[i] = mean - radius, mean + radius
        best = min(upper.values())
        self.active = {i for i in self.active if not lower[i] > best}

    def next_arm(self, eligible) -> int:
        """The first eligible arm after the one played last, cyclically."""
        return min(eligible, key=lambda i: (i <= self.last, i))

    def one_hot(self, t, arm):
        return self.remember(t, np.eye(self.arms)[arm])

    def played(self, t, arm):
        super().played(t, arm)
        self.last = arm


class SuccessiveElimination(Elimination):
    """Section 7 (Lancewicki et al. 2021 [M]): sweeps over the active arms in ascending order.

    check = 'sweep' (default): elimination before each new sweep, from all observations so far. check = 'round':
    elimination before every round, the next active arm in cyclic order.
    """

    def __init__(self, arms, horizon, check: str = "sweep"):
        super().__init__(arms, horizon)
        self.check = check

    def act(self, t, outstanding):
        new_sweep = not any(i > self.last for i in self.active)
        if self.check == "round" or new_sweep:
            self.eliminate()
        return self.one_hot(t, self.next_arm(self.active))


class PhasedElimination(Elimination):
    """Section 7 (Lancewicki et al. 2021 [M]): phase l lasts until each active arm has factor log T 4^l observations.

    Readings: observations count from the start of the game; phases start at l = ``first`` = 1; within a phase only
    the active arms that still lack observations are played, in cyclic order; elimination only at the end of a phase
    (checked at the start of a round); a single active arm is simply played.
    """

    def __init__(self, arms, horizon, factor: float = 16.0, first: int = 1):
        super().__init__(arms, horizon)
        self.factor, self.phase = factor, first

    def act(self, t, outstanding):
        while True:
            needed = self.factor * math.log(self.horizon) * 4.0**self.phase
            lacking = [i for i in self.active if self.counts[i] < needed]
            if len(self.active) == 1:
                lacking = list(self.active)
            if lacking:
                return self.one_hot(t, self.next_arm(lacking))
            self.eliminate()
            self.phase += 1
