"""Stability, delay and penalty terms of FTRL with the regulariser of MZS22 on simulated paths, for any inverse rates, in float64 NumPy.

    python -m experiments.frontier.terms --tables FILE.npy … --delay 20 [--runs 256]

The terms sum to the regret of each path exactly; docs/notes/taper_bound.md bounds each. The files are tables ``[T, K]`` that
``experiments.frontier`` or its grid has found.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np

TOLERANCE = 1e-11  # of the optimality conditions, relative


class Rates(NamedTuple):
    """Inverse rates of every round ``[T]``."""

    tsallis: np.ndarray  # 1/η_t
    entropy: np.ndarray  # 1/γ_t


class Terms(NamedTuple):
    """Terms of every round and run ``[T, R]``, and the bound on each (same shapes) that the proof uses before taking expectations."""

    stability: np.ndarray
    delay: np.ndarray
    change: np.ndarray  # of the potential by the rates; the first row is the potential before round 1
    end: np.ndarray  # [R]
    regret: np.ndarray  # [R], by loss estimates against the best arm
    stability_bound: np.ndarray
    delay_bound: np.ndarray
    change_bound: np.ndarray
    ratio: float  # the largest x_{t,i} / x_{s,i} over outstanding s

    def sums(self) -> dict[str, np.ndarray]:
        """``[R]`` each; rises and falls of the inverse rates apart."""
        return {
            "stability": self.stability.sum(0),
            "delay": self.delay.sum(0),
            "penalty, rates rise": np.maximum(self.change, 0).sum(0),
            "penalty, rates fall": np.minimum(self.change, 0).sum(0),
            "penalty, end": self.end,
        }


def outstanding(delay: int, rounds: int) -> np.ndarray:
    """``[T]`` the outstanding observations σ_t under a fixed delay."""
    return np.minimum(np.arange(rounds), delay)


def tapered(arms: int, delay: int, rounds: int, robustness: float, power: float) -> Rates:
    t = np.arange(1, rounds + 1)
    scale = robustness * ((rounds - t + 1) / rounds) ** power
    return Rates(1.2 * scale * np.sqrt(t), scale * np.sqrt(np.cumsum(outstanding(delay, rounds)) / np.log(arms)))


def leader(losses: np.ndarray, tsallis: float, entropy: float, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the probabilities ``[R, K]``, and the potential ``[R]`` max_x -<L, x> + 2a(Σ√x - 1) + b H(x); Newton from ``start``."""
    losses = losses - losses.min(1, keepdims=True)
    z = start
    for _ in range(500):
        x, root = np.exp(z), np.exp(-z / 2)
        residual = losses - tsallis * root + entropy * z
        slope = tsallis * root / 2 + entropy
        weight = x / slope
        multiplier = (1 - x.sum(1) + (weight * residual).sum(1)) / weight.sum(1)
        step = (multiplier[:, None] - residual) / slope
        z = z + np.clip(step, -2, 2)
        if np.abs(step).max() < TOLERANCE:
            break
    else:
        raise ArithmeticError("no convergence")
    z = z - np.log(np.exp(z).sum(1, keepdims=True))
    x = np.exp(z)
    return z, -(losses * x).sum(1) + 2 * tsallis * (np.exp(z / 2).sum(1) - 1) - entropy * (x * z).sum(1)


