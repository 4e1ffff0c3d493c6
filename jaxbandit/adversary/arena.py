"""The simulations of a search: the regret of many tables, of one table, and its gradient in every loss."""

import dataclasses
import functools
import warnings
from typing import Any

import jax
import numpy as np

from jaxbandit._engine.simulation import simulate
from jaxbandit._io.progress import Progress
from jaxbandit.adversary.tables import Tables
from jaxbandit.gradients import regret_gradient
from jaxbandit.gradients.probe import UnreadableFloor
from jaxbandit.learners.base import as_learner, is_importance_weighted
from jaxbandit.losses import Table

TABLES = 64  # of a generation
MOST_NUMBERS = 1 << 26  # losses of all tables of one simulation
SELECTING = 512  # runs over which tables are compared
CLIMBING = 64  # runs of a gradient
MEASURING, SELECTION, SEARCH = range(3)  # purposes of keys


@dataclasses.dataclass
class Arena:
    """A learner under a delay model for T rounds; counts the runs, and takes a new key for each simulation of the search."""

    learner: Any
    delays: Any
    num_arms: int
    rounds: int
    key: jax.Array
    bar: Progress
    runs: int = 0  # simulated so far
    calls: int = 0

    @functools.cached_property
    def has_gradient(self) -> bool:
        """Whether the jump tangent applies: importance-weighted learners, delays that depend neither on the arm nor on the loss."""
        if not is_importance_weighted(as_learner(self.learner)) or not self.delays.oblivious:
            return False
        try:
            self.gradient(np.full((self.rounds, self.num_arms), 0.5, np.float32))
        except UnreadableFloor:  # a class of the user's own
            return False
        return True

    @property
    def group(self) -> int:
        """The number of tables in one simulation; long tables are simulated in smaller groups."""
        return int(np.clip(MOST_NUMBERS // (self.rounds * self.num_arms), 4, TABLES))

    def regrets(self, tables: np.ndarray, each: int) -> np.ndarray:
        """``[N]`` the mean regret of tables ``[T, N, K]`` over ``each`` runs or more, with new keys.

        All simulations have the same shape, so that nothing is compiled again. Fewer tables than a group get more runs each.
        """
        found = []
        for first in range(0, tables.shape[1], self.group):
            some = tables[:, first : first + self.group]
            places = np.arange(self.group) % some.shape[1]
            result = self._simulate(
                Tables(some[:, places], np.repeat(np.arange(self.group), each)), self.group * each, self._new_key()
            )
            means = result.reshape(self.group, each).mean(1)
            found.append(np.bincount(places, means) / np.bincount(places))
        return np.concatenate(found)

    def regret(self, table: np.ndarray, runs: int = SELECTING, purpose: int = SELECTION) -> tuple[float, float]:
        """The mean regret of a table ``[T, K]`` and its standard error; the same keys for all tables of one purpose."""
        found = self._simulate(Table(table), runs, jax.random.fold_in(self.key, purpose)).astype(np.float64)
        return float(found.mean()), float(found.std(ddof=1) / np.sqrt(runs))

    def mean_outstanding(self) -> float:
        """The mean number of outstanding observations: the delay, if no feedback is missing."""
        flat = Table(np.full((self.rounds, self.num_arms), 0.5, np.float32))
        result = simulate(
            self.learner, flat, self.delays, rounds=self.rounds, runs=8, key=self._new_key(), record=1, progress=self.bar
        )
        return float(result.total_delay.mean()) / self.rounds

    def gradient(self, table: np.ndarray) -> np.ndarray:
        """``[T, K]`` the derivative of the expected regret in every loss, by the jump tangent."""
        self.runs += CLIMBING
        with warnings.catch_warnings():
            # A biased or unverified gradient makes the search weaker, not wrong: its result is measured separately.
            warnings.simplefilter("ignore")
            found = regret_gradient(
                self.learner,
                Table(table),
                self.delays,
                rounds=self.rounds,
                runs=CLIMBING,
                key=self._new_key(),
                wrt="losses",
                estimator="jump",
                reverse=True,
                control_variates=False,
                verify=False,
                progress=self.bar,
            )
        return np.nan_to_num(np.asarray(found.gradient.losses, np.float64))

    def _simulate(self, losses: Any, runs: int, key: jax.Array) -> np.ndarray:
        self.runs += runs
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the burn-in or the delays of the learner: repeated for every table
            result = simulate(
                self.learner, losses, self.delays, rounds=self.rounds, runs=runs, key=key, record=1, progress=self.bar
            )
        return result.regret[-1]

    def _new_key(self) -> jax.Array:
        self.calls += 1
        return jax.random.fold_in(self.key, SEARCH + self.calls)
