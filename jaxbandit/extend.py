"""Names for your own learners, loss models and delay models.

- a learner: :class:`Learner` (or :class:`ImportanceWeighted`), which :class:`Round` and :class:`Observation` are given to;
- a loss model: :class:`Losses`; a delay model: :class:`Delays`, with :data:`NEVER` for missing feedback;
- :func:`pytree_dataclass` makes the class a pytree of its numbers; its fields are plain, or say more by :func:`number`,
  :func:`whole_number`, :func:`static` and :func:`given`;
- :func:`float_dtype`, :func:`one_hot` and :func:`pick` help to write the methods.

How: the pages "Adding a learner" and "Adding a loss model or a delay model".
"""

from jaxbandit._core.arms import one_hot, pick
from jaxbandit._core.fields import float_dtype, given, number, pytree_dataclass, static, whole_number
from jaxbandit.delays import NEVER, Delays, ShowsDelays
from jaxbandit.learners import (
    FTRL,
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
from jaxbandit.losses import AdaptiveLosses, DifferentiableLosses, Losses, ShowsSignals, ShowsStages

__all__ = [
    "FTRL",
    "NEVER",
    "AdaptiveLosses",
    "Delays",
    "DifferentiableLosses",
    "FullInformation",
    "ImportanceWeighted",
    "Learner",
    "Losses",
    "Observation",
    "ReadsDelays",
    "ReadsSignals",
    "ReadsStages",
    "Round",
    "ShowsDelays",
    "ShowsSignals",
    "ShowsStages",
    "TakesSums",
    "float_dtype",
    "given",
    "number",
    "one_hot",
    "pick",
    "pytree_dataclass",
    "static",
    "whole_number",
]
