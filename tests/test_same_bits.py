"""A run is a pure function of (learner, losses, delays, key, run id): the same bits however it is computed."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._engine import simulation

KEY = jax.random.key(7)
LOSSES = jb.losses.Bernoulli([0.3, 0.5, 0.5])
SETTINGS = {
    "fixed": (jb.BestOfBothWorlds(5), LOSSES, jb.delays.Fixed(5)),
    "slots": (jb.BestOfBothWorlds(15, factor=0.5), LOSSES, jb.delays.Geometric(3.0, bound=15)),
    "per run": (jb.TsallisINF("rv"), LOSSES, jb.delays.Geometric(3.0, bound=15)),
    "shared": (
        jb.BestOfBothWorlds(16),
        jb.losses.StochasticallyConstrained(0.2, 3),
        jb.delays.Geometric(3.0, bound=16, shared=True),
    ),
    "outlier": (jb.TsallisINF(), jb.losses.Beta([0.3, 0.5, 0.5]), jb.delays.Outlier(first=150, count=3)),
}


def simulate(name, rounds=200, runs=300, **options):
    learner, losses, delays = SETTINGS[name]
    return jb.simulate(learner, losses, delays, rounds=rounds, runs=runs, key=KEY, record=[50, 120, 200], **options)


IN_SHORT = ("fixed", "slots", "per run")  # the others: `make test-all`


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=() if name in IN_SHORT else pytest.mark.thorough) for name in SETTINGS]
)
def setting(request):
    return request.param, simulate(request.param)


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param(1, marks=pytest.mark.thorough),
        pytest.param(7, marks=pytest.mark.thorough),
        pytest.param(64, marks=pytest.mark.thorough),
        1000,
    ],
)
def test_any_number_of_runs(setting, runs):
    name, whole = setting
    some = simulate(name, runs=runs)
    common = min(runs, 300)
    np.testing.assert_array_equal(some.regret[:, :common], whole.regret[:, :common])


@pytest.mark.parametrize(
    "first", [pytest.param(1, marks=pytest.mark.thorough), 100, pytest.param(255, marks=pytest.mark.thorough)]
)
def test_any_first_run(setting, first):
    name, whole = setting
    np.testing.assert_array_equal(simulate(name, runs=300 - first, first_run=first).regret, whole.regret[:, first:])


def test_one_device_or_two(setting, monkeypatch):
    name, whole = setting
    assert jax.local_device_count() == 2, "the tests' own set-up should have made two devices"
    monkeypatch.setattr(jax, "local_devices", lambda: jax.devices()[:1])
    np.testing.assert_array_equal(simulate(name).regret, whole.regret)


@pytest.mark.parametrize(
    "stop",
    [
        pytest.param(1, marks=pytest.mark.thorough),
        49,
        pytest.param(50, marks=pytest.mark.thorough),
        pytest.param(121, marks=pytest.mark.thorough),
    ],
)
def test_stop_and_go_on(setting, stop, tmp_path):
    name, whole = setting
    learner, losses, delays = SETTINGS[name]
    first = jb.simulate(learner, losses, delays, rounds=stop, runs=300, key=KEY, record=1)
    first.save(tmp_path / "half.npz")
    record = [r for r in (50, 120, 200) if r > stop]
    rest = jb.simulate(
        learner, losses, delays, rounds=200, runs=300, key=KEY, record=record, resume=jb.Result.load(tmp_path / "half.npz")
    )
    np.testing.assert_array_equal(rest.regret, whole.regret[-len(record) :])
    for mine, theirs in zip(rest.state, whole.state, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(rest.total_delay, whole.total_delay)
    np.testing.assert_array_equal(rest.outstanding_max, whole.outstanding_max)


def test_segments_do_not_matter(setting, monkeypatch):
    name, whole = setting
    monkeypatch.setattr(simulation, "SEGMENT", 32 * 256 * 3)
    monkeypatch.setattr(simulation, "TICK", 0)
    np.testing.assert_array_equal(simulate(name).regret, whole.regret)


def test_another_key_is_another_run(setting):
    name, whole = setting
    learner, losses, delays = SETTINGS[name]
    other = jb.simulate(learner, losses, delays, rounds=200, runs=300, key=jax.random.key(8), record=[50, 120, 200])
    assert (other.regret[-1] != whole.regret[-1]).mean() > 0.9


@pytest.mark.thorough
def test_learners_share_losses_and_delays():
    """Paired: with one key, two learners that play the same arm suffer the same loss after the same delay."""
    one = jb.simulate(jb.Uniform(), LOSSES, jb.delays.Geometric(3.0, bound=15), rounds=500, runs=64, key=KEY)
    two = jb.simulate(jb.TsallisINF(), LOSSES, jb.delays.Geometric(3.0, bound=15), rounds=500, runs=64, key=KEY)
    np.testing.assert_array_equal(one.total_delay, two.total_delay)
    np.testing.assert_array_equal(one.lost, two.lost)
    assert len(set(one.total_delay)) > 32


@pytest.mark.thorough
def test_precision_of_the_caller(tmp_path):
    """``jax.enable_x64`` holds for a simulation and a sweep inside it, whose threads would know nothing of it by themselves."""
    game = jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(1)
    spec = jb.Spec(rounds=20, runs=2, learners=[game[0]], losses=[game[1]], delays=[game[2]])
    with jax.enable_x64(True):
        result = jb.simulate(*game, rounds=20, runs=2, key=jax.random.key(0))
        assert jb.sweep(spec, tmp_path / "double").failed == {}
        found = jb.open_sweep(tmp_path / "double").regret.values
    single = jb.simulate(*game, rounds=20, runs=2, key=jax.random.key(0))
    assert (result.regret.dtype, single.regret.dtype) == (np.float64, np.float32)
    assert np.array_equal(found.ravel(), result.regret.ravel())
    assert np.any(result.regret != single.regret)
