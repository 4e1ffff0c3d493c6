"""Delay models: the delay of each round, an integer.

Feedback of round t arrives at the **end** of round t + d. A model has a static ``bound`` (the longest delay in the buffer of
outstanding observations; the next power of two by default, so that few shapes are compiled) and
``draw(t, arm, loss, noise) -> int32``, where ``noise`` is one uniform number in (0, 1) per round. :data:`NEVER` is a
delay: the feedback is missing, and stays outstanding until the end.

With ``shared=True`` all runs have one sequence; otherwise each run draws its own. Your own
model inherits from :class:`Delays`, which declares all members.
"""

from jaxbandit.delays.arm_dependent import ArmDependent
from jaxbandit.delays.base import NEVER, Delays, ShowsDelays
from jaxbandit.delays.composite import CompositeFeedback
from jaxbandit.delays.fixed import Fixed, PacketLoss
from jaxbandit.delays.known import KnownAtAction
from jaxbandit.delays.random import Geometric, Pareto, Poisson, UniformRandom
from jaxbandit.delays.recorded import DelayAsPayoff, Empirical, EmpiricalByArm, LossDependent
from jaxbandit.delays.sequences import Bursts, Outlier, Trace

REGISTRY: dict[str, type[Delays]] = {
    "fixed": Fixed,
    "uniform-random": UniformRandom,
    "geometric": Geometric,
    "poisson": Poisson,
    "pareto": Pareto,
    "packet-loss": PacketLoss,
    "bursts": Bursts,
    "outlier": Outlier,
    "trace": Trace,
    "arm-dependent": ArmDependent,
    "loss-dependent": LossDependent,
    "delay-as-payoff": DelayAsPayoff,
    "empirical": Empirical,
    "empirical-by-arm": EmpiricalByArm,
    "composite-feedback": CompositeFeedback,
    "known-at-action": KnownAtAction,
}

__all__ = [
    "NEVER",
    "REGISTRY",
    "ArmDependent",
    "Bursts",
    "CompositeFeedback",
    "DelayAsPayoff",
    "Delays",
    "Empirical",
    "EmpiricalByArm",
    "Fixed",
    "Geometric",
    "KnownAtAction",
    "LossDependent",
    "Outlier",
    "PacketLoss",
    "Pareto",
    "Poisson",
    "ShowsDelays",
    "Trace",
    "UniformRandom",
]
