"""Which learner for this log: the candidates played on laws fitted to it, compared run by run, written as a report."""

from jaxbandit.advice.advice import Advice, advise

__all__ = ["Advice", "advise"]
