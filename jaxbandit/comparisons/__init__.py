"""Comparisons of learners: of results that are there, or simulated until they are decided."""

from jaxbandit.comparisons.comparing import compare

__all__ = ["compare"]
