"""From a spec to cells: each a learner, a loss model and a delay model with every ``"oracle"`` replaced by the cell's true value.

A cell's name is a digest of what a run is a function of, so equal cells share their files and an edited one cannot be taken
for the old.
"""

import dataclasses
import hashlib
import itertools
import math
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbandit._checks.inputs import (
    check_game,
    check_rounds,
    check_runs,
    given_key,
    validate_delays,
    validate_learner,
    validate_losses,
)
from jaxbandit._checks.records import SPACINGS, check_record, spaced
from jaxbandit._core.fields import canonical, show
from jaxbandit._engine import blocks
from jaxbandit._engine.choose import SIZES, block_size
from jaxbandit._engine.execution import Execution
from jaxbandit._engine.game import Game
from jaxbandit._engine.packing import execution_of_packed, shape_of
from jaxbandit._engine.until import regret_limits
from jaxbandit._provenance.identity import fingerprint
from jaxbandit.delays import Delays
from jaxbandit.measure import ControlVariates
from jaxbandit.results.stopping import Until
from jaxbandit.sweeps.oracle import Oracle
from jaxbandit.sweeps.reader import SpecReader
from jaxbandit.sweeps.spec import AXES, ORACLE, Axis, AxisPoint, Spec, SpecError

# Runs in a block of the store on an accelerator. Packed cells share a launch, so that small blocks waste little; a cell that cannot
# be packed has launches of its own, whose size decides its bits.
PACKED_BLOCK, SINGLE_BLOCK = SIZES[0], SIZES[1]
MOST_NOTES = 3
MOST_CELLS = 100_000
MOST_UNITS = 10_000_000


@dataclasses.dataclass(frozen=True)
class Cell:
    """A learner, a loss model and a delay model, with all values resolved."""

    learner: Any
    losses: Any
    delays: Any
    at: tuple[int, int, int]  # its place on the axes
    id: str  # 16 hex digits: learner, losses, delays, key and what is measured
    shape: str  # cells of one shape share their compiled program
    block: int  # how many runs make a block of the store; blocks are always complete, for any number of runs
    execution: Execution | None  # the execution of cells of one shape in one launch; None: each separately

    def game(self, seed: int, control_variates: bool, first_block: int, blocks: int) -> Game:
        """The game of some of its runs."""
        runs = first_block * self.block + np.arange(blocks * self.block, dtype=np.uint32)
        return Game.set_up(self.learner, self.losses, self.delays, given_key(None, seed), runs, measurements(control_variates))


