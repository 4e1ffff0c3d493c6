"""Checks of the arguments of an agent: each error names the argument, its value and a right one."""

import datetime
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandit._core.fields import is_numeric, show

MOST_ARMS = 2**23  # a number of 23 random bits draws the arm in float32: of more arms some could never be drawn


def check_arms(arms: object) -> list[str] | None:
    """The names of the arms, or None if only their number is given."""
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool) and arms >= 1:
        if arms > MOST_ARMS:
            raise ValueError(f"arms={arms}: an agent has at most 2**23 arms; the random number of a decision has 23 bits")
        return None
    names = list(arms) if isinstance(arms, Sequence) and not isinstance(arms, str) else []
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"arms={show(arms)}: give how many arms there are, 1 or more, or a list of their names, each once")
    return names


def check_losses(loss: Any, reward: Any) -> np.ndarray:
    """The losses, ``[]`` or ``[n]``."""
    if (loss is None) == (reward is None):
        given = "neither loss nor reward is given" if loss is None else "both loss and reward are given"
        raise ValueError(f"observe(): {given}; give one of the two")
    name, value = ("loss", loss) if reward is None else ("reward", reward)
    array = np.asarray(value) if is_numeric(value) else np.array(np.nan)
    if array.dtype.kind == "b" and array.size:
        raise ValueError(
            f"observe({name}={show(value)}): a {name} is a number between 0 and 1, not True or False; for a success give reward=1.0"
        )
    if array.ndim > 1 or not ((array >= 0) & (array <= 1)).all():
        raise ValueError(f"observe({name}={show(value)}): a {name} is a number between 0 and 1")
    return array if reward is None else 1 - array.astype(np.float64)


def check_path(call: str, path: str | os.PathLike, example: str) -> Path:
    """The path of a file on disk; ``call`` is the method that it was given to."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{call}({show(path)}): path is the name of a file, such as {example!r}")
    text = os.fsdecode(path)
    if not text or "\0" in text:
        fault = "contains a NUL byte" if text else "is empty"
        raise ValueError(f"{call}({show(text)}): the path {fault}; give the name of a file, such as {example!r}")
    return Path(text)


def check_database(path: str | os.PathLike) -> Path:
    """As :func:`check_path`, and not one of the names that SQLite takes for a database in memory."""
    checked = check_path("Agent.open", path, "campaign.db")
    text = os.fsdecode(path)
    if text == ":memory:" or text.lower().startswith("file:"):
        raise ValueError(
            f"Agent.open({text!r}): this is not the name of a file on disk; give one such as 'campaign.db', or use jb.Agent(…) for "
            "an agent in memory"
        )
    return checked


def check_count(count: int | None, key: str | Sequence[str] | None) -> int | None:
    """The number of decisions that a call requests of a single learner; None: one, without arrays."""
    if count is not None and (not isinstance(count, int | np.integer) or isinstance(count, bool) or count < 1):
        raise ValueError(f"act(count={show(count)}): count is a whole number of decisions, 1 or more")
    if key is None or isinstance(key, str):
        if key is not None and count is not None:
            raise ValueError(f"act(key={show(key)}, count={count}): give a list of keys, one for each decision")
        return None if count is None else int(count)
    return len(key) if count is None and isinstance(key, list | tuple) else None if count is None else int(count)


def check_keys(key: str | Sequence[str] | None, size: int | None) -> list[str] | None:
    """The callers' keys of ``size`` decisions; None: one decision."""
    if key is None:
        return None
    keys = [key] if size is None and isinstance(key, str) else list(key) if isinstance(key, list | tuple) else []
    if len(keys) != (1 if size is None else size) or len(set(map(str, keys))) < len(keys):
        raise ValueError(f"act(key={show(key)}): give one text for each of the {size or 1} decisions, all different")
    if not all(isinstance(one, str) and one and "\0" not in one for one in keys):
        raise ValueError(f"act(key={show(key)}): a key is a text that is not empty, such as the id of a request")
    return keys


def check_age(older_than: float | datetime.timedelta) -> float:
    """A length of time in seconds."""
    seconds = older_than.total_seconds() if isinstance(older_than, datetime.timedelta) else older_than
    if not is_numeric(seconds) or np.ndim(seconds) or isinstance(seconds, bool) or not seconds >= 0:
        raise ValueError(f"close_window(older_than={show(older_than)}): give seconds, 0 or more, or a datetime.timedelta")
    return float(seconds)
