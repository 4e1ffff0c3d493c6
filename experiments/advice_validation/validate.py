"""Is the advice true? Random environments with known truth: a log of each, the advice, and the regret of the advised learner.

An environment has 2 to 50 arms, conversion rates, delays by arm and outcome, a window, and a logging policy; some have revenue in place
of conversions, and some report failures before the window closes. A log is drawn from it and handed to ``jb.advise``. The true regret
of every candidate is measured by the simulator beside this file, which shares no code with the library: simulator.py in NumPy, and the
same in C for speed. Several processes with different ``--arms`` may share a folder.

    python experiments/advice_validation/validate.py --out FOLDER --environments 200    # resumes where it was stopped
    python experiments/advice_validation/validate.py --out FOLDER --report        # the table; --figure FILE for the figure
"""

import argparse
import csv
import json
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from compiled import regrets
from simulator import LEARNERS, Environment, true_means

import jaxbandit as jb

ROUNDS, RUNS, TRUE_RUNS = 2000, 128, 128  # of the advice; of the truth
ARMS = (2, 3, 5, 10, 20, 50)


class Final(Exception):
    """The advice is final for the log as it is; what follows are other scenarios, which are not validated."""


def environment(random):
    """A random environment; its horizon is 1,000 days, so that two decisions are made each day."""
    arms = int(random.choice(ARMS))
    mean, strength = np.exp(random.uniform(np.log(0.02), np.log(0.3))), np.exp(random.uniform(np.log(20), np.log(400)))
    rates = random.beta(mean * strength, (1 - mean) * strength, arms)
    window = random.uniform(70, 110) if random.uniform() < 0.5 else random.uniform(300, 425)  # days
    base = window * np.exp(random.uniform(np.log(0.01), np.log(0.35)))
    differ = random.choice([0.0, 0.5, 1.5])  # standard deviation of the logarithms of the medians of the arms
    medians = base * np.exp(differ * random.normal(size=arms))
    failures = np.full(arms, np.inf)  # known when the window closes
    if random.uniform() < 0.3:  # reported before
        failures = window * np.exp(random.uniform(np.log(0.01), np.log(0.35)) + differ * random.normal(size=arms))
    values = np.ones((arms, 1))
    if arms in (2, 5, 10) and random.uniform() < 0.4:  # revenue: lognormal, cut off at 1
        values = np.minimum(0.1 * np.exp(random.uniform(0.3, 1.0) * random.normal(size=(arms, 500))), 1)
        values *= np.exp(0.2 * random.normal(size=(arms, 1)))
        values = np.minimum(values, 1)
    return Environment(rates, medians, np.full(arms, random.uniform(0.4, 1.2)), failures, values, window, 1000.0, ROUNDS)


def write_log(env, random, path):
    """A log with arms drawn evenly, unevenly, or mostly one of them; returns the policy."""
    rows, arms = int(random.choice([2000, 6000])), len(env.rates)
    policy = str(random.choice(["uniform", "uneven", "one arm"]))
    chances = {
        "uniform": np.ones(arms),
        "uneven": random.dirichlet(np.full(arms, 2.0)) + 0.2 / arms,
        "one arm": np.where(np.arange(arms) == random.integers(arms), 4.0 * arms, 1.0),
    }[policy]
    times, which = env.times(random, rows, 1)[:, 0], random.choice(arms, rows, p=chances / chances.sum())
    converts = random.uniform(size=rows) < env.rates[which]
    delays = np.where(converts, env.medians[which], env.failures[which]) * np.exp(env.spreads[which] * random.normal(size=rows))
    values = np.where(converts, env.values[which, random.integers(env.values.shape[1], size=rows)], 0.0)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["arm", "action_time", "feedback_time", "value"])
        for arm, start, delay, value in zip(which, times, delays, values, strict=True):
            end = start + delay
            shown = end <= times[-1]  # the log ends with the last action
            writer.writerow([f"arm {arm}", round(86400 * start), round(86400 * end) if shown else "", value if shown else ""])
    return policy, rows


def environment_with_log(index):
    """An environment, its log, the logging policy, the number of rows, and how many logs were refused before."""
    random, refused = np.random.default_rng((2026, index)), 0
    while True:
        env = environment(random)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            policy, rows = write_log(env, random, f"{folder}/log.csv")
            try:
                log = jb.load_log(f"{folder}/log.csv", arm="arm", window=86400 * env.window, reward="value")
                if len(log.arms) == len(env.rates) and log.outcomes.converted.any():
                    return env, log, policy, rows, refused
            except ValueError:
                pass
        refused += 1  # a log without advice, or without one of the arms: draw another


def true_regrets(env, window, index):
    """Learner and constants -> mean regret and its standard error; ``window`` is that of the learned delay curves, in rounds."""
    found = {}
    for place, label in enumerate(LEARNERS):
        for constants, lost in regrets(env, label, window, TRUE_RUNS, (index, place)).items():
            found[f"{label}|{constants}"] = (float(lost.mean()), float(lost.std(ddof=1) / np.sqrt(TRUE_RUNS)))
    return found


