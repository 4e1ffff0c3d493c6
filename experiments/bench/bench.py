"""Rounds per second on pinned cores, alternating with peer programs in one run, reported as ratios.

    python -m experiments.bench --out DIR

Each setting is a process of its own, pinned to its cores, which compiles once and then plays whenever it is told to.
Settings and peers take turns, so that a slow minute of the machine hits all of them alike; the table gives the median of
each, and the median, least and greatest of the ratios taken turn by turn. Writes ``bench.md``, ``bench.json``, ``bench.png``.
The last tables of ``bench.md`` are those of :mod:`experiments.bench.calls`: what a user gets who prepares nothing.
A GPU or TPU has tables of its own and no peers. Bitwise comparisons (``experiments/bench/bits.py``) end the report.
"""

import dataclasses
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

import jaxbandit as jb
from experiments.bench import bits, calls
from experiments.bench.report import Ratio, Tables, figure, report
from jaxbandit._core.fields import facts
from jaxbandit._engine import choose
from jaxbandit._io.files import write_whole
from jaxbandit.cli.errors import CommandError
from jaxbandit.cli.options import check_folder, check_new
from jaxbandit.plots.panels import save_png
from jaxbandit.testing import delays_to_play, losses_to_play

NAME = "python -m experiments.bench"
OWN_PEERS = Path(__file__).parent / "peers"


@dataclasses.dataclass(frozen=True)
class Workload:
    """What to simulate: a learner against Bernoulli losses, best mean 0.3, the others 0.5."""

    arms: int = 10
    delay: int = 10
    law: str = "fixed"
    rounds: int = 10_000
    runs: int = 1024
    cores: int = 1
    block: int = 0  # 0: the engine's own
    learner: str = "bobw"


Device = Literal["cpu", "gpu", "tpu"]
PLATFORMS = {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}  # as JAX_PLATFORMS has them
EXTRAS = {"gpu": "cuda12", "tpu": "tpu"}  # of JAX

BASE = "K=10, d=10"
TWO_CORES = "K=10, d=10, two cores"
GEOMETRIC = "K=10, geometric delays of mean 10, per run"
LONG = "K=10, d=10, T=1,000,000"
BLOCKS = (64, 128, 512, 1024)
# Those that take turns with the peers.
RATIO_SETTINGS = {
    BASE: Workload(),
    TWO_CORES: Workload(cores=2, runs=4096),
    "K=2, d=10": Workload(arms=2, runs=4096),
    "K=100, d=10": Workload(arms=100, runs=256, rounds=5_000),
    "K=10, d=1000": Workload(delay=1000),
    GEOMETRIC: Workload(law="geometric"),
    LONG: Workload(rounds=1_000_000, runs=256),
    **{f"K=10, d=10, block of {block}": Workload(block=block) for block in BLOCKS},
}
RATIOS: list[Ratio] = [
    *((f"K={arms}, d=10", f"our C++ K={arms}", 0.9) for arms in (10, 2, 100)),
    *((f"K={arms}, d=10", f"our C++ with threefry K={arms}", None) for arms in (10, 2, 100)),
    *((f"K={arms}, d=10", f"C++ K={arms}", asked) for arms, asked in ((10, 1.0), (2, 0.8), (100, 0.8))),
    (BASE, "our Numba K=10", None),
    (BASE, "Numba K=10", 8.0),
    (BASE, "our plain JAX K=10", None),
    (BASE, "our NumPy K=10", None),
    (BASE, "NumPy K=10", None),
    (TWO_CORES, BASE, 1.85),
    ("our C++ K=10 on two cores at once", "our C++ K=10", None),
    (GEOMETRIC, BASE, 0.6),
    ("K=10, d=1000", BASE, 0.8),
    (LONG, BASE, None),
    *((f"K=10, d=10, block of {block}", BASE, None) for block in BLOCKS),
]


