"""``jb.advise``: successive halving over learners and their constants, simulated on posterior draws of a log."""

import hashlib
import io
import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbandit._checks.inputs import check_rounds, check_runs, given_key, validate_learner
from jaxbandit._core.fields import show
from jaxbandit._engine.simulation import simulate
from jaxbandit._io.files import write_whole
from jaxbandit._io.progress import Progress
from jaxbandit._provenance.identity import fingerprint
from jaxbandit._version import __version__
from jaxbandit.advice.candidates import LEFT_OUT, TRIED, UNIFORM, burn_in, candidates
from jaxbandit.advice.result import Advice, Runs
from jaxbandit.advice.scenarios import PHASES, Scenario, scenarios
from jaxbandit.learners.base import LearnerLike
from jaxbandit.logs import Log

MOST_ROUNDS = 20_000  # of a longer log, unless given
LEAST_ROUNDS = 8 * PHASES
LEAST_RUNS = 8
RECORDED = 24
SCREENED = 256  # runs of each learner in the first stage
FINALISTS = 5  # learners that are simulated in all scenarios, besides the uniform baseline
LONGEST_LABEL = 40  # characters
FIRST_ANSWER = 4  # learners after which there is a first answer


def advise(
    log: Log,
    *,
    rounds: int | None = None,
    runs: int = 512,
    seed: int = 0,
    learners: Sequence[str | LearnerLike] | None = None,
    seconds: float | None = None,
    resume: str | os.PathLike | None = None,
    on_answer: Callable[[Advice], None] | None = None,
    progress: bool = False,
) -> Advice:
    """Recommend the learner and constants with the lowest regret on a log, with the uncertainty of that choice.

    Learners are simulated on environments drawn from the posterior given the log: conversion rates, rewards and delays by arm and
    outcome, partially pooled across arms. All learners face the same environments and random numbers run by run, so that
    differences
    are paired. Every learner is screened first. Then constants are chosen for the better half. The best five and the uniform
    baseline
    are simulated again on new draws, and under adversarial corruption, drift, and half the window.

    This is a simulation, not off-policy evaluation: it does not know why an arm was shown to a visitor.

    Args:
      log: read by :func:`jaxbandit.load_log`, with two arms or more.
      rounds: the number of decisions that are simulated; by default as many as the log has, at most 20,000.
      runs: the number of runs of the finalists, at least 8; two consecutive runs share a draw of rates and delays.
      seed: random seed; the same seed gives the same advice, unless ``seconds`` ends it early.
      learners: labels of the learners to compare, such as ``["thompson", "ucb1"]``; by default all that suit a log. A learner of your
        own is compared with its constants as they are: ``["thompson", MyLearner(0.1)]``.
      seconds: begin no further simulation after this time. Learners that were not simulated are listed.
      resume: a file in which finished simulations are kept. The same call with the same file continues after an interruption.
      on_answer: called with preliminary advice after the first four learners and after each stage.
      progress: show a progress bar.

    >>> import jaxbandit as jb
    >>> log = jb.load_log(jb.logs.example(), arm="campaign", action="clicked_at", feedback="converted_at", window="7d")
    >>> advice = jb.advise(log)  # doctest: +SKIP
    """
    check_log(log)
    rounds = min(log.rounds, MOST_ROUNDS) if rounds is None else rounds
    check_rounds(rounds)
    check_runs(runs, 0)
    given_key(None, seed)
    if rounds < LEAST_ROUNDS or runs < LEAST_RUNS:
        raise ValueError(
            f"rounds={rounds}, runs={runs}: advice needs {LEAST_ROUNDS} rounds or more, and {LEAST_RUNS} runs or more"
        )
    asked = list(learners) if isinstance(learners, Sequence) and not isinstance(learners, str) else []
    labels = [one for one in asked if isinstance(one, str)]
    own = {_label(one): one for one in asked if not isinstance(one, str)}
    if learners is not None and (not asked or not set(labels) <= set(TRIED)):
        raise ValueError(f"learners={show(learners)}: give a list of learners of your own or labels out of {', '.join(TRIED)}")
    for one in own.values():
        try:
            validate_learner(one, len(log.arms))
        except TypeError as error:
            raise ValueError(f"learners={show(learners)}: {error}; labels are {', '.join(TRIED)}") from None
    if len(own) + len(labels) < len(asked):
        raise ValueError(f"learners={show(learners)}: two learners have one label; give each class once, or a short repr to each")
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds={show(seconds)}: give a number above 0, or None for no limit")
    players = candidates(_facts(log, rounds), None if learners is None else [UNIFORM, *labels])
    players |= {label: [("", one)] for label, one in own.items()}
    with Progress(progress, _planned(players, log) * rounds * SCREENED, "advice") as bar:
        contest = _Contest(log, rounds, runs, seed, players, seconds, resume, on_answer, bar)
        contest.hold()
    return contest.advice()


