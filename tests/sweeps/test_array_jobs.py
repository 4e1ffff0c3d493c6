"""Array jobs as a cluster runs them: processes of their own, killed at any moment, several at once."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import jaxbandit as jb
from jaxbandit.sweeps import merge
from tests.sweeps.examples import digests
from tests.sweeps.test_faults import COMMAND, KILLED_WHILE_WRITING, SPEC

# Parts in this order in one process, which kills itself at the n-th step of writing: each step is a sync, a rename or half a file.
PARTS_THEN_MERGE = KILLED_WHILE_WRITING.replace(
    "from jaxbandit.cli import main\nmain()\n",
    """
import jaxbandit as jb
spec, out, parts = sys.argv[1:]
for number in parts.split(","):
    jb.sweep(spec, out, part=(int(number), 16))
jb.sweeps.merge(out)
""",
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("array")
    (folder / "spec.toml").write_text(SPEC.replace("rounds = 4000", "rounds = 60"))
    jb.sweep(folder / "spec.toml", folder / "expected")
    return folder


def environment(bench: Path) -> dict[str, str]:
    cache = {"JAX_COMPILATION_CACHE_DIR": str(bench / "cache"), "JAX_PLATFORMS": "cpu"}
    return (
        os.environ | cache | {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0"}
    )


@pytest.mark.thorough
def test_sixteen_parts_in_random_order_with_kills(bench):
    """SIGKILL in the midst of files, between a rename and its sync, and during the merge."""
    chance, out, kills = random.Random(2), bench / "killed", 0
    while True:
        order = list(range(1, 17))
        chance.shuffle(order)
        steps = chance.randrange(5, 120) if kills < 6 else 10**9
        line = [sys.executable, "-c", PARTS_THEN_MERGE, str(steps), bench / "spec.toml", out, ",".join(map(str, order))]
        done = subprocess.run(line, env=environment(bench), capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        if done.returncode == 0:
            break
        kills += 1
    assert kills >= 4, "the parts are faster than their killer"
    assert digests(out) == digests(bench / "expected")
    assert not (out / "parts").exists()


@pytest.mark.thorough
def test_eight_processes_at_once_with_kills(bench):
    """Each part by a process of its own, one of them by two; processes are killed at random and started again."""
    chance, out, kills = random.Random(3), bench / "eight", 0

    def start(number: int) -> subprocess.Popen:
        line = [sys.executable, "-c", COMMAND, "sweep", bench / "spec.toml", "--out", out, "--part", f"{number}/8"]
        return subprocess.Popen(line, env=environment(bench), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    running = [(number, start(number)) for number in (3, 1, 8, 5, 2, 7, 4, 6, 3)]
    try:
        while running:
            time.sleep(0.05)
            units = len(list(out.glob("units/*/*.npz")))
            for place, (number, process) in enumerate(running):
                if kills < 4 and units >= 2 * kills + 1 and process.poll() is None and chance.random() < 0.3:
                    process.kill()
                    process.communicate(timeout=60)
                    kills += process.returncode == -signal.SIGKILL
                    running[place] = number, start(number)
            for number, process in list(running):
                if process.poll() is not None:
                    said = process.communicate()[0]
                    assert process.returncode == 0, said
                    assert f"units of part {number}/8 are in" in said
                    running.remove((number, process))
    finally:
        for _, process in running:
            process.kill()
            process.communicate(timeout=60)
    assert kills == 4
    assert merge(out).parts == 8
    assert digests(out) == digests(bench / "expected")
