"""Learners for other shapes of late feedback, from the rules as they are told in words and formulas: one run, float64."""

from __future__ import annotations

import math

import numpy as np

from .interface import Reference
from .stochastic import Elimination, IndexLearner, smallest_beta_probabilities


class DelayedUCB(Reference):
    """Vernade, Cappé & Perchet 2017: a conversion arrives late, that there is none is never seen.

    ``curve[a]`` is the probability that a conversion has come a rounds after its play; the last entry holds for ever. At the
    start of round t the play of round s can have come with delays 0 … t - 1 - s. With N_k plays of arm k, Ñ_k the sum of
    these probabilities over them and S_k the conversions seen (rewards 1 - loss): index S_k/Ñ_k + sqrt(N_k/Ñ_k)
    sqrt(β/(2Ñ_k)), β = (1 + ε) log t. An arm without Ñ comes first; ties at random.
    """

    def __init__(self, arms, curve, epsilon=0.0):
        super().__init__(arms)
        self.curve, self.epsilon = list(curve), epsilon
        self.rewards = np.zeros(arms)

    def observe(self, t, s, arm, loss):
        self.rewards[arm] += 1 - loss

    def weights(self, t):
        plays, seen = np.zeros(self.arms), np.zeros(self.arms)
        for s, arm in self.played_arm.items():
            plays[arm] += 1
            seen[arm] += self.curve[min(t - 1 - s, len(self.curve) - 1)]
        return plays, seen

    def index(self, reward, plays, seen, budget):
        return reward / seen + math.sqrt(plays / seen) * math.sqrt(budget / (2 * seen))

    def act(self, t, outstanding):
        plays, seen = self.weights(t)
        budget = (1 + self.epsilon) * math.log(t)
        values = [self.index(self.rewards[i], plays[i], seen[i], budget) if seen[i] > 0 else math.inf for i in range(self.arms)]
        best = np.array(values) == max(values)
        return self.remember(t, best / best.sum())


class DelayedKLUCB(DelayedUCB):
    """The same with the largest q in [θ, 1] such that Ñ (θ log(θ/q) + q - θ) <= β, θ = S/Ñ; θ itself where θ > 1."""

    def index(self, reward, plays, seen, budget):
        mean = reward / seen
        if mean >= 1:
            return mean

        def divergence(q):
            return (mean * math.log(mean / q) if mean else 0.0) + q - mean

        low, high = mean, 1.0
        for _ in range(200):
            middle = (low + high) / 2
            if seen * divergence(middle) <= budget:
                low = middle
            else:
                high = middle
        return high if seen * divergence(1.0) <= budget else low


class OptimisticPessimisticElimination(Elimination):
    """OPSE (Lancewicki et al. 2021 [M]): bounds over all plays of an arm, those that are missing counted as best or as worst.

    n plays, o of them observed with total loss S: lower bound S/n - r (missing plays lost nothing), upper bound
    (S + n - o)/n + r (missing plays lost 1), r = sqrt(2 log T/n). Sweeps over the active arms; before each sweep arm i goes
    if its lower bound is above the smallest upper one.
    """

    def __init__(self, arms, horizon):
        super().__init__(arms, horizon)
        self.plays = np.zeros(arms)

    def played(self, t, arm):
        super().played(t, arm)
        self.plays[arm] += 1

    def act(self, t, outstanding):
        if not any(i > self.last for i in self.active):
            lower, upper = {}, {}
            for i in self.active:
                n = self.plays[i]
                r = math.sqrt(2 * math.log(self.horizon) / n) if n else math.inf
                lower[i] = self.sums[i] / n - r if n else -math.inf
                upper[i] = (self.sums[i] + n - self.counts[i]) / n + r if n else math.inf
            best = min(upper.values())
            self.active = {i for i in self.active if not lower[i] > best}
        return self.one_hot(t, self.next_arm(self.active))


class Forgetful(IndexLearner):
    """Remembers (origin, arm, loss) of all that arrived; ``weight(age)`` says what a play of that age counts."""

    def __init__(self, arms):
        super().__init__(arms)
        self.seen = []

    def observe(self, t, s, arm, loss):
        self.seen.append((s, arm, loss))

    def weight(self, age):
        raise NotImplementedError

    def tally(self, t):
        self.counts, self.sums = np.zeros(self.arms), np.zeros(self.arms)
        for s, arm, loss in self.seen:
            self.counts[arm] += self.weight(t - s)
            self.sums[arm] += self.weight(t - s) * loss

    def act(self, t, outstanding):
        self.tally(t)
        return super().act(t, outstanding)


class SlidingWindowUCB(Forgetful):
    """Garivier & Moulines 2011 [M]: UCB1 on the observed plays of the last W rounds, bonus sqrt(alpha log(min(t, W))/N)."""

    def __init__(self, arms, window, alpha=2.0):
        super().__init__(arms)
        self.window, self.alpha = window, alpha

    def weight(self, age):
        return 1.0 if age <= self.window else 0.0

    def index(self, t, arm):
        return 1 - self.sums[arm] / self.counts[arm] + math.sqrt(self.alpha * math.log(min(t, self.window)) / self.counts[arm])


