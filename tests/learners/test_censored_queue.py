"""Learned delay curves in the simulator against an event queue in NumPy: mean regrets of two programs that share no code."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import jaxbandit as jb

FOLDER = Path(__file__).parents[2] / "experiments" / "advice_validation"
RATES, WINDOW, ROUNDS = np.array([0.4, 0.3, 0.2]), 40, 400
MEDIANS, SPREADS = np.array([15.0, 2.0, 2.0]), np.array([0.3, 0.5, 0.5])  # of lognormal delays, days


@pytest.mark.thorough
def test_regrets_are_those_of_an_event_queue(monkeypatch):
    """Delays of conversions by arm, failures at the end of the window; one decision each day.

    An outcome after u days is known before the decision ⌈u⌉ rounds later, so that its delay is ⌈u⌉ - 1. Five standard errors reject
    the same learners without outstanding actions.
    """
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    import simulator

    class Daily(simulator.Environment):
        def times(self, random, rounds, runs):
            return np.repeat(np.arange(rounds, dtype=float)[:, None], runs, 1)

    queue = Daily(RATES, MEDIANS, SPREADS, np.full(3, np.inf), np.ones((3, 1)), float(WINDOW), float(ROUNDS), ROUNDS)
    levels = (np.arange(4096) + 0.5) / 4096
    days = MEDIANS[:, None] * np.exp(SPREADS[:, None] * scipy.stats.norm.ppf(levels))
    in_time = days <= WINDOW
    rates = RATES * in_time.mean(1)
    waits = np.stack(
        [np.quantile(np.ceil(one[kept]) - 1, levels, method="inverted_cdf") for one, kept in zip(days, in_time, strict=True)]
    )
    delays = jb.delays.LossDependent(
        no_conversion=jb.delays.Fixed(WINDOW - 1), conversion=jb.delays.EmpiricalByArm(waits.astype(np.int32)), threshold=1.0
    )
    for learner, wrong, label in (
        (jb.CensoredThompson(64), jb.DelayedThompson(), "censored-thompson"),
        (jb.CensoredKLUCB(64, alpha=0.3), jb.KLUCB(alpha=0.3), "censored-kl-ucb"),
    ):
        theirs = simulator.regrets(queue, label, 64, 2000, (7,))["" if label == "censored-thompson" else "alpha = 0.3"]

        def apart(learner, theirs=theirs):
            ours = jb.simulate(learner, jb.losses.Bernoulli(1 - rates), delays, rounds=ROUNDS, runs=4096, seed=3).regret[-1]
            return abs(ours.mean() - theirs.mean()) / np.sqrt(ours.var() / len(ours) + theirs.var() / len(theirs))

        assert apart(learner) < 5
        assert apart(wrong) > 5  # negative control
