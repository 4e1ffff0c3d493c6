"""Lemmas 6-8 at the x that makes them largest, and the sum A + B + C + D along the learner."""

import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend
from experiments.claims.harness.verdict import mean_of, regret_of
from jaxbandit import theory


def largest_a(a, gap, rounds, start):
    """max over x in [0, 1] of Σ_t (4a√x_t/√(t + η₀) − x_tΔ), over 4a²/Δ·log(T/η₀ + 1)."""
    t = np.arange(1, rounds + 1) + start
    root = np.minimum(2 * a / (np.sqrt(t) * gap), 1.0)
    return np.sum(4 * a * root / np.sqrt(t) - root**2 * gap) / (4 * a**2 / gap * np.log(rounds / start + 1))


def largest_b(b, arms, delay):
    """max over x of Σ_t x_tΔ(4b(a_{t+d_t} − 1)γ_{t+d_t} − 1), Δ = 1, bursts of delay + 1, γ₀ = 0; over 32b²·a_max·log K."""
    size, log_k = delay + 1, np.log(arms)
    bursts = np.arange(1, int(64 * b**2 * log_k) + 2)
    inverse_rate = np.sqrt(bursts * size * delay / 2 / log_k)  # each burst has waited 0 + 1 + … + delay
    gain = np.maximum(4 * b * delay / inverse_rate - 1, 0)
    return size * gain.sum() / (32 * b**2 * size * log_k)


def largest_c(c, arms, gap, sigma):
    """max over the simplex of Σ_t (4cσγ_t H(x_t)/log K − Σ x_iΔ), γ₀ = 0, σ_t = σ; over 128c²σ(K − 1)/(Δ log K).

    Its maximiser are the Gibbs weights, its value β log(1 + (K − 1)e^{−Δ/β}) with β = 4cσγ_t/log K.
    """
    log_k = np.log(arms)
    # Far beyond the rounds in which β is of the order of Δ; a sum over t ≤ 10⁵ and an integral beyond.
    beta = lambda t: 4 * c * np.sqrt(sigma / (t * log_k))  # noqa: E731
    value = lambda t: beta(t) * np.log1p((arms - 1) * np.exp(-gap / beta(t)))  # noqa: E731
    late = np.geomspace(1e5, 1e5 + 1e4 * 16 * c**2 * sigma * (1 + log_k) / gap**2, 20001)
    total = value(np.arange(1, 100001.0)).sum() + np.trapezoid(value(late), late)
    return total / (128 * c**2 * sigma * (arms - 1) / (gap * log_k))


def at_the_maximum(experiment, panel):
    s, constants = experiment.settings, theory.bounds.RECOMPUTED
    start = theory.bounds.mzs22_constants(s.delay, s.arms).tsallis
    cases = {
        "A": ("Lemma 6 with 4a²", [largest_a(a, gap, 10**6, start) for a in (0.05, 1.0, constants.a) for gap in s.gaps], "2a²", 0.5),
        "B": ("Lemma 7 with 32b²", [largest_b(b, arms, d) for b in (1.0, constants.b) for arms in (2, 16) for d in (1, 8, 64)], "16b²", 0.5),
        "C": ("Lemma 8 with 128c²", [largest_c(constants.c, arms, gap, s.delay) for arms in s.many_arms for gap in s.gaps], "16c²", 0.125),
    }  # fmt: skip
    for name, (lemma, ratios, smaller, share) in cases.items():
        label = f"{lemma}: largest (4·{name} − Reg)/limit over all x"
        experiment.check(label, max(ratios), "at most", 1.0, kind="recomputed" if name == "A" else "proved")
        experiment.mutant(f"{smaller} in its limit", label, max(ratios) / share)
    ratios = [largest_c(constants.c, arms, s.gaps[0], s.delay) for arms in s.many_arms]
    panel.plot(s.many_arms, ratios, "o-", label="Lemma 8: largest 4cC − Reg over its limit")
    panel.plot(s.many_arms, [np.log(arms) ** 2 / (arms - 1) / 8 for arms in s.many_arms], "k:", label="log²K/(8(K − 1))")
    panel.set(
        xscale="log", yscale="log", xlabel="arms K, gaps alike", ylabel="largest over the limit", title="Lemma 8 at the worst x"
    )
    draw_legend(panel)
    experiment.say(
        f"Lemma 8 loses a factor that grows with K: at the worst x the sum is {ratios[0]:.2f} of its limit for K = {s.many_arms[0]} and {ratios[-1]:.1e} of it for "
        f"K = {s.many_arms[-1]}. The exact maximum is 32c²σ_max/log K·∫₀^∞ log(1 + Σ_i e^{{−Δ_i v}}) dv, of order σ_max·log K/Δ for equal gaps, not σ_max·(K − 1)/(Δ log K). "
        "Lemmas 6 and 7, the second with the printed 32b², cannot be improved."
    )


def run(experiment):
    s = experiment.settings
    *panels, last = experiment.panels(len(s.gaps) + 1)
    at_the_maximum(experiment, last)
    constants = theory.bounds.RECOMPUTED
    rest = theory.bounds.self_bounding_remainder(s.arms, s.delay)
    delays = theory.optimal_skipping.truncated(-np.arange(1, s.rounds + 1) % (s.delay + 1))
    for panel, gap in zip(panels, s.gaps, strict=True):
        learner = jb.BestOfBothWorlds(max_delay=s.delay)
        losses = jb.losses.Bernoulli([0.5 - gap / 2, *[0.5 + gap / 2] * (s.arms - 1)])
        law = jb.delays.Trace(delays, bound=8, long_waits=0)
        result = experiment.simulate(
            learner,
            losses,
            law,
            rounds=s.rounds,
            runs=s.runs,
            measure=[theory.measurements.SelfBounding(learner, s.delay)],
            burning_in=True,
        )
        terms = result.measured["self_bounding"] * np.array(constants)[:, None]
        total = mean_of(result, terms[-1].sum(0)).value + rest
        label = f"E Reg / E(aA + bB + cC + D), Δ = {gap}"
        experiment.check(label, regret_of(result) / total, "at most", 1.0, kind="recomputed")
        shown = {"regret": result.regret, "aA": terms[:, 0], "bB": terms[:, 1], "cC": terms[:, 2]}
        for (name, values), style in zip(shown.items(), ("-", "--", "-.", ":"), strict=True):
            come = values.mean(-1) > 0
            panel.plot(
                result.rounds[come], values[come].mean(-1), linestyle=style, label=name, linewidth=2.4 if name == "regret" else 1.5
            )  # fmt: skip
        panel.axhline(rest, color="grey", linewidth=1, label="D")
        panel.set(
            xscale="log", yscale="log", xlabel="round t", ylabel="mean up to t", title=f"Δ = {gap}, bursts of {s.delay + 1}"
        )
        panel.set_ylim(bottom=0.1)
        draw_legend(panel)
