"""A learner that logs everything it is given, and a comparison of the log with an event queue in NumPy.

The random numbers and the queue are those of ``tests/reference``.
"""

import math
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxbandit as jb
from jaxbandit._core import randomness
from jaxbandit._core.fields import float_dtype, pytree_dataclass
from jaxbandit.delays import NEVER
from tests.reference import streams
from tests.reference.interface import Reference, play

LONGEST = 64  # rounds that fit into a log
ARMS = 3
QUESTIONS = 3  # old plays asked after in each round


class Log(NamedTuple):
    """All that a learner was told. Few arrays, because each one costs a second of compiling."""

    now: jax.Array  # [] the round
    count: jax.Array  # [...] deliveries
    clean: jax.Array  # [...] whether what had not arrived was marked by arm -1
    rounds: jax.Array  # [LONGEST, 2 + QUESTIONS, ...] row t - 1: σ_t, Σσ, and whether the plays asked after are outstanding
    deliveries: jax.Array  # [LONGEST, 7 + K, ...] row n: arrival, origin, arm, loss, probability and memo of the n-th


def weights(t, word):
    """Sixteenths in which the three arms are played: exact in float32, other in each round and run."""
    first = 1 + ((3 * t + word) & 7)
    second = 1 + ((t + (word >> 3)) & 3)
    return first, second, 16 - first - second


def questions(t, word):
    """Three rounds to ask after: the same in all runs, near ones, and any (also 0 and less, and t itself)."""
    return t - 1 - (5 * t & 15), t - (word & 31), word % (t + 1)


@pytree_dataclass
class Probe(jb.learners.Learner):
    """Plays :func:`weights` and logs everything."""

    watches_plays: ClassVar[bool] = False

    def init(self, num_arms, runs_shape):
        def table(*shape):
            return jnp.zeros((*shape, *runs_shape), float_dtype())

        count = jnp.zeros(runs_shape, jnp.int32)
        return Log(jnp.zeros((), jnp.int32), count, count == 0, table(LONGEST, 2 + QUESTIONS), table(LONGEST, 7 + num_arms))

    def act(self, log, round):
        word = (round.words().first >> 8).astype(jnp.int32)
        probabilities = jnp.stack(weights(round.t, word)).astype(float_dtype()) / 16
        asked = [round.is_outstanding(s) if self.watches_plays else False for s in questions(round.t, word)]
        told = _columns(round.outstanding, round.total_outstanding, *asked, shape=word.shape)
        log = log._replace(now=round.t, rounds=lax.dynamic_update_index_in_dim(log.rounds, told, round.t - 1, 0))
        return probabilities, (round.t, word, probabilities * round.time), log

    def observe(self, log, observation):
        arrived, origin, arm, loss, probability, (memo_round, memo_word, memo_row), *_ = observation
        told = _columns(log.now, origin, arm, loss, probability, memo_round, memo_word, *memo_row, shape=log.count.shape)
        here = (jnp.arange(LONGEST).reshape(LONGEST, *[1] * log.count.ndim) == log.count) & arrived
        return log._replace(
            count=log.count + arrived,
            clean=log.clean & (arrived | (arm == -1)),
            deliveries=jnp.where(here[:, None], told, log.deliveries),
        )


def _columns(*values, shape) -> jax.Array:
    """All as floats: whole numbers below 2²⁴ stay exact."""
    return jnp.stack([jnp.broadcast_to(jnp.asarray(value, float_dtype()), shape) for value in values])


@pytree_dataclass
class Watcher(Probe):
    """A probe that asks which old plays are outstanding."""

    watches_plays: ClassVar[bool] = True


@pytree_dataclass
class Staircase(jb.losses.Losses):
    """Losses that tell which arm was played and which word was drawn."""

    num_arms: ClassVar[int] = ARMS
    stationary: ClassVar[bool] = True

    def expected(self, t):
        return (jnp.arange(ARMS) + 0.5).astype(float_dtype()) / 4

    def sample(self, t, arm, noise):
        return (noise + arm.astype(noise.dtype)) / 4


def words(key, purpose: int, runs: int, first_run: int = 0) -> np.ndarray:
    """``[LONGEST, runs, 2]`` the random numbers, 32 bits each, of rounds 1 … LONGEST."""
    rounds, ids = np.arange(1, LONGEST + 1)[:, None], first_run + np.arange(runs)
    return np.stack(streams.numbers(tuple(np.asarray(jax.random.key_data(key))), purpose, rounds, ids), -1)


