"""What `pip install` of the built wheel gives, in an empty folder: the README's first block, each extra, every notebook."""

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.md"))
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT]
    subprocess.run(command, check=True, timeout=600)
    (found,) = folder.glob("jaxbandit-*.whl")
    return found


def run(python: Path, script: str, folder: Path, **more: str) -> subprocess.CompletedProcess:
    """A script in a folder that is not the checkout, with nothing of this process' Python in its environment."""
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PJRT_NPROC", "VIRTUAL_ENV")}
    path = os.pathsep.join([str(python.parent), clean["PATH"]])
    command = [python, "-c", script]
    return subprocess.run(command, cwd=folder, env={**clean, "PATH": path, **more}, capture_output=True, text=True, timeout=1800)


def good(python: Path, script: str, folder: Path, **more: str) -> str:
    done = run(python, script, folder, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def first_block() -> str:
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]


RESULT = """
import jaxbandit as jb
result = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(3), rounds=20, runs=4, seed=0)
spec = jb.Spec(rounds=20, runs=4, learners=[jb.Uniform()], losses=[jb.losses.Bernoulli([0.3, 0.5])], delays=[jb.delays.Fixed(3)])
"""
# What each extra is for, and what says that it is there.
FEATURES = {
    "plot": RESULT + "result.plot().savefig('regret.png')\nprint('done')",
    "data": RESULT
    + "result.to_xarray().to_netcdf('a.nc'); result.to_xarray().to_zarr('a.zarr')\n"
    + "jb.sweep(spec, 'out'); print(jb.open_sweep('out').regret.shape); print('done')",
    "cli": "import sys\nsys.argv = ['jaxbandit', 'doctor', '--help']\nimport jaxbandit.cli\ntry:\n    jaxbandit.cli.main()\nfinally:\n    print('done')",
    "dask": RESULT
    + "if __name__ == '__main__':\n    from dask.distributed import Client\n"
    + "    with Client(processes=False, dashboard_address=None) as client:\n"
    + "        jb.sweep(spec, 'with_dask', executor=client.get_executor())\n    print('done')",
}


def test_without_extras_and_then_with_each(wheel, tmp_path):
    """One true installation, from the index, with nothing but what the wheel asks for; then one extra after the other."""
    venv.create(tmp_path / "env", with_pip=True)
    python, folder = tmp_path / "env" / "bin" / "python", tmp_path / "empty"
    folder.mkdir()
    install = [python, "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, wheel], check=True, timeout=1800)
    assert str(tmp_path) in good(python, "import jaxbandit; print(jaxbandit.__file__)", folder)

    lines = first_block().splitlines()
    assert lines[-1].startswith("result.plot()")
    assert re.match(r"Result\(256 runs × 10,000 rounds: regret \d+", good(python, "\n".join(lines[:-1]), folder))

    for extra, script in FEATURES.items():
        if extra == "dask":  # dask is the user's own to start; without it there is nothing to call
            missed = run(python, script, folder)
            assert "No module named 'dask'" in missed.stderr
        else:
            missed = run(python, script, folder)
            assert missed.returncode != 0, extra
            assert f"jaxbandit[{extra}]" in missed.stderr.strip().splitlines()[-1], missed.stderr
        subprocess.run([*install, f"jaxbandit[{extra}] @ {wheel.as_uri()}"], check=True, timeout=1800)
        assert "done" in good(python, script, folder)


def test_what_is_in_the_wheel(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "jaxbandit/py.typed" in names
    assert {name.split("/")[0] for name in names if not name.split("/")[0].endswith(".dist-info")} == {"jaxbandit"}
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "jaxbandit").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == sources


NO_NETWORK = """
import socket
_connect = socket.socket.connect
def connect(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "localhost", "::1"):
        raise OSError(f"no network here: {address}")
    return _connect(self, address)
socket.socket.connect = connect
"""
PLAY = """
import jupytext, nbclient, sys
notebook = jupytext.read(sys.argv[1] if len(sys.argv) > 1 else SOURCE, fmt="md:myst")
nbclient.NotebookClient(notebook, timeout=1200, kernel_name="python3").execute()
"""


@pytest.fixture(scope="module")
def borrowed(wheel, tmp_path_factory):
    """An environment with the wheel in it and all other packages from the one that runs the tests; it knows no network."""
    folder = tmp_path_factory.mktemp("borrowed")
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    site = Path(
        subprocess.run(
            [python, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True, check=True
        ).stdout.strip()
    )
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel]
    subprocess.run(install, check=True, timeout=600)
    command = python.parent / "jaxbandit"
    command.write_text(f"#!{python}\nimport sys\nfrom jaxbandit.cli import main\nsys.exit(main())\n")
    command.chmod(0o755)
    (site / "no_network.py").write_text(NO_NETWORK)
    # A path is looked through after the environment's own, so that the wheel comes before any other installation.
    (site / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\nimport no_network\n")
    return python


def test_the_page_on_extending(borrowed, tmp_path):
    """Its block is marked ``py``: two hundred cells are too many for the test that runs all blocks marked ``python``."""
    (block,) = re.findall(r"```py\n(.*?)```", (ROOT / "docs" / "extending.md").read_text(), re.DOTALL)
    print_them = "\nprint(dict(data.sizes), len(data.to_pandas()), data.sel(delays=10).learner.values.tolist())"
    said = good(borrowed, block + print_them, tmp_path)
    assert "'learner': 4, 'losses': 5, 'delays': 10" in said
    assert "['mine', 'MZS22', 'Tsallis-INF', 'Exp3']" in said
    assert (tmp_path / "against.png").stat().st_size > 10_000
    good(borrowed, "import sys\nfrom jaxbandit.cli import main\nsys.argv = ['jaxbandit', 'report', 'results']\nmain()", tmp_path)
    page = (tmp_path / "results" / "report" / "report.html").read_text()
    assert page.count('<summary class="game">') == 50
    assert "Weekend delay=120" in page


@pytest.mark.parametrize("source", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_from_the_wheel(source, borrowed, tmp_path):
    where = good(borrowed, "import jaxbandit; print(jaxbandit.__file__)", tmp_path)
    assert str(borrowed.parents[1]) in where
    good(borrowed, f"SOURCE = {str(source)!r}\n{PLAY}", tmp_path)
