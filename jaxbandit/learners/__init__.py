"""Every learner under one protocol; a new one is a file here and a line in :data:`REGISTRY`."""

from jaxbandit.learners.base import Learner, Observation, Round
from jaxbandit.learners.bobw import BestOfBothWorlds
from jaxbandit.learners.tsallis import TsallisINF
from jaxbandit.learners.uniform import Uniform

REGISTRY = {
    "bobw": BestOfBothWorlds,
    "tsallis-inf": TsallisINF,
    "uniform": Uniform,
}

__all__ = ["REGISTRY", "BestOfBothWorlds", "Learner", "Observation", "Round", "TsallisINF", "Uniform"]
