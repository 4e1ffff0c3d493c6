"""Tuning: regret falls on fresh runs, masks hold, several tasks, wrong options."""

import jax
import pytest

import jaxbandit as jb
from jaxbandit.gradients import tuning
from jaxbandit.pytrees import canonical

KEY = jax.random.key(0)
LAW, DELAYS = jb.losses.Bernoulli([0.3, 0.5, 0.5]), jb.delays.Fixed(3)
SMALL = {"rounds": 60, "runs": 64, "steps": 4, "fresh_runs": 128, "key": KEY}


@pytest.mark.thorough
def test_regret_falls_and_the_rest_stays():
    start = jb.BestOfBothWorlds(3, linear=5.0)
    tuned = jb.tune(start, LAW, DELAYS, only=["factor"], **SMALL)
    assert tuned.after.value < tuned.before.value - 5 * (tuned.before.error + tuned.after.error)
    assert float(tuned.learner.factor) < 24
    assert (float(tuned.learner.linear), float(tuned.learner.max_delay)) == (5.0, 3.0)
    assert tuned.path["factor"].shape == (5,)
    assert tuned.path["regret"].shape == (4,)
    assert set(tuned.audit.used) == set(tuned.audit.paired) == {"factor"}
    assert "regret" in str(tuned)


def test_facts_and_zeros_are_not_tuned_by_themselves():
    learner = canonical(jb.BestOfBothWorlds(3, linear=0.0))
    assert list(tuning._chosen(learner, None)) == ["factor", "tsallis_scale", "entropy_scale"]


@pytest.mark.slow
def test_the_worst_of_several_tasks():
    laws = [LAW, jb.losses.Bernoulli([0.1, 0.8, 0.8])]
    tuned = jb.tune(jb.BestOfBothWorlds(3), laws, [DELAYS], only=["factor"], goal="worst", audit=False, **SMALL)
    assert tuned.before.tasks.shape == (2,)
    assert tuned.before.value == tuned.before.tasks.max()
    assert tuned.after.value < tuned.before.value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps=0"),
        ({"goal": "best"}, "goal='best'"),
        ({"only": ["facto"]}, r"only=\['facto'\]"),
        ({"only": ["linear"]}, "linear=0.0 is not a positive number"),
        ({"only": []}, r"only=\[\]: give a list of hyperparameters"),
        ({"only": "factor"}, "only='factor': give a list of hyperparameters"),
        ({"optimizer": "adam"}, r"optimizer='adam': give an optimizer of optax, such as optax.adam\(0.1\)"),
        ({"estimator": "magic"}, "estimator='magic'"),
        ({"rounds": 0}, "rounds=0"),
        ({"runs": 2.5}, "runs=2.5"),
        ({"fresh_runs": 0}, "fresh_runs=0: the number of runs"),
        ({"runs": 2**31}, r"run ids must stay below 2\*\*32"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        jb.tune(jb.BestOfBothWorlds(3, linear=0.0), LAW, DELAYS, **(SMALL | options))
