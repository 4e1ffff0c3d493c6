"""Estimates of the arms' mean losses from the log of an agent, weighted by propensities."""

from typing import NamedTuple

import numpy as np

SUPPORT = 5.0  # standard errors by which the weights of an arm may miss their expectation


class ArmEstimates(NamedTuple):
    """Weighted estimates of the mean loss of each arm, arrays ``[K]``."""

    arms: list  # names, or numbers
    mean: np.ndarray  # NaN where the propensities do not support an estimate
    error: np.ndarray  # standard error
    low: np.ndarray  # 95% confidence interval
    high: np.ndarray
    answered: np.ndarray  # decisions with feedback

    def __str__(self) -> str:
        lines = [f"{'arm':<16}{'answered':>10}{'mean loss':>11}   95% interval"]
        for arm, mean, low, high, answered in zip(self.arms, self.mean, self.low, self.high, self.answered, strict=True):
            lines.append(f"{arm!s:<16}{answered:>10,}{mean:>11.4f}   [{low:.4f}, {high:.4f}]")
        return "\n".join(lines)


def weighted_means(arm: np.ndarray, propensity: np.ndarray, loss: np.ndarray, before: np.ndarray, num_arms: int) -> np.ndarray:
    """Terms ``[n, K]`` whose mean over the decisions is an unbiased estimate of the arms' mean losses.

    .. math:: \\psi_{t,i} = c_{t,i} + \\frac{1[I_t = i]}{p_t} (\\ell_t - c_{t,i})

    with :math:`c_{t,i}` the mean of the losses of arm i that were known before decision t. It depends on the history alone, so
    it leaves the expectation and lowers the variance. ``before [n]``: in place j, how many of the losses, in the order of
    their arrival, were known at decision j; the arrays are in the order of arrival.
    """
    one_hot = arm[:, None] == np.arange(num_arms)
    sums = np.concatenate([np.zeros((1, num_arms)), np.cumsum(one_hot * loss[:, None], 0)])
    seen = np.concatenate([np.zeros((1, num_arms)), np.cumsum(one_hot, 0)])
    centre = (sums[before] + 0.5) / (seen[before] + 1)
    return centre + one_hot / propensity[:, None] * (loss[:, None] - centre)


def weighted_estimates(columns: dict[str, np.ndarray], arms: list) -> ArmEstimates:
    """From the log of the answered decisions: arm, probability, loss, id, after (the newest decision when the loss arrived)."""
    num_arms = len(arms)
    order = np.argsort(columns["after"], kind="stable")
    arm, propensity, loss, id, after = (columns[name][order] for name in ("arm", "probability", "loss", "id", "after"))
    before = np.searchsorted(after, id, side="left")  # losses that arrived before this decision
    terms = weighted_means(arm.astype(np.int64), propensity, loss, before, num_arms)
    weights = (arm[:, None] == np.arange(num_arms)) / propensity[:, None]
    count = len(arm)
    if count < 2:
        nothing = np.full(num_arms, np.nan)
        return ArmEstimates(arms, nothing, nothing, nothing, nothing, np.bincount(arm.astype(np.int64), minlength=num_arms))
    mean, error = terms.mean(0), terms.std(0, ddof=1) / np.sqrt(count)
    # If an arm can be drawn in every round, its weights have mean 1.
    miss = abs(weights.mean(0) - 1) > SUPPORT * np.maximum(weights.std(0, ddof=1), 1e-12) / np.sqrt(count) + 1e-9
    answered = np.bincount(arm.astype(np.int64), minlength=num_arms)
    mean, error = (np.where(miss | (answered == 0), np.nan, values) for values in (mean, error))
    return ArmEstimates(arms, mean, error, mean - 1.96 * error, mean + 1.96 * error, answered)
