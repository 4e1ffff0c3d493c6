"""Compare the gradient of a game with classes of the user's own with paired differences, once for each class and its code."""

import dataclasses
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandit._core.display import plus_minus
from jaxbandit._core.fields import field_values
from jaxbandit.gradients.gradient import Gradient
from jaxbandit.gradients.numbers import Parameter
from jaxbandit.gradients.probe import UnreadableFloor

ROUNDS, RUNS = 500, 512  # of the sample, at most
MOST_NUMBERS = 32  # paired differences take two simulations for each
TOLERANCE, ERRORS = 0.1, 4  # the two may differ by this part of the larger one, beside this many standard errors

_found: dict[Any, dict[tuple[str, str], str]] = {}  # code and estimator -> for each number the disagreement, or ""


def user_classes(*parts: Any) -> Iterator[type]:
    """The classes of these objects, and of those they are made of, that are not of this package."""
    for part in parts:
        if not _is_ours(type(part)):
            yield type(part)
        yield from user_classes(*(value for value in field_values(part).values() if dataclasses.is_dataclass(value)))


def _is_ours(cls: type) -> bool:
    return f"{cls.__module__}.".startswith("jaxbandit.")


def disagreements(
    parts: Sequence[Any], numbers: Sequence[Parameter], estimator: str, gradient: Callable[[Any, list[Parameter]], Gradient]
) -> dict[Parameter, str]:
    """The numbers in whose derivative an estimator disagrees with paired differences, each with a description.

    ``gradient(estimator, numbers)`` samples a gradient. Nothing is sampled for the package's own classes, for code that has been
    compared before, or for more than 32 numbers.
    """
    classes = dict.fromkeys(user_classes(*parts))
    if not classes:
        return {}
    known = _found.setdefault((tuple((cls, _code(cls)) for cls in classes), estimator), {})
    few, size = [], 0
    for number in numbers:
        size += number.value.size
        if size <= MOST_NUMBERS and (number.part, number.name) not in known:
            few.append(number)
    if few:
        known.update(_compared(few, estimator, gradient))
    found = {number: known.get((number.part, number.name), "") for number in numbers}
    return {number: clause for number, clause in found.items() if clause}


def _code(cls: type) -> tuple[Any, ...]:
    """The code of the methods of a class and of its bases; equal for equal instructions and constants."""
    members = [one for owner in cls.__mro__ if not _is_ours(owner) for one in vars(owner).values()]
    functions = [one.fget if isinstance(one, property) else one for one in members]
    return tuple(one.__code__ for one in functions if isinstance(one, types.FunctionType))


def _compared(numbers: list[Parameter], estimator: str, gradient: Callable[[Any, list[Parameter]], Gradient]) -> dict:
    try:
        used = gradient(estimator, numbers)
    except UnreadableFloor as error:
        return {(number.part, number.name): str(error) for number in numbers}
    paired = gradient("paired", numbers)
    found = {}
    for number in numbers:
        (slope, spread), (other, other_spread) = (_slope(one, number) for one in (used, paired))
        allowed = ERRORS * np.hypot(spread, other_spread) + TOLERANCE * np.maximum(np.abs(slope), np.abs(other))
        wrong = np.ravel(np.isfinite(other) & ~(np.abs(slope - other) <= allowed))
        clause = ""
        if wrong.any():
            at = int(wrong.argmax())
            sides = (plus_minus(*(float(np.ravel(one)[at]) for one in pair)) for pair in ((slope, spread), (other, other_spread)))
            clause = "disagrees with paired differences on a sample in {}: {} and {}".format(number.name, *sides)
        found[number.part, number.name] = clause
    return found


def _slope(gradient: Gradient, number: Parameter) -> tuple[np.ndarray, np.ndarray]:
    def leaf(tree: Any) -> np.ndarray:
        part = tree[number.part] if isinstance(tree, dict) else tree
        return np.asarray(jax.tree.leaves(part)[number.place], np.float64)

    return leaf(gradient.gradient), leaf(gradient.error)
