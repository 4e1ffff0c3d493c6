"""A sweep as data: every number that varies is a coordinate, and axes may have names of one's own."""

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.sweeps.spec import SpecError


def test_numbers_that_vary_are_coordinates(tmp_path):
    waits = [2, 9, 5]
    spec = jb.Spec(
        rounds=30, runs=4, record=[30],
        learners={"paper": jb.BestOfBothWorlds("oracle"), "lowered": jb.BestOfBothWorlds("oracle", factor=1.0), "none": jb.Uniform()},
        losses={"easy": jb.losses.Bernoulli([0.1, 0.9]), "hard": jb.losses.Bernoulli([0.4, 0.5])},
        delays=[jb.delays.Fixed(wait) for wait in waits],
    )  # fmt: skip
    data = jb.open_sweep(jb.sweep(spec, tmp_path / "out").out)
    assert list(data.learner.values) == ["paper", "lowered", "none"]
    assert list(data.losses.values) == ["easy", "hard"]
    np.testing.assert_array_equal(data.delays_delay, waits)
    np.testing.assert_array_equal(data.learner_factor, [24.0, 1.0, np.nan])
    assert "delays_bound" not in data.coords, "it follows from the delay"
    by_delay = data.swap_dims(delays="delays_delay").regret.sel(learner="paper", losses="hard", delays_delay=9, round=30)
    direct = jb.simulate(jb.BestOfBothWorlds(9), jb.losses.Bernoulli([0.4, 0.5]), jb.delays.Fixed(9), rounds=30, runs=4, seed=0)
    np.testing.assert_array_equal(by_delay, direct.regret[-1])
    table = data.to_dataframe().reset_index()
    assert len(table) == 3 * 2 * 3 * 1 * 4
    chosen = table[(table.learner == "paper") & (table.losses == "hard") & (table.delays_delay == 9)]
    np.testing.assert_array_equal(chosen.regret, direct.regret[-1])


def test_entries_by_name_and_wrong_names(tmp_path):
    axes = {"losses": [jb.losses.Bernoulli([0.1, 0.9])], "delays": [jb.delays.Fixed(1)]}
    named = jb.Spec(rounds=9, runs=1, learners={"mine": jb.Entry("mzs22", {"max_delay": 1}, grid={"factor": [1.0, 2.0]})}, **axes)
    data = jb.open_sweep(jb.sweep(named, tmp_path / "a").out)
    assert list(data.learner.values) == ["mine factor=1", "mine factor=2"]
    np.testing.assert_array_equal(data.learner_factor, [1.0, 2.0])
    with pytest.raises(SpecError, match=r"learners\[0\].label: 3 is not a text"):
        jb.sweep(jb.Spec(rounds=9, runs=1, learners={3: jb.Uniform()}, **axes), tmp_path / "b")
    with pytest.raises(SpecError, match=r"learners: a sweep needs at least one"):
        jb.sweep(jb.Spec(rounds=9, runs=1, learners={}, **axes), tmp_path / "c")
