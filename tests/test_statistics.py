"""Tests and their corrections against independent ones."""

import mpmath
import numpy as np
import pytest

from jaxbandit.statistics import holm, paired_test, student_p


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 30, 255, 1023])
def test_student_p_against_mpmath(freedom):
    for t in (0.0, 0.3, 1.0, 2.5, 4.0, -3.0):
        exact = mpmath.betainc(freedom / 2, 0.5, 0, freedom / (freedom + t * t), regularized=True)
        assert student_p(t, freedom) == pytest.approx(float(exact), rel=1e-9, abs=1e-13)


def test_holm_against_its_definition():
    values = [0.001, 0.2, 0.04, 0.01, 0.01, 0.9]
    ordered = sorted(values)
    steps = [max(min(1, (len(values) - j) * ordered[j]) for j in range(i + 1)) for i in range(len(values))]
    np.testing.assert_allclose(holm(values), [steps[ordered.index(v)] for v in values])
    assert holm([]).size == 0


def test_false_claims_are_rare_under_the_null():
    """400 reports of 15 pairs of equal learners: at most about 5 % of the reports claim any difference."""
    chance = np.random.default_rng(0)
    claims = 0
    for _ in range(400):
        runs = chance.normal(size=(6, 64)) + chance.normal(size=64)  # shared luck, as in paired runs
        p = [paired_test(runs[i] - runs[j])[2] for i in range(6) for j in range(i)]
        claims += bool(np.any(holm(p) < 0.05))
    assert claims / 400 < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 400)
