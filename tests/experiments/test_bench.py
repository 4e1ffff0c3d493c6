"""What the benchmark makes of its timings; the timings themselves are not tested."""

import json

import jax
import numpy as np
import pytest

import jaxbandit as jb
from experiments.bench import bench, bits
from experiments.bench import report as bench_report
from experiments.bench.peers import plain_jax
from jaxbandit.cli import app
from jaxbandit.cli.errors import WRONG_COMMAND


def rows(speeds):
    return {name: {"rounds_per_second": speed, "compile_seconds": 1.0, "peak_megabytes": 100.0} for name, speed in speeds.items()}


def made_up(cliff=1.0):
    """Timings of a machine on which cost grows with K^1.1 and not with the delay, and which has a cliff at 32 arms."""
    arms = {f"K={k}": 1e8 * k**-1.1 / (cliff if k >= 32 else 1) for k in (2, 4, 8, 16, 32, 64, 128)}
    return {
        "arms": rows(arms),
        "rounds": rows({"T=1e3": 1e7, "T=1e4": 1e7, "T=1e5": 1e7}),
        "runs": rows({"256 runs": 1e7, "1024 runs": 1e7}),
        "delay": rows({"d=0": 9e9, "d=10": 1e7, "d=100": 1e7}),
        "learner": rows({"bobw": 1e7, "exp3": 2e7}),
    }


def test_exponents():
    assert bench_report.exponents(made_up()) == pytest.approx({"arms": 1.1, "rounds": 1, "runs": 1, "delay": 0}, abs=1e-9)


def test_a_cliff_is_found_where_it_is():
    factor, where = bench_report.largest_step(made_up()["arms"])
    assert factor == pytest.approx(1)
    factor, where = bench_report.largest_step(made_up(cliff=3.0)["arms"])
    assert where == "K=16 to K=32"
    assert 2 < factor < 3, "the trend takes a part of it"


def test_report_and_figure():
    speeds = {"K=10, d=10": [2e7, 3e7, 1e7], "C++ K=10": [1e7, 1e7, 1e7]}
    text = "\n".join(bench_report.report(speeds, bench.RATIOS, made_up(), {"exp3": 5000.0}))
    assert "| K=10, d=10 | 20 | 10 | 30 |" in text
    assert "| K=10, d=10 / C++ K=10 | 2.00 | 1.00 | 3.00 | 1.0 |" in text
    assert "| exp3 | 5,000 | 20,000,000 |" in text
    assert "- arms: 1.10; no two neighbours further from that than a factor of 1.00" in text
    drawn = [axis for axis in bench_report.figure(made_up()).axes if axis.get_title()]
    assert [axis.get_title() for axis in drawn] == list(made_up())


EVERY = [*bench.grids(list(jb.REGISTRY)).items(), *bench.device_grids(list(jb.REGISTRY), False).items()]


@pytest.mark.parametrize("settings", [settings for _, settings in EVERY], ids=[title for title, _ in EVERY])
def test_every_setting_can_be_made(settings):
    for setting in settings.values():
        learner, losses, delays = bench.make(setting)
        assert isinstance(learner, jb.learners.Learner)
        assert losses.num_arms == setting.arms
        assert np.max(delays.longest()) >= 0


@pytest.mark.thorough
def test_a_device_that_is_not_there(capsys, tmp_path):
    assert app.call_one(bench.bench, bench.NAME, ["--device", "gpu", "--out", str(tmp_path)]) == WRONG_COMMAND
    assert "--device gpu: JAX finds no GPU here" in capsys.readouterr().err


@pytest.mark.thorough
def test_the_tables_of_a_device(monkeypatch, tmp_path):
    """With a CPU that is said to be a GPU: from the command to the files."""
    monkeypatch.setitem(bench.PLATFORMS, "gpu", "cpu")
    settings = {f"{runs} runs": bench.Workload(arms=2, runs=runs, rounds=10) for runs in (100, 1000)}
    monkeypatch.setattr(bench, "device_grids", lambda learners, quick: {"runs": settings})
    assert app.call_one(bench.bench, bench.NAME, ["--device", "gpu", "--quick", "--out", str(tmp_path)]) == 0
    written = json.loads((tmp_path / "bench.json").read_text())
    rows = written["tables"]["runs"]
    assert written["device"] == "gpu"
    assert written["devices"]
    assert written["environment"]["jax"] == jax.__version__
    assert rows["1000 runs"]["rounds_per_second"] > 0
    assert {share for one in written["bits"].values() for share in one["identical"].values()} == {1.0}
    assert (tmp_path / "bench.md").read_text().count("| 100 runs |") == 1
    assert (tmp_path / "bench.png").stat().st_size > 0


def test_a_share_below_one_is_called_wrong():
    """Rejects a report in which runs that differ look like any other number."""
    found = {"fixed": {"identical": {"called again": 0.999, "resumed halfway": 1.0, bits.INFORM[1]: 0.98}, "warnings": []}}
    assert [line for line in bits.lines(found) if "wrong" in line] == [
        "| called again | fixed | 99.9000% **wrong: must be 100%** |"
    ]


def test_plain_jax_plays_the_same_algorithm():
    """Its mean regret is that of the engine, within five standard errors. Rejects another rate, a delay off by one, or no projection."""
    arms, rounds, delay, runs = 4, 400, 5, 512
    keys = jax.random.split(jax.random.key(1), runs)
    peer = np.asarray(jax.vmap(lambda key: plain_jax.regret(key, arms, rounds, delay))(keys))
    game = jb.BestOfBothWorlds(delay), jb.losses.Bernoulli([0.3, *[0.5] * (arms - 1)]), jb.delays.Fixed(delay)
    mine = jb.simulate(*game, rounds=rounds, runs=runs, seed=0, record=1).regret[-1]
    error = np.hypot(peer.std(ddof=1), mine.std(ddof=1)) / np.sqrt(runs)
    assert abs(peer.mean() - mine.mean()) < 5 * error < 0.05 * mine.mean()
