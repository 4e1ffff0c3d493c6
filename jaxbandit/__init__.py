"""jaxbandit: the laboratory for bandits with delayed feedback, in JAX."""

from jaxbandit import delays, extend, learners, logs, losses, measure, plots, theory
from jaxbandit.advice import Advice, advise
from jaxbandit.agent import Agent, Ticket, TicketError
from jaxbandit.blocks import use_all_cores
from jaxbandit.conformance import check_delays, check_learner, check_losses
from jaxbandit.delays import load_trace
from jaxbandit.game import Rollout, rollout
from jaxbandit.gradients import Gradient, Tuned, regret_gradient, tune
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
    DelayedKLUCB,
    DelayedSAPO,
    DelayedThompson,
    DelayedUCB,
    DelayedUCB1,
    DiscountedThompson,
    DiscountedUCB,
    Exp3,
    Exp3PlusPlus,
    FixedDelayExp3,
    OptimisticPessimisticElimination,
    PhasedElimination,
    RobustBestOfBothWorlds,
    Skipper,
    SlidingWindowThompson,
    SlidingWindowUCB,
    SuccessiveElimination,
    TsallisINF,
    Uniform,
    ZimmertSeldin,
)
from jaxbandit.logs import Log, load_log
from jaxbandit.measure import ControlVariates
from jaxbandit.projection import hybrid_argmin
from jaxbandit.result import Result
from jaxbandit.simulation import simulate
from jaxbandit.statistics import Estimate
from jaxbandit.sweeps import Entry, Spec, open_sweep, sweep
from jaxbandit.version import __version__ as __version__

__all__ = [
    "BOLD",
    "KLUCB",
    "QPMD",
    "REGISTRY",
    "Advice",
    "Agent",
    "ArmDependentFTRL",
    "AsymmetricBestOfBothWorlds",
    "BankerTsallisINF",
    "BestOfBothWorlds",
    "ControlVariates",
    "DelayedExp3",
    "DelayedExponentialWeights",
    "DelayedKLUCB",
    "DelayedSAPO",
    "DelayedThompson",
    "DelayedUCB",
    "DelayedUCB1",
    "DiscountedThompson",
    "DiscountedUCB",
    "Entry",
    "Estimate",
    "Exp3",
    "Exp3PlusPlus",
    "FixedDelayExp3",
    "Gradient",
    "Log",
    "OptimisticPessimisticElimination",
    "PhasedElimination",
    "Result",
    "RobustBestOfBothWorlds",
    "Rollout",
    "Skipper",
    "SlidingWindowThompson",
    "SlidingWindowUCB",
    "Spec",
    "SuccessiveElimination",
    "Ticket",
    "TicketError",
    "TsallisINF",
    "Tuned",
    "Uniform",
    "ZimmertSeldin",
    "advise",
    "check_delays",
    "check_learner",
    "check_losses",
    "delays",
    "extend",
    "hybrid_argmin",
    "learners",
    "load_log",
    "load_trace",
    "logs",
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
