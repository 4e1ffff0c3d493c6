"""One task with three libraries: a durable campaign with late conversions, callers' keys and a window.

    pip install mabwiser bayesianbandits; python experiments/live_peers/compare.py    # libraries that are missing are left out

Ten arms with rates of 5% to 14%; a conversion arrives 50 decisions later, with Thompson sampling in all libraries. Each task is one file, whose
lines between its marks are counted without blank ones. Times are of a decision with its feedback: median wall time, and processor time of all
threads. The column in memory is the library alone, without the file. Conversions are those of one run and differ by chance.
"""

import collections
import importlib
import tempfile
import time
from pathlib import Path

import numpy as np

ARMS, ROUNDS, WAIT, WARM_UP = [f"ad {i}" for i in range(10)], 2000, 50, 100
RATES = dict(zip(ARMS, np.linspace(0.05, 0.14, 10).tolist(), strict=True))
TASKS = ("jaxbandit", "mabwiser", "bayesianbandits")


def in_memory(name):
    """``decide() -> (ticket, arm)`` and ``feedback(ticket, reward)`` of the library alone."""
    if name == "jaxbandit":
        import jax

        import jaxbandit as jb

        agent = jb.Agent(jb.DelayedThompson(), ARMS, jax.random.key(0))

        def decide():
            ticket = agent.act()
            return ticket.id, ticket.arm

        return decide, lambda ticket, reward: agent.observe(ticket, reward=reward)
    if name == "mabwiser":
        from mabwiser.mab import MAB, LearningPolicy

        bandit = MAB(ARMS, LearningPolicy.ThompsonSampling())
        bandit.fit([ARMS[0]], [0])
        return lambda: (arm := bandit.predict(), arm), lambda arm, reward: bandit.partial_fit([arm], [int(reward)])
    from bayesianbandits import Agent, Arm, DirichletClassifier, ThompsonSampling

    other = Agent([Arm(arm, lambda x: x[..., 1], DirichletClassifier({0: 1.0, 1: 1.0})) for arm in ARMS], ThompsonSampling())
    return lambda: (arm := other.pull()[0], arm), lambda arm, reward: other.select_for_update(arm).update(np.array([int(reward)]))


def measured(decide, feedback):
    """Median wall time and mean processor time of a decision with its feedback, in µs, and the conversions."""
    random, waiting, walls, won, start = np.random.default_rng(1), collections.deque(), [], 0, 0.0
    for number in range(WARM_UP + ROUNDS):
        if number == WARM_UP:
            start = time.process_time()
        begun = time.perf_counter()
        ticket, arm = decide()
        reward = float(random.uniform() < RATES[arm])
        won += reward
        waiting.append((ticket, reward))
        if len(waiting) > WAIT:
            feedback(*waiting.popleft())
        walls.append(time.perf_counter() - begun)
    return 1e6 * np.median(walls[WARM_UP:]), 1e6 * (time.process_time() - start) / ROUNDS, won


def lines(module):
    text = Path(module.__file__).read_text().split("# begin\n")[1].split("# end")[0]
    return sum(bool(line.strip()) for line in text.splitlines())


def main():
    print("| | lines of code | in memory, µs wall / processor | durable | conversions |\n|---|---|---|---|---|")
    for name in TASKS:
        try:
            module = importlib.import_module(f"{name}_task")
        except ImportError:
            print(f"| {name} | – | – | – | – |")
            continue
        wall, processor, _ = measured(*in_memory(name))
        with tempfile.TemporaryDirectory() as folder:
            campaign, number = module.Campaign(f"{folder}/campaign.db", ARMS), 0

            def decide(campaign=campaign):
                nonlocal number
                number += 1
                return campaign.decide(f"request {number}")[:2]

            durable = measured(decide, campaign.feedback)
            assert campaign.decide("request 1")[:2] == campaign.decide("request 1")[:2]
            assert campaign.close_window(0) == WAIT
        print(
            f"| {name} | {lines(module)} | {wall:.0f} / {processor:.0f} | {durable[0]:.0f} / {durable[1]:.0f} | {durable[2]:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
