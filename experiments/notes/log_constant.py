"""The constant of log T in the regret of FTRL with Tsallis entropy: the table of docs/notes/log_constant.md.

python -m experiments.notes.log_constant          # about two minutes
"""

import json
from pathlib import Path

import numpy as np

import jaxbandit as jb

BEST = 0.4
STORED = Path(__file__).parent.parent / "claims" / "theorem1_stochastic" / "claim.json"


def limit(second_moment, scale=1.0):
    """(s² + m)(2s² + m)/(2s²): Δ times the slope in log t for small gaps, 1/η_t = s√t."""
    return (scale**2 + second_moment) * (2 * scale**2 + second_moment) / (2 * scale**2)


def reduced(gap, tsallis, entropy, first, last, particles=4000, step=5e-4, seed=0):
    """Δ times the slope in log t over the last decade, from the process of one suboptimal arm alone, in float64.

    D is the difference of the estimates. An arm of probability x, with a/√x − b·log x = D + a, is played x·t·dτ times in a step dτ
    of log t. Each play adds 1/x with probability μ. The best arm has probability 1 and lowers D by its mean.
    """
    rng = np.random.default_rng(seed)
    mean, log_t = BEST + gap, np.log(first)
    difference, log_x = np.full(particles, gap * first), np.full(particles, -5.0)
    total, seen = 0.0, 0
    while log_t < np.log(last):
        t = np.exp(log_t)
        a, b = tsallis(t), entropy(t)
        for _ in range(3):
            value = a * np.exp(-log_x / 2) - b * log_x - difference - a
            log_x = np.minimum(log_x + np.clip(value / (a / 2 * np.exp(-log_x / 2) + b), -2, 2), 0)
        x = np.exp(log_x)
        plays = rng.poisson(np.minimum(x, 1) * t * step * mean)
        difference = np.maximum(difference + plays / x - BEST * t * step, 1e-3 * gap * t)
        log_t += step
        if log_t > np.log(last / 10):
            total, seen = total + (x * t).mean(), seen + 1
    return gap**2 * total / seen


def simulated(gap, runs, rounds=1_000_000):
    """The same from simulations of Tsallis-INF with two arms, with its standard error."""
    setting = dict(rounds=rounds, runs=runs, seed=0, record=[rounds // 10, rounds])
    result = jb.simulate(jb.TsallisINF(), jb.losses.Bernoulli([BEST, BEST + gap]), jb.delays.Fixed(0), **setting)
    added = np.diff(np.asarray(result.regret, float), axis=0)[0] * gap / np.log(10)
    return added.mean(), added.std(ddof=1) / np.sqrt(runs)


def main():
    stored = json.loads(STORED.read_text())["checks"]
    constant = 2.29
    print("| Δ | m | limit | Tsallis-INF, reduced | simulated | MZS22, d = 2, K = 4, reduced | simulated |")
    print("|---|---|---|---|---|---|---|")
    log_k = np.log(4)
    delay = 2
    start = 10 * delay + (delay / (4 ** (1 / 3) * log_k)) ** 2
    for gap in (0.1, 0.2, 0.4):
        alone = reduced(gap, np.sqrt, lambda t: 0.0, 1e4, 1e6)
        hybrid = reduced(
            gap,
            lambda t: np.sqrt(t + start),
            lambda t: np.sqrt((delay * t + (24 * delay * 4 ** (1 / 3)) ** 2 * log_k) / log_k),
            1e4,
            1e6,
        )
        mean, error = simulated(gap, 2048 if gap == 0.4 else 1024)
        label = next(
            one
            for one in stored
            if one["label"].startswith("slope in log t over") and one["label"].endswith(f"[{gap}, {gap}, {gap}]")
        )
        constant = float(label["label"].split("over ")[1].split("·")[0])
        print(
            f"| {gap} | {BEST + gap:.1f} | {limit(BEST + gap):.2f} | {alone:.2f} | {mean:.2f} ± {error:.2f} | {hybrid:.2f} | {label['value'] * constant:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
