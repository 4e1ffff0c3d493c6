"""Short texts that distinguish the points of an axis, used in labels."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxbandit._core.fields import show

SIZES = ("bound", "long_waits")  # fields of delay models that follow from others, unless a grid varies them


def is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def class_name(name: str) -> str:
    """The name of a user-defined class without its module.

    >>> class_name("__main__:Weekend"), class_name("bobw")
    ('Weekend', 'bobw')
    """
    return name.rpartition(":")[2].rpartition(".")[2]


def short_text(value: object) -> str:
    if isinstance(value, Mapping):
        return str(value.get("name", value.get("file", "…")))
    if value is None:
        return "none"
    if isinstance(value, list | tuple | np.ndarray):
        some = value if len(value) <= 6 else value[:3]
        return f"[{', '.join(map(short_text, some))}{f', … {len(value)}' if len(value) > 6 else ''}]"
    return f"{value:g}" if is_number(value) else show(value).strip("'")


def distinct_texts(values: Sequence[Any]) -> list[str]:
    """Short texts for the values of a grid, longer ones where two would read the same."""
    texts = [short_text(value) for value in values]
    if len(set(texts)) < len(texts):
        texts = [repr(value) if is_number(value) else text for value, text in zip(values, texts, strict=True)]
    counts = collections.Counter(texts)
    return [f"{text} [{index}]" if counts[text] > 1 else text for index, text in enumerate(texts)]


def distinct_by_fields(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """`` delay=10``, `` delay=20``: the fields in which points differ; sizes that follow from others only if nothing else does."""
    fields = dict.fromkeys(field for point in points for field in point if field != "name")
    differ = [field for field in fields if len({repr(point.get(field)) for point in points}) > 1]
    differ = [field for field in differ if field not in SIZES] or differ
    words = ["".join(f" {field}={short_text(point.get(field))}" for field in differ) for point in points]
    values = [repr([point.get(field) for field in differ]) for point in points]
    described, same = collections.Counter(words), collections.Counter(values)
    return [
        word if described[word] == same[value] else f"{word} [{number}]"  # values too long to be shown in full
        for number, (word, value) in enumerate(zip(words, values, strict=True))
    ]
