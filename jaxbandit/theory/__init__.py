"""Theory as code.

- :mod:`~jaxbandit.theory.bounds`: regret bounds, upper and lower, with every term by name.
- :mod:`~jaxbandit.theory.measurements`: the quantities of the analysis, recorded during a simulation (``measure=``).
- :mod:`~jaxbandit.theory.optimal_skipping`: outstanding observations, and what skipping can save.
- :mod:`~jaxbandit.theory.games`: lower-bound constructions.
"""

from jaxbandit.theory import bounds, games, measurements, optimal_skipping

__all__ = ["bounds", "games", "measurements", "optimal_skipping"]
