"""Random loss and delay models.

``choose`` decides the structure of a model (classes, sizes, everything that is compiled), ``rng`` its numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import jaxbandit as jb
from tests.reference import environments

D, L = jb.delays, jb.losses
ROUNDS, BOUND = 60, 16
NEVER = int(D.NEVER)


class Kit(NamedTuple):
    """What a game is made from: ``choose`` decides its structure, ``rng`` its numbers."""

    choose: np.random.Generator
    rng: np.random.Generator
    arms: int
    bound: int = BOUND  # of all delay models

    def one_of(self, options):
        return options[self.choose.integers(len(options))]

    def flag(self) -> bool:
        return bool(self.choose.integers(2))

    def real(self, low: float, high: float) -> float:
        return float(self.rng.uniform(low, high))

    def whole(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))


# ------------------------------------------------------------------------------------------------------------------- losses


def _means(kit: Kit, *shape: int) -> np.ndarray:
    return kit.rng.uniform(0, 1, shape or (kit.arms,))


def _switching(kit: Kit):
    starts = np.concatenate([[1], np.sort(kit.rng.choice(np.arange(2, ROUNDS), 3, replace=False))])
    return L.Switching(_means(kit, 4, kit.arms), starts)


def _corrupted(kit: Kit):
    base = LOSSES[kit.one_of(["bernoulli", "beta", "clipped-normal"])](kit)
    spread = np.ptp(environments.means(base, 1))
    return L.Corrupted(base, spread * (kit.whole(0, 40) + kit.real(0.05, 0.95)), start=kit.whole(1, 20))


def _through_states(kit: Kit):
    states = kit.one_of([2, 4])
    inner = kit.one_of(["bernoulli", "switching", "drifting", "stochastically-constrained", "table", "clipped-normal"])
    return L.IntermediateStates(kit.rng.dirichlet(np.full(states, 0.7), kit.arms), LOSSES[inner](kit._replace(arms=states)))


LOSSES: dict[str, Callable[[Kit], Any]] = {
    "bernoulli": lambda kit: L.Bernoulli(_means(kit)) if kit.flag() else L.Bernoulli(rewards=_means(kit)),
    "beta": lambda kit: L.Beta(_means(kit), kit.rng.uniform(0.2, 5, kit.arms) if kit.flag() else kit.real(0.2, 5)),
    "clipped-normal": lambda kit: L.ClippedNormal(_means(kit), kit.real(0.05, 1)),
    "table": lambda kit: L.Table(_means(kit, ROUNDS, kit.arms)),
    "stochastically-constrained": lambda kit: L.StochasticallyConstrained(kit.real(0, 1), kit.arms, kit.real(1.01, 2.5)),
    "switching": _switching,
    "delay-matched-switching": lambda kit: L.DelayMatchedSwitching(kit.whole(1, 9), kit.arms),
    "drifting": lambda kit: L.Drifting(_means(kit), _means(kit), kit.real(1, 100)),
    "corrupted": _corrupted,
    "intermediate-states": _through_states,
    "zero-inflated": lambda kit: L.ZeroInflated(_means(kit, 2, kit.arms), [1, kit.whole(2, 50)], _means(kit, kit.arms, 3)),
}

# ------------------------------------------------------------------------------------------------------------------- delays


def _uniform_random(kit: Kit, shared: bool):
    low, high = sorted((kit.whole(0, BOUND), kit.whole(0, BOUND)))
    return D.UniformRandom(low, high, bound=kit.bound, shared=shared)


def _recorded(kit: Kit, count: int) -> np.ndarray:
    """``count`` recorded delays, with or without missing feedback, which is part of the structure."""
    delays = kit.rng.integers(0, BOUND + 1, count)
    if kit.flag():
        delays[kit.rng.permutation(count)[: kit.whole(1, count // 3)]] = NEVER
    return delays


def _trace(kit: Kit, outliers: int):
    delays = _recorded(kit, ROUNDS)
    if outliers:
        delays[kit.rng.permutation(ROUNDS)[:outliers]] = kit.rng.integers(BOUND + 1, 2 * ROUNDS, outliers)
    return D.Trace(delays, bound=kit.bound, long_waits=outliers)


def _pieces(kit: Kit):
    return D.CompositeFeedback(kit.rng.dirichlet(np.ones(kit.one_of([1, 2, 4]))))


# Models that may be parts of others, with and without one sequence for all runs.
SIMPLE: dict[str, Callable[[Kit, bool], Any]] = {
    "fixed": lambda kit, shared: D.Fixed(kit.whole(0, BOUND), bound=kit.bound),
    "uniform-random": _uniform_random,
    "geometric": lambda kit, shared: D.Geometric(kit.real(0, 10), bound=kit.bound, shared=shared),
    "poisson": lambda kit, shared: D.Poisson(kit.real(0, 14), bound=kit.bound, shared=shared),
    "pareto": lambda kit, shared: D.Pareto(kit.real(0.3, 3), bound=kit.bound, shared=shared),
    "packet-loss": lambda kit, shared: D.PacketLoss(kit.real(0, 1), kit.whole(0, BOUND), bound=kit.bound, shared=shared),
    "bursts": lambda kit, shared: D.Bursts(kit.whole(1, BOUND + 1), bound=kit.bound),
    "trace": lambda kit, shared: _trace(kit, outliers=0),
    "delay-as-payoff": lambda kit, shared: D.DelayAsPayoff(kit.whole(0, BOUND), bound=kit.bound),
    "empirical": lambda kit, shared: D.Empirical(_recorded(kit, 8), bound=kit.bound, shared=shared),
}


def _part(kit: Kit, depth: int):
    """A part of a composed model: a simple one, or another composed one."""
    kind = kit.choose.integers(4) if depth else 3
    if kind == 0:
        return arm_dependent(kit, depth - 1)
    if kind == 1:
        return loss_dependent(kit, depth - 1)
    return SIMPLE[kit.one_of([*SIMPLE])](kit, False)


def arm_dependent(kit: Kit, depth: int = 0):
    return D.ArmDependent([_part(kit, depth) for _ in range(kit.arms)])


def loss_dependent(kit: Kit, depth: int = 0):
    return D.LossDependent(_part(kit, depth), _part(kit, depth), kit.real(0, 1))


def mixture(kit: Kit):
    return environments.Mixture(kit.real(0.1, 0.9), _part(kit, 1), _part(kit, 1))


DELAYS: dict[str, Callable[[Kit], Any]] = {
    **{name: lambda kit, make=make: make(kit, kit.flag()) for name, make in SIMPLE.items()},
    "outlier": lambda kit: D.Outlier(kit.whole(0, 100), kit.whole(0, BOUND), kit.whole(0, 4), bound=kit.bound, long_waits=4),
    "trace": lambda kit: _trace(kit, outliers=kit.one_of([0, 8])),
    "empirical-by-arm": lambda kit: D.EmpiricalByArm(np.stack([_recorded(kit, 8) for _ in range(kit.arms)]), bound=kit.bound),
    "arm-dependent": arm_dependent,
    "loss-dependent": loss_dependent,
    "pieces": _pieces,  # for learners that only need sums
    "arm-dependent, nested": lambda kit: arm_dependent(kit, 2),
    "loss-dependent, nested": lambda kit: loss_dependent(kit, 2),
    "mixture, dependent": mixture,  # on the arm or the loss, where a part is
}
