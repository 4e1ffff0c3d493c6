"""Data that a spec reads from files: arrays of numbers, and the losses and delays of a log by its columns."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandit._core.fields import static
from jaxbandit.logs import load_log

LOG = "log"


@dataclasses.dataclass(frozen=True)
class FromLog:
    """An entry ``[[losses]]`` or ``[[delays]]`` whose model is read from a log; its fields are the arguments of ``load_log``."""

    file: str = static()
    arm: str | None = static(default=None)
    action: str = static(default="action_time")
    feedback: str = static(default="feedback_time")
    loss: str | None = static(default=None)
    reward: str | None = static(default=None)
    window: str | float | None = static(default=None)
    unit: str | None = static(default=None)
    time_format: str | None = static(default=None)
    timezone: str | None = static(default=None)
    propensity: str | None = static(default=None)
    duplicates: str = static(default="keep")
    scale: float = static(default=1.0)

    def law(self, axis: str, path: Path) -> Any:
        """The losses, or the delays, of the log at ``path``."""
        for field, value in vars(self).items():
            if value is not None and not isinstance(value, str) and field not in ("window", "scale"):
                raise ValueError(f"{field} = {value!r} is not a text")
        options: dict[str, Any] = {name: value for name, value in vars(self).items() if name != "file"}
        log = load_log(path, **options)
        return log.losses if axis == "losses" else log.delays


def read_numbers(path: Path) -> np.ndarray:
    """The array in a ``.npy`` or ``.csv`` file; a header that claims more than the file holds is an error."""
    if path.suffix == ".csv":
        return np.loadtxt(path, delimiter=",")
    return np.array(np.load(path, mmap_mode="r", allow_pickle=False))  # mapped: limits the array to the size of the file
