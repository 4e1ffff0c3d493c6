"""What the figures show: the numbers behind the curves and bars, told apart without colour."""

import itertools

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure

import jaxbandit as jb

KEY = jax.random.key(0)
GAME = {"losses": jb.losses.Bernoulli([0.2, 0.6, 0.6]), "delays": jb.delays.Fixed(3), "rounds": 200, "runs": 32, "key": KEY}


@pytest.fixture(scope="module")
def result():
    return jb.simulate(jb.TsallisINF(), **GAME, probabilities=True)


def test_regret_shows_means_and_intervals(result):
    figure = result.plot(log=True, title="a title")
    (panel,) = figure.axes
    estimate = result.estimate()
    np.testing.assert_array_equal(panel.get_lines()[0].get_xydata(), np.stack([estimate.rounds, estimate.mean], 1))
    band = panel.collections[0].get_paths()[0].vertices
    assert np.isclose(band[:, 1].max(), estimate.high.max())
    assert panel.get_xscale() == "log"
    assert panel.get_title() == "a title"


def test_curves_differ_without_colour(result):
    figure = jb.plots.regret(dict.fromkeys("abcdefgh", result))
    lines = figure.axes[0].get_lines()
    looks = {(line.get_color(), line.get_linestyle()) for line in lines}
    assert len(looks) == 8
    assert all(one.get_linestyle() != other.get_linestyle() for one, other in itertools.pairwise(lines))


def test_probabilities_sum_to_one_over_the_arms(result):
    (panel,) = jb.plots.probabilities(result).axes
    lines = panel.get_lines()
    assert [line.get_label() for line in lines] == ["arm 1", "arm 2", "arm 3"]
    np.testing.assert_allclose(sum(line.get_ydata() for line in lines), 1, atol=1e-5)
    np.testing.assert_allclose(lines[0].get_ydata(), result.probabilities[:, 0].mean(-1))
    assert lines[0].get_ydata()[-1] > lines[1].get_ydata()[-1]  # the best arm wins


@pytest.mark.thorough
def test_outstanding_is_what_run_0_meets():
    delays = {"geometric": jb.delays.Geometric(5.0, bound=64), "uniform": jb.delays.UniformRandom(0, 9, shared=True)}
    (panel,) = jb.plots.outstanding(delays, rounds=200, key=KEY).axes
    for line, law in zip(panel.get_lines(), delays.values(), strict=True):
        met = jb.simulate(jb.Uniform(), GAME["losses"], law, rounds=200, runs=1, key=KEY)
        assert line.get_ydata().max() == met.outstanding_max[0]
        assert line.get_ydata().sum() == met.total_delay[0]


def test_delay_histogram_counts_shares():
    law = jb.delays.Trace([0, 0, 0, 1, 2, 3, 8, jb.delays.NEVER])
    (panel,) = jb.plots.delay_histogram(law).axes
    assert [bar.get_height() for bar in panel.patches] == [3 / 8, 1 / 8, 2 / 8, 0, 1 / 8, 1 / 8]
    assert [text.get_text() for text in panel.get_xticklabels()] == ["0", "1", "2–3", "4–7", "8–15", "never"]


def test_poisson_histogram_follows_its_law():
    (panel,) = jb.plots.delay_histogram(jb.delays.Poisson(3.0, bound=63), rounds=20_000).axes
    none = np.exp(-3.0)
    expected = [none, 3 * none, (9 / 2 + 27 / 6) * none]
    heights = [bar.get_height() for bar in panel.patches[:3]]
    np.testing.assert_allclose(heights, expected, atol=5 * np.sqrt(0.25 / 20_000))


def test_bounds_lie_where_theory_puts_them(result):
    delays = np.full(200, 3)
    every_round = jb.theory.bounds.adversarial(jb.theory.bounds.zs20_rates(delays, 3), delays, 3)
    order = jb.theory.bounds.fixed_delay_adversarial(3, 3, result.rounds)
    (panel,) = jb.plots.bounds({"Tsallis-INF": result}, {"ZS20": every_round, "corollary": order}).axes
    lines = {line.get_label(): line.get_ydata() for line in panel.get_lines()}
    np.testing.assert_array_equal(lines["ZS20 (proved)"], every_round.total[result.rounds - 1])
    np.testing.assert_array_equal(lines["corollary (order, all constants 1)"], order.total)
    assert panel.get_yscale() == "log"
    low, high = panel.get_ylim()
    assert 0 < low < result.estimate().mean[0]
    assert high > every_round.total[-1]  # nothing is cut off


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jb.plots.outstanding({"a": jb.delays.Fixed(3)}), r"rounds=None: Fixed has no finite length"),
        (lambda: jb.plots.delay_histogram(jb.delays.Fixed(3), rounds=0), r"rounds=0"),
        (
            lambda: jb.plots.delay_histogram(jb.delays.ArmDependent([jb.delays.Fixed(1)]), rounds=9),
            r"only laws that look at neither arm nor loss",
        ),
    ],
)
def test_wrong_input_is_told(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_was_not_recorded_cannot_be_drawn():
    bare = jb.simulate(jb.TsallisINF(), **GAME)
    with pytest.raises(ValueError, match="simulate with probabilities=True"):
        jb.plots.probabilities(bare)
    with pytest.raises(ValueError, match=r"7.*fit neither"):
        jb.plots.bounds({"a": bare}, {"b": jb.theory.bounds.tsallis_inf_adversarial(3, np.arange(1, 8))})


def test_figures_save(result, tmp_path):
    assert isinstance(result.plot(), Figure)
    result.plot().savefig(tmp_path / "regret.png")
    assert (tmp_path / "regret.png").stat().st_size > 5000


def test_every_algorithm_has_a_style_of_its_own():
    styles = jb.plots.ALGORITHMS
    assert styles.keys() == {*jb.REGISTRY, "bobw-1-1"}
    for part in ("name", "linestyle", "marker"):
        looks = [(style.colour, getattr(style, part)) for style in styles.values()]
        assert len({*map(str, looks)}) == len(looks), part
    assert len({style.name for style in styles.values()}) == len(styles)


def test_an_algorithm_has_its_colour_in_every_figure(result):
    """Whatever its place among the curves; a label that is not an algorithm takes a colour that no algorithm of the figure has."""
    for labels in (["ZS20", "my own", "Thompson sampling"], ["thompson", "other", "zimmert-seldin"]):
        lines = jb.plots.regret(dict.fromkeys(labels, result)).axes[0].get_lines()
        colours = {line.get_label(): line.get_color() for line in lines}
        assert {colours[labels[0]], colours[labels[2]]} == {"#009E73", "#D55E00"}
        assert colours[labels[1]] not in ("#009E73", "#D55E00")
    assert colours["thompson"] == "#D55E00"


def test_direct_labels_do_not_overlap():
    made, (panel,) = jb.plots.figure()
    for index in range(6):
        panel.plot([1, 10], [1, 5 + 0.01 * index], label=f"curve {index}")
    panel.plot([1, 10], [1, 1])  # without a label
    panel.set(xscale="log", yscale="log")
    panel.legend()
    jb.plots.label_curves(panel)
    assert panel.get_legend() is None
    made.draw_without_rendering()
    boxes = [text.get_window_extent() for text in panel.texts]
    assert [text.get_text() for text in panel.texts] == [f"curve {index}" for index in range(6)]
    assert all(upper.y0 >= lower.y1 - 1 for lower, upper in itertools.pairwise(boxes))  # in the order of the curves
    assert all(made.bbox.x0 <= box.x0 and box.x1 <= made.bbox.x1 for box in boxes)  # the layout leaves room for them
