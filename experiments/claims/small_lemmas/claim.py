"""The auxiliary statements of the appendix, each at the extremes of what it quantifies over."""

import jax.numpy as jnp
import numpy as np

from experiments.claims.harness.figures import draw_legend
from jaxbandit import theory

RATES = np.geomspace(1e-6, 1e6, 25)  # (1/η)/(1/γ)
ROUNDING = 1e-9


class Hybrid:
    """f(x) = −2a√x + b·x(log x − 1), b = 1."""

    def __init__(self, a):
        self.a = np.longdouble(a)

    def first(self, x):
        return -self.a / np.sqrt(x) + np.log(x)

    def inverse_second(self, x):
        return 1 / (self.a / 2 * x ** np.longdouble(-1.5) + 1 / x)

    def divergence(self, x, loss):
        """D_{f*}(f'(x) − ℓ, f'(x)) over ℓ²/f''(x).

        With u = log of f*'(f'(x) − ℓ) over x it is a√x(e^{u/2} + e^{−u/2} − 2) + x(e^u − 1 − u), which cancels nothing.
        """
        u, at = np.zeros_like(x), self.a / np.sqrt(x)
        for _ in range(80):  # at(1 − e^{−u/2}) + u = −ℓ
            u = u + np.clip((-loss - u + at * np.expm1(-u / 2)) / (at / 2 * np.exp(-u / 2) + 1), -2, 2)
        curved = np.where(np.abs(u) < 1e-5, u**2 / 2 + u**3 / 6, np.expm1(u) - u)
        return (self.a * np.sqrt(x) * 4 * np.sinh(u / 4) ** 2 + x * curved) / (loss**2 * self.inverse_second(x))


class Cube(Hybrid):
    """Wrong: f = x³/3."""

    def first(self, x):
        return x**2

    def inverse_second(self, x):
        return 1 / (2 * x)


class ThreeHalves(Hybrid):
    """Wrong: f = (4/3)·x^{3/2}."""

    def first(self, x):
        return 2 * np.sqrt(x)

    def inverse_second(self, x):
        return np.sqrt(x)


def bend(x, y):
    """The largest relative fall of the slope from one stretch of (x, y) to the next: 0 or less if y is convex in x."""
    slopes = np.diff(y) / np.diff(x)
    return float(np.max((slopes[:-1] - slopes[1:]) / np.abs(slopes).max()))


FACTS = {
    "Fact 13: f*' convex": lambda f, x: bend(f.first(x), x),
    "Fact 15: f' concave": lambda f, x: bend(x, -f.first(x)),
    "Fact 16: 1/f'' convex": lambda f, x: bend(x, f.inverse_second(x)),
}


