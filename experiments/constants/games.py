"""The games of the table of constants: those of its grid, and others that it is tried on."""

import dataclasses
import itertools
import math
from typing import Any

import jaxbandit as jb

ARMS, DELAYS, HORIZONS = (2, 4, 10), (4, 16, 64), (1000, 3000, 10_000)
GAP = 0.2
BENIGN = ("stochastic", "stochastically constrained")
REGIMES = (*BENIGN, "delay-matched switching")


@dataclasses.dataclass(frozen=True)
class Game:
    """A regime with a number of arms and a fixed delay; the regimes are those of docs/choosing.md."""

    regime: str
    arms: int
    delay: int
    gap: float = GAP

    def __str__(self) -> str:
        return f"{self.regime}, K={self.arms}, d={self.delay}, gap={self.gap}"

    @property
    def losses(self) -> Any:
        """The law of the regime."""
        if self.regime == "stochastic":  # one arm is better by the gap
            return jb.losses.Bernoulli([0.5 - self.gap] + [0.5] * (self.arms - 1))
        if self.regime == "stochastically constrained":  # means move, the gap does not
            return jb.losses.StochasticallyConstrained(self.gap, arms=self.arms)
        return jb.losses.DelayMatchedSwitching(self.delay, self.arms)  # has no gap

    @property
    def start(self) -> float:
        """The part of η₀ that no constant lowers: (d/(K^{1/3} log K))²."""
        return (self.delay / (self.arms ** (1 / 3) * math.log(self.arms))) ** 2


def games(arms: tuple[int, ...], delays: tuple[int, ...]) -> list[Game]:
    """All regimes; two arms that take turns are left out: there playing uniformly has no regret."""
    every = (Game(regime, k, d) for k, d, regime in itertools.product(arms, delays, REGIMES))
    return [game for game in every if game.arms > 2 or game.regime in BENIGN]


@dataclasses.dataclass(frozen=True)
class Cell:
    """A game and its horizon."""

    game: Game
    rounds: int

    def __str__(self) -> str:
        return f"{self.game}, T={self.rounds}"


def cells(arms: tuple[int, ...], delays: tuple[int, ...], rounds: int) -> list[Cell]:
    return [Cell(game, rounds) for game in games(arms, delays)]


# What the table is tried on.
TRIALS = {
    "between the points of the grid": [*cells((3, 7), (6,), 2000), *cells((3, 7), (24,), 5000)],
    "points of the grid, fresh keys": [*cells((4, 10), (16,), 3000), *cells((2,), (16,), 3000), *cells((4,), (4,), 3000)],
    "another gap": [Cell(Game("stochastic", 4, 16, gap), 3000) for gap in (0.1, 0.35)],
}