@dataclasses.dataclass(frozen=True)
class Plan:
    """A checked spec: its axes and its cells."""

    spec: Spec
    rounds: int
    runs: int  # of each cell; with ``until`` the largest number
    until: Until | None  # when a cell has enough runs; None: always ``runs``
    axes: dict[Axis, list[AxisPoint]]
    cells: list[Cell]
    notes: list[str]  # warnings, such as a learner whose max_delay is too small

    @classmethod
    def make(
        cls,
        source: Any,
        *,
        rounds: int | None = None,
        runs: int | None = None,
        until: float | str | None = None,
        imports: bool = False,
        folder: Path | None = None,
    ) -> "Plan":
        """Read and check a spec; every problem is reported at once, before anything is compiled or written.

        ``folder``: where the files lie that a spec names which is not a file itself.
        """
        reader = SpecReader(source, imports, folder)
        spec = reader.spec
        rounds, runs = spec.rounds if rounds is None else rounds, spec.runs if runs is None else runs
        _check_numbers(reader, rounds, runs)
        wanted = _until(reader, spec.until if until is None else until)
        numbers_are_right = not reader.problems
        axes: dict[Axis, list[AxisPoint]] = {axis: reader.points(axis) for axis in AXES}
        counts = [len(points) for points in axes.values()]
        if wanted is not None and wanted.kind == "decided" and counts[0] == 1:
            reader.problem("until", "'decided' compares learners, and there is one; give two, or half the width of an interval")
        if math.prod(counts) > MOST_CELLS:
            words = " x ".join(f"{count} {axis}" for axis, count in zip(axes, counts, strict=True))
            reader.problem(
                "", f"{words} are {math.prod(counts)} cells; a sweep can have {MOST_CELLS}, so leave some values out of the grids"
            )
            reader.finish()
        laws = {axis: [_law(reader, axis, point, rounds) for point in axes[axis]] for axis in ("losses", "delays")}
        cells, notes = _cells(reader, axes, laws, rounds) if numbers_are_right else ([], [])
        if sum(-(-runs // cell.block) for cell in cells) > MOST_UNITS:
            reader.problem("runs", f"{runs} runs of {len(cells)} cells are more than {MOST_UNITS} units; ask for fewer runs")
        reader.finish()
        return cls(spec, int(rounds), int(runs), wanted, axes, cells, notes)

    def at_horizon(self, rounds: int) -> "Plan":
        """The same settings with another horizon (a learner that requires the horizon becomes another learner)."""
        record = self.spec.record if isinstance(self.spec.record, int) else [t for t in self.spec.record if t < rounds] + [rounds]
        objects = {axis: {point.label: point.object for point in points} for axis, points in self.axes.items()}
        return Plan.make(dataclasses.replace(self.spec, record=record, **objects), rounds=rounds, runs=self.runs)

    def limits(self) -> list[tuple[float, float]]:
        """The least and the largest regret of a run, for each of the losses."""
        found = {cell.at[1]: cell.losses for cell in self.cells}
        return [regret_limits(found[place], self.rounds) for place in range(len(self.axes["losses"]))]

    def lasting(self) -> set[str]:
        """The cells that can be extended to a longer horizon: the others start over, or their trace ends."""
        try:
            return {cell.id for cell in self.cells} & {cell.id for cell in self.at_horizon(self.rounds + 1).cells}
        except SpecError:
            return set()

    def record(self, after: int = 0) -> list[int]:
        """The rounds to record between ``after`` and the horizon."""
        wanted = self.spec.record
        if isinstance(wanted, int):
            return spaced(self.rounds, wanted, after, self.spec.spacing).tolist()
        return [int(t) for t in check_record(wanted, 0, self.rounds) if t > after]


def cell_id(identity: Mapping[str, str]) -> str:
    """The name of the cell whose results have this identity (see :func:`jaxbandit._provenance.identity.fingerprint`)."""
    named = ("learner", "losses", "delays", "key", "measure")  # not their code, which the manifest holds
    return _digest(str(sorted((part, identity[part]) for part in named)))


def measurements(control_variates: bool) -> tuple[Any, ...]:
    """The measurements of a sweep in addition to the regret."""
    return (ControlVariates(),) if control_variates else ()


def _check_numbers(reader: SpecReader, rounds: Any, runs: Any) -> None:
    spec = reader.spec

    def check(path: str, function: Callable[..., Any], *arguments: Any) -> bool:
        try:
            function(*arguments)
        except (ValueError, TypeError) as error:
            reader.problem(path, str(error).partition(": ")[2] if str(error).startswith(path) else str(error))
            return False
        return True

    if rounds is None:
        reader.problem("rounds", "this field is needed: the number of rounds, such as 20_000")
    elif check("rounds", check_rounds, rounds) and (isinstance(spec.record, bool) or not isinstance(spec.record, int)):
        check("record", check_record, spec.record, 0, rounds)
    if runs is None:
        reader.problem("runs", "this field is needed: the number of runs, such as 1024")
    elif check("runs", check_runs, runs, 0) and runs > 2**32 - 2 * SIZES[-1]:
        reader.problem("runs", f"{runs} runs are too many; run ids must stay below 2**32")
    if isinstance(spec.record, int) and not 1 <= spec.record <= 100_000:
        reader.problem("record", f"{show(spec.record)} is not a number of rounds to record, 1 or more")
    if spec.spacing not in list(SPACINGS):
        reader.problem("spacing", f"{show(spec.spacing)} is not 'log' or 'linear'")
    reader.check_seed()
    for name in ("title", "text"):
        if not isinstance(vars(spec)[name], str):
            reader.problem(name, f"{show(vars(spec)[name])} is not a text")
    for name in ("control_variates", "states"):
        if not isinstance(vars(spec)[name], bool):
            reader.problem(name, f"{show(vars(spec)[name])} is not true or false")


def _until(reader: SpecReader, until: Any) -> Until | None:
    try:
        return None if until is None else Until.read(until, decided=True)
    except ValueError as error:
        reader.problem("", str(error))
        return None


def _law(reader: SpecReader, axis: str, point: AxisPoint, rounds: Any) -> Any:
    """The loss or delay model of a point with its bound; None, and a problem is reported, if it is invalid."""
    law: Any = point.object
    try:
        if isinstance(law, Delays) and law.bound == ORACLE:
            law = dataclasses.replace(law, bound=rounds)  # type: ignore[type-var]
        _check_no_oracle(law)
        if axis == "losses":
            validate_losses(law)
        else:
            validate_delays(law, (law.num_arms if isinstance(law, Delays) else None) or 1)
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        reader.problem(point.path, str(error))
        return None
    return law


def _check_no_oracle(law: Any) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(law):
        if isinstance(leaf, str):
            name = jax.tree_util.keystr(path).lstrip(".")
            raise ValueError(
                f"{name} = {leaf!r}: only required inputs of a learner can be {ORACLE!r} (and the bound of a delay model)"
            )


def _cells(
    reader: SpecReader, axes: Mapping[Axis, list[AxisPoint]], laws: Mapping[str, list[Any]], rounds: int
) -> tuple[list[Cell], list[str]]:
    """The product of the axes, and the warnings on the way; problems go to the reader."""
    cells: list[Cell] = []
    oracles: dict[tuple[int, ...], Oracle] = {}
    forms: dict[str, Execution | None] = {}  # shape -> how its cells are packed
    key = given_key(None, reader.spec.seed)
    measure = canonical(measurements(reader.spec.control_variates))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for at in itertools.product(*(range(len(axes[axis])) for axis in AXES)):
            points = [axes[axis][index] for axis, index in zip(AXES, at, strict=True)]
            losses, delays = laws["losses"][at[1]], laws["delays"][at[2]]
            if losses is None or delays is None:
                continue
            path = points[0].path
            try:
                oracle = oracles.setdefault(at[1:], Oracle(losses, delays, rounds))
                learner = oracle.tell(points[0].object)
                validate_learner(learner)
                path = " x ".join(point.path for point in points)
                check_game(learner, losses, delays, rounds)
            except (ValueError, TypeError) as error:
                reader.problem(path, str(error))
                continue
            if not reader.problems:
                cells.append(_cell(learner, losses, delays, at, key, measure, forms))
    notes = list(dict.fromkeys(str(warning.message) for warning in caught if warning.category is UserWarning))
    if len(notes) > MOST_NOTES:
        notes = [*notes[:MOST_NOTES], f"and {len(notes) - MOST_NOTES} more notes of this kind, for other settings"]
    return cells, notes


def _cell(
    learner: Any, losses: Any, delays: Any, at: Any, key: jax.Array, measure: Any, forms: dict[str, Execution | None]
) -> Cell:
    parts = canonical(learner), canonical(losses), canonical(delays)
    name = cell_id(fingerprint(*parts, key, measure))
    if blocks.platform() == "cpu":
        leaves, structure = jax.tree.flatten(parts)
        shape = _digest(str(structure) + str([(leaf.shape, str(leaf.dtype)) for leaf in leaves]))
        # On a CPU a block of one cell keeps a core busy, and evaluates rounds on arrays: faster than runs with numbers of their own.
        return Cell(learner, losses, delays, at, name, shape, block_size(losses.num_arms), None)
    game = Game.set_up(*parts, key, np.zeros(1, np.uint32), measure)
    shape = shape_of(game)
    if shape not in forms:
        forms[shape] = execution_of_packed(game)
    block = PACKED_BLOCK if forms[shape] else SINGLE_BLOCK
    return Cell(learner, losses, delays, at, name, shape, block, forms[shape])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
