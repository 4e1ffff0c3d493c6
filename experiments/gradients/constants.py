"""How far can the 10 and the 24 of the paper be lowered? Tuned constants over arms, delays, gaps and regimes.

    python experiments/gradients/constants.py [OUT] [STEPS] [RUNS]

Each task tunes ``linear`` and ``factor`` from the paper's values; then every tuned pair plays every task: rows are where the
constants were tuned, columns where they are used, numbers are regret over that of the task's own constants. The drift is the
largest ratio x_{t+d,i}/x_{t,i} seen in any round, arm and run (the key lemma bounds it by 2 for the paper's constants).
Writes OUT/constants.json.
"""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from jaxbandit._core.fields import float_dtype, pytree_dataclass, static

ROUNDS = 5000


@pytree_dataclass
class Drift:
    """The largest x_{t,i}/x_{t-d,i} so far."""

    delay: int = static()

    def init(self, num_arms, runs_shape):
        past = jnp.full((max(self.delay, 1), num_arms, *runs_shape), 1 / num_arms, float_dtype())
        return past, jnp.ones(runs_shape, float_dtype())

    def update(self, state, info):
        past, largest = state
        row = (info.t % past.shape[0]).astype(jnp.int32)
        ratio = (info.probabilities / past[row]).max(0)
        return past.at[row].set(info.probabilities), jnp.maximum(largest, ratio)

    def read(self, state):
        return {"drift": state[1]}


def tasks():
    """Name -> losses, delay."""
    for arms, delay, gap in [(2, 5, 0.2), (5, 5, 0.2), (5, 20, 0.2), (5, 20, 0.1), (10, 20, 0.2)]:
        name = f"K={arms} d={delay} gap={gap}"
        yield f"{name} stochastic", jb.losses.Bernoulli([0.5 - gap] + [0.5] * (arms - 1)), delay
        yield f"{name} adversarial", jb.losses.StochasticallyConstrained(gap, arms=arms), delay


def main(out: Path, steps: int, runs: int) -> None:
    key, found = jax.random.key(0), {}
    everything = list(tasks())
    for name, law, delay in everything:
        tuned = jb.tune(
            jb.BestOfBothWorlds(delay), law, jb.delays.Fixed(delay), rounds=ROUNDS, steps=steps, runs=runs,
            only=["linear", "factor"], fresh_runs=1024, audit=False, key=key,
        )  # fmt: skip
        drift = jb.simulate(
            tuned.learner, law, jb.delays.Fixed(delay), rounds=ROUNDS, runs=256, key=key, record=1, measure=[Drift(delay)]
        ).measured["drift"][-1]
        found[name] = {
            "linear": float(tuned.learner.linear),
            "factor": float(tuned.learner.factor),
            "before": [tuned.before.value, tuned.before.error],
            "after": [tuned.after.value, tuned.after.error],
            "drift": [float(np.median(drift)), float(drift.max())],
        }
        print(name, json.dumps(found[name]), flush=True)
    for name in found:
        found[name]["elsewhere"] = {}
        for other, law, delay in everything:
            learner = jb.BestOfBothWorlds(delay, found[name]["linear"], found[name]["factor"])
            end = jb.simulate(
                learner, law, jb.delays.Fixed(delay), rounds=ROUNDS, runs=512, key=jax.random.key(1), record=24,
                measure=[jb.ControlVariates()],
            ).estimate()  # fmt: skip
            found[name]["elsewhere"][other] = float(end.mean[-1]) / found[other]["after"][0]
        print(name, {other: round(ratio, 2) for other, ratio in found[name]["elsewhere"].items()}, flush=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / "constants.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    given = sys.argv[1:]
    main(Path(given[0] if given else "out"), *(int(one) for one in given[1:] or (30, 256)))
