"""Rates with free knots, tuned by gradients from the taper, against the taper with tuned κ and p.

    python -m experiments.frontier.knots [--arms 2] [--delay 10] [--rounds 1000] [--knots 6] [--turns 3] [--steps 12] [--out FILE]

Goal of both: S + W, the stochastic regret at gap 0.2 plus the largest regret over all tables found so far. After each tuning a search adds
the worst table of the tuned learner. At the end each learner is searched again from the tables of both, with another seed.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxbandit as jb
from jaxbandit._core.fields import number, pytree_dataclass
from jaxbandit._io.files import write_whole


@pytree_dataclass
class KnottedFTRL(jb.TaperedFTRL):
    """The rates of TaperedFTRL times factors that are log-linear between knots, equally spaced in t from 1 to T."""

    tsallis_knots: Any = number(default=(1.0, 1.0), low=1e-2, high=1e2, axes="J")
    entropy_knots: Any = number(default=(1.0, 1.0), low=1e-2, high=1e2, axes="J")

    def inverse_rates(self, state: Any, round: Any, num_arms: int) -> tuple[jax.Array, jax.Array]:
        tsallis, entropy = super().inverse_rates(state, round, num_arms)
        return tsallis * self._factor(self.tsallis_knots, round.time), entropy * self._factor(self.entropy_knots, round.time)

    def _factor(self, knots: Any, time: jax.Array) -> jax.Array:
        logs = jnp.log(jnp.asarray(knots))
        last = logs.shape[0] - 1
        at = jnp.clip((time - 1) / (self.horizon - 1), 0, 1) * last
        hats = [jnp.maximum(1 - jnp.abs(at - place), 0) for place in range(last + 1)]
        return jnp.exp(sum(hat * logs[place] for place, hat in enumerate(hats)))


def goal(regrets: jax.Array) -> jax.Array:
    return regrets[0] + regrets[1:].max()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = {"arms": 2, "delay": 10, "rounds": 1000, "knots": 6, "turns": 3, "steps": 12}
    for name, default in given.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    arms, delay, rounds = arguments.arms, arguments.delay, arguments.rounds
    delays, losses = jb.delays.Fixed(delay), jb.losses.Bernoulli([0.4] + [0.6] * (arms - 1))
    ones = np.ones(arguments.knots)
    starts = {
        "κ and p": (jb.TaperedFTRL(rounds), ["robustness", "power"]),
        "knots": (KnottedFTRL(rounds, tsallis_knots=ones, entropy_knots=ones), ["tsallis_knots", "entropy_knots"]),
    }

    def stochastic(learner: Any) -> list[float]:
        regrets = jb.simulate(learner, losses, delays, rounds=rounds, runs=2048, seed=7, record=1).regret[-1].astype(float)
        return [float(regrets.mean()), float(regrets.std(ddof=1) / np.sqrt(len(regrets)))]

    def searched(learner: Any, tables: list[Any], seed: int) -> jb.WorstCase:
        return jb.worst_case(learner, delays, arms, rounds, budget=1, seed=seed, starts=tables)

    begun, tables, tuned = time.process_time(), [searched(jb.TaperedFTRL(rounds), [], 0).table], {}
    for name, (learner, only) in starts.items():
        for turn in range(arguments.turns):
            options = {"steps": arguments.steps, "runs": 256, "fresh_runs": 512, "audit": False, "seed": turn}
            # The tables of both learners: neither is tuned against a weaker adversary.
            learner = jb.tune(
                learner, [losses, *tables], delays, rounds=rounds, only=only, goal=goal, optimizer=optax.adam(0.1), **options
            ).learner
            tables.append(searched(learner, tables, turn + 1).table)
        tuned[name] = learner
    rows = []
    for name, learner in {"TaperedFTRL, default": jb.TaperedFTRL(rounds), **tuned}.items():
        found = searched(learner, tables, 100)
        numbers = {
            field: np.round(np.asarray(getattr(learner, field), float), 3).tolist() for field in starts.get(name, (0, ()))[1]
        }
        rows.append({"learner": name, "S": stochastic(learner), "W": [found.regret, found.error], "numbers": numbers})
        print(f"{name:22s} S {rows[-1]['S'][0]:6.1f}  W {found.regret:6.1f}  {numbers}", flush=True)
    done = {"setting": {name: getattr(arguments, name) for name in given}, "rows": rows, "seconds": time.process_time() - begun}
    print(f"{done['seconds']:.0f} s of processor time")
    if arguments.out:
        write_whole(arguments.out, json.dumps(done, indent=1).encode())


if __name__ == "__main__":
    main()
