"""Searched adversaries: the oblivious loss table on which a learner has the largest regret that a search finds."""

from jaxbandit.adversary.found import Step, WorstCase
from jaxbandit.adversary.search import worst_case

__all__ = ["Step", "WorstCase", "worst_case"]
