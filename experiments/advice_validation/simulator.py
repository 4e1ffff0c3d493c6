"""Learners and delayed conversions in NumPy, written without the library: the truth against which advice is measured.

Time is continuous. All runs of a learner share the times of the decisions. Feedback of an action is known before the first decision after
it arrives; it waits in a calendar with one page for each decision, ``[T + 1, K, runs]``.
"""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Environment:
    """Arms with conversion rates, delays of conversions, and rewards; times are in days."""

    rates: np.ndarray  # [K] probability of a conversion at any time
    medians: np.ndarray  # [K] of the lognormal delays of conversions
    spreads: np.ndarray  # [K] standard deviations of their logarithms
    values: np.ndarray  # [K, N] rewards of conversions in [0, 1], each with the same probability
    window: float
    horizon: float  # days
    rounds: int

    def draw(self, random, arms):
        """Rewards and delays of one action of each of ``arms [...]``: no conversion in time is known when the window closes."""
        delays = self.medians[arms] * np.exp(self.spreads[arms] * random.normal(size=arms.shape))
        converts = (random.uniform(size=arms.shape) < self.rates[arms]) & (delays <= self.window)
        values = self.values[arms, random.integers(self.values.shape[1], size=arms.shape)]
        return np.where(converts, values, 0.0), np.where(converts, delays, self.window)

    def times(self, random, rounds=None):
        """The times of the decisions, ascending."""
        rounds = rounds or self.rounds
        return np.sort(random.uniform(0, self.horizon * rounds / self.rounds, rounds))


class Uniform:
    def __init__(self, arms, runs):
        self.shape = (arms, runs)

    def choose(self, random, t):
        return random.integers(self.shape[0], size=self.shape[1]), None

    def feedback(self, t, arms, losses, extra):
        return np.zeros((0, *self.shape))

    def receive(self, page):
        pass


class Counting(Uniform):
    """Number and sum of losses of the observed actions of each arm."""

    def __init__(self, arms, runs):
        super().__init__(arms, runs)
        self.count, self.lost = np.zeros((2, arms, runs))

    def feedback(self, t, arms, losses, extra):
        found = np.zeros((2, *self.shape))
        each = np.arange(self.shape[1])
        found[0, arms, each], found[1, arms, each] = 1, losses
        return found

    def receive(self, page):
        self.count += page[0]
        self.lost += page[1]


class Thompson(Counting):
    def __init__(self, arms, runs, discount=1.0):
        super().__init__(arms, runs)
        self.discount = discount

    def choose(self, random, t):
        scale = self.discount**t
        lost, count = self.lost * scale, self.count * scale
        return random.beta(1 + np.maximum(lost, 0), 1 + np.maximum(count - lost, 0)).argmin(0), None

    def feedback(self, t, arms, losses, extra):
        return super().feedback(t, arms, losses, extra) * self.discount**-t


class Index(Counting):
    """The arm with the smallest lower bound; unobserved arms first, ties at random."""

    def __init__(self, arms, runs, alpha):
        super().__init__(arms, runs)
        self.alpha = alpha

    def choose(self, random, t):
        known = self.count > 0
        safe = np.where(known, self.count, 1)
        bound = np.where(known, self.bound(self.lost / safe, self.alpha * np.log(t) / safe), -np.inf)
        ties = bound <= bound.min(0)
        return np.where(ties, random.uniform(size=self.shape), -1).argmax(0), None


class UCB1(Index):
    def bound(self, mean, level):
        return mean - np.sqrt(level)


class KLUCB(Index):
    def bound(self, mean, level):
        """The smallest q with kl(mean, q) <= level, by bisection."""
        low, high = np.zeros(self.shape), mean.copy()
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(26):
                q = (low + high) / 2
                divergence = np.where(mean > 0, mean * np.log(mean / q), 0) + np.where(
                    mean < 1, (1 - mean) * np.log((1 - mean) / (1 - q)), 0
                )
                low, high = np.where(divergence > level, q, low), np.where(divergence > level, high, q)
        return high


class TsallisINF(Uniform):
    """The 1/2-Tsallis entropy with the reduced-variance loss estimator."""

    def __init__(self, arms, runs, scale=1.0):
        super().__init__(arms, runs)
        self.scale, self.total, self.start = scale, np.zeros((arms, runs)), None

    def choose(self, random, t):
        rate = self.scale * np.sqrt(t) / 2
        above = self.total - self.total.min(0)
        level = np.full(self.shape[1], rate)  # the sum of the probabilities is 1 or more there, and falls with the level
        for _ in range(30):
            root = rate / (above + level)
            step = ((root**2).sum(0) - 1) / (2 * (root**2 / (above + level)).sum(0))
            level = level + step
            if np.abs(step).max() < 1e-9 * level.min():
                break
        x = (rate / (above + level)) ** 2
        x /= x.sum(0)
        return (np.cumsum(x, 0) < random.uniform(size=self.shape[1])).sum(0).clip(0, self.shape[0] - 1), x

    def feedback(self, t, arms, losses, x):
        base = np.where(x >= 16.0 / t, 0.5, 0.0)
        each = np.arange(self.shape[1])
        found = base.copy()
        found[arms, each] += (losses - base[arms, each]) / x[arms, each]
        return found[None]

    def receive(self, page):
        self.total += page[0]


LEARNERS = {
    ("uniform", ""): lambda arms, runs: Uniform(arms, runs),
    ("thompson", ""): lambda arms, runs: Thompson(arms, runs),
    **{("ucb1", text): lambda arms, runs, a=a: UCB1(arms, runs, a) for text, a in
       (("", 2.0), ("alpha = 0.5", 0.5), ("alpha = 0.1", 0.1), ("alpha = 0.02", 0.02))},
    **{("kl-ucb", text): lambda arms, runs, a=a: KLUCB(arms, runs, a) for text, a in
       (("", 1.0), ("alpha = 0.3", 0.3), ("alpha = 0.1", 0.1))},
    **{("discounted-thompson", f"discount = {g:g}"): lambda arms, runs, g=g: Thompson(arms, runs, g) for g in (0.999, 0.9999)},
    **{("tsallis-inf rv", text): lambda arms, runs, c=c: TsallisINF(arms, runs, c) for text, c in
       (("", 1.0), ("scale = 0.3", 0.3), ("scale = 0.1", 0.1))},
}  # fmt: skip


def true_means(environment, samples=400_000):
    """Mean rewards ``[K]`` of the conversions in time, by their delay distribution."""
    from scipy.special import ndtr

    in_time = ndtr(np.log(environment.window / environment.medians) / environment.spreads)
    return environment.rates * in_time * environment.values.mean(1)


def regret(environment, make, runs, seed):
    """The regret ``[runs]`` of a learner against the best arm, over all rounds."""
    random, num_arms = np.random.default_rng(seed), len(environment.rates)
    learner, means = make(num_arms, runs), true_means(environment)
    times, lost, calendar = environment.times(random), np.zeros(runs), None
    each = np.arange(runs)
    for t, now in enumerate(times, 1):
        arms, extra = learner.choose(random, t)
        lost += means.max() - means[arms]
        rewards, delays = environment.draw(random, arms)
        found = learner.feedback(t, arms, 1 - rewards, extra)
        if len(found):
            if calendar is None:
                calendar = np.zeros((len(times) + 1, *found.shape), np.float32)
            due = np.searchsorted(times, now + delays, side="left").clip(t)
            calendar[due, :, :, each] += np.moveaxis(found, -1, 0)
            learner.receive(calendar[t])
    return lost
