"""Seven estimators of the derivative of the expected regret at three horizons: the table of docs/notes/jump_tangent.md.

    python experiments/gradients/three_horizons.py [FILE] [RUNS]

Three learners, one of the library and two of a user's own class, each in an environment drawn from a seed that was used for nothing else.
Truth: paired differences at steps .6 and .3, extrapolated to step 0, on eight times as many runs of another key. Cost: processor time
over that of a simulation, the least of two calls after a first one that compiles. FILE keeps every row, and a second call resumes.
"""

import functools
import json
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import other_estimators

import jaxbandit as jb
from jaxbandit.extend import ImportanceWeighted, number, pytree_dataclass, static

HORIZONS, SEED, KEY, TRUTH = (100, 400, 1600), 20261121, 5, 6
LIBRARY = {
    "jump tangent": {"estimator": "jump"},
    "paired differences, step .3": {"estimator": "paired"},
    "unbiased": {"estimator": "unbiased"},
    "score function": {"estimator": "score"},
}
OTHERS = {
    "measure-valued derivatives": "measure-valued",
    "smoothed perturbation analysis": "smoothed",
    "stochastic AD": "stochastic AD",
}
ROWS = [*list(LIBRARY)[:3], *OTHERS, "score function"]
HERE = Path(__file__).parent / "three_horizons.json"


@pytree_dataclass
class PowerRegulariser(ImportanceWeighted):
    """FTRL with x = (a/(L - ν))^p, a = scale·√t: the log-barrier for p = 1, Tsallis entropy of power 2/3 for p = 3."""

    scale: Any = number(default=1.0, open_low=True)
    power: int = static(default=1)

    def init(self, num_arms, runs_shape):
        return jnp.zeros((num_arms, *runs_shape))

    def act(self, state, round):
        losses = state - jax.lax.stop_gradient(state.min(0))
        a = self.scale * jnp.sqrt(round.t.astype(losses.dtype))

        def newton(nu, losses, a):
            x = (a / (losses - nu)) ** self.power
            return nu - (x.sum(0) - 1) / jax.lax.stop_gradient((self.power * x / (losses - nu)).sum(0))

        held = jax.lax.stop_gradient((losses, a))
        # From the side on which the sum is at least 1; the last step has the derivatives of the solution.
        nu = jax.lax.fori_loop(0, 30, lambda _, nu: newton(nu, *held), -jnp.broadcast_to(held[1], losses.shape[1:]))
        x = (a / (losses - newton(jax.lax.stop_gradient(nu), losses, a))) ** self.power
        return x / x.sum(0), (), state

    def observe(self, state, observation):
        return state + observation.loss_estimate(state.shape[0])


def tasks():
    """Name, learner, number, losses, delays."""
    rng = np.random.default_rng(SEED)
    for name, learner, which in (
        ("MZS22 (1, 1) by factor", lambda d: jb.BestOfBothWorlds(d, 1.0, 1.0), "factor"),
        ("own class, log-barrier, by scale", lambda d: PowerRegulariser(0.5, power=1), "scale"),
        ("own class, Tsallis entropy of power 2/3, by scale", lambda d: PowerRegulariser(1.0, power=3), "scale"),
    ):
        arms, delay = int(rng.integers(2, 7)), int(rng.integers(1, 11))
        means = np.sort(rng.uniform(0.1, 0.9, arms)).round(2)
        label = f"{name}; K = {arms}, d = {delay}, means {', '.join(f'{one:.2f}' for one in means)}"
        yield label, learner(delay), which, jb.losses.Bernoulli(means), jb.delays.Fixed(delay)


def slope_of(row, game, which, rounds, runs, seed, **more) -> tuple[float, float]:
    """The derivative in the logarithm of the number, and its standard error."""
    value = float(getattr(game[0], which))
    if row in OTHERS:
        found = other_estimators.gradient(*game, rounds=rounds, runs=runs, seed=seed, number=which, estimator=OTHERS[row])
    else:
        options = LIBRARY[row] | {"only": [which], "verify": False} | more
        gradient = jb.regret_gradient(*game, rounds=rounds, runs=runs, seed=seed, **options)
        found = float(getattr(gradient.gradient, which)), float(getattr(gradient.error, which))
    return value * found[0], value * found[1]


def timed(function):
    """A result, and the least processor time of two calls after the first."""
    result, seconds = function(), []
    for _ in range(2):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return result, min(seconds)


def measured(game, which, rounds, runs) -> dict[str, Any]:
    """All estimators in one environment at one horizon."""
    _, simulation = timed(lambda: jb.simulate(*game, rounds=rounds, runs=runs, seed=KEY, record=1))
    paired = "paired differences, step .3"
    (wide, first), (narrow, second) = (slope_of(paired, game, which, rounds, 8 * runs, TRUTH, step=step) for step in (0.6, 0.3))
    found: dict[str, Any] = {"truth": [(4 * narrow - wide) / 3, math.hypot(4 / 3 * second, first / 3)]}
    for row in ROWS:
        (slope, error), seconds = timed(functools.partial(slope_of, row, game, which, rounds, runs, KEY))
        found[row] = [slope, error, seconds / simulation]
    return found


def show(found: dict[str, Any]) -> None:
    for label, by_horizon in found.items():
        print(f"\n{label}\n\n| estimator | cost | " + " | ".join(f"T = {rounds}" for rounds in by_horizon) + " |")
        print("|---|---|" + "---|" * len(by_horizon))
        truths = " | ".join("{:.3f} ± {:.3f}".format(*one["truth"]) for one in by_horizon.values())
        print(f"| derivative, extrapolated | | {truths} |")
        for row in ROWS:
            costs = [one[row][2] for one in by_horizon.values()]
            cells = [f"{one[row][1] * math.sqrt(one[row][2]):.2g}" for one in by_horizon.values()]
            print(f"| {row} | {min(costs):.1f} to {max(costs):.1f} | " + " | ".join(cells) + " |")
        for row in ("jump tangent", "paired differences, step .3"):
            cells = []
            for one in by_horizon.values():
                truth, error = one["truth"]
                cells.append(f"{(one[row][0] / truth - 1):+.1%} ± {math.hypot(error, one[row][1]) / abs(truth):.1%}")
            print(f"| bias of {row} | | " + " | ".join(cells) + " |")


def main(file: Path, runs: int) -> None:
    found = json.loads(file.read_text()) if file.exists() else {}
    for rounds in HORIZONS:
        for label, learner, which, losses, delays in tasks():
            mine = found.setdefault(label, {})
            if str(rounds) not in mine:
                mine[str(rounds)] = measured((learner, losses, delays), which, rounds, runs)
                file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
                print(rounds, label, flush=True)
    show(found)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", ".*plays nearly uniformly.*")
    given = sys.argv[1:]
    main(Path(given[0]) if given else HERE, int(given[1]) if len(given) > 1 else 2048)
