"""Advice in named cases against an event queue: the better arm converts late, thin arms, revenue, a window that is too short, and others.

For each case a log is drawn and handed to ``jb.advise`` with all candidates. The true regret of the advised learner, of Thompson sampling and
of uniform allocation is measured with live agents (:class:`jaxbandit.Agent`) and an event queue in continuous time: none of the simulator,
the delay models or the posterior of the library takes part.

    python experiments/advice_validation/cases.py --out FOLDER            # all cases; finished ones are kept in FOLDER/cases.jsonl
    python experiments/advice_validation/cases.py --out FOLDER --only slow-good
"""

import argparse
import csv
import dataclasses
import heapq
import json
import time
import warnings
from pathlib import Path

import jax
import numpy as np

import jaxbandit as jb

DAY = 86400
RUNS = 200  # of the event queue


@dataclasses.dataclass(frozen=True)
class Case:
    """Lognormal delays in days; rates are of conversions at any time."""

    rates: tuple[float, ...]
    medians: tuple[float, ...]  # of the delays of conversions, days
    window: float | None = 10.0  # days; None: failures are reported too
    failures: float = 0.0  # without a window: the median delay of a failure, days
    spread: float = 0.5
    values: tuple[float, ...] | None = None  # revenue: medians of lognormal rewards, cut off at `scale`
    scale: float = 1.0
    days: float = 20.0
    rounds: int = 2000

    def outcome(self, random, arm):
        """Reward, its delay, and whether there is feedback before the window closes."""
        wait = self.medians[arm] * np.exp(self.spread * random.normal())
        converts = random.uniform() < self.rates[arm]
        value = 1.0 if self.values is None else min(self.values[arm] * np.exp(random.normal()), self.scale)
        if self.window is None:
            return (value, wait) if converts else (0.0, self.failures * np.exp(self.spread * random.normal()))
        return (value, wait) if converts and wait <= self.window else (0.0, self.window)

    def means(self):
        """True mean rewards by Monte Carlo over the same law, vectorised."""
        random, count = np.random.default_rng(99), 1_000_000
        in_time = np.ones(len(self.rates))
        if self.window is not None:
            draws = np.exp(self.spread * random.normal(size=count))
            in_time = np.array([np.mean(median * draws <= self.window) for median in self.medians])
        values = np.ones(len(self.rates))
        if self.values is not None:
            draws = np.exp(random.normal(size=count))
            values = np.array([np.minimum(value * draws, self.scale).mean() for value in self.values])
        return np.array(self.rates) * in_time * values


THIN = tuple(np.random.default_rng(4).beta(4, 36, 50).tolist())
CASES = {
    "slow-good": Case((0.08, 0.12), (2 / 24, 4.0)),
    "one-slow-of-three": Case((0.08, 0.12, 0.06), (2 / 24, 4.0, 2 / 24)),
    "slow-bad": Case((0.12, 0.06, 0.08), (2 / 24, 4.0, 2 / 24)),
    "by-outcome": Case((0.12, 0.08), (4.0, 4.0), window=None, failures=2 / 24),
    "cut-window": Case((0.08, 0.20), (2 / 24, 6.0), window=4.0),
    "thin-arms": Case(THIN, (1.0,) * 50),
    "revenue": Case((0.10, 0.08, 0.05), (1.0, 1.0, 3.0), values=(20.0, 35.0, 40.0), scale=200.0),
}


def write_log(case, path, seed):
    random = np.random.default_rng(seed)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["arm", "action_time", "feedback_time", "value"])
        for start in np.sort(random.uniform(0, case.days, case.rounds)):
            arm = int(random.integers(len(case.rates)))
            # A log records late conversions too, up to the day it was exported: well after the last action.
            wait = case.medians[arm] * np.exp(case.spread * random.normal())
            converts = random.uniform() < case.rates[arm]
            value = 1.0 if case.values is None else min(case.values[arm] * np.exp(random.normal()), case.scale)
            if not converts:
                value, wait = (0.0, case.failures * np.exp(case.spread * random.normal())) if case.window is None else (0.0, None)
            end = "" if wait is None else round(DAY * (start + wait))
            writer.writerow([f"arm {arm:02d}", round(DAY * start), end, "" if wait is None else value])


def truth(case, learner, seed):
    """The regret ``[RUNS]`` of a learner, fed by an event queue for each run; actions have the same times in all runs."""
    random = np.random.default_rng((seed, 1))
    agent = jb.Agent(learner, len(case.rates), jax.random.key(seed), fleet=RUNS, propensities=False)
    means, lost, queue, number = case.means(), np.zeros(RUNS), [], 0
    for now in np.sort(random.uniform(0, case.days, case.rounds)):
        ids, losses = [], []
        while queue and queue[0][0] <= now:
            _, _, id, loss = heapq.heappop(queue)
            ids.append(id)
            losses.append(loss)
        if ids:
            agent.observe(ids, losses)
        ticket = agent.act()
        lost += means.max() - means[ticket.arm]
        for id, arm in zip(ticket.id.tolist(), ticket.arm.tolist(), strict=True):
            reward, wait = case.outcome(random, arm)
            number += 1
            heapq.heappush(queue, (now + wait, number, id, 1 - reward / case.scale))
    return lost


def examine(name, folder, runs, seed):
    case, path = CASES[name], folder / f"{name}.csv"
    write_log(case, path, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        window = None if case.window is None else DAY * case.window
        log = jb.load_log(path, arm="arm", window=window, reward="value", scale=case.scale)
        start = time.process_time()
        advice = jb.advise(log, rounds=case.rounds, runs=runs, seed=seed, resume=folder / f"{name}.npz")
    label = advice.recommended or "uniform"
    standing = {one.label: one for one in advice.ranking()}
    found = {"case": name, "summary": advice.summary(), "recommended": advice.recommended, "learner": advice.name(label)}
    found["seconds"] = time.process_time() - start
    for who in dict.fromkeys([label, "thompson", "uniform", "discounted-thompson", advice.ranking()[0].label]):
        lost = truth(case, advice.chosen[who][1], seed)
        found[who] = {"interval": standing[who].lost, "truth": lost.mean(), "error": lost.std() / np.sqrt(RUNS)}
    return found


def show(found):
    print(f"\n{found['case']}: {found['learner']} ({found['seconds']:.0f} s of processor time)")
    for text in found["summary"]:
        print("  |", text)
    for who, row in found.items():
        if isinstance(row, dict):
            mean, low, high = row["interval"]
            inside = low - 2 * row["error"] <= row["truth"] <= high + 2 * row["error"]
            print(f"  {who:24} advice {mean:7.1f} [{low:.1f}, {high:.1f}]  truth {row['truth']:7.1f} ± {row['error']:.1f}"
                  f"  {'inside' if inside else 'OUTSIDE'}", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", choices=list(CASES), nargs="*")
    parser.add_argument("--runs", type=int, default=256, help="of the advice")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "cases.jsonl"
    done = {one["case"]: one for one in map(json.loads, file.read_text().splitlines())} if file.exists() else {}
    for name in options.only or CASES:
        if name not in done:
            done[name] = examine(name, options.out, options.runs, options.seed)
            with open(file, "a") as lines:
                lines.write(json.dumps(done[name]) + "\n")
        show(done[name])


if __name__ == "__main__":
    main()
