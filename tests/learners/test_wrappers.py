"""QPM-D and BOLD: against the references, against what Joulani et al. prove, and past their capacity."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._core import randomness
from jaxbandit._core.fields import canonical
from jaxbandit.learners.base import Observation, Round
from jaxbandit.learners.wrappers import BOLD, QPMD
from tests.injected import injected
from tests.learners.test_references import DELAYS, ROUNDS, compare
from tests.reference import learners as reference

BASES = {
    "iw": (jb.TsallisINF(), reference.TsallisINF, {}),
    "rv": (jb.TsallisINF("rv"), reference.TsallisINF, {"estimator": "rv"}),
    "bobw": (jb.BestOfBothWorlds(2, factor=0.5), reference.BestOfBothWorlds, {"max_delay": 2, "factor": 0.5}),
}
MEANS = jb.losses.Bernoulli([0.3, 0.5, 0.6])
KEY = jax.random.key(1)


def slow(value):
    return pytest.param(value, marks=pytest.mark.slow)


@jax.jit
def word(t, number):
    """The word that decides question ``number`` (from 0) of round t in ``tests.injected``."""
    stream = randomness.stream(jax.random.key(0), randomness.LEARNER)
    words = randomness.fold(randomness.fold(stream, t), jnp.uint32(0))
    return randomness.fold(words, 2 * number).first


class ReferenceQPMD(reference.QPMD):
    """The reference with our uniform numbers: what it asks at the end of round t, we ask at the start of round t + 1."""

    def __init__(self, *args, **options):
        super().__init__(*args, uniforms=iter(self.our_uniform, None), **options)
        self.round, self.number = 1, 0

    def our_uniform(self):
        self.number += 1
        return float(word(self.round, self.number - 1)) / 2**32

    def end(self, t, outstanding):
        self.round, self.number = t + 1, 0
        super().end(t, outstanding)


# Every kind of delay once, and the bases with a memo or two rates where it matters: out of order.
CASES = [("lost", "iw"), ("random", "rv")]
CASES += [pytest.param(*case, marks=pytest.mark.thorough) for case in (("none", "iw"), ("random", "iw"), ("random", "bobw"))]


@pytest.mark.parametrize(("delays", "base"), CASES)
def test_bold_is_the_reference(delays, base):
    mine, theirs, options = BASES[base]
    compare(BOLD(mine, 128), reference.BOLD(4, theirs, **options), delays, kind="continuous")


@pytest.mark.parametrize(("delays", "base"), CASES)
def test_qpmd_is_the_reference(delays, base):
    mine, theirs, options = BASES[base]
    compare(QPMD(mine, 16), ReferenceQPMD(4, theirs, **options), delays, kind="continuous")


@pytest.mark.thorough
@pytest.mark.parametrize("delays", ["random", "lost"])
def test_qpmd_base_is_the_reference_base(delays):
    """One-hot plays hide the base's probabilities: the last answer shows them."""
    rng = np.random.default_rng(3)
    losses, waits = rng.random((ROUNDS, 4)), DELAYS[delays](rng)
    asked = []  # how many questions the reference had asked when it played

    class Counting(ReferenceQPMD):
        def act(self, t, outstanding):
            x = super().act(t, outstanding)
            asked.append(self.clock)
            return x

    expected = reference.play(Counting(4), None, losses, list(waits), rng=rng)
    with jax.enable_x64(True):
        dialogue = injected(QPMD(jb.TsallisINF(), 16), expected["arms"], losses, waits)["state"].dialogue
    assert int(dialogue.clock) == asked[-1]
    answer = expected["learner"].base_probabilities[asked[-1] - 1]
    np.testing.assert_allclose(dialogue.probability, answer[int(dialogue.arm)], rtol=1e-9)


