"""Decisions per second of a live agent: alone, durable, in a fleet; beside mabwiser where that is installed.

    python experiments/bench/decisions.py

Each decision is one `act` and, ten decisions later, one `observe`. Times are medians of single calls, so that a busy machine
disturbs them little; the first calls, which compile, are left out.
"""

import tempfile
import time
from collections import deque
from pathlib import Path

import jax
import numpy as np

import jaxbandit as jb

ARMS, WAIT = 10, 10
LEARNERS = {"thompson": jb.DelayedThompson(), "ucb1": jb.DelayedUCB1(), "tsallis-inf rv": jb.TsallisINF("rv")}


def median_seconds(decide, feed, calls: int, warm_up: int) -> float:
    """The median time of one decision with one feedback that is ``WAIT`` decisions old."""
    waiting, times = deque(), []
    for number in range(warm_up + calls):
        start = time.perf_counter()
        waiting.append(decide())
        if len(waiting) > WAIT:
            feed(waiting.popleft())
        if number >= warm_up:
            times.append(time.perf_counter() - start)
    return float(np.median(times))


def agent_seconds(agent: jb.Agent, calls: int) -> float:
    size = agent.fleet or 1
    losses = np.random.default_rng(0).integers(0, 2, size).astype(float)
    return median_seconds(lambda: agent.act().id, lambda ids: agent.observe(ids, losses if agent.fleet else losses[0]), calls, 50)


def mabwiser_seconds(name: str, calls: int) -> float | None:
    try:
        from mabwiser.mab import MAB, LearningPolicy
    except ImportError:
        return None
    policy = LearningPolicy.ThompsonSampling() if name == "thompson" else LearningPolicy.UCB1()
    bandit, random = MAB(list(range(ARMS)), policy), np.random.default_rng(0)
    bandit.fit(list(range(ARMS)), random.integers(0, 2, ARMS).tolist())
    return median_seconds(bandit.predict, lambda arm: bandit.partial_fit([arm], [int(random.integers(2))]), calls, 50)


def main() -> None:
    print(f"{'':<16}{'one agent':>12}{'durable':>12}{'no flush':>12}{'fleet 10^4':>16}{'mabwiser':>12}")
    for name, learner in LEARNERS.items():
        key = jax.random.key(0)
        cells = [f"{1e6 * agent_seconds(jb.Agent(learner, ARMS, key), 1000):.0f} µs"]
        with tempfile.TemporaryDirectory() as folder:
            for flush in (True, False):
                with jb.Agent.open(Path(folder, f"{flush}.db"), learner, ARMS, key, flush=flush) as agent:
                    cells.append(f"{1e6 * agent_seconds(agent, 500):.0f} µs")
        seconds = agent_seconds(jb.Agent(learner, ARMS, key, fleet=10_000), 60)
        cells.append(f"{10_000 / seconds / 1e6:.2f} million/s")
        other = mabwiser_seconds(name, 1000) if name in ("thompson", "ucb1") else None
        cells.append("–" if other is None else f"{1e6 * other:.0f} µs")
        print(f"{name:<16}{cells[0]:>12}{cells[1]:>12}{cells[2]:>12}{cells[3]:>16}{cells[4]:>12}", flush=True)


if __name__ == "__main__":
    main()
