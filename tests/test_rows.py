"""Rows of tables, against NumPy's indexing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandit._core.ring import read_row, write_own_number, write_own_row, write_row

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(5, 7), (5, 3, 7)])
def test_each_run_has_its_own_row(shape):
    table, row = RNG.random(shape).astype(np.float32), RNG.integers(0, 5, 7).astype(np.int32)
    expected = np.stack([table[row[run], ..., run] for run in range(7)], -1)
    np.testing.assert_array_equal(read_row({"one": jnp.asarray(table)}, jnp.asarray(row))["one"], expected)

    new = RNG.random(shape[1:]).astype(np.float32)
    written = write_own_row(jnp.asarray(table), jnp.asarray(new), jnp.asarray(row))
    for run in range(7):
        table[row[run], ..., run] = new[..., run]
    np.testing.assert_array_equal(written, table)
    if len(shape) == 2:
        given = jnp.asarray(RNG.random(shape).astype(np.float32)), jnp.asarray(new), jnp.asarray(row)
        np.testing.assert_array_equal(write_own_number(*given), write_own_row(*given))


def test_one_row_for_all_runs():
    table, new = RNG.random((5, 3, 7)).astype(np.float32), RNG.random((3, 7)).astype(np.float32)
    np.testing.assert_array_equal(read_row(jnp.asarray(table), jnp.int32(3)), table[3])
    for write in (write_row, write_own_row, write_own_number):
        after = table.copy()
        after[3] = new
        np.testing.assert_array_equal(write(jnp.asarray(table), jnp.asarray(new), jnp.int32(3)), after)


def test_numbers_of_their_own_are_set_at_once_on_a_gpu_and_in_turn_on_a_cpu():
    """A loop over 65,536 runs in every round would take a GPU longer than all the rest."""
    traced = jax.jit(write_own_number).trace(jnp.zeros((5, 7)), jnp.zeros(7), jnp.zeros(7, jnp.int32))
    text = {one: traced.lower(lowering_platforms=(one,)).as_text() for one in ("cpu", "cuda", "tpu")}
    assert {one: ("stablehlo.scatter" in text[one], "stablehlo.while" in text[one]) for one in text} == {
        "cpu": (False, True),
        "cuda": (True, False),
        "tpu": (True, False),
    }