class DiscountedUCB(Forgetful):
    """Garivier & Moulines 2011 [M]: an observed play of age a counts γ^a, bonus sqrt(alpha log n/N), n = Σ N, at least 1."""

    def __init__(self, arms, discount, alpha=2.0):
        super().__init__(arms)
        self.discount, self.alpha = discount, alpha

    def weight(self, age):
        return self.discount**age

    def index(self, t, arm):
        total = max(self.counts.sum(), 1.0)
        return 1 - self.sums[arm] / self.counts[arm] + math.sqrt(self.alpha * math.log(total) / self.counts[arm])


class ForgetfulThompson(Forgetful):
    """P(the sample of arm i is the smallest), posterior Beta(1 + Σ w l, 1 + Σ w (1 - l)) [M]."""

    def act(self, t, outstanding):
        self.tally(t)
        self.posterior = (1 + self.sums, 1 + self.counts - self.sums)
        return self.remember(t, smallest_beta_probabilities(*self.posterior))


class SlidingWindowThompson(ForgetfulThompson):
    def __init__(self, arms, window):
        super().__init__(arms)
        self.window = window

    weight = SlidingWindowUCB.weight


class DiscountedThompson(ForgetfulThompson):
    def __init__(self, arms, discount):
        super().__init__(arms)
        self.discount = discount

    weight = DiscountedUCB.weight


class Censored(Reference):
    """Conversions with a learned delay curve, from the list of all actions.

    Bins of age: edges e_b = round(m (b/16)²), at least b, as far as they differ. An action that is not observed before round t has age
    u = t - s; below m it is open, in the bin with e_b <= u < e_{b+1}; from m on it is closed. Before each action one EM step with the
    curve F and the rates p of the step before: an open action counts as F (1 - p)/(1 - p F) failures. New rates
    (S + 1/2)/(closed + failures of open ones + 1). An open action converts later with weight p (1 - F)/(1 - p F). Hazard of a bin:
    its conversions (plus 1/B) over those of this and later bins plus weights of later bins plus half the weights of this one. F of a bin
    is at its middle (half the hazard), divided by its value after the last bin.
    """

    def __init__(self, arms, window):
        super().__init__(arms)
        self.window = window
        edges = sorted({max(round(window * (b / 16) ** 2), min(b, window)) for b in range(17)})
        self.edges, self.bins = edges, len(edges) - 1
        self.curve, self.rates = [(b + 0.5) / self.bins for b in range(self.bins)], [0.5] * arms
        self.seen = {}  # play -> (loss, delay)

    def observe(self, t, s, arm, loss):
        self.seen[s] = (loss, t - s)

    def bin(self, age):
        return min(sum(age >= edge for edge in self.edges[1:]), self.bins - 1)

    def posterior(self, t):
        """Rewards and failures of each arm before round t."""
        open_ones = [(arm, self.bin(t - s)) for s, arm in self.played_arm.items() if s not in self.seen and t - s < self.window]
        rewards, closed = np.zeros(self.arms), np.zeros(self.arms)
        for s, arm in self.played_arm.items():
            closed[arm] += s in self.seen or t - s >= self.window
            rewards[arm] += 1 - self.seen[s][0] if s in self.seen else 0.0

        def failures():
            found = np.zeros(self.arms)
            for arm, b in open_ones:
                found[arm] += self.curve[b] * (1 - self.rates[arm]) / (1 - self.rates[arm] * self.curve[b])
            return found

        self.rates = np.clip((rewards + 0.5) / (closed + failures() + 1), 0, 1 - 1e-6)
        weights, conversions = np.zeros(self.bins), np.full(self.bins, 1 / self.bins)
        for arm, b in open_ones:
            weights[b] += self.rates[arm] * (1 - self.curve[b]) / (1 - self.rates[arm] * self.curve[b])
        for loss, delay in self.seen.values():
            conversions[self.bin(delay)] += loss < 1
        survival, middles = 1.0, []
        for b in range(self.bins):
            hazard = conversions[b] / (conversions[b:].sum() + weights[b + 1 :].sum() + weights[b] / 2)
            hazard = min(hazard, 1.0)
            middles.append(survival * (1 - hazard / 2))
            survival *= 1 - hazard
        self.curve = [min((1 - one) / max(1 - survival, 1e-6), 1.0) for one in middles]
        return rewards, np.maximum(closed - rewards, 0) + failures()


class CensoredThompson(Censored):
    def act(self, t, outstanding):
        rewards, failures = self.posterior(t)
        return self.remember(t, smallest_beta_probabilities(1 + failures, 1 + rewards))


class CensoredKLUCB(Censored):
    """The arm with the largest q such that N kl(S/N, q) <= alpha log t, N = S + failures; arms with N = 0 first, ties at random."""

    def __init__(self, arms, window, alpha=1.0):
        super().__init__(arms, window)
        self.alpha = alpha

    def act(self, t, outstanding):
        values = []
        for good, bad in zip(*self.posterior(t)):
            total = good + bad
            values.append(largest_mean(good / total, self.alpha * math.log(t) / total) if total > 0 else math.inf)
        best = np.array(values) >= max(values) - 1e-12
        return self.remember(t, best / best.sum())


def largest_mean(mean, level):
    """The largest q in [mean, 1] with kl(mean, q) <= level, by bisection."""

    def divergence(q):
        return (mean * math.log(mean / q) if mean > 0 else 0.0) + (
            (1 - mean) * math.log((1 - mean) / (1 - q)) if mean < 1 else 0.0
        )

    low, high = mean, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        if middle >= 1 or divergence(middle) > level:
            high = middle
        else:
            low = middle
    return low
