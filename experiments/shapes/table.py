"""For each feedback model: the matched algorithm, mismatched algorithms and the uniform baseline, at three delays.

    python experiments/shapes/table.py                 # all, in Markdown: the tables of docs/appendix/feedback_models.md; some minutes
    python experiments/shapes/table.py conversions     # one shape

Mean regret ± standard error over 256 runs. What each game is, its function says.
"""

import argparse
import dataclasses
import warnings

import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from jaxbandit.extend import float_dtype, one_hot, pytree_dataclass

D, L = jb.delays, jb.losses
ROUNDS = 20_000


def conversions(delay):
    """K = 4, conversion rate 0.1 for the best arm, 0.05 for the others; a conversion is delayed by 0 to ``delay`` rounds, a failure is never observed."""
    losses, law = L.Bernoulli(rewards=[0.1, 0.05, 0.05, 0.05]), D.UniformRandom(0, delay)
    curve = np.arange(1, delay + 2) / (delay + 1)
    silent, told = D.LossDependent(D.PacketLoss(0.0), law), D.LossDependent(D.Fixed(delay), law)
    return {
        "`DelayedUCB`": (jb.DelayedUCB(curve), losses, silent),
        "`DelayedKLUCB`": (jb.DelayedKLUCB(curve), losses, silent),
        "KL-UCB, failures observed when the window closes": (jb.KLUCB(), losses, told),
        "KL-UCB on observed outcomes only": (jb.KLUCB(), losses, silent),
        "uniform baseline": (jb.Uniform(), losses, silent),
    }


def loss_dependent(delay):
    """Mean losses 0.3 and 0.6; loss 0 of the better arm and loss 1 of the other are delayed by ``delay`` rounds, all else by none."""
    late = D.LossDependent(
        no_conversion=D.ArmDependent([D.Fixed(0), D.Fixed(delay)]), conversion=D.ArmDependent([D.Fixed(delay), D.Fixed(0)])
    )
    learners = {
        "`OptimisticPessimisticElimination`": jb.OptimisticPessimisticElimination(ROUNDS),
        "successive elimination on arrived feedback": jb.SuccessiveElimination(ROUNDS),
        "UCB1 on arrived feedback": jb.DelayedUCB1(),
        "Thompson sampling on arrived feedback": jb.DelayedThompson(),
        "uniform baseline": jb.Uniform(),
    }
    return {name: (learner, L.Bernoulli([0.3, 0.6]), late) for name, learner in learners.items()}


def moving_means(delay):
    """Two arms with mean losses 0.3 and 0.6 swap every 2000 rounds; regret against the best arm of every round."""
    turns = L.Switching([[0.3, 0.6], [0.6, 0.3]] * 5, 1 + 2000 * np.arange(10))
    learners = {
        "`SlidingWindowUCB(1000, alpha=0.5)`": jb.SlidingWindowUCB(1000, alpha=0.5),
        "`DiscountedUCB(0.998, alpha=0.5)`": jb.DiscountedUCB(0.998, alpha=0.5),
        "`SlidingWindowThompson(1000)`": jb.SlidingWindowThompson(1000),
        "`DiscountedThompson(0.998)`": jb.DiscountedThompson(0.998),
        "UCB1, all observations": jb.DelayedUCB1(0.5),
        "Thompson sampling, all observations": jb.DelayedThompson(),
        "uniform baseline": jb.Uniform(),
    }
    return {name: (learner, turns, D.Fixed(delay)) for name, learner in learners.items()}


@pytree_dataclass
class Credulous(jb.extend.TakesSums):  # accepts sums of losses
    """UCB1 that credits the rewards that arrive in a round to the arm of that round."""

    def init(self, num_arms, runs_shape):
        zeros = jnp.zeros((num_arms, *runs_shape), float_dtype())
        return zeros, zeros, jnp.zeros(runs_shape, jnp.int32)

    def act(self, state, round):
        counts, rewards, _ = state
        index = rewards / jnp.maximum(counts, 1) + jnp.sqrt(2 * jnp.log(round.time) / jnp.maximum(counts, 1))
        best = jnp.where(counts > 0, index, jnp.inf)
        best = (best == best.max(0)).astype(counts.dtype)
        return best / best.sum(0), (), state

    def played(self, state, round, arm, probability):
        return state[0] + one_hot(arm, state[0].shape[0]), state[1], arm

    def observe(self, state, observation):
        reward = jnp.where(observation.arrived, 1 - observation.loss, 0)
        return state[0], state[1] + jnp.where(one_hot(state[2], state[0].shape[0]), reward, 0), state[2]


def sums(delay):
    """Mean rewards 0.7 and 0.3, delayed by 0 to 2·``delay`` rounds; only the sum of the rewards that arrive in a round is observed."""
    learners = {
        "`ODAAF`": jb.ODAAF(ROUNDS, delay),
        "UCB1, credits arrivals to the current arm": Credulous(),
        "UCB1 with attributed rewards (not available here)": jb.DelayedUCB1(),
        "uniform baseline": jb.Uniform(),
    }
    return {name: (one, L.Bernoulli(rewards=[0.7, 0.3]), D.UniformRandom(0, 2 * delay)) for name, one in learners.items()}


