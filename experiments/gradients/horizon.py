"""SE × √cost of the jump tangent over that of paired differences by the number of rounds: K = 10, d = 20, gap .2, tuned constants.

    python experiments/gradients/horizon.py [ROUNDS ...]

MZS22 with (.1, .5), the derivative in `factor`, 2048 runs; processor time, the least of three calls after the first.
"""

import sys
import time

import jaxbandit as jb

GAME = jb.BestOfBothWorlds(20, 0.1, 0.5), jb.losses.Bernoulli([0.3] + [0.5] * 9), jb.delays.Fixed(20)


def measured(rounds: int, estimator: str, control_variates: bool) -> tuple[float, float, float]:
    """The derivative, its standard error, and seconds."""
    options = {"estimator": estimator, "control_variates": control_variates, "only": ["factor"]}
    seconds = []
    for _ in range(4):  # the first one compiles
        start = time.process_time()
        found = jb.regret_gradient(*GAME, rounds=rounds, runs=2048, seed=1, **options)
        seconds.append(time.process_time() - start)
    return float(found.gradient.factor), float(found.error.factor), min(seconds[1:])


def main(horizons: list[int]) -> None:
    print("| T | control variates | paired | jump | SE × √cost, jump over paired |")
    print("|---|---|---|---|---|")
    for rounds in horizons:
        for control_variates in (True, False):
            paired, jump = (measured(rounds, name, control_variates) for name in ("paired", "jump"))
            ratio = jump[1] / paired[1] * (jump[2] / paired[2]) ** 0.5
            cells = [f"{slope:.2f} ± {error:.3f}" for slope, error, _ in (paired, jump)]
            print(
                f"| {rounds} | {'with' if control_variates else 'without'} | {cells[0]} | {cells[1]} | {ratio:.2f} |", flush=True
            )


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [500, 2000, 8000])
