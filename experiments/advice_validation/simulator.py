"""Learners and delayed conversions in NumPy, written without the library: the truth against which advice is measured.

Time is continuous, and each run has its own times of decisions. Feedback of an action is known before the first decision after it
arrives. Runs with different constants of a learner are computed together.
"""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Environment:
    """Arms with conversion rates, delays by arm and outcome, and rewards; times are in days."""

    rates: np.ndarray  # [K] probability of a conversion at any time
    medians: np.ndarray  # [K] of the lognormal delays of conversions
    spreads: np.ndarray  # [K] standard deviations of their logarithms
    failures: np.ndarray  # [K] medians of the lognormal delays of failures; inf: known when the window closes
    values: np.ndarray  # [K, N] rewards of conversions in [0, 1], each with the same probability
    window: float
    horizon: float  # days
    rounds: int

    def draw(self, random, arms):
        """Rewards and delays of one action of each of ``arms [...]``: the outcome is known when the window closes, or before."""
        spread = np.exp(self.spreads[arms] * random.normal(size=arms.shape))
        converts = random.uniform(size=arms.shape) < self.rates[arms]
        delays = np.where(converts, self.medians[arms], self.failures[arms]) * spread
        values = self.values[arms, random.integers(self.values.shape[1], size=arms.shape)]
        return np.where(converts & (delays <= self.window), values, 0.0), np.minimum(delays, self.window)

    def times(self, random, rounds, runs):
        """The times ``[rounds, runs]`` of the decisions, ascending."""
        return np.sort(random.uniform(0, self.horizon * rounds / self.rounds, (rounds, runs)), 0)


class Uniform:
    """Chooses arms ``[runs]``; is given each action with the round before which its outcome is known, and the round that begins."""

    def __init__(self, arms, runs):
        self.shape, self.each = (arms, runs), np.arange(runs)

    def choose(self, random, t):
        return random.integers(self.shape[0], size=self.shape[1])

    def played(self, t, arms, losses, due):
        pass

    def begin(self, t):
        pass


class Counting(Uniform):
    """Number and sum of losses of the observed actions of each arm; ``calendar [T + 2, 2, K, runs]`` has those of the future."""

    def __init__(self, arms, runs, rounds):
        super().__init__(arms, runs)
        self.count, self.lost = np.zeros((2, arms, runs))
        self.calendar = np.zeros((rounds + 2, 2, arms, runs), np.float32)

    def played(self, t, arms, losses, due):
        self.calendar[due, 0, arms, self.each] += self.weight(t)
        self.calendar[due, 1, arms, self.each] += losses * self.weight(t)

    def weight(self, t):
        return 1.0

    def begin(self, t):
        self.count += self.calendar[t, 0]
        self.lost += self.calendar[t, 1]


class Thompson(Counting):
    def choose(self, random, t):
        scale = 1 / self.weight(t)
        lost, count = self.lost * scale, self.count * scale
        return random.beta(1 + np.maximum(lost, 0), 1 + np.maximum(count - lost, 0)).argmin(0)


class DiscountedThompson(Thompson):
    def __init__(self, arms, runs, rounds, discount):
        super().__init__(arms, runs, rounds)
        self.discount = discount

    def weight(self, t):
        return self.discount**-t


class Index(Counting):
    """The arm with the smallest lower bound; unobserved arms first, ties at random."""

    def __init__(self, arms, runs, rounds, alpha):
        super().__init__(arms, runs, rounds)
        self.alpha = alpha

    def choose(self, random, t):
        return smallest(random, self.count, self.lost, self.alpha * np.log(t), self.bound)


def smallest(random, count, lost, level, bound):
    known = count > 0
    safe = np.where(known, count, 1)
    found = np.where(known, bound(np.where(known, np.clip(lost / safe, 0, 1), 0.5), level / safe), -np.inf)
    ties = found <= found.min(0)
    return np.where(ties, random.uniform(size=ties.shape), -1).argmax(0)


class UCB1(Index):
    @staticmethod
    def bound(mean, level):
        return mean - np.sqrt(level)


class KLBound:
    """The smallest q with kl(mean, q) <= level: Newton's method in y = log(q / mean), in which the divergence is convex.

    It starts from the solution of the round before, and repeats only where a step was above 1e-4: the error is of its square.
    """

    def __init__(self):
        self.y = None

    def __call__(self, mean, level):
        shape, mean, level = mean.shape, np.maximum(mean.ravel(), 1e-12), level.ravel()
        rest = 1 - mean
        entropy = rest * np.log(np.maximum(rest, 1e-300))
        lowest = (entropy - level) / mean  # kl >= entropy - mean y, so that kl >= level there
        y = self.y = lowest.copy() if self.y is None else np.clip(self.y, lowest, 0)
        left = slice(None)
        for _ in range(60):
            m, q = mean[left], mean[left] * np.exp(y[left])
            divergence = entropy[left] - m * y[left] - rest[left] * np.log1p(-np.minimum(q, 1 - 1e-16))
            step = (divergence - level[left]) / np.minimum((q - m) / np.maximum(1 - q, 1e-16), -1e-12)
            y[left] = np.clip(y[left] - step, lowest[left], 0)
            left = np.arange(len(mean))[left][np.abs(step) > 1e-4]
            if not len(left):
                break
        return (mean * np.exp(y)).reshape(shape)


