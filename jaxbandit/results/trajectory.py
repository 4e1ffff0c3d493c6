"""What single runs did, round by round: the outcome of ``measure=[jb.measure.Trajectory(...)]``."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.core
import jax.numpy as jnp
import numpy as np

from jaxbandit._core.fields import pytree_dataclass, show
from jaxbandit._io.optional import need
from jaxbandit.delays import NEVER

FIELDS = ("arm", "loss", "delay", "outstanding", "probabilities")  # with rounds first and runs last


@pytree_dataclass
class Trajectories:
    """Actions, losses and delays of some runs in some rounds, as ``result.trajectory`` and ``jb.rollout(...).trajectory``.

    R is the number of rounds, S that of runs, K that of arms. A rollout of a single run has no axis S.

    Attributes:
      rounds: ``[R]``, the rounds t, from 1.
      runs: ``[S]``, the ids of the runs.
      arm: ``[R, S]`` int32, the arm :math:`I_t` of the round, from 0 to K - 1.
      loss: ``[R, S]``, its loss.
      delay: ``[R, S]`` int32, the delay :math:`d_t`; :data:`jaxbandit.delays.NEVER` if the feedback never arrives.
      outstanding: ``[R, S]`` int32, :math:`\\sigma_t`, the outstanding observations at the start of the round.
      probabilities: ``[R, K, S]``, :math:`x_t`.

    >>> import jaxbandit as jb
    >>> result = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.0, 1.0]), jb.delays.Fixed(5), rounds=100, runs=64, seed=0,
    ...                      measure=[jb.measure.Trajectory(runs=2)])
    >>> result.trajectory
    Trajectories(100 rounds × 2 runs, 2 arms)
    >>> result.trajectory.arrival[:3, 0]  # the feedback of round 1 arrives at the end of round 6
    array([6, 7, 8])
    """

    rounds: Any
    runs: Any
    arm: Any
    loss: Any
    delay: Any
    outstanding: Any
    probabilities: Any

    def __repr__(self) -> str:
        runs = "1 run" if np.size(self.runs) == 1 else f"{np.size(self.runs)} runs"
        return f"Trajectories({np.size(self.rounds):,} rounds × {runs}, {np.shape(self.probabilities)[1]} arms)"

    @property
    def arrival(self) -> Any:
        """``[R, S]`` the round at whose end the feedback arrives, :math:`t + d_t`; NEVER if it never arrives."""
        rounds = self.rounds.reshape(-1, *[1] * (self.delay.ndim - 1))
        where = np.where if isinstance(self.delay, np.ndarray) else jnp.where
        return where(self.delay == NEVER, NEVER, rounds + where(self.delay == NEVER, 0, self.delay))

    def take_runs(self, ids: Sequence[int]) -> "Trajectories":
        """The trajectories of the runs with these ids."""
        missing = sorted(set(map(int, ids)) - set(map(int, self.runs)))
        if missing:
            raise ValueError(
                f"take_runs({show(list(ids))}): there is no trajectory of run {missing[0]}; there are {show(self.runs)}"
            )
        places = [int(np.flatnonzero(self.runs == one)[0]) for one in ids]
        arrays = {name: np.ascontiguousarray(vars(self)[name][..., places]) for name in ("runs", *FIELDS)}
        return dataclasses.replace(self, **arrays)

    @classmethod
    def concat(cls, parts: "Sequence[Trajectories]", axis: int) -> "Trajectories":
        """Trajectories of later rounds of the same runs (``axis=0``), or of further runs in the same rounds (``axis=-1``), as one."""
        same, along = ("runs", "rounds") if axis == 0 else ("rounds", "runs")
        if not all(np.array_equal(vars(one)[same], vars(parts[0])[same]) for one in parts):
            raise ValueError(f"trajectories of different {same} cannot be joined; use the same measure=[Trajectory({same}=…)]")
        joined = {name: np.concatenate([vars(one)[name] for one in parts], axis) for name in (along, *FIELDS)}
        return dataclasses.replace(parts[0], **joined)

    def _two_axes(self) -> dict[str, np.ndarray]:
        """All arrays with an axis of runs, on the host."""
        if isinstance(self.arm, jax.core.Tracer) or np.ndim(self.arm) > 2:
            raise ValueError(
                f"trajectory of shape {np.shape(self.arm)}: a table needs numbers of one rollout; take one element of each array first"
            )
        arrays = {
            name: np.asarray(array)
            for name, array in {**vars(self), "arrival": self.arrival}.items()
            if name not in ("rounds", "runs")
        }
        return {name: array if np.ndim(self.arm) == 2 else array[..., None] for name, array in arrays.items()}

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` with a row for each round and run. Needs the extra ``jaxbandit[data]``.

        Columns ``round``, ``run``, ``arm`` (from 0), ``loss``, ``delay``, ``arrival`` (both missing where the feedback never
        arrives), ``outstanding``, and ``probability_0``, ``probability_1``, … by arm.
        """
        pandas, arrays = need("pandas", "data", "trajectory.to_pandas"), self._two_axes()
        rounds, runs = np.meshgrid(np.asarray(self.rounds), np.atleast_1d(self.runs), indexing="ij")
        never = (arrays["delay"] == NEVER).ravel()

        def or_missing(name: str) -> Any:
            return pandas.arrays.IntegerArray(arrays[name].ravel().astype(np.int64), never.copy())

        columns = {"round": rounds.ravel(), "run": runs.ravel(), "arm": arrays["arm"].ravel(), "loss": arrays["loss"].ravel()}
        columns |= {"delay": or_missing("delay"), "arrival": or_missing("arrival"), "outstanding": arrays["outstanding"].ravel()}
        x = arrays["probabilities"]
        return pandas.DataFrame(columns | {f"probability_{arm}": x[:, arm].ravel() for arm in range(x.shape[1])})

    def to_xarray(self) -> Any:
        """An ``xarray.Dataset`` with dimensions ``round``, ``run`` and ``arm``; delay and arrival are NaN where feedback never arrives.

        Needs the extra ``jaxbandit[data]``.
        """
        xarray, arrays = need("xarray", "data", "trajectory.to_xarray"), self._two_axes()
        x, never = arrays.pop("probabilities"), arrays["delay"] == NEVER
        for name in ("delay", "arrival"):
            arrays[name] = np.where(never, np.nan, arrays[name].astype(np.float64))
        arrays["played"] = arrays.pop("arm")  # a variable cannot be named as a dimension
        data: dict[str, Any] = {name: (("round", "run"), array) for name, array in arrays.items()}
        data["probability"] = (("round", "arm", "run"), x)
        return xarray.Dataset(
            data, {"round": np.asarray(self.rounds), "run": np.atleast_1d(self.runs), "arm": np.arange(x.shape[1])}
        )
