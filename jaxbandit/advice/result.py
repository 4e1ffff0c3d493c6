"""The result of advice: the regret of each learner in each scenario with its interval, and a summary in a few sentences."""

import dataclasses
import os
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from jaxbandit._core.display import interval, plus_minus
from jaxbandit.advice.candidates import TITLES, UNIFORM
from jaxbandit.advice.report import TITLE, write_report
from jaxbandit.advice.scenarios import AS_LOGGED, REPEATS, Scenario, posterior_draws
from jaxbandit.delays import Empirical
from jaxbandit.logs import Log
from jaxbandit.logs.dependence import duration
from jaxbandit.results.statistics import Estimate, estimate, holm, paired_test, student_quantile

LEVEL = 0.05  # below which two learners are significantly different, after Holm's correction
UPPER_QUANTILE = 0.95
FEW = 30  # rows of an arm: with fewer, the 95% interval of its rate is up to 0.36 wide and more
WORSE, OFTEN = 0.1, 0.05  # a warning if the learner loses so much more than uniform allocation in such a share of the draws

Interval = tuple[float, float, float]  # a value, and the ends of its 95% interval


class Runs(NamedTuple):
    """One learner in one scenario; ``REPEATS`` consecutive runs share a posterior draw."""

    regret: np.ndarray  # [C, runs] in the unit of the log
    best: np.ndarray  # [runs] the reward of the best arm alone

    @property
    def lost(self) -> np.ndarray:
        """The regret after the last round, ``[runs]``."""
        return self.regret[-1]


@dataclasses.dataclass(frozen=True)
class Standing:
    """One learner in one scenario; regret is against the best arm in hindsight, over all rounds."""

    label: str
    lost: Interval  # expected regret: posterior mean and 95% credible interval
    share: Interval  # the same in per cent of the reward of the best arm
    quantile_95: Interval  # the 95th percentile of the regret of a single run
    difference: float  # to the first of this scenario, run by run
    half: float  # of the 95% interval of the mean of that
    p: float  # that the difference is 0, after Holm's correction for the number of learners
    final: bool  # False: it was screened only

    @property
    def tied(self) -> bool:
        """Whether it is not significantly different from the first."""
        return self.p >= LEVEL


