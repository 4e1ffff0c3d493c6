"""A value of its own for each run, in learner, losses and delays, against separate simulations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._engine import blocks, choose
from jaxbandit.extend import float_dtype, number, pytree_dataclass

EACH, ROUNDS = 40, 200
CELLS = [(24.0, 0.2, 10.0), (2.0, 0.1, 3.0), (0.5, 0.3, 1.0), (1.0, 0.05, 6.0)]  # factor, gap, mean delay
KEY = jax.random.key(2)


def cell(factor, gap, mean):
    return jb.BestOfBothWorlds(31, factor=factor), jb.losses.Bernoulli([0.5 - gap, 0.5, 0.5]), jb.delays.Geometric(mean, bound=31)


def packed():
    factor, gap, mean = (np.repeat(values, EACH) for values in zip(*CELLS, strict=True))
    means = np.stack([0.5 - gap, np.full_like(gap, 0.5), np.full_like(gap, 0.5)])
    return jb.BestOfBothWorlds(31, factor=factor), jb.losses.Bernoulli(means), jb.delays.Geometric(mean, bound=31)


@pytest.mark.thorough
@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_four_settings_in_one_launch_are_four_launches(monkeypatch, platform):
    count = EACH * len(CELLS)
    alone = [jb.simulate(*cell(*one), rounds=ROUNDS, runs=count, key=KEY, record=[50, ROUNDS]) for one in CELLS]
    monkeypatch.setattr(blocks, "platform", lambda: platform)
    monkeypatch.setattr(choose, "ACCELERATOR_BLOCKS", ((32, 256),))
    together = jb.simulate(*packed(), rounds=ROUNDS, runs=count, key=KEY, record=[50, ROUNDS])
    assert together.program["evaluation"] == ("arrays" if platform == "cpu" else "unrolled")
    agree = []
    for index, one in enumerate(alone):
        runs = slice(index * EACH, (index + 1) * EACH)  # the same run ids meet the same words
        mine, other = together.regret[:, runs], one.regret[:, runs]
        agree.append(np.mean(np.abs(mine - other) < 1e-3 * (1 + np.abs(other))))
        np.testing.assert_array_equal(together.total_delay[runs], one.total_delay[runs])
        np.testing.assert_array_equal(together.lost[runs], one.lost[runs])
    assert min(agree) > 0.97  # where rounding decides which arm is drawn, a run goes another way


@pytest.mark.thorough
def test_each_run_its_own_fixed_delay():
    delays = np.arange(300) % 7
    learner, losses = jb.TsallisINF(), jb.losses.Switching([[0.2, 0.6], [0.7, 0.3]], [1, 80])
    together = jb.simulate(learner, losses, jb.delays.Fixed(delays), rounds=120, runs=300, key=KEY, record=[120])
    for delay in (0, 6):
        alone = jb.simulate(learner, losses, jb.delays.Fixed(delay), rounds=120, runs=300, key=KEY, record=[120])
        mine = delays == delay
        assert np.mean(np.abs(together.regret - alone.regret)[0, mine] < 1e-3 * (1 + np.abs(alone.regret[0, mine]))) > 0.95
        np.testing.assert_array_equal(together.total_delay[mine], alone.total_delay[mine])


def test_wrong_values_are_told_in_a_sentence():
    arguments = dict(rounds=10, runs=4, key=KEY)
    with pytest.raises(ValueError, match=r"Bernoulli.means of shape \(2, 3\): the last axis is for the runs, and there are 4"):
        jb.simulate(jb.TsallisINF(), jb.losses.Bernoulli(np.full((2, 3), 0.5)), jb.delays.Fixed(1), **arguments)
    means = np.full((2, 4), 0.5)
    means[1, 2] = 1.5
    with pytest.raises(ValueError, match="between 0 and 1"):
        jb.simulate(jb.TsallisINF(), jb.losses.Bernoulli(means), jb.delays.Fixed(1), **arguments)


PLAY = dict(rounds=10, runs=2, key=KEY)


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (
            {"delays": jb.delays.UniformRandom(np.array([5, 0]), np.array([4, 9]))},
            "low must not be above high; run 0 has 5 and 4",
        ),
        ({"delays": jb.delays.UniformRandom(3, np.array([4, 2]))}, "run 1 has 3 and 2"),
        (
            {"losses": jb.losses.Switching(np.full((2, 2, 2), 0.5), np.array([[1, 1], [5, 1]]))},
            "starts must be the first rounds of the 2 phases",
        ),
        (
            {
                "losses": jb.losses.IntermediateStates(
                    np.array([[[0.5, 0.2]] * 2, [[0.5, 0.8]] * 2]), jb.losses.Bernoulli([0.1, 0.9])
                )
            },
            "row 0 of transitions of run 1 sums to 0.4",
        ),
        ({"losses": jb.losses.Bernoulli(np.array([[0.1, 0.2], [0.1, 1.2]]))}, "1.2 of run 1 does not"),
        ({"learner": jb.TsallisINF(scale=np.array([1.0, 0.0]))}, "0.0 of run 1 is not"),
    ],
)
def test_every_run_is_checked_by_itself(game, message):
    """Each field's smallest and largest values would go together; the values of one run do not."""
    parts = {"learner": jb.TsallisINF(), "losses": jb.losses.Bernoulli([0.2, 0.4]), "delays": jb.delays.Fixed(1)} | game
    with pytest.raises(ValueError, match=message):
        jb.simulate(**parts, **PLAY)


