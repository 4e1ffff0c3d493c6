"""The regret that a fixed delay adds, for smaller and smaller gaps."""

import jaxbandit as jb
from experiments.claims.harness.figures import draw_legend, draw_measured
from experiments.claims.harness.verdict import last_decade, local_exponents, mean_of, slope


def run(experiment):
    s = experiment.settings
    left, right = experiment.panels(2)

    def play(learner, gap, delay, rounds, runs):
        return experiment.simulate(
            learner, jb.losses.Bernoulli([0.4, 0.4 + gap]), jb.delays.Fixed(delay), rounds=rounds, runs=runs
        )

    def extra(learner, gap, delay, rounds, runs, at_once, name=""):
        late = play(learner, gap, delay, rounds, runs)
        if name:
            share = last_decade(late, at_once)
            experiment.number(f"{name}: share of R(d) − R(0) in the last decade of rounds, d = {delay}, Δ = {gap}", share)
        return mean_of(late, late.regret[-1] - at_once.regret[-1])

    ignoring = {"Tsallis-INF": jb.TsallisINF(), "UCB1": jb.DelayedUCB1(), "Thompson sampling": jb.DelayedThompson()}
    for index, (name, learner) in enumerate(ignoring.items()):
        shares = []
        for gap in s.gaps:
            at_once = play(learner, gap, 0, s.rounds, s.runs)
            least = s.long_delay * gap / 2
            shares.append(extra(learner, gap, s.long_delay, s.rounds, s.runs, at_once) / least)
            label = f"{name}: (R(d) − R(0))/(dΔ(K−1)/K), d = {s.long_delay}, Δ = {gap}"
            if name == "Tsallis-INF":
                experiment.check(label, shares[-1], "equals", 1.0, s.within, kind="open")
            else:
                experiment.check(label, shares[-1], "at most", s.at_most, kind="open")
            experiment.number(
                f"{name}: regret per log t over the last decade, times Δ, d = 0, Δ = {gap}", slope(at_once) / (1 / gap)
            )
            if name == "Tsallis-INF" and gap == s.gaps[1]:
                experiment.mutant("the paper's d in place of dΔ(K−1)/K", label, bound=s.long_delay / least)
                experiment.mutant(
                    "ZS20 in place of Tsallis-INF",
                    label,
                    extra(jb.ZimmertSeldin(), gap, s.long_delay, s.rounds, s.runs, at_once) / least,
                )
        draw_measured(left, s.gaps, shares, index, name)
    left.axhline(1, color="black", linestyle=":")
    left.set(xscale="log", xlabel="gap Δ", ylabel=f"(R(d) − R(0))/(dΔ(K−1)/K), d = {s.long_delay}", ylim=(0, None))
    draw_legend(left)

    paying = {
        "MZS22 (0, 0)": jb.BestOfBothWorlds(s.delay, linear=0.0, factor=0.0),
        "MZS22 (10, 24)": jb.BestOfBothWorlds(s.delay),
        "ZS20": jb.ZimmertSeldin(),
        "Tsallis-INF": jb.TsallisINF(),
    }
    rounds = {gap: round(s.horizon / gap**2) for gap in s.small_gaps}
    # Without delay these are one learner: Tsallis-INF.
    at_once = {gap: play(jb.TsallisINF(), gap, 0, rounds[gap], s.long_runs) for gap in s.small_gaps}
    inverse = [1 / gap for gap in s.small_gaps]
    rises, powers = {}, {}
    for index, (name, learner) in enumerate(paying.items()):
        costs = [extra(learner, gap, s.delay, rounds[gap], s.long_runs, at_once[gap], name) / s.delay for gap in s.small_gaps]
        draw_measured(right, inverse, costs, index, name)
        for gap, one in zip(s.small_gaps, costs, strict=True):
            experiment.number(f"{name}: (R(d) − R(0))/d, d = {s.delay}, Δ = {gap}", one)
        rises[name] = costs[0] + costs[-1] / -1
        if name != "Tsallis-INF":  # whose costs are too small for a logarithm
            powers[name] = local_exponents(inverse, costs)
            for small, large, power in zip(s.small_gaps, s.small_gaps[1:], powers[name]):
                experiment.number(f"{name}: exponent of 1/Δ in R(d) − R(0) between Δ = {large} and {small}", power)
    experiment.check(
        "MZS22 (0, 0): exponent of 1/Δ in R(d) − R(0) between the two smallest gaps",
        powers["MZS22 (0, 0)"][0],
        "at least",
        s.power_of_the_term,
        kind="open",
    )
    label = f"MZS22 (10, 24): (R(d) − R(0))/d at Δ = {s.small_gaps[0]} − that at Δ = {s.small_gaps[-1]}"
    experiment.check(label, rises["MZS22 (10, 24)"], "at least", s.rise, kind="open")
    experiment.mutant("Tsallis-INF in place of MZS22", label, rises["Tsallis-INF"])
    right.set(xscale="log", yscale="log", xlabel="1/Δ", ylabel=f"(R(d) − R(0))/d, d = {s.delay}")
    draw_legend(right)
    found = ", ".join(f"{power[0].value:.2f} for {name}" for name, power in powers.items())
    experiment.say(
        f"Between the two smallest gaps the extra regret grows like (1/Δ)^p with p = {found}: these learners pay a term in 1/Δ."
    )
