"""A sweep that the first version began opens, verifies and is gone on with.

``tests/data/sweep_of_0.1.0`` was written by that version (commit 18ed9d7, jax 0.10.2) with ``sweep(SPEC, folder)``.
"""

import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._provenance.environment import differences, environment
from jaxbandit._provenance.identity import fingerprint
from jaxbandit.sweeps import MismatchError, Store
from jaxbandit.sweeps.spec import find
from tests.sweeps.examples import digests

WRITTEN = Path(__file__).parents[1] / "data" / "sweep_of_0.1.0"
LEARNER, LOSSES, DELAYS = jb.Uniform(), jb.losses.Bernoulli([0.2, 0.5, 0.6]), jb.delays.Fixed(2)
SPEC = jb.Spec(rounds=20, runs=200, record=[7, 20], learners=[LEARNER], losses=[LOSSES], delays=[DELAYS])


@pytest.fixture
def old(tmp_path) -> Path:
    return Path(shutil.copytree(WRITTEN, tmp_path / "old"))


def played(rounds: int, runs: int, record: list[int]):
    return jb.simulate(LEARNER, LOSSES, DELAYS, rounds=rounds, runs=runs, record=record, key=jax.random.key(0))


def go_on(out: Path, **changes):
    """The sweep, with consent where this is not the environment of the fixture."""
    elsewhere = bool(differences(Store.open(out).manifest["environments"][0], environment()))
    if elsewhere:
        with pytest.raises(MismatchError, match=r"begun in another environment \(.* then, .* now.*--mix-environments"):
            jb.sweep(SPEC, out, **changes)
    return jb.sweep(SPEC, out, **changes, mix_environments=elsewhere)


def test_opens_and_verifies(old):
    before = digests(old)
    assert not Store.open(old).damaged()
    data = jb.open_sweep(old)
    fresh = played(20, 200, [7, 20])
    np.testing.assert_array_equal(data.regret.values[0, 0, 0], fresh.regret)
    np.testing.assert_array_equal(data.total_delay.values[0, 0, 0], fresh.total_delay)
    assert digests(old) == before


def test_is_finished_already(old):
    summary = go_on(old)
    assert (summary.computed, summary.done, summary.damaged) == (0, 1, 0)


def test_takes_more_runs(old):
    assert go_on(old, runs=300).computed == 1
    np.testing.assert_array_equal(jb.open_sweep(old).regret.values[0, 0, 0], played(20, 300, [7, 20]).regret)


def test_takes_more_rounds_from_its_states(old):
    assert go_on(old, rounds=50).computed == 1
    data = jb.open_sweep(old)
    fresh = played(50, 200, [7, 20, 50])
    np.testing.assert_array_equal(data.regret.values[0, 0, 0], fresh.regret)
    np.testing.assert_array_equal(data.total_delay.values[0, 0, 0], fresh.total_delay)
    assert not Store.open(old).damaged()


def test_damage_is_found_in_it(old):
    (file,) = old.glob("units/*/*")
    content = bytearray(file.read_bytes())
    content[1000] ^= 1
    file.write_bytes(content)
    assert list(Store.open(old).damaged()) == [file]
    assert go_on(old).damaged == 1
    np.testing.assert_array_equal(jb.open_sweep(old).regret.values[0, 0, 0], played(20, 200, [7, 20]).regret)


def test_names_of_before_a_rename():
    """Digests and registry names that were stored before two classes were renamed. Rejects a digest of the new class name."""
    losses = jb.losses.IntermediateStates([[0.5, 0.5], [1.0, 0.0]], jb.losses.Bernoulli([0.0, 1.0]))
    marks = fingerprint(jb.CoLo(jb.TsallisINF(), 2), losses, jb.delays.CompositeFeedback([0.5, 0.5]), jax.random.key(0))
    stored = {"learner": "2e0d4ab355474ae3", "losses": "0c6f6ecac3da1a3c", "delays": "af72cd1fe507c790"}
    assert {part: marks[part] for part in stored} == stored  # computed by the version that had ThroughStates and Pieces
    assert find("losses", "through-states") is jb.losses.IntermediateStates
    assert find("delays", "pieces") is jb.delays.CompositeFeedback


def test_a_spec_with_former_names_is_read(tmp_path):
    text = """rounds = 20
runs = 2
[[learners]]
name = "uniform"
[[losses]]
name = "through-states"
transitions = [[0.5, 0.5], [1.0, 0.0]]
losses = { name = "bernoulli", means = [0.0, 1.0] }
[[delays]]
name = "fixed"
delay = 2
"""
    (tmp_path / "spec.toml").write_text(text)
    summary = jb.sweep(tmp_path / "spec.toml", tmp_path / "out")
    (tmp_path / "spec.toml").write_text(
        text.replace("through-states", "intermediate-states").replace("rounds = 20", "rounds = 30")
    )
    assert summary.done == 1
    jb.sweep(tmp_path / "spec.toml", tmp_path / "out")  # the same cell under its new name
    assert int(jb.open_sweep(tmp_path / "out")["round"][-1]) == 30
