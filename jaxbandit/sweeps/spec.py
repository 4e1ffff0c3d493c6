"""The spec of a sweep as data: its three axes, and the names of learners, loss models and delay models.

A spec has ``rounds``, ``runs``, ``seed`` and three lists: learners, losses, delays. The sweep is their product. Every
public field of every learner, loss and delay model is written under its own name; ``grid`` expands to the product over its
keys; the word ``"oracle"`` stands for the true value of a cell (see :mod:`jaxbandit.sweeps.oracle`). TOML files and Python
objects are read by :mod:`jaxbandit.sweeps.reader`.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from jaxbandit import delays, learners, losses
from jaxbandit._core.display import short
from jaxbandit._core.fields import field_values, is_numeric
from jaxbandit._provenance.identity import FORMER_NAMES

ORACLE: Any = "oracle"  # in a field of a learner: the true value of the cell; TOML files write the string
AXES = ("learners", "losses", "delays")
Axis = Literal["learners", "losses", "delays"]


CATALOGUE: dict[str, Mapping[str, type]] = {
    "learners": learners.REGISTRY,
    "losses": losses.REGISTRY,
    "delays": delays.REGISTRY,
}


class SpecError(ValueError):
    """Everything that is wrong with a spec, each problem with its path in it."""

    def __init__(self, source: str, problems: Sequence[str]):
        self.problems = tuple(dict.fromkeys(problems))
        head = f"{source}: {len(self.problems)} problem{'s' if len(self.problems) > 1 else ''}"
        super().__init__("\n  ".join([head, *self.problems]))


@dataclasses.dataclass(frozen=True)
class Entry:
    """One ``[[learners]]``, ``[[losses]]`` or ``[[delays]]`` table.

    >>> from jaxbandit.sweeps import Entry
    >>> Entry("bobw", {"max_delay": "oracle"}, grid={"factor": [24.0, 1.0]}).name
    'bobw'
    """

    name: str
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    label: str | None = None


@dataclasses.dataclass(frozen=True)
class Spec:
    """A sweep. Learners, losses and delays are :class:`Entry` tables or the objects themselves, also of your own classes.

    Args:
      rounds: the horizon of every cell.
      runs: the number of runs of every cell; learners share losses and delays run by run.
      learners, losses, delays: the three axes: lists, or dicts by names of your own, ``{"MZS22": jb.BestOfBothWorlds(jb.ORACLE)}``.
        A field of an object may be ``jb.ORACLE`` too.
      seed: of the key, ``jax.random.key(seed)``.
      record: how many rounds are recorded, or the rounds themselves.
      spacing: of a number of recorded rounds, ``"log"`` or ``"linear"``.
      control_variates: also record :class:`jaxbandit.ControlVariates`, which narrows the intervals.
      title, text: the first lines of the report.
      states: keep the state at the horizon, so that ``rounds`` can be raised later; ``False`` saves disk.
      until: add runs to a cell only until half its interval is this small (``0.5``, ``"2%"``), or until all learners of its environment
        are ``"decided"``; ``runs`` is then the largest number. See :func:`sweep`.

    >>> import jaxbandit as jb
    >>> spec = jb.Spec(rounds=1000, runs=256, learners=[jb.BestOfBothWorlds(jb.ORACLE), jb.TsallisINF()],
    ...                losses=[jb.losses.Bernoulli([0.3, 0.5])], delays=[jb.delays.Fixed(10)])
    >>> spec.seed
    0
    """

    rounds: int
    runs: int
    learners: Sequence[Any] | Mapping[str, Any]
    losses: Sequence[Any] | Mapping[str, Any]
    delays: Sequence[Any] | Mapping[str, Any]
    seed: int = 0
    record: int | Sequence[int] = 50
    control_variates: bool = False
    states: bool = True
    title: str = ""
    text: str = ""
    spacing: str = "log"
    until: float | str | None = None

    def __repr__(self) -> str:
        axes = " × ".join(f"{_count(vars(self)[axis])} {axis}" for axis in AXES)
        return f"Spec({axes}; {short(self.runs)} runs × {short(self.rounds)} rounds, seed {short(self.seed)})"


def _count(points: Any) -> Any:
    """The number of entries of an axis of an unchecked spec."""
    return len(points) if isinstance(points, Sequence | Mapping) else short(points)


@dataclasses.dataclass(frozen=True)
class AxisPoint:
    """One learner, loss model or delay model of the sweep; its fields may still say ``"oracle"``."""

    label: str
    path: str  # where it stands in the spec, such as learners[0]
    object: Any
    about: dict[str, Any]  # its name and fields, as JSON can hold them
    swept: tuple[str, ...]  # the fields that a grid varies


def find(axis: str, name: str) -> type | None:
    """The class that a name stands for; learners also by the name of their paper, in either case: ``"MZS22"``."""
    if axis == "learners":
        name = learners.PAPERS.get(name.lower(), name)
    return CATALOGUE[axis].get(FORMER_NAMES.get(name, name))


def describe(axis: str, thing: Any) -> dict[str, Any]:
    """Name and fields of an object as JSON can hold them; long arrays by shape only."""
    cls = type(thing)
    names = {known: name for name, known in CATALOGUE[axis].items()}
    about = {"name": names.get(cls, f"{cls.__module__}:{cls.__qualname__}")}
    return about | {name: _plain(axis, value) for name, value in field_values(thing).items()}


def _plain(axis: str, value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return describe(axis, value)
    if isinstance(value, tuple | list) and any(dataclasses.is_dataclass(item) for item in value):
        return [_plain(axis, item) for item in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if not is_numeric(value):
        return repr(value)
    array = np.asarray(value)
    return array.tolist() if array.size <= 1000 else {"shape": list(array.shape)}
