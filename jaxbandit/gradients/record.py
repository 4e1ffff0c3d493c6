"""The steps of a tuning in a file, so that an interrupted tuning resumes with bitwise identical results.

The file holds the measurements and the point of each step. The moves are not stored: the optimizer recomputes them, which also
detects a different optimizer.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbandit._core.fields import show
from jaxbandit._io.files import check_writable, write_whole
from jaxbandit.gradients.coordinates import Free
from jaxbandit.gradients.tuned import Slopes

CODE = "code of the learner, losses or delays"
FORMAT = "jaxbandit tuning 1"


class Step(NamedTuple):
    """The measurements of one step."""

    free: Free  # where
    value: float
    error: float
    slopes: Slopes


class Record:
    """The steps made so far; without a file they are kept in memory only."""

    def __init__(self, file: str | os.PathLike | None, identity: Mapping[str, Any], start: Free):
        """``start``: the free numbers of the first step, for their shapes."""
        self._file, self._start = file, start
        self._identity = json.loads(json.dumps(identity))  # as it is read back from a file
        self.steps: list[Step] = self._read(Path(file)) if file is not None and os.path.lexists(file) else []

    def add(self, step: Step) -> None:
        self.steps.append(step)
        if self._file is not None:
            steps = [_as_lists(one) for one in self.steps]
            write_whole(self._file, json.dumps(nulls_for_nan({"format": FORMAT, "tuning": self._identity, "steps": steps})))

    def check(self, step: int, free: Free) -> None:
        """Raise ValueError if step number ``step`` of the file was measured at another point than that of this tuning."""
        then = self.steps[step].free
        if any(not np.array_equal(then[name], free[name]) for name in free):
            raise ValueError(
                f"file={str(self._file)!r}: step {step + 1} of it was made by another optimizer or for another number of steps; "
                "give the same arguments, or another file"
            )

    def _read(self, file: Path) -> list[Step]:
        try:
            document = json.loads(file.read_bytes())
            if document["format"] != FORMAT:
                raise ValueError(document["format"])
            identity, steps = dict(document["tuning"]), [_from_lists(one) for one in document["steps"]]
            names = set(identity["choice of hyperparameters"])
            if any(set(one.free) != names or set(one.slopes) != names for one in steps):
                raise ValueError("a hyperparameter is missing")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"file={str(file)!r}: this is not the whole file of a tuning; remove it, or let the steps be kept elsewhere"
            ) from error
        now = self._identity["precision"]
        if (then := identity.pop("precision", now)) != now:  # numbers are rounded to it and differ; old files do not record it
            raise ValueError(
                f"file={str(file)!r}: it holds a tuning in {then}, and this is {now}; set jax_enable_x64 as it was, or give another file"
            )
        identity = {CODE: self._identity.get(CODE), **identity}  # older files do not record it
        other = [name for name, value in self._identity.items() if name != "precision" and identity.get(name) != value]
        if other:
            raise ValueError(
                f"file={str(file)!r}: it holds a tuning with another {' and '.join(other)}; give the same arguments, or another file"
            )
        for count, one in enumerate(steps, 1):
            self._check_numbers(file, count, one)
        return steps

    def _check_numbers(self, file: Path, count: int, step: Step) -> None:
        """Raise ValueError unless where a step was made and its slopes are finite numbers of the right shapes."""
        for name, start in self._start.items():
            for what, found in (("value", step.free[name]), ("slope", step.slopes[name][0])):
                fault = "has another shape" if found.shape != start.shape else "is not a finite number"
                if found.shape != start.shape or not np.isfinite(found).all():
                    raise ValueError(
                        f"file={str(file)!r}: the {what} of {name} in step {count} of it {fault}; remove it, or give another file"
                    )


def check_file(file: str | os.PathLike | None) -> None:
    """Raise unless ``file`` is None, or steps can be read from it or written to it."""
    if file is None:
        return
    if not isinstance(file, str | os.PathLike):
        raise TypeError(f"file={show(file)}: give the name of a file, or None")
    path, given = Path(file), f"file={show(str(file))}"
    there = True
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        there = False
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{given}: no file can have this name ({why})") from None
    if path.is_dir():
        raise ValueError(f"{given}: this is a folder; give the name of a file")
    if there and not path.is_file():
        kind = "a link to nothing" if path.is_symlink() else "not an ordinary file"
        raise ValueError(f"{given}: this is {kind}; give the name of a file that is there or can be made")
    check_writable(path.absolute().parent, given, "a file in a folder")


def nulls_for_nan(value: Any) -> Any:
    """``value``, made of dicts, lists and numbers, with None in place of each number that JSON cannot represent."""
    if isinstance(value, Mapping):
        return {name: nulls_for_nan(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [nulls_for_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_lists(step: Step) -> Sequence[Any]:
    free = {name: value.tolist() for name, value in step.free.items()}
    slopes = {name: [np.asarray(part).tolist() for part in both] for name, both in step.slopes.items()}
    return free, step.value, step.error, slopes


def _from_lists(step: Sequence[Any]) -> Step:
    free, value, error, slopes = step
    return Step(
        {name: np.asarray(one, np.float64) for name, one in free.items()},
        float(value),
        float(np.asarray(error, np.float64)),  # null: not known
        {name: (np.asarray(slope, np.float64), np.asarray(spread, np.float64)) for name, (slope, spread) in slopes.items()},
    )
