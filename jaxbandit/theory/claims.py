"""``jaxbandit claims``: one experiment for each statement of the paper, a page for each, and an exit status.

A statement is a folder with ``spec.toml`` (what is claimed, the seed, the settings of the full and the quick run) and
``claim.py`` with ``run(experiment)``. The folders are in ``experiments/claims``. What a statement found is written to
``DIR/<statement>/claim.json`` when it is done and not done again unless its settings, its script or the package changed.
"""

import dataclasses
import hashlib
import importlib.util
import json
import time
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import jax
import numpy as np

import jaxbandit
from jaxbandit import plots
from jaxbandit.measure import ControlVariates
from jaxbandit.pytrees import canonical
from jaxbandit.result import Result, fingerprint
from jaxbandit.simulate import BLOCK, simulate
from jaxbandit.theory import pages
from jaxbandit.theory.verdict import Check, Measured, judge

PIECE = 1_000_000_000  # run-rounds between two saves of a long simulation
RECORD = 25
# In an installed package the statements lie beside this file, in a checkout in experiments/.
FOLDERS = (Path(__file__).parent / "statements", Path(__file__).parents[2] / "experiments" / "claims")


@dataclasses.dataclass(frozen=True)
class Statement:
    """A folder of ``experiments/claims``, read."""

    name: str
    title: str
    claim: str  # what the paper says
    where: str  # in the paper
    shows: str  # what the experiment can and cannot show
    order: int
    seed: int
    full: dict[str, Any]
    quick: dict[str, Any]  # what differs in the quick run
    folder: Path

    @classmethod
    def read(cls, folder: Path) -> "Statement":
        spec = tomllib.loads((folder / "spec.toml").read_text(encoding="utf-8"))
        return cls(name=folder.name, folder=folder, **{"quick": {}, **spec})

    def settings(self, quick: bool) -> dict[str, Any]:
        return {**self.full, **self.quick} if quick else dict(self.full)

    def mark(self, quick: bool) -> str:
        """What the outcome depends on, in short."""
        sources = [self.folder / "claim.py", *sorted(Path(__file__).parents[1].rglob("*.py"))]
        digest = hashlib.sha256(json.dumps([self.seed, self.settings(quick)], sort_keys=True).encode())
        for source in sources:
            digest.update(source.read_bytes())
        return digest.hexdigest()[:16]


def find_statements(folder: Path | None = None) -> list[Statement]:
    """All statements, in the order of the paper."""
    folders = (folder,) if folder else FOLDERS
    here = next((folder for folder in folders if folder.is_dir()), None)
    found = sorted(here.glob("*/spec.toml")) if here else []
    if not found:
        raise FileNotFoundError(
            f"no statements in {' or '.join(map(str, folders))}: give --statements, a folder like experiments/claims"
        )
    return sorted((Statement.read(path.parent) for path in found), key=lambda statement: statement.order)