def pieces(delay):
    """Mean losses 0.3 and 0.7, each spread evenly over ``delay`` + 1 rounds; only the sum per round is observed."""
    spread, whole = D.CompositeFeedback(np.full(delay + 1, 1 / (delay + 1))), D.Fixed(delay)
    losses = L.Bernoulli([0.3, 0.7])
    return {
        "`CoLo(TsallisINF)`": (jb.CoLo(jb.TsallisINF(), delay), losses, spread),
        "`CoLo(DelayedUCB1)`": (jb.CoLo(jb.DelayedUCB1(), delay), losses, spread),
        "UCB1, credits arrivals to the current arm": (Credulous(), losses, spread),
        "Tsallis-INF with attributed losses (not available here)": (jb.TsallisINF(), losses, whole),
        "uniform baseline": (jb.CoLo(jb.Uniform(), delay), losses, spread),
    }


def states(delay):
    """K = 20 arms lead to 4 states with mean losses 0.2, 0.4, 0.6 and 0.8, with probabilities drawn once (Dirichlet, 1.5); the state is
    observed at once, the loss is delayed by ``delay`` rounds."""
    transitions = np.random.default_rng(0).dirichlet(1.5 * np.ones(4), 20)
    losses = L.IntermediateStates(transitions, L.Bernoulli([0.2, 0.4, 0.6, 0.8]))
    own = np.sqrt(np.log(20) / (20 * ROUNDS * np.e / 2))  # what the next learner's rate is a multiple of
    by_arms = jb.DelayedExponentialWeights(ROUNDS, 0, 0, scale=np.sqrt(2 * np.log(20) / ((20 + delay) * ROUNDS)) / own)
    learners = {
        "`StateExp3`": jb.StateExp3(transitions, ROUNDS, delay),
        "`EstimatedStateExp3`, estimates $P(s \\mid a)$": jb.EstimatedStateExp3(4, ROUNDS, delay),
        "`BOLD(StateExp3)`, one copy per round of delay": jb.BOLD(jb.StateExp3(transitions, ROUNDS / (delay + 1), 0), delay + 1),
        "exponential weights over arms": by_arms,
        "UCB1, which ignores states": jb.DelayedUCB1(),
        "uniform baseline": jb.Uniform(),
    }
    return {name: (learner, losses, D.Fixed(delay)) for name, learner in learners.items()}


def tracking(delay):
    """K = 4, mean losses 0.3 and 0.5 (three arms), fixed delay; at most 8 observations may be outstanding."""

    def limited(base, **options):
        return jb.LimitedTracking(base, 8, delay, **options)

    learners = {
        "`LimitedTracking(DelayedExp3)`": limited(jb.DelayedExp3()),
        "`DelayedExp3`, tracks whenever there is capacity": limited(jb.DelayedExp3(), probability=1.0),
        "`DelayedExp3`, tracks all (not available here)": jb.DelayedExp3(),
        "`LimitedTracking(DelayedUCB1)`": limited(jb.DelayedUCB1()),
        "`DelayedUCB1`, tracks whenever there is capacity": limited(jb.DelayedUCB1(), probability=1.0),
        "uniform baseline": jb.Uniform(),
    }
    return {name: (learner, L.Bernoulli([0.3, 0.5, 0.5, 0.5]), D.Fixed(delay)) for name, learner in learners.items()}


def useful_clicks(count, rng):
    """Click rate and rate of purchases per click of ``count`` arms: arms with more clicks have more purchases."""
    return rng.uniform(0.2, 0.6, count), rng.uniform(0.2, 0.4, count)


def misleading_clicks(count, rng):
    """The same for arms of which those with more clicks have fewer purchases."""
    clicks = rng.uniform(0.2, 0.6, count)
    return clicks, (0.2 - 0.25 * clicks + rng.uniform(-0.03, 0.03, count)) / clicks


def moments(rates, rng, plays=500):
    """``ProgressiveThompson`` with moments estimated from ``plays`` simulated actions on each of some earlier arms."""
    seen = rng.random((plays, len(rates[0])))
    outcomes = np.stack([seen < reached for reached in np.cumprod(rates, 0)]).astype(float)  # [stage, plays, arm]
    means = outcomes.mean(1)
    within = np.mean([np.cov(outcomes[..., arm]) for arm in range(seen.shape[1])], 0)
    return jb.ProgressiveThompson(means.mean(1), np.cov(means), within)


def without_outcomes(learner):
    """The same learner, which uses rewards only."""
    alone = {name: np.diag(np.diag(np.asarray(getattr(learner, name)))) for name in ("prior_covariance", "noise_covariance")}
    return dataclasses.replace(learner, **alone)


