"""The verdicts, the command ``python -m experiments.claims``, and three wrong learners that a claim catches."""

import dataclasses
import json
import shutil
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from experiments.claims.harness import experiment as experiments
from experiments.claims.harness import runner as claims
from experiments.claims.harness.verdict import (
    Check,
    Measured,
    Mutant,
    exponent,
    growth,
    increments,
    judge,
    mean_of,
    power_over_offset,
    regret_of,
    slope,
    width,
)
from jaxbandit import theory
from jaxbandit._core.arms import pick
from jaxbandit._core.fields import pytree_dataclass
from jaxbandit._core.randomness import fold
from jaxbandit._engine.queues.listed import Pending
from jaxbandit._provenance import package_code
from jaxbandit.results.statistics import student_quantile


def check(value, error, relation, bound, **options):
    return Check("x", Measured(value, error), relation, bound, **options)


@pytest.mark.parametrize(
    ("one", "verdict", "refuted"),
    [
        (check(1.0, 0.1, "at most", 2.0), "holds, slack 1.67×", False),
        (check(1.0, 0.1, "at most", 1.1), "not shown", False),
        (check(1.0, 0.1, "at most", 0.9), "not shown", False),
        (check(1.0, 0.1, "at most", 0.7), "fails", True),
        (check(1.0, 0.0, "at most", 1.0), "holds", False),
        (check(1.0 + 1e-9, 0.0, "at most", 1.0), "fails", True),
        (check(3.0, 0.1, "at least", 1.0), "holds, slack 2.8×", False),
        (check(3.0, 0.1, "at least", 4.0), "fails", True),
        (check(-3.0, 0.1, "at most", 0.0), "holds", False),
        (check(0.1, 0.1, "equals", 0.0, resolution=1.0), "holds", False),
        (check(0.1, 1.0, "equals", 0.0, resolution=1.0), "not shown", False),
        (check(5.0, 1.0, "equals", 0.0, resolution=1.0), "fails", True),
        (check(1.0, 0.1, "at most", 0.5, kind="shape"), "not shown", False),
        (check(1.0, 0.1, "at most", 0.5, kind="open"), "hypothesis rejected", False),
        (check(float("nan"), 0.1, "at most", 9.0), "fails", True),
    ],
)
def test_verdict_of_one_check(one, verdict, refuted):
    assert str(judge([one])) == verdict
    assert judge([one]).refuted == refuted


def test_verdict_is_the_worst_and_the_room_the_least():
    good, tight, bad = check(1.0, 0, "at most", 9.0), check(1.0, 0, "at most", 2.0), check(1.0, 0, "at most", 0.5)
    assert judge([good, tight]).slack == 2.0
    assert judge([good, bad]).outcome == "fails"
    assert judge([good, check(1.0, 1.0, "at most", 1.5)]).outcome == "not shown"
    with pytest.raises(ValueError, match="at least one check"):
        judge([])


def test_a_statement_that_a_wrong_program_passes_is_not_shown():
    mutated = [Mutant("wrong", check(value, 0.1, "at most", 2.0, kind="shape")) for value in (1.0, 2.0, 3.0)]
    good = check(1.0, 0.0, "at most", 2.0)
    assert [judge([good], [mutant]).outcome for mutant in mutated] == ["not shown", "not shown", "holds"]
    assert judge([check(1.0, 0.0, "at most", 0.5)], mutated).outcome == "fails"


def test_a_wrong_bound_or_learner_is_put_to_the_check_it_names(tmp_path):
    experiment = experiments.Experiment({}, 7, tmp_path)
    experiment.check("ratio", Measured(0.5, 0.01), "at most", 1.0)
    experiment.mutant("half the bound", "ratio", bound=0.4)
    experiment.mutant("a learner that pays twice", "ratio", Measured(1.2, 0.01))
    experiment.mutant("nothing wrong", "ratio", Measured(0.6, 0.01))
    assert [row["rejected"] for row in experiment.found()["mutants"]] == [True, True, False]
    for wrong in ({"label": "ratoi", "measured": 1.0}, {"label": "ratio"}, {"label": "ratio", "measured": 1.0, "bound": 1.0}):
        with pytest.raises(ValueError, match="give measured or bound, and the label of a check: 'ratio'"):
            experiment.mutant("x", **wrong)


