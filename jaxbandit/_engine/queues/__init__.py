"""Queues of outstanding observations.

:mod:`~jaxbandit._engine.queues.listed` serves every game. :mod:`~jaxbandit._engine.queues.slots` is faster for learners that only
sum arriving feedback.
"""

from jaxbandit._engine.queues.listed import Pending
from jaxbandit._engine.queues.slots import Arrivals

Queue = Pending | Arrivals
