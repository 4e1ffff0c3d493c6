"""Values that others published for late feedback of other shapes, and ours beside them: one table, in Markdown.

    python experiments/shapes/published.py            # all; some minutes
    python experiments/shapes/published.py pike-burke # one set

Conversions with Bernoulli rewards .5 and .6 over 250 000 rounds (Pike-Burke et al. 2018, figure 3; their values are ratios to
ODAAF, whose regret is known); a clinical trial whose delays depend on the outcome; plays that lead to a state, which is seen at once (Baghi
2026, two families of environments). The values are in ``published_values.json``, which says where each comes from.
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
from jaxbandit.extend import Losses, number, pick, pytree_dataclass
from jaxbandit.learners.ftrl import FTRL, FTRLState, follow_leader

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


@pytree_dataclass
class Seasonal(Losses):
    """Bernoulli losses with means base + 0.06 sin(2πt/T + phase), t from 0."""

    base: jax.Array = number(high=1.0, axes="K")
    phase: jax.Array = number(axes="K")
    rounds: float = number(low=1.0)

    @property
    def num_arms(self) -> int:
        return np.shape(self.base)[0]

    def expected(self, t: jax.Array) -> jax.Array:
        return jnp.clip(self.base + 0.06 * jnp.sin(2 * jnp.pi * (t - 1) / self.rounds + self.phase), 0, 1)

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return (noise < pick(self.expected(t), arm)).astype(noise.dtype)


@pytree_dataclass
class ConstantEntropy(FTRL):
    """The hybrid regulariser with Tsallis weight √t and a constant rate of the entropy, as their program has it."""

    rate: float = number(open_low=True)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> FTRLState:
        return FTRLState.start(num_arms, runs_shape)

    def inverse_rates(self, state: FTRLState, round: jb.learners.Round, num_arms: int) -> tuple[jax.Array, jax.Array]:
        return jnp.sqrt(round.t.astype(jnp.float32)) / 2, jnp.float32(1) / self.rate

    def act(self, state: FTRLState, round: jb.learners.Round) -> tuple:
        probabilities, state = follow_leader(state, *self.inverse_rates(state, round, state.loss_estimates.shape[0]))
        return probabilities, (), state

    def observe(self, state: FTRLState, observation: jb.learners.Observation) -> FTRLState:
        return state.add_weighted(observation)


def funnels(arms: int, states: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """P(s|a) and the phases of the states' losses of the environments with seeds 0, 1, …: draws in the order of their program."""
    transitions, phases = np.empty((count, arms, states)), np.empty((count, states))
    depth = np.arange(states)
    for seed in range(count):
        rng = np.random.default_rng(seed)
        tilt, category = rng.uniform(0.5, 2.6, 12), rng.integers(12, size=arms)
        quality = rng.lognormal(0, 0.6, arms)
        weight = np.exp(-tilt[category, None] * depth + 0.45 * (quality[:, None] / quality.mean() - 1) * depth)
        weight /= np.exp(-tilt[category, None] * depth).sum(1, keepdims=True)
        weight *= np.stack([rng.dirichlet(40 * np.ones(states)) for _ in range(arms)])
        transitions[seed], phases[seed] = weight / weight.sum(1, keepdims=True), rng.uniform(0, 2 * np.pi, states)
    return transitions, phases


def funnel(seed: int = 1) -> Iterator[tuple]:
    """A funnel of 200 items and 6 states, the loss 50 rounds later; one row of their table."""
    told = VALUES["funnel"]
    arms, signals, rounds, count = told["K"], told["S"], told["rounds"], told["runs"]
    transitions, phases = funnels(arms, signals, count)
    base = jnp.linspace(0.92, 0.28, signals)

    def found(learner, delay: int) -> np.ndarray:
        def regret(key, transitions, phase):
            losses = L.IntermediateStates(transitions, Seasonal(base, phase, rounds))
            game = jb.rollout(
                learner(transitions), losses, D.Fixed(delay), rounds=jnp.int32(rounds), runs=RUNS_EACH, key=key, record=[rounds]
            )
            return game.regret[-1]

        keys = jax.random.split(jax.random.key(seed), count)
        return np.asarray(jax.jit(jax.vmap(regret))(keys, jnp.asarray(transitions), jnp.asarray(phases)), np.float64)

    for row in told["values"]:
        delay, name = row["d"], row["learner"]
        if name == "state":
            each = found(lambda transitions, d=delay: jb.StateExp3(transitions, rounds, d), delay)
        elif name == "action":
            rate, own = np.sqrt(2 * np.log(arms) / ((arms + delay) * rounds)), np.sqrt(np.log(arms) / (arms * rounds * np.e / 2))
            each = found(lambda _, scale=rate / own: jb.DelayedExponentialWeights(rounds, 0, 0, scale=scale), delay)
        else:
            rates = [many * np.sqrt(np.log(arms) / (delay * rounds)) for many in (0.5, 1.0, 2.0)]
            each = min((found(lambda _, rate=rate: ConstantEntropy(rate), delay) for rate in rates), key=np.mean)
        error = np.sqrt(each.var(1, ddof=1).mean() * (1 / each.size + 1 / count))
        yield f"{name}, K = {arms}", f"Fixed({delay})", rounds, row["regret"], each.mean(), error


SETS = {"states": states, "funnel": funnel, "trial": trial, "pike-burke": pike_burke}


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
