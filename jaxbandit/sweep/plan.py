"""Units of work: a cell of the sweep, a block of runs, a stretch of rounds. Each is a pure function of the spec.

A cell is a learner, a loss law and a delay law with every ``"oracle"`` replaced by the cell's true value. Its name is a
digest of what a run is a function of, so equal cells share their files and an edited one cannot be taken for the old.
Blocks are always whole, as the engine compiles them, whatever number of runs is asked for.
"""

import dataclasses
import hashlib
import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.delays import NEVER, ArmDependent
from jaxbandit.measure import ControlVariates
from jaxbandit.projection import Warm
from jaxbandit.pytrees import canonical, show
from jaxbandit.result import Result, fingerprint
from jaxbandit.rollout import Game, log_spaced
from jaxbandit.simulate import BLOCK, block_size, simulate
from jaxbandit.sweep.spec import AXES, ORACLE, Reader, Setting, Spec, suggest
from jaxbandit.validation import check_delays, check_game, check_learner, check_losses, check_record, check_rounds, check_runs

MOST_NOTES = 3
QUANTILES = 1 << 16  # of a random delay law, for its expected total


@dataclasses.dataclass(frozen=True)
class Cell:
    """A learner against losses and delays, nothing left open."""

    learner: Any
    losses: Any
    delays: Any
    at: tuple[int, int, int]  # its place on the axes
    id: str  # 16 hex digits: learner, losses, delays, key and what is measured
    shape: str  # cells of one shape share their compiled program

    @property
    def block(self) -> int:
        """How many runs make a block."""
        return block_size(self.losses.num_arms)


@dataclasses.dataclass(frozen=True)
class Plan:
    """A checked spec: settings, cells and how to play them."""

    spec: Spec
    rounds: int
    runs: int
    axes: dict[str, list[Setting]]
    cells: list[Cell]
    notes: list[str]  # warnings, such as a learner that is told too small a delay

    @classmethod
    def make(cls, source: Any, *, rounds: int | None = None, runs: int | None = None, imports: bool = False) -> "Plan":
        """Read and check a spec; every problem is reported at once, before anything is compiled or written."""
        reader = Reader(source, imports)
        spec = reader.spec
        rounds, runs = spec.rounds if rounds is None else rounds, spec.runs if runs is None else runs
        _check_numbers(reader, rounds, runs)
        playable = not reader.problems
        axes = {axis: reader.settings(axis) for axis in AXES}
        good = {axis: [_good(reader, axis, setting, rounds) for setting in axes[axis]] for axis in AXES}
        cells, notes = _cells(reader, axes, good, rounds) if playable else ([], [])
        reader.finish()
        return cls(spec, rounds, runs, axes, cells, notes)

    def at_horizon(self, rounds: int) -> "Plan":
        """The same settings with another horizon (a learner that is told the horizon becomes another learner)."""
        record = self.spec.record if isinstance(self.spec.record, int) else [t for t in self.spec.record if t < rounds] + [rounds]
        return Plan.make(dataclasses.replace(self.spec, record=record, **self.objects()), rounds=rounds, runs=self.runs)

    def objects(self) -> dict[str, list[Any]]:
        return {axis: [setting.object for setting in settings] for axis, settings in self.axes.items()}

    def record(self, after: int = 0) -> list[int]:
        """The rounds to record between ``after`` and the horizon."""
        wanted = self.spec.record
        if isinstance(wanted, int):
            return log_spaced(self.rounds, wanted, after).tolist()
        return [int(t) for t in check_record(wanted, 0, self.rounds) if t > after]


