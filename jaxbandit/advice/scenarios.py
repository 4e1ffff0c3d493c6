"""The scenarios in which the candidates are simulated: the log as it is, and three ways in which the future may differ.

All scenarios have phases of constant rates and delays by outcome and arm, of the same shapes, so that each learner is compiled once.
``REPEATS`` consecutive runs share one posterior draw of rates, rewards and delays; the draws are the same in all scenarios.
"""

import dataclasses
from typing import cast

import numpy as np

from jaxbandit.delays import Empirical, EmpiricalByArm, LossDependent
from jaxbandit.logs import Log
from jaxbandit.logs.posterior import Draws
from jaxbandit.losses import Losses, Switching, ZeroInflated

PHASES = 16
CORRUPTED = PHASES // 4  # phases with adversarial corruption
POINTS = 64  # of each distribution of delays and rewards
REPEATS = 2  # runs of each posterior draw, which separate chance from the uncertainty of the log
AS_LOGGED, CORRUPTION, DRIFT, HALVED = "as logged", "adversarial corruption", "best arm drifts", "window halved"


@dataclasses.dataclass(frozen=True, eq=False)
class Scenario:
    """One future."""

    name: str
    about: str  # its assumption
    losses: Losses
    delays: LossDependent
    best: np.ndarray  # [runs] the reward of the best arm in hindsight over all rounds


def scenarios(log: Log, rounds: int, runs: int, seed: tuple[int, ...]) -> list[Scenario]:
    """The scenarios for ``runs`` runs; ``seed`` is of the posterior draws."""
    longest = min(max(int(np.max(np.asarray(log.trace.delays))), 1), rounds)
    bound = 1 << (longest - 1).bit_length()
    draws = posterior_draws(log, runs, seed)
    rates = np.repeat(draws.rates[None], PHASES, 0)  # [P, K, runs]
    means = draws.means()
    best, worst, each = means.argmin(0), means.argmax(0), np.arange(runs)
    corrupted, drifting = rates.copy(), rates.copy()
    for arm, other in ((best, worst), (worst, best)):
        corrupted[:CORRUPTED, arm, each] = _rate_of_mean(draws, arm, means[other, each])
    fade = ((np.arange(PHASES) + 0.5) / PHASES)[:, None]
    drifting[:, best, each] = _rate_of_mean(draws, best, (1 - fade) * means[best, each] + fade * means[worst, each])
    delays = _delays(log, draws, rounds, bound)
    share = f"{100 * CORRUPTED // PHASES}%"
    made = [
        _scenario(AS_LOGGED, "Rates and delays stay as they were in the log.", rates, draws, delays, rounds),
        _scenario(
            CORRUPTION,
            f"In the first {share} of the rounds an adversary exchanges the mean rewards of the best and the worst arm.",
            corrupted,
            draws,
            delays,
            rounds,
        ),
        _scenario(
            DRIFT, "The mean reward of the best arm falls linearly to that of the worst arm.", drifting, draws, delays, rounds
        ),
    ]
    if log.window is not None and log.window > 1:
        half = log.with_window(log.window // 2)
        less = posterior_draws(half, runs, seed)
        about = "The window is half as long; later conversions count as none, also for the regret in this scenario."
        halved = np.repeat(less.rates[None], PHASES, 0)
        made.append(_scenario(HALVED, about, halved, less, _delays(half, less, rounds, bound), rounds))
    return made


def posterior_draws(log: Log, runs: int, seed: tuple[int, ...]) -> Draws:
    """A posterior draw for each run, the same for ``REPEATS`` consecutive ones."""
    draws = log.draw(np.random.default_rng(seed), -(-runs // REPEATS), POINTS)

    def repeated(values: np.ndarray) -> np.ndarray:
        return np.repeat(values, REPEATS, -1)[..., :runs]

    values = None if draws.values is None else repeated(draws.values)
    return Draws(repeated(draws.rates), values, repeated(draws.delays))


def _rate_of_mean(draws: Draws, arm: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The conversion rate ``[..., runs]`` with which an arm has this mean loss, at most 1."""
    if draws.values is None:
        return 1 - mean
    value = draws.values.mean(1)[arm, np.arange(len(arm))]
    return np.clip((1 - mean) / np.where(value > 0, value, 1), 0, 1)


def _scenario(name: str, about: str, rates: np.ndarray, draws: Draws, delays: LossDependent, rounds: int) -> Scenario:
    starts = 1 + rounds * np.arange(PHASES) // PHASES
    lengths = np.diff(starts, append=rounds + 1)
    reward = rates if draws.values is None else rates * draws.values.mean(1)
    losses = Switching(1 - rates, starts) if draws.values is None else ZeroInflated(rates, starts, draws.values)
    return Scenario(name, about, losses, delays, np.einsum("p,pkr->kr", lengths, reward).max(0))


def _delays(log: Log, draws: Draws, rounds: int, bound: int) -> LossDependent:
    """Delays by outcome and arm for each run, cut off at the horizon; those without a conversion as in the log, the others drawn."""
    levels = (np.arange(POINTS) + 0.5) / POINTS
    waits = np.asarray(cast(Empirical, log.delays.no_conversion).delays)  # [N] or [K, N]: load_log makes no others
    without = np.quantile(waits, levels, axis=-1, method="inverted_cdf").T
    runs, longest = draws.rates.shape[1], min(rounds, bound)
    without = np.broadcast_to(np.broadcast_to(without, (len(log.arms), POINTS))[..., None], (len(log.arms), POINTS, runs))

    def law(waits: np.ndarray) -> EmpiricalByArm:
        return EmpiricalByArm(np.minimum(waits, longest).astype(np.int32), bound=bound)

    return LossDependent(law(without), law(draws.delays), log.delays.threshold)
