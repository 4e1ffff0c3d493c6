"""Wrong calls: one clear sentence that names the argument, the value and the remedy, before anything is compiled."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._checks.inputs import check_runs, check_switch
from jaxbandit._engine.player import Player
from jaxbandit.gradients.estimators import check_options

KEY = jax.random.key(0)
GOOD = {
    "learner": jb.BestOfBothWorlds(4),
    "losses": jb.losses.Bernoulli([0.3, 0.5]),
    "delays": jb.delays.Fixed(4),
    "rounds": 10,
    "runs": 2,
    "key": KEY,
}
D, L = jb.delays, jb.losses


class NoObserve:
    def init(self, num_arms, runs_shape): ...
    def act(self, state, round): ...


# what is passed instead, and what the message must say
WRONG = [
    ({"delays": D.Fixed(-3)}, r"Fixed\(delay=-3\).*0 or more"),
    ({"delays": D.Fixed(2.5)}, r"Fixed\(delay=2.5\).*whole number"),
    ({"delays": D.Fixed(float("nan"))}, r"Fixed\(delay=nan\)"),
    ({"delays": D.Fixed("ten")}, r"Fixed\(delay='ten'\)"),
    ({"delays": D.Fixed(20, bound=16)}, r"20 is above bound=16"),
    ({"delays": D.Fixed(2, bound=-1)}, r"bound=-1"),
    ({"delays": D.Fixed(2, bound=2.5)}, r"bound=2.5"),
    ({"delays": D.UniformRandom(5, 2)}, r"low=5, high=2.*low must not be above high"),
    ({"delays": D.UniformRandom(-1, 2)}, r"low=-1"),
    ({"delays": D.UniformRandom(0, 99, bound=50)}, r"99 is above bound=50"),
    ({"delays": D.Geometric(-1.0, bound=9)}, r"Geometric\(mean=-1.0\).*0 or more"),
    ({"delays": D.Geometric(float("inf"), bound=9)}, r"Geometric\(mean=inf\)"),
    ({"delays": D.Poisson(-2.0, bound=9)}, r"Poisson\(mean=-2.0\)"),
    ({"delays": D.Pareto(0.0, bound=9)}, r"Pareto\(alpha=0.0\).*above 0"),
    ({"delays": D.PacketLoss(1.5)}, r"PacketLoss\(probability=1.5\).*between 0 and 1"),
    ({"delays": D.PacketLoss(0.5, delay=-1)}, r"delay=-1"),
    ({"delays": D.Bursts(0)}, r"Bursts\(every=0\).*1 or more"),
    ({"delays": D.Outlier(first=-5)}, r"Outlier\(first=-5\)"),
    ({"delays": D.Outlier(first=5, count=-1)}, r"count=-1"),
    ({"delays": D.Trace([1, -2, 3, *[0] * 9])}, r"-2 is not"),
    ({"delays": D.Trace([1, 0.5, 3, *[0] * 9])}, r"0.5 is not"),
    ({"delays": D.Trace([[1, 2], [3, 4]])}, r"Trace\(delays="),
    ({"delays": D.Trace([1, 2, 3])}, r"rounds=10: delays.Trace has only 3 rounds"),
    ({"delays": D.ArmDependent([D.Fixed(1)])}, r"1 laws for 2 arms"),
    ({"delays": D.ArmDependent([D.Fixed(1), D.Fixed(-1)])}, r"delay=-1"),
    ({"delays": D.ArmDependent([D.Fixed(1), 3])}, r"ArmDependent\(laws="),
    ({"delays": D.ArmDependent([D.Fixed(1), D.Fixed(2)], shared=True)}, r"shared=True.*leave shared out"),
    ({"delays": 10}, r"delays=10: .*jb.delays.Fixed\(10\)"),
    ({"delays": D.Fixed}, r"delays=.*jb.delays.Fixed\(10\)"),
    ({"losses": L.Bernoulli([0.3, 1.2])}, r"1.2 does not"),
    ({"losses": L.Bernoulli([0.3, -0.1])}, r"-0.1 does not"),
    ({"losses": L.Bernoulli([0.3, float("nan")])}, r"nan does not"),
    ({"losses": L.Bernoulli([])}, r"Bernoulli\(means="),
    ({"losses": L.Bernoulli(np.array([[0.3, 0.5]]))}, r"one for each arm, not an array of shape \(1, 2\)"),
    ({"losses": L.Beta([0.3, 0.5], concentration=0.0)}, r"concentration=0.0"),
    ({"losses": L.ClippedNormal([0.3, 0.5], deviation=-0.1)}, r"deviation=-0.1"),
    ({"losses": L.Table([[0.0, 2.0]] * 20)}, r"2.0 does not"),
    ({"losses": L.Table([[0.0, 1.0]] * 5)}, r"rounds=10: losses.Table has only 5 rounds"),
    ({"losses": L.StochasticallyConstrained(1.5, arms=3)}, r"1.5 does not"),
    ({"losses": L.StochasticallyConstrained(0.5, arms=0)}, r"arms=0"),
    ({"losses": L.StochasticallyConstrained(0.5, arms=2, growth=1.0)}, r"growth=1.0"),
    ({"losses": L.Switching([[0.1, 0.2], [0.2, 0.1]], starts=[1, 1])}, r"starts=\[1, 1\].*ascending from 1"),
    ({"losses": L.Switching([[0.1, 0.2], [0.2, 0.1]], starts=[2, 5])}, r"starts=\[2, 5\]"),
    ({"losses": L.Corrupted(L.Bernoulli([0.3, 0.5]), budget=-1.0)}, r"budget=-1.0"),
    ({"losses": L.Corrupted(L.Table([[0.0, 1.0]] * 20), budget=1.0)}, r"base=Table"),
    ({"losses": [0.3, 0.5]}, r"losses=\[0.3, 0.5\].*jb.losses.Bernoulli"),
    ({"learner": jb.BestOfBothWorlds}, r"give a learner, not its class: BestOfBothWorlds\(\.\.\.\)"),
    ({"learner": NoObserve()}, r"observe is missing"),
    ({"learner": None}, r"init, act, observe are missing"),
    ({"learner": jb.BestOfBothWorlds(-1)}, r"BestOfBothWorlds\(max_delay=-1\).*0 or more"),
    ({"learner": jb.BestOfBothWorlds(4, factor=float("nan"))}, r"factor=nan"),
    ({"learner": jb.BestOfBothWorlds("oracle")}, r"max_delay='oracle'.*must be a number"),
    ({"learner": jb.TsallisINF("ix")}, r"estimator='ix'.*'iw' or 'rv'"),
    ({"learner": jb.TsallisINF(scale=0.0)}, r"TsallisINF\(scale=0.0\): scale must be a number, 0.001 or more"),
    ({"learner": jb.BestOfBothWorlds(4, factor=1e38)}, r"factor=1e\+38\): factor must be a number, 1000000 at most"),
    ({"learner": jb.BestOfBothWorlds([4, 5])}, r"max_delay=\[4, 5\]\): max_delay must be a number, not an array of shape \(2,\)"),
    ({"learner": jb.BestOfBothWorlds(None)}, r"max_delay=None\): max_delay must be a number"),
    ({"learner": jb.BestOfBothWorlds(4, factor=True)}, r"factor=True\): factor must be a number"),
    ({"learner": jb.ZimmertSeldin(skipping="no")}, r"skipping='no'\): skipping is True or False"),
    ({"learner": jb.AsymmetricBestOfBothWorlds(4, gaps=[0.0, 0.1, 0.2])}, r"3 numbers for 2 arms; give one for each arm"),
    ({"learner": jb.AsymmetricBestOfBothWorlds(4, gaps=0.1)}, r"gaps must be a list of K numbers, one for each arm"),
    ({"learner": jb.DelayedExponentialWeights(0, 1, 1)}, r"horizon=0\): horizon must be a number, 1 or more"),
    ({"learner": jb.QPMD(jb.TsallisINF(scale=-1.0), 4)}, r"TsallisINF\(scale=-1.0\)"),
    ({"losses": L.ClippedNormal([0.3, 0.5], deviation=1e39)}, r"deviation=1e\+39\): deviation must be a number, 100 at most"),
    ({"losses": L.Bernoulli(0.3)}, r"means=0.3\): means must be a list of K numbers, one for each arm"),
    ({"losses": L.Bernoulli([0.3, [0.5]])}, r"means must be a list of K numbers, one for each arm"),
    ({"losses": L.Table([0.3, 0.5])}, r"losses must be a table with a row of K numbers for each round"),
    ({"losses": L.Beta([0.3, 0.5], concentration=[1.0, 2.0, 3.0])}, r"3 numbers for 2 arms"),
    ({"losses": L.Switching([[0.1, 0.2], [0.2, 0.1]], starts=[1, 2**31])}, r"starts must be whole numbers, 1073741824 at most"),
    ({"losses": L.Switching([[0.1, 0.2], [0.2, 0.1]], starts=[1])}, r"1 numbers for 2 phases; give one for each phase"),
    ({"losses": L.Switching([[0.1, 0.2]] * 2, starts=np.array([1, 1], np.uint32))}, r"ascending from 1"),
    ({"losses": L.Corrupted(L.Bernoulli([0.3, 0.5]), 1.0, start=2**32)}, r"start must be a whole number, 1073741824 at most"),
    ({"losses": L.Corrupted(L.Bernoulli([0.3, 0.5]), float("inf"))}, r"budget=inf"),
    ({"losses": L.Corrupted(L.Bernoulli([0.3, 1.5]), 1.0)}, r"1.5 does not"),
    ({"losses": L.Corrupted(3, 1.0)}, r"Corrupted\(base=int"),
    ({"losses": L.StochasticallyConstrained(0.5, arms=2.0)}, r"arms=2.0\): arms must be a whole number"),
    ({"delays": D.ArmDependent([])}, r"laws must be a list of delay models, one for each arm"),
    ({"delays": D.Bursts([3])}, r"every=\[3\]\): every must be a number, not an array of shape \(1,\)"),
    ({"delays": D.UniformRandom(0, 3, shared="no")}, r"shared='no'\): shared is True or False"),
    ({"delays": D.Fixed(True)}, r"delay=True\): delay must be a number"),
    ({"delays": D.Trace([1, 2**30, *[0] * 9])}, r"1073741824 is not a delay"),
    ({"rounds": 0}, r"rounds=0"),
    ({"rounds": 2.5}, r"rounds=2.5"),
    ({"rounds": 2**31}, r"rounds=2147483648"),
    ({"runs": 0}, r"runs=0"),
    ({"runs": True}, r"runs=True"),
    ({"first_run": -1}, r"first_run=-1"),
    ({"first_run": 2**32}, r"run ids must stay below"),
    ({"key": jax.random.PRNGKey(0)}, r"jax.random.key\(0\)"),
    ({"key": 0}, r"key=0: .*jax.random.key\(0\).*seed=0"),
    ({"seed": 0}, r"seed=0: give seed=0 or key=jax.random.key\(0\), one of the two"),
    ({"key": None}, r"nothing to draw from: give seed=0 or key=jax.random.key\(0\)"),
    ({"key": None, "seed": -1}, r"seed=-1: the seed is a whole number from 0"),
    ({"key": None, "seed": 0.5}, r"seed=0.5: the seed is a whole number from 0"),
    ({"key": None, "seed": True}, r"seed=True: the seed is a whole number from 0"),
    ({"key": None, "seed": "a"}, r"seed='a': the seed is a whole number from 0"),
    ({"key": jax.random.split(KEY, 3)}, r"key of shape \(3,\)"),
    ({"key": jax.random.key(0, impl="rbg")}, r"rbg.*threefry2x32"),
    ({"record": 0}, r"record=0"),
    ({"record": [5, 5]}, r"record=\[5, 5\].*ascending"),
    ({"record": [5, 50]}, r"between 1 and rounds=10"),
    ({"record": "all"}, r"record='all'"),
    ({"resume": 3}, r"resume=3: go on from a Result"),
]


@pytest.fixture
def nothing_traced(monkeypatch):
    def fail(*args):
        raise AssertionError("something was traced before the input was checked")

    monkeypatch.setattr(Player, "advance", fail)
    monkeypatch.setattr(Player, "start", fail)


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[f"{i} {next(iter(change))}" for i, (change, _) in enumerate(WRONG)])
def test_one_clear_sentence(change, message, nothing_traced):
    arguments = {**GOOD, **change}
    learner, losses, delays = (arguments.pop(name) for name in ("learner", "losses", "delays"))
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        jb.simulate(learner, losses, delays, **arguments)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 300


@pytest.mark.thorough
def test_a_seed_is_the_key_made_of_it():
    game = (jb.BestOfBothWorlds(2), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(2))
    by_key, by_seed = ({"key": jax.random.key(7)}, {"seed": 7})
    first, second = (jb.simulate(*game, rounds=9, runs=3, **one) for one in (by_key, by_seed))
    np.testing.assert_array_equal(first.regret, second.regret)
    assert first.identity == second.identity
    seeds = jax.vmap(lambda seed: jb.rollout(*game, rounds=9, seed=seed).regret)(jnp.arange(6, 8))
    np.testing.assert_array_equal(seeds[1], jb.rollout(*game, rounds=9, **by_key).regret)
    gradients = [jb.regret_gradient(*game, rounds=9, runs=8, only=["factor"], **one) for one in (by_key, by_seed)]
    assert gradients[0].value == gradients[1].value
    tuned = [
        jb.tune(*game, rounds=9, runs=8, steps=1, fresh_runs=8, only=["factor"], audit=False, **one) for one in (by_key, by_seed)
    ]
    assert tuned[0].learner.factor == tuned[1].learner.factor
    for function in (jb.rollout, jb.regret_gradient, jb.tune):
        with pytest.raises(TypeError, match="nothing to draw from"):
            function(*game, rounds=9, **({} if function is jb.rollout else {"runs": 8}))


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (
            {"delays": D.Fixed(10**8), "learner": jb.Uniform(), "rounds": 10**8, "record": 1},
            r"delays=Fixed\(…\): for delays of up to 134217728 rounds a block of 512 runs needs .* GB of memory .*use shorter delays",
        ),
        (
            {"losses": L.StochasticallyConstrained(0.1, arms=10**9), "learner": jb.TsallisINF()},
            r"losses=StochasticallyConstrained\(…\): with 1000000000 arms a block of 256 runs needs .*take fewer arms",
        ),
    ],
)
def test_more_than_the_memory(game, message):
    for function in (jb.simulate, jb.regret_gradient) if isinstance(game["learner"], jb.TsallisINF) else (jb.simulate,):
        with pytest.raises(ValueError, match=message):
            function(**{**GOOD, **game})


ARGMIN = [
    (([1.0, math.inf, 2.0], 1.0, 1.0), r"losses=\[1.0, inf, 2.0\]: the losses are finite numbers"),
    (([1.0, math.nan, 2.0], 1.0, 1.0), r"losses=\[1.0, nan, 2.0\]"),
    ((["a"], 1.0, 1.0), r"losses=\['a'\]: give numbers"),
    ((1.0, 1.0, 1.0), r"losses=1.0: give a list of K numbers"),
    (([], 1.0, 1.0), r"losses=\[\]: give a list of K numbers"),
    (([1.0, 2.0], 0.0, 1.0), r"tsallis=0.0: the weight of the Tsallis entropy is a finite number above 0"),
    (([1.0, 2.0], -1.0, 1.0), r"tsallis=-1.0"),
    (([1.0, 2.0], math.nan, 1.0), r"tsallis=nan"),
    (([1.0, 2.0], math.inf, 1.0), r"tsallis=inf"),
    (([1.0, 2.0], 1.0, -1.0), r"entropy=-1.0: the weight of the negative entropy is a finite number, 0 or more"),
    (([1.0, 2.0], 1.0, None), r"entropy=None: give numbers"),
]


@pytest.mark.parametrize(("arguments", "message"), ARGMIN, ids=[message[:20] for _, message in ARGMIN])
def test_a_leader_that_is_not_there(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        jb.hybrid_argmin(*arguments)


SWITCHES = [
    ({"reverse": "forward"}, r"reverse='forward': reverse is True, False or None"),
    ({"reverse": np.ones(2)}, r"reverse=\[1.0, 1.0\]: reverse is True"),
    ({"control_variates": "no"}, r"control_variates='no': control_variates is True or False"),
    ({"control_variates": None}, r"control_variates=None"),
    ({"progress": "yes"}, r"progress='yes': progress is True or False"),
    ({"step": True}, r"step=True: the step of paired differences is a number above 0, 10 at most"),
    ({"step": 0.0}, r"step=0.0"),
    ({"step": 1000.0}, r"step=1000.0"),
    ({"step": math.nan}, r"step=nan"),
    ({"step": np.ones(2)}, r"step=\[1.0, 1.0\]"),
]


@pytest.mark.parametrize(("change", "message"), SWITCHES, ids=[message[:20] for _, message in SWITCHES])
def test_switches_of_a_gradient(change, message, nothing_traced):
    with pytest.raises((ValueError, TypeError), match=message):
        jb.regret_gradient(**GOOD, **change)


def test_steps_and_switches_of_numpy():
    check_options("paired", np.float32(0.3))
    check_options(None, 10)
    check_switch("reverse", np.bool_(True))


def test_runs_may_be_a_whole_number_of_jax():
    check_runs(jnp.int32(64), 0)
    with pytest.raises(ValueError, match=r"runs=64: run ids must stay below 2\*\*32"):
        check_runs(jnp.int32(64), 2**32 - 1)


def test_there_are_many():
    assert len(WRONG) >= 40


def test_going_on_with_something_else():
    first = jb.simulate(**GOOD)
    for change, part in [
        ({"learner": jb.BestOfBothWorlds(5)}, "learner"),
        ({"losses": L.Bernoulli([0.3, 0.6])}, "losses"),
        ({"delays": D.Fixed(3)}, "delays"),
        ({"key": jax.random.key(1)}, "key"),
    ]:
        with pytest.raises(ValueError, match=f"made with another {part}"):
            jb.simulate(**{**GOOD, **change, "rounds": 20}, resume=first)
    with pytest.raises(ValueError, match="must be above the 10 already played"):
        jb.simulate(**GOOD, resume=first)
    with pytest.raises(ValueError, match=r"runs=3.*has runs=2"):
        jb.simulate(**{**GOOD, "rounds": 20, "runs": 3}, resume=first)


def test_a_file_that_is_not_a_result(tmp_path):
    (tmp_path / "torn.npz").write_bytes(b"PK\x03\x04 torn")
    np.savez(tmp_path / "other.npz", numbers=np.arange(3))
    for name in ("torn.npz", "other.npz"):
        with pytest.raises(ValueError, match="not a file written by"):
            jb.Result.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        jb.Result.load(tmp_path / "none.npz")


def test_a_delay_that_is_traced_needs_its_bound():
    with pytest.raises(ValueError, match="give bound="):
        jax.vmap(lambda d: jb.rollout(GOOD["learner"], GOOD["losses"], D.Fixed(d), rounds=5, key=KEY).regret)(jnp.arange(3))


@pytest.mark.filterwarnings("error", "ignore:.*it explores nearly uniformly for about")
def test_a_short_max_delay_is_legal_and_warned_about_once():
    from jaxbandit._checks import warn

    warn._warned.clear()
    with pytest.warns(UserWarning, match=r"BestOfBothWorlds\(max_delay=2\): delays of 4 can come"):
        jb.simulate(**{**GOOD, "learner": jb.BestOfBothWorlds(2)})
    jb.simulate(**{**GOOD, "learner": jb.BestOfBothWorlds(2)})
    with pytest.warns(UserWarning, match="feedback can be lost"):
        jb.simulate(**{**GOOD, "delays": D.PacketLoss(0.5)})
    jb.simulate(**{**GOOD, "learner": jb.BestOfBothWorlds(4)})