def test_a_game_that_is_all_burn_in_is_refused(tmp_path):
    """24·10·2^(1/3)·log 2/0.1 = 2096 rounds."""
    experiment = experiments.Experiment({}, 7, tmp_path)
    game = (jb.BestOfBothWorlds(max_delay=10), jb.losses.Bernoulli([0.4, 0.5]), jb.delays.Fixed(10))
    with pytest.raises(ValueError, match="rounds=2000: BestOfBothWorlds plays nearly uniformly for about 2096 rounds here"):
        experiment.simulate(*game, rounds=2000, runs=2)
    with pytest.warns(UserWarning, match="nearly uniformly"):
        assert experiment.simulate(*game, rounds=20, runs=2, burning_in=True).rounds[-1] == 20


def test_intervals_widen_with_the_number_of_checks():
    one = check(1.0, 0.1, "at most", 2.0)
    assert width([one]) == pytest.approx(1.96, abs=1e-3)
    assert width([one] * 10) == pytest.approx(2.807, abs=1e-3)  # 0.25 % on either side
    assert width([check(1.0, 0.0, "at most", 2.0)] * 10) == pytest.approx(1.96, abs=1e-3)  # exact ones need no interval


def test_false_alarms_are_as_rare_as_the_level_says():
    """A true bound that is met with equality, 20 checks at a time, 2000 times: refuted in about 2.5 % at most."""
    rng = np.random.default_rng(0)
    refuted = [judge([check(value, 1.0, "at most", 0.0) for value in rng.normal(size=20)]).refuted for _ in range(2000)]
    assert np.mean(refuted) < 0.025 + 5 * np.sqrt(0.025 / 2000)


@pytest.fixture(scope="module")
def result():
    return jb.simulate(
        jb.BestOfBothWorlds(max_delay=2), jb.losses.Bernoulli([0.3, 0.6]), jb.delays.Fixed(2), rounds=2000, runs=512,
        key=jax.random.key(0), record=[20, 200, 2000], measure=[jb.ControlVariates()],
    )  # fmt: skip


def test_growth_and_slope_are_those_of_the_mean_curve(result):
    means = result.estimate().mean
    assert regret_of(result).value == pytest.approx(means[-1])
    assert slope(result).value == pytest.approx((means[-1] - means[1]) / np.log(10), abs=slope(result).error)
    assert growth(result).value == pytest.approx(np.log10(means[-1] / means[1]), abs=5 * growth(result).error + 1e-3)
    plain = (result.regret[-1] - result.regret[1]).std(ddof=1) / np.sqrt(512) / np.log(10)
    assert 0 < slope(result).error < plain
    assert mean_of(result, np.ones(512)).value == pytest.approx(1)


def test_exponent_and_its_error():
    x, rng = np.array([1.0, 2.0, 4.0, 8.0]), np.random.default_rng(0)
    y = 3 * x**0.7
    assert exponent(x, [Measured(v, 0.02 * v) for v in y]).value == pytest.approx(0.7)
    found = [exponent(x, [Measured(v * (1 + 0.02 * rng.normal()), 0.02 * v) for v in y]).value for _ in range(2000)]
    assert exponent(x, [Measured(v, 0.02 * v) for v in y]).error == pytest.approx(np.std(found), rel=0.1)
    assert np.isnan(exponent(x, [Measured(-1.0, 0.1)] * 4).value)


@pytest.mark.thorough
def test_power_over_an_offset_and_its_error():
    """Against the powers that made the data; an exponent without an offset is far off and a wrong power is seen."""
    x, rng = [4, 8, 16, 32, 64], np.random.default_rng(0)
    for power in (0.7, 1.0, 1.35):
        y = [240 + 57 * one**power for one in x]
        found = [power_over_offset(x, [Measured(one + 5 * rng.normal(), 5.0) for one in y]) for _ in range(100)]
        assert np.mean([one.value for one in found]) == pytest.approx(power, abs=0.01)
        assert np.mean([one.error for one in found]) == pytest.approx(np.std([one.value for one in found]), rel=0.5)
    with pytest.raises(ValueError, match="3 points"):
        power_over_offset([1, 2, 4], [Measured(1.0, 0.1)] * 3)


