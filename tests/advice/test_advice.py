"""Advice against formulas written down here: scenarios, intervals, the regret of uniform allocation; the page; wrong input."""

import html.parser
import re
import time

import numpy as np
import pytest
import scipy.stats

import jaxbandit as jb
from jaxbandit.advice import candidates, result, scenarios
from jaxbandit.cli.app import call

COLUMNS = dict(arm="ad", action="shown", feedback="bought")
FEW = {name: (name, {}, [{}]) for name in ("thompson", "uniform")} | {"ucb1": ("ucb1", {}, [{}, {"alpha": 0.1}])}


def text(rows=400, rates=(0.1, 0.3, 0.5), arms=("a", "b", "c")):
    """A click every minute; conversions come after half an hour or less."""
    random = np.random.default_rng(0)
    lines = ["ad,shown,bought"]
    for row in range(rows):
        which = row % len(arms)
        bought = 60 * row + int(random.integers(1800)) if random.uniform() < rates[which] else ""
        lines.append(f"{arms[which]},{60 * row},{bought}")
    return "\n".join([*lines, ""])


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log.csv").write_text(text())
    return jb.load_log(tmp_path / "log.csv", **COLUMNS, window="40m")


@pytest.fixture
def few(monkeypatch):
    """Three learners, so that little is compiled."""
    monkeypatch.setattr(candidates, "TRIED", FEW)


def test_every_learner_is_tried_or_left_out_for_a_reason():
    tried = {name for name, *_ in candidates.TRIED.values()}
    assert tried | set(candidates.LEFT_OUT) == set(jb.learners.REGISTRY)
    assert not tried & set(candidates.LEFT_OUT)
    found = candidates.candidates({"max_delay": 9.0, "horizon": 200.0, "total_delay": 900.0})
    told = {label: variants[0][1] for label, variants in found.items()}
    assert (told["bobw"].max_delay, told["dew"].total_delay, told["successive-elimination"].horizon) == (9.0, 900.0, 200.0)
    assert told["tsallis-inf rv"].estimator == "rv"


