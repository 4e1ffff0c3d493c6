"""The jump tangent against brute-force differences on random tasks, three learners each.

    python experiments/gradients/random_tasks.py [TASKS] [RUNS]

Paired differences at steps .4 and .2 with control variates, extrapolated to step 0, on RUNS runs (10⁶ for a night, 8192 for ten
minutes). A case counts as an exception when the bias is above 2 % of the gradient by more than 4 standard errors.
"""

import sys

import jax
import numpy as np

import jaxbandit as jb

ROUNDS, ARMS = 300, 3


def cases(count: int):
    rng = np.random.default_rng(0)
    for task in range(count):
        means = np.sort(rng.uniform(0.1, 0.9, ARMS))
        delay = int(rng.integers(0, 8))
        linear, factor = np.exp(rng.uniform(-2, 2, 2))
        scale = float(np.exp(rng.uniform(-0.3, 1)))
        law, delays = jb.losses.Bernoulli(means), jb.delays.Fixed(delay, bound=8)
        yield task, law, delays, jb.BestOfBothWorlds(max(delay, 1), linear, factor), "factor"
        yield task, law, delays, jb.TsallisINF(scale=scale), "scale"
        yield task, law, delays, jb.DelayedExp3(scale=scale / 2), "scale"


def main(count: int, runs: int) -> None:
    biases, exceptions = [], []
    for task, law, delays, learner, name in cases(count):

        def slope(learner=learner, law=law, delays=delays, name=name, **options):
            found = jb.regret_gradient(learner, law, delays, rounds=ROUNDS, key=jax.random.key(0), only=[name], **options)
            return float(getattr(found.gradient, name)), float(getattr(found.error, name))

        (wide, wide_error), (narrow, error) = (slope(estimator="paired", step=step, runs=runs) for step in (0.4, 0.2))
        truth, error = (4 * narrow - wide) / 3, np.hypot(4 * error, wide_error) / 3
        found, own = slope(runs=min(runs, 8192))
        off, noise = (found - truth) / abs(truth), np.hypot(own, error) / abs(truth)
        label = f"{task} {type(learner).__name__} d={delays.delay} means {np.round(law.means, 2)}"
        print(
            f"{label}: {truth:.4f}, bias {100 * off:+.2f} ± {100 * noise:.2f} %, O(h²) part at .4 {100 * (wide / truth - 1):+.1f} %",
            flush=True,
        )
        biases.append((abs(off), noise))
        if abs(off) > 0.02 + 4 * noise:
            exceptions.append(label)
    within = np.mean([off <= 0.02 + 2 * noise for off, noise in biases])
    print(f"{len(biases)} cases, {100 * within:.0f} % within 2 % and two standard errors; exceptions: {exceptions or 'none'}")


if __name__ == "__main__":
    jb.use_all_cores()
    main(*(int(one) for one in sys.argv[1:] or (20, 8192)))
