"""Standard error × √cost of the estimators without a bias, beside paired differences and the jump tangent.

    python experiments/gradients/unbiased.py [RUNS] [FILE]

Nine of the 27 settings arms × delay × constants: arms and delay grow together, each with the paper's, lower and tuned constants of MZS22.
Derivative in the logarithm of ``factor``, T = 500, coins with a gap of .2. "Path derivative and branches" is the unbiased estimator with nothing in place
of the jump: what measure-valued derivatives, smoothed perturbation analysis and stochastic automatic differentiation have in common, the
part of the jump and the part of the path estimated apart, with the play left out as their second measure. Cost is processor time over that of a
simulation of as many runs. FILE, by default unbiased.json beside this script, gets all numbers.
"""

import json
import math
import sys
from pathlib import Path

import jax.numpy as jnp
from table import cpu_time

import jaxbandit as jb
from jaxbandit.gradients import unbiased
from jaxbandit.gradients.jump import Jump, JumpTangent
from jaxbandit.pytrees import pytree_dataclass

ROUNDS, GAP = 500, 0.2
SHAPES = [(2, 0), (5, 5), (10, 20)]  # arms, delay
CONSTANTS = {"the paper's (10, 24)": (10.0, 24.0), "lower (1, 1)": (1.0, 1.0), "tuned (.1, .5)": (0.1, 0.5)}
ROWS = {
    "paired differences, step .3": "paired",
    "jump tangent": "jump",
    "unbiased": "unbiased",
    "path derivative and branches": "unbiased",
    "score function": "score",
}
HERE = Path(__file__).parent / "unbiased.json"


@pytree_dataclass
class PathOnly(JumpTangent):
    """Feedback with the derivative of the weight 1/x alone: nothing stands for the jump."""

    def of_play(self, game, state, round, probabilities, arm, loss):
        means, squares = game.losses.expected(round.t), game.losses.second_moment(round.t)
        nothing = jnp.zeros_like(loss)
        return Jump.of(game.learner, state, round, probabilities, arm, loss, means, squares, self.chances, self.horizon, nothing)


def main(runs: int, file: Path) -> None:
    found = []
    print("| K, d | constants | " + " | ".join(f"{row}: SE × √cost | value ± SE" for row in ROWS) + " |")
    print("|---|---|" + "---|---|" * len(ROWS))
    for arms, delay in SHAPES:
        law, delays, costs = jb.losses.Bernoulli([0.5 - GAP] + [0.5] * (arms - 1)), jb.delays.Fixed(delay), {}
        for constants, (linear, factor) in CONSTANTS.items():
            learner, cells = jb.BestOfBothWorlds(max(delay, 1), linear, factor), []
            options = {"rounds": ROUNDS, "runs": runs, "seed": 0}
            if not costs:
                # Plain rounds on arrays, as all estimators play them.
                _, simulation = cpu_time(lambda: jb.simulate(learner, law, delays, record=1, **options))  # noqa: B023
            for row, estimator in ROWS.items():
                unbiased.JumpTangent = PathOnly if row.startswith("path") else JumpTangent

                def gradient(learner=learner, law=law, delays=delays, estimator=estimator):
                    return jb.regret_gradient(learner, law, delays, only=["factor"], estimator=estimator, **options)  # noqa: B023

                if row in costs:
                    one = gradient()
                else:
                    one, seconds = cpu_time(gradient)
                    costs[row] = seconds / simulation
                slope, error = (factor * float(part.factor) for part in (one.gradient, one.error))
                scaled = error * math.sqrt(costs[row] * runs / 2048)  # as if 2048 runs had been made
                found.append(
                    {"arms": arms, "delay": delay, "constants": constants, "estimator": row, "cost": costs[row], "slope": slope}
                    | {"error": error, "SE × √cost": scaled}
                )
                cells.append(f"{scaled:.3g} | {slope:.4g} ± {error:.2g}")
            print(f"| {arms}, {delay} | {constants} | " + " | ".join(cells) + " |", flush=True)
        print("cost, in simulations: " + ", ".join(f"{row} {cost:.1f}" for row, cost in costs.items()), flush=True)
    file.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    jb.use_all_cores()
    given = sys.argv[1:]
    main(int(given[0]) if given else 2048, Path(given[1]) if len(given) > 1 else HERE)