def test_the_scenarios(log):
    """By loops over phases and runs: which arms change places, which one fades, the reward of the best arm in hindsight."""
    rounds, runs = 323, 8  # phases of different lengths
    made = {one.name: one for one in scenarios.scenarios(log, rounds, runs, (2,))}
    means = scenarios.posterior_draws(log, runs, (2,)).means()
    assert (means[:, :2] == means[:, :1]).all()
    assert (means[:, 2] != means[:, 0]).all()
    starts = np.asarray(made[scenarios.AS_LOGGED].losses.starts)
    phase = np.searchsorted(starts, np.arange(1, rounds + 1), side="right") - 1
    assert np.bincount(phase).min() >= rounds // scenarios.PHASES
    for name in (scenarios.AS_LOGGED, scenarios.CORRUPTION, scenarios.DRIFT):
        mine = np.asarray(made[name].losses.means)
        for run in range(0, runs, 3):
            best, worst = means[:, run].argmin(), means[:, run].argmax()
            total = np.zeros(3)
            for t in range(rounds):
                expected = means[:, run].copy()
                if name == scenarios.CORRUPTION and phase[t] < 4:
                    expected[[best, worst]] = expected[[worst, best]]
                if name == scenarios.DRIFT:
                    share = (phase[t] + 0.5) / 16
                    expected[best] = (1 - share) * means[best, run] + share * means[worst, run]
                np.testing.assert_allclose(mine[phase[t], :, run], expected)
                total += 1 - expected
            np.testing.assert_allclose(made[name].best[run], total.max())
    shorter = log.with_window(log.window // 2)
    halved = scenarios.posterior_draws(shorter, runs, (2,)).means()
    np.testing.assert_allclose(np.asarray(made[scenarios.HALVED].losses.means)[0], halved)
    assert shorter.converted < log.converted


def test_rewards_of_a_scenario(tmp_path):
    """Mean rewards follow the scenario also where rewards are not 0 or 1; the distribution of rewards stays that of the arm."""
    lines = ["ad,shown,bought,value"]
    random = np.random.default_rng(0)
    for row in range(600):
        value = random.choice([2.0, 3.0, 40.0], p=[0.6, 0.3, 0.1]) * (1 + row % 2)
        lines.append(f"{'ab'[row % 2]},{60 * row}," + (f"{60 * row + 30},{value}" if random.uniform() < 0.3 else ","))
    (tmp_path / "log.csv").write_text("\n".join(lines))
    log = jb.load_log(tmp_path / "log.csv", **COLUMNS, window="40m", reward="value", scale=80.0)
    assert not log.binary
    made = {one.name: one for one in scenarios.scenarios(log, 160, 8, (2,))}
    draws = scenarios.posterior_draws(log, 8, (2,))
    logged, corrupted = (np.asarray(made[name].losses.expected(1)) for name in (scenarios.AS_LOGGED, scenarios.CORRUPTION))
    np.testing.assert_allclose(logged, draws.means(), rtol=1e-5)
    np.testing.assert_allclose(corrupted, draws.means()[::-1], rtol=1e-5)
    np.testing.assert_allclose(made[scenarios.AS_LOGGED].best, 160 * (1 - draws.means()).max(0), rtol=1e-6)


def test_delays_of_a_scenario_are_those_of_the_log(log):
    made = scenarios.scenarios(log, 323, 64, (2,))[0].delays
    for level in (0.1, 0.5, 0.9):
        there = np.quantile(np.asarray(log.delays.no_conversion.delays), level, method="inverted_cdf")
        drawn = np.quantile(np.asarray(made.no_conversion.delays), level, axis=1, method="inverted_cdf")
        assert np.all(np.abs(drawn - there) <= 1)
        there = np.quantile(np.asarray(log.delays.conversion.delays), level, axis=-1, method="inverted_cdf")
        drawn = np.quantile(np.asarray(made.conversion.delays), level, axis=1, method="inverted_cdf")
        assert np.all(np.abs(drawn.mean(1) - there) <= 4)
    short = scenarios.scenarios(log, 5, 4, (2,))[0].delays  # no delay is longer than the horizon
    assert max(np.max(short.no_conversion.delays), np.max(short.conversion.delays)) <= 5


def test_intervals():
    # In how many of many samples the interval of the 95% quantile holds the true one: 95%, within five standard errors.
    samples = np.random.default_rng(1).normal(size=(2000, 500))
    truth = scipy.stats.norm.ppf(0.95)
    inside = [low <= truth <= high for _, low, high in (result.quantile_interval(row, 0.95) for row in samples)]
    assert abs(np.mean(inside) - 0.95) < 5 * np.sqrt(0.05 * 0.95 / 2000) + 0.005  # whole order statistics cover a little more


@pytest.mark.parametrize(("between", "within"), [(6.0, 10.0), (5.0, 0.5), (0.0, 4.0)])
def test_credible_intervals_contain_the_spread_between_draws_but_not_chance(between, within):
    random = np.random.default_rng(0)
    values = np.repeat(random.normal(50, between, 2000), 2) + random.normal(0, within, 4000)
    mean, low, high = result.credible(values)
    error = 1.96 * np.sqrt((between**2 + within**2 / 2) / 2000)
    assert abs(mean - 50) < 3 * error
    # The variance of chance is 8 in the last case; an error of the variance between draws of 0.4 leaves a half-width of 1.2.
    np.testing.assert_allclose([mean - low, high - mean], np.hypot(1.96 * between, error), rtol=0.15, atol=1.6)


def test_advice(log, few, tmp_path):
    """The regret of uniform allocation is known exactly, run by run; learning reduces it; the page has intervals."""
    answers = []
    options = dict(rounds=400, runs=64, seed=3, resume=tmp_path / "part.npz")

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jb.advise(log, **options, on_answer=interrupt)
    with np.load(tmp_path / "part.npz") as kept:  # the screening is kept, and used by the next call
        assert {name.split("|")[1] for name in kept.files if "|" in name} == {"uniform", "thompson", "ucb1"}
    advice = jb.advise(log, **options, on_answer=answers.append)
    means = scenarios.posterior_draws(log, 64, (3, 1)).means()
    exact = 400 * (means.mean(0) - means.min(0))
    np.testing.assert_allclose(advice.final["as logged"]["uniform"].lost, exact, rtol=1e-4)
    chosen = 400 * (log.counts / log.counts.sum() @ means - means.min(0))
    np.testing.assert_allclose(advice.as_chosen()[0], chosen.mean(), rtol=1e-9)
    ranking = advice.ranking()
    assert advice.recommended == ranking[0].label in ("thompson", "ucb1")
    assert ranking[-1].label == "uniform"
    assert ranking[-1].difference == pytest.approx(ranking[-1].lost[0] - ranking[0].lost[0])
    assert advice.chosen["ucb1"][0] == "alpha = 0.1"
    sentences = advice.summary()
    assert sentences[1] == log.dependence.sentence()
    assert re.search(r"it loses \d+(\.\d+)? \[\d+(\.\d+)?, \d+(\.\d+)?\] conversions", sentences[0])
    assert "% of the variance" in " ".join(sentences)
    assert repr(advice).startswith(f"Advice({advice.name(ranking[0].label)}")
    assert len(answers) == 5  # after the screening and each scenario
    assert answers[0].recommended is not None
    assert "have not been simulated" in answers[0].write(tmp_path / "first.html").read_text()
    page = advice.write(tmp_path / "advice.html", title="Ads <1> & more").read_text()
    assert "<h1>Ads &lt;1&gt; &amp; more</h1>" in page
    assert "off-policy evaluation" in page
    assert check_page(page) >= 6  # figures
    run_code(advice, tmp_path)
    # Everything is in the file: the same call again simulates nothing, and another seed is refused.
    assert jb.advise(log, **options, seconds=1e-9).summary() == sentences
    with pytest.raises(ValueError, match="this file is of another log, seed"):
        jb.advise(log, **{**options, "seed": 4})


def run_code(advice, folder):
    """The lines run as they are pasted, and leave nothing outstanding. Rejects feedback of one ticket twice."""
    made = {}
    exec(advice.code().replace('"campaign.db"', repr(str(folder / "campaign.db"))), made)
    with made["agent"] as agent:
        assert advice.code().count("\n") == 4
        assert agent.close_window(0, now=time.time() + 10) == 0


@pytest.mark.parametrize("window", ["5d", None])
def test_the_code_for_revenue_runs(tmp_path, window):
    rows = ["arm,action_time,feedback_time,value"]
    for day in range(40):
        value = 40 + 10 * (day % 5) if day % 4 == 0 else 0
        end = f"{86400 * day + 3600}" if value or window is None else ""
        rows.append(f"{'ab'[day % 2]},{86400 * day},{end},{value if end else ''}")
    (tmp_path / "log.csv").write_text("\n".join(rows))
    log = jb.load_log(tmp_path / "log.csv", arm="arm", reward="value", scale=80, window=window)
    advice = result.Advice(
        log,
        200,
        0,
        [],
        {"uniform": ("", jb.Uniform())},
        {},
        {},
        {"uniform": result.Runs(np.ones((1, 8)), np.ones(8))},
        {},
        np.zeros(0),
        {},
    )
    assert "reward=min(60 / 80, 1)" in advice.code()
    run_code(advice, tmp_path)


def test_learners_are_written_as_code():
    facts = {"max_delay": 10.0, "horizon": 1000.0, "total_delay": 1e4}
    for variants in candidates.candidates(facts).values():
        for _, learner in variants:
            assert repr(eval(f"jb.{learner!r}")) == repr(learner)


def check_page(page):
    """Well-formed, and nothing comes from elsewhere; returns the number of figures."""

    class Reader(html.parser.HTMLParser):
        open, figures = [], 0

        def handle_starttag(self, tag, attributes):
            assert tag != "script"
            assert not {"src", "srcset"} & {name for name, _ in attributes}
            self.figures += tag == "svg"
            if tag not in ("meta", "br", "link", "input"):
                self.open.append(tag)

        def handle_endtag(self, tag):
            if self.open and self.open[-1] == tag:
                self.open.pop()
            else:
                assert tag not in ("table", "section", "tr", "td", "div", "figure", "svg"), f"{tag} in {self.open}"

    reader = Reader()
    reader.feed(page)
    assert "<link" not in page
    return reader.figures


@pytest.mark.thorough
def test_nothing_is_recommended_where_nothing_is_told_apart(tmp_path, few):
    """Arms that are alike, and so few rows that any could be the best: no learner beats an even split, and that is said."""
    (tmp_path / "log.csv").write_text(text(rows=40, rates=(0.5, 0.5)[:2], arms=("<b>", "$x$")))
    log = jb.load_log(tmp_path / "log.csv", **COLUMNS, window="30m")
    advice = jb.advise(log, rounds=128, runs=8)
    assert advice.recommended is None
    assert "No learner is recommended" in advice.summary()[0]
    assert "its rate is mostly that of the other arms." in advice.summary()[-1]
    page = advice.write(tmp_path / "advice.html").read_text()
    assert "<b></td>" not in page
    assert "&lt;b&gt;" in page


def test_a_learner_of_the_users_own(log, tmp_path):
    """It is compared beside the labels, resumed only if it is the same learner, and written as code without ``jb.``."""

    @jb.extend.pytree_dataclass
    class Always(jb.KLUCB):
        pass

    kept, answers = tmp_path / "kept.npz", []
    given = dict(rounds=128, runs=8, resume=kept)
    advice = jb.advise(log, learners=["uniform", Always(alpha=0.2)], on_answer=answers.append, **given)
    (label,) = set(advice.screened) - {"uniform"}
    assert set(advice.lost[scenarios.AS_LOGGED]) == {"uniform", label}
    assert set(answers[0].lost) == {scenarios.AS_LOGGED}  # an answer before the other scenarios
    code = advice.code()
    compile(code, "code", "exec")
    assert "jb.Always" not in code
    again = jb.advise(log, learners=["uniform", Always(alpha=0.2)], seconds=1e-9, **given)  # nothing is simulated anew
    np.testing.assert_array_equal(again.lost[scenarios.DRIFT][label], advice.lost[scenarios.DRIFT][label])
    other = jb.advise(log, learners=["uniform", Always(alpha=3.0)], seconds=1e-9, **given)
    assert set(other.screened) == {"uniform"}
    for wrong in ("thompson", [3], [], {"mine": Always()}, [Always(), Always()]):
        with pytest.raises(ValueError, match="learners="):
            jb.advise(log, learners=wrong, **given)


WRONG = {  # words after the file, content of the file (None: there is none), what the sentence says
    "no file": ([], None, "there is no such file"),
    "empty": ([], "", "the file is empty"),
    "no rows": ([], "ad,shown,bought\n", "the log has no rows"),
    "one arm": (
        [],
        text(arms=("a",), rates=(0.3,)),
        "one arm, 'a'; there is nothing to choose (--arm names the column with the choice)",
    ),
    "no arm column": (["--arm", "campaign"], text(), "there is no column 'campaign'; name yours with --arm"),
    "no action column": (["--action", "when"], text(), "there is no column 'when'; name yours with --action"),
    "no window": ([None], text(), "give --window"),
    "a wrong window": (["--window", "soon"], text(), "--window 'soon' is not a length of time"),
    "a window longer than the log": (["--window", "52w"], text(), "no window closes within the log"),
    "a window that is too short": (
        ["--window", "0s"],
        text().replace(",0,0\n", ",0,1\n"),
        "no row whose window closed within the log has a reward, so that",
    ),
    "all alike": ([None], "ad,shown,bought\na,1,2\nb,2,3\n", "every row has feedback, and all of it is the same"),
    "loss and reward": (["--loss", "v", "--reward", "v"], text(), "--loss 'v' and --reward 'v' are given"),
    "an unknown unit": (["--unit", "hours"], text(), "--unit 'hours' is not known"),
    "too few rounds": (["--rounds", "5"], text(), "advice needs 128 rounds or more"),
    "a short log": ([], text(rows=100), "advice needs 128 rounds or more"),
    "one run": (["--runs", "1"], text(), "8 runs or more"),
    "no runs": (["--runs", "0"], text(), "--runs 0"),
    "half a round": (["--rounds", "1.5"], text(), "'1.5' is not a whole number"),
    "a negative seed": (["--seed", "-1"], text(), "--seed -1"),
    "an empty title": (["--title", " "], text(), "--title ' '"),
    "a folder as output": (["--out", "."], text(), "--out .: this is a folder"),
    "an output below a file": (["--out", "log.csv/x"], text(), "is a file"),
    "semicolons": ([], text().replace(",", ";"), "not separated by commas"),
    "an unknown option": (["--colour", "red"], text(), "--colour"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_one_sentence(tmp_path, monkeypatch, capsys, name):
    words, content, sentence = WRONG[name]
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "log.csv").write_text(content)
    window = [] if "--window" in words or None in words else ["--window", "40m"]
    given = ["advise", "log.csv", *(w for w in words if w is not None), *window]
    for option, column in (("--arm", "ad"), ("--action", "shown"), ("--feedback", "bought")):
        given += [] if option in words else [option, column]
    assert call(given) == 2
    told = capsys.readouterr()
    assert sentence in told.err
    assert "Traceback" not in told.err
    assert told.out == ""
    assert len(told.err.strip().splitlines()) <= 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ([] if content is None else ["log.csv"])


@pytest.mark.slow
def test_the_example_log():
    """All learners on the log that comes with the package: its best campaign by far is found, and an even split is last or nearly so."""
    log = jb.load_log(jb.logs.example(), arm="campaign", action="clicked_at", feedback="converted_at", window="7d")
    advice = jb.advise(log)
    assert advice.recommended is not None
    assert set(advice.final) == {"as logged", "adversarial corruption", "best arm drifts", "window halved"}
    assert advice.ranking()[5].label == "uniform"  # after all finalists
