"""Outstanding plays against pairs of simultaneous arrivals."""

import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend
from jaxbandit import theory
from jaxbandit._core.fields import pytree_dataclass

ARMS, LONGEST, FACTOR = 4, 15, 1.0  # a small γ₀, so that float32 shows Σσ in the rate


@pytree_dataclass
class StrictlyLater(jb.BestOfBothWorlds):
    """Wrong: σ_t counts s + d_s > t. Under bursts of d_max + 1 this misses d_max plays at the end of each burst."""

    def inverse_rates(self, state, round, num_arms):
        missed = (round.t // (self.max_delay + 1).astype(jnp.int32)).astype(jnp.float32) * self.max_delay
        fewer = round._replace(total_outstanding=round.total_outstanding - missed)
        return jb.learners.BestOfBothWorlds.inverse_rates(self, state, fewer, num_arms)


def counted(read, longest):
    """The largest of Σ a(a − 1)/2 less what the learner has counted up to round t, relative to what its rate is made of."""
    start = theory.bounds.mzs22_constants(longest, ARMS, factor=FACTOR).entropy
    waited = read["entropy_rate"].astype(float) ** 2 * np.log(ARMS) - start
    return float(np.max((read["arrival_pairs"] - waited) / (start + waited)))


def run(experiment):
    s = experiment.settings
    (panel,) = experiment.panels(1)
    laws = {
        "bursts of 2": (jb.delays.Bursts(2, bound=16), 1),
        "bursts of 16": (jb.delays.Bursts(16, bound=16), LONGEST),
        "fixed 15": (jb.delays.Fixed(15, bound=16), LONGEST),
        "uniform 0..15": (jb.delays.UniformRandom(0, 15, bound=16), LONGEST),
        "0 or 15 by a coin": (
            jb.delays.Trace(15 * np.random.default_rng(0).integers(0, 2, s.rounds), bound=16, long_waits=0),
            LONGEST,
        ),
    }
    violations, shortfall, tightest, wrong_lemma = 0, -np.inf, 0.0, 0.0
    losses = jb.losses.Bernoulli([0.3, *[0.6] * (ARMS - 1)])
    for index, (name, (law, longest)) in enumerate(laws.items()):
        learner = jb.BestOfBothWorlds(max_delay=longest, factor=FACTOR)
        measure = [theory.measurements.Arrivals(), theory.measurements.InverseRates(learner)]
        result = experiment.simulate(
            learner, jb.losses.Bernoulli([0.3, *[0.6] * (ARMS - 1)]), law, rounds=s.rounds, runs=s.runs, measure=measure
        )
        read = result.measured
        violations += int(read["arrival_violations"][-1].max())
        shortfall = max(shortfall, counted(read, longest))  # float32 may round by 1e-5
        arrived = (result.rounds - longest).clip(0)[:, None]  # at least
        wrong_lemma = max(
            wrong_lemma, float(np.max((read["arrival_pairs"] + arrived / 2) / np.maximum(read["outstanding_sum"], 1)))
        )
        tightest = max(tightest, float(np.max(read["arrival_pairs"] / np.maximum(read["outstanding_sum"], 1))))
        ratio = read["arrival_pairs"].mean(-1) / np.maximum(read["outstanding_sum"].mean(-1), 1)
        panel.plot(
            result.rounds, ratio, "o" + jb.plots.STYLES[index % 4], color=jb.plots.COLOURS[index], markersize=3, label=name
        )
        experiment.number(f"largest number of simultaneous arrivals, {name}", float(read["arrivals_max"].max()))
    panel.axhline(1, color="black", linewidth=1.5)
    panel.set(
        xscale="log",
        ylim=(0, 1.1),
        xlabel="round t",
        ylabel="Σ a(a − 1)/2 over Σ σ, mean over runs",
        title="At most 1; bursts reach it",
    )
    draw_legend(panel)
    label = "largest Σ a(a − 1)/2 over Σσ at a recorded round"
    experiment.check(label, tightest, "at most", 1.0)
    experiment.mutant("Σ a²/2 in place of Σ a(a − 1)/2", label, wrong_lemma)
    experiment.check("rounds in which the lemma failed, all laws and runs", violations, "at most", 0)
    label = "largest shortfall of the Σσ in the learner's rate, relative"
    experiment.check(label, max(shortfall, 0.0), "equals", 0.0, resolution=2e-5)
    law, longest = laws["bursts of 16"]
    wrong = StrictlyLater(max_delay=longest, factor=FACTOR)
    measure = [theory.measurements.Arrivals(), theory.measurements.InverseRates(wrong)]
    result = experiment.simulate(wrong, losses, law, rounds=s.rounds, runs=2, measure=measure, burning_in=True)
    experiment.mutant("σ_t counts s + d_s > t", label, max(counted(result.measured, longest), 0.0))
