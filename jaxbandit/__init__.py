"""jaxbandit: the laboratory for bandits with delayed feedback, in JAX."""

from jaxbandit import delays, learners, losses, plots
from jaxbandit.learners import REGISTRY, BestOfBothWorlds, TsallisINF, Uniform
from jaxbandit.projection import hybrid_argmin, hybrid_argmin_warm
from jaxbandit.result import Estimate, Result
from jaxbandit.rollout import Rollout, rollout
from jaxbandit.simulate import simulate, use_all_cores

__version__ = "0.1.0"

__all__ = [
    "REGISTRY",
    "BestOfBothWorlds",
    "Estimate",
    "Result",
    "Rollout",
    "TsallisINF",
    "Uniform",
    "delays",
    "hybrid_argmin",
    "hybrid_argmin_warm",
    "learners",
    "losses",
    "plots",
    "rollout",
    "simulate",
    "use_all_cores",
]
