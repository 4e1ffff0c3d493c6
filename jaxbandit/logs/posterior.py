"""The posterior of rates, rewards and delays given a log: hierarchical, with partial pooling across arms.

Conversion rates of the arms are draws from one Beta distribution whose mean and strength are unknown too. Delays and rewards of the
conversions of an arm are a draw from a Dirichlet process around those of all arms, whose concentration is unknown.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.special

from jaxbandit.logs.dependence import STRENGTHS, pooling, quantiles

PRIOR_STRENGTHS = np.geomspace(1, 1000, 25)  # rows that the rates of the other arms may be worth
_OFFSETS = 5 * np.linspace(-1, 1, 41) ** 3  # of the logit of the prior's mean from that of the pooled rate; dense around 0


class Outcomes(NamedTuple):
    """The rows of a log whose outcome is known."""

    which: np.ndarray  # [n] numbers of the arms
    waits: np.ndarray  # [n] int32, delays in rounds
    lengths: np.ndarray  # [n] int64, delays in nanoseconds
    rewards: np.ndarray  # [n] in [0, 1]
    converted: np.ndarray  # [n] bool: any reward
    weights: np.ndarray  # [n] inverse propensities


class Rates(NamedTuple):
    """The posterior of the conversion rates: a mixture of Beta distributions for each arm, over a grid of priors."""

    conversions: np.ndarray  # [K] effective
    misses: np.ndarray  # [K]
    alphas: np.ndarray  # [G] of the priors on the grid
    betas: np.ndarray  # [G]
    weights: np.ndarray  # [G] their posterior probabilities

    def mean(self) -> np.ndarray:
        """Posterior means ``[K]``."""
        return self.weights @ self._means()

    def deviation(self) -> np.ndarray:
        """Posterior standard deviations ``[K]``."""
        means, total = self._means(), (self.alphas + self.betas)[:, None] + self.conversions + self.misses
        inside = means * (1 - means) / (total + 1)
        return np.sqrt(self.weights @ (inside + means**2) - self.mean() ** 2)

    def _means(self) -> np.ndarray:
        total = (self.alphas + self.betas)[:, None] + self.conversions + self.misses
        return (self.alphas[:, None] + self.conversions) / total

    def draw(self, random: np.random.Generator, count: int) -> np.ndarray:
        """Draws ``[K, count]``."""
        prior = random.choice(len(self.weights), count, p=self.weights)
        return random.beta(
            self.alphas[prior] + self.conversions[:, None], np.maximum(self.betas[prior] + self.misses[:, None], 1e-9)
        )


def effective_rows(outcomes: Outcomes, num_arms: int) -> np.ndarray:
    """How many equally weighted rows of each arm ``[K]`` would have the same standard error."""
    total, squares = (np.bincount(outcomes.which, one, num_arms) for one in (outcomes.weights, outcomes.weights**2))
    return total**2 / np.where(squares > 0, squares, 1)


def fit_rates(outcomes: Outcomes, num_arms: int) -> Rates:
    """The posterior of the conversion rates; the prior's mean is uniform, its strength log-uniform."""
    which, weights = outcomes.which, outcomes.weights
    rows, total = effective_rows(outcomes, num_arms), np.bincount(which, weights, num_arms)
    share = np.bincount(which, weights * outcomes.converted, num_arms) / np.where(total > 0, total, 1)
    conversions, misses = rows * share, rows * (1 - share)
    centre = scipy.special.logit((1 + conversions.sum()) / (2 + rows.sum()))
    mean = scipy.special.expit(centre + _OFFSETS)
    alphas, betas = (np.outer(one, PRIOR_STRENGTHS).ravel() for one in (mean, 1 - mean))
    evidence = scipy.special.betaln(alphas[:, None] + conversions, betas[:, None] + misses).sum(1)
    evidence -= num_arms * scipy.special.betaln(alphas, betas)
    density = np.repeat(np.gradient(_OFFSETS) * mean * (1 - mean), len(PRIOR_STRENGTHS))  # uniform in the mean
    weights = density * np.exp(evidence - evidence.max())
    return Rates(conversions, misses, alphas, betas, weights / weights.sum())


