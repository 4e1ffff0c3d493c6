"""Unrolled evaluation of a round, for accelerators: an interpreter of jaxprs that keeps one vector of runs per number."""
