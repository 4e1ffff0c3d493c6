"""Loss models with values in [0, 1]; smaller is better.

A model has ``num_arms``, ``expected(t) -> [K]`` (the mean losses of round t, exact, for the regret) and
``sample(t, arm, noise) -> loss [...]``, where ``noise`` is one uniform number in (0, 1) for each run, or one JAX key
for each run if the class sets ``needs_key``. Rounds count from 1. Your own model inherits from :class:`Losses`, which
declares all members.
"""

from jaxbandit.losses.base import AdaptiveLosses, DifferentiableLosses, Losses, ShowsSignals, ShowsStages
from jaxbandit.losses.bernoulli import Bernoulli, DelayMatchedSwitching, Drifting, StochasticallyConstrained, Switching
from jaxbandit.losses.continuous import Beta, ClippedNormal
from jaxbandit.losses.corrupted import Corrupted
from jaxbandit.losses.funnel import Funnel
from jaxbandit.losses.repeated_game import RepeatedGame
from jaxbandit.losses.states import IntermediateStates
from jaxbandit.losses.table import Table
from jaxbandit.losses.zero_inflated import ZeroInflated

REGISTRY: dict[str, type[Losses]] = {
    "bernoulli": Bernoulli,
    "beta": Beta,
    "clipped-normal": ClippedNormal,
    "table": Table,
    "stochastically-constrained": StochasticallyConstrained,
    "switching": Switching,
    "delay-matched-switching": DelayMatchedSwitching,
    "drifting": Drifting,
    "corrupted": Corrupted,
    "intermediate-states": IntermediateStates,
    "funnel": Funnel,
    "zero-inflated": ZeroInflated,
    "repeated-game": RepeatedGame,
}

__all__ = [
    "REGISTRY",
    "AdaptiveLosses",
    "Bernoulli",
    "Beta",
    "ClippedNormal",
    "Corrupted",
    "DelayMatchedSwitching",
    "DifferentiableLosses",
    "Drifting",
    "Funnel",
    "IntermediateStates",
    "Losses",
    "RepeatedGame",
    "ShowsSignals",
    "ShowsStages",
    "StochasticallyConstrained",
    "Switching",
    "Table",
    "ZeroInflated",
]
