"""Sweeps: a grid of learners, losses and delays, computed once, kept safely, and gone on with later."""

from jaxbandit.sweep.open import open_sweep
from jaxbandit.sweep.run import Summary, sweep
from jaxbandit.sweep.spec import Entry, Spec, SpecError
from jaxbandit.sweep.store import Store, StoreError

__all__ = ["Entry", "Spec", "SpecError", "Store", "StoreError", "Summary", "open_sweep", "sweep"]
