"""The learners that advice compares: those of the registry, with inputs from a log, each with a short list of constants."""

from typing import Any

import numpy as np

from jaxbandit._core.fields import facts
from jaxbandit.learners import REGISTRY
from jaxbandit.learners.base import LearnerLike
from jaxbandit.learners.censored import Censored
from jaxbandit.learners.ftrl import FTRL

# Every learner of the registry is either here or in LEFT_OUT. The order is that of the simulations: the first answer comes from the
# first few, so the most promising learners are first. Constants: the learner's own first.
ENTROPY = [{}, {"entropy_scale": 0.1}, {"entropy_scale": 0.01}, {"entropy_scale": 0.001}]
RATE = [{}, {"scale": 10.0}, {"scale": 100.0}, {"scale": 1000.0}]
FORGETTING = [{"discount": 0.999}, {"discount": 0.9999}]
TSALLIS = [{}, {"scale": 0.3}, {"scale": 0.1}]
TRIED: dict[str, tuple[str, dict[str, Any], list[dict[str, float]]]] = {
    # label: name in the registry, switches, constants
    "uniform": ("uniform", {}, [{}]),
    "thompson": ("thompson", {}, [{}]),
    "ucb1": ("ucb1", {}, [{}, {"alpha": 0.5}, {"alpha": 0.1}, {"alpha": 0.02}]),
    "tsallis-inf rv": ("tsallis-inf", {"estimator": "rv"}, TSALLIS),
    "kl-ucb": ("kl-ucb", {}, [{}, {"alpha": 0.3}, {"alpha": 0.1}]),
    "censored-kl-ucb": ("censored-kl-ucb", {}, [{}, {"alpha": 0.3}, {"alpha": 0.1}]),
    "censored-thompson": ("censored-thompson", {}, [{}]),
    "discounted-thompson": ("discounted-thompson", {}, FORGETTING),
    "tsallis-inf": ("tsallis-inf", {}, TSALLIS),
    "opse": ("opse", {}, [{}]),
    "phased-elimination": ("phased-elimination", {}, [{}, {"factor": 1.0}, {"factor": 0.1}]),
    "delayed-exp3": ("delayed-exp3", {}, RATE),
    "dew": ("dew", {}, RATE),
    "banker": ("banker", {}, [{}, {"delay_scale": 0.1}, {"delay_scale": 0.0}, {"delay_scale": 0.0, "scale": 3.0}]),
    "tapered-ftrl": ("tapered-ftrl", {}, [{}, {"robustness": 0.2}, {"robustness": 0.05}]),
    "zimmert-seldin": ("zimmert-seldin", {}, ENTROPY),
    "bobw": ("bobw", {}, ENTROPY),
    "robust-bobw": ("robust-bobw", {}, ENTROPY),
    "discounted-ucb": ("discounted-ucb", {}, [{**one, "alpha": 0.5} for one in FORGETTING]),
    "successive-elimination": ("successive-elimination", {}, [{}]),
}
TITLES = {
    "uniform": "uniform allocation",
    "thompson": "Thompson sampling",
    "ucb1": "UCB1",
    "tsallis-inf rv": "Tsallis-INF (reduced variance)",
    "kl-ucb": "KL-UCB",
    "censored-kl-ucb": "KL-UCB with a learned delay curve",
    "censored-thompson": "Thompson sampling with a learned delay curve",
    "discounted-thompson": "discounted Thompson sampling",
    "tsallis-inf": "Tsallis-INF",
    "opse": "optimistic–pessimistic elimination",
    "phased-elimination": "phased elimination",
    "delayed-exp3": "delayed Exp3",
    "dew": "delayed exponential weights",
    "banker": "Banker-OMD",
    "tapered-ftrl": "tapered FTRL",
    "zimmert-seldin": "Zimmert–Seldin FTRL",
    "bobw": "MZS22",
    "robust-bobw": "MZS22 with skipping",
    "discounted-ucb": "discounted UCB",
    "successive-elimination": "successive elimination",
}
UNIFORM = "uniform"  # the baseline of all comparisons
NO_FAILURES = (
    "for logs in which no failure is ever observed, and requires the delay curve; here the end of the window is observed"
)
LEFT_OUT = {
    "delayed-ucb": NO_FAILURES,
    "delayed-kl-ucb": NO_FAILURES,
    "odaaf": "for aggregated anonymous feedback; a log attributes feedback to its action",
    "state-exp3": "for intermediate observations, which a log of actions and outcomes does not have",
    "estimated-state-exp3": "for intermediate observations, which a log of actions and outcomes does not have",
    "progressive-thompson": "for intermediate observations, which a log of actions and outcomes does not have",
    "colo": "for composite anonymous feedback; a log attributes feedback to its action",
    "limited-tracking": "for limited tracking capacity; a log tracks all actions",
    "delayed-hedge": "for full information; a log has the losses of the chosen actions",
    "full-information": "for full information; a log has the losses of the chosen actions",
    "doubling-skipper": "for delays known at action time; a log has them when feedback arrives",
    "sliding-window-ucb": "forgets, as does discounted UCB, which is tried",
    "sliding-window-thompson": "forgets, as does discounted Thompson sampling, which is tried",
    "delayed-sapo": "falls back to Zimmert–Seldin FTRL where losses do not look stochastic; that is tried",
    "exp3": "made for feedback without delay, as is Tsallis-INF, which is tried",
    "exp3++": "made for feedback without delay, as is Tsallis-INF, which is tried",
    "asymmetric-bobw": "equal to MZS22 without the gaps between the arms, which are unknown",
    "arm-dependent": "requires the largest number of outstanding observations of each arm, which depends on the learner",
    "skipper": "requires a threshold that depends on all delays",
    "fixed-delay-exp3": "requires a fixed delay",
    "bold": "keeps a copy of its base learner for each outstanding observation, thousands here",
    "qpm-d": "keeps a queue for each outstanding observation, thousands here",
}


def candidates(given: dict[str, float], labels: "list[str] | None" = None) -> dict[str, list[tuple[str, Any]]]:
    """Label -> the learner with each of its constants, and these as text, empty for its own.

    Required inputs are taken from ``given``, by the name of the fact; ``labels`` selects some.
    """
    found = {}
    for label, (name, switches, constants) in TRIED.items():
        if labels is not None and label not in labels:
            continue
        cls = REGISTRY[name]
        known = {field: given[fact] for field, fact in facts(cls).items() if fact in given}
        if issubclass(cls, Censored):
            # A power of two: room for busier days than those of the log, and one program for logs with similar windows.
            known["window"] = 1 << (max(int(given["max_delay"]), 1) - 1).bit_length()
        found[label] = [
            (", ".join(f"{key} = {value:g}" for key, value in chosen.items()), cls(**known, **switches, **chosen))
            for chosen in constants
        ]
    return found


def burn_in(learner: LearnerLike, num_arms: int, gap: float) -> float | None:
    """The approximate burn-in of the learner in rounds at a gap, with its constants; None without one."""
    rounds = learner.burn_in(num_arms, gap) if isinstance(learner, FTRL) else None
    return None if rounds is None else float(np.asarray(rounds))
