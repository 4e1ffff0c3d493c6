"""The map of the lowest regret over delay and horizon."""

import pytest

import jaxbandit as jb
from experiments.choosing import map


@pytest.mark.thorough
def test_a_small_map(tmp_path, monkeypatch, capsys):
    """An algorithm that avoids the worse arms has the lowest regret in every cell of both panels."""
    for name, value in {"RUNS": 4, "DELAYS": (1, 2), "HORIZONS": (10, 20), "BOUND": 2}.items():
        monkeypatch.setattr(map, name, value)
    monkeypatch.setattr(map, "learners", lambda delay: {"uniform": jb.Uniform(), "Exp3": jb.DelayedExp3()})
    benign = jb.losses.Bernoulli([0.0, 1.0, 1.0, 1.0])
    monkeypatch.setattr(map, "games", lambda delay: {"easy": benign, "in step": jb.losses.DelayMatchedSwitching(delay, 4)})
    map.map(out=tmp_path)
    told = capsys.readouterr().out
    assert (tmp_path / "map.png").stat().st_size > 10_000
    rows = told[told.index("stochastic losses:") :].splitlines()[2:4]
    assert all(row.count("Exp3") == 2 for row in rows), rows
    assert "Never lowest: " in told
