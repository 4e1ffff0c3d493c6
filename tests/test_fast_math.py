"""Elementary functions against NumPy's in double precision, over the whole range where they are used."""

import jax
import numpy as np
import pytest

from jaxbandit._core import fast_math as elementary

EPS = float(np.finfo(np.float32).eps)
CASES = {
    "log_from_one": (np.log, 1 + np.logspace(-7, 38, 200_001), 2),
    "log1p_from_zero": (np.log1p, np.logspace(-37, 38, 200_001), 3),
    "one_minus_exp": (lambda u: -np.expm1(-u), np.logspace(-37, 3, 200_001), 3),
}


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_last_digits(name, x64):
    """Within three units of the last digit. Rejects log(1 + x) and 1 - exp(-u) as they stand: both are 0 for small numbers."""
    exact, values, units = CASES[name]
    with jax.enable_x64(x64):
        values = values.astype(np.float64 if x64 else np.float32)
        got = np.asarray(jax.jit(vars(elementary)[name])(values))
    assert got.dtype == values.dtype
    expected = exact(values.astype(np.float64))
    eps = EPS if not x64 else float(np.finfo(np.float64).eps)
    np.testing.assert_allclose(got, expected, rtol=units * eps)


@pytest.mark.parametrize("name", CASES)
def test_ends_of_the_range(name):
    end = np.float32(1 if name == "log_from_one" else 0)
    assert float(vars(elementary)[name](jax.numpy.asarray(end))) == 0
