"""Everything that writes, on disks without room, read-only ones and under either umask: a sentence, nothing lost, the same bits later.

The disks are real where whoever runs the tests may mount them; a write that finds no room is also made up, for everywhere else.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import jaxbandit as jb
from jaxbandit._io import files
from jaxbandit.cli import app
from jaxbandit.sweeps import StoreError

KEY = jax.random.key(0)
SPEC = """
rounds = 20
runs = 300
[[learners]]
name = "bobw"
max_delay = 3
[[losses]]
name = "bernoulli"
means = [0.3, 0.5, 0.6]
[[delays]]
name = "fixed"
delay = 3
"""
TUNE = """
[tune]
steps = 1
runs = 16
fresh_runs = 16
only = ["factor"]
audit = false
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with all that the commands read: a spec, a sweep, a claim, a result."""
    desk = tmp_path_factory.mktemp("desk")
    (desk / "spec.toml").write_text(SPEC)
    (desk / "tune.toml").write_text(SPEC.replace("runs = 300\n", "") + TUNE)
    jb.sweep(desk / "spec.toml", desk / "store")
    jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(1), rounds=9, runs=3, key=KEY).save(
        desk / "result.npz"
    )
    return desk


def play_agent(path) -> None:
    with jb.Agent.open(path, jb.Uniform(), 2, KEY, flush=False) as agent:
        agent.act()


def save_agent(path) -> None:
    agent = jb.Agent(jb.Uniform(), 2, KEY)
    agent.act()
    agent.save(path)


def command(*words):
    return lambda desk, disk: app.call([word.format(desk=desk, disk=disk) for word in words])


# What writes, and the first of the files it makes.
WRITERS = {
    "sweep": (command("sweep", "{desk}/spec.toml", "--out", "{disk}/out"), "out/manifest.json"),
    "run": (command("run", "{desk}/spec.toml", "--out", "{disk}/run"), "run.npz"),
    "export .nc": (command("export", "{desk}/store", "{disk}/all.nc"), "all.nc"),
    "export .zarr": (command("export", "{desk}/store", "{disk}/all.zarr"), "all.zarr/zarr.json"),
    "report": (command("report", "{desk}/store", "--out", "{disk}/report"), "report/report.html"),
    "tune": (command("tune", "{desk}/tune.toml", "--out", "{disk}/tuned"), "tuned/tuned.json"),
    "Result.save": (lambda desk, disk: jb.Result.load(desk / "result.npz").save(disk / "copy.npz"), "copy.npz"),
    "Agent.save": (lambda desk, disk: save_agent(disk / "agent.npz"), "agent.npz"),
    "Agent.open": (lambda desk, disk: play_agent(disk / "agent.db"), "agent.db"),
}
QUICK = ["run", "Result.save", "Agent.save", "Agent.open"]


def each(names=WRITERS):
    return [pytest.param(name, marks=[] if name in QUICK else pytest.mark.thorough) for name in names]


def tried(name, desk, disk, capsys) -> tuple[int, str]:
    """Exit status and what was said; an error of Python is told as the command line would."""
    capsys.readouterr()
    try:
        status = WRITERS[name][0](desk, disk) or 0
    except (OSError, ValueError, StoreError) as error:
        return 1, str(error)
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    return status, said.err


def kept(folder) -> dict[str, str]:
    """Every file by its content, but those in which a process and a time are noted."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "lock":
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


