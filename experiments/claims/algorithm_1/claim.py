"""The rates in use against the formula, for three delay models."""

import dataclasses

import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend
from jaxbandit import theory
from jaxbandit._core.fields import pytree_dataclass


@pytree_dataclass
class StrictlyLater(jb.BestOfBothWorlds):
    """Wrong: σ_t counts s + d_s > t. Under bursts of d_max + 1 this misses d_max plays at the end of each burst."""

    def inverse_rates(self, state, round, num_arms):
        missed = (round.t // (self.max_delay + 1).astype(jnp.int32)).astype(jnp.float32) * self.max_delay
        fewer = round._replace(total_outstanding=round.total_outstanding - missed)
        return jb.learners.BestOfBothWorlds.inverse_rates(self, state, fewer, num_arms)


@pytree_dataclass
class WithoutArms(jb.BestOfBothWorlds):
    """Wrong: γ₀ without K^{2/3}."""

    def inverse_rates(self, state, round, num_arms):
        small = dataclasses.replace(self, factor=self.factor / num_arms ** (1 / 3))
        return jb.learners.BestOfBothWorlds.inverse_rates(small, state, round, num_arms)


def run(experiment):
    s, worst = experiment.settings, {}
    panels = experiment.panels(len(s.arms))
    rng = np.random.default_rng(0)
    laws = {
        "fixed": np.full(s.rounds, s.delay),
        "bursts": -np.arange(1, s.rounds + 1) % (s.delay + 1),
        "random": rng.integers(0, s.delay + 1, s.rounds),
    }
    for panel, arms in zip(panels, s.arms, strict=True):
        for index, (name, delays) in enumerate(laws.items()):
            learner = jb.BestOfBothWorlds(max_delay=s.delay)
            result = experiment.simulate(
                learner,
                jb.losses.Bernoulli([0.3, *[0.5] * (arms - 1)]),
                jb.delays.Trace(delays, bound=16, long_waits=0),
                rounds=s.rounds,
                runs=256,
                measure=[theory.measurements.InverseRates(learner)],
                burning_in=True,
            )
            at = result.rounds - 1
            right = theory.bounds.mzs22_rates(delays, arms, max_delay=s.delay)
            used = result.measured["tsallis_rate"][:, 0], result.measured["entropy_rate"][:, 0]
            for kind, mine, formula in zip(("1/η", "1/γ"), used, (right.tsallis[at], right.entropy[at]), strict=True):
                worst[kind] = max(worst.get(kind, 0), float(np.max(np.abs(mine / formula - 1))))
            worst["Σx − 1"] = max(worst.get("Σx − 1", 0), result.residual)
            colour = jb.plots.COLOURS[index]
            panel.plot(result.rounds, right.entropy[at], color=colour, linestyle=jb.plots.STYLES[index], label=f"{name}: formula")
            panel.plot(result.rounds, used[1], "o", color=colour, markersize=4, fillstyle="none", label=f"{name}: in use")
        panel.set(xlabel="round t", ylabel="inverse entropy rate 1/γ_t", title=f"K = {arms}, d_max = {s.delay}", xscale="log")
        draw_legend(panel)
    for kind, error in worst.items():
        experiment.check(f"largest relative error of {kind}", error, "equals", 0.0, resolution=2e-5)
    delays, arms = laws["bursts"], s.arms[-1]
    for name, wrong in {"σ_t counts s + d_s > t": StrictlyLater, "γ₀ without K^{2/3}": WithoutArms}.items():
        learner = wrong(max_delay=s.delay)
        losses, law = jb.losses.Bernoulli([0.3, *[0.5] * (arms - 1)]), jb.delays.Trace(delays, bound=16, long_waits=0)
        measure = [theory.measurements.InverseRates(learner)]
        result = experiment.simulate(learner, losses, law, rounds=s.rounds, runs=2, measure=measure, burning_in=True)
        formula = theory.bounds.mzs22_rates(delays, arms, max_delay=s.delay).entropy[result.rounds - 1]
        off = np.max(np.abs(result.measured["entropy_rate"][:, 0] / formula - 1))
        experiment.mutant(name, "largest relative error of 1/γ", float(off))