@pytest.mark.parametrize(("curve", "ratio"), [(np.log, 1.0), (np.sqrt, np.sqrt(10)), (lambda t: t**0.2, 10**0.2)])
def test_increments_of_decades(result, curve, ratio):
    rounds = np.array([10, 100, 1000, 10000, 100000])
    noise = np.random.default_rng(0).normal(1, 0.01, 512)
    regret = curve(rounds)[:, None] * noise
    known = dataclasses.replace(result, rounds=rounds, regret=regret, measured={})
    assert increments(known).value == pytest.approx(ratio, rel=1e-3)
    assert increments(known).error < 0.01


SPEC = """title = "A claim about |x|"
claim = "1 is at most the bound."
where = "here"
shows = "Nothing else."
fails_if = "One were two."
order = {order}
seed = 7
[full]
bound = {bound}
[quick]
quick = true
"""
SCRIPT = """
def run(experiment):
    (panel,) = experiment.panels(1)
    panel.plot([1, 2], [1, 2])
    experiment.check("one", 1.0, "at most", experiment.settings.bound)
    experiment.mutant("a wrong one", "one", 9.0)
    experiment.number("two", 2.0)
    experiment.say("Said plainly.")
"""


def write(folder, bound, order=1):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "claim.toml").write_text(SPEC.format(bound=bound, order=order), encoding="utf-8")
    (folder / "claim.py").write_text(SCRIPT, encoding="utf-8")


def test_the_command_writes_pages_and_says_what_failed(tmp_path, capsys):
    statements, out = tmp_path / "statements", tmp_path / "out"
    write(statements / "good", 4.0, order=2)
    write(statements / "bad", 0.5, order=1)
    assert claims.run(out, claims.choose(folder=statements)) == ["bad"]
    printed = capsys.readouterr().out
    assert printed.index("fails") < printed.index("holds, slack 4×")
    assert "MEASURED OTHERWISE: bad" in printed
    written = json.loads((out / "claims.json").read_text())
    assert [(one["name"], one["verdict"]) for one in written["statements"]] == [("bad", "fails"), ("good", "holds, slack 4×")]
    for name in ("index.md", "index.html"):
        page = (out / "good" / name).read_text()
        for part in (
            "A claim",
            "holds, slack 4×",
            "Said plainly.",
            "jax.random.key(7)",
            "python -m experiments.claims --only good",
            "Nothing else.",
            "One were two.",
            "a wrong one",
            "rejected",
        ):
            assert part in page, (name, part)
        assert "good/index" in (out / name).read_text()
    assert "A claim about \\|x\\|](good/index.md)" in (out / "index.md").read_text()
    assert "data:image/png;base64" in (out / "good" / "index.html").read_text()
    # One statement again: the index still lists the other, until its settings change.
    for bound, listed in ((0.5, ["bad", "good"]), (0.6, ["good"])):
        write(statements / "bad", bound, order=1)
        assert claims.run(out, claims.choose(["good"], statements)) == []
        assert [one["name"] for one in json.loads((out / "claims.json").read_text())["statements"]] == listed
        assert ("bad/index" in (out / "index.md").read_text()) == ("bad" in listed)
    with pytest.raises(ValueError, match="--only worse: no such statement; there are bad, good"):
        claims.choose(["worse"], statements)
    with pytest.raises(ValueError, match="--statements"):
        claims.choose(folder=tmp_path / "nowhere")


def test_what_is_done_is_not_done_again_unless_it_changed(tmp_path):
    statements, out = tmp_path / "statements", tmp_path / "out"
    write(statements / "one", 4.0)
    claims.run(out, claims.choose(folder=statements))
    file = out / "one" / "claim.json"
    marked = json.loads(file.read_text()) | {"verdict": "from the file"}
    file.write_text(json.dumps(marked))
    assert claims.run_statement(claims.find_statements(statements)[0], out)["verdict"] == "from the file"
    assert claims.run_statement(claims.find_statements(statements)[0], out, quick=True)["verdict"] == "holds, slack 4×"
    write(statements / "one", 5.0)
    assert claims.run_statement(claims.find_statements(statements)[0], out)["verdict"] == "holds, slack 5×"


