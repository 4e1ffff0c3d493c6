"""``jaxbandit map``: its adversary is the demo's, and its cells say who has the least regret."""

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.cli import demo, map


def test_the_adversary_is_that_of_the_demo():
    """Written there as a table of phases, here as a formula."""
    table = [*demo.regimes().values()][1]
    law = map.TakingTurns(demo.DELAY)
    for t in (1, 2 * demo.DELAY, 2 * demo.DELAY + 1, 4 * demo.DELAY, 4 * demo.DELAY + 1, 777):
        np.testing.assert_allclose(law.expected(np.int32(t)), table.expected(np.int32(t)), atol=1e-6)


@pytest.mark.thorough
def test_a_small_map(tmp_path, monkeypatch, capsys):
    """Who never plays the worse arm wins in every cell of both panels."""
    for name, value in {"RUNS": 4, "DELAYS": (1, 2), "HORIZONS": (10, 20), "BOUND": 2}.items():
        monkeypatch.setattr(map, name, value)
    monkeypatch.setattr(map, "learners", lambda delay: {"uniform": jb.Uniform(), "Exp3": jb.DelayedExp3()})
    benign = jb.losses.Bernoulli([0.0, 1.0, 1.0, 1.0])
    monkeypatch.setattr(map, "games", lambda delay: {"easy": benign, "in step": map.TakingTurns(delay)})
    map.map(out=tmp_path)
    told = capsys.readouterr().out
    assert (tmp_path / "map.png").stat().st_size > 10_000
    rows = told[told.index("nobody means harm") :].splitlines()[2:4]
    assert all(row.count("Exp3") == 2 for row in rows), rows
    assert "Nowhere the best: " in told
