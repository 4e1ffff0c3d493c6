"""The interface of a reference learner and the driver that runs one."""

from __future__ import annotations

import math

import numpy as np


class Reference:
    """Interface. Default: remember arm and probability of every play; ignore all feedback; play uniformly."""

    def __init__(self, arms: int):
        self.arms = arms
        self.log_arms = math.log(arms)
        self.probabilities: dict[int, np.ndarray] = {}  # round -> x_t, every x_t ever used
        self.played_arm: dict[int, int] = {}  # round -> I_t

    def act(self, t: int, outstanding: list[int]) -> np.ndarray:
        """Round t starts; ``outstanding`` = sorted s < t with s + d_s >= t. Returns x_t."""
        return self.remember(t, np.full(self.arms, 1.0 / self.arms))

    def played(self, t: int, arm: int) -> None:
        """Arm ``arm`` was drawn in round t."""
        self.played_arm[t] = arm

    def shown(self, t: int, signal: int) -> None:
        """The play of round t shows ``signal``, at once."""

    def observe(self, t: int, s: int, arm: int, loss: float) -> None:
        """At the end of round t the loss of play s arrives (ascending s)."""

    def end(self, t: int, outstanding: list[int]) -> None:
        """After the arrivals of round t; ``outstanding`` = sorted s <= t with s + d_s > t."""

    def remember(self, t: int, x: np.ndarray) -> np.ndarray:
        self.probabilities[t] = np.array(x, dtype=float)
        return self.probabilities[t]

    def force(self, t: int, x: np.ndarray) -> None:
        """Go on as if x_t had been ``x``: loss estimates of this play will use it."""
        self.probabilities[t] = np.array(x, dtype=float)

    def importance_weighted(self, s: int, arm: int, loss: float) -> np.ndarray:
        """l_s / x_{s, I_s} on the played arm, with the probability at play time."""
        estimate = np.zeros(self.arms)
        estimate[arm] = loss / self.probabilities[s][arm]
        return estimate


def draw(probabilities, uniform: float) -> int:
    """Inverse distribution function: the first arm whose cumulative probability exceeds ``uniform`` in [0, 1)."""
    cumulative = 0.0
    for arm, probability in enumerate(probabilities):
        cumulative += probability
        if uniform < cumulative:
            return arm
    return int(np.flatnonzero(np.asarray(probabilities) > 0)[-1])  # the sum fell short of 1 by rounding


def play(learner: Reference, arms, losses, delays, rng=None, probabilities=None, signals=None, pieces=None, rounds=None) -> dict:
    """Run ``learner`` for T rounds: the event queue of all references.

    arms: list of T arms to inject, None to draw from the probabilities with ``rng``, or a callable (t, x) -> arm.
    losses: [T, K], or a callable (t, arm) -> loss (then give ``rounds``).
    delays: T integers or ``math.inf`` (never arrives), or a callable (t, arm, loss) -> delay.
    probabilities: None, or [T, K] from another implementation, used in the loss estimates instead of the learner's own
    x_t. Even on injected arms rounding errors can grow (a smaller x makes a larger estimate makes a smaller x); with
    injected probabilities two implementations can be compared step by step at any horizon.
    signals: None, or [T, K], what a play of each arm would show, or a callable (t, arm) -> signal.
    pieces: None, or the shares of a loss that arrive after 0, 1, ... rounds.
    Returns probabilities [T, K] (the learner's own), sigma [T] (outstanding at the start of each round), arms [T],
    delays [T], learner.
    """
    rounds = len(losses) if rounds is None else rounds
    pending: dict[int, float] = {}  # play -> round at whose end it arrives
    loss_of: dict[int, float] = {}
    history = {"probabilities": [], "sigma": [], "arms": [], "delays": []}
    for t in range(1, rounds + 1):
        outstanding = sorted(pending)  # arrivals were removed at the end of earlier rounds: s + d_s >= t
        x = np.array(learner.act(t, outstanding))
        if probabilities is not None:
            learner.force(t, probabilities[t - 1])
        arm = draw(x, rng.random()) if arms is None else arms(t, x) if callable(arms) else int(arms[t - 1])
        learner.played(t, arm)
        if signals is not None:
            learner.shown(t, int(signals(t, arm) if callable(signals) else signals[t - 1][arm]))
        loss_of[t] = float(losses(t, arm) if callable(losses) else losses[t - 1][arm])
        delay = delays(t, arm, loss_of[t]) if callable(delays) else delays[t - 1]
        pending[t] = t + delay
        for s in sorted(pending):
            if pieces is not None:
                learner.observe(t, s, learner.played_arm[s], pieces[t - s] * loss_of[s])
            elif pending[s] == t:
                learner.observe(t, s, learner.played_arm[s], loss_of[s])
        pending = {s: arrival for s, arrival in pending.items() if arrival != t}
        learner.end(t, sorted(pending))
        row = {"probabilities": x, "sigma": len(outstanding), "arms": arm, "delays": delay}
        for name, value in row.items():
            history[name].append(value)
    return {name: np.array(values) for name, values in history.items()} | {"learner": learner}
