"""Measurements by name, against the same counted from the plays themselves in float64."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._core.fields import pytree_dataclass

ROUNDS, RUNS, ARMS = 60, 5, 3
MOVING = jb.losses.Switching([[0.2, 0.5, 0.9], [0.9, 0.4, 0.1], [0.5, 0.5, 0.5]], starts=[1, 20, 45])
SCATTERED = jb.losses.Table(np.random.default_rng(0).uniform(size=(ROUNDS, ARMS)))
LAWS = {"bernoulli": jb.losses.Bernoulli([0.4, 0.3, 0.6]), "moving": MOVING, "table": SCATTERED}


@pytree_dataclass
class Plays:
    """The arm of each round and the means."""

    def init(self, num_arms, runs_shape):
        return jnp.zeros(runs_shape, jnp.int32), jnp.zeros((num_arms, *runs_shape))

    def update(self, state, info):
        return info.arm, jnp.broadcast_to(info.means.reshape(-1, *[1] * info.arm.ndim), state[1].shape)

    def read(self, state):
        return {"arm": state[0], "means": state[1]}


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == "moving" else pytest.mark.thorough) for name in LAWS])
def test_against_the_plays(name):
    measure = [jb.measure.Pulls(), jb.measure.DynamicRegret(), jb.measure.BestArm(), jb.measure.Probabilities(), Plays()]
    result = jb.simulate(
        jb.TsallisINF(), LAWS[name], jb.delays.UniformRandom(0, 6), rounds=ROUNDS, runs=RUNS, seed=3,
        record=range(1, ROUNDS + 1), measure=measure, probabilities=True,
    )  # fmt: skip
    measured = result.measured
    np.testing.assert_array_equal(measured["probabilities"], result.probabilities)
    means, x = measured["means"][:, :, 0].astype(float), result.probabilities.astype(float)
    pulls = np.zeros((ARMS, RUNS), int)
    dynamic, wrong_somewhere = np.zeros(RUNS), False
    for t in range(ROUNDS):
        for run in range(RUNS):
            pulls[measured["arm"][t, run], run] += 1
            dynamic[run] += sum(x[t, i, run] * means[t, i] for i in range(ARMS)) - min(means[t])
        np.testing.assert_array_equal(measured["pulls"][t], pulls)
        np.testing.assert_allclose(measured["dynamic_regret"][t], dynamic, rtol=1e-5, atol=1e-5)
        so_far = means[: t + 1].mean(0)
        gaps = np.array([so_far[list(pulls[:, run]).index(max(pulls[:, run]))] - so_far.min() for run in range(RUNS)])
        np.testing.assert_allclose(measured["simple_regret"][t], gaps, atol=1e-5)
        np.testing.assert_array_equal(measured["misidentified"][t], gaps > 1e-5)
        wrong_somewhere |= bool(np.any(gaps > 1e-5))
    assert wrong_somewhere
    if name == "bernoulli":
        np.testing.assert_allclose(measured["dynamic_regret"], result.regret, rtol=1e-6)
    if name == "moving":
        assert np.all(measured["dynamic_regret"][-1] > result.regret[-1] + 1)


def test_equal_arms_are_never_misidentified_and_one_run_has_no_axis():
    rolled = jb.rollout(
        jb.Uniform(), jb.losses.Bernoulli([0.3, 0.3]), jb.delays.Fixed(1), rounds=30, seed=0,
        measure=[jb.measure.BestArm(), jb.measure.Pulls()],
    )  # fmt: skip
    assert not rolled.measured["misidentified"].any()
    assert rolled.measured["misidentified"].shape == rolled.regret.shape
    assert rolled.measured["pulls"].shape == (*rolled.regret.shape, 2)


@pytest.mark.thorough
def test_going_on_later_is_one_go():
    game = (jb.TsallisINF(), MOVING, jb.delays.Fixed(3))
    options = {"runs": 3, "seed": 0, "measure": [jb.measure.Pulls(), jb.measure.DynamicRegret(), jb.measure.BestArm()]}
    first = jb.simulate(*game, rounds=25, record=[25], **options)
    second = jb.simulate(*game, rounds=50, record=[50], resume=first, **options)
    whole = jb.simulate(*game, rounds=50, record=[25, 50], **options)
    for name, array in whole.measured.items():
        np.testing.assert_array_equal(array, np.concatenate([first.measured[name], second.measured[name]]))
