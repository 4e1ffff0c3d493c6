"""Exact worst-case regret of exponential weights for two experts with full information, by dynamic programming over all 0/1 losses.

    python -m experiments.frontier.cover [--rounds 2000]

Each form of the inverse rate 1/γ_t has one scale, chosen for the smallest worst case. Cover (1965) gives the minimax value.
"""

import argparse
import math

import numpy as np

FORMS = {
    "c √t (anytime)": lambda t, rounds: np.sqrt(t),
    "c √T (constant)": lambda t, rounds: np.sqrt(rounds) + 0 * t,
    "c √t (1 - t/T)^¼": lambda t, rounds: np.sqrt(t) * ((rounds - t + 1) / rounds) ** 0.25,
    "c √t (1 - t/T)^½": lambda t, rounds: np.sqrt(t) * ((rounds - t + 1) / rounds) ** 0.5,
    "c √t (1 - t/T)^¾": lambda t, rounds: np.sqrt(t) * ((rounds - t + 1) / rounds) ** 0.75,
    "c √(T - t)": lambda t, rounds: np.sqrt(rounds - t + 1),
}


def worst(inverse_rates: np.ndarray) -> float:
    """The largest regret over all sequences of losses in {0, 1}²; the state is the difference of the cumulative losses."""
    rounds = len(inverse_rates)
    difference = np.arange(-rounds - 1, rounds + 2.0)
    value = np.maximum(-difference, 0)  # minus the smaller cumulative loss, counted from the second expert
    for inverse_rate in inverse_rates[::-1]:
        first = 1 / (1 + np.exp(np.clip(difference / inverse_rate, -500, 500)))  # probability of the first expert
        after = value.copy()  # equal losses
        after[1:-1] = np.maximum(after[1:-1], np.maximum(first[1:-1] + value[2:], value[:-2] - first[1:-1]))
        value = after
    return float(value[rounds + 1])


def minimax(rounds: int) -> float:
    """Half the expected distance of a simple random walk after T steps."""
    steps = math.ceil(rounds / 2)
    return steps * math.exp(math.lgamma(2 * steps + 1) - 2 * math.lgamma(steps + 1) - 2 * steps * math.log(2))


def best_scale(form: str, rounds: int) -> tuple[float, float]:
    """The scale with the smallest worst case, and that worst case."""
    shape = FORMS[form](np.arange(1, rounds + 1.0), rounds)
    scales = np.exp(np.linspace(math.log(0.2), math.log(2.5), 25))
    found = [worst(scale * shape) for scale in scales]
    return float(scales[int(np.argmin(found))]), min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    rounds = parser.parse_args().rounds
    print(f"T = {rounds}, minimax {minimax(rounds):.2f} = {minimax(rounds) / math.sqrt(rounds):.3f} √T")
    for form in FORMS:
        scale, regret = best_scale(form, rounds)
        print(f"{form:20s} c {scale:.2f}  worst case {regret:.2f} = {regret / math.sqrt(rounds):.3f} √T", flush=True)


if __name__ == "__main__":
    main()
