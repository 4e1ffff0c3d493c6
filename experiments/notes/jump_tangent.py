"""The bias of the jump tangent for FTRL with a separable regulariser: constants and exact biases of docs/notes/jump_tangent.md.

python -m experiments.notes.jump_tangent          # about two minutes of one core
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np


def stiffness(x, a, b):
    return a / jnp.sqrt(x) + 2 * b


def moved(x, direction, a, b):
    """dx of the regularised leader when its loss estimates move along a direction."""
    z = 2 * x / stiffness(x, a, b)
    return -z * (direction - (z @ direction) / z.sum())


def ratios(x, gaps, a, b, i, j):
    """Derivatives of ⟨x, gaps⟩ in the estimates, over the limits of the lemma without their constants 1, 3, 25.5 and 51."""
    one, other = jnp.eye(len(x))[j], jnp.eye(len(x))[i]

    def first(x):
        return moved(x, one, a, b)

    def second(x):
        return jax.jvp(first, (x,), (first(x),))[1]

    third = jax.jvp(second, (x,), (first(x),))[1]
    mixed = jax.jvp(second, (x,), (moved(x, other, a, b),))[1]
    z, h, largest = 2 * x / stiffness(x, a, b), a + 2 * b, gaps.max() - gaps.min()
    return jnp.abs(
        jnp.stack(
            [
                first(x) @ gaps / (z[j] * largest),
                second(x) @ gaps * h / (z[j] * largest),
                third @ gaps * h**2 / (z[j] * largest),
                mixed @ gaps * h**2 * z.sum() / (z[i] * z[j] * largest),
            ]
        )
    )


def constants(draws=20_000, seed=0):
    """The largest ratios over random states; gaps are 0 or 1, where a linear function on [0, 1]^K is largest."""
    rng, found = np.random.default_rng(seed), np.zeros(4)
    for arms in (2, 3, 5, 8):
        logits = rng.normal(size=(draws, arms)) * np.exp(rng.uniform(-2, 2, (draws, 1)))
        x = np.exp(logits - logits.max(1, keepdims=True))
        x /= x.sum(1, keepdims=True)
        gaps = rng.integers(0, 2, (draws, arms)).astype(float)
        gaps[:, 0], gaps[:, 1] = 0, 1
        a, b = np.exp(rng.uniform(-4, 4, (2, draws)))
        a, b = np.where(rng.random(draws) < 0.2, 0, a), np.where(rng.random(draws) < 0.2, 0, b)
        b = np.where(a + b == 0, 1, b)
        pairs = np.stack([rng.permutation(arms)[:2] for _ in range(draws)])
        values = jax.jit(jax.vmap(ratios))(*map(jnp.asarray, (x, gaps[:, rng.permutation(arms)], a, b, pairs[:, 0], pairs[:, 1])))
        found = np.maximum(found, np.nanmax(np.asarray(values), 0))
    return found


def weight(jump, slope, share):
    """α of the quadrature for a jump, the slope φ of its shape and the share θ of Tsallis entropy."""
    s = math.sqrt(1 + 0.8 * jump * slope)
    return share / (2 + 2 / 3 * jump * slope) + (1 - share) * (2 * s + 1) / ((s + 1) * (s * s + s + 1))


class TwoArms:
    """FTRL with a_t = scale·√t and b_t = scale·β√t against two Bernoulli arms, every path enumerated."""

    def __init__(self, means, share, rounds, delay):
        self.means, self.share, self.rounds, self.delay = means, share, rounds, delay
        self.gaps = [mean - min(means) for mean in means]

    def rates(self, scale, t):
        return scale * math.sqrt(t), scale * self.share * math.sqrt(t)

    def first(self, scale, t, difference):
        """The probability of arm 0 where its estimate is larger by this difference: Newton's method in the log-odds."""
        a, b = self.rates(scale, t)
        odds = -difference / (2 * a + 2 * b)
        for _ in range(60):
            x = 1 / (1 + math.exp(-odds))
            y = 1 - x
            value = a * (x**-0.5 - y**-0.5) - b * odds - difference
            step = value / (0.5 * a * (y * x**-0.5 + x * y**-0.5) + b)
            odds += max(min(step, 2.0), -2.0)
            if abs(step) < 1e-14:
                break
        return 1 / (1 + math.exp(-odds))

    def later(self, held, waiting):
        """What has arrived and what is outstanding, at the end of a round."""
        return (held + waiting[0], waiting[1:]) if len(waiting) > self.delay else (held, waiting)

    def outcomes(self, x):
        """Probability and estimate of each kind of outcome: a loss of an arm, or none."""
        (m, n), y = self.means, 1 - x
        return (x * m, 1 / x), (y * n, -1 / y), (1 - x * m - y * n, 0.0)

    def to_come(self, scale, t, held, waiting, value=None):
        """The expected sum, over rounds t … T, of the regret, or of a function of the round and the probability of arm 0."""
        if t > self.rounds:
            return 0.0
        x = self.first(scale, t, held)
        total = x * self.gaps[0] + (1 - x) * self.gaps[1] if value is None else value(t, x)
        if t == self.rounds:
            return total
        return total + sum(
            chance * self.to_come(scale, t + 1, *self.later(held, (*waiting, estimate)), value)
            for chance, estimate in self.outcomes(x)
        )

    def derivative(self, scale):
        h = 1e-3
        ends = {n: self.to_come(scale * math.exp(n * h), 1, 0.0, ()) for n in (-2, -1, 1, 2)}
        return (8 * (ends[1] - ends[-1]) - (ends[2] - ends[-2])) / (12 * h)

    def carried(self, scale, t, x):
        """Weights α, slopes φ and κ of a round."""
        alphas, phis = [], []
        for one in (x, 1 - x):
            (h, share), (last, _) = (
                (a / math.sqrt(one) + 2 * b, a / math.sqrt(one)) for a, b in map(self.rates, [scale] * 2, (t, self.rounds))
            )
            growth = max(last / h, 1.001)
            phis.append((1 + share / h) / h * (1 - 1 / growth) / math.log(growth))
            alphas.append(weight(1 / one, phis[-1], share / h))
        (m, n), none = self.means, self.outcomes(x)[2][0]
        return alphas, phis, 1 / (1 + none * (x / m + (1 - x) / n))

    def errors(self, scale, t, held, waiting, x, dx):
        """The summand of the identity for round t, and its limit in the theorem."""
        alphas, phis, kappa = self.carried(scale, t, x)
        xs, moves, jumps = (x, 1 - x), (dx, -dx), (1 / x, -1 / (1 - x))

        def from_here(p, value=None):
            return self.to_come(scale, t + 1, *self.later(held, (*waiting, p)), value)

        f = functools.cache(from_here)

        @functools.cache
        def by(i, p, u=1e-3):
            """∂f/∂p_i: f depends on the difference of the estimates alone."""
            return (1, -1)[i] * (8 * (f(p + u) - f(p - u)) - (f(p + 2 * u) - f(p - 2 * u))) / (12 * u)

        def later_rounds(j):
            """The expected sums of z_j/h² and, as imaginary part, of z_j/h over the rounds that the action can influence."""

            def one_round(s, y):
                a, b = self.rates(scale, s)
                chance, h = (y, 1 - y)[j], a + 2 * b
                z = 2 * chance / (a / math.sqrt(chance) + 2 * b)
                return (z / h**2 + 1j * z / h) if s > t + self.delay else 0.0

            return from_here(0.0, one_round)

        sums = [later_rounds(j) for j in (0, 1)]
        both = sum(total.real / one for total, one in zip(sums, xs, strict=True))
        bias = limit = 0.0
        for i, m in enumerate(self.means):
            w = 1 / xs[i]
            rho = kappa * sum(xs[j] * by(i, jumps[j]) for j in (0, 1)) - kappa * by(i, 0.0)
            quadrature = f(jumps[i]) - f(0.0) - w * (alphas[i] * by(i, 0.0) + (1 - alphas[i]) * by(i, jumps[i]))
            bias += moves[i] * m * (alphas[i] * w * rho - quadrature)
            first = 25.5 * alphas[i] * kappa * w * both
            second = w**3 * (25.5 / 12 * sums[i].real + phis[i] / 2 * sums[i].imag)
            limit += abs(moves[i]) * m * max(self.gaps) * (first + second)
        return bias, limit

    def walk(self, scale, t, held, waiting, slope, slopes):
        """The mean of the jump tangent in log(scale) over rounds t … T, its bias by the identity, and the limit of the theorem."""
        if t > self.rounds:
            return np.zeros(3)
        x, e = self.first(scale, t, held), 1e-5
        ends = [self.first(scale * math.exp(s * e), t, held + s * e * slope) for s in (1, -1)]
        dx = (ends[0] - ends[1]) / (2 * e)
        arrives = t + self.delay < self.rounds  # in time to matter
        found = np.array([dx * (self.gaps[0] - self.gaps[1]), 0.0, 0.0])
        if arrives and abs(dx) > 1e-9:
            found[1:] = self.errors(scale, t, held, waiting, x, dx)
        alphas, _, kappa = self.carried(scale, t, x)
        none = self.outcomes(x)[2][0]
        for (chance, estimate), arm in zip(self.outcomes(x), (0, 1, None), strict=True):
            rho = (1 - kappa) / none if arm is None else kappa / self.means[arm]
            row = [
                alpha * (m / one * rho - (arm == i) / one**2) * move
                for i, (alpha, m, one, move) in enumerate(zip(alphas, self.means, (x, 1 - x), (dx, -dx), strict=True))
            ]
            state = self.later(held, (*waiting, estimate))
            found += chance * self.walk(scale, t + 1, *state, *self.later(slope, (*slopes, row[0] - row[1])))
        return found