def integral(rng, draws, left=False):
    """Σ z_n/√(z_0 + … + z_n) over 2(√Z_N − √z_0); with ``left`` the sums stop at n − 1."""
    worst = 0.0
    for _ in range(draws // 20):
        z = np.exp(rng.normal(0, rng.uniform(0.1, 12), rng.integers(2, 50)))
        sums = np.cumsum(z)
        total = 2 * z[1:].sum() / (np.sqrt(sums[-1]) + np.sqrt(sums[0]))  # 2(√Z_N − √z_0), without a difference
        worst = max(worst, float(np.sum(z[1:] / np.sqrt(sums[:-1] if left else sums[1:])) / total))
    return worst


def weighted(arms, rates, x):
    """The largest weighted mean of Lemma 17 with α = 1 over (K − 1)^{1/3}: one arm of probability x hit, the others alike."""
    ratio = np.asarray(rates)[:, None]
    other = (1 - x) / (arms - 1)
    own, rest = (1 / (ratio / 2 * one**-1.5 + 1 / one) for one in (x, other))
    return float(np.max(own / x / (own + (arms - 1) * rest)) / (arms - 1) ** (1 / 3))


def hard(rng, draws, direction):
    """The least Σxℓ² and the largest abs<x, ℓ> or excess over 1 of draws with max x ≤ 2/3, some of them at the edge."""
    least, error = np.inf, 0.0
    for number in range(draws // 20):
        arms = int(rng.choice([2, 3, 4, 8, 32]))
        x = rng.dirichlet(np.full(arms, np.exp(rng.uniform(-3, 3))))
        if number % 2 or x.max() > 2 / 3:
            x = np.append(2 / 3, x[1:] / x[1:].sum() / 3) if arms > 2 else np.array([2 / 3, 1 / 3])
        loss = direction(x)
        least = min(least, float(np.sum(x * loss**2)))
        error = max(error, float(abs(x @ loss)), float(np.abs(loss).max() - 1))
    return least, error


def largest_alone(x):
    """Wrong: the largest arm is joined by nobody."""
    inside = np.arange(len(x)) == x.argmax()
    p = x[inside].sum()
    return np.where(inside, min(1, (1 - p) / p), max(-1, -p / (1 - p)))


def run(experiment):
    s, rng = experiment.settings, np.random.default_rng(130)
    left, right = experiment.panels(2)
    x = np.geomspace(np.longdouble(1e-12), np.longdouble(1), s.points)

    label = "Lemma 11: largest Σ z·g/∫g for g = 1/√x"
    experiment.check(label, integral(rng, s.draws), "at most", 1 + ROUNDING)
    experiment.mutant("the sums stop at n − 1", label, integral(rng, s.draws, left=True))
    for fact, measure in FACTS.items():
        experiment.check(f"{fact}, largest fall of a slope", max(measure(Hybrid(a), x) for a in RATES), "at most", ROUNDING)
        wrong = ThreeHalves(1) if "16" in fact else Cube(1)
        experiment.mutant(wrong.__doc__.removeprefix("Wrong: "), f"{fact}, largest fall of a slope", measure(wrong, x))

    shifts = np.append(np.linspace(-1, 1, 21), [10, 1000]).astype(np.longdouble)
    shifts = shifts[shifts != 0]
    worst = {
        reach: [max(float(np.max(Hybrid(a).divergence(x, np.where(one < 0, reach, 1) * one))) for one in shifts) for a in RATES]
        for reach in (1.0, 3.5)
    }
    label = "Lemma 14: largest D·f''(x)/ℓ², ℓ ≥ −1/γ"
    experiment.check(label, max(worst[1.0]), "at most", 2.0)
    experiment.mutant("ℓ down to −3.5/γ", label, max(worst[3.5]))
    experiment.mutant("0.7 in place of 2", label, bound=0.7)
    step = [float(np.max(f.inverse_second(np.e * x) / f.inverse_second(x))) for f in map(Hybrid, RATES)]
    experiment.number("Lemma 14 on its way: largest f''(ex)^{-1}/f''(x)^{-1}, which it says is at most 4", max(step))
    left.plot(RATES, worst[1.0], "o-", label="D·f''(x)/ℓ², worst x and ℓ ≥ −1/γ")
    left.plot(RATES, step, "s--", label="f''(ex)^−1/f''(x)^−1, worst x")
    left.axhline(2, color="black", linewidth=1.5)
    left.axhline(4, color="black", linewidth=1, linestyle=":")
    left.set(xscale="log", xlabel="γ/η", ylabel="largest ratio", title="Lemma 14: says at most 2, and (dotted) 4 on its way")
    draw_legend(left)

    arms = np.array([2, 3, 4, 8, 32, 128, 1024, 10**6])
    grid = np.geomspace(1e-9, 1 - 1e-9, 4 * s.points)
    means = [weighted(int(one), RATES, grid) for one in arms]
    label = "Lemma 17: largest weighted mean/(α(K − 1)^{1/3})"
    experiment.check(label, max(means), "at most", 2.0)
    experiment.mutant(
        "(K − 1)^{1/5} in place of (K − 1)^{1/3}",
        label,
        max(mean * (one - 1) ** (2 / 15) for mean, one in zip(means, arms, strict=True)),
    )
    experiment.number("Lemma 17 with (K − 1)^{1/3} at K = 10⁶: the factor in place of 2", means[-1])
    right.plot(arms, means, "o-", label="worst x and rates")
    right.axhline(2, color="black", linewidth=1.5, label="Lemma 17")
    right.set(xscale="log", xlabel="arms K", ylabel="weighted mean/(α(K − 1)^(1/3))", title="Lemma 17", ylim=(0, 2.2))
    draw_legend(right)

    least, error = hard(rng, s.draws, lambda x: np.asarray(theory.games.hard_direction(jnp.asarray(x)), float))
    wrong, _ = hard(rng, s.draws, largest_alone)
    label = "Lemma 18: least Σxℓ² of Algorithm 2"
    experiment.check(label, least, "at least", 0.5 - 1e-5)
    experiment.mutant("the largest arm is joined by nobody", label, wrong)
    experiment.check("Lemma 18: largest abs⟨x, ℓ⟩ or excess of abs ℓ over 1, in float32", error, "at most", 1e-5)

    off, turned = 0.0, 0.0
    for _ in range(s.draws // 20):
        rate, losses = np.exp(rng.uniform(-6, 6)), rng.exponential(np.exp(rng.uniform(-6, 6)), rng.integers(2, 40))
        # F̄*(−L) is the largest −<x, L> − F(x): its maximiser are the exponential weights.
        weights = np.exp(-rate * (losses - losses.min()))
        x = weights / weights.sum()
        entropy = np.sum(np.where(x > 0, x * np.log(np.maximum(x, 1e-300)), 0)) / rate
        value, right_side = x @ losses + entropy - losses.min(), np.log(x.max()) / rate
        scale = 1 + abs(losses).max() + abs(right_side)
        off, turned = max(off, abs(value - right_side) / scale), max(turned, abs(value + right_side) / scale)
    label = "Claim 19: largest difference of the two sides, relative"
    experiment.check(label, off, "at most", 1e-9)
    experiment.mutant("the other sign", label, turned)
