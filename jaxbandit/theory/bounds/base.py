"""A bound: a sum of named terms, with what its constants are worth."""

import dataclasses
from typing import Literal

import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.fields import is_numeric, show

Status = Literal["proved", "recomputed", "as printed", "order"]


@dataclasses.dataclass(frozen=True)
class Bound:
    """A sum of named terms, numbers or arrays over the horizon."""

    terms: dict[str, np.ndarray]
    status: Status
    source: str

    @property
    def total(self) -> np.ndarray:
        """The sum of the terms."""
        return sum(self.terms.values(), np.zeros(()))

    def __getitem__(self, term: str) -> np.ndarray:
        return self.terms[term]


def make_bound(status: Status, source: str, **terms: ArrayLike) -> Bound:
    """The bound that is the sum of ``terms``."""
    return Bound({name: np.asarray(value, float) for name, value in terms.items()}, status, source)


def inverse_gaps(gaps: ArrayLike) -> tuple[float, int]:
    """Σ 1/Δ_i over the gaps above 0, and K."""
    array = np.asarray(gaps, float) if is_numeric(gaps) else np.empty(0)
    if array.ndim != 1 or array.size < 2 or np.any(array < 0) or np.any(array > 1) or not np.any(array > 0) or array.min() > 0:
        raise ValueError(f"gaps={show(gaps)}: gaps are K numbers between 0 and 1, one for each arm, 0 for the best")
    return float(np.sum(1 / array[array > 0])), len(array)