class KLUCB(Index):
    def __init__(self, arms, runs, rounds, alpha):
        super().__init__(arms, runs, rounds, alpha)
        self.bound = KLBound()


class TsallisINF(Uniform):
    """The 1/2-Tsallis entropy with the reduced-variance loss estimator."""

    def __init__(self, arms, runs, rounds, scale):
        super().__init__(arms, runs)
        self.scale, self.total = scale, np.zeros((arms, runs))
        self.calendar = np.zeros((rounds + 2, arms, runs), np.float32)

    def choose(self, random, t):
        rate = self.scale * np.sqrt(t) / 2
        above = self.total - self.total.min(0)
        level = np.full(self.shape[1], 1.0) * rate  # the sum of the probabilities is 1 or more there, and falls with the level
        for _ in range(30):
            root = rate / (above + level)
            step = ((root**2).sum(0) - 1) / (2 * (root**2 / (above + level)).sum(0))
            level = level + step
            if np.abs(step / level).max() < 1e-9:
                break
        x = (rate / (above + level)) ** 2
        self.x = x / x.sum(0)
        return (np.cumsum(self.x, 0) < random.uniform(size=self.shape[1])).sum(0).clip(0, self.shape[0] - 1)

    def played(self, t, arms, losses, due):
        base = np.where(self.x >= 16.0 / t, 0.5, 0.0)
        found = base.copy()
        found[arms, self.each] += (losses - base[arms, self.each]) / self.x[arms, self.each]
        self.calendar[due, :, self.each] += found.T

    def begin(self, t):
        self.total += self.calendar[t]


def age_edges(window, bins=16):
    """The edges of the bins of age of the learned delay curve, in rounds: squares, so that short delays are resolved."""
    squares = [max(round(window * (i / bins) ** 2), min(i, window)) for i in range(bins + 1)]
    return np.array(sorted(set(squares)))


class Censored(Uniform):
    """Outstanding actions by age and arm, and one step of the EM algorithm for rates and the delay curve before each decision.

    Ages are in rounds, in bins with the edges ``edges``.
    """

    def __init__(self, arms, runs, rounds, window):
        super().__init__(arms, runs)
        self.window = window
        self.edges = age_edges(window)
        bins = len(self.edges) - 1
        self.arm, self.due = np.zeros((rounds + 1, runs), int), np.zeros((rounds + 1, runs), np.int32)
        self.reward = np.zeros((rounds + 1, runs))
        self.open, self.closed, self.gain = np.zeros((bins, arms, runs)), np.zeros((arms, runs)), np.zeros((arms, runs))
        self.delays, self.rates = np.zeros((bins, runs)), np.full((arms, runs), 0.5)
        self.arrived = np.repeat((np.arange(bins)[:, None] + 0.5) / bins, runs, 1)

    def played(self, t, arms, losses, due):
        self.arm[t], self.due[t], self.reward[t] = arms, due, 1 - losses
        self.open[0, arms, self.each] += 1

    def begin(self, t):
        """Feedback that is known before round t; then the outstanding actions are one round older."""
        first = max(t - 2 * self.window, 0)
        ages, runs = np.nonzero(self.due[first:t] == t)
        played = first + ages
        delay, arms, reward = t - 1 - played, self.arm[played, runs], self.reward[played, runs]
        place = np.searchsorted(self.edges, delay, side="right") - 1
        inside = delay < self.window
        np.subtract.at(self.open, (place[inside], arms[inside], runs[inside]), 1)
        np.add.at(self.closed, (arms[inside], runs[inside]), 1)
        np.add.at(self.gain, (arms, runs), reward)
        hit = reward > 0
        np.add.at(self.delays, (np.minimum(place[hit], len(self.delays) - 1), runs[hit]), 1)
        rows = t - self.edges[1:]
        place, runs = np.nonzero((self.due[np.maximum(rows, 0)] > t) & (rows >= 1)[:, None])
        arms = self.arm[rows[place], runs]
        self.open[place, arms, runs] -= 1
        last = place == len(self.open) - 1
        self.closed[arms[last], runs[last]] += 1
        self.open[place[~last] + 1, arms[~last], runs[~last]] += 1

    def expected(self):
        """Rewards and expected failures ``[K, runs]`` after one step of the EM algorithm."""
        before = self.arrived[:, None]
        failed = (self.open * (before * (1 - self.rates) / (1 - self.rates * before))).sum(0)
        rates = self.rates = np.clip((self.gain + 0.5) / (self.closed + failed + 1), 0, 1 - 1e-6)
        to_come = (self.open * (rates * (1 - before) / (1 - rates * before))).sum(1)
        found = self.delays + 1 / len(self.delays)
        later = np.cumsum((found + to_come)[::-1], 0)[::-1] - (found + to_come)
        hazard = np.clip(found / (found + later + to_come / 2), 0, 1)
        left = np.cumprod(1 - hazard, 0)
        start = np.concatenate([np.ones((1, self.shape[1])), left[:-1]])
        self.arrived = before = np.clip((1 - start * (1 - hazard / 2)) / np.maximum(1 - left[-1], 1e-6), 0, 1)
        before = before[:, None]
        open_failures = (self.open * (before * (1 - rates) / (1 - rates * before))).sum(0)
        return self.gain, np.maximum(self.closed - self.gain, 0) + open_failures