def test_values_are_accepted_of_which_no_extreme_would_be():
    """Rows of transitions sum to 1 in each run; the smallest of all runs do not."""
    transitions = np.array([[[0.2, 0.7], [0.8, 0.3]], [[0.5, 0.5], [0.5, 0.5]]])  # [K, S, runs]
    states = jb.losses.Bernoulli([0.0, 1.0])
    result = jb.simulate(jb.Uniform(), jb.losses.IntermediateStates(transitions, states), jb.delays.Fixed(1), **PLAY, record=[10])
    np.testing.assert_allclose(result.regret, [[5 * 0.3, 5 * 0.2]], rtol=1e-5)


def test_a_longer_delay_than_the_learner_knows_in_one_run():
    learner, delays = jb.BestOfBothWorlds(np.array([7.0, 2.0]), factor=0.01), jb.delays.Fixed(np.array([2, 7]))
    with pytest.warns(UserWarning, match=r"max_delay=2\): delays of 7 can come"):
        jb.simulate(learner, jb.losses.Bernoulli([0.2, 0.4]), delays, **PLAY)


@pytree_dataclass
class Ramp(jb.extend.Losses):
    """Means that are right in round 1 and leave [0, 1] later where ``slope`` is large; ``check`` compares two numbers of one run."""

    low: object = number(axes="")
    slope: object = number(axes="")
    num_arms = 2

    def check(self):
        if self.low > 0.5 and self.slope > 0:
            raise ValueError(f"Ramp(low={self.low}, slope={self.slope}): no slope above 0.5")

    def expected(self, t):
        return jnp.stack([self.low + self.slope * t, jnp.full((), 0.5)])

    def sample(self, t, arm, noise):
        return (noise < self.expected(t)[arm]).astype(float_dtype())


def test_a_class_of_a_user_is_checked_in_every_run():
    def play(low, slope):
        return jb.simulate(jb.Uniform(), Ramp(np.array(low), np.array(slope)), jb.delays.Fixed(1), **PLAY)

    assert play([0.7, 0.1], [0.0, 0.02]).regret.shape[1] == 2
    with pytest.raises(ValueError, match="no slope above"):
        play([0.1, 0.6], [0.1, 0.01])
    with pytest.raises(ValueError, match=r"expected\(\d+\) gives a mean of 1\.\d+ for arm 0"):
        play([0.1, 0.4], [0.01, 0.09])


@pytest.mark.thorough
def test_a_wrapper_has_them_too():
    """Each run's scale reaches the copies of the base: runs of scale 3 play as if all had it."""
    game, options = (jb.losses.Bernoulli([0.2, 0.5]), jb.delays.Fixed(2)), dict(rounds=100, runs=32, key=KEY, record=[100])
    scales = np.where(np.arange(32) % 2, 1.0, 3.0)
    mixed, three = (jb.simulate(jb.BOLD(jb.TsallisINF(scale=one), 3), *game, **options).regret[0] for one in (scales, 3.0))
    np.testing.assert_allclose(mixed[::2], three[::2], rtol=1e-3)
    assert np.any(np.abs(mixed - three)[1::2] > 0.1)


