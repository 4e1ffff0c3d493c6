"""The better arm converts late: advice that pools the delays of all arms recommends a learner worse than uniform allocation."""

import heapq

import numpy as np

import jaxbandit as jb
from jaxbandit.advice import candidates

ROWS, DAYS, WINDOW = 2000, 20, 10
RATES, MEDIANS = (0.08, 0.12), (2 / 24, 4.0)  # of arms "fast" and "slow"; days


def delay(random, arm):
    return MEDIANS[arm] * np.exp(0.5 * random.normal())


def write_log(path):
    random, lines = np.random.default_rng(0), ["ad,shown,bought"]
    for time in np.sort(random.uniform(0, DAYS, ROWS)):
        arm = int(random.uniform() < 0.5)
        bought = int(86400 * (time + delay(random, arm))) if random.uniform() < RATES[arm] else ""
        lines.append(f"{('fast', 'slow')[arm]},{int(86400 * time)},{bought}")
    path.write_text("\n".join([*lines, ""]))
    return path


def true_loss_of_thompson(runs):
    """Conversions lost against the slow arm, mean and standard error, by an event queue in continuous time."""
    lost = np.zeros(runs)
    for run in range(runs):
        random, queue, counts = np.random.default_rng((1, run)), [], np.ones((2, 2))
        for time in np.sort(random.uniform(0, DAYS, ROWS)):
            while queue and queue[0][0] <= time:
                _, arm, converted = heapq.heappop(queue)
                counts[arm, 1 - converted] += 1
            arm = int(np.argmax(random.beta(counts[:, 0], counts[:, 1])))
            lost[run] += RATES[1] - RATES[arm]
            wait = delay(random, arm)
            converted = int(random.uniform() < RATES[arm] and wait <= WINDOW)
            heapq.heappush(queue, (time + (wait if converted else WINDOW), arm, converted))
    return lost.mean(), lost.std() / np.sqrt(runs)


def test_the_slow_arm(tmp_path, monkeypatch):
    monkeypatch.setattr(candidates, "TRIED", {name: candidates.TRIED[name] for name in ("thompson", "uniform")})
    uniform = ROWS * (RATES[1] - RATES[0]) / 2
    mean, error = true_loss_of_thompson(40)
    assert mean > uniform + 3 * error  # so that Thompson sampling must not be recommended
    log = jb.load_log(write_log(tmp_path / "log.csv"), arm="ad", action="shown", feedback="bought", window=f"{DAYS // 2}d")
    advice = jb.advise(log, runs=128)
    assert advice.recommended is None
    assert advice.summary()[1].startswith("Delays differ by arm")
    assert "'slow' take longer than 3.3 days, of 'fast' 1.8 hours" in advice.summary()[1]
    for label, truth in (("uniform", uniform), ("thompson", mean)):
        _, low, high = next(one.lost for one in advice.ranking() if one.label == label)
        assert low <= truth <= high