def main():
    with jax.enable_x64(True):
        print("largest ratio to the limits of the lemma, without constants (proved: 1, 3, 25.5, 51): ", constants().round(3))
    jump, share = np.meshgrid(np.geomspace(1e-3, 1e3, 200), [0.0, 1.0])
    lost = [(0.5 - weight(w, 1.0, one)) / (w / 6) for w, one in zip(jump.ravel(), share.ravel(), strict=True)]
    print(f"largest (1/2 − α)/(wφ/6): {max(lost):.4f}, smallest {min(lost):.4f}\n")
    print(
        "| T | d | β | scale | derivative | bias | by the identity | limit of the theorem | limit / bias |\n|---|---|---|---|---|---|---|---|---|"
    )
    for rounds, delay in ((3, 0), (6, 1)):
        for share in (0.0, 1.0):
            for scale in (1.0, 3.0, 10.0):
                game = TwoArms((0.3, 0.7), share, rounds, delay)
                truth = game.derivative(scale)
                mean, bias, limit = game.walk(scale, 1, 0.0, (), 0.0, ())
                print(
                    f"| {rounds} | {delay} | {share:g} | {scale:g} | {truth:.5f} | {mean - truth:.2e} | {bias:.2e} | {limit:.2e} | {limit / abs(bias):.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
