"""Whether smaller blocks would give the same bits: every learner of the registry, fixed and geometric delays.

``python -m experiments.bench.block_bits --arms 10`` prints the learners whose regret differs between blocks of 256 and of 64 runs.
"""

import argparse
import warnings

import numpy as np

import jaxbandit as jb
from experiments.bench.bench import Workload, make
from jaxbandit._engine import choose


def regret(setting: Workload, block: int) -> tuple[np.ndarray, bool]:
    """The regret of 64 runs at a few rounds, and whether the program was one function."""
    choose.BLOCK = block
    result = jb.simulate(*make(setting), rounds=setting.rounds, runs=64, seed=1, record=4)
    return result.regret, bool(result.program["one_function"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arms", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=300)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    same = 0
    for name in jb.REGISTRY:
        for law in ("fixed", "geometric"):
            setting = Workload(arms=given.arms, law=law, rounds=given.rounds, learner=name)
            (large, one), (small, _) = regret(setting, 256), regret(setting, 64)
            same += np.array_equal(large, small)
            if not np.array_equal(large, small):
                how = "one function" if one else "not one function"
                print(f"{name}, {law}, {how}: differs by up to {np.abs(large - small).max():.2g}", flush=True)
    print(f"K = {given.arms}: {same} of {2 * len(jb.REGISTRY)} games bitwise identical")


if __name__ == "__main__":
    main()
