"""What advice says: who loses how much in which world, with intervals, and that in three sentences."""

import dataclasses
import os
from pathlib import Path

import numpy as np

from jaxbandit.advice.candidates import EVEN
from jaxbandit.advice.report import TITLE, write_report
from jaxbandit.advice.worlds import AS_LOGGED, World
from jaxbandit.display import interval, plus_minus
from jaxbandit.logs import Log
from jaxbandit.statistics import Estimate, holm, paired_test, student_quantile

LEVEL = 0.05  # below which two learners are told apart, after Holm's correction
UNLUCKY = 0.95
FEW = 30  # rows of an arm: with fewer, the 95 % interval of its rate is up to 0.36 wide and more

Interval = tuple[float, float, float]  # a value, and the ends of its 95 % interval


@dataclasses.dataclass(frozen=True)
class Standing:
    """One learner in one world; what is lost is counted against the best arm in hindsight, over all rounds."""

    label: str
    lost: Interval  # mean over runs
    share: Interval  # the same in per cent of what the best arm alone would bring
    unlucky: Interval  # what one run in twenty exceeds
    difference: float  # to the first of this world, run by run
    half: float  # of the 95 % interval of that
    p: float  # that the difference is 0, after Holm's correction for the number of learners

    @property
    def tied(self) -> bool:
        """Whether it is not told apart from the first."""
        return self.p >= LEVEL