@pytest.mark.thorough
def test_rates_of_each_run_are_played_on_arrays():
    """Means of losses with the runs as last axis are read as they are: the runs play what they play where all have their means.

    Fails if the regret is counted against the best arm of another run, or if runs read each other's means.
    """
    random, runs = np.random.default_rng(0), 256
    means = random.uniform(size=(2, 3, runs))
    delays = jb.delays.UniformRandom(0, 6)
    for law in (lambda m: jb.losses.Switching(m, [1, 30]), lambda m: jb.losses.Bernoulli(m[0])):
        together = jb.simulate(jb.TsallisINF("rv"), law(means), delays, rounds=60, runs=runs, key=KEY, record=[30, 60])
        assert together.program["evaluation"] == "arrays"
        for run in (0, 255):
            alone = jb.simulate(jb.TsallisINF("rv"), law(means[..., run]), delays, rounds=60, runs=runs, key=KEY, record=[30, 60])
            np.testing.assert_allclose(together.regret[:, run], alone.regret[:, run], rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(together.total_delay, alone.total_delay)


ENVIRONMENTS = {
    "bernoulli": lambda v: (jb.losses.Bernoulli(np.array([0.3, 0.5]) + 0.2 * v), jb.delays.Fixed(2)),
    "beta": lambda v: (jb.losses.Beta([0.3, 0.5], np.full(2, 2.0 + 3 * v)), jb.delays.Fixed(2)),
    "clipped normal": lambda v: (jb.losses.ClippedNormal([0.3, 0.5], np.full(2, 0.1 + 0.2 * v)), jb.delays.Fixed(2)),
    "constrained": lambda v: (jb.losses.StochasticallyConstrained(0.2 + 0.2 * v, 2), jb.delays.Fixed(2)),
    "switching": lambda v: (jb.losses.Switching(np.array([[0.2, 0.6], [0.7, 0.3]]) + 0.1 * v, [1, 20]), jb.delays.Fixed(2)),
    "switching at other rounds": lambda v: (  # a sum over all starts, of all runs, would leave every run in the last phase
        jb.losses.Switching([[0.2, 0.6], [0.7, 0.3], [0.1, 0.9]], [1, 20, 30 + int(20 * v)]),
        jb.delays.Fixed(2),
    ),
    "switching at other rounds and means": lambda v: (
        jb.losses.Switching(np.array([[0.2, 0.6], [0.7, 0.3]]) + 0.1 * v, [1, 20 + int(30 * v)]),
        jb.delays.Fixed(2),
    ),
    "drifting": lambda v: (jb.losses.Drifting(np.array([0.2, 0.6]) + 0.1 * v, [0.7, 0.3], 50), jb.delays.Fixed(2)),
    "corrupted": lambda v: (jb.losses.Corrupted(jb.losses.Bernoulli(np.array([0.3, 0.5]) + 0.2 * v), 9, 3), jb.delays.Fixed(2)),
    "fixed": lambda v: (jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(2 + 5 * v, bound=7)),
    "fixed, moving means": lambda v: (
        jb.losses.Switching([[0.2, 0.6], [0.7, 0.3]], [1, 20]),
        jb.delays.Fixed(2 + 5 * v, bound=7),
    ),
    "packet loss": lambda v: (jb.losses.Bernoulli([0.3, 0.5]), jb.delays.PacketLoss(0.9 - 0.5 * v, 3)),
    "geometric": lambda v: (jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Geometric(2.0 + 3 * v, bound=31)),
    "geometric, shared": lambda v: (jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Geometric(2.0 + 3 * v, bound=31, shared=True)),
    "poisson": lambda v: (jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Poisson(2.0 + 3 * v, bound=31)),
    "uniform": lambda v: (jb.losses.Bernoulli([0.3, 0.5]), jb.delays.UniformRandom(1 + v, 4 + 5 * v, bound=15)),
    "pareto": lambda v: (jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Pareto(0.8 + v, bound=31)),
    "payoff": lambda v: (jb.losses.Bernoulli(np.array([0.3, 0.5]) + 0.2 * v), jb.delays.LossDependent(*LATE)),
    "by arm": lambda v: (
        jb.losses.Bernoulli([0.3, 0.5]),
        jb.delays.ArmDependent([jb.delays.Fixed(2 + v, bound=7), jb.delays.Geometric(1.0 + v, bound=7)]),
    ),
}
LATE = (jb.delays.Fixed(2, bound=7), jb.delays.UniformRandom(0, 7, bound=7))


def each_run(make, values):
    """The environment in which run i has the value ``values[i]``: numbers of the single environments, runs last."""
    alone = [make(value) for value in values]

    def beside(*leaves):
        return leaves[0] if all(np.array_equal(leaves[0], leaf) for leaf in leaves) else np.stack(leaves, -1)

    return jax.tree.map(lambda *leaves: beside(*map(np.asarray, leaves)), *alone)


QUICK = {"bernoulli", "switching at other rounds", "fixed, moving means", "geometric"}


@pytest.mark.parametrize(
    "learner",
    [jb.BestOfBothWorlds(7, 1.0, 1.0), pytest.param(jb.TsallisINF("rv"), marks=pytest.mark.thorough)],
    ids=["adds", "rv"],
)
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.thorough) for n in ENVIRONMENTS])
def test_runs_with_their_own_environment_are_the_runs_of_these_environments(name, learner):
    """Rejects numbers that are read of another run, minima over runs, and counts that runs share although their delays differ."""
    make, options = ENVIRONMENTS[name], dict(rounds=60, runs=4, key=KEY, record=[20, 60], probabilities=True)
    values = [0, 1, 0, 1]
    together = jb.simulate(learner, *each_run(make, values), **options)
    for value in (0, 1):
        mine, alone = [run for run in range(4) if values[run] == value], jb.simulate(learner, *make(value), **options)
        np.testing.assert_allclose(together.regret[:, mine], alone.regret[:, mine], rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(together.probabilities[..., mine], alone.probabilities[..., mine], rtol=1e-3, atol=1e-4)
        for count in ("outstanding_max", "total_delay", "lost"):
            np.testing.assert_array_equal(vars(together)[count][mine], vars(alone)[count][mine])
