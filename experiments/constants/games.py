"""The games of the table of constants: those of its grid, and others that it is tried on."""

import dataclasses
import itertools
from typing import Any

import jaxbandit as jb
from jaxbandit.cli.map import TakingTurns

ARMS, DELAYS, HORIZONS = (2, 4, 10), (4, 16, 64), (1000, 3000, 10_000)
GAP = 0.2
REGIMES = ("stochastic", "moving together", "in step with the delay")
ANY = "any of the three"  # the mean of their regrets counts


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
    def losses(self) -> list[Any]:
        """The law of the regime, or all three."""
        laws = [
            jb.losses.Bernoulli([0.5 - self.gap] + [0.5] * (self.arms - 1)),  # one arm is better by the gap
            jb.losses.StochasticallyConstrained(self.gap, arms=self.arms),  # means move, the gap does not
            TakingTurns(self.delay, arms=self.arms),  # two arms take turns every 2d rounds; the gap has no part in it
        ]
        return laws if self.regime == ANY else [laws[REGIMES.index(self.regime)]]


def games(arms: tuple[int, ...], delays: tuple[int, ...], regimes: tuple[str, ...]) -> list[Game]:
    """All of them; two arms that take turns are left out: there playing uniformly has no regret."""
    every = (Game(regime, k, d) for k, d, regime in itertools.product(arms, delays, regimes))
    return [game for game in every if game.arms > 2 or game.regime in REGIMES[:2]]


@dataclasses.dataclass(frozen=True)
class Cell:
    """A game and its horizon."""

    game: Game
    rounds: int

    def __str__(self) -> str:
        return f"{self.game}, T={self.rounds}"


def cells(arms: tuple[int, ...], delays: tuple[int, ...], horizons: tuple[int, ...]) -> list[Cell]:
    return [Cell(game, rounds) for game in games(arms, delays, (*REGIMES, ANY)) for rounds in horizons]


# What the table is tried on.
TRIALS = {
    "between the points of the grid": [*cells((3, 6), (8,), (1700,)), *cells((3, 6), (32,), (5500,))],
    "points of the grid, fresh keys": [*cells((4, 10), (16,), (3000,)), *cells((2,), DELAYS, (3000,))],
    "another gap": [Cell(Game(regime, 4, 16, gap), 3000) for gap in (0.1, 0.35) for regime in REGIMES[:2]],
}