def progressive(delay, population=useful_clicks):
    """K = 10, click rates uniform on [0.2, 0.6], rates of purchases per click uniform on [0.2, 0.4], drawn once; a click is observed at
    once, the purchase after ``delay`` rounds."""
    rng = np.random.default_rng(0)
    losses, earlier = L.Funnel(population(10, rng)), population(200, rng)
    known = moments(earlier, rng)
    learners = {
        "`ProgressiveThompson`, moments of 200 earlier arms": known,
        "the same without clicks (diagonal covariances)": without_outcomes(known),
        "`ProgressiveThompson`, default moments": jb.ProgressiveThompson(),
        "the same without clicks": without_outcomes(jb.ProgressiveThompson()),
        "`DelayedThompson`, which waits for the purchase": jb.DelayedThompson(),
        "uniform baseline": jb.Uniform(),
    }
    return {name: (learner, losses, D.Fixed(delay)) for name, learner in learners.items()}


def baskets(delay):
    """K = 10, three stages: clicks as before, baskets per click uniform on [0.3, 0.7], purchases per basket on [0.4, 0.8], drawn once;
    a click is observed at once, a basket after 20 rounds on average, the purchase after ``delay`` rounds."""
    rng = np.random.default_rng(1)

    def population(count):
        return np.stack([rng.uniform(*ends, count) for ends in ((0.2, 0.6), (0.3, 0.7), (0.4, 0.8))])

    losses, earlier = L.Funnel(population(10), [D.Fixed(0), D.Geometric(20.0)]), population(200)
    known = moments(earlier, rng)
    clicks = np.array([0, 2])  # without the second stage
    two = jb.ProgressiveThompson(
        *(
            np.asarray(getattr(known, name))[index]
            for name, index in (
                ("prior_mean", clicks),
                ("prior_covariance", np.ix_(clicks, clicks)),
                ("noise_covariance", np.ix_(clicks, clicks)),
            )
        )
    )
    first_two = L.Funnel(np.stack([losses.rates[0], losses.rates[1] * losses.rates[2]]))
    games = {
        "`ProgressiveThompson`, clicks and baskets": (known, losses),
        "`ProgressiveThompson`, clicks only": (two, first_two),
        "`ProgressiveThompson`, neither": (without_outcomes(known), losses),
        "`ProgressiveThompson.for_stages(3)`, default moments": (jb.ProgressiveThompson.for_stages(3), losses),
        "`DelayedThompson`, which waits for the purchase": (jb.DelayedThompson(), losses),
        "uniform baseline": (jb.Uniform(), losses),
    }
    return {name: (*game, D.Fixed(delay)) for name, game in games.items()}


def misleading(delay):
    """K = 10, as before, but arms with more clicks have fewer purchases."""
    return progressive(delay, misleading_clicks)


def both_worlds(delay):
    """K = 4, mean losses 0.2 and 0.7 (three arms), fixed delay."""
    learners = {
        "`DelayedSAPO`": jb.DelayedSAPO(ROUNDS),
        "`DelayedSAPO`, constants (1, 20) instead of (9, 1280)": jb.DelayedSAPO(ROUNDS, separation=1.0, phase=20.0),
        "`BestOfBothWorlds` (MZS22)": jb.BestOfBothWorlds(delay),
        "`ZimmertSeldin` (ZS20)": jb.ZimmertSeldin(),
        "`TsallisINF`, which ignores the delay": jb.TsallisINF(),
        "uniform baseline": jb.Uniform(),
    }
    return {name: (learner, L.Bernoulli([0.2, 0.7, 0.7, 0.7]), D.Fixed(delay)) for name, learner in learners.items()}


SHAPES = {
    "conversions": (conversions, (20, 100, 400)),
    "loss-dependent": (loss_dependent, (10, 300, 3000)),
    "states": (states, (20, 100, 400)),
    "sums": (sums, (5, 20, 50)),
    "pieces": (pieces, (2, 10, 50)),
    "tracking": (tracking, (10, 50, 200)),
    "moving means": (moving_means, (0, 100, 500)),
    "progressive": (progressive, (100, 1000, 5000)),
    "baskets": (baskets, (100, 1000, 5000)),
    "misleading": (misleading, (100, 1000, 5000)),
    "both worlds": (both_worlds, (10, 100, 1000)),
}


def regret(game, runs: int) -> tuple[float, float]:
    """The mean of the last round and its standard error; against the best arm of every round, which is the regret if none moves."""
    result = jb.simulate(*game, rounds=ROUNDS, record=[ROUNDS], runs=runs, seed=0, measure=[jb.measure.DynamicRegret()])
    ends = np.asarray(result.measured["dynamic_regret"][-1], float)
    return ends.mean(), ends.std(ddof=1) / np.sqrt(runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", choices=[[], *SHAPES], help="which; all by default")
    parser.add_argument("--runs", type=int, default=256)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", "DelayedExponentialWeights")  # it has another rate than its own here
    for shape in options.shapes or SHAPES:
        games, delays = SHAPES[shape]
        print(f"\n**{shape}**: {games.__doc__}\n")
        print("| algorithm | " + " | ".join(f"delay {delay}" for delay in delays) + " |\n" + "|---" * (1 + len(delays)) + "|")
        made = {delay: games(delay) for delay in delays}
        for name in made[delays[0]]:
            cells = ["{:.0f} ± {:.0f}".format(*regret(made[delay][name], options.runs)) for delay in delays]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