def grids(learners: Sequence[str]) -> dict[str, dict[str, Workload]]:
    """The tables: one thing varied at a time."""
    return {
        "arms": {f"K={k}": Workload(arms=k, rounds=100_000 // k) for k in (2, 4, 8, 10, 16, 32, 100, 300, 1000)},
        "rounds": {f"T=1e{len(str(t)) - 1}": Workload(rounds=t, runs=256) for t in (1_000, 10_000, 100_000, 1_000_000)},
        "runs": {f"{n} runs": Workload(runs=n, rounds=5_000) for n in (256, 1024, 4096)},
        "delay": {f"d={d}": Workload(delay=d, rounds=5_000) for d in (0, 10, 100, 1000)},
        "delay model": {
            law: Workload(law=law, rounds=5_000) for law in ("fixed", "bursts", "geometric, shared", "geometric", "packet loss")
        },
        "learner": {name: Workload(learner=name, rounds=2_000, runs=256) for name in learners},
        "learner, i.i.d. per-round delays": {
            name: Workload(learner=name, law="geometric", rounds=2_000, runs=256) for name in learners
        },
    }


def device_grids(learners: Sequence[str], quick: bool) -> dict[str, dict[str, Workload]]:
    """The tables of a GPU or TPU: full blocks, but where the number of runs is varied."""
    sizes, full = (1_000, 10_000, 100_000, 1_000_000), choose.SIZES[-1]
    laws = {"": "fixed", ", i.i.d. per-round delays": "geometric"}
    return {
        **{
            f"runs{name}": {f"{n} runs": Workload(runs=n, law=law) for n in sizes[: 2 if quick else 4]}
            for name, law in laws.items()
        },
        "arms": {f"K={k}": Workload(arms=k, rounds=2_000, runs=full) for k in (2, 10, 16, 32, 100)[: 2 if quick else 5]},
        **{
            f"learner{name}": {one: Workload(learner=one, law=law, rounds=2_000, runs=full) for one in learners}
            for name, law in laws.items()
        },
    }


# What learners are told about the game, by the name of the fact; any numbers do, they do not change the speed.
FACTS: dict[str, Any] = {
    "horizon": 10_000,
    "total_delay": 100_000,
    "beta": 12,
    "max_missing": 16,
    "copies": 64,
    "queue_capacity": 64,
    "mean_delay": 10,
    "conversion_curve": [(age + 1) / 16 for age in range(16)],
    "signals": 4,
}


def make(setting: Workload) -> tuple[Any, jb.losses.Losses, jb.delays.Delays]:
    """Learner, losses and delays of a setting."""
    d = setting.delay
    delays, longest = {
        "fixed": lambda: (jb.delays.Fixed(d), d),
        "bursts": lambda: (jb.delays.Bursts(d), d),
        "geometric": lambda: (jb.delays.Geometric(float(d), bound=127), 127),
        "geometric, shared": lambda: (jb.delays.Geometric(float(d), bound=127, shared=True), 127),
        "packet loss": lambda: (jb.delays.PacketLoss(0.7, delay=d), d),
    }[setting.law]()
    cls = jb.REGISTRY[setting.learner]
    known = {**FACTS, "max_delay": longest}
    given = {field: known[fact] for field, fact in facts(cls).items() if fact in known}
    names = {field.name for field in dataclasses.fields(cls)}
    given |= {"base": jb.TsallisINF()} if "base" in names else {}
    given |= {"capacity": 64} if "capacity" in names - {*given} else {}
    means = np.array([0.3, *[0.5] * (setting.arms - 1)])
    if "transitions" in names:
        given["transitions"] = np.full((setting.arms, FACTS["signals"]), 1 / FACTS["signals"])
    learner = cls(**given)
    return learner, losses_to_play(learner, means), delays_to_play(learner, delays)


def play(setting: Workload) -> None:
    """The worker: compile, then time one simulation for each line that comes in."""
    import resource  # not on Windows

    warnings.simplefilter("ignore")  # few rounds: only the speed matters here
    if setting.block:
        choose.BLOCK = setting.block
    game = make(setting)

    def once(rounds: int) -> tuple[float, float]:
        start = time.perf_counter()
        result = jb.simulate(*game, rounds=rounds, runs=setting.runs, key=jax.random.key(0))
        return time.perf_counter() - start, float(result.estimate().mean[-1])

    jax.random.key(0).block_until_ready()
    compiling, _ = once(10)
    playing, _ = once(10)
    for _ in sys.stdin:
        seconds, regret = once(setting.rounds)
        row = {
            "rounds_per_second": setting.runs * setting.rounds / seconds,
            "regret": regret,
            "compile_seconds": compiling - playing,
            "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        print(json.dumps(row), flush=True)


class Worker:
    """One setting in a process of its own."""

    def __init__(self, setting: Workload, device: Device = "cpu"):
        # On a GPU or TPU the process keeps all cores: they only start its kernels.
        cores = range(setting.cores if device == "cpu" else os.cpu_count() or 1)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "experiments.bench.bench", json.dumps(dataclasses.asdict(setting))],
            env={**os.environ, "JAX_PLATFORMS": PLATFORMS[device]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: _pin(cores),
        )

    def turn(self) -> dict[str, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a benchmark worker died; its message is above")
        return json.loads(line)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def _pin(cores: Iterable[int]) -> None:
    """Keep this process on these cores, where the system can."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, set(cores))


def _time_program(command: list[str], cores: Sequence[int] = (0,)) -> float:
    """Rounds per second, summed over one copy of a peer program on each core."""
    copies = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=lambda core=core: _pin([core])) for core in cores
    ]
    return sum(json.loads(copy.communicate()[0])["rounds_per_second"] for copy in copies)


def _find_peers(folder: Path, prefix: str, files: dict[str, str], scratch: Path) -> dict[str, list[str]]:
    """Commands of the peer programs in ``folder``; C++ is compiled if a compiler is there."""
    peers: dict[str, list[str]] = {}
    source = folder / files["C++"]
    # With threefry our program draws the words that the engine draws, in place of those of a lighter generator.
    variants = {"C++": [], "C++ with threefry": ["-DTHREEFRY"]} if prefix else {"C++": []}
    sizes = ((2, 4096, 10_000), (10, 1024, 10_000), (100, 256, 5_000))
    if source.exists() and shutil.which("g++"):
        for (arms, runs, rounds), (name, options) in itertools.product(sizes, variants.items()):
            program = scratch / f"{source.stem}{arms}{len(options)}"
            flags = ["-O3", "-march=native", "-ffast-math", "-fopenmp-simd", f"-DARMS={arms}", f"-DKK={arms}", *options]
            subprocess.run(["g++", *flags, str(source), "-o", str(program), "-lmvec"], check=True)
            peers[f"{prefix}{name} K={arms}"] = [str(program), str(runs), str(rounds), "10"]
    for name, runs, rounds in (("Numba", 64, 10_000), ("NumPy", 1024, 300), ("plain JAX", 1024, 2_000)):
        if name in files and (folder / files[name]).exists():
            command = [sys.executable, str(folder / files[name]), "10", str(runs), str(rounds), "10"]
            if subprocess.run([*command[:3], "1", "2", "1"], capture_output=True).returncode == 0:  # Numba may be missing
                peers[f"{prefix}{name} K=10"] = command
    return peers


def time_smpybandits(python: Path | None) -> dict[str, float]:
    """Rounds per second of the learners that SMPyBandits has too, without delay, in its own environment."""
    program = OWN_PEERS / "smpybandits_loop.py"
    if python is None or not program.exists():
        return {}
    done = subprocess.run([str(python), str(program)], capture_output=True, text=True, preexec_fn=lambda: _pin([0]))
    if done.returncode:
        raise RuntimeError(f"smpybandits={python}: its benchmark failed: {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout.splitlines()[-1])


def find_peers(folder: Path | None, scratch: Path) -> dict[str, list[str]]:
    """Our own peer programs, and those of a folder with the names given here."""
    own = {"C++": "simd.cpp", "Numba": "numba_loop.py", "NumPy": "numpy_loop.py", "plain JAX": "plain_jax.py"}
    peers = _find_peers(OWN_PEERS, "our ", own, scratch)
    if folder is not None:
        peers |= _find_peers(folder, "", {"C++": "ftrl_simd.cpp", "Numba": "ftrl_numba.py", "NumPy": "ftrl_numpy.py"}, scratch)
    return peers


def take_turns(peers: dict[str, list[str]], turns: int, most_rounds: int) -> dict[str, list[float]]:
    """Rounds per second of every ratio setting and peer, in turns; settings with more rounds than ``most_rounds`` are left out."""
    speeds: dict[str, list[float]] = {}
    cores = os.cpu_count() or 1
    workers = {
        name: Worker(setting)
        for name, setting in RATIO_SETTINGS.items()
        if setting.cores <= cores and setting.rounds <= most_rounds
    }
    try:
        for worker in workers.values():
            worker.turn()  # the first turn waits for the compiler and is not counted
        for turn in range(turns):
            print(f"turn {turn + 1} of {turns}", file=sys.stderr, flush=True)
            for name, worker in workers.items():
                speeds.setdefault(name, []).append(worker.turn()["rounds_per_second"])
            for name, command in peers.items():
                speeds.setdefault(name, []).append(_time_program(command))
            if "our C++ K=10" in peers and cores > 1:
                speeds.setdefault("our C++ K=10 on two cores at once", []).append(_time_program(peers["our C++ K=10"], (0, 1)))
    finally:
        for worker in workers.values():
            worker.stop()
    return speeds


def time_grids(quick: bool, device: Device = "cpu") -> Tables:
    """Each setting of each table, one after the other, the better of two; ``quick``: two of each table, once."""
    tables: Tables = {}
    learners = ["bobw", "tsallis-inf"] if quick else list(jb.REGISTRY)
    for title, settings in (grids(learners) if device == "cpu" else device_grids(learners, quick)).items():
        for name, setting in itertools.islice(settings.items(), 2 if quick else None):
            print(f"{title}: {name}", file=sys.stderr, flush=True)
            worker = Worker(setting, device)
            try:
                rows = [worker.turn() for _ in range(1 if quick else 2)]
            finally:
                worker.stop()
            tables.setdefault(title, {})[name] = max(rows, key=lambda row: row["rounds_per_second"])
    return tables


def check_device(device: Device) -> None:
    """An error if there is none. Asked in a process of its own: JAX reserves a GPU's memory for the process that looks at it."""
    environment = {**os.environ, "JAX_PLATFORMS": PLATFORMS[device]}
    program = [sys.executable, "-c", "import jax; jax.devices()"]
    if subprocess.run(program, env=environment, capture_output=True).returncode:
        raise CommandError(
            f"--device {device}: JAX finds no {device.upper()} here (pip install 'jax[{EXTRAS[device]}]' brings what it needs)"
        )


def described(device: Device) -> dict[str, Any]:
    """What a reader of the timings must know: the devices as JAX names them, and the recorded environment."""
    program = (
        "import json, jax; from jaxbandit._provenance.environment import environment; "
        "print(json.dumps({'devices': [str(one.device_kind) for one in jax.devices()], 'environment': environment()}))"
    )
    environment = {**os.environ, "JAX_PLATFORMS": PLATFORMS[device]}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def bench(
    *,
    out: Path = Path("bench"),
    force: bool = False,
    quick: bool = False,
    device: Device = "cpu",
    peers: Path | None = None,
    smpybandits: Path | None = None,
) -> None:
    """Rounds per second of the engine on pinned cores, with ratios to the peer programs that are found.

    Parameters
    ----------
    out
        Folder for bench.md, bench.json and bench.png.
    force
        Replace files that are already there.
    quick
        Fewer turns, and two rows of each table: some two minutes.
    device
        What to time; a GPU or TPU is timed with full blocks, from 1,000 to 1,000,000 runs, without peers.
    peers
        Folder with more peer programs (ftrl_simd.cpp, ftrl_numba.py, ftrl_numpy.py) to time beside our own.
    smpybandits
        The Python of an environment with SMPyBandits, to time its learners.
    """
    check_folder(out)
    check_new([out / f"bench.{suffix}" for suffix in ("md", "json", "png")], force)
    if peers is not None and not peers.is_dir():
        raise CommandError(f"--peers {peers}: there is no such folder")
    if smpybandits is not None and not shutil.which(smpybandits):
        raise CommandError(f"--smpybandits {smpybandits}: this is not a program; give the Python of an environment")
    speeds: dict[str, list[float]] = {}
    if device == "cpu":
        with tempfile.TemporaryDirectory() as scratch:
            speeds = take_turns(find_peers(peers, Path(scratch)), 2 if quick else 5, 10_000 if quick else 10**9)
    else:
        check_device(device)
    library = time_smpybandits(smpybandits)
    tables = time_grids(quick, device)
    identical = bits.compare_on(PLATFORMS[device], short=quick)
    text = "\n".join(report(speeds, RATIOS, tables, library))
    if device == "cpu":
        text += "".join(f"\n\n{one(quick)}" for one in calls.TABLES.values())
    text += "\n" + "\n".join(bits.lines(identical))
    print(text)
    write_whole(out / "bench.md", text + "\n")
    about = {"device": device, **described(device), "turns": speeds, "tables": tables, "bits": identical}
    write_whole(out / "bench.json", json.dumps(about, indent=1))
    save_png(figure(tables), out / "bench.png")


if __name__ == "__main__":
    play(Workload(**json.loads(sys.argv[1])))
