"""``jb.advise``: the candidates, their constants chosen on runs of their own, played in every world with the same words."""

from typing import Any

import numpy as np

from jaxbandit.advice.candidates import LEFT_OUT, candidates
from jaxbandit.advice.standing import Advice, mean_interval
from jaxbandit.advice.worlds import PHASES, World, worlds
from jaxbandit.logs import Log
from jaxbandit.progress import Progress
from jaxbandit.pytrees import show
from jaxbandit.simulation import simulate
from jaxbandit.statistics import estimate
from jaxbandit.validation import check_rounds, check_runs, given_key

MOST_ROUNDS = 20_000  # of a longer log, unless told otherwise
LEAST_ROUNDS = 8 * PHASES
RECORDED = 24


def advise(log: Log, *, rounds: int | None = None, runs: int = 512, seed: int = 0, progress: bool = False) -> Advice:
    """Which learner, with which constants, would have done best on a log, and how sure that is.

    Plays the learners of the registry on laws fitted to the log: 0/1 losses with the rates of the arms, delays as they were
    recorded, by the loss. Each run draws its own rates from what the log leaves open about them (Beta posteriors), and all
    learners meet the same rates, losses and delays run by run, so that differences are paired. Learners with constants try two
    or three of them on other runs and keep the one that loses least. All is done again where somebody means harm, where rates drift
    and with half the window.

    This is a simulation, not off-policy evaluation: what the log does not show (who saw which arm, and why) it does not know.

    Args:
      log: read by :func:`jaxbandit.load_log`, with two arms or more.
      rounds: how many decisions are simulated; by default as many as the log has, at most 20,000.
      runs: how many runs.
      seed: of rates and randomness; the same seed gives the same advice.
      progress: show a progress bar.

    >>> import jaxbandit as jb
    >>> log = jb.load_log(jb.logs.example(), arm="campaign", action="clicked_at", feedback="converted_at", window="7d")
    >>> advice = jb.advise(log)  # doctest: +SKIP
    """
    check_log(log)
    rounds = min(log.rounds, MOST_ROUNDS) if rounds is None else rounds
    check_rounds(rounds)
    check_runs(runs, 0)
    key = given_key(None, seed)
    if rounds < LEAST_ROUNDS or runs < 2:
        raise ValueError(f"rounds={rounds}, runs={runs}: advice needs {LEAST_ROUNDS} rounds or more, and 2 runs or more")
    random = np.random.default_rng(seed)
    levels, other = (random.uniform(size=(len(log.arms), runs)) for _ in range(2))
    futures, rehearsal = worlds(log, rounds, levels), worlds(log, rounds, other)[0]
    options: dict[str, Any] = {"rounds": rounds, "runs": runs, "key": key, "record": RECORDED}
    players = candidates(_facts(log, rounds))
    plays = sum(len(variants) * (len(variants) > 1) + len(futures) for variants in players.values())
    constants, lost, curves = {}, {world.name: {} for world in futures}, {}
    with Progress(progress, plays * rounds * runs, "advice") as bar:
        options["progress"] = bar
        for label, variants in players.items():
            bar.update(0, f"{label:<24}")
            constants[label], learner = _with_constants(variants, rehearsal, options)
            for world in futures:
                result = simulate(learner, world.losses, world.delays, **options)
                lost[world.name][label] = result.regret[-1].astype(np.float64)
                if world is futures[0]:
                    curves[label] = estimate(result.regret, result.rounds, None)
    means = log.means_at(levels)
    shares = log.counts / log.counts.sum()
    return Advice(
        log=log,
        rounds=rounds,
        runs=runs,
        seed=seed,
        worlds=futures,
        constants=constants,
        tried={label: [text or "its own" for text, _ in variants] for label, variants in players.items()},
        left_out=LEFT_OUT,
        lost=lost,
        curves=curves,
        as_chosen=mean_interval(rounds * (shares @ means - means.min(0))),
    )


def check_log(log: Any) -> None:
    """One sentence if nothing can be said about a log."""
    if not isinstance(log, Log):
        raise TypeError(f"log={show(log)}: give what jb.load_log returned")
    if len(log.arms) < 2:
        raise ValueError(
            f"the log has one arm, {log.arms[0]!r}; there is nothing to choose (arm= names the column with the choice)"
        )
    if log.window is not None and not log.closed:
        raise ValueError(
            "no window closes within the log, so no outcome is known for sure; give a longer log or a shorter window="
        )
    if log.converted == 0:
        raise ValueError("no row has feedback within the window=, so that all arms look the same; is it too short?")
    if log.converted == log.rounds and np.ptp(log.rows.losses) == 0:
        raise ValueError(
            "every row has feedback, and all of it is the same; name a column with loss= or reward=, or give a window= if late "
            "feedback counts as none"
        )


def _facts(log: Log, rounds: int) -> dict[str, float]:
    """What learners may be told, by the name of the fact: as the log has it."""
    waits = np.minimum(np.asarray(log.trace.delays, np.int64), rounds)
    return {"max_delay": float(waits.max()), "horizon": float(rounds), "total_delay": float(waits.mean() * rounds)}


def _with_constants(variants: list[tuple[str, Any]], rehearsal: World, options: dict[str, Any]) -> tuple[str, Any]:
    """The learner with those of its constants that lose least, on runs that nothing else uses."""
    if len(variants) == 1:
        return variants[0]

    def lost(learner: Any) -> float:
        result = simulate(learner, rehearsal.losses, rehearsal.delays, first_run=options["runs"], **options)
        return float(result.regret[-1].mean())

    return min(variants, key=lambda one: lost(one[1]))
