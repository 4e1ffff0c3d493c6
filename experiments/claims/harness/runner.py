"""Runs the claims: one experiment for each statement of the paper, and a page for each.

A statement is a folder with ``claim.toml`` (what is claimed, the seed, the settings of the full and the quick run) and
``claim.py`` with ``run(experiment)``; the folders are in ``experiments/claims``. What a statement found is written to
``DIR/<statement>/claim.json`` when it is done, and not computed again unless what it depends on changed
(:mod:`experiments.claims.harness.mark`). Pages are written from that file, every time.

Several statements are measured at once, each in a process with one core: most of their simulations are a single block of runs,
which one core plays, and many searches are plain NumPy.
"""

import contextlib
import dataclasses
import importlib.util
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np

import jaxbandit
from experiments.claims.harness import pages
from experiments.claims.harness.experiment import Experiment
from experiments.claims.harness.figures import lay_out
from experiments.claims.harness.mark import mark
from experiments.claims.harness.verdict import judge
from jaxbandit._io.files import whole_file, write_whole

NAME = "python -m experiments.claims"
FOLDER = Path(__file__).parents[1]


@dataclasses.dataclass(frozen=True)
class Statement:
    """A folder of ``experiments/claims``, read."""

    name: str
    title: str
    claim: str  # what the paper says
    where: str  # in the paper
    shows: str  # what the experiment can and cannot show
    fails_if: str  # what would have made it fail
    order: int
    seed: int
    full: dict[str, Any]
    quick: dict[str, Any]  # what differs in the quick run
    folder: Path

    @classmethod
    def read(cls, folder: Path) -> "Statement":
        file = folder / "claim.toml"
        try:
            given = {"quick": {}, **tomllib.loads(file.read_text(encoding="utf-8"))}
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{file}: this is not TOML ({error})") from None
        known = {field.name for field in dataclasses.fields(cls)} - {"name", "folder"}
        if set(given) != known:
            odd = sorted(set(given) ^ known)
            raise ValueError(f"{file}: {', '.join(odd)} too many or missing; a claim has {', '.join(sorted(known))}")
        return cls(name=folder.name, folder=folder, **given)

    def settings(self, quick: bool) -> dict[str, Any]:
        """The settings of the full or of the quick run."""
        return {**self.full, **self.quick} if quick else dict(self.full)

    def mark(self, quick: bool) -> str:
        """A digest of all that the outcome of the full or of the quick run depends on."""
        return mark(self.folder / "claim.py", self.seed, self.settings(quick))


def find_statements(folder: Path = FOLDER) -> list[Statement]:
    """All statements, in the order of the paper."""
    found = sorted(folder.glob("*/claim.toml"))
    if not found:
        raise ValueError(f"no statements in {folder}: give --statements, a folder like experiments/claims")
    return sorted((Statement.read(path.parent) for path in found), key=lambda statement: statement.order)


def choose(only: Sequence[str] = (), folder: Path = FOLDER) -> list[Statement]:
    """The statements with these names, all without names, in the order of the paper."""
    known = find_statements(folder)
    names = [statement.name for statement in known]
    for name in only:
        if name not in names:
            raise ValueError(f"--only {name}: no such statement; there are {', '.join(names)}")
    return [statement for statement in known if not only or statement.name in only]


def run(out: Path, statements: Sequence[Statement], quick: bool = False, progress: bool = False, processes: int = 1) -> list[str]:
    """Run the statements, write the pages and ``claims.json``; returns those of which a check with proved constants fails.

    The index and ``claims.json`` also list the other statements that were run into ``out`` before and are not stale. With
    several ``processes`` that many statements are measured at once, with the same numbers.
    """
    found, start = {}, time.perf_counter()
    for one in _run_each(statements, out, quick, progress, processes):
        found[one["name"]] = one
        print(f"{one['verdict']:28}{one['title']}  ({one['seconds']:.0f} s)", flush=True)
    seconds = time.perf_counter() - start
    there = _with_earlier(found, statements[0].folder.parent, out)
    summary = {"quick": quick, "seconds": round(seconds, 1), "statements": there}
    write_whole(out / "claims.json", json.dumps(summary, indent=1))
    pages.write_index(there, out)
    refuted = [name for name, one in found.items() if one["refuted"]]
    print(f"\n{len(found)} statements in {seconds:.0f} s; the pages are in {out}, start with index.html.")
    if refuted:
        print(f"PROVED AND YET MEASURED OTHERWISE: {', '.join(refuted)}")
    return refuted


