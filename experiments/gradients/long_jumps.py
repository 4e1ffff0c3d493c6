"""What the bias of the jump tangent is where jumps are long: by the shape that α is exact for, for Banker, and by the threshold of reduced variance.

    python experiments/gradients/long_jumps.py [shapes|banker|threshold ...]

T = 200; four coins with means .12, .39, .61, .78, or the stochastically constrained adversary. The truth: paired differences at steps .6 and .3,
extrapolated to step 0. "shapes": Tsallis-INF and Banker by their scale, with α exact for f' ∝ (1 + u/c)^(-p), for several p; the
tasks on which the exponent of the Tsallis regulariser was chosen. "banker": its bias by scale and delay at the present rule, and with the
trapezoid. "threshold": reduced variance with a threshold of 16, one that is always and one that is never reached; the first also with the
baseline's derivative left out.
"""

import sys

import jax
import jax.numpy as jnp
from random_tasks import compared, measured

import jaxbandit as jb
from jaxbandit._core.fields import pytree_dataclass
from jaxbandit.gradients import jump
from jaxbandit.learners import tsallis
from jaxbandit.learners.ftrl import hybrid_stiffness

ROUNDS, TRUTH, RUNS = 200, 32_768, 8192
EXPONENTS = (3.0, 2.0, 1.5, 1.25, 1.01, 0.75)
COINS = jb.losses.Bernoulli([0.12, 0.39, 0.61, 0.78])
EIGHT = jb.losses.StochasticallyConstrained(0.35, arms=8)


@pytree_dataclass
class Banker(jb.BankerTsallisINF, jb.extend.ImportanceWeighted):
    """Banker with the jump tangent. It spends the share c/(c + savings left) of its sum in a play, so that its stiffness is (c + savings)·x^(-1/2)."""

    exponent: float = 2.0

    def stiffness(self, state, round, probabilities):
        return hybrid_stiffness(probabilities, self.cost(round) + state.savings, 0.0)


@pytree_dataclass
class Trapezoid(jb.BankerTsallisINF, jb.extend.ImportanceWeighted):
    """Banker with α = 1/2."""

    def stiffness(self, state, round, probabilities):
        return jnp.full_like(probabilities, jnp.inf)


@pytree_dataclass
class Tsallis(jb.TsallisINF):
    """Tsallis-INF with an exponent of its own."""

    exponent: float = 2.0


def alpha(jump, fall, exponent):
    """The α that is exact for (1 + u/c)^(-exponent) and a constant, with c such that it is 1/2 - jump·fall/6 for short jumps."""
    z = jnp.clip(2 * jump * fall / (exponent + 1), -0.75, 1e9)
    z = jnp.where(jnp.abs(z) < 1e-2, 1e-2, z)
    far = (1 + z) ** -exponent
    return ((1 - (1 + z) ** (1 - exponent)) / ((exponent - 1) * z) - far) / (1 - far)


def truth_of(law, delays, learner):
    return measured(law, delays, learner, "scale", 0, TRUTH, rounds=ROUNDS, estimators=("wide", "narrow"))


def cell(truth, law, delays, learner) -> str:
    """The jump tangent's bias in per cent."""
    found = truth | measured(law, delays, learner, "scale", 0, RUNS, rounds=ROUNDS, estimators=("jump",))
    _, bias, noise, _ = compared(found)
    return f"{100 * bias:+.1f} ± {100 * noise:.1f}"


def shapes() -> None:
    fall, quadrature = jump.fall, jump.quadrature
    jump.fall = lambda learner, *rest: (fall(learner, *rest)[0], learner.exponent)
    jump.quadrature = alpha
    jax.clear_caches()
    print("| learner, K, d | derivative | " + " | ".join(map(str, EXPONENTS)) + " |")
    for law in (COINS, EIGHT):
        tsallis_tasks = [(Tsallis, jb.TsallisINF, delay, scale) for delay in (0, 5) for scale in (0.3, 0.5, 0.8)]
        banker_tasks = [(Banker, jb.BankerTsallisINF, delay, scale) for delay in (2, 10) for scale in (0.8, 1.3)]
        for mine, plain, delay, scale in tsallis_tasks + banker_tasks:
            delays = jb.delays.Fixed(delay, bound=20)
            truth = truth_of(law, delays, plain(scale=scale))
            cells = [cell(truth, law, delays, mine(scale=scale, exponent=one)) for one in EXPONENTS]
            slope = (4 * truth["narrow"][0] - truth["wide"][0]) / 3
            print(f"| {plain.__name__} {scale}, {law.num_arms}, {delay} | {slope:.2f} | " + " | ".join(cells) + " |", flush=True)
    jump.fall, jump.quadrature = fall, quadrature
    jax.clear_caches()


def banker() -> None:
    print("| d | scale | bias, % | trapezoid |")
    for delay in (0, 2, 5):
        for scale in (0.78, 2.0, 5.0):
            delays = jb.delays.Fixed(delay, bound=20)
            truth = truth_of(COINS, delays, jb.BankerTsallisINF(scale=scale))
            cells = [cell(truth, COINS, delays, learner(scale=scale)) for learner in (Banker, Trapezoid)]
            print(f"| {delay} | {scale} | " + " | ".join(cells) + " |", flush=True)


def threshold() -> None:
    width = tsallis.CROSSING
    print("| K, d | 16, derivative left out | 16 | always | never |")
    for law in (jb.losses.Bernoulli([0.25, 0.3, 0.5]), jb.losses.StochasticallyConstrained(0.3, arms=9)):
        for delay in (0, 3):
            delays, cells = jb.delays.Fixed(delay, bound=20), []
            for value, ramp in ((16.0, 1e9), (16.0, width), (1e-6, width), (1e6, width)):
                tsallis.CROSSING = ramp
                jax.clear_caches()
                learner = jb.TsallisINF("rv", 2.2, value)
                cells.append(cell(truth_of(law, delays, learner), law, delays, learner))
            print(f"| {law.num_arms}, {delay} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    parts = {"shapes": shapes, "banker": banker, "threshold": threshold}
    for name in sys.argv[1:] or parts:
        parts[name]()
