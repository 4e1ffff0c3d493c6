"""Each learner that the file of independent values does not know, against its reference over ten thousand rounds.

Reference and learner meet the same losses, and draw their arms with the same numbers, run by run. Rounding parts their
paths sooner or later, so what is compared is the mean regret; what they share makes the comparison sharp.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._core import randomness
from tests.reference import learners as reference

ROUNDS, RUNS, DELAY = 10_000, 24, 10
MEANS = np.array([0.3, 0.5, 0.6])
GAPS = [0.0, 0.2, 0.3]
PAIRS = {
    "arm-dependent": (jb.ArmDependentFTRL(11), lambda: reference.ArmDependentFTRL(3, 11)),
    "banker": (jb.BankerTsallisINF(), lambda: reference.BankerTsallisINF(3, order="proportional")),
    "asymmetric, gaps given": (
        jb.AsymmetricBestOfBothWorlds(DELAY, GAPS, centred=True, factor=1.0),
        lambda: reference.AsymmetricBestOfBothWorlds(3, DELAY, GAPS, centred=True, factor=1.0),
    ),
    "asymmetric, gaps estimated": (
        jb.AsymmetricBestOfBothWorlds(DELAY, centred=True, factor=1.0),
        lambda: reference.AsymmetricBestOfBothWorlds(3, DELAY, centred=True, factor=1.0),
    ),
    "skipper": (jb.Skipper(12, ROUNDS, 10 * ROUNDS), lambda: reference.Skipper(3, 12, ROUNDS, 10 * ROUNDS)),
    "fixed-delay exp3": (jb.FixedDelayExp3(ROUNDS, DELAY), lambda: reference.FixedDelayExp3(3, ROUNDS, DELAY)),
    "exp3": (jb.Exp3(), lambda: reference.Exp3(3)),
    "exp3++": (jb.Exp3PlusPlus(), lambda: reference.Exp3PlusPlus(3)),
    "kl-ucb": (jb.KLUCB(), lambda: reference.KLUCB(3)),
    "successive elimination": (jb.SuccessiveElimination(ROUNDS), lambda: reference.SuccessiveElimination(3, ROUNDS)),
    "phased elimination": (jb.PhasedElimination(ROUNDS), lambda: reference.PhasedElimination(3, ROUNDS)),
    "bold": (jb.BOLD(jb.TsallisINF(), 11), lambda: reference.BOLD(3)),
    "qpm-d": (jb.QPMD(jb.TsallisINF(), 64), lambda: reference.QPMD(3, rng=np.random.default_rng(0))),
}


class Given:
    """Hands out numbers that were drawn before, as a generator would."""

    def __init__(self, numbers):
        self.numbers = iter(numbers)

    def random(self) -> float:
        return float(next(self.numbers))


@pytest.fixture(scope="module")
def numbers():
    """``[2, T, runs]``: which arm, which loss."""
    key = jax.random.key(7)
    stream, runs = randomness.stream(key, randomness.PLAY), jnp.arange(RUNS, dtype=jnp.uint32)
    words = jax.vmap(lambda t: randomness.fold(randomness.fold(stream, t), runs))(jnp.arange(1, ROUNDS + 1))
    return key, np.stack([randomness.uniform(word, randomness.grain(np.dtype("float32"))) for word in words]).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_ten_thousand_rounds(name, numbers):
    learner, make = PAIRS[name]
    key, (which_arm, which_loss) = numbers
    mine = jb.simulate(
        learner,
        jb.losses.Bernoulli(MEANS),
        jb.delays.Fixed(DELAY),
        rounds=ROUNDS,
        runs=4096 if name == "qpm-d" else RUNS,
        key=key,
    ).regret[-1]
    theirs = np.empty(RUNS)
    for run in range(RUNS):
        losses = (which_loss[:, run, None] < MEANS).astype(float)
        path = reference.play(make(), None, losses, [DELAY] * ROUNDS, rng=Given(which_arm[:, run]))
        theirs[run] = (path["probabilities"] @ (MEANS - MEANS.min())).sum()
    if name == "qpm-d":  # its base draws with numbers of its own, so nothing is shared but the losses
        assert abs(mine.mean() - theirs.mean()) < 5 * np.hypot(mine.std() / 64, theirs.std(ddof=1) / np.sqrt(RUNS))
        return
    difference = mine - theirs
    error = difference.std(ddof=1) / np.sqrt(RUNS)
    assert abs(difference.mean()) <= 5 * error + 1e-4 * theirs.mean()
    assert error < 0.02 * theirs.mean(), "too far apart to catch a bias"