def _run_each(
    statements: Sequence[Statement], out: Path, quick: bool, progress: bool, processes: int
) -> Iterator[dict[str, Any]]:
    """What the statements found, each as soon as it is done."""
    if min(processes, len(statements)) <= 1:
        for statement in statements:
            yield run_statement(statement, out, quick, progress)
        return
    with _workers(min(processes, len(statements))) as workers:
        for done in as_completed([workers.submit(_work, statement, out, quick, progress) for statement in statements]):
            yield done.result()


@contextlib.contextmanager
def _workers(count: int) -> Iterator[Executor]:
    """So many processes; on an interrupt or an error they are ended, whatever they are at."""
    others = multiprocessing.active_children()
    # A forked process hangs once JAX has started.
    executor = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=_start_worker)
    try:
        yield executor
    except BaseException:
        mine = [process for process in multiprocessing.active_children() if process not in others]
        executor.shutdown(wait=False, cancel_futures=True)
        for process in mine:
            process.terminate()
        raise
    executor.shutdown()


def _start_worker() -> None:
    """One core for each process, so that no program is compiled twice, once for each device."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles it too, and ends it
    threading.Thread(target=_end_with_parent, daemon=True, name="jaxbandit-parent").start()
    jax.config.update("jax_num_cpu_devices", 1)


def _end_with_parent() -> None:
    """Exit when the parent process dies."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(statement: Statement, out: Path, quick: bool, progress: bool) -> dict[str, Any]:
    if progress:  # bars of several processes would write over each other
        print(f"begun: {statement.title}", file=sys.stderr, flush=True)
    return run_statement(statement, out, quick)


def _with_earlier(found: dict[str, Any], folder: Path, out: Path) -> list[dict[str, Any]]:
    """What was found now, and what earlier calls found of other statements if it is not stale, in the order of the paper."""
    there = []
    for statement in find_statements(folder):
        one = found.get(statement.name) or _read(out / statement.name / "claim.json")
        if one is not None and one.get("mark") == statement.mark(bool(one.get("quick"))):
            there.append(one)
    return there


def run_statement(statement: Statement, out: Path, quick: bool = False, progress: bool = False) -> dict[str, Any]:
    """Run one statement unless it is done, write its page, and return what it found."""
    folder = out / statement.name
    file = folder / "claim.json"
    now = statement.mark(quick)
    found = _read(file)
    if found is None or found.get("mark") != now:
        found = _compute(statement, folder, quick, progress) | {"mark": now}
        found["command"] = f"{NAME} --only {statement.name}{' --quick' if quick else ''} --out {out.name or 'DIR'}"
        # This file says that the statement is done.
        write_whole(file, json.dumps(found, indent=1, default=float))
        found = json.loads(file.read_text(encoding="utf-8"))
    pages.write(found, folder)
    return found


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # not there, or not written by us
        return None
    return found if isinstance(found, dict) else None


def _compute(statement: Statement, folder: Path, quick: bool, progress: bool) -> dict[str, Any]:
    start, busy = time.perf_counter(), time.process_time()
    experiment = Experiment(statement.settings(quick), statement.seed, folder / "pieces", progress, mark=statement.mark(quick))
    _load(statement).run(experiment)
    verdict = judge(experiment.checks, experiment.mutants)
    if experiment.figure is not None:
        lay_out(experiment.figure)
        with whole_file(folder / "figure.png") as file:
            experiment.figure.savefig(file, dpi=160)
    experiment.forget_pieces()
    return {
        "name": statement.name,
        "title": statement.title,
        "verdict": str(verdict),
        "outcome": verdict.outcome,
        "slack": verdict.slack,
        "refuted": verdict.refuted,
        "claim": statement.claim,
        "where": statement.where,
        "shows": statement.shows,
        "fails_if": statement.fails_if,
        **experiment.found(),
        "key": f"jax.random.key({statement.seed})",
        "quick": quick,
        "seconds": round(time.perf_counter() - start, 1),
        "processor_seconds": round(time.process_time() - busy, 1),
        "versions": {"jaxbandit": jaxbandit.__version__, "jax": jax.__version__, "numpy": np.__version__},
    }


def _load(statement: Statement) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"claim_{statement.name}", statement.folder / "claim.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
