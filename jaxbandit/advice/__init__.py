"""Choice of a learner for a log: candidates are simulated on models fitted to it, compared run by run, and reported."""

from jaxbandit.advice.advice import Advice, advise

__all__ = ["Advice", "advise"]
