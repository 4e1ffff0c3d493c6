"""The learners that advice compares: those of the registry, told what a log can tell, each with a short list of constants."""

from typing import Any

from jaxbandit.learners import REGISTRY
from jaxbandit.pytrees import facts

# Every learner of the registry is either here, with the constants that are tried, its own first, or in LEFT_OUT.
ENTROPY = [{}, {"entropy_scale": 0.1}, {"entropy_scale": 0.01}, {"entropy_scale": 0.001}]
RATE = [{}, {"scale": 10.0}, {"scale": 100.0}, {"scale": 1000.0}]
FORGETTING = [{"discount": 0.999}, {"discount": 0.9999}]
TSALLIS = [{}, {"scale": 0.3}, {"scale": 0.1}]
TRIED: dict[str, tuple[str, dict[str, Any], list[dict[str, float]]]] = {
    # label: name in the registry, switches, constants
    "thompson": ("thompson", {}, [{}]),
    "ucb1": ("ucb1", {}, [{}, {"alpha": 0.5}, {"alpha": 0.1}, {"alpha": 0.02}]),
    "kl-ucb": ("kl-ucb", {}, [{}, {"alpha": 0.3}, {"alpha": 0.1}]),
    "tsallis-inf": ("tsallis-inf", {}, TSALLIS),
    "tsallis-inf rv": ("tsallis-inf", {"estimator": "rv"}, TSALLIS),
    "successive-elimination": ("successive-elimination", {}, [{}]),
    "opse": ("opse", {}, [{}]),
    "discounted-thompson": ("discounted-thompson", {}, FORGETTING),
    "discounted-ucb": ("discounted-ucb", {}, [{**one, "alpha": 0.5} for one in FORGETTING]),
    "phased-elimination": ("phased-elimination", {}, [{}, {"factor": 1.0}, {"factor": 0.1}]),
    "delayed-exp3": ("delayed-exp3", {}, RATE),
    "dew": ("dew", {}, RATE),
    "banker": ("banker", {}, [{}, {"delay_scale": 0.1}, {"delay_scale": 0.0}, {"delay_scale": 0.0, "scale": 3.0}]),
    "zimmert-seldin": ("zimmert-seldin", {}, ENTROPY),
    "bobw": ("bobw", {}, ENTROPY),
    "robust-bobw": ("robust-bobw", {}, ENTROPY),
    "uniform": ("uniform", {}, [{}]),
}
EVEN = "uniform"  # an even split, what everything is measured by
LEFT_OUT = {
    "delayed-ucb": "for logs in which no failure is ever reported; here the end of the window reports it",
    "delayed-kl-ucb": "for logs in which no failure is ever reported; here the end of the window reports it",
    "odaaf": "for feedback of which only sums are seen; a log says which play it belongs to",
    "state-exp3": "for plays that show a state at once, which a log of decisions and outcomes does not",
    "estimated-state-exp3": "for plays that show a state at once, which a log of decisions and outcomes does not",
    "colo": "for losses that come in pieces of which only sums are seen; a log says which play they belong to",
    "limited-tracking": "for who may wait for few plays; a log has them all",
    "sliding-window-ucb": "forgets, as does discounted-ucb, which is tried",
    "sliding-window-thompson": "forgets, as does discounted-thompson, which is tried",
    "delayed-sapo": "goes over to its base where losses do not look stochastic; zimmert-seldin, that base, is tried",
    "exp3": "made for feedback without delay, as is tsallis-inf, which is tried",
    "exp3++": "made for feedback without delay, as is tsallis-inf, which is tried",
    "asymmetric-bobw": "without the gaps between the arms, which a log does not tell, it is bobw",
    "arm-dependent": "for delays that differ from arm to arm; the laws here are one for all arms",
    "skipper": "needs a threshold that is chosen in knowledge of all delays",
    "fixed-delay-exp3": "needs feedback that is always equally late",
    "bold": "keeps a copy of its base for every play that may be waiting, thousands here",
    "qpm-d": "keeps a queue for every play that may be waiting, thousands here",
}


def candidates(told: dict[str, float]) -> dict[str, list[tuple[str, Any]]]:
    """Label -> the learner with each of its constants, and these as text, empty for its own.

    What learners must be told is filled in from ``told``, by the name of the fact.
    """
    found = {}
    for label, (name, switches, constants) in TRIED.items():
        cls = REGISTRY[name]
        known = {field: told[fact] for field, fact in facts(cls).items() if fact in told}
        found[label] = [
            (", ".join(f"{key} = {value:g}" for key, value in chosen.items()), cls(**known, **switches, **chosen))
            for chosen in constants
        ]
    return found
