"""The numbers in which the regret can be differentiated: those of the learner, the losses and the delays."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import DictKey, GetAttrKey, SequenceKey

from jaxbandit._checks.inputs import is_whole
from jaxbandit._checks.per_run import declared_axes, own_leaves
from jaxbandit._core.fields import Limits, is_numeric, limits, show
from jaxbandit.delays import Delays
from jaxbandit.learners.base import LearnerLike
from jaxbandit.losses import Losses

Owner = Literal["learner", "losses", "delays"]
PARTS: tuple[Owner, ...] = get_args(Owner)


@dataclasses.dataclass(frozen=True, eq=False)
class Parameter:
    """A leaf of the learner, the loss model or the delay model."""

    part: Owner
    name: str  # within its part, "means" or "base.means"
    place: int  # among the leaves of its part
    value: np.ndarray
    limits: Limits
    whole: bool  # it counts rounds or actions

    @property
    def field(self) -> str:
        """The field of the learner or model that it belongs to."""
        return self.name.partition(".")[0]

    def moves(self, step: float) -> list[tuple[Any, Any, float]]:
        """For each of its values: the whole leaf with that value moved up, moved down, and the width of the difference.

        Whole numbers move by one. Numbers of a model that lie between 0 and 1 move by half of ``step``, all others by
        ``step`` in the logarithm (from 0 they move up alone), or, if they are declared to be of either sign, by ``step`` times
        the larger of 1 and their size. None leaves its declared range.
        """
        found = []
        for column in range(self.value.size):
            centre = self.value.reshape(-1)[column].item()
            if self.whole:
                up, down = min(centre + 1, self.limits.high), max(centre - 1, self.limits.low)
                width = up - down
            elif self.part != "learner" and self.limits.high <= 1:
                # The same on both sides, which leaves an error of second order, unless the range ends close by.
                room = min(centre - self.limits.low, self.limits.high - centre)
                half = room if step / 4 < room < step / 2 else step / 2
                up, down = min(centre + half, self.limits.high), max(centre - half, self.limits.low)
                width = up - down
            elif -math.inf < self.limits.low < 0:  # declared to be of either sign: no logarithm
                up, down = (centre + sign * step * max(abs(centre), 1) for sign in (1, -1))
                up, down = min(up, self.limits.high), max(down, self.limits.low)
                width = up - down
            else:
                up, down = (centre * math.exp(step), centre * math.exp(-step)) if centre else (step, 0.0)
                width = 2 * step * centre if centre else step
                if up > self.limits.high or down < self.limits.low:
                    up, down = min(up, self.limits.high), max(down, self.limits.low)
                    width = up - down
            found.append((*(self._with(column, value) for value in (up, down)), width))
        return found

    @property
    def extrapolated(self) -> bool:
        """Whether differences at two steps are extrapolated to step 0: means and gaps, which may be as small as a step."""
        return self.part == "losses" and not self.whole and self.limits.high <= 1

    def differences(self, step: float) -> list[list[tuple[Any, Any, float, float]]]:
        """For each of its values the differences to sum: moved up, moved down, the width, and the weight.

        A central difference leaves c·step²; 4/3 of that at half the step less 1/3 of it leaves step⁴. A range that ends close by
        makes the sides uneven or the steps alike, and only the shorter one is used.
        """
        wide = self.moves(step)
        if not self.extrapolated:
            return [[(*one, 1.0)] for one in wide]
        found = []
        for column, (one, other) in enumerate(zip(wide, self.moves(step / 2), strict=True)):
            centre = self.value.reshape(-1)[column]
            even = all(math.isclose(up[column] - centre, centre - down[column], rel_tol=1e-4) for up, down in _ends(one, other))
            if even and math.isclose(one[2], 2 * other[2], rel_tol=1e-4):
                found.append([(*other, 4 / 3), (*one, -1 / 3)])
            else:
                found.append([(*other, 1.0)])
        return found

    def _with(self, column: int, value: float) -> np.ndarray:
        moved = self.value.copy()
        moved.reshape(-1)[column] = value
        return moved


def _ends(*moves: tuple[Any, Any, float]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Both ends of each move, flat and in double precision."""
    return [(np.ravel(up).astype(float), np.ravel(down).astype(float)) for up, down, _ in moves]


