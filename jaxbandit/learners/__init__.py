"""Every learner under one protocol; a new one is a file here and a line in :data:`REGISTRY`."""

from typing import Any

from jaxbandit._core.fields import show, suggest
from jaxbandit.learners.arm_dependent import ArmDependentFTRL
from jaxbandit.learners.asymmetric import AsymmetricBestOfBothWorlds
from jaxbandit.learners.banker import BankerTsallisINF
from jaxbandit.learners.base import (
    FullInformation,
    ImportanceWeighted,
    Learner,
    Observation,
    ReadsDelays,
    ReadsSignals,
    ReadsStages,
    Round,
    TakesSums,
)
from jaxbandit.learners.bobw import BestOfBothWorlds
from jaxbandit.learners.censored import CensoredKLUCB, CensoredThompson
from jaxbandit.learners.colo import CoLo
from jaxbandit.learners.conversions import DelayedKLUCB, DelayedUCB
from jaxbandit.learners.elimination import PhasedElimination, SuccessiveElimination
from jaxbandit.learners.exponential import (
    DelayedExp3,
    DelayedExponentialWeights,
    DoublingSkipper,
    Exp3,
    Exp3PlusPlus,
    FixedDelayExp3,
    Skipper,
)
from jaxbandit.learners.ftrl import FTRL
from jaxbandit.learners.hedge import DelayedHedge, WithFullInformation
from jaxbandit.learners.nonstationary import DiscountedThompson, DiscountedUCB, SlidingWindowThompson, SlidingWindowUCB
from jaxbandit.learners.odaaf import ODAAF
from jaxbandit.learners.opse import OptimisticPessimisticElimination
from jaxbandit.learners.progressive import ProgressiveThompson
from jaxbandit.learners.sapo import DelayedSAPO
from jaxbandit.learners.skipping import RobustBestOfBothWorlds, ZimmertSeldin
from jaxbandit.learners.states import EstimatedStateExp3, StateExp3
from jaxbandit.learners.tapered import TaperedFTRL
from jaxbandit.learners.thompson import DelayedThompson
from jaxbandit.learners.tracking import LimitedTracking
from jaxbandit.learners.tsallis import TsallisINF
from jaxbandit.learners.ucb import KLUCB, DelayedUCB1
from jaxbandit.learners.uniform import Uniform
from jaxbandit.learners.wrappers import BOLD, QPMD

# The names of papers: what people call a learner.
PAPERS = {
    "mzs22": "bobw",  # Masoudian, Zimmert & Seldin 2022
    "zs20": "zimmert-seldin",  # Zimmert & Seldin 2020
    "mzs24": "robust-bobw",  # Masoudian, Zimmert & Seldin 2024
    "zs21": "tsallis-inf",  # Zimmert & Seldin 2021
}


class Registry(dict[str, type[Any]]):
    """Learners by name, and by that of their paper in either case: ``jb.REGISTRY["MZS22"]``."""

    def __missing__(self, name: Any) -> type[Any]:
        paper = PAPERS.get(str(name).lower())
        if paper is None:
            raise KeyError(f"jb.REGISTRY[{show(name)}]: there is no such learner; {suggest(str(name), [*self, *PAPERS])}")
        return self[paper]


REGISTRY = Registry(
    {
        "bobw": BestOfBothWorlds,
        "zimmert-seldin": ZimmertSeldin,
        "robust-bobw": RobustBestOfBothWorlds,
        "tapered-ftrl": TaperedFTRL,
        "delayed-sapo": DelayedSAPO,
        "asymmetric-bobw": AsymmetricBestOfBothWorlds,
        "tsallis-inf": TsallisINF,
        "banker": BankerTsallisINF,
        "arm-dependent": ArmDependentFTRL,
        "delayed-exp3": DelayedExp3,
        "dew": DelayedExponentialWeights,
        "skipper": Skipper,
        "doubling-skipper": DoublingSkipper,
        "fixed-delay-exp3": FixedDelayExp3,
        "exp3": Exp3,
        "exp3++": Exp3PlusPlus,
        "delayed-hedge": DelayedHedge,
        "ucb1": DelayedUCB1,
        "kl-ucb": KLUCB,
        "thompson": DelayedThompson,
        "delayed-ucb": DelayedUCB,
        "delayed-kl-ucb": DelayedKLUCB,
        "censored-thompson": CensoredThompson,
        "censored-kl-ucb": CensoredKLUCB,
        "successive-elimination": SuccessiveElimination,
        "phased-elimination": PhasedElimination,
        "opse": OptimisticPessimisticElimination,
        "odaaf": ODAAF,
        "state-exp3": StateExp3,
        "estimated-state-exp3": EstimatedStateExp3,
        "progressive-thompson": ProgressiveThompson,
        "sliding-window-ucb": SlidingWindowUCB,
        "discounted-ucb": DiscountedUCB,
        "sliding-window-thompson": SlidingWindowThompson,
        "discounted-thompson": DiscountedThompson,
        "qpm-d": QPMD,
        "bold": BOLD,
        "colo": CoLo,
        "limited-tracking": LimitedTracking,
        "full-information": WithFullInformation,
        "uniform": Uniform,
    }
)


def make(name: str, *values: Any, **fields: Any) -> Any:
    """Make a learner by its name in :data:`REGISTRY` or that of its paper, with the arguments of its class.

    >>> import jaxbandit as jb
    >>> jb.learners.make("bobw", max_delay=10)
    BestOfBothWorlds(max_delay=10)
    >>> jb.learners.make("MZS22", 10).factor
    24.0
    """
    cls = REGISTRY.get(PAPERS.get(str(name).lower(), name))
    if cls is None:
        raise ValueError(f"learners.make({show(name)}): there is no such learner; {suggest(str(name), [*REGISTRY, *PAPERS])}")
    return cls(*values, **fields)


__all__ = [
    "FTRL",
    "PAPERS",
    "REGISTRY",
    "FullInformation",
    "ImportanceWeighted",
    "Learner",
    "Observation",
    "ReadsDelays",
    "ReadsSignals",
    "ReadsStages",
    "Round",
    "TakesSums",
    "make",
    *(cls.__name__ for cls in REGISTRY.values()),
]
