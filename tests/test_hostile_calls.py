"""Wrong calls that once ended in a raw exception, blamed the wrong argument or were accepted; and JAX's stricter modes."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import jaxbandit as jb
from jaxbandit._core.fields import show
from jaxbandit.delays.base import CUT_OFF
from jaxbandit.extend import float_dtype, number, pytree_dataclass
from jaxbandit.sweeps.oracle import Oracle

D, L = jb.delays, jb.losses
GOOD = dict(learner=jb.Uniform(), losses=L.Bernoulli([0.2, 0.4]), delays=D.Fixed(1), rounds=10, runs=4, seed=0, record=[5, 10])
HUGE = 10**400


@pytest.fixture(scope="module")
def result():
    return jb.simulate(**GOOD)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rounds": float("inf")}, "rounds=inf: the number of rounds"),
        ({"record": 10**12}, "record=1000000000000: record 1 to 1,000,000 rounds"),
        ({"record": HUGE}, "record=1000.*: record 1 to 1,000,000 rounds"),
        ({"record": 10**5000}, "record=<int>: record 1 to"),
        ({"runs": None}, "runs=None: the number of runs is a whole number"),
        ({"first_run": [0]}, r"first_run=\[0\]: the id of the first run"),
        ({"first_run": np.array([0])}, r"first_run=\[0\]: the id of the first run"),
        ({"first_run": float("inf")}, "first_run=inf: the id of the first run"),
        ({"first_run": True}, "first_run=True: the id of the first run"),
        ({"probabilities": "yes"}, "probabilities='yes': probabilities is True or False"),
        ({"progress": "x"}, "progress='x': progress is True or False"),
        ({"measure": [jb.measure.Pulls(), jb.measure.Pulls()]}, "it reads 'pulls', and another measurement has it"),
        ({"delays": D.Outlier(5, count=10**9)}, r"delays=Outlier\(…\): for 1073741824 observations"),
        ({"delays": D.Geometric(1e9)}, r"Geometric\(mean=1000000000.0\): no bound below 2\*\*30 rounds follows from mean"),
        ({"delays": D.Trace([2**30] * 20)}, r"delays.Trace: 1073741824 is not a delay"),
        ({"delays": D.Fixed(10**9), "rounds": 10**9, "record": 1}, r"delays=Fixed\(…\): for delays of up to"),
    ],
)
def test_simulate_names_the_argument(wrong, message):
    with pytest.raises((ValueError, TypeError), match=message):
        jb.simulate(**GOOD | wrong)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.take_runs("a", 1), r"take_runs\('a', 1\): give whole numbers"),
        (lambda r: jb.Result.concat_runs(r), "concat_runs: give a list of Results"),
        (lambda r: jb.Result.concat_runs([r, 1]), "concat_runs: give a list of Results; 1 is not one"),
        (lambda r: jb.Result.concat_rounds([1]), "concat_rounds: give a list of Results; 1 is not one"),
        (lambda r: r.estimate("x"), "control_variates='x': control_variates is True or False"),
        (lambda r: L.Bernoulli(rewards=[2, 3]), r"Bernoulli\(rewards=\[2, 3\]\): mean rewards must lie between 0 and 1"),
        (lambda r: r.save(None), r"Result.save\(path=…\): None is not a path"),
        (lambda r: jb.Result.load(3), r"Result.load\(path=…\): 3 is not a path"),
        (lambda r: jb.sweep(jb.Spec(9, 2, [jb.Uniform()], [GOOD["losses"]], [D.Fixed(1)]), None), r"sweep\(out=…\): None is not"),
        (lambda r: jb.open_sweep(None), "None is not a path"),
        (lambda r: jb.load_trace(None), r"load_trace\(path=…\): None is not a path"),
        (lambda r: r.save("a\0b"), "contains a NUL byte"),
        (lambda r: jb.load_trace("a\0b"), "contains a NUL byte"),
        (lambda r: jb.sweep("a\0b", "x"), "contains a NUL byte"),
    ],
)
def test_other_calls_name_the_argument(result, call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(result)


@pytree_dataclass
class Branching(jb.extend.Learner):
    rate: object = number(default=1.0)

    def init(self, num_arms, runs_shape):
        return jnp.zeros((num_arms, *runs_shape), float_dtype())

    def act(self, state, round):
        if self.rate > 0.5:
            return jnp.full_like(state, 1 / state.shape[0]), (), state
        return state, (), state

    def observe(self, state, observation):
        return state


def test_a_branch_on_a_traced_number_is_explained():
    with pytest.raises(TypeError, match=r"learner=Branching\(…\): act\(state, round\) .*if self.rate > 0.5.*numbers are traced"):
        jb.simulate(**GOOD | {"learner": Branching()})


@pytree_dataclass
class Seen:
    """Sums of all numbers of a info that are one for each run, and their shapes."""

    def init(self, num_arms, runs_shape):
        return jnp.zeros((3, *runs_shape), jnp.int32)

    def update(self, state, info):
        assert info.delay.shape == info.outstanding.shape == info.arrivals.shape == info.arm.shape
        return jnp.stack([state[0] + info.delay, state[1] + info.outstanding, state[2] + info.arrivals])

    def read(self, state):
        return {"seen": state}


@pytest.mark.parametrize("delays", [D.Fixed(2), D.UniformRandom(2, 2)])
def test_a_measurement_sees_a_number_for_each_run(delays):
    """Ten rounds with delay 2: 8 observations arrive; 0, 1, 2, 2, … are outstanding."""
    found = jb.simulate(**GOOD | {"delays": delays, "measure": [Seen()]}).measured["seen"][-1]
    np.testing.assert_array_equal(found, np.broadcast_to([[20], [17], [8]], (3, 4)))


@pytree_dataclass
class Growing(Seen):
    def update(self, state, info):
        return state.astype(float_dtype())


def test_a_measurement_whose_state_changes_its_type_is_named():
    with pytest.raises(TypeError, match=r"measure=\[Growing\(…\)\]: update\(state, info\) gives float32.* where init gave int32"):
        jb.simulate(**GOOD | {"measure": [Growing()]})


@pytree_dataclass
class Lossy(D.Delays):
    bound = 7
    oblivious = True

    def draw(self, t, arm, loss, noise):
        return jnp.where(noise < 0.9, 3, D.NEVER)


@pytest.mark.parametrize(
    "delays", [Lossy(), D.Pareto(1.2, bound=1023), D.Geometric(5.0, bound=7), D.Poisson(5.0, bound=7), D.PacketLoss(0.9)]
)
def test_the_oracle_refuses_every_law_that_loses_feedback(delays):
    with pytest.raises(ValueError, match="feedback can be lost, so there is no longest delay"):
        Oracle(GOOD["losses"], delays, 100).max_delay()


@pytest.mark.parametrize("delays", [D.Geometric(5.0), D.Poisson(5.0), D.Pareto(2.0)])
def test_the_oracle_accepts_bounds_that_lose_nearly_nothing(delays):
    assert Oracle(GOOD["losses"], delays, 100).max_delay() == delays.bound
    assert float(delays.lost()) <= CUT_OFF


def test_a_large_poisson_delay_is_refused_without_a_long_computation(monkeypatch):
    """The incomplete gamma function is evaluated near the mean, not at 134 million places."""
    evaluated, whole = [], scipy.special.gammaincc
    monkeypatch.setattr(scipy.special, "gammaincc", lambda n, mean: evaluated.append(np.size(n)) or whole(n, mean))
    with pytest.raises(ValueError, match=r"for delays of up to 134217728 rounds"):
        jb.simulate(**GOOD | {"delays": D.Poisson(1e8), "rounds": 10**8, "record": 1})
    assert 0 < sum(evaluated) < 10**6


@pytest.mark.parametrize("mean", [0.0, 3.0, 5000.0])
def test_the_table_of_poisson_delays_is_complete(mean):
    """All of it, although the incomplete gamma function is evaluated near the mean alone."""
    law = D.Poisson(mean, bound=16383)
    np.testing.assert_allclose(law.prepare().cumulative, scipy.special.pdtr(np.arange(16384), mean), rtol=1e-6, atol=1e-7)


def test_without_jit():
    options = GOOD | {"delays": D.UniformRandom(0, 3), "learner": jb.BestOfBothWorlds(3, factor=0.1), "rounds": 2, "record": [2]}
    with jax.disable_jit():
        slow = jb.simulate(**options)
    np.testing.assert_allclose(slow.regret, jb.simulate(**options).regret, rtol=1e-5)


def test_with_rank_promotion_refused():
    options = GOOD | {"learner": jb.BestOfBothWorlds(3, factor=0.1)}
    with jax.numpy_rank_promotion("raise"):
        strict = jb.simulate(**options)
        jb.rollout(**options)
    np.testing.assert_array_equal(strict.regret, jb.simulate(**options).regret)


@pytest.mark.parametrize(
    "record", [[255, 256, 257], *(pytest.param(one, marks=pytest.mark.thorough) for one in ([1], [256], range(1, 301), 300))]
)
def test_records_at_the_borders_of_blocks_and_segments(monkeypatch, record):
    """Rounds recorded at, before and after the ends of segments, with runs on both sides of a block's end."""
    options = GOOD | {"rounds": 300, "learner": jb.TsallisINF()}
    whole = jb.simulate(**options | {"runs": 513, "record": range(1, 301)})
    monkeypatch.setattr("jaxbandit._engine.simulation.SEGMENT", 256 * 512 * 2)  # segments of 256 rounds
    for first, runs in ((0, 513), (511, 2), (512, 1)):
        found = jb.simulate(**options | {"runs": runs, "first_run": first, "record": record})
        assert found.rounds[-1] == 300
        np.testing.assert_array_equal(found.regret, whole.regret[found.rounds - 1, first : first + runs])


def test_messages_show_no_raw_values():
    assert re.fullmatch("<int>", show(10**5000))
