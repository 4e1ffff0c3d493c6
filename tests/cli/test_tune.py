"""``jaxbandit tune``: what it writes, and what it says to a wrong spec before anything is computed."""

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._io.files import write_whole
from jaxbandit.cli import app
from jaxbandit.gradients import tuning
from jaxbandit.gradients.tuned import Outcome, Tuned

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


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(spec, *words):
        Path("spec.toml").write_text(spec)
        status = app.call(["tune", "spec.toml", *words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.mark.thorough
def test_tunes_and_writes(call):
    status, out, _ = call(SPEC, "--out", "out")
    assert status == 0
    assert "bobw: regret" in out
    written = json.loads(Path("out/tuned.json").read_text())["bobw"]
    assert written["path"]["factor"][0] == pytest.approx(24)
    assert 0 < written["values"]["factor"] < 24
    assert len(written["path"]["regret"]) == 2
    assert os.listdir("out") == ["tuned.json"]


@pytest.mark.thorough
def test_a_stopped_command_goes_on(call, monkeypatch):
    """Stopped in its second step, then called again: the same file as of a command that was never stopped."""
    call(SPEC, "--out", "whole")
    gradient, steps = tuning.regret_gradient, []

    def stopped(*arguments, **named):
        steps.append(named["first_run"])
        if len(steps) == 2:
            raise KeyboardInterrupt
        return gradient(*arguments, **named)

    monkeypatch.setattr(tuning, "regret_gradient", stopped)
    status, _, err = call(SPEC, "--out", "out")
    assert status == 130
    assert "run the same command to resume" in err
    assert os.listdir("out") == ["unfinished-0.json"]
    status, _, err = call(SPEC.replace("rounds = 60", "rounds = 61"), "--out", "out")
    assert status == 1
    assert "unfinished-0.json': it holds a tuning with another rounds" in err
    whole = Path("out/unfinished-0.json").read_bytes()
    Path("out/unfinished-0.json").write_bytes(whole[:-9])
    status, _, err = call(SPEC, "--out", "out")
    assert (status, "this is not the whole file of a tuning; remove it" in err) == (1, True)
    Path("out/unfinished-0.json").write_bytes(whole)
    status, _, err = call(SPEC, "--out", "out")
    assert (status, err.count("Traceback")) == (0, 0)
    assert steps == [0, 64, 64]
    assert os.listdir("out") == ["tuned.json"]
    assert Path("out/tuned.json").read_bytes() == Path("whole/tuned.json").read_bytes()


def test_numbers_that_are_not_known_are_null(call, monkeypatch):
    outcome = Outcome(1.0, np.nan, np.ones(1), np.ones(1))
    path = {"factor": np.ones(2), "regret": np.ones(1), "error": np.full(1, np.nan)}
    tuned = Tuned(jb.BestOfBothWorlds(3), path, outcome, outcome, None)

    def finished(*_, file, **__):
        write_whole(file, "")
        return tuned

    monkeypatch.setattr(tuning, "tune", finished)
    assert call(SPEC, "--out", "out")[0] == 0
    text = Path("out/tuned.json").read_text()
    assert "NaN" not in text
    assert json.loads(text)["bobw"]["before"] == [1.0, None]


def test_a_learner_of_ones_own(call, monkeypatch):
    Path("own_to_tune.py").write_text(
        "import jaxbandit as jb\nfrom jaxbandit.extend import pytree_dataclass\n\n@pytree_dataclass\nclass Mine(jb.BestOfBothWorlds):\n    pass\n"
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    tuned = []

    def begun(learner, *_, **__):
        tuned.append(type(learner).__name__)
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "tune", begun)
    spec = changed('"bobw"', '"own_to_tune:Mine"')
    status, _, err = call(spec)
    assert (status, "--imports" in err) == (2, True)
    assert call(spec, "--imports")[0] == 130
    assert tuned == ["Mine"]


def changed(old, new):
    assert old in SPEC
    return SPEC.replace(old, new)


WRONG = [
    (changed("steps = 2", "stepz = 2"), "tune.stepz.*did you mean 'steps'"),
    (changed("steps = 2", "steps = 0"), "steps=0: the number of steps"),
    (changed("steps = 2", "steps = 2.5"), "steps=2.5: the number of steps"),
    (changed("runs = 64", "runs = 0"), "runs=0: the number of runs"),
    (changed("fresh_runs = 128", 'fresh_runs = "many"'), "fresh_runs='many': the number of runs"),
    (changed("fresh_runs = 128", "fresh_runs = 0"), "fresh_runs=0: the number of runs"),
    (changed('only = ["factor"]', 'only = ["facto"]'), r"only=\['facto'\]: BestOfBothWorlds has the hyperparameters"),
    (changed('only = ["factor"]', "only = []"), r"only=\[\]: give a list"),
    (changed('only = ["factor"]', 'only = "factor"'), "only='factor': give a list"),
    (changed('only = ["factor"]', 'goal = "best"'), "goal='best': the goal"),
    (changed('only = ["factor"]', 'estimator = "magic"'), "estimator='magic': the estimators are"),
    (changed("steps = 2", "tolerance = 2"), "tolerance=2: a part of the regret"),
    (changed("audit = false", '[tune.constraints]\nfactor = "round"'), "a constraint is 'positive', 'simplex' or 'real'"),
    (changed("audit = false", 'constraints = "simplex"'), "constraints='simplex': give a dict of names"),
    (changed('only = ["factor"]', 'rate = "fast"'), "tune.rate: 'fast' is not a rate"),
    (changed('only = ["factor"]', "rate = -1"), "tune.rate: -1 is not a rate"),
    (changed("audit = false", 'audit = "no"'), "tune.audit: 'no' is not true or false"),
    (changed("rounds = 60", ""), "rounds: this field is needed"),
    (changed("rounds = 60", "rounds = 0"), "rounds=0: the number of rounds"),
    (changed("rounds = 60", "rounds = 60\nseed = -1"), "seed: -1 is not a seed"),
    (changed("[tune]", "tune = 3\n[other]"), "tune: 3 is not a table"),
    (changed("max_delay = 3", 'max_delay = "oracle"'), r"learners\[0\].max_delay: tune needs a number here"),
    (changed("max_delay = 3", "max_delay = -3"), r"max_delay=-3"),
    (changed('name = "bobw"\nmax_delay = 3', 'name = "uniform"'), r"Uniform\(…\): it has no hyperparameter"),
    (changed("means = [0.3, 0.5, 0.5]", "means = [0.3, 1.5]"), "1.5"),
    (
        changed('name = "fixed"\ndelay = 3', 'name = "trace"\ndelays = [1, 2]'),
        "rounds=60: delays.Trace has only 2 rounds",
    ),
    ("rounds = ", "spec.toml: .*this is not TOML"),
    ("[[learners]]", "spec.toml"),
]


@pytest.mark.parametrize(("spec", "message"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_spec(call, monkeypatch, spec, message):
    """A sentence and exit status 2, nothing computed and nothing written."""
    monkeypatch.setattr(tuning, "regret_gradient", None)
    status, _, err = call(spec, "--out", "out")
    assert status == 2
    assert "Traceback" not in err
    assert "JAXBANDIT_TRACEBACK" not in err
    assert re.search(message, " ".join(err.split())), err
    assert os.listdir() == ["spec.toml"]


def test_all_problems_at_once(call):
    status, _, err = call(changed("steps = 2", "stepz = 2").replace("max_delay = 3", 'max_delay = "oracle"'))
    assert status == 2
    assert "tune.stepz" in err
    assert "learners[0].max_delay" in err