PLAYED = """
import jaxbandit as jb

def run(experiment):
    game = (jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.6]), jb.delays.Fixed(2))
    regret = experiment.simulate(*game, rounds=50, runs=8).regret[-1].mean()
    experiment.check("regret", regret, "at most", experiment.settings.bound)
"""


@pytest.mark.thorough
def test_statements_in_several_processes_find_the_same(tmp_path, capsys):
    for order, name in enumerate(("one", "two", "three")):
        write(tmp_path / "statements" / name, 1000.0, order)
        (tmp_path / "statements" / name / "claim.py").write_text(PLAYED, encoding="utf-8")
    statements = claims.choose(folder=tmp_path / "statements")
    for processes in (1, 2):
        assert claims.run(tmp_path / str(processes), statements, processes=processes) == []
    alone, together = (json.loads((tmp_path / name / "claims.json").read_text())["statements"] for name in "12")
    assert [one["name"] for one in together] == ["one", "two", "three"]
    assert [one["checks"] for one in together] == [one["checks"] for one in alone]
    assert capsys.readouterr().out.count("holds, slack") == 6
    (tmp_path / "statements" / "two" / "claim.py").write_text("def run(experiment):\n    raise RuntimeError('broken')\n")
    with pytest.raises(RuntimeError, match="broken"):
        claims.run(tmp_path / "2", claims.choose(folder=tmp_path / "statements"), processes=2)


@pytest.mark.thorough
def test_long_simulations_are_kept_in_pieces_and_are_the_same(tmp_path, monkeypatch):
    experiment = experiments.Experiment({}, 7, tmp_path / "pieces")

    def play():
        return experiment.simulate(
            jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.6, 0.6]), jb.delays.Fixed(2), rounds=100, runs=600, record=5,
            measure=[theory.measurements.Arrivals()],
        )  # fmt: skip

    whole = play()
    assert not (tmp_path / "pieces").exists()
    monkeypatch.setattr(experiments, "PIECE", 100 * 256)
    pieces = play()
    (tmp_path / "pieces" / "notes.txt").write_text("mine")
    assert len(list((tmp_path / "pieces").glob("*.npz"))) == 3
    monkeypatch.setattr(experiments, "simulate", None)  # everything comes from the files now
    for other in (pieces, play()):
        np.testing.assert_array_equal(other.regret, whole.regret)
        np.testing.assert_array_equal(other.measured["control_variates"], whole.measured["control_variates"])
        assert [leaf.shape for leaf in other.state] == [leaf.shape for leaf in whole.state]
    experiment.forget_pieces()
    assert [path.name for path in (tmp_path / "pieces").iterdir()] == ["notes.txt"]


@pytest.mark.thorough
def test_what_a_claim_depends_on(tmp_path):
    """The modules that decide numbers make a claim stale when they change; those that draw, write and speak do not."""
    package = tmp_path / "jaxbandit"
    shutil.copytree(package_code.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))

    def after_a_change_of(name):
        package_code.package_digest.cache_clear()
        file = package / name
        before = file.read_text()
        file.write_text(f"{before}\n# changed\n")
        changed = package_code.package_digest(package)
        file.write_text(before)
        return changed

    same = package_code.package_digest(package)
    assert same == package_code.package_digest()
    for name in (
        "plots/__init__.py",
        "plots/curves.py",
        "_core/display.py",
        "_io/html.py",
        "results/summary.py",
        "sweeps/report.py",
        "cli/run.py",
    ):
        assert after_a_change_of(name) == same, name
    for thing in (
        *(jb.BestOfBothWorlds, jb.KLUCB, jb.losses.Bernoulli, jb.delays.Geometric, jb.hybrid_argmin, jb.rollout, jb.simulate),
        *(jb.Result, jb.ControlVariates, Pending, fold, student_quantile),
        *(
            theory.measurements.Drift,
            theory.games.play_with_delays,
            theory.bounds.delayed_lower,
            theory.optimal_skipping.outstanding,
        ),
    ):
        name = Path(sys.modules[thing.__module__].__file__).relative_to(package_code.PACKAGE)  # type: ignore[arg-type]
        assert after_a_change_of(name) != same, name


