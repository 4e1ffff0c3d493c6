"""The map of the lowest regret over delay and horizon."""

import json

import numpy as np
import pytest

import jaxbandit as jb
from experiments.choosing import adversary, map, overview


@pytest.mark.thorough
def test_a_small_map(tmp_path, monkeypatch, capsys):
    """An algorithm that avoids the worse arms has the lowest regret in every cell of both panels."""
    for name, value in {"RUNS": 4, "DELAYS": (1, 2), "HORIZONS": (10, 20), "BOUND": 2}.items():
        monkeypatch.setattr(map, name, value)
    monkeypatch.setattr(map, "learners", lambda delay: {"uniform": jb.Uniform(), "Exp3": jb.DelayedExp3()})
    monkeypatch.setattr(adversary, "GENERATIONS", 1)
    benign = jb.losses.Bernoulli([0.0, 1.0, 1.0, 1.0])
    monkeypatch.setattr(map, "games", lambda delay: {"easy": benign, "in step": jb.losses.DelayMatchedSwitching(delay, 4)})
    map.map(out=tmp_path)
    told = capsys.readouterr().out
    assert (tmp_path / "map.png").stat().st_size > 10_000
    rows = told[told.index("stochastic losses:") :].splitlines()[2:4]
    assert all(row.count("Exp3") == 2 for row in rows), rows
    assert "Never lowest: " in told


@pytest.mark.thorough
def test_the_overview_sorts_by_the_worst_case(tmp_path, monkeypatch, capsys):
    """Rows from below by decreasing worst case, and a title computed from the numbers."""
    monkeypatch.setattr(overview, "ROUNDS", 60)
    monkeypatch.setattr(overview, "RUNS", 4)
    kept = ("Delayed Exp3", "Tsallis-INF", overview.BASELINE)
    monkeypatch.setattr(overview, "ALGORITHMS", {name: overview.ALGORITHMS[name] for name in kept})
    monkeypatch.setattr(overview, "DESIGNED", ("Delayed Exp3",))
    drawn = []
    draw = overview.draw
    monkeypatch.setattr(overview, "draw", lambda found: drawn.append(draw(found)) or drawn[0])
    overview.overview(out=tmp_path)
    numbers = json.loads((tmp_path / "overview.json").read_text())
    worst = {name: max(cell["mean"] for cell in row.values()) for name, row in numbers.items()}
    rows = [label.get_text() for label in drawn[0].axes[0].get_yticklabels()]
    assert rows == sorted(worst, key=lambda name: -worst[name])
    means = [cell["mean"] for cell in numbers["Delayed Exp3"].values()]
    assert f"at most {max(means) / min(means):.1f}-fold" in drawn[0].get_suptitle()
    assert "overview.png" in capsys.readouterr().out


def test_ties_of_the_map_are_paired_and_corrected():
    """A shared noise cancels in pairs; one weak difference among many cells is no discovery."""
    draw = np.random.default_rng(0)
    shared = 10 * draw.normal(size=(1, 4, 5, 64))
    regret = np.concatenate([shared, shared + 0.5 + 0.1 * draw.normal(size=shared.shape)])
    assert not map.not_worse(regret)[1].any()  # an unpaired test sees nothing in noise of 10
    equal = draw.normal(size=(2, 4, 5, 64))
    assert map.not_worse(equal).all()
    assert map.not_worse(np.stack([equal[0], equal[0]])).all()  # the same runs
    one = equal.copy()
    one[1, 0, 0] += 5
    assert map.not_worse(one).sum() == one[..., 0].size - 1


def test_environments_of_candidates_are_one_environment_per_run():
    """Three phases, of which the second makes arm 0 the worst; a candidate per run has the same means as alone."""
    candidates = np.array([[0.1, 0.05, 1.0, 0.4, 0.8], [0.2, 0.1, 0.9, 0.5, 0.7]]).T
    together = adversary.environment(candidates, 100)
    for run in range(2):
        alone = adversary.environment(candidates[:, run], 100)
        for t in (1, 11, 12, 17, 18, 22, 33, 34, 100):
            np.testing.assert_array_equal(together.expected(t)[:, run], alone.expected(t))
    np.testing.assert_allclose(np.asarray([alone.expected(t) for t in (21, 22, 100)])[:, :2], [[0.9, 0.9], [1, 0.5], [0, 0.7]])
