"""What is shown at the prompt and in a notebook: one line, true numbers, nothing that fills the screen."""

import dataclasses
import re
import tempfile
import xml.etree.ElementTree as xml

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._core.display import interval, plus_minus
from jaxbandit._core.fields import canonical, pytree_dataclass
from jaxbandit.gradients.gradient import Gradient

KEY = jax.random.key(0)
GAME = (jb.BestOfBothWorlds(31), jb.losses.Bernoulli([0.3, 0.5, 0.5, 0.5]), jb.delays.Geometric(5.0, bound=31))


@pytest.fixture(scope="module")
def result():
    return jb.simulate(*GAME, rounds=400, runs=32, key=KEY, probabilities=True, measure=[jb.ControlVariates()])


SHOWN = {
    "ProgressiveThompson(prior_mean=[0, 1])": jb.ProgressiveThompson([0, 1]),  # whole numbers
    "BestOfBothWorlds(max_delay=10)": jb.BestOfBothWorlds(10),
    "BestOfBothWorlds(max_delay=10, factor=1.5)": jb.BestOfBothWorlds(10, factor=1.5),
    "BestOfBothWorlds(max_delay='oracle')": jb.BestOfBothWorlds("oracle"),
    "TsallisINF()": jb.TsallisINF(),
    "TsallisINF(estimator='rv')": jb.TsallisINF("rv"),
    "ZimmertSeldin(skipping=True)": jb.ZimmertSeldin(skipping=True),
    "BOLD(base=TsallisINF(), capacity=8)": jb.BOLD(jb.TsallisINF(), capacity=8),
    "Bernoulli(means=[0.3, 0.5])": jb.losses.Bernoulli([0.3, 0.5]),
    "Bernoulli(means=float64[100])": jb.losses.Bernoulli(np.full(100, 0.5)),
    "Fixed(delay=10)": jb.delays.Fixed(10),
    "Fixed(delay=10, bound=31)": jb.delays.Fixed(10, bound=31),
    "Outlier(first=1000)": jb.delays.Outlier(1000),
    "ArmDependent(laws=[Fixed(delay=0), Fixed(delay=8)])": jb.delays.ArmDependent([jb.delays.Fixed(0), jb.delays.Fixed(8)]),
    "ControlVariates()": jb.ControlVariates(),
}


@pytest.mark.parametrize("text", SHOWN)
def test_objects_show_the_fields_that_differ_from_their_defaults(text):
    assert repr(SHOWN[text]) == text


NAMES = {**vars(jb), **vars(jb.losses), **vars(jb.delays)}


@pytest.mark.parametrize("text", [text for text in SHOWN if "float64" not in text and "oracle" not in text])
def test_what_is_shown_can_be_typed_in_again(text):
    again, thing = (canonical(one) for one in (eval(text, NAMES), SHOWN[text]))
    assert jax.tree.structure(again) == jax.tree.structure(thing)
    jax.tree.map(np.testing.assert_array_equal, again, thing)
    assert repr(thing) == text, "the same when its numbers have become arrays"


def test_tracers_masks_and_deep_objects_are_shown_short():
    shown = []
    jax.jit(lambda learner: shown.append(repr(learner)))(jb.BestOfBothWorlds(10))
    assert shown[0].startswith("BestOfBothWorlds(max_delay=")
    assert len(shown[0]) < 200
    assert "True" in repr(jax.tree.map(lambda leaf: True, jb.BestOfBothWorlds(10)))
    rolled = jb.rollout(*GAME, rounds=30, key=KEY)
    assert len(repr(rolled)) < 200
    assert "regret=float32[" in repr(rolled)


def test_a_class_may_show_itself_and_one_whose_constructor_raises_is_shown():
    @pytree_dataclass
    class Own:
        number: float = 1.0

        def __repr__(self):
            return "mine"

    @pytree_dataclass
    class Fussy:
        number: float
        size: int | None = None

        def __post_init__(self):
            if self.size is None:
                raise ValueError("give a size")

    assert repr(Own()) == "mine"
    assert repr(Fussy(2.0, 3)) == "Fussy(number=2, size=3)"


def test_a_result_is_one_line_with_its_regret_and_what_was_lost(result):
    plain = dataclasses.replace(result, measured={})
    last = result.regret[-1].astype(float)
    half = 2.0395 * last.std(ddof=1) / np.sqrt(32)  # Student's t, 31 degrees of freedom
    found = re.fullmatch(
        r"Result\(32 runs × 400 rounds: regret ([\d.]+) \[([\d.]+), ([\d.]+)\] at 400, lost (\d+) \((.*) %\)\)", repr(plain)
    )
    assert found is not None, repr(plain)
    mean, low, high, lost, per_cent = map(float, found.groups())
    np.testing.assert_allclose([mean, low, high], [last.mean(), last.mean() - half, last.mean() + half], atol=0.051)
    assert lost == result.lost.sum() > 0
    np.testing.assert_allclose(per_cent, 100 * lost / (32 * 400), rtol=0.06)
    assert "lost 0)" in repr(dataclasses.replace(plain, lost=np.zeros(32, np.int32)))


