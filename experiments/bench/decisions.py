"""Decisions per second of a live agent: alone, durable, in a fleet; beside mabwiser and Vowpal Wabbit where they are installed.

    pip install mabwiser vowpalwabbit; python experiments/bench/decisions.py
    python experiments/bench/decisions.py --every    # one agent, every learner of the registry
    python experiments/bench/decisions.py --durable  # the cost of the flush, with and without groups

Everybody decides on one stream: a loss for each decision and arm, drawn beforehand. Each decision is one `act` and, ten decisions
later, one `observe`. Wall time is the median of single decisions, so that a busy machine disturbs it little; processor time is that of
all threads, over all decisions. The first decisions, which compile, are left out.

Vowpal Wabbit has no Thompson sampling or UCB1 for arms without features. What stands in its column is `--cb_explore 10 --bag 8`, eight
bootstrap models of which one is drawn, which is its kin of Thompson sampling.
"""

import argparse
import contextlib
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxbandit as jb
from jaxbandit._core.fields import facts

# An agent does not support intermediate observations, delays known at action time and full information.
UNSUPPORTED = (jb.extend.ReadsSignals, jb.extend.ReadsDelays, jb.extend.FullInformation)

ARMS, WAIT, WARM_UP = 10, 10, 50
LEARNERS = {"thompson": jb.DelayedThompson(), "ucb1": jb.DelayedUCB1(), "tsallis-inf rv": jb.TsallisINF("rv")}
FLEET = 10_000
STREAM = (np.random.default_rng(0).uniform(size=(5000, ARMS)) < np.linspace(0.5, 0.9, ARMS)).astype(float)  # losses


class Cost(NamedTuple):
    wall: float  # seconds of one decision, median
    processor: float  # seconds of all threads for one decision, mean


def cost(decide: Callable[[], tuple[Any, Any]], feed: Callable[[Any, Any], None], calls: int, warm_up: int = WARM_UP) -> Cost:
    """Of one decision with the feedback of one that is ``WAIT`` decisions old; ``decide`` gives a ticket and its arm."""
    waiting: deque = deque()
    times, start = [], 0.0
    for number in range(warm_up + calls):
        if number == warm_up:
            start = time.process_time()
        begun = time.perf_counter()
        ticket, arm = decide()
        waiting.append((ticket, STREAM[number % len(STREAM), arm]))
        if len(waiting) > WAIT:
            feed(*waiting.popleft())
        times.append(time.perf_counter() - begun)
    return Cost(float(np.median(times[warm_up:])), (time.process_time() - start) / calls)


def of_agent(agent: jb.Agent, calls: int, read: bool = False) -> Cost:
    """``read``: the propensity of each ticket is read, and computed then."""

    def decide():
        ticket = agent.act()
        _ = read and ticket.probability
        return ticket.id, ticket.arm

    return cost(decide, agent.observe, calls)


def of_mabwiser(name: str, calls: int) -> Cost | None:
    try:
        from mabwiser.mab import MAB, LearningPolicy
    except ImportError:
        return None
    policy = LearningPolicy.ThompsonSampling() if name == "thompson" else LearningPolicy.UCB1()
    bandit = MAB(list(range(ARMS)), policy)
    bandit.fit(list(range(ARMS)), (1 - STREAM[0]).astype(int).tolist())

    def decide():
        arm = bandit.predict()
        return arm, arm

    return cost(decide, lambda arm, loss: bandit.partial_fit([arm], [int(1 - loss)]), calls)


def of_vowpal_wabbit(calls: int) -> Cost | None:
    try:
        import vowpalwabbit
    except ImportError:
        return None
    model, random = vowpalwabbit.Workspace(f"--cb_explore {ARMS} --bag 8 --quiet"), np.random.default_rng(1)

    def decide():
        x = np.asarray(model.predict("| constant"))
        arm = int(min(np.searchsorted(np.cumsum(x), random.uniform()), ARMS - 1))
        return (arm, x[arm]), arm

    return cost(decide, lambda drawn, loss: model.learn(f"{drawn[0] + 1}:{loss}:{drawn[1]} | constant"), calls)


def shown(one: Cost | None, than: Cost | None = None) -> str:
    if one is None:
        return "–"
    times = "" if than is None else f" ({one.wall / than.wall:.2g}×)"
    return f"{1e6 * one.wall:.0f} / {1e6 * one.processor:.0f}{times}"


def every_learner() -> dict[str, Any]:
    """The registry, told of ``WAIT`` and a horizon; wrappers play Tsallis-INF."""
    given: dict[str, Any] = {
        "max_delay": WAIT,
        "horizon": 5000,
        "total_delay": 5000 * WAIT,
        "beta": WAIT,
        "max_missing": WAIT,
        "mean_delay": WAIT,
    }
    given["conversion_curve"] = [0.0] * WAIT + [1.0, 1.0]
    wrapped = {name: jb.REGISTRY[name](jb.TsallisINF(), capacity=2 * WAIT) for name in ("qpm-d", "bold")}
    others = {
        name: cls(**{field: given[fact] for field, fact in facts(cls).items() if fact in given})
        for name, cls in jb.REGISTRY.items()
        if name not in wrapped and not issubclass(cls, UNSUPPORTED)
    }
    return others | wrapped | {"tsallis-inf rv": jb.TsallisINF("rv"), "zimmert-seldin, skipping": jb.ZimmertSeldin(skipping=True)}


