"""The enumerated games of docs/notes/jump_tangent.md: the identity for the bias, and the limit of the theorem."""

import jax
import numpy as np
import pytest

from experiments.notes import jump_tangent


@pytest.mark.parametrize(("share", "scale"), [(0.0, 3.0), (1.0, 3.0)])
def test_the_bias_is_that_of_the_identity_and_below_the_limit(share, scale):
    """A limit with constants that are 150 times smaller is exceeded, so that the comparison has power."""
    game = jump_tangent.TwoArms((0.3, 0.7), share, rounds=3, delay=0)
    mean, bias, limit = game.walk(scale, 1, 0.0, (), 0.0, ())
    assert mean - game.derivative(scale) == pytest.approx(bias, rel=1e-3)
    assert limit / 150 < abs(bias) < limit


@pytest.mark.thorough
def test_the_constants_of_the_lemma():
    """Limits with 1.9, 3.9 and 7.9 in place of 3, 25.5 and 51 are exceeded."""
    with jax.enable_x64(True):
        found = jump_tangent.constants(draws=2000)
    assert np.all(found <= [1 + 1e-9, 3, 25.5, 51])
    assert np.all(found[1:] > [1.9, 3.9, 7.9])
