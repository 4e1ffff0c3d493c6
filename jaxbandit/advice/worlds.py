"""Where the candidates are played: the log as it is, and three ways in which the future may differ from it.

All worlds are phases of constant rates with delays that depend on the loss, of the same shapes, so that each learner is compiled
once. Every run has rates of its own, drawn from what the log leaves open, the same in all worlds.
"""

import dataclasses
from typing import cast

import numpy as np

from jaxbandit.delays import Delays, Empirical, LossDependent
from jaxbandit.logs import Log
from jaxbandit.losses import Switching

PHASES = 16
HARMED = PHASES // 4  # phases in which somebody means harm
POINTS = 1024  # of a recorded distribution of delays
AS_LOGGED, HARM, DRIFT, HALVED = "as logged", "somebody means harm", "the best wears off", "window halved"


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """One future."""

    name: str
    about: str  # what is assumed, in a sentence
    losses: Switching
    delays: LossDependent
    best: np.ndarray  # [runs] what the best arm in hindsight alone would bring in all rounds


def worlds(log: Log, rounds: int, levels: np.ndarray) -> list[World]:
    """The worlds for runs whose rates are the quantiles ``levels [K, runs]`` of what the log leaves open."""
    longest = min(max(int(np.max(np.asarray(log.trace.delays))), 1), rounds)
    bound = 1 << (longest - 1).bit_length()
    delays = _delays(log, rounds, bound)
    means = np.repeat(log.means_at(levels)[None], PHASES, 0)  # [P, K, runs]
    best, worst = means[0].argmin(0), means[0].argmax(0)
    harmed, drifting, runs = means.copy(), means.copy(), np.arange(levels.shape[1])
    harmed[:HARMED, best, runs], harmed[:HARMED, worst, runs] = means[:HARMED, worst, runs], means[:HARMED, best, runs]
    fade = ((np.arange(PHASES) + 0.5) / PHASES)[:, None]
    drifting[:, best, runs] = (1 - fade) * means[:, best, runs] + fade * means[:, worst, runs]
    made = [
        _world(AS_LOGGED, "Rates and delays stay as they were in the log.", means, delays, rounds),
        _world(
            HARM,
            f"In the first {100 * HARMED // PHASES} % of the rounds somebody makes the best arm look like the worst and the worst like the best.",
            harmed,
            delays,
            rounds,
        ),
        _world(
            DRIFT, "The rate of the best arm falls evenly to that of the worst until the last round.", drifting, delays, rounds
        ),
    ]
    if log.window is not None:
        half = log.with_window(log.window // 2)
        less = np.repeat(half.means_at(levels)[None], PHASES, 0)
        about = "A conversion is waited for half as long; later ones count as none, also in what is lost here."
        made.append(_world(HALVED, about, less, _delays(half, rounds, bound), rounds))
    return made


def _world(name: str, about: str, means: np.ndarray, delays: LossDependent, rounds: int) -> World:
    starts = 1 + rounds * np.arange(PHASES) // PHASES
    lengths = np.diff(starts, append=rounds + 1)
    brought = np.einsum("p,pkr->kr", lengths, 1 - means)
    return World(name, about, Switching(means, starts), delays, brought.max(0))


def _delays(log: Log, rounds: int, bound: int) -> LossDependent:
    """The law of the log on ``POINTS`` quantiles, so that all have one shape; what comes after the horizon comes at its end."""
    levels = (np.arange(POINTS) + 0.5) / POINTS

    def of(law: Delays) -> Empirical:
        waits = np.asarray(cast(Empirical, law).delays)  # load_log makes no others
        points = np.quantile(waits, levels, method="inverted_cdf")
        return Empirical(np.minimum(points, min(rounds, bound)).astype(np.int32), bound=bound)

    return LossDependent(of(log.delays.law_if_one), of(log.delays.law_if_zero))