def table_of_every_learner() -> None:
    print("One agent, µs of one decision: wall (median) / processor\n\n| learner | µs |\n|---|---|")
    costs = {name: of_agent(jb.Agent(learner, ARMS, jax.random.key(0)), 400) for name, learner in every_learner().items()}
    for name, one in sorted(costs.items(), key=lambda item: item[1].wall):
        print(f"| {name} | {shown(one)} |")


def table_of_durable_agents(learner: Any = None, calls: int = 2000) -> None:
    """A durable agent by how it commits. A flush is one fsync of the write-ahead log; a group of n decisions shares one."""
    learner = learner or jb.DelayedThompson()
    print(
        "µs of one decision with its feedback, Thompson sampling: wall (median) / processor; flushes of the disk for each decision\n"
    )
    print("| | µs | flushes |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        with open(Path(folder, "probe"), "wb", buffering=0) as file:
            walls = []
            for _ in range(200):
                begun = time.perf_counter()
                file.write(bytes(4096))
                os.fsync(file.fileno())
                walls.append(time.perf_counter() - begun)
            print(f"| write and fsync of 4 kB, alone | {1e6 * np.median(walls):.0f} | 1 |")
        for size, flush in ((1, True), (10, True), (100, True), (1, False), (None, None)):
            path, key = Path(folder, f"{size}{flush}.db"), jax.random.key(0)
            agent = jb.Agent(learner, ARMS, key) if size is None else jb.Agent.open(path, learner, ARMS, key, flush=bool(flush))
            with agent:
                one = _in_groups(agent, size or 1, calls)
            what = "in memory" if size is None else f"groups of {size}" if size > 1 else "each call" if flush else "flush=False"
            flushes = f"{2 / size if size == 1 else 1 / size:g}" if size and flush else "0"
            print(f"| {what} | {1e6 * one.wall:.0f} / {1e6 * one.processor:.0f} | {flushes} |", flush=True)


def _in_groups(agent: jb.Agent, size: int, calls: int) -> Cost:
    """``calls`` decisions with their feedback one group later, ``size`` of each in one commit."""
    before, walls, start = [], [], 0.0
    first = WARM_UP // size + 1
    for number in range(first + calls // size):
        if number == first:
            start = time.process_time()
        begun = time.perf_counter()
        with agent.group() if size > 1 else contextlib.nullcontext():
            tickets = [agent.act() for _ in range(size)]
            for ticket in before:
                agent.observe(ticket.id, STREAM[ticket.id % len(STREAM), ticket.arm])
        before = tickets
        walls.append((time.perf_counter() - begun) / size)
    return Cost(float(np.median(walls[first:])), (time.process_time() - start) / calls)


def main() -> None:
    parser = argparse.ArgumentParser(description="Decisions per second of a live agent.")
    parser.add_argument("--every", action="store_true", help="one agent, every learner of the registry")
    parser.add_argument("--durable", action="store_true", help="a durable agent with and without groups")
    options = parser.parse_args()
    table_of_durable_agents() if options.durable else table_of_every_learner() if options.every else table_beside_others()


def table_beside_others() -> None:
    print("µs of one decision: wall (median) / processor; in brackets, how many times the wall time of one agent\n")
    print("| | one agent | propensities read | durable | durable, no flush | mabwiser | Vowpal Wabbit |")
    print("|---|---|---|---|---|---|---|")
    for name, learner in LEARNERS.items():
        key = jax.random.key(0)
        mine = of_agent(jb.Agent(learner, ARMS, key), 2000)
        cells = [shown(mine), shown(of_agent(jb.Agent(learner, ARMS, key), 2000, read=True))]
        with tempfile.TemporaryDirectory() as folder:
            for flush in (True, False):
                with jb.Agent.open(Path(folder, f"{flush}.db"), learner, ARMS, key, flush=flush) as agent:
                    cells.append(shown(of_agent(agent, 500), mine))
        cells.append(shown(of_mabwiser(name, 2000), mine) if name in ("thompson", "ucb1") else "–")
        cells.append(shown(of_vowpal_wabbit(2000), mine) if name == "thompson" else "–")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print(f"\nA fleet of {FLEET:,}: million decisions a second, by wall time (median) / by processor time\n")
    print("| " + " | ".join(LEARNERS) + " |\n" + "|---" * len(LEARNERS) + "|")
    reading = jb.Agent(jb.DelayedThompson(), ARMS, jax.random.key(0), fleet=FLEET)
    read = cost(lambda: ((ticket := reading.act()), ticket.probability, ticket.id, ticket.arm)[2:], reading.observe, 4, warm_up=2)
    fleets = [of_agent(jb.Agent(learner, ARMS, jax.random.key(0), fleet=FLEET), 60) for learner in LEARNERS.values()]
    print("| " + " | ".join(f"{FLEET / one.wall / 1e6:.2f} / {FLEET / one.processor / 1e6:.2f}" for one in fleets) + " |")
    print(f"\nThompson sampling, every propensity read: {FLEET / read.wall / 1e6:.2f} / {FLEET / read.processor / 1e6:.2f}")


if __name__ == "__main__":
    main()
