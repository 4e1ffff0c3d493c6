"""MZS22 (Algorithm 1) as a researcher would write it in JAX: one run as a ``lax.scan``, mapped over keys, jitted.

python plain_jax.py ARMS RUNS ROUNDS DELAY        prints one line of JSON
"""

import functools
import json
import sys
import time

import jax
import jax.numpy as jnp


def project(losses, a, b, y, mu):
    """argmin <L, x> - 2a Σ√x + b Σ x(log x - 1), from the y = x^{-1/2} and μ of the round before: three steps of Newton's method."""
    for _ in range(3):
        y = jnp.maximum(y * (losses - mu - 2 * b * (jnp.log(y) - 1)) / (a * y + 2 * b), 1.0)
        total, slope = (y**-2).sum(), (2 * y**-2 / (a * y + 2 * b)).sum()
        mu = jnp.minimum(mu + 2 * total * (1 - jnp.sqrt(total)) / slope, losses.min() - a)
    return y**-2 / (y**-2).sum(), y, mu


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def regret(key, arms, rounds, delay):
    means, log_k = jnp.full(arms, 0.5).at[0].set(0.3), jnp.log(arms)

    def one_round(carry, t):
        losses, waiting, total, regret, y, mu = carry
        total = total + jnp.minimum(t - 1, delay)
        a = jnp.sqrt(t + 10 * delay + (delay / (arms ** (1 / 3) * log_k)) ** 2)
        b = jnp.sqrt((total + 576 * delay**2 * arms ** (2 / 3) * log_k) / log_k)
        mu = jnp.where(t == 1, -a * arms**0.5 - b * log_k, mu)  # the root where all losses are 0
        x, y, mu = project(losses, a, b, y, mu)
        for_arm, for_loss = jax.random.uniform(jax.random.fold_in(key, t), (2,))
        arm = jnp.minimum((x.cumsum() <= for_arm).sum(), arms - 1)
        weighted = (for_loss < means[arm]) / x[arm]
        waiting = waiting.at[t % (delay + 1)].set(jax.nn.one_hot(arm, arms) * weighted)
        arrived = jnp.where(t > delay, waiting[(t - delay) % (delay + 1)], 0.0)
        return (losses + arrived, waiting, total, regret + (means - means.min()) @ x, y, mu), None

    zero = jnp.float32(0)
    start = jnp.zeros(arms), jnp.zeros((delay + 1, arms)), zero, zero, jnp.full(arms, arms**0.5), zero
    return jax.lax.scan(one_round, start, jnp.arange(1, rounds + 1))[0][3]


def main() -> None:
    arms, runs, rounds, delay = (int(word) for word in sys.argv[1:5])
    play, keys = jax.vmap(regret, (0, None, None, None)), jax.random.split(jax.random.key(0), runs)
    play(keys, arms, rounds, delay).block_until_ready()  # compiles
    start = time.perf_counter()
    mean = float(play(keys, arms, rounds, delay).mean())
    print(json.dumps({"rounds_per_second": runs * rounds / (time.perf_counter() - start), "regret": mean}))


if __name__ == "__main__":
    main()
