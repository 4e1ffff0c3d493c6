"""Comparisons of learners: of existing results, or simulated until they are decided."""

from jaxbandit.comparisons.comparing import compare

__all__ = ["compare"]
