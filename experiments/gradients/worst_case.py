"""The worst oblivious adversary that gradients find: a loss table and a delay sequence of fixed total delay.

    python experiments/gradients/worst_case.py [STEPS] [ROUNDS]

The loss table ``[T, K]`` climbs the gradient of the expected regret (reverse mode, jump tangent, Adam on logits); the delays
improve by evolution: delay is moved from one round to another, which keeps their sum, and kept if the regret rises. Prints the
regret of both beside the paper's bound and a game with gaps of order 1/√T.
"""

import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

import jaxbandit as jb
from jaxbandit._core.fields import canonical
from jaxbandit._engine.game import Game
from jaxbandit._engine.player import Player
from jaxbandit.gradients.jump import JumpTangent

ARMS, DELAY, RUNS = 2, 10, 256


@jax.jit
def climb(logits, learner, delays, key, ids):
    """Expected regret of the table sigmoid(logits) over a block of runs, and its gradient in the logits."""
    rounds = logits.shape[0]

    def regret(logits):
        law = jb.losses.Table(jax.nn.sigmoid(logits))
        game = Game.set_up(learner, law, delays, key, ids)
        player = Player(hook=JumpTangent(horizon=jnp.asarray(float(rounds))))
        stretch = math.isqrt(rounds)

        def one_round(state, t):
            return player.step(game, state, t, loop="cond")[0], None

        @jax.checkpoint
        def one_stretch(state, first):
            return lax.scan(one_round, state, first + jnp.arange(stretch, dtype=jnp.int32))[0], None

        state, _ = lax.scan(one_stretch, player.start(game), jnp.arange(1, rounds + 1, stretch, dtype=jnp.int32))
        return game.regret(state).mean()

    return jax.value_and_grad(regret)(logits)


def measured(learner, table, delays, seed):
    """Regret on fresh runs, with its error."""
    law = jb.losses.Table(table)
    end = jb.simulate(
        learner, law, delays, rounds=len(table), runs=1024, key=jax.random.key(seed), record=24, measure=[jb.ControlVariates()]
    ).estimate()
    return float(end.mean[-1]), float(end.error[-1])


def main(steps: int, rounds: int) -> None:
    rounds = math.isqrt(rounds) ** 2  # whole stretches
    rng = np.random.default_rng(0)
    learner = jb.BestOfBothWorlds(2 * DELAY, 1.0, 1.0)
    sequence = np.full(rounds, DELAY)
    optimizer = optax.adam(0.1)
    logits = jnp.asarray(0.1 * rng.normal(size=(rounds, ARMS)))
    state = optimizer.init(logits)
    bound = 2 * DELAY

    def law(sequence):
        return jb.delays.Trace(sequence, bound=bound, long_waits=0)

    for step in range(steps):
        ids = jnp.arange(step * RUNS, (step + 1) * RUNS, dtype=jnp.uint32)
        value, slope = climb(logits, canonical(learner), canonical(law(sequence)), jax.random.key(0), ids)
        updates, state = optimizer.update(-slope, state)
        logits = optax.apply_updates(logits, updates)
        if step % 10 == 9:  # evolution of the delays on common random numbers
            table = np.asarray(jax.nn.sigmoid(logits))
            best = measured(learner, table, law(sequence), 1)[0]
            for _ in range(4):
                source, target = rng.integers(rounds, size=(2, rounds // 10))
                moved = sequence.copy()
                np.subtract.at(moved, source, 1)
                np.add.at(moved, target, 1)
                if moved.min() < 0 or moved.max() > bound:
                    continue
                mine = measured(learner, table, law(moved), 1)[0]
                if mine > best:
                    best, sequence = mine, moved
            print(f"step {step + 1}: regret {float(value):.2f}, after the delays {best:.2f}", flush=True)
    table = np.asarray(jax.nn.sigmoid(logits))
    found = measured(learner, table, law(sequence), 2)
    total = int(np.minimum(sequence, rounds - np.arange(1, rounds + 1)).sum())
    upper = 4 * math.sqrt(ARMS * rounds) + math.sqrt(8 * total * math.log(ARMS))
    print(
        f"T={rounds}, K={ARMS}, D={total}: found {found[0]:.2f} ± {found[1]:.2f}; bound of ZS20 4√(KT) + √(8 D log K) = {upper:.1f}"
    )
    for size in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
        law_ = jb.losses.Bernoulli([0.5 - size, 0.5 + size])
        end = jb.simulate(learner, law_, law(np.full(rounds, DELAY)), rounds=rounds, runs=1024, key=jax.random.key(3)).estimate()
        print(f"constructed, gap {2 * size:.3f}: {end.mean[-1]:.2f} ± {end.error[-1]:.2f}")


if __name__ == "__main__":
    main(*(int(one) for one in sys.argv[1:] or (60, 400)))
