"""Bias of the jump tangent against exact enumeration, in per cent: the table of docs/appendix/gradient_estimators.md.

PYTHONPATH=. python experiments/gradients/exact.py [ROUNDS [DELAY ...]]
"""

import sys

import jax
import pytest

jax.config.update("jax_enable_x64", True)

import jaxbandit as jb  # noqa: E402
from jaxbandit.learners import tsallis  # noqa: E402
from tests import enumeration  # noqa: E402
from tests.gradients.test_exact import GAMES, Floored  # noqa: E402

LEARNERS = {
    "MZS22 (10, 24)": (jb.BestOfBothWorlds(1.0, 10.0, 24.0), enumeration.MZS22(1, 10.0, 24.0), "factor"),
    "MZS22 (1, 1)": (jb.BestOfBothWorlds(1.0, 1.0, 1.0), enumeration.MZS22(1, 1.0, 1.0), "factor"),
    "MZS22 (.2, .1)": (jb.BestOfBothWorlds(1.0, 0.2, 0.1), enumeration.MZS22(1, 0.2, 0.1), "factor"),
    "Tsallis-INF": (jb.TsallisINF(scale=1.0), enumeration.Tsallis(1.0), "scale"),
    "Tsallis-INF, scale .7": (jb.TsallisINF(scale=0.7), enumeration.Tsallis(0.7), "scale"),
    "reduced variance, scale 2": (jb.TsallisINF("rv", 2.0, 0.7), enumeration.ReducedVariance(2.0, 0.7), "scale"),
    "delayed Exp3, scale .3": (jb.DelayedExp3(0.3), enumeration.Hedge(0.3), "scale"),
    "delayed Exp3, scale .7": (jb.DelayedExp3(0.7), enumeration.Hedge(0.7), "scale"),
    "implicit exploration": (Floored(1.0, 0.3), enumeration.Floored(1.0, 0.3), "scale"),
}


def main(rounds: int, waits: list[int]) -> None:
    patch, worst = pytest.MonkeyPatch(), []
    patch.setattr(tsallis, "CROSSING", 1e9)  # the truth is the slope between two steps of reduced variance
    print("| learner | d | " + " | ".join(GAMES) + " |")
    print("|---|---|" + "---|" * len(GAMES))
    for name, (mine, rule, field) in LEARNERS.items():
        for delay in waits:
            cells = []
            for game in GAMES.values():
                delays = jb.delays.Fixed(delay, bound=3)
                found, _ = enumeration.expected_estimate(mine, *game, rounds, delays, "jump", patch)
                truth = enumeration.true_gradient(rule, field, *game, rounds, delay)
                cells.append(100 * (getattr(found, field) / truth - 1))
            worst += [abs(cell) for cell in cells]
            print(f"| {name} | {delay} | " + " | ".join(f"{cell:+.2f}" for cell in cells) + " |", flush=True)
    worst.sort()
    share = sum(one <= 2 for one in worst) / len(worst)
    print(f"\n{len(worst)} cases, {100 * share:.0f} % within 2 %; median {worst[len(worst) // 2]:.2f} %, worst {worst[-1]:.1f} %")


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(given[0] if given else 6, given[1:] or [0, 1, 2])
