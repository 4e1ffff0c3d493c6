"""The command line as a user drives it: killed at any moment, on one device or two, with Dask, with ``jax.distributed``."""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import jaxbandit as jb
from jaxbandit.cli import app
from tests.sweeps.examples import digests

SPEC = """
rounds = 4000
runs = 1500
record = 10
[[learners]]
name = "delayed-exp3"
grid = { scale = [1.0, 0.5] }
[[learners]]
name = "uniform"
[[losses]]
name = "bernoulli"
means = [0.3, 0.5, 0.5]
[[delays]]
name = "fixed"
delay = 7
"""

COMMAND = "from jaxbandit.cli import main; main()"

# The same command, but killed by itself at the n-th step of writing: before or after a sync or a rename, or half-way
# through the bytes of a file.
KILLED_WHILE_WRITING = """
import os, signal, sys
import numpy as np
left = int(sys.argv.pop(1))
def step():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
def around(function):
    def wrapped(*arguments, **options):
        step()
        result = function(*arguments, **options)
        step()
        return result
    return wrapped
def savez(file, real=np.savez, **arrays):
    real(file, **arrays)
    size = file.tell()
    file.flush()
    if left == 1:
        os.truncate(file.name, size // 2)
    step()
os.fsync, os.replace, np.savez = around(os.fsync), around(os.replace), savez
from jaxbandit.cli import main
main()
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A spec, a compilation cache that all processes share, and a finished sweep to compare with."""
    return _Bench(tmp_path_factory.mktemp("faults"))


class _Bench:
    def __init__(self, folder: Path):
        self.folder, self.spec, self.expected = folder, folder / "spec.toml", folder / "expected"
        self.spec.write_text(SPEC)
        self.environment = {
            **os.environ,
            "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
            "JAX_PLATFORMS": "cpu",
        }
        self.finish(self.expected)  # fills the cache

    def start(self, out: Path, *words: str, code: str = COMMAND, before: tuple[str, ...] = (), **options) -> subprocess.Popen:
        line = [sys.executable, "-c", code, *before, "sweep", str(self.spec), "--out", str(out), *words]
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(line, env=self.environment, **{**quiet, **options})

    def finish(self, out: Path, *words: str, **options) -> str:
        process = self.start(out, *words, **options)
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, said
        return said


def count_units(out: Path) -> int:
    return len(list(out.glob("units/*/*.npz")))


def is_whole(out: Path) -> bool:
    return count_units(out) == 18


@pytest.mark.slow
def test_kill_at_fifty_moments(bench):
    """Half in the midst of writing, half from outside when so many units are there; finished stores are compared and begun anew."""
    chance = random.Random(1)
    short = ("--rounds", "60")  # 18 units, each within a moment
    bench.finish(bench.folder / "short", *short)
    expected = digests(bench.folder / "short")
    kills, attempts, stores = 0, 0, [bench.folder / "killed0"]
    while kills < 50:
        attempts += 1
        assert attempts < 150, "the sweep is faster than its killers"
        out = stores[-1]
        if attempts % 2:
            process = bench.start(out, *short, code=KILLED_WHILE_WRITING, before=(str(chance.randrange(1, 40)),))
            process.communicate(timeout=300)
        else:
            process = bench.start(out, *short, stdout=subprocess.DEVNULL)
            wanted = count_units(out) + chance.randrange(0, 4)
            while process.poll() is None and count_units(out) <= wanted:
                time.sleep(0.001)
            process.kill()
            process.wait()
        kills += process.returncode == -signal.SIGKILL  # else it was faster
        if is_whole(out):
            bench.finish(out, *short)
            assert digests(out) == expected
            stores.append(bench.folder / f"killed{len(stores)}")
    bench.finish(stores[-1], *short)
    assert digests(stores[-1]) == expected
    assert len(stores) > 2, "nothing was ever finished between the kills"


