"""Two checkouts against each other on one core: which is faster, and how sure is that?

    python experiments/bench/turns.py OLD NEW [--turns 30] [--core 1] [--only TEXT ...]

There is one process for each checkout, pinned to the same core. They take turns, many short ones, and each says how
much processor time its turn took, so that other load on the machine cancels to a large part. Printed is NEW's speed over OLD's:
the geometric mean of the middle half of the turns, with its 95% interval. What a call costs beside its rounds is in the last rows (one round, one block).
Versions before 0.2 call `use_all_cores()` first, which made them fast.
"""

import argparse
import dataclasses
import json
import math
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator

LEARNERS = [
    "bobw",
    "zimmert-seldin",
    "robust-bobw",
    "delayed-sapo",
    "asymmetric-bobw",
    "tsallis-inf",
    "banker",
    "arm-dependent",
    "delayed-exp3",
    "dew",
    "skipper",
    "fixed-delay-exp3",
    "exp3",
    "exp3++",
    "ucb1",
    "kl-ucb",
    "thompson",
    "delayed-ucb",
    "delayed-kl-ucb",
    "successive-elimination",
    "phased-elimination",
    "opse",
    "odaaf",
    "sliding-window-ucb",
    "discounted-ucb",
    "sliding-window-thompson",
    "discounted-thompson",
    "qpm-d",
    "bold",
    "colo",
    "limited-tracking",
    "uniform",
]
# Required inputs of learners, by the name of their fields; any numbers do.
GIVEN = {"max_delay": 127, "delay": 10, "horizon": 10_000, "total_delay": 100_000, "beta": 12, "max_missing": 16, "capacity": 64}
GIVEN |= {"mean_delay": 10, "backlog": 256, "curve": [min(1.0, 0.1 * (age + 1)) for age in range(128)]}


@dataclasses.dataclass(frozen=True)
class Setting:
    learner: str = "bobw"
    arms: int = 10
    law: str = "fixed"
    rounds: int = 2_000
    runs: int = 512
    per_run: bool = False  # the first hyperparameter has a value for each run


def settings() -> Iterator[tuple[str, Setting]]:
    """What is compared, by name; each turn takes some tenths of a second."""
    for arms, rounds in ((2, 6_000), (10, 2_000), (100, 300)):
        yield f"K={arms}, fixed delay", Setting(arms=arms, rounds=rounds)
        yield f"K={arms}, i.i.d. delays", Setting(arms=arms, rounds=rounds // 2, law="geometric")
    for arms, rounds in ((2, 2_000), (10, 1_000), (16, 500)):
        yield f"K={arms}, hyperparameter per run", Setting(arms=arms, rounds=rounds, per_run=True)
    for learner in LEARNERS:
        yield f"{learner}, fixed delay", Setting(learner, rounds=4_000)
    for learner in LEARNERS:
        yield f"{learner}, i.i.d. delays", Setting(learner, rounds=2_000, law="geometric")
    yield "call of one round", Setting(rounds=1, runs=256)
    yield "call of one round, i.i.d. delays", Setting(rounds=1, runs=256, law="geometric")


def work() -> None:
    """In a process of its own: read a setting, then play once for every line "go", and print how much processor time it took."""
    import warnings

    import jaxbandit as jb

    warnings.simplefilter("ignore")  # constants of learners do not matter here
    jb.use_all_cores()
    print(jb.__file__, flush=True)
    once = None
    for line in sys.stdin:
        try:
            if line.strip() != "go":
                once = simulation(Setting(**json.loads(line)))
                once()
            assert once is not None
            print(once(), flush=True)
        except Exception as error:
            print(f"{type(error).__name__}: {error}".splitlines()[0], flush=True)


def simulation(setting: Setting) -> Callable[[], float]:
    """A function that simulates a setting, and returns the seconds of processor time that it took."""
    import time

    import jax
    import numpy as np

    import jaxbandit as jb

    cls = jb.REGISTRY[setting.learner]
    needed = [one.name for one in dataclasses.fields(cls) if one.default is one.default_factory is dataclasses.MISSING]
    values = {name: jb.TsallisINF() if name == "base" else GIVEN[name] for name in needed}
    if setting.per_run:
        values[needed[0]] = np.linspace(0.5, 1, setting.runs) * values[needed[0]]
    learner = cls(**values)
    losses = jb.losses.Bernoulli([0.3, *[0.5] * (setting.arms - 1)])
    delays = jb.delays.Fixed(10) if setting.law == "fixed" else jb.delays.Geometric(10.0, bound=127)
    calls = 20 if setting.rounds == 1 else 1

    def once() -> float:
        begun = time.process_time()
        for _ in range(calls):
            jb.simulate(learner, losses, delays, rounds=setting.rounds, runs=setting.runs, key=jax.random.key(0))
        return (time.process_time() - begun) / calls

    return once


def start(checkout: str, core: int) -> subprocess.Popen:
    path = os.path.abspath(checkout)
    process = subprocess.Popen(
        [sys.executable, os.path.abspath(__file__), "--work"],
        cwd=path,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    assert process.stdout is not None
    found = process.stdout.readline().strip()
    if not found.startswith(path):
        process.kill()
        raise SystemExit(f"{checkout}: its process did not begin, or imported {found or 'nothing'}")
    return process


def turn(process: subprocess.Popen, line: str = "go") -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    found = process.stdout.readline().strip()
    try:
        return float(found)
    except ValueError:
        raise RuntimeError(found) from None


def compare(workers: list[subprocess.Popen], setting: Setting, turns: int) -> tuple[float, float, float, float]:
    """Seconds of a turn of the old one, NEW's speed over OLD's, and its 95% interval."""
    for worker in workers:
        turn(worker, json.dumps(dataclasses.asdict(setting)))
    ratios, seconds = [], []
    for index in range(turns):
        order = (0, 1) if index % 2 else (1, 0)  # which goes first alternates too
        took = dict(sorted((which, turn(workers[which])) for which in order))
        ratios.append(math.log(took[0] / took[1]))
        seconds.append(took[0])
    # The middle half of the turns, as a turn that was disturbed says nothing; the interval by the bootstrap over turns.
    draw = random.Random(0)
    means = sorted(_middle(draw.choices(ratios, k=turns)) for _ in range(1_000))
    return statistics.median(seconds), math.exp(_middle(ratios)), math.exp(means[25]), math.exp(means[974])


def _middle(ratios: list[float]) -> float:
    count = len(ratios)
    return statistics.fmean(sorted(ratios)[count // 4 : count - count // 4])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--only", nargs="*", default=[], help="settings whose names contain one of these")
    given = parser.parse_args()
    print("| setting | ms of processor time in OLD | NEW's speed over OLD's | 95% interval |\n|---|---|---|---|")
    workers = [start(checkout, given.core) for checkout in (given.old, given.new)]
    try:
        for name, setting in settings():
            if given.only and not any(text in name for text in given.only):
                continue
            try:
                seconds, ratio, low, high = compare(workers, setting, given.turns)
            except RuntimeError as error:
                print(f"| {name} | does not run: {error} | | |", flush=True)
                continue
            print(f"| {name} | {1e3 * seconds:.1f} | {ratio:.3f} | {low:.3f} to {high:.3f} |", flush=True)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work()
    else:
        main()