class CensoredThompson(Censored):
    def choose(self, random, t):
        rewards, failures = self.expected()
        return random.beta(1 + failures, 1 + rewards).argmin(0)


class CensoredKLUCB(Censored):
    def __init__(self, arms, runs, rounds, window, alpha):
        super().__init__(arms, runs, rounds, window)
        self.alpha, self.bound = alpha, KLBound()

    def choose(self, random, t):
        rewards, failures = self.expected()
        return smallest(random, rewards + failures, failures, self.alpha * np.log(t), self.bound)


ALPHAS = {"": 1.0, "alpha = 0.3": 0.3, "alpha = 0.1": 0.1}
LEARNERS = {  # label: constants by their text, and a learner with one of them for each run
    "uniform": ({"": None}, lambda arms, runs, rounds, window, _: Uniform(arms, runs)),
    "thompson": ({"": None}, lambda arms, runs, rounds, window, _: Thompson(arms, runs, rounds)),
    "ucb1": (
        {"": 2.0, "alpha = 0.5": 0.5, "alpha = 0.1": 0.1, "alpha = 0.02": 0.02},
        lambda arms, runs, rounds, window, alpha: UCB1(arms, runs, rounds, alpha),
    ),
    "kl-ucb": (ALPHAS, lambda arms, runs, rounds, window, alpha: KLUCB(arms, runs, rounds, alpha)),
    "discounted-thompson": (
        {"discount = 0.999": 0.999, "discount = 0.9999": 0.9999},
        lambda arms, runs, rounds, window, discount: DiscountedThompson(arms, runs, rounds, discount),
    ),
    "tsallis-inf rv": (
        {"": 1.0, "scale = 0.3": 0.3, "scale = 0.1": 0.1},
        lambda arms, runs, rounds, window, scale: TsallisINF(arms, runs, rounds, scale),
    ),
    "censored-thompson": ({"": None}, lambda arms, runs, rounds, window, _: CensoredThompson(arms, runs, rounds, window)),
    "censored-kl-ucb": (ALPHAS, CensoredKLUCB),
}


def true_means(environment):
    """Mean rewards ``[K]`` of the conversions in time, by their delay distribution."""
    from scipy.special import ndtr

    in_time = ndtr(np.log(environment.window / environment.medians) / environment.spreads)
    return environment.rates * in_time * environment.values.mean(1)


def regrets(environment, label, window, runs, seed):
    """Text of the constants -> regret ``[runs]`` against the best arm over all rounds; ``window`` is in rounds."""
    constants, make = LEARNERS[label]
    random, num_arms, rounds = np.random.default_rng(seed), len(environment.rates), environment.rounds
    total = runs * len(constants)
    each = None if None in constants.values() else np.repeat(list(constants.values()), runs)
    learner, means = make(num_arms, total, rounds, window, each), true_means(environment)
    times, lost = environment.times(random, rounds, total), np.zeros(total)
    apart = 2 * (environment.horizon + environment.window) * np.arange(total)  # so that one search serves all runs
    ordered = (times + apart).T.ravel()
    for t in range(1, rounds + 1):
        arms = learner.choose(random, t)
        lost += means.max() - means[arms]
        rewards, delays = environment.draw(random, arms)
        # The number of decisions until then is the round before which the outcome is known, less 1.
        due = np.searchsorted(ordered, times[t - 1] + delays + apart, side="left") - rounds * np.arange(total) + 1
        learner.played(t, arms, 1 - rewards, due.clip(t + 1))
        learner.begin(t + 1)
    return dict(zip(constants, lost.reshape(len(constants), runs), strict=True))