def check_log(log: object) -> None:
    """Raise if nothing can be concluded from a log."""
    if not isinstance(log, Log):
        raise TypeError(f"log={show(log)}: give what jb.load_log returned")
    if len(log.arms) < 2:
        raise ValueError(
            f"the log has one arm, {log.arms[0]!r}; there is nothing to choose (arm= names the column with the choice)"
        )
    if log.converted == log.rounds and np.ptp(log.rows.losses) == 0:
        raise ValueError(
            "every row has feedback, and all of it is the same; name a column with loss= or reward=, or give a window= if late "
            "feedback counts as none"
        )
    if not log.outcomes.converted.any():
        raise ValueError(
            "no row whose window closed within the log has a reward, so that all arms look the same; is window= too short, or nearly as "
            "long as the log?"
        )


def _label(learner: LearnerLike) -> str:
    """The label of a user's learner: as it is displayed, unless that is long."""
    text = repr(learner)
    return text if len(text) <= LONGEST_LABEL and " at 0x" not in text else type(learner).__name__


def _identity(learner: LearnerLike) -> str:
    """A digest of a user's learner: its class, numbers and code."""
    found = fingerprint(learner, None, None, jax.random.key(0))
    return found["learner"] + found["learner code"]


def _facts(log: Log, rounds: int) -> dict[str, float]:
    """Required inputs of learners, by the name of the fact, as the log has them."""
    waits = np.minimum(np.asarray(log.trace.delays, np.int64), rounds)
    return {"max_delay": float(waits.max()), "horizon": float(rounds), "total_delay": float(waits.mean() * rounds)}


def _planned(players: dict[str, list], log: Log) -> int:
    """The approximate number of simulations."""
    return len(players) + 2 * len(players) // 2 + 2 * (3 if log.window is None else 4) * min(FINALISTS, len(players))


class _OutOfTime(Exception):
    pass


