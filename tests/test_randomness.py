"""The random words are JAX's own ``fold_in`` words, bit for bit, and the uniform numbers made of them are uniform."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.extend.random import threefry_2x32

from jaxbandit._core import randomness
from jaxbandit._core.randomness import DELAY, LEARNER, LOSS, PLAY, Words

PURPOSES = {"PLAY": PLAY, "DELAY": DELAY, "LEARNER": LEARNER, "LOSS": LOSS}
WORD = st.integers(0, 2**32 - 1)


def words(key, purpose, t, runs) -> np.ndarray:
    """The two words ``[2, ...]`` of a round, as the simulator makes them."""
    return np.stack(_fold_twice(randomness.stream(key, purpose), t, runs))


@jax.jit
def _fold_twice(root, t, runs):
    return randomness.fold(randomness.fold(root, t), runs)


def folded(key, purpose, t, runs) -> np.ndarray:
    """The same by JAX's public functions."""
    key = jax.random.fold_in(jax.random.fold_in(key, purpose), t)
    return np.moveaxis(np.asarray(jax.random.key_data(jax.vmap(jax.random.fold_in, (None, 0))(key, runs))), -1, 0)


@pytest.mark.parametrize("purpose", PURPOSES.values(), ids=PURPOSES)
@pytest.mark.parametrize("t", [1, 2, 1000, 2**24 + 1, 2**31 - 1])
def test_words_are_those_of_fold_in(purpose, t):
    key, runs = jax.random.key(3), jnp.array([0, 1, 255, 256, 2**16, 2**31, 2**32 - 1], jnp.uint32)
    mine = words(key, purpose, jnp.int32(t), runs)
    assert mine.dtype == np.uint32
    np.testing.assert_array_equal(mine, folded(key, purpose, t, runs))


@settings(max_examples=50, deadline=None)
@given(seed=WORD, purpose=st.sampled_from(sorted(PURPOSES.values())), t=st.integers(1, 2**31 - 1), run=WORD)
def test_words_of_any_seed_round_and_run(seed, purpose, t, run):
    key, runs = jax.random.key(seed), jnp.array([run], jnp.uint32)
    np.testing.assert_array_equal(words(key, purpose, jnp.int32(t), runs), folded(key, purpose, t, runs))


@pytest.mark.parametrize(
    ("key", "count", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_known_answers(key, count, expected):
    """The test vectors published with Random123 for threefry2x32, 20 rounds."""
    got = randomness.threefry(Words(*map(jnp.uint32, key)), Words(*map(jnp.uint32, count)))
    assert tuple(int(word) for word in got) == expected


@pytest.mark.parametrize("pair", [0, 1, 77, 2**32 - 1])
def test_other_pairs_are_the_same_function_of_another_count(pair):
    """Every run's pairs are outputs of one block cipher for different inputs, so no two streams meet."""
    root = randomness.stream(jax.random.key(5), LEARNER)
    mine = randomness.fold(root, jnp.arange(6, dtype=jnp.uint32), jnp.full((6,), pair, jnp.uint32))
    for run, (first, second) in enumerate(zip(*map(np.asarray, mine), strict=True)):
        theirs = threefry_2x32(jnp.stack(root), jnp.asarray([pair, run], jnp.uint32))
        np.testing.assert_array_equal([first, second], theirs)


def test_words_as_keys_are_jax_keys():
    key, runs = jax.random.key(5), jnp.arange(4, dtype=jnp.uint32)
    mine = randomness.fold(randomness.fold(randomness.stream(key, LOSS), jnp.int32(9)), runs).key()
    theirs = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.fold_in(jax.random.fold_in(key, LOSS), 9), runs)
    assert mine.shape == (4,)
    np.testing.assert_array_equal(jax.vmap(jax.random.uniform)(mine), jax.vmap(jax.random.uniform)(theirs))


def test_words_made_in_one_pass_are_the_same():
    words = randomness.fold(randomness.stream(jax.random.key(3), randomness.PLAY), jnp.arange(300, dtype=jnp.uint32))
    for one, other in zip(jax.jit(randomness.in_one_pass)(words), words, strict=True):
        np.testing.assert_array_equal(one, other)


def test_streams_rounds_runs_and_seeds_differ():
    """65536 words of 4 purposes, 4 rounds, 2 seeds: about one pair may coincide by chance, whole rows never."""
    runs = jnp.arange(2048, dtype=jnp.uint32)
    rows = [
        words(jax.random.key(seed), purpose, jnp.int32(t), runs)
        for seed, purpose, t in itertools.product((0, 1), PURPOSES.values(), (1, 2, 3, 100))
    ]
    for one, other in itertools.combinations(rows, 2):
        assert (one == other).sum() <= 2
    assert len({(int(a), int(b)) for row in rows for a, b in row.T}) == len(rows) * runs.size  # 64 bits: no two the same
    assert all((row[0] != row[1]).mean() > 0.999 for row in rows)


def test_numbers_of_different_purposes_are_uncorrelated():
    runs = jnp.arange(1 << 16, dtype=jnp.uint32)
    grain = randomness.grain(jnp.dtype(jnp.float32))
    columns = [
        np.asarray(randomness.uniform(jnp.asarray(word), grain), float)
        for purpose, t in itertools.product(PURPOSES.values(), (1, 2))
        for word in words(jax.random.key(1), purpose, jnp.int32(t), runs)
    ]
    correlation = np.corrcoef(columns) - np.eye(len(columns))
    assert np.abs(correlation).max() < 5 / np.sqrt(runs.size)


def test_float32_has_23_bits_and_stays_between_zero_and_one():
    grain = randomness.grain(jnp.dtype(jnp.float32))
    word = jnp.array([0, 511, 512, 2**31, 2**32 - 512, 2**32 - 1], jnp.uint32)
    got = np.asarray(randomness.uniform(word, grain))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got.astype(float), (np.array([0, 0, 1, 2**22, 2**23 - 1, 2**23 - 1]) + 0.5) / 2**23)