@pytest.mark.slow
def test_interrupt_is_polite_and_loses_little(bench):
    out = bench.folder / "interrupted"
    # A shell that puts the tests in the background may have told them to ignore interrupts.
    process = bench.start(out, "--rounds", "400000")
    while not list(out.glob("units/*/*.npz")):
        time.sleep(0.1)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_one_device_gives_the_same_bits(bench):
    one = {min(os.sched_getaffinity(0))}
    bench.finish(bench.folder / "one", preexec_fn=lambda: os.sched_setaffinity(0, one))
    assert digests(bench.folder / "one") == digests(bench.expected)


@pytest.mark.slow
def test_two_processes_of_jax_distributed(bench):
    out = bench.folder / "distributed"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    lines = [("--coordinator", address, "--processes", "2", "--process", str(number)) for number in range(2)]
    both = [bench.start(out, *words) for words in lines]
    said = [process.communicate(timeout=240)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert digests(out) == digests(bench.expected)
    computed = [int(text.rsplit(" computed now", 1)[0].rsplit(maxsplit=1)[1]) for text in said]
    assert sum(computed) == 18, "nothing is computed twice"
    assert min(computed) >= 8, "each computed its share"


@pytest.mark.slow
def test_dask_with_its_workers_killed(bench):
    psutil = pytest.importorskip("psutil")
    pytest.importorskip("distributed")
    bench.finish(bench.folder / "dask", "--dask", "local")
    assert digests(bench.folder / "dask") == digests(bench.expected)

    out, killed = bench.folder / "dask_killed", 0
    process = bench.start(out, "--dask", "local")
    while process.poll() is None and killed < 3:
        time.sleep(0.1)
        if len(list(out.glob("units/*/*.npz"))) > 2 * killed:
            workers = [
                child for child in psutil.Process(process.pid).children(recursive=True) if "spawn_main" in str(child.cmdline())
            ]
            if workers:
                workers[killed % len(workers)].kill()
                killed += 1
                time.sleep(1)
    said, _ = process.communicate(timeout=300)
    assert killed >= 1
    assert process.returncode == 0, said
    assert digests(out) == digests(bench.expected)


@pytest.mark.parametrize("step", [pytest.param(4, marks=pytest.mark.thorough), 25])
def test_killed_while_writing_and_resumed(tmp_path, step):
    """The short form of the test above: one kill, in the midst of a file or between two, then the same command again."""
    (tmp_path / "spec.toml").write_text(SPEC.replace("rounds = 4000", "rounds = 50"))
    line = [sys.executable, "-c", KILLED_WHILE_WRITING, str(step), "sweep", "spec.toml", "--out", "out"]
    killed = subprocess.run(line, cwd=tmp_path, capture_output=True, check=False, timeout=300)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not is_whole(tmp_path / "out")
    line = [sys.executable, "-c", COMMAND, "sweep", "spec.toml", "--out", "out"]
    resumed = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert resumed.returncode == 0, resumed.stderr
    jb.sweep(tmp_path / "spec.toml", tmp_path / "expected")
    assert digests(tmp_path / "out") == digests(tmp_path / "expected")


@pytest.mark.thorough
def test_every_command_in_turn(tmp_path, monkeypatch, capsys):
    """One short sweep; what needs no device is called in this process."""
    spec = SPEC.replace("rounds = 4000", "rounds = 50").replace("runs = 1500", "runs = 20").replace("delayed-exp3", "uniform")
    (tmp_path / "spec.toml").write_text(spec.replace("grid = { scale = [1.0, 0.5] }", 'label = "u"'))
    line = [sys.executable, "-c", COMMAND, "sweep", "spec.toml", "--out", "out"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "1 of 1 units are in out" in done.stdout) == (0, True), done.stderr

    monkeypatch.chdir(tmp_path)
    for words, expected in (
        (
            ["status", "out"],
            r"out: 100 % computed \(1 of 1 unit, .* MB\)   2 learners x 1 losses x 1 delays, 20 runs of 50 rounds each",
        ),
        (["verify", "out"], "1 unit file checked, 0 damaged"),
        (["export", "out", "all.nc"], "written: all.nc"),
        (["report", "out"], "written: out/report/report.html"),
    ):
        assert app.call(words) == 0
        assert re.search(expected, capsys.readouterr().out.replace("\n", " "))
