"""``jaxbandit doctor`` and ``jaxbandit list``."""

import json
import re
import subprocess
import sys

import pytest

import jaxbandit as jb
from jaxbandit._engine import blocks, choose
from jaxbandit._provenance.package_code import package_digest
from jaxbandit.cli import app, doctor


def test_doctor_says_what_is_here(capsys):
    assert app.call(["doctor", "--arms", "3", "--delays", "fixed(10)", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["platform"], report["evaluation"], report["block"], report["one_function"]) == ("cpu", "arrays", 256, True)
    assert report["package"] == package_digest()[:16]


@pytest.mark.thorough
def test_doctor_tries_a_gpu_and_a_core_beside_it(capsys, monkeypatch):
    """A CPU that is said to be a GPU: it plays the GPU's form, one of its cores the CPU's."""
    monkeypatch.setattr(blocks, "platform", lambda: "gpu")
    monkeypatch.setattr(doctor, "TRIAL", 0.01)
    monkeypatch.setattr(choose, "ACCELERATOR_BLOCKS", ((32, 1024),))
    assert app.call(["doctor", "--learner", "exp3", "--arms", "2", "--delays", "fixed(1)", "--runs", "100", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["platform"], report["evaluation"], report["block"]) == ("gpu", "unrolled", 1024)
    assert report["measured_rounds_per_second"] > 0
    assert report["measured_rounds_per_second_of_one_core"] > 0
    assert report["advice"].startswith("100 runs are faster on the ")


def test_doctor_says_where_runs_are_faster():
    assert doctor.filled(100, 1024) == 100 / 1024
    assert doctor.filled(65537, 65536) == 65537 / 131072
    said = doctor.advice(100, {"gpu": 5e6, "cpu": 3.4e7})
    assert (
        said
        == "100 runs are faster on the CPU (5 million rounds/s on the GPU, 34 on all cores of the CPU): set JAX_PLATFORMS=cpu"
    )
    assert doctor.advice(10**6, {"gpu": 7e8, "cpu": 3.4e7}).startswith("1000000 runs are faster on the GPU (700 million")


def test_doctor_sees_a_gpu_that_jax_does_not_use(capsys, monkeypatch, tmp_path):
    asked = ["doctor", "--arms", "3", "--json"]
    monkeypatch.setattr(doctor, "NVIDIA", tmp_path / "nvidia0")
    assert app.call(asked) == 0
    assert json.loads(capsys.readouterr().out)["advice"] == ""
    doctor.NVIDIA.touch()
    assert app.call(asked) == 0
    assert "GPU here that JAX does not use" in json.loads(capsys.readouterr().out)["advice"]


def test_the_command_line_imports_no_developer_tools():
    """The installed package has no ``experiments``."""
    program = "import sys, jaxbandit.cli.app; print([name for name in sys.modules if name.startswith('experiments')])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.mark.parametrize("kind", ["learners", "losses", "delays"])
def test_list_names_everything_in_the_registry(kind, capsys):
    assert app.call(["list", kind]) == 0
    lines = capsys.readouterr().out.splitlines()
    registry = {"learners": jb.REGISTRY, "losses": jb.losses.REGISTRY, "delays": jb.delays.REGISTRY}[kind]
    assert [line.split()[:2] for line in lines[1:]] == [[name, cls.__name__] for name, cls in registry.items()]


@pytest.mark.parametrize(
    ("kind", "name", "inputs"),
    [("learners", "bobw", "max_delay"), ("learners", "uniform", "none"), ("losses", "bernoulli", "means or rewards")],
)
def test_list_shows_required_inputs_and_a_summary(kind, name, inputs, capsys):
    assert app.call(["list", kind]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"{name} ")]
    _, _, shown, summary = re.split(r"  +", line)
    assert shown == inputs
    assert len(summary) > 10
    assert "`" not in summary