@pytest.mark.parametrize(
    ("text", "said"), [("title = ", "not TOML"), ("titel = 3", "claim, fails_if, full, .*titel.* too many or missing")]
)
def test_a_wrong_claim_file(tmp_path, text, said):
    write(tmp_path / "one", 4.0)
    (tmp_path / "one" / "claim.toml").write_text(text)
    with pytest.raises(ValueError, match=f"claim.toml: .*{said}"):
        claims.find_statements(tmp_path)


def test_every_statement_of_the_repository_can_be_read():
    statements = claims.find_statements()
    assert len(statements) >= 18
    assert len({statement.order for statement in statements}) == len(statements)
    for statement in statements:
        assert set(statement.quick) <= set(statement.full)


@pytree_dataclass
class StrictlyLater(jb.BestOfBothWorlds):
    """Wrong: σ_t counts s + d_s > t. Under bursts of d_max + 1 this misses d_max plays at the end of each burst."""

    def inverse_rates(self, state, round, num_arms):
        missed = (round.t // (self.max_delay + 1).astype(jnp.int32)).astype(jnp.float32) * self.max_delay
        return super().inverse_rates(state, round._replace(total_outstanding=round.total_outstanding - missed), num_arms)


@pytree_dataclass
class WeightAtArrival(jb.BestOfBothWorlds):
    """Wrong: divides by the probability of the round of arrival, not of the play."""

    def observe(self, state, observation):
        x = state.warm.y**-2.0
        now = pick(x / x.sum(0), jnp.maximum(observation.arm, 0))
        return super().observe(state, observation._replace(probability=now))


@pytree_dataclass
class WithoutArms(jb.BestOfBothWorlds):
    """Wrong: γ₀ without K^{2/3}."""

    def inverse_rates(self, state, round, num_arms):
        small = dataclasses.replace(self, factor=self.factor / num_arms ** (1 / 3))
        return jb.learners.BestOfBothWorlds.inverse_rates(small, state, round, num_arms)


SMALL = {
    "algorithm_1": {"rounds": 300, "arms": [8], "delay": 8},
    "observation_arriving": {"rounds": 300, "runs": 2},
    "drifted_regret": {"arms": 4, "delay": 16, "rounds": 500, "runs": 2, "short_rounds": 1500, "short_runs": 1024, "cycles": 2},
}


def verdict_on(name, learner, folder, monkeypatch):
    statement = next(one for one in claims.find_statements() if one.name == name)
    monkeypatch.setattr(jb, "BestOfBothWorlds", learner)
    return claims.run_statement(dataclasses.replace(statement, full=SMALL[name]), folder)


@pytest.mark.parametrize(
    ("mutant", "name", "red"),
    [
        pytest.param(StrictlyLater, "algorithm_1", "relative error of 1/γ", marks=pytest.mark.thorough),
        pytest.param(StrictlyLater, "observation_arriving", "shortfall of the Σσ", marks=pytest.mark.slow),
        pytest.param(WeightAtArrival, "drifted_regret", "bias of the estimated drifted regret", marks=pytest.mark.thorough),
        (WithoutArms, "algorithm_1", "relative error of 1/γ"),
    ],
)
def test_a_wrong_learner_turns_a_claim_red(mutant, name, red, tmp_path, monkeypatch):
    found = verdict_on(name, mutant, tmp_path, monkeypatch)
    assert found["verdict"] == "fails"
    assert found["refuted"]
    assert any(red in row["label"] and row["outcome"] == "fails" for row in found["checks"])


@pytest.mark.parametrize("name", ["algorithm_1", *(pytest.param(name, marks=pytest.mark.slow) for name in list(SMALL)[1:])])
def test_the_right_learner_turns_none(name, tmp_path, monkeypatch):
    assert verdict_on(name, jb.learners.BestOfBothWorlds, tmp_path, monkeypatch)["outcome"] == "holds"
