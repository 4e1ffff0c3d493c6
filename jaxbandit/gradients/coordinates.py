"""Unconstrained coordinates of hyperparameters, in which tuning makes its steps."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._core.fields import canonical, facts, field_values, float_dtype, show
from jaxbandit.gradients.numbers import Parameter, check_names, numbers_of
from jaxbandit.learners.base import LearnerLike

Constraint = Literal["positive", "simplex", "real"]
Free = dict[str, np.ndarray]  # free numbers of each hyperparameter, by name


@dataclasses.dataclass(frozen=True, eq=False)
class Coordinate:
    """A hyperparameter of any shape as a function of as many free numbers.

    ``"positive"``: they are its logarithms. ``"simplex"``: its softmax is taken, so that it stays positive and sums to 1.
    ``"real"``: they are its values. The range that its field declares (``number(low=, high=)``) is kept as well.
    """

    number: Parameter
    constraint: Constraint

    def start(self) -> np.ndarray:
        """The free numbers of the learner's current value."""
        return self._free(self.number.value.astype(np.float64))

    def _free(self, value: Any) -> Any:
        with np.errstate(divide="ignore"):
            return value if self.constraint == "real" else np.log(value)

    def kept(self, free: np.ndarray) -> np.ndarray:
        """The nearest free numbers whose value is in the range that the field declares."""
        if self.constraint == "simplex":
            return free - free.max()  # one number added to all changes nothing
        low = self.number.limits.low if self.constraint == "real" else max(self.number.limits.low, 0.0)
        return np.clip(free, self._free(low), self._free(self.number.limits.high))

    def value(self, free: np.ndarray) -> np.ndarray:
        """The hyperparameter, in the precision of simulations, and within its range."""
        if self.constraint == "simplex":
            weights = np.exp(free - free.max())
            return (weights / weights.sum()).astype(float_dtype())
        value = (free if self.constraint == "real" else np.exp(free)).astype(float_dtype())
        # Rounding may have crossed an end of the range, which is not always a number of this precision, by one step.
        up, down = (np.nextafter(value, np.asarray(end, value.dtype)) for end in (math.inf, -math.inf))
        limits, exact = self.number.limits, value.astype(np.float64)
        below = exact <= limits.low if limits.open_low else exact < limits.low
        return np.where(below, up, np.where(exact > limits.high, down, value))

    def slope(self, gradient: np.ndarray, error: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The derivative in the free numbers and its error; errors of the entries are taken to be independent."""
        if self.constraint == "real":
            return gradient, error
        if self.constraint == "positive":
            return value * gradient, value * error
        turned = value[:, None] * (np.eye(len(value)) - value)  # d value_j / d free_i
        return turned @ gradient, np.sqrt(turned**2 @ error**2)


def coordinates(
    learner: LearnerLike, only: Sequence[str] | None, constraints: Mapping[str, Constraint] | None
) -> dict[str, Coordinate]:
    """The hyperparameters to tune by name: ``only``, or all positive numbers except required inputs, and constrained ones."""
    known = {number.name: number for number in numbers_of("learner", canonical(learner))}
    owner = type(learner).__name__
    check_names(list(known), owner, only)
    constraints = {} if constraints is None else constraints
    if not isinstance(constraints, Mapping):
        raise TypeError(f"constraints={show(constraints)}: give a dict of names, such as {{{next(iter(known))!r}: 'positive'}}")
    for name, constraint in constraints.items():
        if name not in (known if only is None else only):
            raise ValueError(
                f"constraints={show(constraints)}: {name!r} is not among {', '.join(known if only is None else only)}"
            )
        if not (isinstance(constraint, str) and constraint in get_args(Constraint)):
            raise ValueError(f"constraints={{{name!r}: {show(constraint)}}}: a constraint is 'positive', 'simplex' or 'real'")
    if only is None:
        only = [n for n, one in known.items() if n in constraints or (not _is_given(learner, n) and np.all(one.value > 0))]
        if not only:
            raise ValueError(f"learner={owner}(…): it has no positive hyperparameter to tune")
    found = {name: Coordinate(known[name], constraints.get(name, "positive")) for name in only}
    for name, one in found.items():
        _check_start(name, one)
    return found


def _is_given(owner: Any, name: str) -> bool:
    """Whether a number, ``"max_delay"`` or ``"base.max_delay"``, is a required input: a property of the environment."""
    first, _, rest = name.partition(".")
    return first in facts(owner) or (bool(rest) and _is_given(field_values(owner).get(first), rest))


def _check_start(name: str, one: Coordinate) -> None:
    value = one.number.value
    if one.constraint == "positive" and np.any(value <= 0):
        numbers = "not a positive number; start from one" if value.ndim == 0 else "not all positive; start from positive numbers"
        raise ValueError(f"only=[{name!r}]: {name}={show(value)} is {numbers}, or say constraints={{{name!r}: 'real'}}")
    if one.constraint == "simplex" and (
        value.ndim != 1 or value.size < 2 or np.any(value <= 0) or abs(value.sum(dtype=np.float64) - 1) > 1e-3
    ):
        raise ValueError(
            f"constraints={{{name!r}: 'simplex'}}: {name}={show(value)} must start as a list of two or more positive numbers with sum 1"
        )


def at(learner: LearnerLike, which: Mapping[str, Coordinate], free: Free) -> Any:
    """The learner whose hyperparameters have these free numbers; all others stay as they were given."""
    leaves, structure = jax.tree.flatten(learner)
    for name, one in which.items():
        leaves[one.number.place] = jnp.asarray(one.value(free[name]))
    return jax.tree.unflatten(structure, leaves)


def moved(which: Mapping[str, Coordinate], free: Free, moves: Mapping[str, Any]) -> Free:
    """The free numbers after ``moves``, back in range."""
    return {name: one.kept(free[name] + np.asarray(moves[name], np.float64)) for name, one in which.items()}


def mean(which: Mapping[str, Coordinate], frees: Sequence[Free]) -> Free:
    """The mean of several points of the path."""
    return {name: np.mean([free[name] for free in frees], 0) for name in which}
