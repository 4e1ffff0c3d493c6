"""jaxbandit: the laboratory for bandits with delayed feedback, in JAX."""

from jaxbandit import delays, learners, losses, measure, plots, theory
from jaxbandit.gradients import Gradient, regret_gradient
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
from jaxbandit.sweep import Entry, Spec, open_sweep, sweep
from jaxbandit.traces import load_trace
from jaxbandit.tune import Tuned, tune

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
    "Entry",
    "Estimate",
    "Exp3",
    "Exp3PlusPlus",
    "FixedDelayExp3",
    "Gradient",
    "PhasedElimination",
    "Result",
    "RobustBestOfBothWorlds",
    "Rollout",
    "Skipper",
    "Spec",
    "SuccessiveElimination",
    "TsallisINF",
    "Tuned",
    "Uniform",
    "ZimmertSeldin",
    "delays",
    "hybrid_argmin",
    "hybrid_argmin_warm",
    "learners",
    "load_trace",
    "losses",
    "measure",
    "open_sweep",
    "plots",
    "regret_gradient",
    "rollout",
    "simulate",
    "sweep",
    "theory",
    "tune",
    "use_all_cores",
]
