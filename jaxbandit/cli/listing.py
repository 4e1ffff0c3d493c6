"""``jaxbandit list``: the learners, loss models and delay models that specs and options may name."""

import dataclasses
import re
from typing import Any, Literal

from jaxbandit.sweeps.spec import CATALOGUE


def list(kind: Literal["learners", "losses", "delays"], /) -> None:
    """Print name, class, summary and required inputs of all learners, loss models or delay models.

    Example: jaxbandit list learners

    Parameters
    ----------
    kind
        Which of the three to list.
    """
    rows = [(name, cls.__name__, required(cls), summary(cls)) for name, cls in CATALOGUE[kind].items()]
    rows = [("name", "class", "required inputs", "summary"), *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print(*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3], sep="  ")


def required(cls: type[Any]) -> str:
    """The fields of a class that must be given, such as ``means or rewards``."""
    names = []
    for field in dataclasses.fields(cls):
        if field.metadata.get("or"):
            names.append(f"{field.name} or {field.metadata['or']}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            names.append(field.name)
    return ", ".join(names) or "none"


def summary(cls: type[Any]) -> str:
    """The first sentence of the docstring, without markup."""
    text = " ".join((cls.__doc__ or "").strip().split("\n\n")[0].split())
    plain = re.sub(r":\w+:`([^`]*)`|``([^`]*)``", lambda found: found[1] or found[2], text)
    return re.split(r"(?<=\.) (?=[A-Z])", plain)[0]
