"""A sweep as data: every number that varies is a coordinate, and axes may have names of one's own."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.extend import pytree_dataclass, whole_number
from jaxbandit.sweeps.plan import Plan
from jaxbandit.sweeps.spec import SpecError


@pytest.mark.thorough
def test_numbers_that_vary_are_coordinates(tmp_path):
    waits = [10, 9, 5]  # two bounds, 16 and 8
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
    np.testing.assert_array_equal(
        data.regret.sel(learner_factor=24.0, losses="hard", delays_delay=9, round=30).squeeze(), by_delay
    )
    assert list(data.delays.values) == ["fixed delay=10", "fixed delay=9", "fixed delay=5"]
    for choice in ({"delays": 9}, {"delay": 9}, {"delays_delay": 9}, {"delays": "fixed delay=9"}):
        chosen = data.sel(learner="paper", losses="hard", **choice)
        np.testing.assert_array_equal(chosen.regret.sel(round=30), by_delay)
    assert list(data.sel(delay=[5, 9]).delays_delay) == [5, 9]
    assert list(data.sel(delay=8.8, method="nearest").sizes.values()) == [3, 2, 1, 4]
    with pytest.raises(KeyError, match=r"sel\(delays_delay=11\): there is \[10.0, 9.0, 5.0\]"):
        data.sel(delay=11)
    with pytest.raises(KeyError, match=r"sel\(dealys=9\): there is no such coordinate; did you mean 'delays'"):
        data.sel(dealys=9)
    with pytest.raises(KeyError, match=r"sel\(learner='papers'\): there is \['paper', 'lowered', 'none'\]"):
        data.sel(learner="papers", delay=9)
    assert list(data.learner_name.values) == ["bobw", "bobw", "uniform"]
    table = data.to_pandas()
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


@pytree_dataclass
class Weekly(jb.delays.Delays):
    """A law of the user's own, which may only be named by its class."""

    delay: int = whole_number()
    bound = 8

    def draw(self, t, arm, loss, noise):
        return jnp.full_like(arm, self.delay)


@pytest.mark.parametrize(
    ("axis", "points", "labels"),
    [
        ("delays", [Weekly(1), Weekly(2)], ["Weekly delay=1", "Weekly delay=2"]),
        ("losses", [jb.losses.Bernoulli([0.5 - 0.4, 0.5]), jb.losses.Bernoulli([0.5, 1 / 3])], ["bernoulli means=[0.1, 0.5]", "bernoulli means=[0.5, 0.333333]"]),
        ("delays", [jb.delays.Fixed(1), jb.delays.Fixed(10), jb.delays.Geometric(5.0)], ["fixed delay=1", "fixed delay=10", "geometric"]),
        ("delays", [jb.delays.Geometric(5.0, bound=9), jb.delays.Geometric(5.0, bound=90)], ["geometric bound=9", "geometric bound=90"]),
        (
            "learners",
            [jb.Entry("bobw", {"max_delay": "oracle"}), jb.Entry("bobw", {"max_delay": "oracle", "factor": 1.0})],
            ["bobw factor=24", "bobw factor=1"],
        ),
        (
            "losses",
            [jb.losses.Bernoulli([0.2] * 9 + [end]) for end in (0.3, 0.4)],
            [f"bernoulli means=[0.2, 0.2, 0.2, … 10] [{number}]" for number in (0, 1)],
        ),
    ],
)  # fmt: skip
def test_labels_name_only_what_differs(axis, points, labels):
    axes = {"learners": [jb.Uniform()], "losses": [jb.losses.Bernoulli([0.1, 0.9])], "delays": [jb.delays.Fixed(1)]}
    assert [point.label for point in Plan.make(jb.Spec(9, 1, **{**axes, axis: points})).axes[axis]] == labels


def test_while_a_sweep_goes_on_its_earlier_rounds_are_there(tmp_path):
    """A block whose later rounds are missing shows the earlier ones; one that shows nothing, or zeros, fails."""
    spec = jb.Spec(20, 4, [jb.Uniform()], [jb.losses.Bernoulli([0.25, 0.75])], [jb.delays.Fixed(1)], record=[10, 20])
    jb.sweep(spec, tmp_path)
    jb.sweep(spec, tmp_path, rounds=40)
    next(tmp_path.glob("units/*/*_20-40_*.npz")).unlink()
    data = jb.open_sweep(tmp_path)
    np.testing.assert_array_equal(data.regret.isel(run=0).squeeze().values, [2.5, 5.0, np.nan, np.nan][: data.sizes["round"]])
    assert np.isnan(data.total_delay.values).all()
