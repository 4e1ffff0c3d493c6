"""The other FTRL learners against their references, path by path, and against each other where they must agree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.learners.arm_dependent import ArmDependentFTRL
from jaxbandit.learners.asymmetric import AsymmetricBestOfBothWorlds
from jaxbandit.learners.banker import BankerTsallisINF
from jaxbandit.learners.skipping import RobustBestOfBothWorlds, ZimmertSeldin
from tests.injected import injected
from tests.learners.test_references import DELAYS, ROUNDS, compare, each_delay
from tests.reference import learners as reference

GAPS = [0.0, 0.1, 0.3, 0.4]
LEARNERS = {
    "zimmert-seldin": ZimmertSeldin(),
    "skipping": ZimmertSeldin(skipping=True),
    "robust": RobustBestOfBothWorlds(),
    "robust, eager": RobustBestOfBothWorlds(factor=0.1),
    "arm-dependent": ArmDependentFTRL(10),
    "banker": BankerTsallisINF(),
    "asymmetric, true gaps": AsymmetricBestOfBothWorlds(10, GAPS),
    "asymmetric, estimated": AsymmetricBestOfBothWorlds(10, centred=True),
}


@each_delay
@pytest.mark.parametrize("arms", [2, 5])
@pytest.mark.parametrize("skipping", [False, True])
def test_zimmert_seldin(delays, arms, skipping):
    compare(ZimmertSeldin(skipping), reference.ZimmertSeldin(arms, skipping), delays, arms)


@each_delay
@pytest.mark.parametrize("arms", [2, 5])
@pytest.mark.parametrize(
    "factor", [pytest.param(49.0, marks=pytest.mark.thorough), 1.0, pytest.param(0.1, marks=pytest.mark.thorough)]
)  # 49 skips nearly everything in 300 rounds
def test_robust_best_of_both_worlds(delays, arms, factor):
    compare(RobustBestOfBothWorlds(factor), reference.RobustBestOfBothWorlds(arms, factor), delays, arms)


@each_delay
@pytest.mark.parametrize("arms", [2, 5])
def test_banker(delays, arms):
    compare(BankerTsallisINF(), reference.BankerTsallisINF(arms, order="proportional"), delays, arms)


@pytest.mark.thorough
@each_delay
@pytest.mark.parametrize("centred", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("gaps", [GAPS, None])
@pytest.mark.parametrize("rates", [{}, {"linear": 1.0, "factor": 0.5}])
def test_asymmetric(delays, centred, gaps, rates):
    mine = AsymmetricBestOfBothWorlds(7, gaps, centred=centred, **rates)
    compare(mine, reference.AsymmetricBestOfBothWorlds(4, 7, gaps, centred=centred, **rates), delays)


def test_asymmetric_without_floor():
    mine = AsymmetricBestOfBothWorlds(7, GAPS, floor=0.0, factor=0.5)
    compare(mine, reference.AsymmetricBestOfBothWorlds(4, 7, GAPS, floor=0.0, factor=0.5), "random")


def test_equal_gaps_of_one_are_the_symmetric_learner():
    theirs = reference.BestOfBothWorlds(4, max_delay=7)
    compare(AsymmetricBestOfBothWorlds(7, [1.0] * 4), theirs, "random")


@each_delay
@pytest.mark.parametrize("arms", [2, 5])
def test_arm_dependent(delays, arms):
    compare(ArmDependentFTRL(5.0), reference.ArmDependentFTRL(arms, 5.0), delays, arms)


WITHOUT_DELAY = {
    "MZS22": jb.BestOfBothWorlds(0),
    "ZS20": ZimmertSeldin(),
    "ZS20 skipping": ZimmertSeldin(skipping=True),
    "MZS24": RobustBestOfBothWorlds(),
    "Banker": BankerTsallisINF(),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", WITHOUT_DELAY)
def test_without_delay_all_are_tsallis_inf(name):
    compare(WITHOUT_DELAY[name], reference.TsallisINF(4), "none")

    def play(learner):
        law = jb.losses.Bernoulli([0.3, 0.5, 0.6])
        return jb.simulate(
            learner, law, jb.delays.Fixed(0), rounds=200, runs=64, key=jax.random.key(1), record=[10, 50, 200]
        ).regret

    # Rounding differs a little from program to program, and a rounded probability may flip a drawn arm in a rare run.
    mine, theirs = play(WITHOUT_DELAY[name]), play(jb.TsallisINF())
    assert (np.abs(mine - theirs) < 1e-3 * theirs).mean() > 0.97


@pytest.mark.thorough
@pytest.mark.parametrize("name", LEARNERS)
def test_gradients_are_numbers(name):
    """Reverse mode through the whole loop, also from b = 0 and through the rounds that are solved anew."""
    law, delays = jb.losses.Bernoulli([0.3, 0.5, 0.6, 0.7]), jb.delays.UniformRandom(0, 3)

    def regret(learner):
        return jb.rollout(learner, law, delays, rounds=30, key=jax.random.key(0), runs=4, record=[30]).regret.mean()

    gradient = jax.jit(jax.grad(regret))(jax.tree.map(lambda leaf: jnp.asarray(leaf, float), LEARNERS[name]))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))


@pytest.mark.thorough
@pytest.mark.parametrize("name", LEARNERS)
def test_one_arm(name):
    learner = LEARNERS[name]
    if name == "asymmetric, true gaps":
        learner = AsymmetricBestOfBothWorlds(10, [0.0])
    result = jb.simulate(learner, jb.losses.Bernoulli([0.3]), jb.delays.Fixed(2), rounds=20, runs=4, key=jax.random.key(0))
    np.testing.assert_array_equal(result.regret, 0)


@pytest.mark.thorough
@pytest.mark.parametrize("gaps", [GAPS, None])
@pytest.mark.parametrize("centred", [False, True])
def test_asymmetric_solver_in_float32(gaps, centred):
    """Unequal rates put the first solution, and estimated rates many early ones, far from the solver's usual start."""
    rng = np.random.default_rng(0)
    losses, waits = (rng.random((ROUNDS, 4)) < [0.3, 0.4, 0.6, 0.7]) * 1.0, DELAYS["random"](rng)
    theirs = reference.AsymmetricBestOfBothWorlds(4, 7, gaps, centred=centred)
    expected = reference.play(theirs, None, losses, list(waits), rng=rng)
    got = injected(AsymmetricBestOfBothWorlds(7, gaps, centred=centred), expected["arms"], losses, waits)
    np.testing.assert_allclose(got["probabilities"][0], expected["probabilities"][0], rtol=1e-5)
    np.testing.assert_allclose(got["probabilities"], expected["probabilities"], atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simple", "skipping", "robust"])
@pytest.mark.parametrize("delay", ["fixed 10", "geometric 10", "packet loss .7"])
def test_regret_against_independent_simulation(name, delay):
    """Mean regret of an independent float64 simulation: K = 5, means (.4, .6, .6, .6, .6), T = 20000."""
    learner = {"simple": ZimmertSeldin(), "skipping": ZimmertSeldin(skipping=True), "robust": RobustBestOfBothWorlds()}[name]
    delays, values = {
        "fixed 10": (jb.delays.Fixed(10), {"simple": 618.8, "skipping": 451.1, "robust": 2650.1}),
        "geometric 10": (jb.delays.Geometric(10.0, 127), {"simple": 618.8, "skipping": 449.8, "robust": 2550.5}),
        "packet loss .7": (jb.delays.PacketLoss(0.7), {"simple": 2980.6, "skipping": 2094.8, "robust": 1706.2}),
    }[delay]
    law = jb.losses.Bernoulli([0.4] + [0.6] * 4)
    regret = jb.simulate(learner, law, delays, rounds=20_000, runs=1024, key=jax.random.key(5), record=1).regret[-1]
    # Both sides have the same spread; theirs has at least 2000 runs.
    error = regret.std() * (1 / 1024 + 1 / 2000) ** 0.5
    assert abs(regret.mean() - values[name]) < 5 * error + 0.05