@contextlib.contextmanager
def mounted(folder, options):
    folder.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.getuid() or not shutil.which("mount") or subprocess.run(line, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk, left: int) -> Path:
    """A file that leaves ``left`` bytes of the disk."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize
    (disk / "filler").write_bytes(bytes(free - left))
    return disk / "filler"


@pytest.mark.parametrize("left", [0, 8192])
@pytest.mark.parametrize("name", each())
def test_a_full_disk(desk, tmp_path, capsys, name, left):
    """No room at all, or room for a beginning; what was there is there, and when there is room, the command does all."""
    _, first = WRITERS[name]
    with mounted(tmp_path / "disk", "size=8m") as disk:
        (disk / "mine").write_bytes(b"mine")
        filler = fill(disk, left)
        status, said = tried(name, desk, disk, capsys)
        if not status:
            pytest.skip("it has room enough")
        assert status == 1, said
        assert "full" in said or "No space" in said, said
        assert (disk / "mine").read_bytes() == b"mine"
        drafts = [path for path in disk.rglob("*") if files.is_draft(path)]
        assert not drafts, "something half-written is left"
        filler.unlink()
        assert tried(name, desk, disk, capsys)[0] == 0
        assert (disk / first).stat().st_size
        if name == "sweep":
            assert kept(disk / "out") == kept(desk / "store")


@pytest.mark.parametrize("name", each())
def test_a_read_only_disk(desk, tmp_path, capsys, name):
    with mounted(tmp_path / "disk", "size=8m") as disk:
        (disk / "mine").write_bytes(b"mine")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        status, said = tried(name, desk, disk, capsys)
        assert status in (1, 2), said
        assert "annot be" in said or "Read-only" in said or "nothing can be written into" in said, said
        assert kept(disk) == {"mine": hashlib.sha256(b"mine").hexdigest()}


@pytest.mark.parametrize("name", each(name for name in WRITERS if not name.startswith(("export", "Agent.open"))))
def test_a_write_that_finds_no_room(desk, tmp_path, capsys, monkeypatch, name):
    """Made up: the bytes are written and do not reach the disk."""

    def no_room(handle):
        raise OSError(errno.ENOSPC, "No space left on device", "the disk")

    disk = tmp_path / "disk"
    disk.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", no_room)
        status, said = tried(name, desk, disk, capsys)
    assert status == 1, said
    assert "full" in said or "No space" in said, said
    assert not [path for path in disk.rglob("*") if path.is_file() and path.name != "lock"]
    assert tried(name, desk, disk, capsys)[0] == 0
    assert (disk / WRITERS[name][1]).stat().st_size


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
@pytest.mark.parametrize("name", each())
def test_permissions_are_those_of_any_new_file(desk, tmp_path, capsys, name, umask):
    before = os.umask(umask)
    try:
        status, said = tried(name, desk, tmp_path, capsys)
    finally:
        os.umask(before)
    assert status == 0, said
    for path in tmp_path.rglob("*"):
        wanted = (0o777 if path.is_dir() else 0o666) & ~umask
        if path.suffix in (".db", ".db-lock"):
            wanted = 0o644 & ~umask  # SQLite's own
        assert oct(stat.S_IMODE(path.stat().st_mode)) == oct(wanted), path


KILLED = """
import os, signal, sys
left = int(sys.argv.pop(1))
def around(function):
    def wrapped(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return wrapped
os.fsync, os.replace = around(os.fsync), around(os.replace)
from jaxbandit.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.parametrize("name", ["run", "report"])
def test_killed_while_writing(desk, tmp_path, name, step):
    """Before the bytes reach the disk, or before the file gets its name: no file under the name is torn, and the next call does all."""
    words = {
        "run": ["run", f"{desk}/spec.toml", "--out", "run"],
        "report": ["report", f"{desk}/store", "--out", "report"],
    }[name]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    line = [sys.executable, "-c", KILLED, str(step), *words]
    killed = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    whole = [path for path in tmp_path.rglob("*") if path.is_file() and not files.is_draft(path)]
    for path in whole:
        assert path.stat().st_size
        if path.suffix == ".npz":
            jb.Result.load(path)
        if path.suffix == ".json":
            json.loads(path.read_text())
    line[3] = "1000000"
    done = subprocess.run(
        [*line, "--force"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / WRITERS[name][1]).stat().st_size


def test_an_agent_on_a_disk_that_fills_up(tmp_path):
    """It says so, has changed nothing, and goes on when there is room: the same arms as an agent that never met the trouble."""
    with mounted(tmp_path / "disk", "size=1m") as disk:
        agent, other = jb.Agent.open(disk / "agent.db", jb.Uniform(), 2, KEY, flush=False), jb.Agent(jb.Uniform(), 2, KEY)
        filler = fill(disk, 4096)

        def play() -> None:
            for _ in range(5000):
                agent.act()

        with pytest.raises(OSError, match="no room on the disk"):
            play()
        for _ in range(agent.rounds):
            other.act()
        filler.unlink()
        assert [agent.act().arm for _ in range(20)] == [other.act().arm for _ in range(20)]
        agent.close()