class Draws(NamedTuple):
    """Posterior draws of rates, rewards and delays."""

    rates: np.ndarray  # [K, count] conversion rates
    values: np.ndarray | None  # [K, N, count] rewards of conversions; None: all are 1
    delays: np.ndarray  # [K, N, count] int32, delays of conversions in rounds

    def means(self) -> np.ndarray:
        """Mean losses ``[K, count]``."""
        return 1 - self.rates * (1 if self.values is None else self.values.mean(1))


def draw(outcomes: Outcomes, rates: Rates, random: np.random.Generator, count: int, points: int) -> Draws:
    """``count`` draws from the posterior, with ``points`` quantiles of each distribution."""
    num_arms, hit = len(rates.conversions), outcomes.converted
    which, rewards = outcomes.which[hit], outcomes.rewards[hit]
    drawn = rates.draw(random, count)
    if not len(which):
        return Draws(drawn, None, np.zeros((num_arms, points, count), np.int32) + outcomes.waits.max())
    values = None
    if (rewards != 1).any():
        values = _draw_laws(which, rewards, rewards, random, num_arms, count, points, bin_means)
    levels = (np.arange(points) + 0.5) / points
    delays = _draw_laws(
        which,
        outcomes.waits[hit],
        outcomes.lengths[hit],
        random,
        num_arms,
        count,
        points,
        lambda values, weights, _: quantiles(values, weights, levels),
    )
    return Draws(drawn, values, delays)


def bin_means(values: np.ndarray, weights: np.ndarray, bins: int) -> np.ndarray:
    """The means ``[bins]`` of ``values [n]``, ascending with ``weights [n]``, in bins of equal weight: their mean is exact.

    Differences of sums are rounded, so they are clipped to the range of the values: a reward of 1 stays 1.

    >>> bin_means(np.array([0.0, 1.0, 8.0]), np.ones(3), 2)
    array([0.33333333, 5.66666667])
    """
    below = np.concatenate([[0], np.cumsum(weights)]) / weights.sum()
    integral = np.concatenate([[0], np.cumsum(weights * values)]) / weights.sum()
    return np.clip(bins * np.diff(np.interp(np.linspace(0, 1, bins + 1), below, integral)), values[0], values[-1])


def mean_values(outcomes: Outcomes, num_arms: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean reward of a conversion of each arm, partially pooled, and its standard error, ``[K]`` each."""
    which, rewards = outcomes.which[outcomes.converted], outcomes.rewards[outcomes.converted]
    if (rewards == 1).all():
        return np.ones(num_arms), np.zeros(num_arms)
    count = np.bincount(which, minlength=num_arms)
    worth = pooling(which, rewards, num_arms) @ STRENGTHS
    means = (np.bincount(which, rewards, num_arms) + worth * rewards.mean()) / (count + worth)
    return means, rewards.std() / np.sqrt(count + worth)


def _draw_laws(
    which: np.ndarray,
    values: np.ndarray,
    compared: np.ndarray,
    random: np.random.Generator,
    num_arms: int,
    count: int,
    points: int,
    summary: Callable[[np.ndarray, np.ndarray, int], np.ndarray],
) -> np.ndarray:
    """The distribution of ``values [n]`` in each arm as ``points`` numbers, ``[K, points, count]``.

    The arms are ``compared [n]`` for pooling; ``summary`` makes the numbers of values and weights.
    """
    order = np.argsort(values, kind="stable")
    which, values, compared = which[order], values[order], compared[order]
    strengths = random.choice(STRENGTHS, count, p=pooling(which, compared, num_arms))
    found = np.empty((num_arms, points, count), values.dtype)
    own = which == np.arange(num_arms)[:, None]  # [K, n]
    for index, strength in enumerate(strengths):
        weights = random.gamma(strength / len(values) + own) + 1e-300
        for arm in range(num_arms):
            found[arm, :, index] = summary(values, weights[arm], points)
    return found