def uniform(word: np.ndarray) -> np.ndarray:
    """The numbers in (0, 1) that the simulator makes of words."""
    return (((word >> 9) + 0.5) / 2**23).astype(np.float32)


class Plays(NamedTuple):
    """All plays of all runs, ``[LONGEST, runs]``, and when their feedback is due (``[LONGEST, runs]``, NEVER or later)."""

    word: np.ndarray
    probabilities: np.ndarray  # [LONGEST, K, runs]
    arm: np.ndarray
    loss: np.ndarray
    delay: np.ndarray


def plays(delays, key, runs: int, first_run: int = 0) -> Plays:
    """What a :class:`Probe` plays against :class:`Staircase`, and the delays of its plays."""
    t = np.arange(1, LONGEST + 1)[:, None]
    word = (words(key, randomness.LEARNER, runs, first_run)[..., 0] >> 8).astype(np.int64)
    probabilities = np.stack(weights(t, word), 1) / 16
    which_arm, which_loss = np.moveaxis(uniform(words(key, randomness.PLAY, runs, first_run)), -1, 0)
    arm = (np.cumsum(probabilities, 1) <= which_arm[:, None]).sum(1)
    loss = (which_loss + arm.astype(np.float32)) / np.float32(4)
    shared = getattr(delays, "shared", False)
    noise = uniform(words(key, randomness.DELAY, 1 if shared else runs, 0 if shared else first_run)[..., 0])
    delay = np.asarray(delays.draw(jnp.asarray(t), jnp.asarray(arm, jnp.int32), jnp.asarray(loss), jnp.asarray(noise)))
    return Plays(word, probabilities, arm, loss, np.broadcast_to(delay, arm.shape).astype(np.int64))


def check_log(log: Log, made: Plays, rounds: int, watched: bool) -> None:
    """Every field of the log against a queue of events, run by run."""
    assert np.all(log.clean)
    for run in range(made.arm.shape[1]):
        _check_run(
            jax.tree.map(lambda leaf, run=run: np.asarray(leaf)[..., run] if np.ndim(leaf) else leaf, log),
            made,
            rounds,
            run,
            watched,
        )


class Recorder(Reference):
    """Writes down what a learner of one run is shown, with the rounds that :func:`questions` asks about."""

    def __init__(self, word: np.ndarray):
        super().__init__(ARMS)
        self.word, self.delivered, self.outstanding, self.answers = word, [], [], []

    def act(self, t, outstanding):
        self.outstanding.append(len(outstanding))
        self.answers.append([s in outstanding for s in questions(t, int(self.word[t - 1]))])
        return super().act(t, outstanding)

    def observe(self, t, s, arm, loss):
        self.delivered.append((t, s))


def _check_run(log: Log, made: Plays, rounds: int, run: int, watched: bool) -> None:
    waits = [math.inf if delay == NEVER else int(delay) for delay in made.delay[:rounds, run]]
    recorder = Recorder(made.word[:, run])
    play(recorder, made.arm[:, run], np.zeros((rounds, ARMS)), waits)
    delivered, outstanding, answers = recorder.delivered, recorder.outstanding, recorder.answers
    count, told = len(delivered), log.deliveries.T
    assert log.count == count
    arrival, origin = np.array(delivered, int).reshape(count, 2).T
    row, arm = origin - 1, made.arm[origin - 1, run]
    expected = {
        "arrival": arrival, "origin": origin, "arm": arm, "loss": made.loss[row, run],
        "probability": made.probabilities[row, arm, run], "memo: round": origin, "memo: word": made.word[row, run],
    }  # fmt: skip
    expected |= {f"memo: row {i}": made.probabilities[row, i, run] * origin for i in range(ARMS)}
    for (name, value), column in zip(expected.items(), told, strict=True):
        np.testing.assert_array_equal(column[:count], value, err_msg=name)
    known = [outstanding, np.cumsum(outstanding), *(np.array(answers).T if watched else [])]
    for name, value, column in zip(("outstanding", "total", *["is outstanding"] * QUESTIONS), known, log.rounds.T, strict=False):
        np.testing.assert_array_equal(column[:rounds], value, err_msg=name)


def summary(made: Plays, rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The largest number outstanding, Σ min(d_s, T - s) and the number of lost plays, ``[runs]`` each, from the delays alone."""
    s = np.arange(1, rounds + 1)[:, None]
    delay = made.delay[:rounds]
    total = np.minimum(delay, rounds - s).sum(0)
    most = np.max([((s < t) & (s + delay >= t)).sum(0) for t in range(1, rounds + 1)], 0)
    return most, total, (delay == NEVER).sum(0)