@pytest.mark.thorough
def test_bold_without_delay_is_its_base():
    rng = np.random.default_rng(0)
    arms, losses, none = rng.integers(0, 3, 100), rng.random((100, 3)), np.zeros(100)
    with jax.enable_x64(True):
        one, other = (injected(learner, arms, losses, none) for learner in (BOLD(jb.TsallisINF(), 3), jb.TsallisINF()))
    np.testing.assert_allclose(one["probabilities"], other["probabilities"], rtol=1e-12)
    one, other = (simulate(learner, 0).regret for learner in (BOLD(jb.TsallisINF(), 1), jb.TsallisINF()))
    np.testing.assert_allclose(one, other, rtol=1e-4)


def simulate(learner, delay, rounds=300, runs=256, losses=MEANS):
    return jb.simulate(learner, losses, jb.delays.Fixed(delay), rounds=rounds, runs=runs, key=KEY)


@pytest.mark.thorough
def test_bold_regret_is_that_of_its_copies():
    """With delay d the copies take turns: d + 1 learners, T/(d + 1) rounds each. And learning pays."""
    copies = simulate(BOLD(jb.TsallisINF(), 6), 5, rounds=1200, runs=1024).estimate()
    base = simulate(jb.TsallisINF(), 0, rounds=200, runs=1024).estimate()
    error = np.hypot(copies.error[-1], 6 * base.error[-1])
    assert abs(copies.mean[-1] - 6 * base.mean[-1]) < 5 * error
    assert error < 0.02 * copies.mean[-1]
    undelayed = simulate(jb.TsallisINF(), 0, rounds=1200).estimate()
    assert undelayed.mean[-1] + 5 * undelayed.error[-1] < copies.mean[-1] < 1200 * 0.5 / 3 - 5 * copies.error[-1]


@pytest.mark.thorough
def test_qpmd_regret_is_its_base_and_a_constant():
    """Joulani et al. (2013), for stochastic losses: at most the base's regret plus the gaps times the most plays outstanding."""
    queued = simulate(QPMD(jb.TsallisINF(), 33), 10, rounds=2000).estimate()
    base = simulate(jb.TsallisINF(), 0, rounds=2000).estimate()
    error = np.hypot(queued.error[-1], base.error[-1])
    assert queued.mean[-1] < base.mean[-1] + (0.2 + 0.3) * 10 + 5 * error
    assert queued.mean[-1] > base.mean[-1] / 2


@pytest.mark.thorough
@pytest.mark.parametrize("learner", [BOLD, QPMD])
def test_capacity(learner):
    """Enough is enough; less is an error that names the remedy, and the numbers stay finite."""
    enough = 8 if learner is BOLD else 3 * 8  # the longest delay + 1, for QPM-D times the arms

    def final(capacity, runs):
        run = jb.rollout(learner(jb.TsallisINF(), capacity), MEANS, jb.delays.Fixed(7), rounds=100, runs=runs, key=KEY)
        assert np.isfinite(run.regret).all()
        return run.learner_state

    learner(jb.TsallisINF(), enough)._check_state(final(enough, 4))
    short = final(2, 4)
    remedy = int(short.needed.max())
    assert 2 < remedy <= 8
    with pytest.raises(RuntimeError, match=rf"^{learner.__name__}\(capacity=2\): .* of 4 runs; use capacity={remedy}$"):
        learner(jb.TsallisINF(), 2)._check_state(short)
    alone = final(2, None)
    with pytest.raises(RuntimeError, match=rf"; use capacity={int(alone.needed)}$"):
        learner(jb.TsallisINF(), 2)._check_state(alone)
    with pytest.raises(RuntimeError, match="of 5 runs; use capacity="):  # 5: padding is not counted
        simulate(learner(jb.TsallisINF(), 2), 7, rounds=100, runs=5)


def test_bold_lost_feedback_keeps_its_copy():
    run = jb.rollout(BOLD(jb.TsallisINF(), 40), MEANS, jb.delays.PacketLoss(0.5), rounds=40, runs=8, key=KEY)
    np.testing.assert_array_equal(run.learner_state.waits.sum(0), run.lost)


