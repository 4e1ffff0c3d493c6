"""Specs: what they may say, how they expand, and that a wrong one is told in full before anything is written."""

import dataclasses
import re
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.cli import app
from jaxbandit.sweeps.oracle import Oracle
from jaxbandit.sweeps.plan import Plan
from jaxbandit.sweeps.spec import CATALOGUE, SpecError

GOOD = """
rounds = 100
runs = 8
[[learners]]
name = "bobw"
max_delay = 5
[[losses]]
name = "bernoulli"
means = [0.3, 0.5]
[[delays]]
name = "fixed"
delay = 5
"""


def good(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def more(text: str) -> str:
    return GOOD + text


LOSS, DELAY, LEARNER = 'name = "bernoulli"\nmeans = [0.3, 0.5]', 'name = "fixed"\ndelay = 5', 'name = "bobw"\nmax_delay = 5'

# a wrong spec, and what must be said about it
SPECS = [
    ("rounds = ", "not TOML"),
    ("\x00", "not TOML"),
    (GOOD + GOOD, "in the spec twice"),
    (good("rounds = 100", ""), "rounds: this field is needed"),
    (good("runs = 8", ""), "runs: this field is needed"),
    (good("rounds = 100", "rounds = 0"), "rounds: .*whole number from 1"),
    (good("rounds = 100", "rounds = 2.5"), "rounds: .*whole number"),
    (good("rounds = 100", 'rounds = "many"'), "rounds: .*whole number"),
    (good("rounds = 100", "rounds = true"), "rounds: .*whole number"),
    (good("rounds = 100", "rounds = 99999999999"), "rounds: "),
    (good("runs = 8", "runs = -1"), "runs: .*1 or more"),
    (good("runs = 8", "runs = 4294967296"), "runs: .*below 2"),
    (good("runs = 8", "runs = 8\nseed = -1"), "seed: -1"),
    (good("runs = 8", "runs = 8\nseed = 1.5"), "seed: 1.5"),
    (good("runs = 8", "runs = 8\nrecord = 0"), "record: 0"),
    (good("runs = 8", "runs = 8\nrecord = [5, 3]"), "record: .*ascending"),
    (good("runs = 8", "runs = 8\nrecord = [5, 300]"), "record: .*between 1 and rounds=100"),
    (good("runs = 8", 'runs = 8\ncontrol_variates = "yes"'), "control_variates: 'yes' is not true or false"),
    (good("runs = 8", "rusn = 8"), "rusn: .*did you mean 'runs'"),
    (good("runs = 8", "runs = 8\nlearner = 3"), "learner: .*did you mean 'learners'"),
    (GOOD.replace("[[learners]]\n" + LEARNER, ""), "learners: .*at least one"),
    (GOOD.replace("[[losses]]\n" + LOSS, ""), "losses: .*at least one"),
    (GOOD.replace("[[delays]]\n" + DELAY, ""), "delays: .*at least one"),
    (good("[[delays]]", "[delays]"), r"delays: give one or more \[\[delays\]\] tables"),
    (good('name = "bobw"', 'name = "bbow"'), r"learners\[0\].name: 'bbow' is not known; did you mean 'bobw'"),
    (good('name = "bobw"', "name = 3"), r"learners\[0\].name: a name is needed"),
    (good('name = "bobw"', ""), r"learners\[0\].name: a name is needed"),
    (good('name = "bobw"', 'name = "os:system"'), r"learners\[0\].name: .*names code to import"),
    (good('"bernoulli"', '"bernouli"'), r"losses\[0\].name: .*did you mean 'bernoulli'"),
    (good('"fixed"', '"fixt"'), r"delays\[0\].name: .*did you mean 'fixed'"),
    (good("max_delay = 5", ""), r"learners\[0\].max_delay: 'bobw' needs this field"),
    (good("max_delay = 5", "max_dealy = 5"), r"learners\[0\].max_dealy: .*did you mean 'max_delay'"),
    (good("max_delay = 5", 'max_delay = "five"'), r"learners\[0\].max_delay: 'five' is not a number"),
    (good("max_delay = 5", "max_delay = true"), r"learners\[0\].max_delay: true is not a number"),
    (good("max_delay = 5", "max_delay = -5"), r"learners\[0\]: .*max_delay=-5.*0 or more"),
    (good("max_delay = 5", "max_delay = nan"), r"learners\[0\]: .*max_delay=nan"),
    (good("max_delay = 5", "max_delay = 2024-01-01"), r"learners\[0\].max_delay: .*not a number"),
    (good("max_delay = 5", 'max_delay = 5\nfactor = "oracle"'), r"learners\[0\]: factor = 'oracle'.*not known"),
    (good("max_delay = 5", "max_delay = 5\ngrid = 3"), r"learners\[0\].grid: 3 is not a table"),
    (good("max_delay = 5", "max_delay = 5\ngrid = { factor = 3 }"), r"learners\[0\].grid.factor: 3 is not a list"),
    (good("max_delay = 5", "max_delay = 5\ngrid = { factor = [] }"), r"learners\[0\].grid.factor: \[\] is not a list"),
    (good("max_delay = 5", "max_delay = 5\ngrid = { max_delay = [1] }"), r"grid.max_delay: .*given twice"),
    (good("max_delay = 5", "max_delay = 5\ngrid = { facter = [1] }"), r"grid.facter: .*did you mean 'factor'"),
    (good("max_delay = 5", 'max_delay = 5\ngrid = { factor = [1, "two"] }'), r"grid.factor\[1\]: 'two' is not a number"),
    (good("max_delay = 5", "max_delay = 5\nlabel = 7"), r"learners\[0\].label: 7 is not a text"),
    (
        good(LEARNER, 'name = "tsallis-inf"\nestimator = "iv"'),
        r"estimator: 'iv' is not a choice; there are delay-adapted, iw, rv",
    ),
    (good(LEARNER, 'name = "zimmert-seldin"\nskipping = 1'), r"skipping: 1 is not true or false"),
    (good(LEARNER, 'name = "bold"\ncapacity = 2.5\nbase = { name = "uniform" }'), r"capacity: 2.5 is not a whole number"),
    (good(LEARNER, 'name = "bold"\ncapacity = 9\nbase = { name = "unifrom" }'), r"base.name: .*did you mean 'uniform'"),
    (good(LEARNER, 'name = "bold"\ncapacity = 9\nbase = { scale = 1.0 }'), r"base.name: a name is needed"),
    (more('[[learners]]\nname = "bobw"\nmax_delay = 5\n'), r"learners\[1\]: .*twice"),
    (good("means = [0.3, 0.5]", "means = [0.3, 1.5]"), r"losses\[0\]: .*1.5 does not"),
    (good("means = [0.3, 0.5]", 'means = [0.3, "x"]'), r"losses\[0\].means: .*not an array of numbers"),
    (good("means = [0.3, 0.5]", "means = [[0.3], [0.5, 0.6]]"), r"losses\[0\].means: .*equally long"),
    (good("means = [0.3, 0.5]", 'means = { file = "../secret.npy" }'), r"leads out of the spec's folder"),
    (good("means = [0.3, 0.5]", 'means = { file = "/etc/passwd" }'), r"write \{ file = 'NAME.npy' \}"),
    (good("means = [0.3, 0.5]", 'means = { file = "nothing.npy" }'), r"'nothing.npy' cannot be read"),
    (good("means = [0.3, 0.5]", 'means = "oracle"'), r"losses\[0\]: .*only required inputs of a learner can be 'oracle'"),
    (good(LOSS, 'name = "table"\nlosses = [[0.0, 1.0]]'), r"learners\[0\] x losses\[0\] x delays\[0\]: .*only 1 rounds"),
    (good(DELAY, 'name = "fixed"\ndelay = -5'), r"delays\[0\]: .*0 or more"),
    (good(DELAY, 'name = "fixed"\ndelay = 9\nbound = 4'), r"delays\[0\]: .*above bound=4"),
    (good(DELAY, 'name = "fixed"\ndelay = 9\nshared = true'), r"delays\[0\].shared: 'fixed' has no such field"),
    (good(DELAY, 'name = "arm-dependent"\nlaws = [{ name = "fixed", delay = 1 }]'), r"delays\[0\]: .*1 laws for 2 arms"),
    (good(DELAY, 'name = "arm-dependent"\nlaws = [{ name = "fixed" }]'), r"laws\[0\].delay: 'fixed' needs this field"),
    (
        good(DELAY, 'name = "packet-loss"\nprobability = 0.5').replace("max_delay = 5", 'max_delay = "oracle"'),
        r"learners\[0\]: max_delay = 'oracle': .*no longest delay",
    ),
]

# a wrong command line, and what must be said about it; SPEC is a good spec
LINES = [
    (["sweep"], "requires"),
    (["sweep", "SPEC"], "out"),
    (["sweep", "nowhere.toml", "--out", "o"], "no such file"),
    (["sweep", "SPEC", "--out", "o", "--rounds", "ten"], "ten"),
    (["sweep", "SPEC", "--out", "o", "--rounds", "0"], "rounds: "),
    (["sweep", "SPEC", "--out", "o", "--runs", "-3"], "runs: "),
    (["sweep", "SPEC", "--out", "o", "--memory", "lots"], "--memory lots: .*4GB"),
    (["sweep", "SPEC", "--out", "o", "--memroy", "4GB"], "Did you mean"),
    (["sweep", "SPEC", "--out", "o", "--dask", "there"], "--dask there"),
    (["sweep", "SPEC", "--out", "o", "--process", "1"], "go with --coordinator"),
    (["sweep", "SPEC", "--out", "o", "--coordinator", "here:1", "--processes", "2", "--process", "2"], "--process 2"),
    (["swep", "SPEC", "--out", "o"], "did you mean"),
    (["status"], "requires"),
    (["verify"], "requires"),
    (["export", "SPEC"], "requires"),
    (["export", "SPEC", "o.csv"], "ends in .nc or .zarr"),
    (["run"], "--learner: "),
    (["run", "--learner", "bobw(", "--losses", "bernoulli(means=[0.5])", "--delays", "fixed(delay=1)"], "--learner: 'bobw\\('"),
    (
        ["run", "--learner", "uniform", "--losses", "bernoulli(means=[0.5)", "--delays", "fixed(delay=1)"],
        "--losses: .*FIELD=VALUE",
    ),
    (
        ["run", "--learner", "unifrm", "--losses", "bernoulli(means=[0.5])", "--delays", "fixed(delay=1)"],
        "did you mean 'uniform'",
    ),
    (["run", "SPEC", "--learner", "uniform"], "--learner: .*not both"),
]


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """The command line in this process, in an empty folder: exit status, and what was said."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str]:
        status = app.call(words)
        said = capsys.readouterr()
        return status, " ".join((said.out + said.err).split())

    return call


@pytest.mark.parametrize(("text", "message"), SPECS, ids=range(len(SPECS)))
def test_wrong_spec(command, text, message):
    Path("spec.toml").write_text(text)
    status, said = command("sweep", "spec.toml", "--out", "out")
    assert status == 2
    assert "Traceback" not in said
    assert re.search(message, said), said
    assert [path.name for path in Path().iterdir()] == ["spec.toml"], "nothing is written"


@pytest.mark.parametrize(("words", "message"), LINES, ids=range(len(LINES)))
def test_wrong_command_line(command, words, message):
    Path("SPEC").write_text(GOOD)
    status, said = command(*words)
    assert status == 2
    assert "Traceback" not in said
    assert re.search(message, said), said
    assert [path.name for path in Path().iterdir()] == ["SPEC"], "nothing is written"


def test_all_problems_at_once():
    with pytest.raises(SpecError) as error:
        Plan.make({"rounds": 0, "runs": 8, "learners": [{"name": "bbow"}], "losses": [{"name": "bernoulli"}], "dleays": []})
    paths = [problem.partition(":")[0] for problem in error.value.problems]
    assert paths == ["dleays", "rounds", "learners[0].name", "losses[0].means", "delays"]


def test_every_field_of_every_class_can_be_written():
    nested = {"base": {"learners": {"name": "tsallis-inf"}, "losses": {"name": "bernoulli", "means": [0.2, 0.4]}}}
    nested["base"]["delays"] = {"name": "fixed", "delay": 1}
    values = {
        "means": [0.2, 0.4],
        "losses": [[0.5, 0.5]] * 4,
        "starts": [1],
        "delays": [1, 2, 0, 1],
        "gaps": [0.0, 0.1],
        "bound": 64,
    }
    values |= {
        "laws": [{"name": "fixed", "delay": 1}] * 2,
        "no_conversion": {"name": "fixed", "delay": 1},
        "conversion": {"name": "fixed", "delay": 1},
        "estimator": "delay-adapted",
        "matrix": [[0.25, 0.75], [0.5, 0.5]],
        "curve": [0.5, 1.0],
        "discount": 0.5,
        "long_waits": 4,
        "gap": 0.1,
        "growth": 1.5,
        "gamma": 0.5,
        "probability": 0.5,
        "threshold": 0.5,
        "transitions": [[0.5, 0.5], [0.25, 0.75]],
        "mixing": 0.5,
        "shares": [0.5, 0.5],
        "rates": [[0.5, 0.25]],
        "values": [[0.5, 0.5], [0.75, 0.25]],
        "clicks": [0.5, 0.25],
        "purchases": [0.25, 0.5],
        "prior_mean": [0.5, 0.25],
        "prior_covariance": [[0.25, 0.125], [0.125, 0.25]],
        "noise_covariance": [[0.5, 0.25], [0.25, 0.5]],
        "prior_losses": [1.0, 2.0],
        "prior_rewards": [2.0, 1.0],
    }
    for axis, classes in CATALOGUE.items():
        for name, cls in classes.items():
            table = {"name": name}
            for field in dataclasses.fields(cls):
                if name == "funnel" and field.name == "delays":
                    continue  # a spec cannot name delay models within losses
                value = values.get(field.name, 2)
                if name == "switching" and field.name == "means":
                    value = [[0.2, 0.4]]
                if name == "empirical-by-arm" and field.name == "delays":
                    value = [[1, 2], [0, 1]]
                if name == "drifting" and field.name in ("start", "end"):
                    value = [0.2, 0.4]
                if name == "intermediate-states" and field.name == "losses":
                    value = nested["base"]["losses"]
                if field.name in nested:
                    value = nested[field.name][axis]
                elif field.metadata.get("static") and isinstance(field.default, bool):
                    value = field.default
                table[field.name] = value
            others = {"learners": [{"name": "uniform"}], "losses": [{"name": "bernoulli", "means": [0.2, 0.4]}]}
            if name == "progressive-thompson":
                others["losses"] = [{"name": "funnel", "rates": [[0.5, 0.5]] * 2}]
            if name.endswith("state-exp3"):
                others["losses"] = [
                    {"name": "intermediate-states", "transitions": [[0.5, 0.5]] * 2, "losses": others["losses"][0]}
                ]
            if name == "composite-feedback":
                others["learners"] = [{"name": "colo", "base": {"name": "uniform"}, "delay": 1}]
            fixed = {"name": "fixed", "delay": 1}
            known = {"name": "known-at-action", "base": fixed}
            others |= {"delays": [known if name == "doubling-skipper" else fixed], axis: [table]}
            made = getattr(
                Plan.make({"rounds": 4, "runs": 1, **others}).cells[0], axis.removesuffix("s") if axis == "learners" else axis
            )
            assert type(made) is cls
            for field in dataclasses.fields(cls):
                if field.name not in (*nested, "laws", "no_conversion", "conversion") and not isinstance(
                    table.get(field.name, {}), dict
                ):
                    np.testing.assert_array_equal(np.asarray(getattr(made, field.name)), np.asarray(table[field.name]))


def test_grid_is_the_product_over_its_keys():
    plan = Plan.make(
        {
            "rounds": 10,
            "runs": 1,
            "learners": [{"name": "bobw", "max_delay": 3, "grid": {"factor": [24.0, 1.0], "linear": [10.0, 2.0, 1.0]}}],
            "losses": [{"name": "bernoulli", "means": [0.3, 0.5]}, {"name": "bernoulli", "means": [0.3, 0.5, 0.7]}],
            "delays": [{"name": "fixed", "grid": {"delay": [0, 3]}}],
        }
    )
    assert len(plan.cells) == 6 * 2 * 2
    assert [(s.object.factor, s.object.linear) for s in plan.axes["learners"]] == [(f, n) for f in (24, 1) for n in (10, 2, 1)]
    assert plan.axes["learners"][1].label == "bobw factor=24 linear=2"
    assert len({cell.id for cell in plan.cells}) == 24
    assert len({cell.shape for cell in plan.cells}) == 2 * 2, "K = 2 and 3, rings of 0 and 4: settings share a program"


def test_python_and_toml_specs_are_the_same_thing(tmp_path):
    (tmp_path / "spec.toml").write_text(GOOD.replace("max_delay = 5", 'max_delay = "oracle"\ngrid = { factor = [24.0, 1.0] }'))
    rest = {"rounds": 100, "runs": 8, "losses": [jb.losses.Bernoulli([0.3, 0.5])], "delays": [jb.delays.Fixed(5)]}
    entries = jb.Spec(learners=[jb.Entry("bobw", {"max_delay": "oracle"}, grid={"factor": [24.0, 1.0]})], **rest)
    objects = jb.Spec(learners=[jb.BestOfBothWorlds("oracle", factor=factor) for factor in (24.0, 1.0)], **rest)
    plans = [Plan.make(source) for source in (tmp_path / "spec.toml", entries, objects)]
    assert [[cell.id for cell in plan.cells] for plan in plans] == [[cell.id for cell in plans[0].cells]] * 3
    assert plans[0].cells[0].learner.max_delay == 5


def test_files_and_imports(tmp_path, monkeypatch):
    np.save(tmp_path / "means.npy", [0.1, 0.2])
    (tmp_path / "trace.csv").write_text("\n".join("3012" * 30).replace("\n\n", "\n"))
    (tmp_path / "mine.py").write_text(
        "from jaxbandit import Uniform\nfrom jaxbandit._core.fields import pytree_dataclass\n"
        "@pytree_dataclass\nclass Mine(Uniform):\n    factor: float = 1.0\n"
    )
    text = GOOD.replace("[0.3, 0.5]", '{ file = "means.npy" }').replace(DELAY, 'name = "trace"\ndelays = { file = "trace.csv" }')
    (tmp_path / "spec.toml").write_text(text.replace(LEARNER, 'name = "mine:Mine"\nfactor = 2.0'))
    monkeypatch.syspath_prepend(tmp_path)
    cell = Plan.make(tmp_path / "spec.toml", imports=True).cells[0]
    assert type(cell.learner).__name__ == "Mine"
    assert cell.losses.means.tolist() == [0.1, 0.2]
    assert cell.delays.delays[:4].tolist() == [3, 0, 1, 2]


LAWS = [
    jb.delays.Fixed(7),
    jb.delays.Bursts(5),
    jb.delays.Outlier(first=1000, delay=2, count=3),
    jb.delays.Trace(np.arange(200) % 9),
    jb.delays.UniformRandom(2, 30),
    jb.delays.Geometric(6.0, bound=40),
    jb.delays.Poisson(6.0, bound=20),
    jb.delays.Pareto(1.2, bound=100),
    jb.delays.PacketLoss(0.9, delay=4),
]


@pytest.mark.thorough
@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_oracle_total_delay_is_what_runs_meet(law):
    """Against the exact sum over runs that the simulator counts."""
    losses, rounds = jb.losses.Bernoulli([0.3, 0.5, 0.5]), 200
    told = Oracle(losses, law, rounds).total_delay()
    met = jb.simulate(jb.Uniform(), losses, law, rounds=rounds, runs=256, key=jax.random.key(1), record=1).total_delay
    error = met.std(ddof=1) / 16
    assert abs(told - met.mean()) <= 5 * error + 1e-4 * told
    assert (Oracle(losses, law, rounds).sequence() is None) == (error > 0)


def test_oracle_gaps_horizon_and_delay():
    losses = jb.losses.Switching([[0.2, 0.6], [0.8, 0.4]], starts=[1, 31])
    truth = Oracle(losses, jb.delays.UniformRandom(1, 6), 40)
    np.testing.assert_allclose(truth.gaps(), [0, 0.2], atol=1e-6)  # (30·0.6 + 10·0.4 - 30·0.2 - 10·0.8)/40
    told = truth.tell(jb.QPMD(jb.DelayedExponentialWeights("oracle", "oracle", "oracle"), capacity="oracle"))  # type: ignore[arg-type]
    assert (told.capacity, told.base.horizon, told.base.max_delay) == (14, 40, 6)  # two arms: K·(d + 1)
    assert truth.tell(jb.BOLD(jb.TsallisINF(), capacity="oracle")).capacity == 7  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("paper", "name"), [("mzs22", "bobw"), ("MZS22", "bobw"), ("zs20", "zimmert-seldin"), ("mzs24", "robust-bobw")]
)
def test_learners_by_the_name_of_their_paper(paper, name):
    from jaxbandit.learners import PAPERS
    from jaxbandit.sweeps.spec import find

    assert PAPERS[paper.lower()] == name
    assert find("learners", paper) is jb.REGISTRY[name]
    assert find("losses", paper) is None


def test_every_paper_name_is_known_and_hides_no_other():
    from jaxbandit.learners import PAPERS

    assert set(PAPERS.values()) <= set(jb.REGISTRY)
    assert not set(PAPERS) & set(jb.REGISTRY)