def play(table: np.ndarray, delay: int, rates: Rates, runs: int, seed: int, bernoulli: bool = False) -> Terms:
    """FTRL on a table ``[T, K]`` with a fixed delay; ``bernoulli``: losses 0 and 1 with the table as means."""
    rng = np.random.default_rng(seed)
    rounds, arms = table.shape
    observed, full = np.zeros((runs, arms)), np.zeros((runs, arms))
    estimates = np.zeros((rounds, runs, arms))
    logs = np.zeros((rounds, runs, arms))
    uniform = np.full((runs, arms), -np.log(arms))
    place = np.arange(runs)
    series = {name: np.zeros((rounds, runs)) for name in Terms._fields[:3] + Terms._fields[5:8]}
    incurred, ratio = np.zeros(runs), 1.0
    warm_full = uniform

    def potential(losses: np.ndarray, t: int, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z, value = leader(losses, rates.tsallis[t], rates.entropy[t], start)
        return z, value - losses.min(1)

    for t in range(rounds):
        a, b = rates.tsallis[t], rates.entropy[t]
        z, at_observed = potential(observed, t, logs[t - 1] if t else uniform)
        logs[t] = z
        x = np.exp(z)
        z_full, at_full = potential(full, t, warm_full)
        warm_full = z_full
        roots, entropy = np.exp(z_full / 2).sum(1) - 1, -(np.exp(z_full) * z_full).sum(1)
        if t:
            before = potential(full, t - 1, z_full)[1]
            series["change"][t] = at_full - before
            series["change_bound"][t] = 2 * (a - rates.tsallis[t - 1]) * roots + (b - rates.entropy[t - 1]) * entropy
        else:
            series["change"][0] = at_full
            series["change_bound"][0] = 2 * a * (np.sqrt(arms) - 1) + b * np.log(arms)
        arm = np.minimum((np.cumsum(x, 1) < rng.random(runs)[:, None]).sum(1), arms - 1)
        loss = table[t, arm]
        if bernoulli:
            loss = (rng.random(runs) < loss).astype(float)
        mine = x[place, arm]
        estimate = np.zeros((runs, arms))
        estimate[place, arm] = loss / mine
        estimates[t] = estimate
        weighted = estimate[place, arm]
        curvature = a * mine**-1.5 / 2 + b / mine  # f''
        series["stability"][t] = loss + potential(observed + estimate, t, z)[1] - at_observed
        series["stability_bound"][t] = weighted**2 / curvature / 2
        missing = (full - observed)[place, arm]
        series["delay"][t] = (at_observed - at_full) - (
            potential(observed + estimate, t, z)[1] - potential(full + estimate, t, z_full)[1]
        )
        series["delay_bound"][t] = weighted * missing / curvature
        incurred += loss
        full = full + estimate
        if t >= delay:
            observed = observed + estimates[t - delay]
        if delay and t:
            ratio = max(ratio, float(np.exp(logs[t] - logs[max(t - delay, 0) : t].min(0)).max()))
    best = int(table.sum(0).argmin())
    end = -potential(full, rounds - 1, warm_full)[1] - full[:, best]
    return Terms(
        series["stability"],
        series["delay"],
        series["change"],
        end,
        incurred - full[:, best],
        series["stability_bound"],
        series["delay_bound"],
        series["change_bound"],
        ratio,
    )


def bound(rates: Rates, sigma: np.ndarray, arms: int) -> dict[str, float]:
    """The theorem, term by term: for any inverse rates, with rises and falls."""

    def rises(inverse: np.ndarray) -> float:
        return float(inverse[0] + np.maximum(np.diff(inverse), 0).sum())

    waiting = sigma > 0
    return {
        "stability": float(np.sqrt(arms) * (1 / rates.tsallis).sum()),
        "delay": float((sigma[waiting] / rates.entropy[waiting]).sum()),
        "penalty": 2 * (np.sqrt(arms) - 1) * rises(rates.tsallis) + np.log(arms) * rises(rates.entropy),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, nargs="+", required=True)
    parser.add_argument("--runs", type=int, default=256)
    parser.add_argument("--delay", type=int, required=True)
    arguments = parser.parse_args()
    tables = {file.stem: np.load(file).astype(float) for file in arguments.tables}
    rounds, arms = next(iter(tables.values())).shape
    tables["Bernoulli, gap 0.2"] = np.tile([0.4] + [0.6] * (arms - 1), (rounds, 1))
    for name, table in tables.items():
        for power in (0.5, 0.0):
            rates = tapered(arms, arguments.delay, rounds, 0.5, power)
            found = play(table, arguments.delay, rates, arguments.runs, 5, bernoulli=name.startswith("Bernoulli"))
            sums = found.sums()
            text = ", ".join(f"{term} {value.mean():.1f}" for term, value in sums.items())
            error = found.regret.std(ddof=1) / np.sqrt(arguments.runs)
            print(f"{name}, p = {power}: regret {found.regret.mean():.1f} ± {error:.1f}; {text}; ratio {found.ratio:.1f}")
            bounds = bound(rates, outstanding(arguments.delay, rounds), arms)
            print(f"  bounds: {', '.join(f'{term} {value:.0f}' for term, value in bounds.items())}", flush=True)


if __name__ == "__main__":
    main()
