"""The result of a gradient estimation, and the numbers of a learner by name."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._core.display import plus_minus, short, table
from jaxbandit._core.fields import PyTree


@dataclasses.dataclass(frozen=True, eq=False)
class Gradient:
    """Expected final regret and its derivative, each with its standard error over runs."""

    value: float
    value_error: float
    gradient: Any  # shaped like the learner or model, in its own coordinates, or a dict of them; 0 where not requested
    error: Any  # shaped alike
    estimator: str  # the one used
    note: str = ""  # why it is not the requested one, or a caution

    def __repr__(self) -> str:
        slopes = ", ".join(f"{name} {value}" for name, value in self._slopes())
        described = f"by {slopes}" if slopes else "all derivatives are 0"
        return f"Gradient(regret {plus_minus(self.value, self.value_error)}; {described}; {self.estimator})"

    def _repr_html_(self) -> str:
        rows = [("regret", plus_minus(self.value, self.value_error)), *((f"d/d {name}", text) for name, text in self._slopes())]
        return table("Gradient", [*rows, ("estimator", self.estimator)])

    def _slopes(self) -> list[tuple[str, str]]:
        """Each number of the learner and its derivative; arrays by their shape."""
        errors = named_leaves(self.error)
        return [
            (name, plus_minus(float(leaf), float(errors[name])) if np.ndim(leaf) == 0 else short(leaf))
            for name, leaf in named_leaves(self.gradient).items()
            if np.any(leaf) or np.any(errors[name])
        ]


def named_leaves(learner: PyTree) -> dict[str, jax.Array]:
    """The leaves that are not whole numbers, by name."""
    paths = jax.tree_util.tree_flatten_with_path(learner)[0]
    named = {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in paths}
    return {name: leaf for name, leaf in named.items() if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)}
