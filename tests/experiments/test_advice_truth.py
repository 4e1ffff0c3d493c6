"""The compiled simulator of the validation of advice against the one in NumPy."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "experiments" / "advice_validation"


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("reported", [False, True], ids=["known when the window closes", "failures are reported"])
def test_both_simulators_have_the_same_regrets(monkeypatch, reported):
    """18 settings of eight learners, delays by arm, revenue: means within five standard errors.

    Rejects ages counted a round early or late, feedback a round late, a level without the logarithm, and conversions after the window.
    """
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    import compiled
    import simulator

    values = np.random.default_rng(0).uniform(0.2, 1, (3, 20))
    failures = np.array([1.0, 20.0, 4.0]) if reported else np.full(3, np.inf)
    one = simulator.Environment(
        np.array([0.5, 0.3, 0.4]), np.array([30.0, 5.0, 2.0]), np.array([0.4, 1.0, 0.7]), failures, values, 60.0, 150.0, 300
    )
    found = compiled.differences(one, 128, 400, (1,))
    assert len(found) == 18
    assert max(abs(errors) for *_, errors in found.values()) < 5, found
    assert min(ours for ours, *_ in found.values()) < 0.8 * max(ours for ours, *_ in found.values())