def validate(index):
    """One environment: everything that is measured, as a dictionary."""
    env, log, policy, rows, refused = environment_with_log(index)
    begin, answers = time.process_time(), []

    def keep(answer):
        answers.append(answer)
        if answer.final:
            raise Final

    try:
        jb.advise(log, rounds=ROUNDS, runs=RUNS, seed=index, learners=list(LEARNERS), on_answer=keep)
    except Final:
        advice = answers[-1]
    seconds, learned = time.process_time() - begin, advice.chosen["censored-kl-ucb"][1].window
    label = advice.recommended or "uniform"
    standing = next(one for one in advice.ranking() if one.label == label)
    baseline = next(one for one in advice.ranking() if one.label == "uniform")
    means = true_means(env)
    return {
        "index": index,
        "arms": len(env.rates),
        "rows": rows,
        "policy": policy,
        "refused": refused,
        "binary": bool((env.values == 1).all()),
        "reported": bool(np.isfinite(env.failures).all()),  # failures, before the window closes
        "window": env.window,
        "differs": log.dependence.differs,
        "advised": f"{label}|{advice.chosen[label][0]}",
        "recommended": advice.recommended,
        "interval": standing.lost,
        "uniform_interval": baseline.lost,
        "uniform_truth": float(ROUNDS * (means.max() - means.mean())),
        "warned": advice.recommended is None or any(text.startswith("Warning") for text in advice.summary()),
        "risk": advice.risk(label),
        "truth": true_regrets(env, learned, index),
        "learned": learned,
        "seconds": seconds,
    }


def report(found):
    """The numbers of docs/advice.md."""
    advised = np.array([one["truth"][one["advised"]][0] for one in found])
    best = np.array([min(mean for mean, _ in one["truth"].values()) for one in found])
    uniform = np.array([one["uniform_truth"] for one in found])
    ratio, above = advised / np.maximum(best, 1e-9), advised / np.maximum(uniform, 1e-9)
    errors = np.array([one["truth"][one["advised"]][1] for one in found])
    covered = np.array(
        [one["interval"][1] - 2 * e <= a <= one["interval"][2] + 2 * e for one, a, e in zip(found, advised, errors, strict=True)]
    )
    even = np.array(
        [one["uniform_interval"][1] <= u <= one["uniform_interval"][2] for one, u in zip(found, uniform, strict=True)]
    )
    warned = np.array([one["warned"] for one in found])
    print(f"environments: {len(found)}; a learner was recommended in {sum(one['recommended'] is not None for one in found)}")
    print(
        "regret of the advised learner / best candidate: median {:.2f}, 90th percentile {:.2f}, largest {:.2f}".format(
            *np.quantile(ratio, [0.5, 0.9, 1])
        )
    )
    print(f"within 1.2 of the best candidate: {np.mean(ratio <= 1.2):.1%}; within 1.5: {np.mean(ratio <= 1.5):.1%}")
    print(
        "regret of the advised learner / uniform allocation: median {:.2f}, 90th percentile {:.2f}, largest {:.2f}".format(
            *np.quantile(above, [0.5, 0.9, 1])
        )
    )
    print(
        f"worse than uniform allocation by over 10%: {int((above > 1.1).sum())}, of which without a warning: {int(((above > 1.1) & ~warned).sum())}"
    )
    print(f"a warning was given in {int(warned.sum())}")
    print(
        f"95% interval covers the true regret of the advised learner: {covered.mean():.1%}; of uniform allocation: {even.mean():.1%}"
    )
    print(f"processor seconds of one advice: median {np.median([one['seconds'] for one in found]):.0f}")
    lost = np.sum(advised) / np.sum(uniform), np.sum(best) / np.sum(uniform)
    print("total regret / that of uniform allocation: advised {:.2f}, best candidate of each {:.2f}".format(*lost))
    for label in sorted({one["advised"] for one in found}):
        print(f"  advised {sum(one['advised'] == label for one in found):3d} × {label}")
    fixed = {name: np.sum([one["truth"][name][0] for one in found]) / np.sum(uniform) for name in found[0]["truth"]}
    for name, value in sorted(fixed.items(), key=lambda one: one[1]):
        print(f"  always {name}: {value:.2f}")


def draw_figure(found, path):
    from jaxbandit import plots

    figure, panels = plots.figure(2)
    advised = np.array([one["truth"][one["advised"]][0] for one in found])
    best = np.array([min(mean for mean, _ in one["truth"].values()) for one in found])
    uniform = np.array([one["uniform_truth"] for one in found])
    for panel, values, title in zip(
        panels,
        (advised / best, advised / uniform),
        ("Advised learner against the best candidate", "Advised learner against uniform allocation"),
        strict=True,
    ):
        panel.plot(np.sort(values), np.arange(1, len(values) + 1) / len(values), color=plots.COLOURS[0], drawstyle="steps-post")
        panel.axvline(1.2 if title.endswith("candidate") else 1.0, color="#666666", linewidth=0.8)
        panel.set(xlabel="ratio of true regrets", ylabel="share of the environments", title=title, ylim=(0, 1.02))
    figure.savefig(path, dpi=120)


def read(file):
    """The finished environments in order of their index; a line that was cut off by an interruption is measured again."""
    found = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            one = json.loads(line)
            found[one["index"]] = one
        except ValueError:
            pass
    return [found[index] for index in sorted(found)]


def order(environments, arms, block=50):
    """Indices with these numbers of arms: in blocks, and within a block environments with the same compiled programs together."""

    def shape(index):
        env = environment(np.random.default_rng((2026, index)))
        return len(env.rates), bool((env.values == 1).all()), env.window > 200

    chosen = [index for index in range(environments) if shape(index)[0] in arms]
    return sorted(chosen, key=lambda index: (index // block, *shape(index), index))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--environments", type=int, default=200)
    parser.add_argument("--arms", type=int, nargs="*", default=ARMS, help="only environments with these numbers of arms")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "environments.jsonl"
    found = read(file)
    if not (options.report or options.figure):
        done = {one["index"] for one in found}
        for index in order(options.environments, options.arms):
            if index not in done:
                found.append(validate(index))
                with open(file, "a") as lines:  # a line is complete or, after an interruption, ignored
                    lines.write(f"\n{json.dumps(found[-1])}\n")
    report(found)
    if options.figure:
        draw_figure(found, options.figure)


if __name__ == "__main__":
    main()