def test_a_single_run_has_no_interval():
    one = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.25, 0.75]), jb.delays.Fixed(3), rounds=100, runs=1, key=KEY)
    assert repr(one) == "Result(1 run × 100 rounds: regret 25 at 100, lost 0)"
    assert "nan" not in one._repr_html_().lower()


def test_summary_by_hand(result):
    summary, last = result.summary(), np.sort(result.regret[-1].astype(float))
    assert (summary.runs, summary.rounds) == (32, 400)
    np.testing.assert_allclose(summary.median, (last[15] + last[16]) / 2)
    assert last[29] <= summary.quantile_95 <= last[31] == summary.worst
    assert summary.lost == result.lost.sum()
    np.testing.assert_allclose(summary.mean_delay, result.total_delay.sum() / (32 * 400))
    assert summary.low < summary.regret < summary.high
    assert len(repr(summary).splitlines()) == len(summary.rows())


def test_pandas_has_every_number_at_its_round_and_run(result):
    table = result.to_pandas()
    assert len(table) == len(result.rounds) * 32
    assert {"round", "run", "regret", "probability_1", "probability_4", "control_variates_4"} <= set(table.columns)
    row = table[(table["round"] == result.rounds[7]) & (table["run"] == 5)].iloc[0]
    assert row.regret == result.regret[7, 5]
    assert row.probability_3 == result.probabilities[7, 2, 5]
    np.testing.assert_allclose(result.estimate().to_pandas()["mean"].iloc[-1], result.estimate().mean[-1])


@pytest.mark.parametrize(
    "make", [lambda result: result, lambda result: result.estimate(), lambda result: result.summary(), lambda _: GAME[0]]
)
def test_notebooks_get_well_formed_html(result, make):
    page = make(result)._repr_html_()
    assert len(page) < 8000
    xml.fromstring(page)


def test_html_escapes_what_a_user_named():
    @pytree_dataclass
    class Named:
        label: str = "<script>"

    assert "<script>" not in Named("<script>x")._repr_html_()


def test_sparkline_follows_the_curve(result):
    drawn = xml.fromstring(result.estimate().sparkline())
    line = drawn.find("{http://www.w3.org/2000/svg}polyline")
    points = np.array([pair.split(",") for pair in line.get("points").split()], float)
    mean = result.estimate().mean
    assert np.corrcoef(points[:, 1], mean)[0, 1] < -0.9999, "SVG counts downwards"


@pytest.mark.thorough
def test_gradient_tuned_and_sweep_are_one_line():
    game = (jb.BestOfBothWorlds(5), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5))
    gradient = jb.regret_gradient(*game, rounds=50, runs=32, key=KEY, only=["factor"])
    assert re.fullmatch(r"Gradient\(regret [\d.]+ ± [\d.]+; by factor [\d.-]+ ± [\d.]+; jump\)", repr(gradient)), repr(gradient)
    tuned = jb.tune(*game, rounds=50, runs=32, steps=2, fresh_runs=32, only=["factor"], audit=False, key=KEY)
    assert re.fullmatch(r"Tuned\(regret .* → .*; factor 24 → [\d.]+\)", repr(tuned)), repr(tuned)
    spec = jb.Spec(rounds=20, runs=4, learners=[jb.Uniform()], losses=[game[1]], delays=[game[2]])
    summary = jb.sweep(spec, tempfile.mkdtemp())
    assert re.fullmatch(r"Summary\(in .*, units done 1 of 1, computed now 1, seconds [\d.]+\)", repr(summary)), repr(summary)
    assert repr(spec) == "Spec(1 learners × 1 losses × 1 delays; 4 runs × 20 rounds, seed 0)"
    for thing in (gradient, tuned, tuned.before, summary):
        assert len(repr(thing)) < 200
        assert "\n" not in repr(thing)
    for thing in (gradient, tuned, summary):
        xml.fromstring(thing._repr_html_())


def test_numbers_have_the_decimals_they_are_worth():
    assert interval(1234.56, 1200.1, 1269.0) == "1,235 [1,200, 1,269]"
    assert interval(0.5, 0.5, 0.5) == "0.5 exactly"
    assert plus_minus(0.5, 0.0) == "0.5"
    assert plus_minus(-3.14159, 0.02) == "-3.14 ± 0.02"


def test_a_gradient_that_is_0_says_so():
    flat = jb.BestOfBothWorlds(0.0, 0.0, 0.0, 0.0, 0.0)
    assert repr(Gradient(0.0, 0.0, flat, flat, "jump")).endswith("; all derivatives are 0; jump)")
