"""Waiting for the window against using what has arrived: mean regret ± standard error, the table of docs/conversions.md.

Four arms with conversion rates 8%, 6%, 5% and 4%, 4,000 rounds, a window of 1,000 rounds. Conversions are delayed as each column says.
Without a conversion the end of the window is observed, or nothing ("failures never observed").

    python experiments/conversions/table.py          # some minutes of one core
"""

import argparse
import warnings

import numpy as np

import jaxbandit as jb

D = jb.delays
RATES, ROUNDS, WINDOW = [0.08, 0.06, 0.05, 0.04], 4000, 1000


def geometric(mean):
    return D.Geometric(mean, bound=WINDOW - 1)


ENDS, NEVER = D.Fixed(WINDOW), D.PacketLoss(0.0)
ENVIRONMENTS = {
    "mean 100": D.LossDependent(no_conversion=ENDS, conversion=geometric(100.0)),
    "heavy tail": D.LossDependent(no_conversion=ENDS, conversion=D.Pareto(0.5, bound=WINDOW - 1)),
    "best arm slow (400; others 20)": D.LossDependent(
        no_conversion=ENDS, conversion=D.ArmDependent([geometric(400.0)] + [geometric(20.0)] * 3)
    ),
    "best arm fast (20; others 400)": D.LossDependent(
        no_conversion=ENDS, conversion=D.ArmDependent([geometric(20.0)] + [geometric(400.0)] * 3)
    ),
    "failures never observed (mean 100)": D.LossDependent(no_conversion=NEVER, conversion=geometric(100.0)),
}
CURVE = 1 - (100 / 101) ** np.arange(1, WINDOW + 1)


LEARNERS = {  # with whether it waits: then every outcome is used when its window closes
    "`KLUCB(0.3)`, waits for the window": (jb.KLUCB(0.3), True),
    "`DelayedThompson`, waits for the window": (jb.DelayedThompson(), True),
    "`KLUCB(0.3)`": (jb.KLUCB(0.3), False),
    "`DelayedThompson`": (jb.DelayedThompson(), False),
    "`DelayedKLUCB`, given the curve of mean 100": (jb.DelayedKLUCB(CURVE), False),
    "`CensoredKLUCB(0.3)`": (jb.CensoredKLUCB(WINDOW, 0.3), False),
    "`CensoredThompson`": (jb.CensoredThompson(WINDOW), False),
    "`Uniform`": (jb.Uniform(), False),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=256)
    runs = parser.parse_args().runs
    warnings.simplefilter("ignore")
    print("| |", " | ".join(ENVIRONMENTS), "|\n|---|" + "---|" * len(ENVIRONMENTS))
    for name, (learner, waits) in LEARNERS.items():
        cells = []
        for delays in ENVIRONMENTS.values():
            law = D.Fixed(WINDOW) if waits else delays
            result = jb.simulate(
                learner, jb.losses.Bernoulli(rewards=RATES), law, rounds=ROUNDS, runs=runs, seed=0, record=1
            ).estimate()
            cells.append(f"{result.mean[-1]:.0f} ± {result.error[-1]:.0f}")
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
