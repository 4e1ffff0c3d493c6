"""Comparisons against SciPy's paired tests, and runs until decided."""

import dataclasses
import itertools
import threading

import jax
import numpy as np
import pytest
import scipy.stats

import jaxbandit as jb
from jaxbandit._engine.player import Player
from jaxbandit._engine.programs import Program, settled
from jaxbandit.results.comparison import Sample, paired_differences

LEARNERS = {"UCB1": jb.DelayedUCB1(), "narrow": jb.DelayedUCB1(0.5), "uniform": jb.Uniform()}
LOSSES, DELAYS = jb.losses.Bernoulli([0.3, 0.6, 0.6]), jb.delays.Fixed(4)
OPTIONS = {"rounds": 200, "seed": 2, "record": 3}


def simulate(name, runs=64, **options):
    return jb.simulate(LEARNERS[name], LOSSES, DELAYS, **{"runs": runs, **OPTIONS, **options})


@pytest.fixture(scope="module")
def results():
    return {name: simulate(name) for name in LEARNERS}


def holm_by_hand(p):
    """The smallest level at which Holm's procedure rejects each hypothesis, by trying the levels."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted = {}
    for place, i in enumerate(order):
        adjusted[i] = min(1.0, max((len(p) - k) * p[order[k]] for k in range(place + 1)))
    return [adjusted[i] for i in range(len(p))]


def test_against_scipy(results):
    """Rejects unpaired tests, one-sided ones, means of the first recorded round, and p-values that are not corrected."""
    found = jb.compare(results)
    tests = {
        (one, other): scipy.stats.ttest_rel(results[one].regret[-1].astype(float), results[other].regret[-1].astype(float))
        for one, other in itertools.combinations(results, 2)
    }
    adjusted = dict(zip(tests, holm_by_hand([test.pvalue for test in tests.values()]), strict=True))
    for (one, other), test in tests.items():
        pair, interval = found.difference(one, other), test.confidence_interval(0.95)
        assert (pair.p, pair.adjusted) == pytest.approx((test.pvalue, adjusted[one, other]), rel=1e-9)
        assert (pair.low, pair.high) == pytest.approx((interval.low, interval.high), rel=1e-9)
        assert (
            found.difference(other, one).mean
            == -pair.mean
            == pytest.approx(-(results[one].regret[-1].astype(float) - results[other].regret[-1]).mean())
        )
        assert found.difference(other, one).low == -pair.high
    means = [one.mean for one in found.learners]
    assert means == sorted(means)
    for one in found.learners:
        last = results[one.learner].regret[-1].astype(float)
        assert (one.median, one.failed) == (np.median(last), np.mean(last > 10 * max(np.median(last), 1)))
        estimate = results[one.learner].estimate()
        assert (one.mean, one.low) == pytest.approx((estimate.mean[-1], estimate.low[-1]), rel=1e-9)


def test_runs_are_paired_by_their_ids(results):
    """Rejects pairing by place."""
    late = simulate("UCB1", runs=50, first_run=30)
    pair = jb.compare({"late": late, "narrow": results["narrow"]}).difference("late", "narrow")
    expected = late.regret[-1, :34].astype(float) - results["narrow"].regret[-1, 30:]
    assert (pair.runs, pair.mean) == (34, pytest.approx(expected.mean()))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 3}, "'other' has other key than 'UCB1'"),
        ({"rounds": 100}, "'other' has 100 rounds and 'UCB1' has 200"),
        ({"first_run": 64}, "have 0 runs in common"),
        ({"first_run": 63}, "have 1 run in common"),
    ],
)
def test_what_cannot_be_paired_is_refused(results, change, words):
    with pytest.raises(ValueError, match=words):
        jb.compare({"UCB1": results["UCB1"], "other": simulate("narrow", **change)})


def test_other_environments_are_refused(results):
    other = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.3, 0.6, 0.7]), jb.delays.Fixed(5), runs=64, **OPTIONS)
    with pytest.raises(ValueError, match="'other' has other losses and delays than 'UCB1', so that their runs cannot be paired"):
        jb.compare({"UCB1": results["UCB1"], "other": other})


@pytest.mark.parametrize("given", [None, {}, 3, "results", [1]])
def test_wrong_input(given):
    with pytest.raises(ValueError, match="give two Results or more by name"):
        jb.compare(given)


def test_wrong_arguments(results):
    with pytest.raises(TypeError, match="give a Result, or a dataset"):
        jb.compare({"a": results["UCB1"], "b": 3})
    with pytest.raises(ValueError, match=r"jb.compare\(until=…\): this is for a simulation"):
        jb.compare(results, until="decided")
    with pytest.raises(ValueError, match="give two learners or more"):
        jb.compare([jb.Uniform()], LOSSES, DELAYS, runs=9, **OPTIONS)
    with pytest.raises(ValueError, match="runs=1: a comparison needs 2 runs"):
        jb.compare(LEARNERS, LOSSES, DELAYS, runs=1, **OPTIONS)
    with pytest.raises(ValueError, match="until='soon'"):
        jb.compare(LEARNERS, LOSSES, DELAYS, runs=9, until="soon", **OPTIONS)
    with pytest.raises(ValueError, match="'all': a table is one of"):
        jb.compare(results).to_markdown("all")
    with pytest.raises(KeyError, match="there are UCB1, narrow, uniform"):
        jb.compare(results).difference("ucbl", "uniform")


def test_sweeps_and_datasets_say_the_same(results, tmp_path):
    spec = jb.Spec(
        rounds=200,
        runs=64,
        seed=2,
        record=[50, 200],
        learners=LEARNERS,
        losses=[LOSSES],
        delays={"4": DELAYS, "9": jb.delays.Fixed(9)},
    )
    data = jb.open_sweep(jb.sweep(spec, tmp_path).out)
    swept, direct = jb.compare(data), jb.compare(results)
    assert list(swept.samples) == [f"{data.losses.values[0]}; 4", f"{data.losses.values[0]}; 9"]
    assert len(swept.pairs) == 6
    pair = swept.difference("UCB1", "narrow", next(iter(swept.samples)))
    assert pair.mean == direct.difference("UCB1", "narrow").mean
    alone = jb.compare(data.isel(losses=0, delays=0))
    assert [one.adjusted for one in alone.pairs] == [one.adjusted for one in direct.pairs]
    assert alone.rounds == 200
    sets = jb.compare({name: result.to_xarray() for name, result in results.items()})
    assert [dataclasses.astuple(pair) for pair in sets.pairs] == [dataclasses.astuple(pair) for pair in direct.pairs]
    bare = results["UCB1"].to_xarray()
    bare.attrs.clear()
    with pytest.raises(ValueError, match="does not contain its losses, delays and key"):
        jb.compare({"a": bare, "b": bare})


def test_a_simulated_comparison_is_that_of_its_results():
    found = jb.compare(LEARNERS, LOSSES, {"4": DELAYS, "9": jb.delays.Fixed(9)}, runs=64, **OPTIONS)
    np.testing.assert_array_equal(found.results["4"]["UCB1"].regret, simulate("UCB1").regret)
    assert list(found.samples) == ["4", "9"]
    again = jb.compare(found.results["9"])
    assert [one.mean for one in again.pairs] == [one.mean for one in found.pairs if one.environment == "9"]


CLOSE = {"far": jb.Uniform(), "one": jb.DelayedUCB1(2.0), "two": jb.DelayedUCB1(1.8)}


def test_until_decided_adds_runs_where_pairs_are_open(tmp_path):
    """Rejects runs for learners whose pairs are all decided, and a resumed comparison that differs from one go."""
    options = {"rounds": 150, "seed": 0, "record": 1, "until": "decided"}
    whole = jb.compare(CLOSE, LOSSES, DELAYS, runs=4000, **options)
    assert whole.reached
    assert whole.results[""]["far"].runs == 256 < whole.results[""]["one"].runs == whole.results[""]["two"].runs < 4000
    assert all(pair.significant for pair in whole.pairs)
    again = jb.compare(whole.results[""])  # Student's test does not hold for runs that were added until it rejects
    assert [dataclasses.astuple(pair) for pair in again.pairs] == [dataclasses.astuple(pair) for pair in whole.pairs]
    with pytest.warns(UserWarning, match="until=decided: not reached with runs=300; resume with more runs"):
        part = jb.compare(CLOSE, LOSSES, DELAYS, runs=300, **options)
    assert not part.reached
    rest = jb.compare(CLOSE, LOSSES, DELAYS, runs=4000, resume=part, **options)
    assert [dataclasses.astuple(pair) for pair in rest.pairs] == [dataclasses.astuple(pair) for pair in whole.pairs]
    with pytest.raises(ValueError, match=r"resume.results\[''\]\['far'\]: this Result"):
        jb.compare(CLOSE, LOSSES, jb.delays.Fixed(9), runs=4000, resume=part, **options)


def test_learners_that_are_alike_stay_undecided():
    with pytest.warns(UserWarning, match="not reached"):
        found = jb.compare({"a": jb.Uniform(), "b": jb.Uniform()}, LOSSES, DELAYS, runs=300, until="decided", rounds=9, seed=0)
    assert [pair.adjusted for pair in found.pairs] == [1.0]
    assert "not significantly different" in found.to_markdown("pairs")


def test_until_a_width():
    found = jb.compare(CLOSE, LOSSES, DELAYS, rounds=150, runs=4000, seed=0, record=1, until=3)
    assert found.reached
    assert all(pair.half <= 3 for pair in found.pairs)


def test_intervals_of_until_hold_for_all_pairs():
    """Rejects intervals of level 5% each: with three pairs they are narrower."""
    chance = np.random.default_rng(0)
    samples = {"": {name: Sample(np.arange(500), chance.normal(50, 9, 500)) for name in "abc"}}
    two = {"": {name: samples[""][name] for name in "ab"}}
    limits = {"": (0.0, 200.0)}
    assert paired_differences(samples, limits)[0].half > paired_differences(two, limits)[0].half


def test_tables(results):
    names = {"a_b & 50%": results["UCB1"], "c|d": results["uniform"]}
    found = jb.compare(names)
    latex = found.to_latex()
    assert r"a\_b \& 50\%" in latex
    assert latex.count(r"\\") == 3
    lines = found.to_markdown().splitlines()
    assert len({line.replace(r"\|", "").count("|") for line in lines[:4]}) == 1
    assert repr(found).splitlines()[1].startswith("a_b & 50%")
    assert "a_b &amp; 50%" in found._repr_html_()
    table = found.to_pandas()
    assert table.loc[0, "mean"] == found.pairs[0].mean
    assert found.to_pandas("learners").failed.tolist() == [one.failed for one in found.learners]
    few = jb.compare({name: result.take_runs(0, 9) for name, result in names.items()})
    assert "†: too few runs" in repr(few)


def test_a_figure(results):
    made = jb.compare(results).plot()
    assert len(made.axes[0].get_yticklabels()) == 3
    with pytest.raises(ValueError, match="environment='x'"):
        jb.plots.differences(jb.compare(results), environment="x")


def test_programs_of_different_shapes_are_compiled_at_the_same_time():
    """Rejects one lock for all programs: the two threads would never meet."""
    meeting = threading.Barrier(2, timeout=20)

    def play(player, x):
        meeting.wait()  # while the program is traced
        return x + 1

    program = Program(play)
    player = Player(execution=dataclasses.replace(Player().execution, one_function=True))
    threads = [threading.Thread(target=settled, args=(program, player, np.zeros(size, np.float32))) for size in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not meeting.broken
    assert len(program.known) == 2


def test_an_error_in_one_game_is_that_of_the_comparison():
    @jb.extend.pytree_dataclass
    class Wrong(jb.learners.Learner):
        def init(self, num_arms, runs_shape):
            return ()

        def act(self, state, round):
            raise RuntimeError("wrong on purpose")

    with pytest.raises(RuntimeError, match="wrong on purpose"):
        jb.compare({"wrong": Wrong(), "uniform": jb.Uniform()}, LOSSES, DELAYS, runs=9, **OPTIONS)


def test_not_inside_transformations():
    with pytest.raises(TypeError, match="compare cannot be called inside jit"):
        jax.jit(lambda alpha: jb.compare([jb.DelayedUCB1(alpha), jb.Uniform()], LOSSES, DELAYS, runs=9, **OPTIONS))(2.0)


def test_runs_without_a_finite_regret_raise():
    """Rejects a comparison that is NaN, and one that leaves these runs out: failed runs would count for nothing."""
    game = jb.losses.Bernoulli([0.3, 0.6]), jb.delays.Fixed(2)
    one, other = (jb.simulate(learner, *game, rounds=20, runs=8, seed=0) for learner in (jb.Uniform(), jb.TsallisINF()))
    for value in (np.nan, np.inf):
        regret = other.regret.copy()
        regret[-1, 3] = value
        wrong = dataclasses.replace(other, regret=regret)
        for given in ({"a": one, "b": wrong}, {"a": one.to_xarray(), "b": wrong.to_xarray()}):
            with pytest.raises(ValueError, match=f"'b' is {value} in run 3 \\(1 of 8 runs\\)"):
                jb.compare(given)


def test_a_run_that_is_there_twice_raises():
    """Rejects pairs of a run with itself, which count it twice."""
    game = jb.losses.Bernoulli([0.3, 0.6]), jb.delays.Fixed(2)
    one, other = (jb.simulate(learner, *game, rounds=20, runs=8, seed=0) for learner in (jb.Uniform(), jb.TsallisINF()))
    with pytest.raises(ValueError, match="run 0 is there twice"):
        jb.compare({"a": one.to_xarray().isel(run=[0, 0, 1]), "b": other})
    with pytest.raises(ValueError, match="'b' and 'a' have 1 run in common"):
        jb.compare({"a": one.take_runs(0, 1), "b": other.take_runs(0, 1)})