@dataclasses.dataclass(frozen=True, eq=False)
class Advice:
    """The result of :func:`jaxbandit.advise`: print it, or :meth:`write` it as a page."""

    log: Log
    rounds: int
    seed: int
    scenarios: list[Scenario]  # the first is the log as it is
    chosen: dict[str, tuple[str, Any]]  # label -> the constants that were chosen as text (empty: its own), and the learner
    tried: dict[str, list[str]]  # label -> the constants that were tried
    left_out: dict[str, str]  # learner -> why it was not simulated
    screened: dict[str, Runs]  # label -> the first stage, as logged
    final: dict[str, dict[str, Runs]]  # scenario -> label -> the last stage
    recorded: np.ndarray  # [C] rounds of the regret curves
    burn_ins: dict[str, float]  # label -> rounds of almost uniform exploration with the constants of its theorem

    @property
    def worlds(self) -> list[Scenario]:
        """The scenarios, by their earlier name."""
        return self.scenarios

    @property
    def lost(self) -> dict[str, dict[str, np.ndarray]]:
        """Scenario -> label -> regret ``[runs]`` of the last stage that the learner reached."""
        first = self.scenarios[0].name
        return {
            scenario.name: {
                label: runs.lost
                for label, runs in {
                    **(self.screened if scenario.name == first else {}),
                    **self.final.get(scenario.name, {}),
                }.items()
            }
            for scenario in self.scenarios
            if scenario.name == first or scenario.name in self.final  # advice that ended early has not simulated all
        }

    @property
    def constants(self) -> dict[str, str]:
        """Label -> the constants that were chosen, empty: its own."""
        return {label: text for label, (text, _) in self.chosen.items()}

    @property
    def unit(self) -> str:
        """The unit of the regret."""
        return "conversions" if self.log.binary else "reward"

    @property
    def runs(self) -> int:
        """The number of runs of the learners in first place."""
        return len(next(iter(self._compared().values())).lost)

    def name(self, label: str) -> str:
        """A learner with its constants, as in all tables."""
        constants, title = self.chosen[label][0], TITLES.get(label, label)
        return f"{title} ({constants})" if constants else title

    def _compared(self, scenario: str = AS_LOGGED) -> dict[str, Runs]:
        """The results of the last stage of a scenario, or of the screening where there are none."""
        return self.final.get(scenario) or (self.screened if scenario == AS_LOGGED else {})

    def ranking(self, scenario: str = AS_LOGGED) -> list[Standing]:
        """The learners in one scenario by their regret; those that were screened only come after the finalists."""
        last = self._compared(scenario)
        found = _standings(last, True)
        if scenario == AS_LOGGED and found:
            first = found[0].label
            rest = {label: one for label, one in self.screened.items() if label not in last}
            found += _standings({first: self.screened[first], **rest}, False, first)[1:] if rest else []
        return found

    @property
    def recommended(self) -> str | None:
        """The learner with the lowest regret as logged; None if not significantly better than the uniform baseline."""
        first, *others = self.ranking()
        uniform = next((one for one in others if one.label == UNIFORM), first)
        return None if uniform.tied else first.label

    def risk(self, label: str) -> float:
        """The share of posterior draws in which a learner loses over 10% more than uniform allocation."""
        compared = self._compared()
        return _risk(compared[label].lost, compared[UNIFORM].lost)

    def differences(self, label: str, other: str) -> np.ndarray:
        """The expected regret of a learner minus that of another in each posterior draw, as logged, ``[draws]``."""
        compared = self._compared()
        return expected_by_draw(compared[label].lost - compared[other].lost)

    def log_share(self, label: str) -> float:
        """The share of the variance of the regret between runs that is due to the posterior; the rest is chance."""
        between, within = _variances(self._compared()[label].lost)
        return between / (between + within) if between + within > 0 else 0.0

    def curve(self, label: str) -> Estimate:
        """The mean regret over the rounds, as logged."""
        runs = self._compared().get(label, self.screened[label])
        return estimate(runs.regret, self.recorded, None)

    def as_chosen(self) -> Interval:
        """The expected regret of arms drawn as often as in the log."""
        means = posterior_draws(self.log, len(self.scenarios[0].best), (self.seed, 1)).means()
        shares = self.log.counts / self.log.counts.sum()
        return credible(self.log.scale * self.rounds * (shares @ means - means.min(0)))

    def summary(self) -> list[str]:
        """Sentences: the recommendation, whether delays differ by arm, its rivals and risks, other scenarios, and cautions."""
        cautions = [f"Caution: {text}." for text in self.log.cautions]
        first, *others = self._recommendation()
        return [first, self.log.dependence.sentence(), *cautions, *others, *self._few()]

    def _recommendation(self) -> list[str]:
        ranking = self.ranking()
        first, uniform = ranking[0], next(one for one in ranking if one.label == UNIFORM)
        if self.recommended is None:
            return [
                f"No learner is recommended: within {self.rounds:,} decisions none is significantly better than uniform allocation, "
                f"which loses {interval(*uniform.lost)} {self.unit} against the best arm.",
                "The log leaves the rates too uncertain, or feedback arrives too late: the median delay of an action without a "
                f"conversion is {np.median(np.asarray(cast(Empirical, self.log.delays.no_conversion).delays)):,.0f} decisions.",
                "More rows for each arm, a longer horizon (rounds=) or a shorter window may change that.",
            ]
        found = [
            f"Use {self.name(first.label)}: in {self.rounds:,} decisions it loses {interval(*first.lost)} {self.unit} against the "
            f"best arm, {interval(*first.share)}% of its reward; uniform allocation loses {interval(*uniform.lost)}.",
            self._next(ranking),
            self._uncertainty(first),
        ]
        risk = self.risk(first.label)
        if risk > OFTEN:
            found.append(
                f"Warning: in {risk:.0%} of the environments that the log leaves possible it loses over {WORSE:.0%} more than uniform "
                "allocation."
            )
        return [*found, *self._elsewhere(first.label)]

    def _uncertainty(self, first: Standing) -> str:
        share = self.log_share(first.label)
        source = "the log leaves rates and delays uncertain" if share >= 0.5 else "of chance in a single campaign"
        cause = "because" if share < 0.5 else "mostly because"
        return (
            f"A single campaign may lose more, {interval(*first.quantile_95)} at the 95th percentile, {cause} {source} "
            f"({max(share, 1 - share):.0%} of the variance)."
        )

    def _few(self) -> list[str]:
        rare = int(self.log.counts.argmin())
        if self.log.counts[rare] >= FEW:
            return []
        return [
            f"The log has {self.log.counts[rare]} rows with a known outcome of {self.log.arms[rare]!r}: its rate is mostly that of the "
            "other arms."
        ]

    def _next(self, ranking: list[Standing]) -> str:
        tied = [one for one in ranking[1:] if one.tied and one.label != UNIFORM]
        if tied:
            listed = ", ".join(f"{self.name(one.label)} ({plus_minus(one.difference, one.half)} more)" for one in tied)
            return f"Not significantly different over {self.runs} runs: {listed}."
        second = ranking[1]
        return f"The next is {self.name(second.label)}, which loses {plus_minus(second.difference, second.half)} more."

    def _elsewhere(self, label: str) -> list[str]:
        """The recommended learner in the other scenarios, as far as they have been simulated."""
        stays, falls = [], []
        for scenario in self.scenarios[1:]:
            ranking = self.ranking(scenario.name)
            mine = next((one for one in ranking if one.label == label), None)
            if mine is not None and mine.tied:
                stays.append(f"“{scenario.name}”")
            elif mine is not None:
                less = plus_minus(mine.difference, mine.half)
                falls.append(f"under “{scenario.name}” {self.name(ranking[0].label)} loses {less} less")
        if not stays and not falls:
            return ["The other scenarios have not been simulated."]
        if not falls:
            return [f"No alternative is significantly better under {_listed(stays)}."]
        text = _listed(falls)
        return [
            f"{text[0].upper()}{text[1:]}{f'; no alternative is significantly better under {_listed(stays)}' if stays else ''}."
        ]

    def code(self) -> str:
        """Five lines of Python that start an agent with the recommended learner."""
        label, log = self.recommended or UNIFORM, self.log
        reward, meaning = "1.0", "when the conversion arrives"
        if not log.binary:
            typical = f"{np.median(log.outcomes.rewards[log.outcomes.converted]) * log.scale:.3g}"
            reward = typical if log.scale == 1 else f"min({typical} / {log.scale:g}, 1)"
            meaning = f"when a reward such as {typical} arrives"
        closing = "agent.observe(agent.act().id, reward=0.0)  # a decision without a conversion"
        if log.window is not None:
            closing = f"agent.close_window({log.window / 1e9:.17g})  # regularly: reward 0 after {duration(log.window)} without a conversion"
        return "\n".join(
            [
                "import jax, jaxbandit as jb",
                f'agent = jb.Agent.open("campaign.db", {_written(self.chosen[label][1])}, {self.log.arms!r}, jax.random.key(0))',
                "ticket = agent.act()  # show ticket.arm",
                f"agent.observe(ticket.id, reward={reward})  # {meaning}",
                closing,
            ]
        )

    def write(self, path: str | os.PathLike, title: str = TITLE) -> Path:
        """Write all of it as one HTML file that needs no network; ``title`` is its heading. Needs the extra ``jaxbandit[plot]``."""
        return write_report(self, path, title)

    def __str__(self) -> str:
        ranking = self.ranking()
        width = max(len(self.name(one.label)) for one in ranking)
        lines = [*self.summary(), "", f"{'':{width}}  {f'{self.unit} lost':>24}  {'95th percentile of a run':>28}"]
        for one in ranking:
            screened = "" if one.final else "  (screened only)"
            lines.append(f"{self.name(one.label):{width}}  {interval(*one.lost):>24}  {interval(*one.quantile_95):>28}{screened}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        first = self.ranking()[0]
        if self.recommended is None:
            return f"Advice(none: no learner is better than uniform allocation; {self.runs} runs × {self.rounds:,} rounds)"
        lost = interval(*first.lost)
        return f"Advice({self.name(first.label)}: {lost} {self.unit} lost; {self.runs} runs × {self.rounds:,} rounds)"


def _standings(runs: dict[str, Runs], final: bool, first: str | None = None) -> list[Standing]:
    """Standings by mean regret; ``first`` stays first whatever its mean."""
    if not runs:
        return []
    order = sorted(runs, key=lambda label: (label != first, runs[label].lost.mean()))
    pairs = [paired_test(_by_draw(runs[label].lost - runs[order[0]].lost)) for label in order]
    adjusted = [1.0, *holm([p for *_, p in pairs[1:]])]
    return [
        Standing(
            label,
            credible(runs[label].lost),
            credible(100 * runs[label].lost / np.maximum(runs[label].best, 1e-300)),  # no reward, no loss: 0%
            quantile_interval(runs[label].lost, UPPER_QUANTILE),
            difference,
            half,
            float(p),
            final,
        )
        for label, (difference, half, _), p in zip(order, pairs, adjusted, strict=True)
    ]


def _by_draw(values: np.ndarray) -> np.ndarray:
    """Means ``[draws]`` of ``values [runs]`` over the runs that share a posterior draw; runs that fill no draw are left out."""
    return values[: len(values) // REPEATS * REPEATS].reshape(-1, REPEATS).mean(1)


def _variances(values: np.ndarray) -> tuple[float, float]:
    """The variance of ``values [runs]`` between posterior draws, and of chance within one."""
    groups = values[: len(values) // REPEATS * REPEATS].reshape(-1, REPEATS)
    within = float(groups.var(1, ddof=1).mean())
    return max(float(groups.mean(1).var(ddof=1)) - within / REPEATS, 0.0), within


def expected_by_draw(values: np.ndarray) -> np.ndarray:
    """The expected value in each posterior draw, ``[draws]``: means over its runs, shrunk towards their mean.

    Their variance is then that between draws, one standard error above its estimate, so that chance does not make it vanish.
    """
    means, (between, within) = _by_draw(values), _variances(values)
    spread, chance = float(means.var(ddof=1)), within / REPEATS
    error = np.sqrt(2 * (spread**2 + chance**2 / (REPEATS - 1)) / max(len(means) - 1, 1))
    return means.mean() + (means - means.mean()) * np.sqrt(min((between + error) / spread, 1) if spread > 0 else 0.0)


def credible(values: np.ndarray) -> Interval:
    """The mean of ``values [runs]`` and a 95% credible interval of the expected value in the one true environment.

    It contains the posterior uncertainty and, added in quadrature, the error of the simulation.
    """
    expected = expected_by_draw(values)
    mean, (low, high) = (
        float(expected.mean()),
        np.quantile(expected, [0.025, 0.975], method="weibull"),
    )  # unbiased also with few draws
    error = student_quantile(len(expected) - 1) * float(_by_draw(values).std(ddof=1)) / np.sqrt(len(expected))
    least = 0.0 if values.min() >= 0 else -np.inf  # against a fixed best arm the regret is never negative
    return mean, max(mean - float(np.hypot(mean - low, error)), least), mean + float(np.hypot(high - mean, error))


def _risk(lost: np.ndarray, uniform: np.ndarray) -> float:
    more, base = expected_by_draw(lost - uniform), _by_draw(uniform)
    return float((more > WORSE * base).mean())


def quantile_interval(values: np.ndarray, level: float) -> Interval:
    """A quantile of ``values [runs]`` with its 95% interval: the order statistics that a binomial count lies between."""
    count, ordered = len(values), np.sort(values)
    half = 1.96 * np.sqrt(count * level * (1 - level))
    low, high = np.clip([np.floor(count * level - half), np.ceil(count * level + half)], 0, count - 1).astype(int)
    return float(np.quantile(ordered, level)), float(ordered[low]), float(ordered[high])


def _written(learner: Any) -> str:
    """A learner as code; the class of a user is imported by the user."""
    return f"jb.{learner!r}" if type(learner).__module__.startswith("jaxbandit.") else repr(learner)


def _listed(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
