"""The result of a tuning."""

import dataclasses
import math
from typing import Any

import numpy as np

from jaxbandit._core.display import plus_minus, sparkline, table
from jaxbandit.gradients.gradient import named_leaves

Slopes = dict[str, tuple[Any, Any]]  # name -> derivative in its free numbers, standard error


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """Final regret on runs that the tuning did not use."""

    value: float  # of the goal: mean over tasks, that of the worst, or of the function
    error: float  # its standard error
    tasks: np.ndarray  # [tasks] regret of each, losses by delays
    errors: np.ndarray  # [tasks]

    def __repr__(self) -> str:
        return f"Outcome({plus_minus(self.value, self.error)} over {len(self.tasks)} task{'s' if len(self.tasks) > 1 else ''})"


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """The gradient in the free numbers at one point of the path, twice: as the tuning used it, and by paired differences."""

    used: Slopes
    paired: Slopes
    agrees: bool | None  # all within 4 standard errors and 10%; None: the runs are too few to know the errors


@dataclasses.dataclass(frozen=True, eq=False)
class Audit:
    """Comparisons of the gradient with paired differences at the start, in the middle and at the end of the path."""

    points: dict[str, Comparison]  # "start", "middle", "end"

    @property
    def agrees(self) -> bool | None:
        """False if any comparison disagrees; None if none does and one of them has too few runs."""
        found = [one.agrees for one in self.points.values()]
        return False if False in found else None if None in found else True


@dataclasses.dataclass(frozen=True, eq=False)
class Tuned:
    """The result of :func:`jaxbandit.tune`."""

    learner: Any
    path: dict[str, np.ndarray]  # name -> [steps + 1, ...] values along the path; "regret" and "error" [steps]
    before: Outcome
    after: Outcome
    audit: Audit | None

    @property
    def worse(self) -> bool:
        """Whether the regret after tuning is higher than before, by more than four standard errors."""
        return self.after.value - self.before.value > 4 * math.hypot(self.before.error, self.after.error)

    def __repr__(self) -> str:
        before, after = (plus_minus(one.value, one.error) for one in (self.before, self.after))
        worse = " (WORSE)" if self.worse else ""
        return f"Tuned(regret {before} → {after}{worse}; {', '.join(f'{name} {text}' for name, text in self._moves('→'))})"

    def _repr_html_(self) -> str:
        before, after = (plus_minus(one.value, one.error) for one in (self.before, self.after))
        steps = self.path["regret"]
        return table(
            "Tuned",
            [("regret", f"{before} → {after}{' (worse)' if self.worse else ''}"), *self._moves("→")],
            sparkline(np.arange(len(steps)), steps),
        )

    def _moves(self, arrow: str) -> list[tuple[str, str]]:
        return [(name, f"{_short(self.path[name][0])} {arrow} {_short(value)}") for name, value in self.values().items()]

    def __str__(self) -> str:
        values = ", ".join(f"{name} {text}" for name, text in self._moves("->"))
        before, after = self.before, self.after
        lines = [f"regret {before.value:.4g} ± {before.error:.2g} -> {after.value:.4g} ± {after.error:.2g}; {values}"]
        if self.worse:
            lines.append("WARNING: the regret after tuning is significantly higher than before")
        if self.audit is not None:
            verdict = {True: "agrees", False: "DISAGREES", None: "undecided: too few runs"}[self.audit.agrees]
            where = ", ".join(place for place, one in self.audit.points.items() if one.agrees is False)
            lines.append(f"audit by paired differences: {verdict}{f' ({where})' if where else ''}")
        return "\n".join(lines)

    def values(self) -> dict[str, Any]:
        """The tuned hyperparameters by name: a number, or an array of them."""
        known = named_leaves(self.learner)
        tuned = {name: np.asarray(known[name], np.float64) for name in self.path if name not in ("regret", "error")}
        return {name: value if value.ndim else float(value) for name, value in tuned.items()}


def _short(value: Any) -> str:
    """A number, or the first and last of many."""
    flat = np.ravel(value)
    if flat.size == 1:
        return f"{flat[0]:.3g}"
    return f"[{', '.join(f'{one:.3g}' for one in flat)}]" if flat.size <= 3 else f"[{flat[0]:.3g} … {flat[-1]:.3g}]"