class Experiment:
    """What a statement's script works with: its settings, simulations that survive an interruption, and the page it fills."""

    def __init__(self, statement: Statement, quick: bool, out: Path):
        self.settings = SimpleNamespace(**statement.settings(quick))
        self.key = jax.random.key(statement.seed)
        self.checks: list[Check] = []
        self.numbers: list[tuple[str, Measured]] = []
        self.sentences: list[str] = []
        self.played = 0  # run-rounds
        self.kept = 0  # of them, by an earlier call
        self.figure: Any = None
        self._folder = out / statement.name

    def simulate(self, learner, losses, delays, *, rounds: int, runs: int, measure: Sequence[Any] = (), **options) -> Result:
        """:func:`jaxbandit.simulate` with the statement's key and control variates; long ones in pieces that are kept."""
        self.played += rounds * runs
        measure = [ControlVariates(), *measure]
        options = {"record": RECORD, **options}
        size = max(PIECE // rounds // BLOCK, 1) * BLOCK
        pieces = []
        for first in range(0, runs, size):
            count = min(size, runs - first)
            path = self._piece(learner, losses, delays, measure, (rounds, first, count, options)) if runs > size else None
            if path and path.exists():
                pieces.append(Result.load(path))
                self.kept += count * rounds
                continue
            pieces.append(
                simulate(
                    learner, losses, delays, rounds=rounds, runs=count, first_run=first, key=self.key, measure=measure, **options
                )
            )
            if path:
                pieces[-1].save(path)
        return join(pieces)

    def _piece(self, learner, losses, delays, measure, shape) -> Path:
        parts = canonical(learner), canonical(losses), canonical(delays)
        marks = fingerprint(*parts, self.key, canonical(tuple(measure)))
        name = hashlib.sha256(repr((marks, shape, jaxbandit.__version__)).encode()).hexdigest()[:16]
        return self._folder / "pieces" / f"{name}.npz"

    def panels(self, columns: int):
        """The panels of the statement's figure."""
        self.figure, panels = plots.figure(columns)
        return panels

    def check(
        self,
        label: str,
        measured: Measured | float,
        relation: Literal["at most", "at least", "equals"],
        bound: float,
        resolution: float = 0.0,
        kind: Literal["proved", "shape", "open"] = "proved",
    ) -> None:
        """Compare; a plain number is exact (or the worst of all paths)."""
        measured = measured if isinstance(measured, Measured) else Measured(float(measured))
        self.checks.append(Check(label, measured, relation, float(bound), resolution, kind))

    def number(self, label: str, measured: Measured | float) -> None:
        """A number for the page that decides nothing."""
        self.numbers.append((label, measured if isinstance(measured, Measured) else Measured(float(measured))))

    def say(self, sentence: str) -> None:
        """A plain sentence for the page."""
        self.sentences.append(sentence)


def join(pieces: Sequence[Result]) -> Result:
    """Results of neighbouring runs of one game as one."""
    names = ("regret", "outstanding_max", "total_delay", "lost")
    joined = {name: np.concatenate([getattr(piece, name) for piece in pieces], -1) for name in names}
    measured = {name: np.concatenate([piece.measured[name] for piece in pieces], -1) for name in pieces[0].measured}
    return dataclasses.replace(pieces[0], **joined, measured=measured, residual=max(piece.residual for piece in pieces))


def run_statement(statement: Statement, out: Path, quick: bool = False) -> dict[str, Any]:
    """Run one statement, write its page, and return what it found (from the file if that is up to date)."""
    folder, mark = out / statement.name, statement.mark(quick)
    file = folder / "claim.json"
    if file.exists() and (known := json.loads(file.read_text(encoding="utf-8"))).get("mark") == mark:
        return known
    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    experiment = Experiment(statement, quick, out)
    _load(statement).run(experiment)
    verdict = judge(experiment.checks)
    if experiment.figure is not None:
        pages.tidy(experiment.figure)
        experiment.figure.savefig(folder / "figure.png", dpi=110)
    found = {
        "name": statement.name,
        "title": statement.title,
        "verdict": str(verdict),
        "outcome": verdict.outcome,
        "room": verdict.room,
        "refuted": verdict.refuted,
        "claim": statement.claim,
        "where": statement.where,
        "shows": statement.shows,
        **pages.tables(experiment),
        "settings": vars(experiment.settings),
        "command": f"jaxbandit claims --only {statement.name}{' --quick' if quick else ''} --out {out.name or 'DIR'}",
        "key": f"jax.random.key({statement.seed})",
        "quick": quick,
        "run_rounds": experiment.played,
        "kept_run_rounds": experiment.kept,
        "seconds": round(time.perf_counter() - start, 1),
        "versions": {"jaxbandit": jaxbandit.__version__, "jax": jax.__version__, "numpy": np.__version__},
        "mark": mark,
    }
    pages.write(found, folder)
    # Last, and whole or not at all: this file says that the statement is done.
    part = file.with_suffix(".part")
    part.write_text(json.dumps(found, indent=1, default=float), encoding="utf-8")
    part.replace(file)
    return json.loads(file.read_text(encoding="utf-8"))


def _load(statement: Statement):
    spec = importlib.util.spec_from_file_location(f"claim_{statement.name}", statement.folder / "claim.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(out: Path, quick: bool = False, only: Iterable[str] = (), statements: Path | None = None) -> int:
    """Run the statements, write the pages and ``claims.json``; 1 if a check with proved constants fails, else 0."""
    known = find_statements(statements)
    names = [statement.name for statement in known]
    for name in only:
        if name not in names:
            raise ValueError(f"--only {name}: no such statement; there are {', '.join(names)}")
    chosen = [statement for statement in known if not only or statement.name in only]
    out.mkdir(parents=True, exist_ok=True)
    found, start = [], time.perf_counter()
    for statement in chosen:
        found.append(run_statement(statement, out, quick))
        print(f"{found[-1]['verdict']:28}{statement.title}  ({found[-1]['seconds']:.0f} s)", flush=True)
    (out / "claims.json").write_text(
        json.dumps({"quick": quick, "seconds": round(time.perf_counter() - start, 1), "statements": found}, indent=1),
        encoding="utf-8",
    )
    pages.write_index(found, out)
    refuted = [one["name"] for one in found if one["refuted"]]
    print(f"\n{len(found)} statements in {time.perf_counter() - start:.0f} s; the pages are in {out}, start with index.html.")
    if refuted:
        print(f"PROVED AND YET MEASURED OTHERWISE: {', '.join(refuted)}")
    return bool(refuted)


def register(app) -> None:
    """Add ``claims`` to the command line."""

    @app.command
    def claims(*, out: Path, quick: bool = False, only: list[str] | None = None, statements: Path | None = None) -> None:
        """Measure every statement of the paper and write a page for each, with figure, intervals and verdict.

        Exits with 1 if something that the paper proves, constants and all, is measured otherwise.

        Parameters
        ----------
        out
            Folder for the pages; what is done there already is not done again.
        quick
            Small settings: minutes in place of an hour.
        only
            Names of statements, such as key_lemma; all if not given.
        statements
            Folder of the statements, if not the one that comes with the package.
        """
        from jaxbandit.simulate import use_all_cores

        use_all_cores()
        try:
            status = run(out, quick, only or (), statements)
        except (ValueError, FileNotFoundError) as error:
            raise SystemExit(f"jaxbandit claims: {error}") from None
        raise SystemExit(status)
