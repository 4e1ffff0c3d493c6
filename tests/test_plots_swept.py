"""Figures over the numbers of a sweep: what is drawn against a dataset made by hand, whose means and winners are known."""

import numpy as np
import pytest
import xarray

from jaxbandit import plots

DELAYS, GAPS, RUNS = [1.0, 10.0, 100.0], [0.1, 0.3], 8
LEARNERS = ["paper factor=24", "paper factor=1", "other"]


@pytest.fixture(scope="module")
def sweep():
    """Regret 10·delay·gap·(1 for the first, 2 for the second) and 30 for the third, run by run ± 1; the last delay model has no delay."""
    scale = np.array([1.0, 2.0])[:, None, None] * 10 * np.array(GAPS)[:, None] * np.array([*DELAYS, 7.0])
    means = np.concatenate([scale, np.full((1, 2, 4), 30.0)])
    regret = np.stack([means / 2, means], axis=-1)[..., None] + np.tile([1.0, -1.0], RUNS // 2)
    return xarray.Dataset(
        {"regret": (["learner", "losses", "delays", "round", "run"], regret)},
        {
            "learner": LEARNERS, "losses": ["easy", "hard"], "delays": ["a", "b", "c", "law"], "round": [50, 100], "run": range(RUNS),
            "learner_factor": ("learner", [24.0, 1.0, np.nan]), "learner_name": ("learner", ["bobw", "bobw", "uniform"]),
            "losses_gap": ("losses", GAPS), "delays_delay": ("delays", [*DELAYS, np.nan]), "delays_name": ("delays", ["fixed"] * 3 + ["x"]),
        },
    )  # fmt: skip


def lines(panel):
    return {bars.get_label(): bars.lines[0] for bars in panel.containers}


def test_against_draws_a_line_for_each_learner_and_a_panel_for_each_of_the_rest(sweep):
    made = plots.against(sweep, x="delay", log="both")
    assert [panel.get_title() for panel in made.axes] == ["easy; fixed", "hard; fixed"]
    for gap, panel in zip(GAPS, made.axes, strict=True):
        assert (panel.get_xscale(), panel.get_yscale(), panel.get_xlabel()) == ("log", "log", "delay in rounds")
        drawn = lines(panel)
        assert list(drawn) == LEARNERS
        np.testing.assert_array_equal(drawn["other"].get_xdata(), DELAYS)
        np.testing.assert_allclose(drawn["paper factor=1"].get_ydata(), 20 * gap * np.array(DELAYS))
        # Student's interval of eight values, half of them 1 above and half 1 below: 2.3646 √(8/7) / √8.
        ends = panel.containers[0].lines[2][0].get_segments()
        np.testing.assert_allclose([end[1][1] - end[0][1] for end in ends], 2 * 2.3646 * np.sqrt(8 / 7 / 8), rtol=1e-3)
    early = plots.against(sweep.sel(losses="hard"), x="delays_delay", round=50, band=(0.0, 1.0))
    np.testing.assert_allclose(lines(early.axes[0])["other"].get_ydata(), 15.0)
    segment = early.axes[0].containers[2].lines[2][0].get_segments()[0]
    np.testing.assert_allclose(segment[:, 1], [14, 16])


def test_against_a_number_of_the_learners(sweep):
    """One line over the factor, named without it; the learner without a factor is level."""
    (panel,) = plots.against(sweep.isel(losses=0, delays=1), x="factor", linewidth=4).axes
    (line,) = lines(panel).values()
    assert [text.get_text() for text in panel.get_legend().get_texts()] == ["other", "paper"]
    np.testing.assert_allclose(line.get_xydata(), [[1.0, 20.0], [24.0, 10.0]])
    level = next(one for one in panel.get_lines() if one.get_label() == "other")
    assert set(level.get_ydata()) == {30.0}
    assert level.get_linewidth() == line.get_linewidth() == 4


def test_own_panel_and_runs_that_are_missing(sweep):
    made, (left, right) = plots.figure(columns=2)
    partial = sweep.sel(losses="easy").copy(deep=True)
    partial.regret[0, 0] = np.nan
    partial.regret[1, 0, :, 3:] = np.nan
    assert plots.against(partial, x="delay", ax=right) is made
    assert not left.containers
    drawn = lines(right)
    np.testing.assert_array_equal(drawn[LEARNERS[0]].get_xdata(), DELAYS[1:])
    np.testing.assert_allclose(drawn[LEARNERS[1]].get_ydata()[0], 2 + 1 / 3)


def test_the_map_shows_who_wins_and_by_how_much(sweep):
    made = plots.heatmap(sweep, x="delay", y="gap")
    (panel,) = made.axes
    colours = {(box.get_x() + 0.5, box.get_y() + 0.5): box.get_facecolor()[:3] for box in panel.patches}
    ratios = {text.get_position(): text.get_text() for text in panel.texts}
    assert len(colours) == 6
    for i, delay in enumerate(DELAYS):
        for j, gap in enumerate(GAPS):
            means = sorted([10 * delay * gap, 20 * delay * gap, 30.0])
            winner = 0 if 10 * delay * gap < 30 else 2
            assert colours[i, j] == pytest.approx([int(plots.COLOURS[winner][at : at + 2], 16) / 255 for at in (1, 3, 5)]) or (
                means[0] == means[1]
            )
            if means[0] < means[1]:
                assert ratios[i, j] == f"{means[1] / means[0]:.3g}×"
    assert [label.get_text() for label in panel.get_xticklabels()] == ["1", "10", "100"]


def test_an_unclear_win_is_pale(sweep):
    close = sweep.sel(learner=LEARNERS[1:]).copy(deep=True)
    noise = np.tile([5.0, -5.0, 4.0, -4.5], 2)
    close.regret[0] = close.regret[1] - 0.2 + noise  # better by 0.2 on average, which the noise hides
    boxes = plots.heatmap(close, x="delay", y="gap").axes[0].patches
    assert all(box.get_alpha() < 0.5 for box in boxes)
    close.regret[0] = close.regret[1] - 0.2
    assert all(box.get_alpha() > 0.5 for box in plots.heatmap(close, x="delay", y="gap").axes[0].patches)


def test_the_map_pairs_runs_by_id_where_a_block_is_missing(sweep):
    """Both learners have the same luck, run by run; the first lacks two runs in the middle. Fails if later runs move up."""
    partial = sweep.sel(learner=LEARNERS[:2]).copy(deep=True)
    luck = np.array([0.0, 9.0, 2.0, 7.0, 1.0, 8.0, 3.0, 5.0])
    partial.regret[:] = 20 + luck
    partial.regret[0] -= 1
    partial.regret[0, ..., 2:4] = np.nan
    boxes = plots.heatmap(partial, x="delay", y="gap").axes[0].patches
    assert len(boxes) == 6
    assert all(box.get_alpha() > 0.5 for box in boxes)  # 1 less in every run: a clear difference


def test_the_map_of_regret(sweep):
    made = plots.heatmap(sweep, x="delay", y="gap", show="regret", title="mine")
    assert [panel.get_title() for panel in made.axes] == [f"{label}; fixed" for label in LEARNERS]
    np.testing.assert_allclose(made.axes[1].images[0].get_array(), 20 * np.outer(GAPS, DELAYS))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: plots.against(s, x="dela"), r"plots.against\(x='dela'\).*did you mean 'delay'"),
        (lambda s: plots.against(s, x="horizon"), r"there are learner_factor, losses_gap, delays_delay"),
        (
            lambda s: plots.against(s, x="delay", round=7),
            r"plots.against\(round=7\): this round is not recorded; there are \[50, 100\]",
        ),
        (lambda s: plots.against(s, x="delay", log="z"), r"plots.against\(log='z'\)"),
        (lambda s: plots.against(s, x="delay", band="wide"), r"plots.against\(band='wide'\)"),
        (lambda s: plots.against(s, x="delay", ax=plots.figure()[1][0]), r"plots.against\(ax=…\): this would be 2 panels"),
        (lambda s: plots.against(s, x="delay", linewdith=3), r"plots.against: .*linewdith"),
        (lambda s: plots.against({"a": 1}, x="delay"), r"plots.against\(sweep=.*give what jb.open_sweep returned"),
        (lambda s: plots.heatmap(s, x="delay", y="delay"), r"plots.heatmap\(x='delay', y='delay'\): give two different"),
        (lambda s: plots.heatmap(s, x="delay", y="gap", show="best"), r"plots.heatmap\(show='best'\)"),
        (lambda s: plots.heatmap(s.isel(learner=[0]), x="delay", y="gap"), r"show='regret'"),
        (lambda s: plots.heatmap(s, x="delay", y="gap", ax=3), r"plots.heatmap\(ax=3\)"),
    ],
)
def test_wrong_calls(sweep, call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(sweep)
