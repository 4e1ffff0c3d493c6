"""The developers' tools answer a wrong call as the command line does: one sentence, exit status 2, nothing written."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.bench import bench
from experiments.choosing import map, overview
from experiments.claims import __main__ as claims
from experiments.claims.harness import runner
from jaxbandit.cli import app

ROOT = Path(__file__).parents[2]
TOOLS = {
    "bench": (bench.bench, bench.NAME),
    "claims": (claims.claims, runner.NAME),
    "map": (map.map, map.NAME),
    "overview": (overview.overview, overview.NAME),
}
WRONG = [
    ("bench --out file", "--out file: .*file is a file; give a folder"),
    ("bench --peers nowhere", "--peers nowhere: there is no such folder"),
    ("bench --smpybandits nowhere", "--smpybandits nowhere: this is not a program"),
    ("claims", '--out"? requires an argument'),
    ("claims --out new --only nope", "--only nope: no such statement; there are .*key_lemma"),
    ("claims --out new --statements folder", "no statements in folder"),
    ("claims --out file", "--out file: .*file is a file; give a folder"),
    ("claims --nope", "`python -m experiments.claims --help` lists the options"),
    ("map --out file", "--out file: .*file is a file; give a folder"),
    ("overview --out file", "--out file: .*file is a file; give a folder"),
]


@pytest.mark.parametrize(("line", "said"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_call(line, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("folder").mkdir()
    name, *words = line.split()
    assert app.call_one(*TOOLS[name], words) == 2
    assert re.search(said, " ".join(capsys.readouterr().err.split()))
    assert sorted(path.name for path in Path().iterdir()) == ["file", "folder"]


@pytest.mark.parametrize(
    "module",
    [
        "experiments.claims",
        *(
            pytest.param(name, marks=pytest.mark.thorough)
            for name in ("experiments.bench", "experiments.accelerators", "experiments.choosing.map")
        ),
    ],
)
def test_the_modules_run(module):
    done = subprocess.run([sys.executable, "-m", module, "--help"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert f"python -m {module}" in done.stdout
