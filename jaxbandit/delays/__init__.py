"""When feedback comes: laws of the delay of each play, in whole rounds.

Feedback of round t arrives at the **end** of round t + d. A law has a static ``bound`` (the longest wait in the ring of
pending plays; the next power of two by default, so that few shapes are compiled) and
``draw(t, arm, loss, noise) -> int32``, where ``noise`` is one uniform number in (0, 1) for each play. :data:`NEVER` is a
delay: the feedback is lost, and the play stays outstanding for ever.

With ``shared=True`` all runs meet one sequence, an oblivious adversary's choice; otherwise each run draws its own. A law
of your own inherits from :class:`Delays`, which declares all that may be asked of a law.
"""

from jaxbandit.delays.arm_dependent import ArmDependent
from jaxbandit.delays.base import NEVER, Delays
from jaxbandit.delays.composite import CompositeFeedback
from jaxbandit.delays.fixed import Fixed, PacketLoss
from jaxbandit.delays.random import Geometric, Pareto, Poisson, UniformRandom
from jaxbandit.delays.recorded import DelayAsPayoff, Empirical, EmpiricalByArm, LossDependent
from jaxbandit.delays.sequences import Bursts, Outlier, Trace
from jaxbandit.delays.traces import load_trace

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
    "LossDependent",
    "Outlier",
    "PacketLoss",
    "Pareto",
    "Poisson",
    "Trace",
    "UniformRandom",
    "load_trace",
]