def _check_numbers(reader: Reader, rounds: Any, runs: Any) -> None:
    spec = reader.spec

    def check(path, function, *arguments):
        try:
            function(*arguments)
        except (ValueError, TypeError) as error:
            reader.problem(path, str(error).partition(": ")[2] if str(error).startswith(path) else str(error))
        else:
            return True

    if rounds is None:
        reader.problem("rounds", "this field is needed: the number of rounds, such as 20_000")
    elif check("rounds", check_rounds, rounds) and (isinstance(spec.record, bool) or not isinstance(spec.record, int)):
        check("record", check_record, spec.record, 0, rounds)
    if runs is None:
        reader.problem("runs", "this field is needed: the number of runs, such as 1024")
    elif check("runs", check_runs, runs, 0) and runs > 2**32 - 2 * BLOCK:
        reader.problem("runs", f"{runs} runs are too many; run ids must stay below 2**32")
    if isinstance(spec.record, int) and not 1 <= spec.record <= 100_000:
        reader.problem("record", f"{show(spec.record)} is not a number of rounds to record, 1 or more")
    if not isinstance(spec.seed, int) or isinstance(spec.seed, bool) or not 0 <= spec.seed < 2**32:
        reader.problem("seed", f"{show(spec.seed)} is not a seed, a whole number from 0 to 2**32 - 1")
    if not isinstance(spec.control_variates, bool):
        reader.problem("control_variates", f"{show(spec.control_variates)} is not true or false")


def _good(reader: Reader, axis: str, setting: Setting, rounds: Any) -> Any:
    """The setting's object if it stands on its own, else None and a problem; delays know the horizon from here on."""
    try:
        if axis == "losses":
            _no_oracle(setting.object)
            check_losses(setting.object)
        elif axis == "delays":
            law = setting.object
            if getattr(law, "bound", None) == ORACLE:
                law = dataclasses.replace(law, bound=rounds)
            _no_oracle(law)
            check_delays(law, len(law.laws) if isinstance(law, ArmDependent) else 1)
            return law
        return setting.object
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        reader.problem(setting.path, str(error))
        return None


def _no_oracle(law: Any) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(law):
        if isinstance(leaf, str):
            name = jax.tree_util.keystr(path).lstrip(".")
            raise ValueError(f"{name} = {leaf!r}: only what a learner is told can be {ORACLE!r} (and the bound of a delay law)")


def _cells(reader: Reader, axes, good, rounds: int) -> tuple[list[Cell], list[str]]:
    cells, notes = [], []
    key = jax.random.key(reader.spec.seed, impl="threefry2x32")
    measure = measurements(reader.spec.control_variates)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        truths: dict[tuple[int, ...], Truth] = {}
        for at in itertools.product(*(range(len(axes[axis])) for axis in AXES)):
            learner, losses, delays = (good[axis][index] for axis, index in zip(AXES, at, strict=True))
            if learner is None or losses is None or delays is None:
                continue
            path = axes["learners"][at[0]].path
            try:
                truth = truths.setdefault(at[1:], Truth(losses, delays, rounds))
                learner = truth.tell(learner)
                check_learner(learner)
                path = " x ".join(axes[axis][index].path for axis, index in zip(AXES, at, strict=True))
                check_game(learner, losses, delays, rounds)
            except (ValueError, TypeError) as error:
                reader.problem(path, str(error))
                continue
            if not reader.problems:
                cells.append(_cell(learner, losses, delays, at, key, measure))
        notes = list(dict.fromkeys(str(warning.message) for warning in caught if warning.category is UserWarning))
    if len(notes) > MOST_NOTES:
        notes = [*notes[:MOST_NOTES], f"and {len(notes) - MOST_NOTES} more notes of this kind, for other settings"]
    return cells, notes


def _cell(learner, losses, delays, at, key, measure) -> Cell:
    parts = canonical(learner), canonical(losses), canonical(delays)
    marks = fingerprint(*parts, key, canonical(measure))
    leaves, structure = jax.tree.flatten(parts)
    shape = str(structure) + str([(leaf.shape, str(leaf.dtype)) for leaf in leaves])
    return Cell(learner, losses, delays, at, _digest(str(sorted(marks.items()))), _digest(shape))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def measurements(control_variates: bool) -> tuple[Any, ...]:
    return (ControlVariates(),) if control_variates else ()


