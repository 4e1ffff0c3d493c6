"""Values that others published for late feedback of other shapes, and ours beside them: one table, in Markdown.

    python experiments/shapes/published.py            # all; some minutes
    python experiments/shapes/published.py pike-burke # one set

Conversions with Bernoulli rewards .5 and .6 over 250 000 rounds (Pike-Burke et al. 2018, figure 3; their values are ratios to
ODAAF, whose regret is known); a clinical trial whose delays depend on the outcome; plays that lead to a state, which is seen at once (Baghi
2026). The values are in ``published_values.json``, which says where each comes from.
"""

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb

D, L = jb.delays, jb.losses
VALUES = json.loads((Path(__file__).parent / "published_values.json").read_text())
WITHIN = 0.05, 4.0  # what counts as the same: 5 % and 4 standard errors


def conversions(law: jb.delays.Delays) -> jb.delays.Delays:
    """A success comes late, a failure never."""
    return D.LossDependent(no_conversion=D.PacketLoss(0.0), conversion=law)


def pike_burke(runs: int = 512, only: str = "", seed: int = 1) -> Iterator[tuple]:
    """Name, delay, round, published, ours, error; of one learner or of all."""
    laws = {
        "Unif(0,50)": (D.UniformRandom(0, 50), np.arange(1, 52) / 51),
        "Unif(0,100)": (D.UniformRandom(0, 100), np.arange(1, 102) / 101),
        "Exp50": (D.Geometric(49.5, bound=511), 1 - (49.5 / 50.5) ** np.arange(1, 513)),
    }
    published, rounds = VALUES["pike-burke"]["values"], 250_000
    for name, (law, curve) in laws.items():
        games = {
            "ODAAF": (jb.ODAAF(rounds, {"Unif(0,50)": 25, "Unif(0,100)": 50, "Exp50": 50}[name]), law),
            "DUCB": (jb.DelayedUCB(curve), conversions(law)),
            "QPM-D(UCB1)": (jb.QPMD(jb.DelayedUCB1(), capacity=208), law),
        }
        for learner, (player, delays) in games.items():
            if only not in ("", learner):
                continue
            values = {row["round"]: row["regret"] for row in published if (row["learner"], row["delay"]) == (learner, name)}
            result = jb.simulate(
                player, L.Bernoulli(rewards=[0.5, 0.6]), delays, rounds=rounds, runs=runs, seed=seed, record=sorted(values)
            )
            found = result.estimate()
            at = {int(t): place for place, t in enumerate(result.rounds)}
            for t, value in values.items():
                yield learner, name, t, value, found.mean[at[t]], found.error[at[t]]


def trial(runs: int = 2048, seed: int = 1) -> Iterator[tuple]:
    """A clinical trial of two arms: a success is known after 154 rounds, a failure when it happens."""
    told = VALUES["trial"]
    days = [11 * (int(day) + 1) for day, count in told["delays"]["histogram_days"].items() for _ in range(count)]
    late = D.LossDependent(no_conversion=D.Empirical(days), conversion=D.Fixed(154))
    games = {
        "QPM-D(Thompson Beta(1,1))": (jb.QPMD(jb.DelayedThompson(), capacity=1024), late),
        "Thompson Beta(1,1)": (jb.DelayedThompson(), D.Fixed(0)),
        "uniform": (jb.Uniform(), D.Fixed(0)),
    }
    rounds, losses = told["rounds"], L.Bernoulli(rewards=told["means_reward"])
    for row in told["values"]:
        if row["learner"] in games:
            learner, delays = games[row["learner"]]
            found = jb.simulate(learner, losses, delays, rounds=rounds, runs=runs, seed=seed, record=[rounds]).estimate()
            error = np.hypot(found.error[-1], row["se"])
            yield row["learner"], row["delay"], rounds, row["regret"], found.mean[-1], error


RUNS_EACH = 4  # of each environment with states; theirs 1


def environments(arms: int, states: int, rounds: int, count: int) -> tuple[np.ndarray, ...]:
    """P(s|a) and the states' mean losses in the first and after the last round, of the environments with seeds 0, 1, …"""
    found = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        transitions, base = rng.dirichlet(1.5 * np.ones(states), arms), rng.uniform(0.25, 0.75, states)
        found.append((transitions, base, base + 0.05 * rng.uniform(-1, 1, states)))
    return tuple(map(np.stack, zip(*found, strict=True)))


def states(seed: int = 1) -> Iterator[tuple]:
    """A state is seen at once, the loss 50 rounds later. Their environments, one run of each; the error is that of chance within them."""
    told = VALUES["dirichlet"]
    rounds, count, signals = told["rounds"], told["runs"], told["S"]

    def learner(name: str, transitions, arms: int, delay: int):
        if (
            name == "action"
        ):  # exponential weights of arms at the published rate, as a multiple of that of DelayedExponentialWeights
            rate = np.sqrt(2 * np.log(arms) / ((arms + delay) * rounds))
            own = np.sqrt(np.log(arms) / (arms * rounds * np.e / 2))
            return jb.DelayedExponentialWeights(rounds, 0, 0, scale=rate / own)
        if name == "state":
            return jb.StateExp3(transitions, rounds, delay)
        return jb.BOLD(jb.StateExp3(transitions, rounds / (delay + 1), 0), capacity=delay + 1)

    for row in told["values"]:
        arms, delay, name = row["K"], row["d"], row["learner"]

        def regret(key, transitions, start, end, name=name, arms=arms, delay=delay):
            losses = L.IntermediateStates(transitions, L.Drifting(start, end, rounds))
            player, waits = learner(name, transitions, arms, delay), D.Fixed(delay)
            game = jb.rollout(player, losses, waits, rounds=jnp.int32(rounds), runs=RUNS_EACH, key=key, record=[rounds])
            return game.regret[-1]

        made = map(jnp.asarray, environments(arms, signals, rounds, count))
        found = np.asarray(
            jax.jit(jax.vmap(regret))(jax.random.split(jax.random.key(seed), count), *made), np.float64
        )  # [count, runs]
        within = np.sqrt(found.var(1, ddof=1).mean())
        error = within * np.sqrt(1 / found.size + 1 / count)
        yield f"{name}, K = {arms}", f"Fixed({delay})", rounds, row["regret"], found.mean(), error


SETS = {"states": states, "trial": trial, "pike-burke": pike_burke}


def main() -> None:
    warnings.filterwarnings("ignore", "DelayedExponentialWeights")  # it has another rate than its own here
    print("| learner | delays | T | published | ours | difference | standard errors | |\n|---|---|---|---|---|---|---|---|")
    for title in sys.argv[1:] or SETS:
        for learner, delay, t, value, mean, error in SETS[title]():
            apart, errors = mean / value - 1, (mean - value) / error
            same = abs(apart) <= WITHIN[0] or abs(errors) <= WITHIN[1]
            print(
                f"| {learner} | {delay} | {t} | {value:.1f} | {mean:.1f} ± {error:.1f} | {apart:+.1%} | {errors:+.1f} | {'' if same else 'differs'} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
