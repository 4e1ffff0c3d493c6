"""How often ``until=`` errs, and how many runs it saves: ``python -m experiments.sequential --out DIR``.

Regrets of two environments are simulated once (8,192 runs of three learners each). Comparisons are then drawn from them with
replacement, run by run, so that pairs stay pairs. For the error rate, the regrets of each learner are shifted to one common mean: every
difference has mean 0, and every rejection is an error.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

import jaxbandit as jb
from jaxbandit._engine.until import look_every, regret_limits
from jaxbandit.results.sequential import looks, p_value
from jaxbandit.results.statistics import holm, paired_test, student_quantile
from jaxbandit.results.stopping import LEVEL, Until, stopping
from jaxbandit.results.tables import markdown_table

POOL, MOST = 8192, 8192
SETTINGS = {
    "normal-like": (
        {"UCB1": jb.DelayedUCB1(), "Tsallis-INF": jb.TsallisINF(), "KL-UCB": jb.KLUCB()},
        jb.losses.Bernoulli([0.3, 0.5, 0.5, 0.5]), jb.delays.Fixed(50), 2000, "5%",
    ),
    "UCB1 fails": (
        {"UCB1, alpha 0.05": jb.DelayedUCB1(0.05), "UCB1, alpha 0.1": jb.DelayedUCB1(0.1), "KL-UCB": jb.KLUCB()},
        jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(10), 10_000, "50%",
    ),
}  # fmt: skip
PAIRS = [(0, 1), (0, 2), (1, 2)]


def by_betting(values: np.ndarray, limits: tuple[float, float]) -> float:
    return p_value(values, limits)


def by_student(values: np.ndarray, limits: tuple[float, float]) -> float:
    return paired_test(values)[2]


def rejects(regret: np.ndarray, runs: int, width: float, test: Callable) -> np.ndarray:
    """Which of the pairs are significantly different after ``runs`` runs, corrected by Holm."""
    return holm([test(regret[a, :runs] - regret[b, :runs], (-width, width)) for a, b in PAIRS]) <= LEVEL


def error_rates(pool: np.ndarray, limits: tuple[float, float], block: int, repetitions: int) -> dict[str, float]:
    """Shares of comparisons with one rejection or more where all means are equal."""
    shifts = pool.mean(1).max() - pool.mean(1)
    pool, width = pool + shifts[:, None], limits[1] - limits[0] + float(shifts.max())
    chance, wrong = np.random.default_rng(0), np.zeros(3)
    for _ in range(repetitions):
        regret = pool[:, chance.integers(pool.shape[1], size=MOST)]
        # The p-values of betting never grow, so that the last look rejects what any look did.
        wrong[0] += rejects(regret, MOST, width, by_betting).any()
        wrong[1] += any(rejects(regret, runs, width, by_student).any() for runs in looks(MOST, block))
        wrong[2] += rejects(regret, block, width, by_student).any()
    return dict(zip(("until", "student at each look", "student once"), (wrong / repetitions).tolist(), strict=True))


def runs_needed(pool: np.ndarray, limits: tuple[float, float], block: int, repetitions: int) -> dict[str, float]:
    """Runs of all learners until every pair is decided, as a share of those of a fixed number, and how the comparisons ended."""
    width, chance = limits[1] - limits[0], np.random.default_rng(1)
    truth = np.array([np.sign(pool[a].mean() - pool[b].mean()) for a, b in PAIRS])
    used, undecided, wrong = [], 0, 0
    for _ in range(repetitions):
        regret = pool[:, chance.integers(pool.shape[1], size=MOST)]
        have, active, decided = np.zeros(3, int), {0, 1, 2}, np.zeros(len(PAIRS), bool)
        for runs in looks(MOST, block):
            have[list(active)] = runs
            each = [min(have[a], have[b]) for a, b in PAIRS]
            values = [regret[a, :n] - regret[b, :n] for (a, b), n in zip(PAIRS, each, strict=True)]
            decided = holm([by_betting(one, (-width, width)) for one in values]) <= LEVEL
            active = {one for pair, done in zip(PAIRS, decided, strict=True) if not done for one in pair}
            if not active:
                break
        wrong += bool(np.any(decided & (np.sign([one.mean() for one in values]) != truth)))
        undecided += bool(active)
        used.append(have.sum() / (3 * MOST))
    return {"share of runs": float(np.mean(used)), "undecided": undecided / repetitions, "wrong sign": wrong / repetitions}


def coverage(values: np.ndarray, limits: tuple[float, float], until: Until, block: int, repetitions: int) -> dict[str, float]:
    """How often the interval at which ``until`` stops contains the mean, and how often Student's at the same number of runs does."""
    chance, inside, student, used, reached = np.random.default_rng(2), 0, 0, [], 0
    mean = values.mean()
    for _ in range(repetitions):
        drawn = values[chance.integers(len(values), size=MOST)]
        for runs in looks(MOST, block):
            found = stopping(until, drawn[:runs], limits)
            if found.reached:
                break
        half = student_quantile(runs - 1) * drawn[:runs].std(ddof=1) / np.sqrt(runs)
        inside += found.low <= mean <= found.high
        student += abs(found.mean - mean) <= half
        reached += found.reached
        used.append(runs)
    rates = {"coverage": inside, "student": student, "reached": reached}
    return {name: count / repetitions for name, count in rates.items()} | {"runs": float(np.mean(used))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for results.json and tables.md")
    parser.add_argument("--comparisons", type=int, default=2000)
    parser.add_argument("--stops", type=int, default=1000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    found: dict = {}
    for name, (learners, losses, delays, rounds, until) in SETTINGS.items():
        done = jb.compare(learners, losses, delays, rounds=rounds, runs=POOL, seed=1, record=1)
        pool = np.stack([done.results[""][label].regret[-1].astype(np.float64) for label in learners])
        limits, block = regret_limits(losses, rounds), look_every(losses.num_arms)
        summaries = {label: result.summary() for label, result in done.results[""].items()}
        found[name] = {
            "learners": {
                label: {"mean": one.regret, "median": one.median, "failed": one.failed} for label, one in summaries.items()
            },
            "errors": error_rates(pool, limits, block, options.comparisons),
            "decided": runs_needed(pool, limits, block, options.comparisons),
            "until": until,
            "stops": {
                label: coverage(row, limits, Until.read(until, decided=False), block, options.stops)
                for label, row in zip(learners, pool, strict=True)
            },
        }
        print(name, json.dumps(found[name], indent=1), flush=True)
    (options.out / "results.json").write_text(json.dumps({**vars(options), "out": "", **found}, indent=1) + "\n")
    (options.out / "tables.md").write_text(tables(found))


def tables(found: dict) -> str:
    first = [
        [name, *(f"{one['errors'][key]:.1%}" for key in ("until", "student at each look", "student once")),
         f"{1 - one['decided']['share of runs']:.0%}", f"{one['decided']['undecided']:.1%}", f"{one['decided']['wrong sign']:.1%}"]
        for name, one in found.items()
    ]  # fmt: skip
    head = ["regrets", "`until`", "Student at each look", "Student once", "runs saved", "undecided", "wrong sign"]
    second = [
        [name, label, f"{one['learners'][label]['failed']:.1%}", one["until"], f"{stop['coverage']:.1%}", f"{stop['student']:.1%}",
         f"{stop['runs']:,.0f}", f"{stop['reached']:.0%}"]
        for name, one in found.items() for label, stop in one["stops"].items()
    ]  # fmt: skip
    below = [
        "regrets",
        "learner",
        "failed runs",
        "`until`",
        "coverage of `until`",
        "of Student's interval",
        "mean runs",
        "reached",
    ]
    return f"{markdown_table(head, first)}\n\n{markdown_table(below, second)}\n"


if __name__ == "__main__":
    main()
