"""Counter-based random numbers: every word is ``threefry(key of its purpose; round, run)``.

A run is therefore identical for any batch, chunk, device or resume point. Learners share losses and delays run by run (paired
comparisons), and any round can be replayed. The words equal those of ``jax.random.fold_in`` (tested). They are computed here
because JAX's own rule is a rolled loop on CPU, which cannot be fused into the round.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

# One stream per purpose. A new purpose gets a new number; the old ones never change, or every run would.
PLAY, DELAY, LEARNER, LOSS = range(4)


class Words(NamedTuple):
    """Two uniform 32-bit words (uint32, any shape); also the data of a JAX key."""

    first: jax.Array
    second: jax.Array

    def key(self) -> jax.Array:
        """The words as typed JAX keys, for models that need more than one number."""
        return jax.random.wrap_key_data(jnp.stack(self, -1), impl="threefry2x32")


def stream(key: jax.Array, purpose: int) -> Words:
    """The root of one named stream of ``key``."""
    data = jax.random.key_data(jax.random.fold_in(key, purpose))
    return Words(data[0], data[1])


@jax.jit
def streams(key: jax.Array) -> tuple[Words, ...]:
    """The roots of all streams of ``key``, in one call."""
    return tuple(stream(key, purpose) for purpose in (PLAY, DELAY, LEARNER, LOSS))


def fold(words: Words, number: jax.Array | int, pair: jax.Array | int = 0) -> Words:
    """``jax.random.fold_in(key, number)``, on words; each ``pair`` (0 … 2³² - 1) gives independent words. Shapes broadcast."""
    return threefry(words, Words(jnp.asarray(pair, jnp.uint32), jnp.asarray(number).astype(jnp.uint32)))


def threefry(key: Words, count: Words) -> Words:
    """Threefry-2x32 with 20 rounds (Salmon et al., SC 2011)."""
    schedule = (key.first, key.second, key.first ^ key.second ^ np.uint32(0x1BD11BDA))
    x, y = count.first + schedule[0], count.second + schedule[1]
    for group in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x = x + y
            y = x ^ ((y << np.uint32(turn)) | (y >> np.uint32(32 - turn)))
        x, y = x + schedule[(group + 1) % 3], y + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return Words(x, y)


def in_one_pass(words: Words) -> Words:
    """The same words for a CPU, where XLA would compute each word separately, and the whole hash twice.

    Only a reduction has two results in one pass. This one is over two rows, of which the second is 0.
    """
    rows = [jnp.pad(word[None], [(0, 1)] + [(0, 0)] * word.ndim) for word in words]
    either = jax.lax.reduce(rows, [np.uint32(0)] * 2, lambda one, other: [a | b for a, b in zip(one, other, strict=True)], (0,))
    return Words(*either)


def round_key(stream: Words, t: jax.Array) -> Words:
    """The key of a stream in round t. With a key for each run, a CPU would otherwise compute it again in every round of the next hash."""
    key = fold(stream, t)
    return in_one_pass(key) if key.first.ndim and jax.default_backend() == "cpu" else key


def grain(dtype: np.dtype) -> jax.Array:
    """The number of different uniform numbers: 2²³ in float32, 2³² in float64."""
    return jnp.asarray(2.0**32 if dtype == jnp.float64 else 2.0**23, dtype)


def uniform(word: jax.Array, grain: jax.Array) -> jax.Array:
    """A uniform number in (0, 1): the upper bits of a word, plus a half, over :func:`grain`.

    The half keeps the numbers off 0, which would fall into the first arm's cell however small that arm's probability is.
    The grain is an argument because XLA does not repeat a true division: with a constant in its place, each fusion that
    uses the number would recompute it.
    """
    if grain.dtype == jnp.float64:
        return (word.astype(grain.dtype) + 0.5) / grain
    return _middle(word, 23, grain.dtype) / grain


def uniform_of_bits(word: jax.Array, dtype: np.dtype) -> jax.Array:
    """As :func:`uniform`, with a constant in place of the grain, and 30 bits in float64: for numbers that are used once."""
    bits = 23 if dtype == jnp.float32 else 30
    return _middle(word, bits, dtype) * 2.0**-bits


def _middle(word: jax.Array, bits: int, dtype: np.dtype) -> jax.Array:
    """The upper ``bits`` of a word as a number, plus a half."""
    return (word >> np.uint32(32 - bits)).astype(jnp.int32).astype(dtype) + 0.5
