"""The spec and the commands of docs/sweeps.md work as printed, with fewer rounds and runs; test_docs.py runs its Python."""

import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.cli import app
from jaxbandit.sweeps.plan import Plan

PAGE = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")
SMALL = {"rounds = 20_000": "rounds = 40", "runs = 1024": "runs = 2"}


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the spec of the page and the files that it names."""
    monkeypatch.chdir(tmp_path)
    (spec,) = blocks("toml")
    for printed, small in SMALL.items():
        assert printed in spec
        spec = spec.replace(printed, small)
    Path("spec.toml").write_text(spec)
    np.savetxt("trace.csv", np.arange(40) % 7, fmt="%d")
    shutil.copy(jb.logs.example(), "clicks.csv")
    return tmp_path


def test_the_spec_is_read(folder):
    plan = Plan.make(folder / "spec.toml")
    assert len(plan.cells) == (3 + 1) * 2 * (1 + 1 + 2)


@pytest.mark.slow
def test_the_commands_run(folder, capsys):
    commands = [line.split("#")[0].split() for line in blocks("")[0].splitlines()]
    assert [words[:2] for words in commands] == [["jaxbandit", name] for name in ("sweep", "status", "report")]
    for words in commands:
        assert app.call(words[1:]) == 0, capsys.readouterr().err
    assert (folder / "results" / "report" / "report.html").exists()


def test_the_job_script(folder):
    """What Slurm would start, with ``srun`` and ``jaxbandit`` that only print; the page shows the file."""
    script = Path(__file__).parents[2] / "experiments" / "sweep_example" / "array.sbatch"
    assert blocks("bash") == [script.read_text()]
    for name, text in (("srun", '"$@"'), ("jaxbandit", 'printf "%s\\n" "$@"')):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SLURM_ARRAY_TASK_ID": "3"}
    done = subprocess.run(
        ["bash", script, "spec.toml", "my results"], env=environment, capture_output=True, text=True, check=True
    )
    words = done.stdout.splitlines()
    assert words == ["sweep", "spec.toml", "--out", "my results", "--part", "3/16", "--memory", "6GB"]


def test_the_recipe_for_weights_and_biases(tmp_path, monkeypatch):
    """One wandb run per cell, with its mean regret; a recipe that logs one cell, or other means, is rejected."""
    monkeypatch.chdir(tmp_path)
    spec = jb.Spec(
        rounds=20, runs=2, record=3, learners=[jb.Uniform()], losses=[jb.losses.Bernoulli([0.25, 0.75])],
        delays=[jb.delays.Fixed(1), jb.delays.Fixed(2)],
    )  # fmt: skip
    jb.sweep(spec, "results")
    logged: dict[str, list] = {}

    class Run:
        def __init__(self, project, config):
            self.mine = logged.setdefault(config["delays"], [])

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

        def log(self, values, step):
            self.mine.append((step, values["regret"]))

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=Run))
    (recipe,) = blocks("py")
    exec(recipe, {})
    assert [len(curve) for curve in logged.values()] == [3, 3]
    assert all(curve[-1] == (20, pytest.approx(5.0)) for curve in logged.values())  # uniform: 0.25 in each round