@pytest.mark.thorough
@pytest.mark.parametrize("delays", [slow(jb.delays.Fixed(3)), slow(jb.delays.Geometric(3.0, 15)), jb.delays.PacketLoss(0.2, 2)])
@pytest.mark.parametrize("learner", [BOLD(jb.TsallisINF("rv"), 64), QPMD(jb.TsallisINF("rv"), 16)])
def test_runs_do_not_touch_each_other(learner, delays):
    """A block of runs, each with its own copies, queues and arrivals, is those runs one at a time."""

    def regret(runs, first_run):
        return jb.rollout(learner, MEANS, delays, rounds=60, runs=runs, first_run=first_run, key=KEY).regret

    with jax.enable_x64(True):
        block = regret(5, 0)
        single = jax.jit(lambda first_run: regret(None, first_run))
        np.testing.assert_allclose(block, np.stack([single(run) for run in range(5)], -1), rtol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("learner", [BOLD(jb.TsallisINF("rv"), 4), QPMD(jb.TsallisINF("rv"), 12)])
def test_masked_observations_change_nothing(learner):
    learner = canonical(learner)
    state = learner.init(3, (4,))
    zero = jnp.zeros(4, jnp.int32)
    words = randomness.Words(jnp.arange(4, dtype=jnp.uint32), jnp.arange(4, dtype=jnp.uint32))
    round = Round(jnp.int32(1), zero, zero.astype(jnp.float32), lambda: words, lambda s: s > 0)
    probabilities, memo, acted = learner.act(state, round)
    arrived = jnp.array([True, False, True, False])
    observation = Observation(arrived, zero + 1, jnp.where(arrived, 1, -1), jnp.ones(4), probabilities[1], memo)
    seen = learner.observe(acted, observation)
    changed = np.zeros(4, bool)
    for before, start, after in zip(*map(jax.tree.leaves, (acted, state, seen)), strict=True):
        assert (start.shape, start.dtype) == (before.shape, before.dtype) == (after.shape, after.dtype)
        changed |= (np.asarray(before) != np.asarray(after)).reshape(-1, 4).any(0)
    np.testing.assert_array_equal(changed, arrived)


@pytest.mark.thorough
@pytest.mark.parametrize("learner", [BOLD, QPMD])
def test_hyperparameters_of_the_base_are_leaves(learner):
    traces = []

    @jax.jit
    def regret(wrapped):
        traces.append(wrapped)
        return jb.rollout(wrapped, MEANS, jb.delays.Fixed(2), rounds=200, runs=32, key=KEY).regret[-1].mean()

    def wrap(scale):
        return canonical(learner(jb.TsallisINF(scale=scale), 4))

    scales = jnp.array([0.5, 1.0, 8.0])
    one_by_one = [regret(wrap(scale)) for scale in scales]
    assert len(traces) == 1
    np.testing.assert_allclose(jax.vmap(lambda scale: regret(wrap(scale)))(scales), one_by_one, rtol=1e-3)
    assert one_by_one[2] > one_by_one[1]


@pytest.mark.thorough
@pytest.mark.parametrize("learner", [BOLD, QPMD])
def test_both_modes_of_differentiation(learner):
    def regret(scale):
        wrapped = learner(jb.TsallisINF(scale=scale), 4)
        return jb.rollout(wrapped, MEANS, jb.delays.Fixed(2), rounds=20, runs=3, key=KEY).regret[-1].mean()

    backward, forward = jax.jit(jax.grad(regret))(1.0), jax.jit(jax.jacfwd(regret))(1.0)
    np.testing.assert_allclose(backward, forward, rtol=1e-4)
    assert (backward == 0) == (learner is QPMD)


@pytest.mark.parametrize("learner", [BOLD, QPMD])
def test_wrong_input(learner):
    for base in (jb.TsallisINF, 3.0):
        with pytest.raises(TypeError, match="the base is a learner"):
            learner(base, 4).check()
    for capacity in (0, 2.5, True):
        with pytest.raises(ValueError, match="capacity must be a whole number, 1 or more"):
            simulate(learner(jb.TsallisINF(), capacity), 0)
    with pytest.raises(ValueError, match="the estimator is"):
        simulate(learner(jb.TsallisINF("no"), 4), 0)
