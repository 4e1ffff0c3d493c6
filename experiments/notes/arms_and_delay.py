"""The cost of a round of delay in the fluid limit, against simulations: the table of docs/notes/arms_and_delay.md.

python -m experiments.notes.arms_and_delay          # a few seconds; reads experiments/claims/arms_and_delay/claim.json
"""

import json
from pathlib import Path

import numpy as np
from scipy.integrate import quad

GAP, ROUNDS = 0.2, 120_000
STORED = Path(__file__).parent.parent / "claims" / "arms_and_delay" / "claim.json"


def rates(name, t, delay, arms):
    """1/η_t and 1/γ_t under a fixed delay."""
    log_k = np.log(arms)
    outstanding = delay * t - delay * (delay + 1) / 2
    if name == "ZS20":
        return np.sqrt(t), np.sqrt(2 * outstanding / log_k)
    tsallis_start = 10 * delay + (delay / (arms ** (1 / 3) * log_k)) ** 2
    return np.sqrt(t + tsallis_start), np.sqrt((outstanding + (24 * delay * arms ** (1 / 3)) ** 2 * log_k) / log_k)


def suboptimal(gaps, a, b, arms):
    """The probability of all suboptimal arms together: FTRL on losses without noise, by bisection in log x."""
    low, high = np.full_like(gaps, -60.0), np.full_like(gaps, -np.log(arms))
    for _ in range(80):
        middle = (low + high) / 2
        x = np.exp(middle)
        best = 1 - (arms - 1) * x
        small = a * (x**-0.5 - best**-0.5) + b * (np.log(best) - middle) > gaps
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    return (arms - 1) * np.exp((low + high) / 2)


def fluid_regret(name, delay, arms):
    t = np.concatenate([np.arange(delay + 1, 2000), np.geomspace(2000, ROUNDS, 4000)])
    share = suboptimal(GAP * (t - delay), *rates(name, t, delay, arms), arms)
    return GAP * (delay * (arms - 1) / arms + np.trapezoid(share, t))


def entropy_alone(arms):
    """−2 Li₂(1 − K)/log K: the cost of a round of delay times the gap, for exponential weights with 1/γ_t = √(dt/log K)."""
    return 2 * quad(lambda u: u / (np.exp(u) / (arms - 1) + 1), 0, 200)[0] / np.log(arms)


def main():
    stored = {one["label"]: one["value"] for one in json.loads(STORED.read_text())["numbers"]}
    print("| K | ZS20, measured | fluid | ratio | MZS22, measured | fluid | ratio | entropy alone, ×2/Δ |")
    print("|---|---|---|---|---|---|---|---|")
    for arms in (2, 4, 8, 16, 32):
        cells = []
        for name in ("ZS20", "MZS22"):
            measured = stored[f"{name}, K = {arms}: (R(16) − R(8))/8"]
            fluid = (fluid_regret(name, 16, arms) - fluid_regret(name, 8, arms)) / 8
            cells += [f"{measured:.1f}", f"{fluid:.1f}", f"{measured / fluid:.2f}"]
        print(f"| {arms} | " + " | ".join(cells) + f" | {2 * entropy_alone(arms) / GAP:.1f} |")


if __name__ == "__main__":
    main()
