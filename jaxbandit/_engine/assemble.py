"""From the final state of some runs to a :class:`jaxbandit.Result`."""

from typing import Any

import jax
import numpy as np

from jaxbandit._core.projection import Warm
from jaxbandit._engine.game import Records, State
from jaxbandit.results.result import Result


def assemble(recorded: np.ndarray, records: Records, state: State, **about: Any) -> Result:
    """A Result of the ``records`` and the final ``state`` of some runs, arrays of NumPy.

    ``about`` are the fields per_run, first_run, identity and program.
    """
    runs = records.regret.shape[-1]
    warm = [node for node in jax.tree.leaves(state, is_leaf=_is_warm) if _is_warm(node)]

    def for_each_run(value: Any) -> np.ndarray:
        return np.broadcast_to(value, (runs,)).copy()

    pending: Any = state.pending
    fields: dict[str, Any] = {"regret": records.regret, "probabilities": records.probabilities, "measured": records.measured}
    return Result(
        rounds=np.asarray(recorded, np.int64),
        outstanding_max=for_each_run(pending.outstanding_max),
        total_delay=for_each_run(pending.total_outstanding.exact()),
        lost=for_each_run(pending.lost),
        residuals=np.vstack([np.zeros(runs), *(node.residual.reshape(-1, runs) for node in warm)]).max(0),
        state=jax.tree.leaves(state),
        **fields,
        **about,
    )


def _is_warm(node: Any) -> bool:
    return isinstance(node, Warm)