class Truth:
    """What nobody tells a learner in earnest: the true values of one cell, for fields that say ``"oracle"``.

    ========================  ===============================================================================
    ``max_delay``, ``delay``  the longest delay that can come
    ``capacity``              one more than that (QPMD, BOLD)
    ``horizon``               the number of rounds
    ``total_delay``           Σ min(d_t, T - t): exact for a fixed sequence, its mean for a random law
    ``gaps``                  mean losses less the best arm's, averaged over the rounds if they move
    ========================  ===============================================================================
    """

    def __init__(self, losses: Any, delays: Any, rounds: int):
        self.losses, self.delays, self.rounds = losses, delays, rounds

    def tell(self, learner: Any) -> Any:
        """The learner with every ``"oracle"`` replaced, also inside a base learner."""
        if not dataclasses.is_dataclass(learner) or isinstance(learner, type):
            return learner
        new = {}
        for field in dataclasses.fields(learner):
            value = getattr(learner, field.name)
            if isinstance(value, str) and value == ORACLE:
                if not hasattr(type(self), field.name):
                    known = [name for name, value in vars(type(self)).items() if isinstance(value, property)]
                    raise ValueError(
                        f"{field.name} = {ORACLE!r}: the truth about {field.name!r} is not known here; {suggest(field.name, known)}"
                    )
                new[field.name] = getattr(self, field.name)
            elif hasattr(value, "act"):
                new[field.name] = self.tell(value)
        return dataclasses.replace(learner, **new) if new else learner

    @property
    def max_delay(self) -> float:
        law = type(self.delays).__name__
        if not hasattr(self.delays, "longest"):
            raise ValueError(f"max_delay = {ORACLE!r}: {law} does not say what its longest delay is; give a number")
        longest = float(np.max(np.asarray(self.delays.longest())))
        if np.isinf(longest):
            raise ValueError(
                f"max_delay = {ORACLE!r}: under {law} feedback can be lost, so there is no longest delay; give a number"
            )
        return longest

    @property
    def delay(self) -> float:
        return self.max_delay

    @property
    def capacity(self) -> int:
        return int(self.max_delay) + 1

    @property
    def horizon(self) -> int:
        return self.rounds

    def sequence(self) -> np.ndarray | None:
        """``[T]`` the delays, if there is one sequence and no chance in it."""
        law = self.delays
        if not getattr(law, "oblivious", False) or getattr(law, "loses", False):
            return None
        rounds = jnp.arange(1, self.rounds + 1, dtype=jnp.int32)

        def draw(noise):
            one = jax.vmap(lambda t: jnp.broadcast_to(law.draw(t, 0, 0.0, jnp.float32(noise)), ()))
            return np.asarray(one(rounds)).astype(np.int64)

        first = draw(0.25)
        return first if all(np.array_equal(first, draw(noise)) for noise in (0.01, 0.6, 0.99)) else None

    @property
    def total_delay(self) -> float:
        law, rest = self.delays, self.rounds - np.arange(1, self.rounds + 1)
        if not getattr(law, "oblivious", False):
            raise ValueError(
                f"total_delay = {ORACLE!r}: under {type(law).__name__} delays depend on what is played; give a number"
            )
        sequence = self.sequence()
        if sequence is not None:
            return float(np.minimum(sequence, rest).sum())
        noise = (np.arange(QUANTILES) + 0.5) / QUANTILES
        delays = np.asarray(jnp.broadcast_to(law.draw(1, 0, 0.0, jnp.asarray(noise, jnp.float32)), noise.shape)).astype(np.int64)
        delays = np.where(delays == NEVER, self.rounds, np.minimum(delays, self.rounds))
        # Σ_t E min(d, T - t) = Σ_k P(d > k)·(T - 1 - k)
        later = 1 - np.cumsum(np.bincount(delays, minlength=self.rounds + 1)[: self.rounds]) / QUANTILES
        return float(later @ rest)

    @property
    def gaps(self) -> np.ndarray:
        means = np.asarray(self.losses.expected(jnp.int32(1)), np.float64)
        if not getattr(self.losses, "stationary", False):
            each = jax.jit(jax.vmap(self.losses.expected))
            pieces = np.array_split(np.arange(1, self.rounds + 1, dtype=np.int32), -(-self.rounds // (1 << 16)))
            means = np.sum([np.asarray(each(piece), np.float64).sum(0) for piece in pieces], 0) / self.rounds
        return means - means.min()


@dataclasses.dataclass(frozen=True)
class Task:
    """Some consecutive blocks of a cell over one stretch of rounds: what a worker is handed, free of files."""

    cell: Cell
    first_block: int
    blocks: int
    start: int  # rounds already played
    stop: int
    record: Sequence[int]
    seed: int
    control_variates: bool
    resume: Result | None  # of these blocks, when start > 0


def play(task: Task) -> list[Result]:
    """The results of a task, one for each block; the same bits however blocks are put together."""
    result = simulate(
        task.cell.learner,
        task.cell.losses,
        task.cell.delays,
        rounds=task.stop,
        runs=task.blocks * task.cell.block,
        first_run=task.first_block * task.cell.block,
        key=jax.random.key(task.seed, impl="threefry2x32"),
        record=task.record,
        resume=task.resume,
        measure=measurements(task.control_variates),
    )
    structure = _structure(task)
    return [_part(result, structure, index, task.cell.block) for index in range(task.blocks)]


_structures: dict[tuple[str, bool], Any] = {}


def _structure(task: Task) -> Any:
    """How the state is put together; found once for each shape, because it takes a trace."""
    name = task.cell.shape, task.control_variates
    if name not in _structures:
        _structures[name] = jax.tree.structure(block_state(task.cell, task.control_variates))
    return _structures[name]


def block_state(cell: Cell, control_variates: bool) -> Any:
    """Shapes and dtypes of the state of one block."""
    parts = canonical(cell.learner), canonical(cell.losses), canonical(cell.delays)
    runs, measure = jnp.zeros(cell.block, jnp.uint32), canonical(measurements(control_variates))
    game = Game.set_up(*parts, jax.random.key(0, impl="threefry2x32"), runs, measure)
    return jax.eval_shape(_start, game)


def _start(game: Game):
    return game.start()


def block_bytes(cell: Cell, control_variates: bool, records: int) -> int:
    """How many bytes one block brings back: its state and its records."""
    state = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(block_state(cell, control_variates)))
    return state + 8 * records * cell.block * (1 + cell.losses.num_arms * control_variates)


def _part(result: Result, structure: Any, index: int, block: int) -> Result:
    """Block ``index`` of a result of several blocks, as if it had been played alone."""
    columns = slice(index * block, (index + 1) * block)

    def cut(array):
        return np.ascontiguousarray(array[..., columns])

    state = [cut(leaf) if has else leaf for leaf, has in zip(result.state, result.per_run, strict=True)]
    nodes = jax.tree.leaves(jax.tree.unflatten(structure, state), is_leaf=lambda node: isinstance(node, Warm))
    return dataclasses.replace(
        result,
        **{name: cut(getattr(result, name)) for name in ("regret", "outstanding_max", "total_delay", "lost")},
        state=state,
        first_run=result.first_run + index * block,
        residual=max((float(np.max(node.residual)) for node in nodes if isinstance(node, Warm)), default=0.0),
        measured={name: cut(array) for name, array in result.measured.items()},
    )


def join_runs(results: Sequence[Result]) -> Result:
    """Consecutive blocks as one result."""
    first = results[0]

    def join(arrays):
        return np.concatenate(arrays, -1)

    return dataclasses.replace(
        first,
        **{n: join([getattr(r, n) for r in results]) for n in ("regret", "outstanding_max", "total_delay", "lost")},
        state=[
            join(leaves) if has else leaves[0] for has, *leaves in zip(first.per_run, *(r.state for r in results), strict=True)
        ],
        residual=max(result.residual for result in results),
        measured={name: join([result.measured[name] for result in results]) for name in first.measured},
    )


def join_rounds(results: Sequence[Result]) -> Result:
    """Consecutive stretches of rounds of the same runs as one result."""
    last = results[-1]
    return dataclasses.replace(
        last,
        rounds=np.concatenate([result.rounds for result in results]),
        regret=np.concatenate([result.regret for result in results]),
        residual=max(result.residual for result in results),
        measured={name: np.concatenate([result.measured[name] for result in results]) for name in last.measured},
    )
