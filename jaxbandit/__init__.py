"""jaxbandit: the laboratory for bandits with delayed feedback, in JAX."""

from jaxbandit import delays, learners, losses, measure, plots
from jaxbandit.learners import (
    BOLD,
    KLUCB,
    QPMD,
    REGISTRY,
    ArmDependentFTRL,
    AsymmetricBestOfBothWorlds,
    BankerTsallisINF,
    BestOfBothWorlds,
    DelayedExp3,
    DelayedExponentialWeights,
    DelayedThompson,
    DelayedUCB1,
    Exp3,
    Exp3PlusPlus,
    FixedDelayExp3,
    PhasedElimination,
    RobustBestOfBothWorlds,
    Skipper,
    SuccessiveElimination,
    TsallisINF,
    Uniform,
    ZimmertSeldin,
)
from jaxbandit.measure import ControlVariates
from jaxbandit.projection import hybrid_argmin, hybrid_argmin_warm
from jaxbandit.result import Estimate, Result
from jaxbandit.rollout import Rollout, rollout
from jaxbandit.simulate import simulate, use_all_cores

__version__ = "0.1.0"

__all__ = [
    "BOLD",
    "KLUCB",
    "QPMD",
    "REGISTRY",
    "ArmDependentFTRL",
    "AsymmetricBestOfBothWorlds",
    "BankerTsallisINF",
    "BestOfBothWorlds",
    "ControlVariates",
    "DelayedExp3",
    "DelayedExponentialWeights",
    "DelayedThompson",
    "DelayedUCB1",
    "Estimate",
    "Exp3",
    "Exp3PlusPlus",
    "FixedDelayExp3",
    "PhasedElimination",
    "Result",
    "RobustBestOfBothWorlds",
    "Rollout",
    "Skipper",
    "SuccessiveElimination",
    "TsallisINF",
    "Uniform",
    "ZimmertSeldin",
    "delays",
    "hybrid_argmin",
    "hybrid_argmin_warm",
    "learners",
    "losses",
    "measure",
    "plots",
    "rollout",
    "simulate",
    "use_all_cores",
]