def test_float64_has_32_bits_and_stays_between_zero_and_one():
    with jax.enable_x64(True):
        grain = randomness.grain(jnp.dtype(jnp.float64))
        got = np.asarray(randomness.uniform(jnp.array([0, 1, 2**31, 2**32 - 1], jnp.uint32), grain))
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, (np.array([0, 1, 2**31, 2**32 - 1]) + 0.5) / 2**32)


@pytest.mark.parametrize("double", [False, True], ids=["float32", "float64"])
def test_uniform_moments_and_histogram(double):
    count, cells = 1 << 20, 64
    with jax.enable_x64(double):
        grain = randomness.grain(jnp.zeros(()).dtype)
        key = randomness.fold(randomness.stream(jax.random.key(0), PLAY), jnp.int32(1))
        numbers = np.stack(
            [randomness.uniform(word, grain) for word in randomness.fold(key, jnp.arange(count, dtype=jnp.uint32))]
        )
    assert numbers.min() > 0
    assert numbers.max() < 1
    numbers = numbers.astype(float)
    assert np.abs(numbers.mean(1) - 0.5).max() < 5 * np.sqrt(1 / 12 / count)
    assert np.abs(numbers.var(1) - 1 / 12).max() < 5 * np.sqrt(1 / 180 / count)
    for row in numbers:
        frequencies = np.histogram(row, cells, (0, 1))[0]
        chi_square = ((frequencies - count / cells) ** 2).sum() / (count / cells)
        assert abs(chi_square - (cells - 1)) < 5 * np.sqrt(2 * (cells - 1))
    # All bits are used, also the lowest: its mean is 1/2.
    lowest = np.floor(numbers * float(grain)) % 2
    assert np.abs(lowest.mean(1) - 0.5).max() < 5 * 0.5 / np.sqrt(count)


@pytest.mark.thorough
def test_same_words_under_jit_and_vmap():
    """Traced round and run give the bits of the eager call, whatever the batch."""
    key, runs = jax.random.key(8), jnp.arange(300, dtype=jnp.uint32)
    root, t = randomness.stream(key, DELAY), jnp.int32(77)

    def make(root, t, runs):
        return jnp.stack(randomness.fold(randomness.fold(root, t), runs))

    eager = np.asarray(make(root, t, runs))
    np.testing.assert_array_equal(jax.jit(make)(root, t, runs), eager)
    np.testing.assert_array_equal(jax.vmap(make, (None, None, 0), 1)(root, t, runs), eager)
    np.testing.assert_array_equal(jax.jit(make)(root, t, runs[37:41]), eager[:, 37:41])
    rounds = jnp.arange(70, 80, dtype=jnp.int32)
    np.testing.assert_array_equal(jax.jit(jax.vmap(make, (None, 0, None)))(root, rounds, runs)[7], eager)
    np.testing.assert_array_equal(make(root, t, runs.reshape(3, 100)), eager.reshape(2, 3, 100))

    grain = randomness.grain(jnp.dtype(jnp.float32))
    uniform = randomness.uniform(jnp.asarray(eager[0]), grain)
    np.testing.assert_array_equal(jax.jit(randomness.uniform)(jnp.asarray(eager[0]), grain), uniform)
    np.testing.assert_array_equal(jax.vmap(randomness.uniform, (0, None))(jnp.asarray(eager[0]), grain), uniform)


def test_same_words_in_double_precision():
    """The x64 switch changes how a word becomes a number, not the word."""
    key, runs = jax.random.key(2), jnp.arange(5, dtype=jnp.uint32)
    single = words(key, PLAY, jnp.int32(4), runs)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(words(jax.random.key(2), PLAY, jnp.int32(4), jnp.arange(5, dtype=jnp.uint32)), single)