class _Contest:
    """The stages of one call of :func:`advise`, with their results so far."""

    def __init__(
        self,
        log: Log,
        rounds: int,
        runs: int,
        seed: int,
        players: dict[str, list[tuple[str, Any]]],
        seconds: float | None,
        resume: str | os.PathLike | None,
        on_answer: Callable[[Advice], None] | None,
        bar: Progress,
    ):
        self.log, self.rounds, self.runs, self.seed, self.players = log, rounds, runs, seed, players
        self.deadline = math.inf if seconds is None else time.monotonic() + seconds
        self.on_answer, self.bar = on_answer, bar
        self.kept = _Kept(resume, _digest(log, rounds, runs, seed))
        self.screening = min(SCREENED, runs)
        self.screen = scenarios(log, rounds, self.screening, (seed, 0))[0]
        self.futures = scenarios(log, rounds, runs, (seed, 1))
        self.chosen: dict[str, tuple[str, Any]] = {}  # label -> constants and learner
        self.screened: dict[str, Runs] = {}
        self.final: dict[str, dict[str, Runs]] = {}  # scenario -> label
        self.tried: dict[str, list[str]] = {}
        self.rounds_recorded = np.zeros(0, np.int64)

    def hold(self) -> None:
        try:
            for label, variants in self.players.items():
                self._screen(label, variants[:1])
                if len(self.screened) == FIRST_ANSWER:
                    self._answer()
            for label in self._better(max(FINALISTS, len(self.screened) // 2)):
                self._screen(label, self.players[label][1:])
            self._answer()
            finalists = [*self._better(FINALISTS), UNIFORM]
            for future in self.futures:
                results = {label: self._play(label, *self.chosen[label], future, self.screening) for label in finalists}
                self.final[future.name] = results
                self._answer()
        except _OutOfTime:
            if not self.screened:
                raise ValueError("seconds= is over before the first simulation; give more time") from None

    def _screen(self, label: str, variants: list[tuple[str, Any]]) -> None:
        """Simulate more constants of a learner and keep the best so far."""
        for constants, learner in variants:
            found = self._play(label, constants, learner, self.screen, 0)
            self.tried.setdefault(label, []).append(constants or "its own")
            if label not in self.screened or found.lost.mean() < self.screened[label].lost.mean():
                self.screened[label], self.chosen[label] = found, (constants, learner)

    def _better(self, count: int) -> list[str]:
        """The learners that lose least in the screening, the uniform baseline aside."""
        order = sorted(self.screened, key=lambda label: self.screened[label].lost.mean())
        return [label for label in order if label != UNIFORM][:count]

    def _play(self, label: str, constants: str, learner: Any, future: Scenario, first_run: int) -> Runs:
        name = f"{future.name}|{label}|{constants}|{first_run}{'' if label in TRIED else f'|{_identity(learner)}'}"
        runs = len(future.best)
        regret, recorded = self.kept.get(name), self.kept.get("rounds")
        if regret is None or recorded is None:
            if time.monotonic() > self.deadline:
                raise _OutOfTime
            self.bar.update(0, f"{label:<24}")
            result = simulate(
                learner,
                future.losses,
                future.delays,
                rounds=self.rounds,
                runs=runs,
                first_run=first_run,
                seed=self.seed,
                record=RECORDED,
                progress=self.bar,
            )
            regret, recorded = result.regret, result.rounds
            self.kept.put({name: regret, "rounds": recorded})
        self.rounds_recorded = recorded
        return Runs(regret.astype(np.float64) * self.log.scale, future.best * self.log.scale)

    def _answer(self) -> None:
        if self.on_answer is not None:
            self.on_answer(self.advice())

    def advice(self) -> Advice:
        """The advice from all results so far."""
        missing = {label: "time was up before its turn" for label in self.players if label not in self.screened}
        others = {label: "not asked for" for label in TRIED if label not in self.players}
        gap = float(np.diff(np.sort(self.log.means))[:1].sum())
        burn_ins = {
            label: rounds
            for label, variants in self.players.items()
            if gap > 0 and (rounds := burn_in(variants[0][1], len(self.log.arms), gap)) is not None
        }
        return Advice(
            log=self.log,
            rounds=self.rounds,
            seed=self.seed,
            scenarios=self.futures,
            chosen=dict(self.chosen),
            tried=dict(self.tried),
            left_out={**LEFT_OUT, **others, **missing},
            screened=dict(self.screened),
            final={name: dict(results) for name, results in self.final.items()},
            recorded=self.rounds_recorded,
            burn_ins=burn_ins,
        )


class _Kept:
    """Finished simulations by name, also in a file if there is one."""

    def __init__(self, path: str | os.PathLike | None, digest: str):
        self.path = None if path is None else Path(path)
        self.arrays: dict[str, np.ndarray] = {"digest": np.array(digest)}
        if self.path is not None and self.path.exists():
            try:
                with np.load(self.path, allow_pickle=False) as file:
                    found = dict(file)
            except (OSError, ValueError, EOFError) as error:
                raise ValueError(f"resume={str(self.path)!r}: this is not a file of advise; give another name") from error
            if str(found.get("digest")) != digest:
                raise ValueError(
                    f"resume={str(self.path)!r}: this file is of another log, seed, number of rounds or runs, or version; "
                    "delete it or give another name"
                )
            self.arrays = found

    def get(self, name: str) -> np.ndarray | None:
        return self.arrays.get(name)

    def put(self, new: dict[str, np.ndarray]) -> None:
        self.arrays.update(new)
        if self.path is not None:
            content = io.BytesIO()
            arrays: dict[str, Any] = self.arrays  # `savez` also has a keyword of another type, in newer versions of NumPy
            np.savez(content, **arrays)
            write_whole(self.path, content.getvalue())


def _digest(log: Log, rounds: int, runs: int, seed: int) -> str:
    """A digest of everything that determines the results."""
    found = hashlib.sha256(f"{__version__} {rounds} {runs} {seed} {log.window} {log.scale}".encode())
    for column in log.rows:
        found.update(np.ascontiguousarray(column).tobytes())
    return found.hexdigest()
