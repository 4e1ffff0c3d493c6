"""The jump tangent against brute-force differences on 20 random tasks, three learners each, one of them by two numbers.

    python experiments/gradients/random_tasks.py [RUNS] [FILE] [SEED] [ONLY]

Three arms, 300 rounds. The truth: paired differences at steps .6 and .3 with control variates, extrapolated to step 0, on RUNS runs
of each case; the jump tangent on as many other runs. A case ends early once its bias lies within 2 % or beyond by four standard errors (the
table judges by two, so that looking many times does no harm). FILE, by default random_tasks.json beside this script, keeps every case's sums:
a second call with more RUNS goes on where the first one ended, and one with RUNS = 0 only prints the table. SEED draws other tasks; ONLY
takes the cases whose name holds this word. "jump" for RUNS measures the jump tangent again, on 16 384 runs, beside the truth that FILE has: for
another rule of the quadrature.
"""

import json
import math
import sys
from pathlib import Path

import jax
import numpy as np

import jaxbandit as jb

TASKS, ROUNDS, ARMS, CHUNK = 20, 300, 3, 32_768
ESTIMATORS = {
    "wide": {"estimator": "paired", "step": 0.6},
    "narrow": {"estimator": "paired", "step": 0.3},
    "jump": {"estimator": "jump"},
}
HERE = Path(__file__).parent / "random_tasks.json"


def cases(seed: int = 0):
    """Label, losses, delays, learner, the hyperparameter."""
    rng = np.random.default_rng(seed)
    for task in range(TASKS):
        means = np.sort(rng.uniform(0.1, 0.9, ARMS))
        delay = int(rng.integers(0, 8))
        linear, factor = np.exp(rng.uniform(-2, 2, 2))
        scale = float(np.exp(rng.uniform(-0.3, 1)))
        law, delays = jb.losses.Bernoulli(means), jb.delays.Fixed(delay, bound=8)
        game = f"{task:2d}, d={delay}, means {', '.join(f'{one:.2f}' for one in means)}"
        learner, numbers = jb.BestOfBothWorlds(max(delay, 1), linear, factor), f"linear {linear:.2f}, factor {factor:.2f}"
        for name in ("factor", "tsallis_scale"):
            yield f"{game}, MZS22 {numbers}, by {name}", law, delays, learner, name
        yield f"{game}, Tsallis-INF scale {scale:.2f}", law, delays, jb.TsallisINF(scale=scale), "scale"
        yield f"{game}, delayed Exp3 scale {scale / 2:.2f}", law, delays, jb.DelayedExp3(scale=scale / 2), "scale"


def measured(law, delays, learner, name, first_run, runs, rounds=ROUNDS, estimators=tuple(ESTIMATORS)) -> dict[str, list[float]]:
    """Regret and derivatives in the logarithm of the hyperparameter, each a mean and its standard error over these runs."""
    numbers, value = {}, float(getattr(learner, name))
    for which in estimators:
        options = ESTIMATORS[which]
        # Other numbers for the jump tangent: its error is then independent of that of the differences.
        options = options | {"key": jax.random.key(which == "jump"), "runs": runs, "first_run": first_run, "only": [name]}
        found = jb.regret_gradient(learner, law, delays, rounds=rounds, **options)
        numbers[which] = [value * float(getattr(part, name)) for part in (found.gradient, found.error)]
        numbers["regret"] = [found.value, found.value_error]
    return numbers


def joined(old: dict | None, new: dict, runs: int) -> dict:
    """The means over the runs of both."""
    if old is None:
        return {"runs": runs} | new
    total = old["runs"] + runs
    one, other = old["runs"] / total, runs / total
    return {"runs": total} | {
        name: [one * old[name][0] + other * mean, math.hypot(one * old[name][1], other * error)]
        for name, (mean, error) in new.items()
    }


def compared(case: dict) -> tuple[float, float, float, float]:
    """The extrapolated derivative, the jump tangent's bias with its error, and the bias of the wide step, relative to it."""
    (wide, wide_error), (narrow, narrow_error), (jump, error) = (case[name] for name in ESTIMATORS)
    truth = (4 * narrow - wide) / 3
    noise = math.hypot(error, 4 / 3 * narrow_error, wide_error / 3)
    size = abs(truth) or 1.0  # where the number plays no part, both are 0
    return truth, (jump - truth) / size, noise / size, (wide - truth) / size


def verdict(case: dict, errors: float) -> str:
    """Whether the bias lies inside or outside of 2 %, by so many standard errors."""
    _, bias, noise, _ = compared(case)
    far = abs(bias) - 0.02
    return "inside" if far < -errors * noise else "outside" if far > errors * noise else "open"


def report(found: dict) -> None:
    print(
        "| task | runs | regret | derivative in the logarithm | bias of the jump tangent, % | of paired differences at step .6, % |"
    )
    print("|---|---|---|---|---|---|")
    kinds: dict[str, list[str]] = {"inside": [], "outside": [], "open": []}
    for label, case in found.items():
        truth, bias, noise, wide = compared(case)
        print(f"| {label} | {case['runs']} | {case['regret'][0]:.2f} | {truth:.4f} | {bias:+.2%} ± {noise:.2%} | {wide:+.2%} |")
        kinds[verdict(case, 2)].append(label)
    print(f"\n{len(found)} cases, by two standard errors: {len(kinds['inside'])} within 2 %, {len(kinds['outside'])} outside")
    for kind, title in (("outside", "outside"), ("open", "too noisy to tell")):
        print(f"{title}: " + ("; ".join(kinds[kind]) or "none"))


def jump_anew(file: Path, seed: int) -> None:
    """Measure the jump tangent of all cases of a file again."""
    found = json.loads(file.read_text())
    for label, *case in cases(seed):
        if label in found:
            found[label]["jump"] = measured(*case, first_run=0, runs=CHUNK // 2, estimators=["jump"])["jump"]
    file.write_text(json.dumps(found, indent=1) + "\n")
    report(found)


def main(runs: int, file: Path, seed: int, only: str) -> None:
    found = json.loads(file.read_text()) if file.exists() else {}
    for target in range(CHUNK, runs + CHUNK, CHUNK):
        for label, *case in cases(seed):
            done = found.get(label, {}).get("runs", 0)
            if only in label and done < min(target, runs) and (not done or verdict(found[label], 4) == "open"):
                size = min(target, runs) - done
                found[label] = joined(found.get(label), measured(*case, first_run=done, runs=size), size)
                file.write_text(json.dumps(found, indent=1) + "\n")
    report(found)


if __name__ == "__main__":
    given = sys.argv[1:]
    runs, file, seed, only = given + ["65536", str(HERE), "0", ""][len(given) :]
    if runs == "jump":
        jump_anew(Path(file), int(seed))
    else:
        main(int(runs), Path(file), int(seed), only)
