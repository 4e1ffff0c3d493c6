"""Tuning: regret falls on fresh runs, masks hold, several tasks, the command line."""

import importlib
import json

import jax
import pytest

import jaxbandit as jb

tune_module = importlib.import_module("jaxbandit.tune")  # jb.tune is the function
KEY = jax.random.key(0)
LAW, DELAYS = jb.losses.Bernoulli([0.3, 0.5, 0.5]), jb.delays.Fixed(3)
SMALL = {"rounds": 60, "runs": 64, "steps": 4, "fresh_runs": 128, "key": KEY}


def test_regret_falls_and_the_rest_stays():
    start = jb.BestOfBothWorlds(3, linear=5.0)
    tuned = jb.tune(start, LAW, DELAYS, only=["factor"], **SMALL)
    assert tuned.after.value < tuned.before.value - 5 * (tuned.before.error + tuned.after.error)
    assert float(tuned.learner.factor) < 24
    assert (float(tuned.learner.linear), float(tuned.learner.max_delay)) == (5.0, 3.0)
    assert tuned.path["factor"].shape == (5,)
    assert tuned.path["regret"].shape == (4,)
    assert set(tuned.audit.used) == set(tuned.audit.paired) == {"factor"}
    assert "regret" in str(tuned)


def test_facts_and_zeros_are_not_tuned_by_themselves():
    learner = tune_module.canonical(jb.BestOfBothWorlds(3, linear=0.0))
    assert list(tune_module._chosen(learner, None)) == ["factor", "tsallis_scale", "entropy_scale"]


@pytest.mark.slow
def test_the_worst_of_several_tasks():
    laws = [LAW, jb.losses.Bernoulli([0.1, 0.8, 0.8])]
    tuned = jb.tune(jb.BestOfBothWorlds(3), laws, [DELAYS], only=["factor"], goal="worst", audit=False, **SMALL)
    assert tuned.before.tasks.shape == (2,)
    assert tuned.before.value == tuned.before.tasks.max()
    assert tuned.after.value < tuned.before.value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps=0"),
        ({"goal": "best"}, "goal='best'"),
        ({"only": ["facto"]}, r"only=\['facto'\]"),
        ({"only": ["linear"]}, "linear=0.0 is not a positive number"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        jb.tune(jb.BestOfBothWorlds(3, linear=0.0), LAW, DELAYS, **(SMALL | options))


SPEC = """
rounds = 60
[tune]
steps = 2
runs = 64
fresh_runs = 128
only = ["factor"]
audit = false
[[learners]]
name = "bobw"
max_delay = 3
[[losses]]
name = "bernoulli"
means = [0.3, 0.5, 0.5]
[[delays]]
name = "fixed"
delay = 3
"""


def test_spec(tmp_path, capsys):
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC)
    (tuned,) = tune_module.run_spec(spec, tmp_path / "out")
    assert "bobw: regret" in capsys.readouterr().out
    written = json.loads((tmp_path / "out" / "tuned.json").read_text())
    assert written["bobw"]["values"]["factor"] == pytest.approx(float(tuned.learner.factor))


def test_wrong_spec(tmp_path):
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC.replace("steps", "stepz").replace("max_delay = 3", 'max_delay = "oracle"'))
    with pytest.raises(ValueError, match=r"(?s)tune.stepz.*did you mean 'steps'.*learners\[0\].max_delay"):
        tune_module.run_spec(spec, None)
