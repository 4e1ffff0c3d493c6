"""DUCB in NumPy, without this package, beside the library and the published values: the table of docs/appendix/published_values.md.

python experiments/shapes/ducb_numpy.py [RUNS]          # 2048 runs by default: some minutes of one core

Vernade, Cappé & Perchet (2017). A conversion is seen d rounds after its action; a failure is never seen. With N_k actions of arm k, S_k conversions
seen and Ñ_k the sum, over these actions, of the probability that a conversion would have been seen by now, the arm with the largest
S_k/Ñ_k + √(N_k/Ñ_k) √(log t/(2Ñ_k)) is chosen. Settings of Pike-Burke et al. (2018): rewards .5 and .6, 250,000 rounds.
"""

import sys

import numpy as np
from published import VALUES, pike_burke

MEANS, ROUNDS, SEED = np.array([0.5, 0.6]), 250_000, 20261118
LAWS = {"Unif(0,50)": 50, "Unif(0,100)": 100, "Exp50": None}


def regrets(longest, runs, rng):
    """The regret of each run. ``longest``: delays are uniform on 0 … longest; None: geometric with mean 49.5."""
    ring = 4096 if longest is None else longest + 1  # rounds that a conversion can be outstanding
    due = np.zeros((ring, 2, runs), np.int16)
    window, recent = np.zeros((ring, runs), np.int16), np.zeros(runs, np.int16)  # actions of the second arm, and their number
    plays, seen, missing, found = (np.zeros((2, runs)) for _ in range(4))
    stays, both = 49.5 / 50.5, np.arange(runs)
    for t in range(1, ROUNDS + 1):
        # Ñ at the start of round t: an action of round s has had its delays 0 … t - 1 - s.
        expected = plays - missing if longest is None else seen
        with np.errstate(divide="ignore", invalid="ignore"):
            index = found / expected + np.sqrt(plays / expected) * np.sqrt(np.log(t) / (2 * expected))
        index[expected <= 0] = np.inf
        second = np.where(index[0] == index[1], rng.random(runs) < 0.5, index[1] > index[0])
        arm = second.astype(np.intp)
        plays[arm, both] += 1
        if longest is None:
            missing[arm, both] += 1  # before its first chance to be seen
            missing *= stays  # the probability of a delay above a falls by this factor per round
            delay = rng.geometric(1 / 50.5, runs) - 1
            np.minimum(delay, ring - 1, out=delay)
        else:
            recent += second
            recent -= window[t % ring]
            window[t % ring] = second
            seen[1] += recent / ring
            seen[0] += (min(t, ring) - recent) / ring
            delay = rng.integers(0, ring, runs)
        hit = rng.random(runs) < MEANS[arm]
        due[(t + delay[hit]) % ring, arm[hit], both[hit]] += 1
        found += due[t % ring]
        due[t % ring] = 0
    return plays[0] * (MEANS[1] - MEANS[0])


def main(runs):
    values = {(row["delay"], row["round"]): row["regret"] for row in VALUES["pike-burke"]["values"] if row["learner"] == "DUCB"}
    library = {delay: (mean, error) for _, delay, t, _, mean, error in pike_burke(runs, "DUCB", seed=7) if t == ROUNDS}
    print("| delays | published | library | NumPy | library − NumPy |\n|---|---|---|---|---|", flush=True)
    for name, longest in LAWS.items():
        own = regrets(longest, runs, np.random.default_rng(SEED))
        mean, error = own.mean(), own.std(ddof=1) / np.sqrt(runs)
        ours, spread = library[name]
        print(
            f"| {name} | {values[name, ROUNDS]:.1f} | {ours:.2f} ± {spread:.2f} | {mean:.2f} ± {error:.2f} | "
            f"{ours - mean:+.2f} ± {np.hypot(error, spread):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2048)