def numbers_of(part: Owner, owner: Any) -> list[Parameter]:
    """All numbers of a learner or model: its floats, and the single whole numbers of a model."""
    found = []
    for place, (path, leaf) in enumerate(jax.tree_util.tree_flatten_with_path(owner)[0]):
        floating = jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
        allowed = _limits_at(owner, path)
        if floating or (part != "learner" and np.ndim(leaf) == 0):
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            found.append(Parameter(part, name, place, np.asarray(leaf), allowed, not floating))
    return found


def _limits_at(owner: Any, path: Sequence[Any]) -> Limits:
    """The declared limits of the field at ``path``; no limits where it is not a field of a dataclass."""
    found = Limits()
    for key in path:
        if isinstance(key, GetAttrKey) and dataclasses.is_dataclass(owner):
            found = next(limits(field) for field in dataclasses.fields(owner) if field.name == key.name)
            owner = vars(owner)[key.name]
        elif isinstance(key, SequenceKey | DictKey):
            owner = owner[key.idx if isinstance(key, SequenceKey) else key.key]
    return found


def check_wrt(wrt: Any) -> tuple[Owner, ...]:
    """The parts to differentiate with respect to; raises if ``wrt`` is invalid."""
    parts = (wrt,) if isinstance(wrt, str) else wrt
    known = isinstance(parts, Sequence) and len(parts) > 0 and all(isinstance(one, str) and one in PARTS for one in parts)
    if not known or len(set(parts)) < len(parts):
        raise ValueError(f"wrt={show(wrt)}: give one or several of {', '.join(map(repr, PARTS))}")
    return tuple(parts)


def check_one_value(learner: LearnerLike, losses: Losses, delays: Delays, runs: int) -> None:
    """Raise ValueError if a field has a value for each run: the expected regret is that of one game."""
    if not is_whole(runs, 1) or not all(map(is_numeric, jax.tree.leaves((learner, losses, delays)))):
        return  # other checks report this
    for part in (learner, losses, delays):
        for own, (name, _), leaf in zip(own_leaves(part), declared_axes(part), jax.tree.leaves(part), strict=True):
            if own and leaf.shape[-1] == runs:
                raise ValueError(
                    f"{name} of shape {leaf.shape}: a gradient needs one value for all runs, not one for each; call it once for each value"
                )


def chosen(owners: Mapping[Owner, Any], only: Sequence[str] | None) -> list[Parameter]:
    """The selected numbers, in the order of the leaves: all, or those that ``only`` names.

    With several parts a number is named with its part, "losses.means".
    """
    found = [number for part, owner in owners.items() for number in numbers_of(part, owner)]
    several = len(owners) > 1
    names = [f"{number.part}.{number.name}" if several else number.name for number in found]
    owner = "the game" if several else type(next(iter(owners.values()))).__name__
    check_names(names, owner, only)
    return found if only is None else [number for number, name in zip(found, names, strict=True) if name in only]


def check_names(names: Sequence[str], owner: str, only: Sequence[str] | None) -> None:
    """Raise unless ``only`` is None or some of the ``names``."""
    if not names:
        raise ValueError(f"{owner}(…): it has no hyperparameter to differentiate by")
    if only is None:
        return
    if isinstance(only, str) or not isinstance(only, Sequence) or not only:
        raise ValueError(f"only={show(only)}: give a list of hyperparameters; {owner} has {', '.join(names)}")
    for name in only:
        if name not in names:
            raise ValueError(f"only=[{name!r}]: {owner} has the hyperparameters {', '.join(names)}")
