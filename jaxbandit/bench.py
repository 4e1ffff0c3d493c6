"""``jaxbandit bench``: rounds per second on pinned cores, alternating with peers in one run, reported as ratios.

Each setting is a process of its own, pinned to one core (or two), which compiles once and then plays whenever it is
told to. Settings and peers take turns, so that a slow minute of the machine hits all of them alike; the table gives the
median of each and the median, least and greatest of the ratios taken turn by turn.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TURNS = 5


@dataclass(frozen=True)
class Setting:
    """What to simulate: MZS22 against Bernoulli losses, best mean 0.3, the others 0.5."""

    arms: int = 10
    delay: int = 10
    law: str = "fixed"
    rounds: int = 10_000
    runs: int = 1024
    cores: int = 1
    block: int = 0  # 0: the engine's own
    learner: str = "bobw"


SETTINGS = {
    "K=10, d=10": Setting(),
    "K=10, d=10, two cores": Setting(cores=2, runs=2048),
    "K=2, d=10": Setting(arms=2, runs=4096),
    "K=100, d=10": Setting(arms=100, runs=256, rounds=5_000),
    "K=10, d=1000": Setting(delay=1000),
    "K=10, geometric delays of mean 10, per run": Setting(law="geometric"),
    "K=10, d=10, T=10^6": Setting(rounds=1_000_000, runs=256),
    **{f"K=10, d=10, block of {block}": Setting(block=block) for block in (64, 128, 512, 1024)},
}
RATIOS = [
    # what, over what, asked for
    ("K=10, d=10", "C++ K=10", 1.0),
    ("K=10, d=10", "Numba K=10", 8.0),
    ("K=10, d=10", "NumPy K=10", None),
    ("K=2, d=10", "C++ K=2", 0.8),
    ("K=100, d=10", "C++ K=100", 0.8),
    ("K=10, d=10, two cores", "K=10, d=10", 1.85),
    ("C++ K=10 on two cores at once", "C++ K=10", None),
    ("K=10, geometric delays of mean 10, per run", "K=10, d=10", 0.5),
    ("K=10, d=1000", "K=10, d=10", 0.8),
    ("K=10, d=10, T=10^6", "K=10, d=10", None),
    *((f"K=10, d=10, block of {block}", "K=10, d=10", None) for block in (64, 128, 512, 1024)),
]


def play(setting: Setting) -> None:
    """The worker: compile, then time one simulation for each line that comes in."""
    import importlib

    import jaxbandit as jb

    if setting.cores > 1:
        jb.use_all_cores()
    import jax

    if setting.block:
        setattr(importlib.import_module("jaxbandit.simulate"), "BLOCK", setting.block)  # noqa: B010
    losses = jb.losses.Bernoulli([0.3, *[0.5] * (setting.arms - 1)])
    delays = jb.delays.Fixed(setting.delay) if setting.law == "fixed" else jb.delays.Geometric(float(setting.delay), bound=127)
    told = {"max_delay": setting.delay if setting.law == "fixed" else 127}
    cls = jb.REGISTRY[setting.learner]
    learner = cls(**{name: value for name, value in told.items() if name in cls.__dataclass_fields__})

    def once(rounds):
        start = time.perf_counter()
        result = jb.simulate(learner, losses, delays, rounds=rounds, runs=setting.runs, key=jax.random.key(0))
        return setting.runs * rounds / (time.perf_counter() - start), float(result.estimate().mean[-1])

    once(10)
    for _ in sys.stdin:
        speed, regret = once(setting.rounds)
        print(json.dumps({"rounds_per_second": speed, "regret": regret}), flush=True)


class Worker:
    """One setting in a process of its own."""

    def __init__(self, setting: Setting):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jaxbandit.bench", json.dumps(asdict(setting))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: _pin(range(setting.cores)),
        )

    def turn(self) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a benchmark worker died; its message is above")
        return json.loads(line)["rounds_per_second"]

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def _pin(cores) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(cores))


def _time_program(command: list[str], cores=(0,)) -> float:
    """Rounds per second, summed over one copy of a peer program on each core."""
    copies = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=lambda core=core: _pin([core])) for core in cores
    ]
    return sum(json.loads(copy.communicate()[0])["rounds_per_second"] for copy in copies)


def find_peers(folder: Path | None, scratch: Path) -> dict[str, Any]:
    """Commands of the peer programs in ``folder``; C++ is compiled if a compiler is there."""
    peers: dict[str, Any] = {}
    if folder is None:
        return peers
    source = folder / "ftrl_simd.cpp"
    if source.exists() and shutil.which("g++"):
        for arms, runs in ((2, 4096), (10, 1024), (100, 256)):
            program = scratch / f"simd{arms}"
            flags = ["-O3", "-march=native", "-ffast-math", "-fopenmp-simd", f"-DKK={arms}"]
            subprocess.run(["g++", *flags, str(source), "-o", str(program), "-lmvec"], check=True)
            peers[f"C++ K={arms}"] = [str(program), str(runs), "5000" if arms == 100 else "10000", "10"]
    for name, file, runs, rounds in (("Numba K=10", "ftrl_numba.py", 128, 10_000), ("NumPy K=10", "ftrl_numpy.py", 1024, 300)):
        if (folder / file).exists():
            command = [sys.executable, str(folder / file), "10", str(runs), str(rounds), "10"]
            if subprocess.run([*command[:3], "1", "2", "1"], capture_output=True).returncode == 0:  # Numba may be missing
                peers[name] = command
    return peers


def run(folder: Path | None) -> None:
    """Time everything in turns and print the table."""
    speeds: dict[str, list[float]] = {}
    workers: dict[str, Worker] = {}
    with tempfile.TemporaryDirectory() as scratch:
        peers = find_peers(folder, Path(scratch))
        try:
            for name, setting in SETTINGS.items():
                if setting.cores <= (os.cpu_count() or 1):
                    workers[name] = Worker(setting)
            for worker in workers.values():
                worker.turn()  # the first turn waits for the compiler and is not counted
            for turn in range(TURNS):
                print(f"turn {turn + 1} of {TURNS}", file=sys.stderr, flush=True)
                for name, worker in workers.items():
                    speeds.setdefault(name, []).append(worker.turn())
                for name, command in peers.items():
                    speeds.setdefault(name, []).append(_time_program(command))
                if "C++ K=10" in peers and (os.cpu_count() or 1) > 1:
                    speeds.setdefault("C++ K=10 on two cores at once", []).append(_time_program(peers["C++ K=10"], (0, 1)))
        finally:
            for worker in workers.values():
                worker.stop()
    report(speeds)


def report(speeds: dict[str, list[float]]) -> None:
    print(f"\n{'million rounds/s, median (least to greatest)':60}")
    for name, values in speeds.items():
        low, middle, high = (value / 1e6 for value in (min(values), statistics.median(values), max(values)))
        print(f"  {name:46}{middle:8.2f}   ({low:.2f} to {high:.2f})")
    print(f"\n{'ratio, median (least to greatest)':90}asked for")
    for what, over, asked in RATIOS:
        if what in speeds and over in speeds:
            ratios = sorted(a / b for a, b in zip(speeds[what], speeds[over], strict=True))
            print(
                f"  {what + ' / ' + over:76}{statistics.median(ratios):6.2f}   ({ratios[0]:.2f} to {ratios[-1]:.2f})"
                + ("" if asked is None else f"   {asked}")
            )


if __name__ == "__main__":
    play(Setting(**json.loads(sys.argv[1])))
