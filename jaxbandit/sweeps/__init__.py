"""Sweeps: a grid of learners, losses and delays, computed once, stored with checksums, and resumable."""

from jaxbandit.sweeps.layout import MismatchError, StoreError
from jaxbandit.sweeps.merging import Merged, merge
from jaxbandit.sweeps.open import open_sweep
from jaxbandit.sweeps.run import Summary, sweep
from jaxbandit.sweeps.spec import ORACLE, Entry, Spec, SpecError
from jaxbandit.sweeps.store import Store

__all__ = [
    "ORACLE",
    "Entry",
    "Merged",
    "MismatchError",
    "Spec",
    "SpecError",
    "Store",
    "StoreError",
    "Summary",
    "merge",
    "open_sweep",
    "sweep",
]
