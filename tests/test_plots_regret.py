"""Regret curves: axes, bands and legends as they are drawn, measured on the figure itself."""

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import plots

GAME = (jb.losses.Bernoulli([0.2, 0.6]), jb.delays.Fixed(5))


@pytest.fixture(scope="module")
def results():
    learners = {"Tsallis-INF": jb.TsallisINF(), "uniform": jb.Uniform()}
    return {name: jb.simulate(learner, *GAME, rounds=300, runs=16, seed=0) for name, learner in learners.items()}


@pytest.mark.parametrize(
    ("log", "x", "y"),
    [
        (False, "linear", "linear"),
        (True, "log", "linear"),
        ("x", "log", "linear"),
        ("y", "linear", "log"),
        ("both", "log", "log"),
    ],
)
def test_each_axis_may_be_logarithmic(results, log, x, y):
    (panel,) = plots.regret(results, log=log).axes
    assert (panel.get_xscale(), panel.get_yscale()) == (x, y)
    if y == "log":  # all curves fill the panel, none is crushed onto its top edge
        means = np.concatenate([result.estimate().mean for result in results.values()])
        low, high = panel.get_ylim()
        height = np.log(np.clip(means, low, None) / low) / np.log(high / low)
        assert height.min() < 0.1
        assert np.median(height) < 0.9
    else:
        assert panel.get_ylim()[0] == 0


def test_one_a_list_or_a_dict_alike(results):
    one = next(iter(results.values()))
    assert [line.get_label() for line in plots.regret(results).axes[0].get_lines()] == list(results)
    assert [line.get_label() for line in plots.regret(list(results.values())).axes[0].get_lines()] == ["result 1", "result 2"]
    np.testing.assert_array_equal(plots.regret(one).axes[0].get_lines()[0].get_ydata(), one.estimate().mean)
    assert plots.regret(one).axes[0].get_legend() is None


def test_bands_are_the_interval_or_quantiles_of_the_runs(results):
    one = results["Tsallis-INF"]
    edges = {
        "interval": (one.estimate().low, one.estimate().high),
        (0.1, 0.9): np.quantile(one.regret, [0.1, 0.9], axis=1),
    }
    for band, (low, high) in edges.items():
        (drawn,) = plots.regret(one, band=band).axes[0].collections
        corners = drawn.get_paths()[0].vertices[:, 1]
        np.testing.assert_allclose([corners.min(), corners.max()], [low.min(), high.max()], rtol=1e-6)
    assert not plots.regret(one, band=None).axes[0].collections


def test_own_panel_and_line_options(results):
    made, (left, right) = plots.figure(columns=2)
    assert plots.regret(results, ax=right, linewidth=4, color="red") is made
    assert not left.get_lines()
    assert all(line.get_linewidth() == 4 and line.get_color() == "red" for line in right.get_lines())
    assert results["uniform"].plot(log="y").axes[0].get_yscale() == "log"


@pytest.mark.parametrize(
    "curves",
    [
        [
            lambda x: x,
            lambda x: 1 - x,
            lambda x: 0 * x + 0.5,
            lambda x: x**9,
            lambda x: 1 - x**9,
            lambda x: np.sin(40 * x) / 2 + 0.5,
        ],
        [lambda x: x],
    ],
    ids=["everywhere", "room left"],
)
def test_legends_cover_no_curve(curves):
    made, (panel,) = plots.figure()
    x = np.linspace(0, 1, 400)
    for number, curve in enumerate(curves):
        panel.plot(x, curve(x), label=f"a learner with a long name, number {number}")
    plots.place_legend(panel)
    made.draw_without_rendering()
    box = panel.get_legend().get_window_extent()
    for line in panel.get_lines():
        across, up = panel.transData.transform(np.column_stack(line.get_data())).T
        assert not np.any((across > box.x0) & (across < box.x1) & (up > box.y0) & (up < box.y1))


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        ("regret", {"log": "z"}, r"plots.regret\(log='z'\): the logarithmic axis is 'x', 'y' or 'both'"),
        ("regret", {"band": (0.9, 0.1)}, r"plots.regret\(band=\(0.9, 0.1\)\): the band is 'interval'"),
        ("regret", {"band": "wide"}, r"plots.regret\(band='wide'\)"),
        ("regret", {"ax": 3}, r"plots.regret\(ax=3\): give a matplotlib panel"),
        ("regret", {"linewdith": 3}, r"plots.regret: .*linewdith.*other options are those of a matplotlib line"),
    ],
)
def test_errors_name_the_function_that_was_called(results, function, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        vars(plots)[function](results, **options)


@pytest.mark.parametrize("wrong", [3, {}, [], "results", {"a": 1}])
def test_what_is_no_result_is_told(wrong):
    with pytest.raises(TypeError, match=r"plots.regret\(results=.*give a Result, a list of them, or"):
        plots.regret(wrong)


def test_a_dollar_sign_in_a_label_is_no_error_and_mathematics_stays_possible(results):
    one = results["uniform"]
    made = plots.regret({"$\\frac$": one, "costs $5": one}, title="$\\frac$")
    plots.take_literally(made)
    made.draw_without_rendering()
    (panel,) = plots.regret({"$x_t$": one, "other": one}).axes
    assert panel.get_legend().get_texts()[0].get_parse_math()