@dataclasses.dataclass(frozen=True, eq=False)
class Advice:
    """What :func:`jaxbandit.advise` returns: print it, or :meth:`write` it as a page."""

    log: Log
    rounds: int
    runs: int
    seed: int
    worlds: list[World]  # the first is the log as it is
    constants: dict[str, str]  # label -> the constants that were chosen, empty: its own
    tried: dict[str, list[str]]  # label -> the constants that were tried
    left_out: dict[str, str]  # learner -> why it was not tried
    lost: dict[str, dict[str, np.ndarray]]  # world -> label -> [runs]
    curves: dict[str, Estimate]  # label -> what is lost over the rounds, as logged
    as_chosen: Interval  # what would be lost by arms drawn as often as the log has them

    @property
    def unit(self) -> str:
        """What is lost, in a word."""
        return "conversions" if np.isin(self.log.rows.losses, (0.0, 1.0)).all() else "reward"

    def name(self, label: str) -> str:
        """A learner with its constants, as it is called in all tables."""
        return f"{label} ({self.constants[label]})" if self.constants[label] else label

    def ranking(self, world: str = AS_LOGGED) -> list[Standing]:
        """All learners in one world, the one that loses least first."""
        lost, best = self.lost[world], next(one.best for one in self.worlds if one.name == world)
        order = sorted(lost, key=lambda label: lost[label].mean())
        pairs = [paired_test(lost[label] - lost[order[0]]) for label in order]
        adjusted = [1.0, *holm([p for *_, p in pairs[1:]])]
        return [
            Standing(
                label,
                mean_interval(lost[label]),
                mean_interval(100 * lost[label] / best),
                quantile_interval(lost[label], UNLUCKY),
                difference,
                half,
                float(p),
            )
            for label, (difference, half, _), p in zip(order, pairs, adjusted, strict=True)
        ]

    @property
    def recommended(self) -> str | None:
        """The label of the learner that loses least as logged; None if it is not told apart from an even split."""
        first, *others = self.ranking()
        even = next((one for one in others if one.label == EVEN), first)
        return None if even.tied else first.label

    def summary(self) -> list[str]:
        """Three sentences: what to take, what comes next to it, and when something else is better; a fourth if arms have few rows."""
        ranking = self.ranking()
        first, even = ranking[0], next(one for one in ranking if one.label == EVEN)
        if self.recommended is None:
            return [
                f"No learner is recommended: within {self.rounds:,} decisions none is told apart from an even split, which loses "
                f"{interval(*even.lost)} {self.unit} against the best arm.",
                f"The log leaves the rates too open, or feedback comes too late to be used: half of the plays of the log without a "
                f"conversion are known only {self.log.window_rounds:,.0f} decisions later or more.",
                "More rows for each arm, a longer horizon (rounds=) or a shorter window may change that.",
                *self._few(),
            ]
        return [
            f"Take {self.name(first.label)}: in {self.rounds:,} decisions it loses {interval(*first.lost)} {self.unit} against the "
            f"best arm alone, {interval(*first.share)} % of what that would bring; an even split loses {interval(*even.lost)}, and "
            f"one run in twenty of {first.label} more than {interval(*first.unlucky)}.",
            self._next(ranking),
            self._elsewhere(first.label),
            *self._few(),
        ]

    def _few(self) -> list[str]:
        rare = int(self.log.counts.argmin())
        if self.log.counts[rare] >= FEW:
            return []
        return [
            f"Of {self.log.arms[rare]!r} the log knows the outcome of {self.log.counts[rare]} rows only: its rates in these runs are "
            "guessed more than measured."
        ]

    def _next(self, ranking: list[Standing]) -> str:
        tied = [one for one in ranking[1:] if one.tied]
        if tied:
            told = ", ".join(f"{self.name(one.label)} ({plus_minus(one.difference, one.half)} more)" for one in tied)
            return f"Not told apart from it over {self.runs} runs: {told}."
        second = ranking[1]
        return f"The next is {self.name(second.label)}, which loses {plus_minus(second.difference, second.half)} more."

    def _elsewhere(self, label: str) -> str:
        """How the recommended learner stands in the other worlds."""
        stays, falls = [], []
        for world in self.worlds[1:]:
            ranking = self.ranking(world.name)
            mine = next(one for one in ranking if one.label == label)
            if mine.tied:
                stays.append(f"“{world.name}”")
            else:
                more = plus_minus(mine.difference, mine.half)
                falls.append(f"under “{world.name}” {self.name(ranking[0].label)} loses {more} less than it")
        if not falls:
            return f"Nothing is told apart as better than it under {_listed(stays)} either."
        return f"{_listed(falls)}{f'; it stays first, or tied with the first, under {_listed(stays)}' if stays else ''}.".capitalize()

    def write(self, path: str | os.PathLike, title: str = TITLE) -> Path:
        """Write all of it as one HTML file that needs no network; ``title`` is its heading. Needs the extra ``jaxbandit[plot]``."""
        return write_report(self, path, title)

    def __str__(self) -> str:
        ranking = self.ranking()
        width = max(len(self.name(one.label)) for one in ranking)
        lines = [*self.summary(), "", f"{'':{width}}  {f'lost {self.unit}':>24}  {'1 run in 20 loses more than':>28}"]
        for one in ranking:
            lines.append(f"{self.name(one.label):{width}}  {interval(*one.lost):>24}  {interval(*one.unlucky):>28}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        first = self.ranking()[0]
        if self.recommended is None:
            return f"Advice(none: no learner is told apart from an even split; {self.runs} runs × {self.rounds:,} rounds)"
        lost = interval(*first.lost)
        return f"Advice({self.name(first.label)}: {lost} {self.unit} lost; {self.runs} runs × {self.rounds:,} rounds)"


def mean_interval(values: np.ndarray) -> Interval:
    """The mean of ``values [runs]`` with its 95 % interval by Student's t."""
    mean, half = float(values.mean()), student_quantile(len(values) - 1) * float(values.std(ddof=1)) / np.sqrt(len(values))
    return mean, mean - half, mean + half


def quantile_interval(values: np.ndarray, level: float) -> Interval:
    """A quantile of ``values [runs]`` with its 95 % interval: the order statistics that a binomial count lies between."""
    count, ordered = len(values), np.sort(values)
    half = 1.96 * np.sqrt(count * level * (1 - level))
    low, high = np.clip([np.floor(count * level - half), np.ceil(count * level + half)], 0, count - 1).astype(int)
    return float(np.quantile(ordered, level)), float(ordered[low]), float(ordered[high])


def _listed(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
