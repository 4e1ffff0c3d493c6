"""Sums that stay accurate over millions of rounds in 32 bits: exact counts, and compensated floats."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._core.fields import float_dtype, pytree_dataclass


@pytree_dataclass
class Count:
    """An exact sum of many counts, past 2³¹: two 32-bit words."""

    high: jax.Array  # uint32
    low: jax.Array  # uint32

    def add(self, number: jax.Array) -> "Count":
        low = self.low + number.astype(jnp.uint32)
        return Count(self.high + (low < self.low).astype(jnp.uint32), low)

    def as_float(self, dtype: Any) -> jax.Array:
        return self.high.astype(dtype) * 2.0**32 + self.low.astype(dtype)

    def exact(self) -> np.ndarray:
        """The sum as int64, on the host."""
        return np.asarray(self.high).astype(np.int64) * 2**32 + np.asarray(self.low).astype(np.int64)


def compensated_add(value: jax.Array, error: jax.Array, term: jax.Array) -> tuple[jax.Array, jax.Array]:
    """``value + term`` and its rounding error, starting from the ``error`` so far (Kahan summation).

    The error is added to the next term, so that ``value`` itself stays accurate; for sums that are read every round.
    """
    term = term + error
    total = value + term
    return total, term - (total - value)


@pytree_dataclass
class Sum:
    """A float sum with its rounding error beside it (Neumaier), so that float32 adds up 10⁷ small terms: value + error."""

    value: jax.Array
    error: jax.Array

    @classmethod
    def zero(cls, shape: tuple[int, ...]) -> "Sum":
        return cls(jnp.zeros(shape, float_dtype()), jnp.zeros(shape, float_dtype()))

    def add(self, term: jax.Array) -> "Sum":
        value = self.value + term
        back = value - self.value
        return Sum(value, self.error + ((self.value - (value - back)) + (term - back)))
