"""The spec and the commands of docs/sweeps.md work as printed, with fewer rounds and runs; test_docs.py runs its Python."""

import os
import re
import shutil
import subprocess
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
