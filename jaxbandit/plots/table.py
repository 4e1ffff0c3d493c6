"""A sweep at one round, as the figures read it: the runs of each cell, and the numbers along its axes."""

import dataclasses
import difflib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbandit._core.fields import show
from jaxbandit._io.optional import need

AXES = ("learner", "losses", "delays")
# What numbers are called on an axis of a figure, where the name of the field does not say it.
WORDS = {
    "delays_delay": "delay in rounds",
    "delays_mean": "mean delay in rounds",
    "delays_length": "length of a burst in rounds",
    "losses_budget": "budget of the corruption",
}


def words(name: str) -> str:
    """The name of a coordinate for people.

    >>> words("delays_mean"), words("learner_factor"), words("losses_means_1")
    ('mean delay in rounds', 'factor of the learner', 'mean loss of arm 1')
    """
    axis, _, field = name.partition("_")
    field, _, arm = field.rpartition("_") if re.search(r"_\d+$", field) else (field, "", "")
    if (axis, field) == ("losses", "means") and arm:
        return f"mean loss of arm {arm}"
    described = f"{field.replace('_', ' ')}{f' {arm}' if arm else ''} of the {axis}"
    return WORDS.get(name, described)


@dataclasses.dataclass(frozen=True)
class Group:
    """Places along an axis that differ only in the numbers that are drawn."""

    label: str
    places: list[int]


@dataclasses.dataclass(frozen=True)
class SweepTable:
    caller: str  # the function that errors name
    round: int
    regret: np.ndarray  # [learner, losses, delays, run], NaN for runs that are not there
    labels: dict[str, list[str]]  # axis -> labels
    values_of: dict[str, list[Any]]  # coordinate -> its values along its axis

    @classmethod
    def of(cls, caller: str, sweep: Any, round: int | None) -> "SweepTable":
        """The sweep at a recorded round, the last one by default."""
        xarray = need("xarray", "data", f"plots.{caller}")
        if not isinstance(sweep, xarray.Dataset) or "regret" not in sweep or "round" not in sweep.coords:
            raise TypeError(f"plots.{caller}(sweep={show(sweep)[:60]}): give what jb.open_sweep returned, or a part of it")
        rounds = np.atleast_1d(sweep["round"].values)
        round = int(rounds[-1]) if round is None else round
        if round not in rounds:
            raise ValueError(f"plots.{caller}(round={show(round)}): this round is not recorded; there are {show(rounds)}")
        regret = sweep.regret.sel(round=round) if "round" in sweep.regret.dims else sweep.regret
        missing = [axis for axis in (*AXES, "run") if axis not in regret.dims]
        labels = {
            axis: [str(label) for label in np.atleast_1d(sweep[axis].values)] if axis in sweep.coords else [""] for axis in AXES
        }
        values_of = {
            str(name): coordinate.values.tolist()
            for name, coordinate in sweep.coords.items()
            if coordinate.dims in [(axis,) for axis in AXES] and name not in AXES
        }
        regret = regret.drop_vars([name for name in regret.coords if name in missing])
        array = regret.expand_dims(missing).transpose(*AXES, "run").values
        return cls(caller, int(round), array.astype(np.float64), labels, values_of)

    def runs(self, place: tuple[int, int, int]) -> np.ndarray:
        """The regret of the runs of a cell that are there."""
        values = self.regret[place]
        return values[np.isfinite(values)]

    def numbers(self) -> list[str]:
        """The coordinates that are numbers, and of which there are two at least."""
        numeric = {name: values for name, values in self.values_of.items() if np.asarray(values).dtype.kind in "if"}
        return [name for name, values in numeric.items() if len(set(np.asarray(values)[np.isfinite(values)])) > 1]

    def known(self) -> str:
        """The numbers, in words for an error."""
        return ", ".join(self.numbers()) or "none, because no number differs between its learners, losses or delays"

    def find(self, argument: str, word: Any) -> str:
        """The coordinate that a user means by its name or that of its field alone."""
        known = self.numbers()
        if word in known:
            return word
        found = [name for name in known if name.partition("_")[2] == word]
        if len(found) == 1:
            return found[0]
        near = difflib.get_close_matches(str(word), [*known, *(name.partition("_")[2] for name in known)], 1, 0.6)
        hint = (
            f"it is one of {', '.join(found)}" if found else f"did you mean {near[0]!r}?" if near else f"there are {self.known()}"
        )
        raise ValueError(f"plots.{self.caller}({argument}={show(word)}): no such number varies in this sweep; {hint}")

    def dimension(self, name: str) -> str:
        """The axis of a coordinate."""
        return name.partition("_")[0]

    def without(self, name: str) -> list[int]:
        """The places along the axis of a number that have no such number."""
        return [place for place, value in enumerate(self.values_of[name]) if np.isnan(value)]

    def groups(self, axis: str, names: Sequence[str]) -> list[Group]:
        """The places along an axis that differ only in the numbers ``names``; those that lack one of them are left out."""
        mine = [name for name in names if self.dimension(name) == axis]
        if not mine:
            return [Group(label, [place]) for place, label in enumerate(self.labels[axis])]
        others = [name for name in self.values_of if self.dimension(name) == axis and name not in mine]
        found: dict[str, list[int]] = {}
        for place in range(len(self.labels[axis])):
            if not any(np.isnan(self.values_of[name][place]) for name in mine):
                found.setdefault(repr([self.values_of[name][place] for name in others]), []).append(place)
        fields = [name.partition("_")[2] for name in mine]
        return [Group(self._name(axis, places, fields), places) for places in found.values()]

    def _name(self, axis: str, places: Sequence[int], fields: Sequence[str]) -> str:
        """A label without the numbers that are drawn; where labels have nothing else in common, the name of the learner or model."""
        texts = [self.labels[axis][place] for place in places]
        if len(texts) > 1:
            for field in fields:
                texts = [re.sub(rf"\s*\b{re.escape(re.sub(r'_[0-9]+$', '', field))}=(\[[^]]*\]|\S+)", "", text) for text in texts]
        names = self.values_of.get(f"{axis}_name")
        return texts[0] if len(set(texts)) == 1 else str(names[places[0]]).rpartition(":")[2] if names else texts[0].split()[0]

    def title(self, losses: Group, delays: Group) -> str:
        """What a panel is of, as far as there are others."""
        several = {"losses": losses, "delays": delays}
        described = [group.label for axis, group in several.items() if len(self.labels[axis]) > len(group.places)]
        return "; ".join(filter(None, described))

    def sizes(self) -> str:
        return ", ".join(f"{len(labels)} {axis}" for axis, labels in self.labels.items())
