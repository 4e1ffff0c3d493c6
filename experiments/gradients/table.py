"""Standard error × √cost and bias of every estimator, on the learner of the paper: the table of docs/appendix/gradient_estimators.md.

    python experiments/gradients/table.py [RUNS]

K = 5, d = 5, gaps .2, T = 2000; the derivative in the logarithm of γ₀, at three settings from the paper's constants to well
tuned ones, in a stochastic and an adversarial game. Two minutes on two cores.
"""

import math
import sys
import time

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

import jaxbandit as jb
from jaxbandit._core.fields import given, pytree_dataclass
from jaxbandit.learners.ftrl import log_arms

ROUNDS, ARMS, DELAY, GAP = 2000, 5, 5, 0.2
SETTINGS = [(0, 0), (-2, -4), (-4, -7)]  # logarithms of the factors on η₀ and γ₀
GAMES = {
    "stochastic": jb.losses.Bernoulli([0.3] + [0.5] * 4),
    "adversarial": jb.losses.StochasticallyConstrained(GAP, arms=ARMS),
}
# Paired differences at two steps, extrapolated to step 0, with far more runs: value and standard error.
REFERENCE = {
    "stochastic": [(27.346, 0.015), (8.034, 0.017), (0.552, 0.010)],
    "adversarial": [(27.122, 0.016), (7.682, 0.024), (0.537, 0.025)],
}
ROWS = {
    "paired differences, step .3": {"estimator": "paired", "control_variates": False},
    "paired, step .3, control variates": {"estimator": "paired"},
    "paired, step 1, control variates": {"estimator": "paired", "step": 1.0},
    "score function": {"estimator": "score", "control_variates": False},
    "fluid limit": {"estimator": "fluid"},
    "jump tangent": {"estimator": "jump", "control_variates": False},
    "jump tangent, control variates": {"estimator": "jump"},
}


@pytree_dataclass
class Scaled(jb.BestOfBothWorlds):
    """The learner of the paper with η₀ and γ₀ times a factor."""

    max_delay: ArrayLike = given("max_delay", default=float(DELAY))
    tsallis_start: ArrayLike = 1.0
    entropy_start: ArrayLike = 1.0

    def inverse_rates(self, state, round, num_arms):
        log_k, delay = log_arms(num_arms), self.max_delay
        eta = (10 * delay + (delay / (num_arms ** (1 / 3) * log_k)) ** 2) * self.tsallis_start
        gamma = (24 * delay) ** 2 * (num_arms ** (2 / 3) * log_k) * self.entropy_start
        return jnp.sqrt(round.time + eta), jnp.sqrt((round.total_outstanding + gamma) / log_k)


def cpu_time(function):
    """The result of a second call, and the processor time it took: other programs on the machine do not count."""
    function()  # compile
    start = time.process_time()
    return function(), time.process_time() - start


def main(runs: int) -> None:
    key, delays = jax.random.key(0), jb.delays.Fixed(DELAY)
    game = GAMES["stochastic"]
    _, simulation = cpu_time(lambda: jb.simulate(Scaled(), game, delays, rounds=ROUNDS, runs=runs, key=key, record=1))
    print(f"{runs} runs; one simulation takes {simulation:.2f} s of processor time; cost is for two numbers, in simulations\n")
    print("| estimator | cost | " + " | ".join(f"{name}: SE × √cost | bias %" for name in GAMES) + " |")
    print("|---|---|" + "---|---|" * len(GAMES))
    for name, options in ROWS.items():
        cost, cells = 0.0, []
        for law_name, law in GAMES.items():
            spread, bias = [], []
            for place, (eta, gamma) in enumerate(SETTINGS):
                learner = Scaled(tsallis_start=math.exp(eta), entropy_start=math.exp(gamma))

                def gradient(learner=learner, law=law, options=options):
                    numbers = ["tsallis_start", "entropy_start"]
                    return jb.regret_gradient(learner, law, delays, rounds=ROUNDS, runs=runs, key=key, only=numbers, **options)

                if cost:
                    found = gradient()
                else:
                    found, seconds = cpu_time(gradient)
                    cost = seconds / simulation
                value, error = REFERENCE[law_name][place]
                spread.append(float(found.error.entropy_start) * math.exp(gamma))
                off = float(found.gradient.entropy_start) * math.exp(gamma) - value
                bias.append(f"{100 * off / value:+.1f} ± {100 * math.hypot(spread[-1], error) / value:.1f}")
            # As if 2048 runs had been made: what the table of docs/appendix/gradient_estimators.md is for.
            cells.append(" / ".join(f"{one * (cost * runs / 2048) ** 0.5:.3g}" for one in spread))
            cells.append(" / ".join(bias))
        print(f"| {name} | {cost:.1f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2048)
